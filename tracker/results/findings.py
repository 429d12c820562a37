"""What was found: incidents with their findings, one finding with every test, and the messages that tell of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final

from msgspec import Struct, field

from tracker.columns import Columns
from tracker.results.advice import Advice
from tracker.results.budgets import JudgedBudget
from tracker.results.history import SERIES_KINDS
from tracker.results.options import DEVICE, ROWS, SIDES, WORKLOAD, Option, Options
from tracker.results.screens import Result, Rows, frames
from tracker.units import counted

__all__ = [
    "CONFIRMED_STATES", "ENDED_STATES", "EXPLAIN_COLUMNS", "FINDINGS_COLUMNS", "NOBODY", "OPEN_STATES", "STATES",
    "ExplainedFinding", "ExplainedIncident", "Findings", "FindingsOptions", "Message", "ToldFinding",
    "ToldIncident",
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
DIRECTIONS: Final = ("regression", "improvement")

FINDINGS_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "incidents": (
        "incident_id", "workload", "configuration", "device", "version", "good_version", "direction", "severity",
        "is_new", "findings", "open", "baseline_runs", "candidate_runs", "baseline_step_ns", "candidate_step_ns",
        "step_delta_ns", "operators_ns", "new_ns", "gone_ns", "machine_ns", "other_operators_ns", "earlier_ns",
        "beside_ns", "shared_factor", "causes", "step_kind", "so_far", "coverage", "step_verdict",
    ),
    "findings": (
        "finding_id", "incident_id", "workload", "configuration", "device", "version", "good_version", "series_id",
        "kind", "metric", "unit", "name", "input_shapes", "part", "step_kind", "direction", "change", "state", "is_new",
        "verdict",
        "ratio", "q", "contribution", "baseline_value", "candidate_value", "delta", "share_of_change", "baseline_calls",
        "candidate_calls", "by_calls", "by_time_per_call", "cause", "under", "covers", "current_value",
        "current_ratio", "baseline_runs", "candidate_runs", "until_ns", "until_version", "ended_version", "so_far",
    ),
    "environment": ("incident_id", "key", "before", "after"),
    "lines": (
        "workload", "configuration", "device", "version", "version_runs", "runs", "last_run_id", "last_run_ns",
        "step_ns", "e2e_ns", "compute_ns", "exposed_communication_ns", "idle_ns", "data_loading_ns",
        "peak_allocated_bytes", "samples_per_second", "step_verdict", "step_change", "net", "peak", "gate_new",
        "gate_new_cause", "gate_any", "gate_any_cause", "slow_host", "lacks_runs",
        "lacks_base_runs", "step_kind", "so_far", "judged_series", "expected_series", "coverage",
    ),
}  # fmt: skip
EXPLAIN_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "tests": ("test", "value", "limit", "passes", "limit_from", "meaning"),
    "runs": ("run_id", "version", "side", "started_at_ns", "value", "calls", "shared_factor", "change"),
    "events": ("when_ns", "state", "who", "version", "reason"),
    "facts": ("kind", "name", "input_shapes", "what", "before", "after"),
    "environment": FINDINGS_COLUMNS["environment"],
}  # fmt: skip


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


class Findings(Result, frozen=True, eq=False):
    """Incidents with their findings. `tables`: the rows of each table of FINDINGS_COLUMNS, with exactly these columns;
    `found.incidents` and all other names are the same as frames of pandas, which takes a while to import.

    - incidents: what began with one version of a track, for the worse and for the better: what is new first, then
      the most severe, then what costs most time of the step.
      `direction`, `severity`: of the net effect on the step. The step before and after, and how its change adds up
      exactly: `step_delta_ns` = `operators_ns` (operators found slower or faster) + `new_ns` + `gone_ns` (operators
      found on one side only) + `machine_ns` (the common-mode shift of all other operators) + `other_operators_ns`
      (what else these changed by) + `earlier_ns` (by how much more operators would have changed against the runs of
      the step: each is compared with runs of its own level) + `beside_ns` (communication, copies, idle time).
      `shared_factor`: how much slower all operators are together, as a ratio: the machine, not the code. `causes`:
      words, the largest first. `so_far`: of it, of findings and of lines: how many runs came of those that the version
      usually has which decided, as long as more may come, in words; "": nothing is awaited. `coverage`: how many
      series of its version were judged, of how many, in words. `step_verdict`: of the step in the version that decided
      it, "" where it has none
    - findings: the rows of incidents, the largest contribution first, then suspects, which have no number yet
      (`finding_id`, `incident_id` NA). `delta`: candidate - baseline value, in `unit`; `ratio`: candidate / baseline
      - 1; `share_of_change`: of the step's. `by_calls` + `by_time_per_call` = `delta`: more calls or slower calls.
      `under`: the finding that says the same one level up, or NA; `covers`: how many it covers itself;
      `current_value`, `current_ratio`: of the newest version, the ratio against the baseline value, of what is open;
      `ended_version`: in which it was over
    - environment: what else changed with the version of an incident
    - lines: where each workload, configuration and device stands, whatever was found: its newest `version` with so many
      runs, all active `runs`, when the last run started (UTC ns), its whole-run numbers; the verdict and change of its
      step; `net`, `peak`: change by the operators found in it, and of peak memory, as shares; `gate_new`, `gate_any`:
      the exit codes of `--fail-on`, and what gave them; `slow_host`: the host that took part in all runs of the version
      and in none before, in words, "" for none; `lacks_runs`, `lacks_base_runs`: how many more runs, of the version and
      before it, would decide its step, 0 where it is decided; `judged_series` of `expected_series`: how many have a
      verdict, of those that its runs have or the runs before it, NA where it is not known; `coverage`: that, and why
      others have none, in words
    - missing: sentences on workloads that did not run in the newest version
    - budgets: how the newest versions came out by the budgets of the settings
    """

    word: ClassVar[str] = "findings"
    printed_by: ClassVar[str] = "tracker findings"
    json_fields: ClassVar[tuple[str, ...]] = ("options", "hidden", "partial", "notes", "missing", "budgets")

    tables: Mapping[str, Columns]
    hidden: int = 0
    partial: tuple[str, ...] = ()
    options: FindingsOptions = field(default_factory=FindingsOptions)
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    budgets: tuple[JudgedBudget, ...] = ()

    incidents, findings, environment, lines = frames(4)

    @property
    def headline(self) -> str:
        """How many incidents and findings there are."""
        incidents, findings = (len(self.tables[name]) for name in ("incidents", "findings"))
        return f"{counted(incidents, 'incident')}, {counted(findings, 'finding')}"


class ExplainedFinding(Result, frozen=True, eq=False):
    """One finding with everything that decided. `finding`: a row of FINDINGS_COLUMNS["findings"] by name; `tables`: the
    rows of each table of EXPLAIN_COLUMNS, with exactly these columns; `found.tests` and all other names are the same as
    frames of pandas.

    - tests: each with its value, its limit and whether it passes; NA where it has none. limit_from: "default", or the
      threshold that a user set, who did and why
    - runs: the runs of its track that have the series, with their part in the verdict (`side`: baseline, candidate,
      later, or "" for none), value and calls per step, the factor that all operators share, and the change against the
      baseline without it, as a ratio
    - events: when it began and ended, and what users said, in order
    - facts: what changed for certain with its version
    - environment: what else changed with its version
    - advice: what could undo a regression: advice that came or grew with it and is about the same rows
    """

    word: ClassVar[str] = "explained"
    printed_by: ClassVar[str] = "tracker explain ID"
    json_fields: ClassVar[tuple[str, ...]] = ("finding", "notes", "advice")

    finding: Mapping[str, object]
    tables: Mapping[str, Columns]
    notes: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()

    tests, runs, events, facts, environment = frames(5)

    @property
    def headline(self) -> str:
        """The finding, its version and its state."""
        one = self.finding
        return f"finding {one['finding_id']}: {one['name']} {one['direction']} in {one['version']}, {one['state']}"


class ExplainedIncident(Result, frozen=True, eq=False):
    """The findings of an incident that no other one covers, the step first; at least one."""

    word: ClassVar[str] = "incident"

    explained: tuple[ExplainedFinding, ...]

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return the findings, and the tables of all of them, each row with the number of its finding."""
        chosen: dict[str, Rows] = {"findings": [dict(one.finding) for one in self.explained]}
        for name in EXPLAIN_COLUMNS:
            rows = []
            for one in self.explained:
                number = {"finding_id": one.finding["finding_id"]}
                rows += [number | row for row in one.tables[name].records()]
            chosen[name] = rows
        return chosen

    @property
    def incident_id(self) -> int:
        """Its number."""
        return int(str(self.explained[0].finding["incident_id"]))

    @property
    def headline(self) -> str:
        """Its first finding."""
        return f"I-{self.incident_id}: {self.explained[0].headline}"


MESSAGE_SCHEMA: Final = 1
"""Version of the JSON form of a Message; it grows when a field changes its meaning or goes."""


class ToldFinding(Struct, frozen=True, kw_only=True):
    """A finding, as FINDINGS_COLUMNS["findings"] means its columns. `owner`: who answers for it; empty: nobody said.

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


class ToldIncident(Struct, frozen=True, kw_only=True):
    """An incident, as FINDINGS_COLUMNS["incidents"] means its columns.

    `shown`: its largest findings; `more`: how many others there are; `beside`: the largest that went the other way.
    `silenced`: findings that somebody muted. `environment`: what else changed, as (key, before, after). `by_step`: the
    step itself is a finding. `advice`: what could undo it, a sentence each. Of what is over: `recovered_in`: the
    version, `left`: names of findings that are still open. `level`: the versions whose runs its step is compared
    with. `step_kind`: of which steps the step is. `so_far`: how many of the usual runs came that decided a part of it,
    where more may come and change that; empty: it stands. `coverage`: how many series of its version were judged, of
    how many, in words; empty: not known.
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


class Message(Struct, frozen=True, kw_only=True):
    """What happened. `key`: the same for every delivery of it, so that a repetition is recognised.

    `event`: opened, added, reminder or recovered, of incidents; else missing_runs, quarantined, watcher, budget (not
    met), budget_met (again) or test. `incidents`: of one version and direction, the most severe first: one line each.
    `held_back`: why it has no details; empty: it has them. `narrowed_to`: the patterns of operators that this channel
    answers for; empty: all. `title`, `lines`: of a message without incidents.
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
