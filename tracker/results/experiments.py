"""Experiments: two builds that one machine ran by turns, what their pairs decided, and the diff of their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec import Struct

from tracker.columns import Columns
from tracker.profile.experiments import name_experiment
from tracker.results.diff import Diff
from tracker.results.screens import Result, Rows, columns_of_rows
from tracker.units import counted, format_diff


class ExperimentChange(Struct, frozen=True):
    """The change of the step from baseline to candidate.

    - outcome: slower, faster, no difference; "" for not decided
    - change_ratio: the median of the pairs, a ratio - 1; None: no pair was run
    - low_ratio, high_ratio: the ends of its interval; None where an end is not known yet
    - limit_ratio: the smallest change that counts
    - counted_runs: runs of both sides in pairs that count
    """

    outcome: str
    change_ratio: float | None
    low_ratio: float | None
    high_ratio: float | None
    limit_ratio: float
    counted_runs: int

    @property
    def words(self) -> str:
        """The change with its interval: `4.1 % slower, between 1.9 and 6.4 %`; "" before the first pair.

        >>> ExperimentChange("slower", 0.041, 0.019, 0.064, 0.05, 14).words
        '4.1 % slower, between 1.9 and 6.4 %'
        >>> ExperimentChange("", 0.01, -0.02, 0.04, 0.05, 8).words
        '1.0 % slower, between 2.0 % faster and 4.0 % slower'
        >>> ExperimentChange("", 0.01, None, None, 0.05, 2).words
        '1.0 % slower'
        >>> ExperimentChange("slower", 0.5, 0.091, None, 0.05, 4).words
        '50.0 % slower, at least 9.1 %'
        """
        change, low, high = self.change_ratio, self.low_ratio, self.high_ratio
        if change is None:
            return ""
        if low is None or high is None:
            # beyond the bound of single pairs the interval has no end
            near = low if change > 0 else high
            if near is None or near * change <= 0:
                return _describe_ratio(change)
            return f"{_describe_ratio(change)}, at least {_format_size(near)}"
        if low <= 0 <= high:
            return f"{_describe_ratio(change)}, between {_describe_ratio(low)} and {_describe_ratio(high)}"
        near, far = sorted((abs(low), abs(high)))
        return f"{_describe_ratio(change)}, between {_format_size(near).removesuffix(' %')} and {_format_size(far)}"

    @property
    def answer(self) -> str:
        """What was decided, in a clause with its number, interval and runs.

        >>> ExperimentChange("slower", 0.041, 0.019, 0.064, 0.05, 14).answer
        '4.1 % slower, between 1.9 and 6.4 %, 14 runs'
        >>> ExperimentChange("no difference", 0.001, -0.002, 0.004, 0.05, 14).answer
        'no difference of 5 % or more, 14 runs'
        """
        words = self.words
        if self.outcome == "no difference":
            words = f"no difference of {_format_limit(self.limit_ratio)} or more"
        return f"{words}, {counted(self.counted_runs, 'run')}"

    @property
    def sentence(self) -> str:
        """What was decided, in a sentence with its number, interval and runs."""
        runs, limit = counted(self.counted_runs, "run"), _format_limit(self.limit_ratio)
        if not self.words:
            return "no pair was run to its end"
        if self.outcome == "no difference":
            what = f"no difference of {limit} or more"
            interval = self.words.partition("between ")[2]
            if (self.low_ratio or 0.0) * (self.high_ratio or 0.0) > 0:
                size = f"candidate is {_describe_ratio(self.change_ratio or 0.0)}, less than the limit of {limit}"
                return f"{what}: {size}, between {interval} ({runs})"
            return f"{what}: the change is between {interval} ({runs})"
        what = f"candidate is {self.words}"
        return f"{what} ({runs})" if self.outcome else f"not decided after {runs}: {what}"


def _describe_ratio(ratio: float) -> str:
    return f"{_format_size(ratio)} {'slower' if ratio > 0 else 'faster'}"


def _format_limit(ratio: float) -> str:
    return f"{round(100 * ratio, 2):g} %"


def _format_size(ratio: float) -> str:
    return format_diff(abs(ratio)).lstrip("+")


class ExperimentPair(Struct, frozen=True):
    """A pair of runs that counts.

    - pair: its number, from 1
    - baseline_run, candidate_run: its runs
    - baseline_ns, candidate_ns: their steps
    - change_ratio: candidate / baseline - 1
    - baseline_machine, candidate_machine: what may have slowed down the machine of a run, "" for nothing known
    """

    pair: int
    baseline_run: int
    candidate_run: int
    baseline_ns: float
    candidate_ns: float
    change_ratio: float
    baseline_machine: str = ""
    candidate_machine: str = ""


class ExperimentOperator(Struct, frozen=True):
    """An operator whose change the pairs decided, without what all operators share in a run.

    - name: of the operator, all shapes
    - baseline_ns, candidate_ns: per step, the median of the pairs
    - change_ratio: the median of the pairs, a ratio - 1
    - log_e: evidence for the change, the logarithm of its e-value
    - verdict: slower or faster
    """

    name: str
    baseline_ns: float
    candidate_ns: float
    change_ratio: float
    log_e: float
    verdict: str


class ListedExperiment(Struct, frozen=True, kw_only=True):
    """A row of `tracker experiments`.

    - experiment_id: its number; `E-3` names it
    - state: running, broken off (no process runs it any more), decided, not decided, or failed
    - workload: of its runs, "" before the first
    - baseline, candidate: as their user named them
    - baseline_commit, candidate_commit: None for a folder
    - finding_id: the finding that it is about, None for none
    - host, devices: where it ran; devices "": all
    - measured_by: profile, log or wall (the time of the command)
    - started_at_ns, ended_at_ns: UTC; None: it has not ended
    - outcome, change_ratio, low_ratio, high_ratio, limit_ratio, counted_runs: as of ExperimentChange
    - seed: of the order in pairs
    """

    experiment_id: int
    state: str
    workload: str
    baseline: str
    candidate: str
    baseline_commit: str | None
    candidate_commit: str | None
    finding_id: int | None
    host: str
    devices: str
    measured_by: str
    started_at_ns: int
    ended_at_ns: int | None
    outcome: str
    change_ratio: float | None
    low_ratio: float | None
    high_ratio: float | None
    limit_ratio: float
    counted_runs: int
    seed: int

    @property
    def name(self) -> str:
        """What users call it."""
        return name_experiment(self.experiment_id)

    @property
    def change(self) -> ExperimentChange:
        """The change of its step."""
        return ExperimentChange(
            self.outcome, self.change_ratio, self.low_ratio, self.high_ratio, self.limit_ratio, self.counted_runs
        )


class ExperimentRows(Struct, frozen=True, kw_only=True):
    """The rows of each table of `Experiment`."""

    pairs: tuple[ExperimentPair, ...] = ()
    decided_operators: tuple[ExperimentOperator, ...] = ()


class Experiment(Result, frozen=True, eq=False):
    """An experiment as it stands: what its pairs decided, above the diff of their runs.

    `experiment`: its row of `tracker experiments`; `rows`: of each table, whose columns stand with their rows:
    `ExperimentPair`, `ExperimentOperator`. `bounded`: how many pairs lie so far out that their distance was bounded;
    `remarks`: what limits the answer; `diff`: of the runs of the pairs, None before the first.
    """

    word: ClassVar[str] = "experiment"
    printed_by: ClassVar[str] = "tracker ab BASELINE CANDIDATE -- COMMAND"
    json_fields: ClassVar[tuple[str, ...]] = ("headline", "experiment", "bounded", "remarks")

    experiment: ListedExperiment
    rows: ExperimentRows
    bounded: int = 0
    remarks: tuple[str, ...] = ()
    diff: Diff | None = None

    @property
    def headline(self) -> str:
        """What the pairs decided."""
        return f"{self.experiment.name}: {self.experiment.change.sentence}"

    @property
    def tables(self) -> Mapping[str, Columns]:
        """The rows of each table as columns, by name."""
        return columns_of_rows(self.rows)

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return the pairs and operators, then the tables of the diff."""
        of_diff = {} if self.diff is None else self.diff.chosen_tables(only, limit)
        return {**self.tables, **of_diff}
