"""What was found: incidents with their findings, one finding with every test, and the messages that tell of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from tracker.columns import Columns
from tracker.errors import EXIT_TOO_LITTLE_DATA
from tracker.results.advice import Advice
from tracker.results.budgets import JudgedBudget
from tracker.results.coverage import CountedSeries
from tracker.results.history import SERIES_KINDS
from tracker.results.options import DEVICE, ROWS, SIDES, WORKLOAD, Option, Options
from tracker.results.screens import Result, Rows, columns_of_rows, frames
from tracker.units import counted

__all__ = [
    "CONFIRMED_STATES", "ENDED_STATES", "NOBODY", "OPEN_STATES", "STATES", "ExplainedFinding", "ExplainedIncident",
    "Findings", "FindingsOptions", "Message", "ToldFinding", "ToldIncident",
]  # fmt: skip

NOBODY: Final = "tracker"
"""Who stands behind a state that follows from the runs, and that no user said."""
STATES: Final = (
    "suspect", "new", "persisting", "acknowledged", "muted", "recovered", "taken back", "accepted", "vanished",
    "renamed", "expected", "invalid",
)  # fmt: skip
"""States of a finding, the open ones first. A suspect is no finding yet; an improvement is taken back, or accepted once
it held for two versions; of what vanished, no run has the series any more; what is renamed came with a version under
another name, and takes as long as before.
"""

OPEN_STATES: Final = STATES[:5]
CONFIRMED_STATES: Final = STATES[1:5]
ENDED_STATES: Final = STATES[5:11]
WORDS_OF_MARKS: Final = {
    "ack": "acknowledged", "expect": "accepted as intended", "mute": "muted", "unmute": "unmuted",
    "invalid": "marked as false positive", "note": "with a new note",
}  # fmt: skip
"""What a user did to findings -> what they are then."""
DIRECTIONS: Final = ("regression", "improvement")


class ListedIncident(Struct, frozen=True, kw_only=True):
    """What began with one version of a track, for the worse or for the better.

    - good_version: the newest version of the level before
    - direction: regression or improvement, of the net effect on the step
    - severity: critical, warning or info, by what its findings cost
    - is_new: one of its findings is new
    - findings: how many no other one covers; open: how many of them are
    - baseline_runs: of the level; candidate_runs: those that most of its findings have; numbers, separated by blanks
    - step_delta_ns: the change of the step, which adds up exactly from the seven parts below
    - operators_ns: operators found slower or faster; new_ns, gone_ns: those found on one side only
    - machine_ns: the common-mode shift of all other operators; other_operators_ns: what else these changed by
    - earlier_ns: by how much more operators would have changed against the runs of the step, since each is compared
      with runs of its own level
    - beside_ns: communication, copies, idle time
    - shared_factor: how much slower all operators are together, as a ratio: the machine, not the code
    - causes: words, the largest first, joined by commas
    - step_kind: of which steps the step is, "" for all
    - so_far: such as "so far: 2 of the usual 3 runs", while the version that decided may get more; else ""
    - coverage: how many series of the version whose runs decided it were judged, of how many, in words
    - step_verdict: of the step in the version that decided it, "" where it has none
    - leading_cause: the finding that makes most of the change of the step, in a clause, "" where none has half of it;
      leading_label: the same in a few words
    """

    incident_id: int | None
    workload: str
    configuration: str
    device: str
    version: str
    good_version: str | None
    direction: str
    severity: str
    is_new: bool
    findings: int
    open: int
    baseline_runs: str
    candidate_runs: str
    baseline_step_ns: float | None
    candidate_step_ns: float | None
    step_delta_ns: float | None
    operators_ns: float | None
    new_ns: float | None
    gone_ns: float | None
    machine_ns: float | None
    other_operators_ns: float | None
    earlier_ns: float | None
    beside_ns: float | None
    shared_factor: float | None
    causes: str
    step_kind: str = ""
    so_far: str = ""
    coverage: str = ""
    step_verdict: str = ""
    leading_cause: str = ""
    leading_label: str = ""


class ListedFinding(Struct, frozen=True, kw_only=True):
    """A change of one series that was found, or a suspect, which has no number yet.

    - finding_id, incident_id: None for a suspect
    - good_version: the newest version of its own level before
    - change: how it was found: level, presence, gradual, late, machine, alike, host or throttled
    - state: one of STATES; is_new: decided by the newest version, and neither acknowledged, accepted nor renamed since
    - ratio: candidate / baseline - 1
    - q: the false discovery rate; of late findings the chance, times the places of the split
    - contribution: its change as a part of the step
    - baseline_value, candidate_value: in `unit`; delta: their difference, a missing one counts as 0
    - baseline_calls, candidate_calls: per step
    - baseline_runs, candidate_runs: numbers, separated by blanks
    - share_of_change: its part of the change of the step
    - by_calls + by_time_per_call = delta: more calls or slower calls; None for what is not counted
    - cause: a word or two for what changed
    - under: the finding that says the same one level up, -1 where that is a suspect, None for none
    - covers: how many it covers itself
    - current_value, current_ratio: of the newest version, the ratio against the baseline value, of what is open
    - until_ns, until_version: the end of a mute, a moment (UTC) or a version
    - ended_version: in which it was over
    - so_far: as of its incident
    - decided_by: what tracker ab decided of its step, in words; "" where it was not asked
    - has_commits: whether the commits of good_version and version are stored, so that tracker ab can run both
    """

    finding_id: int | None
    incident_id: int | None
    workload: str
    configuration: str
    device: str
    version: str
    good_version: str | None
    series_id: int
    kind: str
    metric: str
    unit: str
    name: str
    input_shapes: str
    part: str
    step_kind: str
    direction: str
    change: str
    state: str
    is_new: bool
    verdict: str
    ratio: float | None
    q: float | None
    contribution: float | None
    baseline_value: float | None
    candidate_value: float | None
    delta: float
    share_of_change: float | None = None
    baseline_calls: float | None = None
    candidate_calls: float | None = None
    by_calls: float | None = None
    by_time_per_call: float | None = None
    cause: str = ""
    under: int | None = None
    covers: int = 0
    current_value: float | None = None
    current_ratio: float | None = None
    baseline_runs: str = ""
    candidate_runs: str = ""
    until_ns: int | None = None
    until_version: str | None = None
    ended_version: str | None = None
    so_far: str = ""
    decided_by: str = ""
    has_commits: bool = False


class ChangedFact(Struct, frozen=True, kw_only=True):
    """What else changed with the version of an incident.

    - key: a fact of the environment, or a setting of the profiler
    - before, after: its values on each side; None where the side states none
    """

    incident_id: int | None
    key: str
    before: str | None
    after: str | None


class TrackStanding(Struct, frozen=True, kw_only=True):
    """Where a workload, configuration and device stands, whatever was found.

    - version: its newest one; version_runs: the runs of it; runs: all active ones
    - last_run_id, last_run_ns: of the runs of the newest version the largest number, and when the last one started,
      UTC; None without a date
    - step_ns ... samples_per_second: numbers of its runs as a whole
    - step_verdict, step_change: of its step
    - net, peak: change by the operators found in it, and of peak memory, as shares
    - gate_new, gate_any: the exit codes of `--fail-on`; gate_new_cause, gate_any_cause: what gave them
    - slow_host: the host that took part in all runs of the version and in none before, in words, "" for none
    - lacks_runs, lacks_base_runs: how many more runs, of the version and before it, would decide a step that is a
      SUSPECT or has TOO_FEW_RUNS; 0 for other verdicts
    - step_kind, so_far: as of an incident
    - judged_series of expected_series: how many have a verdict, of those that its runs have or the runs before it, None
      where it is not known; coverage: that, and why others have none, in words
    - leading_cause, leading_label: which part of the step makes most of step_change while runs are lacking, in a clause
      and in a few words, "" for none
    """

    workload: str
    configuration: str
    device: str
    version: str
    version_runs: int
    runs: int
    last_run_id: int
    last_run_ns: int | None = None
    step_ns: float | None = None
    e2e_ns: float | None = None
    compute_ns: float | None = None
    exposed_communication_ns: float | None = None
    idle_ns: float | None = None
    data_loading_ns: float | None = None
    peak_allocated_bytes: float | None = None
    samples_per_second: float | None = None
    step_verdict: str | None = None
    step_change: float | None = None
    net: float | None = None
    peak: float | None = None
    gate_new: int = EXIT_TOO_LITTLE_DATA
    gate_new_cause: str = ""
    gate_any: int = EXIT_TOO_LITTLE_DATA
    gate_any_cause: str = ""
    slow_host: str = ""
    lacks_runs: int = 0
    lacks_base_runs: int = 0
    step_kind: str = ""
    so_far: str = ""
    judged_series: int | None = None
    expected_series: int | None = None
    coverage: str = ""
    leading_cause: str = ""
    leading_label: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """Its workload, configuration and device."""
        return self.workload, self.configuration, self.device

    @property
    def counted_series(self) -> CountedSeries:
        """How many series of its newest version were judged."""
        return CountedSeries(self.judged_series, self.expected_series, self.coverage)

    def gate(self, word: str) -> tuple[int, str]:
        """Return the exit code of a word of `--fail-on`, new or any, and what gave it."""
        return (self.gate_new, self.gate_new_cause) if word == "new" else (self.gate_any, self.gate_any_cause)


class FindingsRows(Struct, frozen=True, kw_only=True):
    """The rows of each table of `Findings`: incidents and findings in the order in which they are shown."""

    incidents: tuple[ListedIncident, ...] = ()
    findings: tuple[ListedFinding, ...] = ()
    environment: tuple[ChangedFact, ...] = ()
    lines: tuple[TrackStanding, ...] = ()


class FindingTest(Struct, frozen=True, kw_only=True):
    """A test that decided a finding.

    - value, limit, passes: None where it has none
    - limit_from: default, or the threshold that a user set, who did and why
    - meaning: what it compares
    """

    test: str
    value: float | None
    limit: float | None
    passes: bool | None
    limit_from: str | None
    meaning: str


class FindingRun(Struct, frozen=True, kw_only=True):
    """A run of the track of a finding that has its series.

    - side: its part in the verdict: baseline, candidate, later, or "" for none and for an odd run that is left out
    - value, calls: per step, nan where the run lacks the series
    - shared_factor: by how much all operators of the run are slower, 0.02 for 2 %
    - change: against the baseline without that, as a ratio
    """

    run_id: int
    version: str
    side: str
    started_at_ns: int | None
    value: float
    calls: float
    shared_factor: float
    change: float


class FindingEvent(Struct, frozen=True, kw_only=True):
    """What happened to a finding, in order: when it began and ended, and what users said.

    - when_ns: of a word of a user, UTC; version: of what the runs decided
    - who: the user, or tracker for the runs
    """

    when_ns: int | None = None
    state: str
    who: str
    version: str | None = None
    reason: str


class FindingFact(Struct, frozen=True, kw_only=True):
    """What changed for certain with the version of a finding.

    - kind, name, input_shapes: of the series; what: calls (per step) or bytes
    """

    kind: str
    name: str
    input_shapes: str
    what: str
    before: float
    after: float


class ExplainedRows(Struct, frozen=True, kw_only=True):
    """The rows of each table of `ExplainedFinding`."""

    tests: tuple[FindingTest, ...] = ()
    runs: tuple[FindingRun, ...] = ()
    events: tuple[FindingEvent, ...] = ()
    facts: tuple[FindingFact, ...] = ()
    environment: tuple[ChangedFact, ...] = ()


def _states(text: str, option: str) -> tuple[str, ...]:
    """The states that a word of --state stands for."""
    return {"open": OPEN_STATES, "all": STATES}.get(text, (text.replace("-", " "),))


class FindingsOptions(Options, frozen=True):
    """Which findings to show; None is no limit. `device`: part of vendor and model."""

    workload: Annotated[str | None, WORKLOAD] = None
    device: Annotated[str | None, DEVICE] = None
    version: Annotated[
        str | None,
        Option(
            "Only findings that began with this version, those that are over included. Default: TRACKER_VERSION, else "
            "any.",
            "LABEL",
            group=SIDES,
            variable="TRACKER_VERSION",
            offers="version",
        ),
    ] = None
    kind: Annotated[str | None, Option("Only this kind of series. Default: all.", group=ROWS, words=SERIES_KINDS)] = (
        None
    )
    direction: Annotated[
        str | None, Option("Only what got worse, or better. Default: both.", group=ROWS, words=DIRECTIONS)
    ] = None
    states: Annotated[
        tuple[str, ...] | None,
        Option(
            "Only findings in this state; repeatable. open: suspect to muted. all: every state. Default: open.",
            name="--state",
            group=ROWS,
            words=("open", "all", *(state.replace(" ", "-") for state in STATES)),
            values=STATES,
            read=_states,
        ),
    ] = None
    only_new: Annotated[
        bool,
        Option(
            "Only what the runs of the newest version decided, and its suspects; without acknowledged findings. "
            "Default: all open findings.",
            name="--new",
            group=ROWS,
        ),
    ] = False
    every: Annotated[
        bool,
        Option(
            "Also findings that another one of their incident covers: the shapes of an op below its name.",
            name="--all",
            group=ROWS,
        ),
    ] = False


class Findings(Result, frozen=True, eq=False, dict=True):
    """Incidents with their findings. `rows`: of each table; what its columns mean stands with its row:
    `ListedIncident`, `ListedFinding`, `ChangedFact`, `TrackStanding`. `tables`: the same as columns; `found.incidents`
    and all other names are the same as frames of pandas, which takes a while to import.

    - incidents: what is new first, then the most severe, then what costs most time of the step
    - findings: the rows of incidents, the largest contribution first, then suspects
    - environment: what else changed with the version of an incident
    - lines: where each workload, configuration and device stands, whatever was found
    - missing: sentences on workloads that did not run in the newest version
    - budgets: how the newest versions came out by the budgets of the settings
    """

    word: ClassVar[str] = "findings"
    printed_by: ClassVar[str] = "tracker findings"
    json_fields: ClassVar[tuple[str, ...]] = ("options", "hidden", "partial", "notes", "missing", "budgets")

    rows: FindingsRows
    hidden: int = 0
    partial: tuple[str, ...] = ()
    options: FindingsOptions = field(default_factory=FindingsOptions)
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    budgets: tuple[JudgedBudget, ...] = ()

    incidents, findings, environment, lines = frames(4)

    @cached_property
    def tables(self) -> Mapping[str, Columns]:
        """The rows of each table as columns, by name."""
        return columns_of_rows(self.rows)

    @property
    def headline(self) -> str:
        """How many incidents and findings there are."""
        return f"{counted(len(self.rows.incidents), 'incident')}, {counted(len(self.rows.findings), 'finding')}"


class ExplainedFinding(Result, frozen=True, eq=False, dict=True):
    """One finding with everything that decided. `rows`: of each table; what its columns mean stands with its row:
    `FindingTest`, `FindingRun`, `FindingEvent`, `FindingFact`, `ChangedFact`. `tables`: the same as columns;
    `found.tests` and all other names are the same as frames of pandas.

    - tests: each with its value, its limit and whether it passes
    - runs: the runs of its track that have the series, with their part in the verdict
    - events: when it began and ended, and what users said, in order
    - facts: what changed for certain with its version
    - environment: what else changed with its version
    - advice: what could undo a regression: advice that came or grew with it and is about the same rows
    - incident: the one that it is part of, None where that is not known
    - replacement_values: of a replacement, per run of `runs` the sum of its operators, nan where the run has none of
      them; empty for another finding, or where these are not all of it
    """

    word: ClassVar[str] = "explained"
    printed_by: ClassVar[str] = "tracker explain ID"
    json_fields: ClassVar[tuple[str, ...]] = ("finding", "notes", "advice", "leading_cause")

    finding: ListedFinding
    rows: ExplainedRows
    notes: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    incident: ListedIncident | None = None
    replacement_values: tuple[float, ...] = ()

    tests, runs, events, facts, environment = frames(5)

    @cached_property
    def tables(self) -> Mapping[str, Columns]:
        """The rows of each table as columns, by name."""
        return columns_of_rows(self.rows)

    @property
    def leading_cause(self) -> str:
        """What makes most of the change of the step, of its incident, as `ListedIncident` has it."""
        return "" if self.incident is None else self.incident.leading_cause

    @property
    def headline(self) -> str:
        """The finding, its version and its state."""
        one = self.finding
        return f"finding {one.finding_id}: {one.name} {one.direction} in {one.version}, {one.state}"


class ExplainedIncident(Result, frozen=True, eq=False):
    """The findings of an incident that no other one covers, the step first; at least one.

    `commits`: which of their notes are about the commits between the versions.
    """

    word: ClassVar[str] = "incident"

    explained: tuple[ExplainedFinding, ...]
    commits: tuple[str, ...] = ()

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return the findings, and the tables of all of them, each row with the number of its finding."""
        chosen: dict[str, Rows] = {"findings": [asdict(one.finding) for one in self.explained]}
        for name in ExplainedRows.__struct_fields__:
            rows = []
            for one in self.explained:
                number = {"finding_id": one.finding.finding_id}
                rows += [number | row for row in one.tables[name].records()]
            chosen[name] = rows
        return chosen

    @property
    def incident_id(self) -> int:
        """Its number."""
        return int(str(self.explained[0].finding.incident_id))

    @property
    def headline(self) -> str:
        """Its first finding."""
        return f"I-{self.incident_id}: {self.explained[0].headline}"


MESSAGE_SCHEMA: Final = 1
"""Version of the JSON form of a Message; it grows when a field changes its meaning or goes."""


class ToldFinding(Struct, frozen=True, kw_only=True):
    """A finding, as ListedFinding means its fields. `owner`: who answers for it; empty: nobody said.

    `is_news`: this message is the first to tell of it, or of what happened to it.
    """

    finding_id: int
    kind: str
    name: str
    input_shapes: str
    part: str
    step_kind: str = ""
    change: str
    direction: str
    state: str
    unit: str
    ratio: float | None
    baseline_value: float | None
    candidate_value: float | None
    delta: float | None
    share_of_change: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    cause: str | None
    owner: str = ""
    is_news: bool = True


class ToldCommit(Struct, frozen=True, kw_only=True):
    """A commit as git names it: its hash, who made it, and the first line of its message."""

    commit: str
    author: str
    subject: str


class ToldIncident(Struct, frozen=True, kw_only=True):
    """An incident, as ListedIncident means its fields.

    `shown`: its largest findings; `more`: how many others there are; `beside`: the largest that went the other way.
    `silenced`: findings that somebody muted. `environment`: what else changed, as (key, before, after). `by_step`: the
    step itself is a finding. `advice`: what could undo it, a sentence each. Of what is over: `recovered_in`: the
    version, `left`: names of findings that are still open. `level`: the versions whose runs its step is compared
    with. `step_kind`: of which steps the step is. `so_far`: how many of the usual runs came that decided a part of it,
    where more may come and change that; empty: it stands. `coverage`: how many series of its version were judged, of
    how many, in words; empty: not known. `leading_cause`: what makes most of the change of the step, in a clause;
    empty: nothing does. `good_commit`: of `good_commit_version`, the nearest good version that has one; `commit`: of
    the version; empty: not known.

    Only in a message that is sent: `url`: of its page; `commits_url`: of the commits between both, `commits`: how many,
    of a single one `author` and `subject`, and of up to five `named_commits`; empty or None: not known.
    """

    incident_id: int
    workload: str
    configuration: str
    device: str
    version: str
    good_version: str | None
    direction: str
    severity: str
    baseline_runs: tuple[int, ...]
    candidate_runs: tuple[int, ...]
    baseline_step_ns: float | None
    candidate_step_ns: float | None
    step_delta_ns: float | None
    operators_ns: float | None
    new_ns: float | None = None
    gone_ns: float | None = None
    machine_ns: float | None = None
    other_operators_ns: float | None = None
    earlier_ns: float | None = None
    beside_ns: float | None = None
    shared_factor: float | None
    causes: tuple[str, ...]
    environment: tuple[tuple[str, str | None, str | None], ...]
    by_step: bool
    shown: tuple[ToldFinding, ...]
    more: int = 0
    silenced: int = 0
    recovered_in: str | None = None
    left: tuple[str, ...] = ()
    beside: tuple[ToldFinding, ...] = ()
    advice: tuple[str, ...] = ()
    level: tuple[str, ...] = ()
    step_kind: str = ""
    so_far: str = ""
    coverage: str = ""
    leading_cause: str = ""
    good_commit: str = ""
    good_commit_version: str = ""
    commit: str = ""
    url: str = ""
    commits_url: str = ""
    commits: int | None = None
    author: str = ""
    subject: str = ""
    named_commits: tuple[ToldCommit, ...] = ()


class Message(Struct, frozen=True, kw_only=True):
    """What happened. `key`: the same for every delivery of it, so that a repetition is recognised.

    `event`: opened, added, reminder or recovered, of incidents; else missing_runs, quarantined, watcher, budget (not
    met), budget_met (again) or test. `incidents`: of one version and direction, the most severe first: one line each.
    `held_back`: why it has no details; empty: it has them. `narrowed_to`: the patterns of operators that this channel
    answers for; empty: all. `title`, `lines`, `url`: of a message without incidents; `url`: where it leads.
    """

    event: str
    key: str
    workload: str
    severity: str = "warning"
    schema: int = MESSAGE_SCHEMA
    incidents: tuple[ToldIncident, ...] = ()
    owners: tuple[str, ...] = ()
    narrowed_to: tuple[str, ...] = ()
    held_back: str = ""
    commands: dict[str, str] = field(default_factory=dict)
    title: str = ""
    lines: tuple[str, ...] = ()
    url: str = ""
