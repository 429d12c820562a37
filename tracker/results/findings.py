"""What was found: incidents with their findings, and one finding with every gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from tracker.results.history import SERIES_KINDS
from tracker.results.options import check_words
from tracker.results.screens import Result
from tracker.units import counted

if TYPE_CHECKING:
    import pandas as pd

STATES: Final = (
    "suspect", "new", "persisting", "acknowledged", "recovering", "muted", "reopened", "recovered", "expected",
    "vanished", "invalid", "normal",
)  # fmt: skip
"""States of a finding, the open ones first; a suspicion that was cleared, or closed long ago, is normal again."""

OPEN_STATES: Final = STATES[:7]
CONFIRMED_STATES: Final = ("new", "persisting", "acknowledged", "recovering", "muted", "reopened")
DIRECTIONS: Final = ("regression", "improvement")

FINDINGS_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "incidents": (
        "incident_id", "workload", "configuration", "device", "version", "good_version", "direction", "severity",
        "is_new", "findings", "open", "baseline_runs", "candidate_runs", "baseline_step_ns", "candidate_step_ns",
        "step_delta_ns", "operators_ns", "new_ns", "gone_ns", "drift_ns", "others_ns", "free_ns",
        "exposed_communication_ns", "exposed_copy_ns", "explained_share", "rest_ns", "gain_ns", "loss_ns",
        "shared_factor", "causes",
    ),
    "findings": (
        "finding_id", "incident_id", "workload", "configuration", "device", "version", "good_version", "series_id",
        "kind", "metric", "unit", "name", "input_shapes", "part", "direction", "change", "state", "is_new", "verdict",
        "ratio", "q", "contribution", "baseline_value", "candidate_value", "delta", "share_of_change", "baseline_calls",
        "candidate_calls", "by_calls", "by_time_per_call", "cause", "effect", "under", "covers", "replacement",
        "baseline_runs", "candidate_runs", "until_ns", "until_version", "confirm", "reopened_in",
    ),
    "environment": ("incident_id", "key", "before", "after"),
    "replacements": (
        "incident_id", "finding_id", "parent", "gone", "come", "before_ns", "after_ns", "delta_ns", "ratio", "q",
        "contribution", "verdict",
    ),
    "lines": (
        "workload", "configuration", "device", "version", "version_runs", "runs", "last_run_id", "last_run_ns",
        "step_ns", "e2e_ns", "compute_ns", "exposed_communication_ns", "free_ns", "data_loading_ns",
        "peak_allocated_bytes", "samples_per_second", "baseline_diff", "pinned_diff", "best_diff",
    ),
}  # fmt: skip
EXPLAIN_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "gates": ("gate", "value", "limit", "passes", "limit_from", "meaning"),
    "runs": ("run_id", "version", "side", "started_at_ns", "value", "calls", "shared_factor", "effect"),
    "events": (
        "position", "when_ns", "source", "target", "kind", "who", "run_id", "version", "rule_version", "reason",
        "notifies",
    ),
}  # fmt: skip


class FindingsOptions(Struct, frozen=True):
    """Which findings to show; None lets all through.

    `states`: words of STATES; None: the open ones, and with a `version` those of it that are over. `only_new`: those
    that the runs of the newest version of their line confirmed, and its suspicions unless `states` leaves them out.
    `device`: part of vendor and model. `every`: also those that others of the incident cover.
    """

    workload: str | None = None
    device: str | None = None
    version: str | None = None
    kind: str | None = None
    direction: str | None = None
    states: tuple[str, ...] | None = None
    only_new: bool = False
    every: bool = False

    def __post_init__(self) -> None:
        if self.kind is not None:
            check_words("kind", [self.kind], SERIES_KINDS)
        if self.direction is not None:
            check_words("direction", [self.direction], DIRECTIONS)
        check_words("state", self.states or (), STATES)


class Findings(Result, frozen=True, eq=False):
    """Incidents with their findings. Frames have exactly the columns of FINDINGS_COLUMNS.

    - incidents: what began with one version of a line, for the worse and for the better, the newest first.
      `direction`, `severity`: of the net effect on the step. The step of its baseline runs and of its candidate runs,
      and how its change adds up: `step_delta_ns` = `operators_ns` (findings of ops, or of kernels where no op is known,
      that both sides have) + `new_ns` + `gone_ns` (of those that came and went) + `drift_ns` (what the machine changed
      of all other operators) + `others_ns` (what these changed beside that, too little for a finding) + what changed of
      `free_ns`, `exposed_communication_ns` and `exposed_copy_ns` + `rest_ns`; NA: not known, and part of the rest.
      `explained_share`: all but the others and the rest; NA where gains and losses cancel. `gain_ns`, `loss_ns`:
      savings and losses of findings and of what is beside the operators. `shared_factor`: how much slower all operators
      are together, as a ratio: the machine, not the code. `causes`: words, the largest first, joined by ", "
    - findings: the rows of incidents, the largest contribution first, then suspicions that belong to none
      (`incident_id` NA). `delta`: candidate - baseline value, in `unit`; `share_of_change`: of the step's. `by_calls` +
      `by_time_per_call` = `delta`: more calls or slower calls. `effect`: of the last run, as a ratio. `confirm`: how
      many runs after a suspicion decide. `reopened_in`: of what recovered, the version that brought it back. `under`:
      the finding that says the same one level up, or NA; `covers`: how many it covers itself
      `replacement`: the finding that stands for the replacement which it is part of, or NA
    - environment: what else changed with the version of an incident
    - replacements: operators that went, and those that came in their place (`gone`, `come`: names joined by ", ") below
      one `parent`, as one change: ns per step `before_ns` of what went, `after_ns` of what came, `delta_ns`, and what
      is judged of both as one series. `finding_id`: the finding that stands for it and covers the others: it has these
      numbers, unless `every` finding is asked for by itself
    - lines: where each workload, configuration and device stands, whatever was found: its newest `version` with so many
      runs, all active `runs`, when the last run started (UTC ns), the medians of its whole-run numbers, and DIFF of its
      step against the version before, the pinned one and the best one; NA: not known
    """

    incidents: pd.DataFrame
    findings: pd.DataFrame
    environment: pd.DataFrame
    replacements: pd.DataFrame
    lines: pd.DataFrame
    hidden: int = 0
    options: FindingsOptions = field(default_factory=FindingsOptions)
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """How many incidents and findings there are."""
        return f"{counted(len(self.incidents), 'incident')}, {counted(len(self.findings), 'finding')}"


class ExplainedFinding(Result, frozen=True, eq=False):
    """One finding with everything that decided. `finding`: a row of FINDINGS_COLUMNS["findings"] by name; frames have
    exactly the columns of EXPLAIN_COLUMNS.

    - gates: each with its value, its limit and whether it passes; NA where the way of judging does not have it.
      limit_from: "usual", or the threshold that a user set, who did and why
    - runs: the runs of its line that have the series, with their part in the judgement (`side`: baseline, candidate,
      later, or "" for none), value and calls per step, the factor that all operators share, and the effect against the
      baseline, as a ratio
    - events: its life, transition by transition
    - environment: what else changed with its version (columns of FINDINGS_COLUMNS["environment"])
    """

    finding: Mapping[str, object]
    gates: pd.DataFrame
    runs: pd.DataFrame
    events: pd.DataFrame
    environment: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The finding, its version and its state."""
        one = self.finding
        return f"finding {one['finding_id']}: {one['name']} {one['direction']} in {one['version']}, {one['state']}"
