"""Two sides and what they differ in; the numbers of more sides beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct, field

from tracker.errors import UsageError
from tracker.results.budgets import JudgedBudget
from tracker.results.chosen_tables import choose_sections, choose_tables
from tracker.results.diff_rows import OverallRow
from tracker.results.options import DiffOptions, check_words
from tracker.results.screens import Result, Rows, frames
from tracker.results.slow_steps import MeanChange, SlowStep
from tracker.results.verdicts import INCOMPARABLE, GateResult, Judgement
from tracker.schema.series import UNPROFILED_STEP
from tracker.units import counted

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import F64, Columns

__all__ = [
    "MATRIX_COLUMNS", "MATRIX_ROWS", "OTHER_SHAPES", "REPLACED_BY", "TOP_LEVEL", "Bottleneck", "Cause",
    "Contribution", "Diff", "Explanation", "Matrix", "Part", "Rename", "Side", "check_matrix",
]  # fmt: skip


class Side(Struct, frozen=True):
    """One side of a diff: what the user named (`label`) and the runs behind it.

    `runs`, `ranks`, `steps` are counts; `device`: `vendor model`, `cpu` or `unknown`; `timeline`: `device` or `host`.
    `chosen_steps`: the steps that the user chose, empty for all. `steps` of the rank with most, `fewest_steps` of that
    with fewest (of those that have any). `names_branch`: the label names a branch or the main line, of which this is
    the newest version; `merge_base`: of a branch beside its main line, the version of the main line that it left at,
    "" where that is not known.
    """

    label: str
    run_ids: tuple[int, ...]
    workload: str
    version: str
    device: str
    configuration: str
    runs: int
    ranks: int
    steps: int
    timeline: str
    chosen_steps: tuple[int, ...] = ()
    fewest_steps: int | None = None
    step_kind: str = ""
    names_branch: bool = False
    merge_base: str = ""


class StepKind(Struct, frozen=True):
    """A kind of steps of two sides: how many of them a run has, how long one takes (ns; None: it has none), and the
    verdict of that with the code of its reason, None where it is not judged.
    """

    kind: str
    baseline_steps: int
    candidate_steps: int
    baseline_ns: float | None = None
    candidate_ns: float | None = None
    verdict: str | None = None
    reason: str | None = None

    @property
    def diff(self) -> float | None:
        """The change as a ratio, None where a side has none."""
        if not self.baseline_ns or self.candidate_ns is None:
            return None
        return self.candidate_ns / self.baseline_ns - 1.0


class Bottleneck(Struct, frozen=True):
    """What the steps of a run or a side wait for, as the model level of an analysis asks.

    `bound`: what takes most of the step, of all that is above its threshold: `input` (possible_gain_share; any
    empty_queue_share above its own, and none below), `communication` (communication_share), `host` (host_idle_share
    less the idle time in data loading, where device_utilisation is below its threshold and the device mostly waits for
    launches) or `device` (device_utilisation less communication_share, where it is above its threshold); else `mixed`,
    None where that is not known. Where launches are not known, a device that works little is `host` bound if nothing
    else is above its threshold. `data_loading_share`: data loading / step time. `communication_share`: exposed
    communication / what `utilisation_of` names.
    `device_utilisation`: the union of compute, communication and copies / step time (E2E in a
    capture without step markers), or what the profiler itself says. `possible_gain_share`: how much of the step time
    would go if data loading cost nothing, at most: the part of it in which the device idles, from the start of the step
    on; all of it where that is not known, which `missing` says. Those of the step are quotients of the numbers in
    `overall`; device_utilisation and those of captures are quotients of each step or capture, reduced as every number
    over steps, ranks and runs; None where the source does not say, and then `missing` says what is missing.
    `thresholds`: name -> quotient.
    `utilisation_of`: what device_utilisation is a share of: `step_ns`, or `e2e_ns` in a capture without step markers.
    `outside_steps_share`: of the capture's E2E, how much lies in none of its steps; None where only some steps were
    asked for, and where the source does not say. `host_idle_share`: the part of the step in which the device does
    nothing and nothing was launched for it; None where launches are not known. `empty_queue_share`: how much of the
    time the queue is empty from which the device takes its data; None where the source does not say it. `timer_ns`:
    data loading and step by the timer log beside a trace, which data_loading_share is of then. `collective`: the kind
    of which most is exposed; `waiting_share`: of exposed communication, how much is waiting for other ranks; None where
    the source does not say.
    """

    bound: str | None
    data_loading_share: float | None
    device_utilisation: float | None
    possible_gain_share: float | None
    missing: tuple[str, ...]
    thresholds: Mapping[str, float]
    utilisation_of: str = "step_ns"
    outside_steps_share: float | None = None
    communication_share: float | None = None
    host_idle_share: float | None = None
    empty_queue_share: float | None = None
    timer_ns: tuple[float, float] | None = None
    collective: str | None = None
    waiting_share: float | None = None


class Part(Struct, frozen=True):
    """A share of the change of the total: compute, exposed communication, exposed copy, free, rest, or data loading and
    what is left where a source says no more; ns per step."""

    name: str
    title: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float


class Cause(Struct, frozen=True):
    """One op (or all shapes of one op name) and what it adds to the change, in ns per step.

    `delta_ns` = `calls_delta_ns` (more or fewer calls) + `per_call_delta_ns` (slower or faster calls); both None where
    one side lacks the op. `share`: delta_ns / the total's delta, None where that is 0. `where`: modules, ranks, hosts
    or code line, may be "". `stands_out`: every run of one side took longer than every run of the other; None with one
    run a side, and where `verdict` says more: a word for the op, or for all its shapes, of which REGRESSED, ADDED, ...
    are findings; None where nothing was judged. `contribution`: of the op to the step, signed fraction, as it was
    judged. `why`: what the metrics of the kernel that changed most say, may be "".
    """

    kind: str
    name: str
    input_shapes: str
    status: str
    delta_ns: float
    share: float | None
    calls_delta_ns: float | None
    per_call_delta_ns: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_ns: float | None
    candidate_ns: float | None
    where: str = ""
    stands_out: bool | None = None
    why: str = ""
    verdict: str | None = None
    q: float | None = None
    contribution: float | None = None


class Contribution(Struct, frozen=True):
    """A row of what explains a change of the total, in ns per step; all rows together add up to it.

    `kind`: operator (all shapes of a name, or one that is a finding; without collectives and copies), kernel (that no
    operator launched), category, replacement (what went and what came, as one: `baseline_ns` and `candidate_ns` are
    those two), alike (all operators, or kernels, that moved by one factor, `count` of them), others (all causes that
    are not named, `count` of them; `name` says of what), part (a part of the step that is no operator: `metric`;
    waiting and transfers where both sides know these halves of exposed communication), overlap (kernels at the same
    time: `baseline_ns` and `candidate_ns` are what they hide of each other, so that less of it makes the step longer),
    earlier (rows are compared with the runs that their verdicts rest on: by how much more they would have changed in
    the runs of the step), rest (medians do not add up; small overlaps). `share`: delta_ns / the total's, None where
    that is 0. `input_shapes`: of a finding (`other shapes`:
    the others of its operator), or of what carries most of the change. `why`: slower per call, faster per call, more
    calls, fewer calls, new, gone, replaced, renamed, other work (its inputs have another size), ...;
    of a part what it means: no operator runs, waits for data, ...; "" for others and rest.
    """

    kind: str
    name: str
    delta_ns: float
    share: float | None = None
    input_shapes: str = ""
    why: str = ""
    baseline_ns: float | None = None
    candidate_ns: float | None = None
    baseline_calls: float | None = None
    candidate_calls: float | None = None
    verdict: str | None = None
    count: int = 0
    metric: str = ""


OTHER_SHAPES: Final = "other shapes"
"""`input_shapes` of a contribution: all of an operator but the shape that is a finding."""
TOP_LEVEL: Final = "(top level)"
"""The parent of a replacement where nothing is known above."""


REPLACED_BY: Final = " -> "
"""Between what went and what came, in the name of a replacement."""


class Rename(Struct, frozen=True):
    """Ops that went, or are called less, and those that came in their place below the same parent; names are joined by
    " + ", those that changed most first.

    `removed_ns`: what the first took more than now, per step; `added_ns`: what the others take more than before.
    `is_worse`: it is a loss, and no other name for the same work. `is_renamed`: only the name of one of them changed:
    it is alike, without its namespace, and called as often and as long as before.
    """

    removed: str
    added: str
    parent: str
    removed_ns: float
    added_ns: float
    is_worse: bool = False
    is_renamed: bool = False

    @property
    def word(self) -> str:
        """What became of the first: `renamed` or `replaced`."""
        return "renamed" if self.is_renamed else "replaced"

    @property
    def names(self) -> tuple[str, ...]:
        """All ops that take part."""
        return tuple(f"{self.removed} + {self.added}".split(" + "))


class Explanation(Result, frozen=True):
    """Why the total changed; it adds up: the `delta_ns` of `parts` sum to `delta_ns`, in ns per step.

    `total_metric`: `step_ns` or `e2e_ns`. `causes`: the ops with the largest changes, at most 20, largest first.
    `explained_ns`: sum of the deltas of ALL ops, whatever the filters, not of `causes` alone; `rest_ns` = delta_ns -
    explained_ns, `rest_title`: what that is, in words. `has_own_levels`: rows of the baseline are of the newest runs of
    their own level, which are not all runs of the step. `gross_loss_ns` / `gross_gain_ns`: sums of the positive /
    negative op deltas; `cancelling`: they hide each other in the total. `rollup`: the same summed by op name, again at
    most 20. `other_causes_ns`: the deltas of the ops that `causes` leaves out. `baseline_range_ns`,
    `candidate_range_ns`: smallest and largest total of the runs of a side, `ranged_runs`: of how many. `findings`: of
    all op names those whose verdict (kind `name`), or that of one of their shapes (kind `op`), is a finding or a
    suspicion, the largest contribution first. `contributions`: what explains the change, each cause once, which adds up
    to `delta_ns`; `headline`: the sentence that answers the question, `verdict` that of the total, None where it was
    not judged, `remarks`: sentences that limit the headline.
    """

    total_metric: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    parts: tuple[Part, ...]
    causes: tuple[Cause, ...]
    rest_ns: float | None
    explained_ns: float
    cancelling: bool
    gross_loss_ns: float
    gross_gain_ns: float
    rollup: tuple[Cause, ...]
    renames: tuple[Rename, ...]
    headline: str
    other_causes_ns: float = 0.0
    baseline_range_ns: tuple[float, float] | None = None
    candidate_range_ns: tuple[float, float] | None = None
    findings: tuple[Cause, ...] = ()
    rest_title: str = "rest"
    has_own_levels: bool = False
    ranged_runs: tuple[int, int] | None = None
    contributions: tuple[Contribution, ...] = ()
    verdict: str | None = None
    remarks: tuple[str, ...] = ()
    baseline_slow_steps: tuple[SlowStep, ...] = ()
    candidate_slow_steps: tuple[SlowStep, ...] = ()
    mean: MeanChange | None = None


Runs = tuple[tuple[float, ...], tuple[float, ...]]
"""The values of the runs of both sides, of those that state one."""
Curve = tuple[tuple[float, float], ...]
"""A number over time: (seconds, value)."""


class DiffSamples(Struct, frozen=True, eq=False):
    """What single runs say, for drawings: no table has it.

    `overall`: of each metric the value of each run, in ns or bytes; `ops`: of each operator (name, input shapes) in the
    order of `keys` its time in each run, a column per run, nan for none; `curves`: per side its memory over time, of
    the capture and the component with the highest peak, in bytes. `tree`: with `options.with_flame` the nodes of the
    call tree, of `word` (module or op), parents before their children: level, name, baseline and candidate in ns.
    """

    overall: Mapping[str, Runs] = field(default_factory=dict)
    keys: tuple[tuple[str, str], ...] = ()
    ops: tuple[F64, F64] | None = None
    curves: tuple[Curve, ...] = ()
    word: str = ""
    tree: tuple[tuple[int, str, float | None, float | None], ...] = ()

    @property
    def has_repeats(self) -> bool:
        """Whether a side has more than one run."""
        return any(len(side) > 1 for both in self.overall.values() for side in both)

    def of_op(self, keys: Iterable[tuple[str, str]]) -> list[Runs | None]:
        """The runs of the operators `keys`."""
        if self.ops is None:
            return [None for _ in keys]
        places = {key: at for at, key in enumerate(self.keys)}
        before, after = self.ops

        def known(values: F64) -> tuple[float, ...]:
            return tuple(value for value in values.tolist() if not isnan(value))

        found = (places.get(key) for key in keys)
        return [None if at is None else (known(before[at]), known(after[at])) for at in found]


class Diff(Result, frozen=True, eq=False):
    """Candidate against baseline.

    `tables`: the rows of each table, by its name in DIFF_COLUMNS; `diff.ops` and all other names are the same as frames
    of pandas, which takes a while to import. Every number is per step: the median over the steps, the median over the
    ranks of a stage, the mean over stages, the geometric mean over the runs of the side (float64, NA = missing). Tables
    have exactly the columns of DIFF_COLUMNS, rows ordered by |delta| descending (`overall` and `environment` in reading
    order). `metric`: what `*_ns` of ops, modules and details is: `device_self_ns`, or `host_self_ns` where there is no
    device activity. `status`: `both`, `ADDED`, `REMOVED`, or `UNMATCHED` (on one side only, where the sides were
    recorded differently).

    - environment, overall, op_kernels, kernel_metrics, memory_peak, memory_blocks: what their columns mean stands with
      their rows: `OverallRow`, ...; kernel_metrics are without rows where `options` chose some of several steps
    - ops: baseline_name (NA unless mapped by `op_map`); `*_calls` per step, `*_total_calls` in all steps and ranks of
      the side; calls_delta_ns + per_call_delta_ns = delta_ns; host_delta_ns, host_diff: of the host self time;
      average_ns, min_ns, max_ns: of one call with what it calls, on the device where there is one, host_min_ns,
      host_max_ns: on the host; min and max NA where an op stands for all below it
    - op_details, communication_details, memory_details: what a row of ops, communication, memory consists of, under the
      same key
    - op_kernels: with `options.single_kernels`, else empty
    - kernels: name is the canonical name; type as an NPU's profiler names it, else ""; category `copy` and `memset`
      included; op: the one whose time in the kernel changed most; more_ops: how many others launch it
    - kernel_types: the kernels whose type an NPU's profiler names, without collectives, as in its op_statistic.csv
    - communication: bytes is the payload; exposed_ns not hidden by compute, exposed_wait_ns the waiting in it;
      wait_ns, transit_ns, idle_ns where they can be told apart; synchronization_ns: the part of wait_ns before the
      first transfer; split_by: `ranks` where transit (the shortest call of all ranks of the group) and wait (the rest)
      are computed from all ranks, without idle_ns and synchronization_ns; `profiler` where the profiler states them;
      `tasks` where wait is that of the tasks which name the rank that they wait for, and transit the rest of the call:
      then idle_ns and synchronization_ns are the profiler's, beside these two and no parts of them; NA where nothing
      states them, and where the runs of a side differ in it
    - memory: bytes that the op allocated, by itself or through helpers inside (`timeline.owners`); allocator: the
      innermost op of most of them, more_allocators: how many others; held_ns until freed; unreleased_bytes never freed
      in the capture
    - memory_peak, memory_blocks: without rows where only one side knows them
    - memory_peak_totals: per component what both captures held at their peaks, whatever the filters
    - options: how the sides were compared; notes: sentences about what makes the comparison doubtful
    - kernels.why: what the metrics say of longer or shorter calls, else ""
    - communication_links: bytes over a transport, first for all links together (level `transport`; source_rank,
      target_rank NA), then the same bytes from global rank to global rank (level `link`), of the ranks that use
      it; bandwidth in 10^9 bytes/s; delta_ns and diff are of transit_ns; large_packet_ratio: share of large packets.
      SDMA only where HCCS, PCIE, SIO, for which it stands, are not told apart
    - idle: why the device did nothing, by cause and place, ns and gaps per step; empty unless both sides state it
    - modules: `A_0/B_1`, phase (forward, backward, optimizer, ...); api: level (runtime, driver, ...), name
    - input_operations, input_queues: the data pipeline: how long its operations take, and how full the queues behind
      them are, over all of the time and in intervals of it; empty unless both sides state it
    - operator_arguments: the arguments that operators had on one side alone, as record_op_args wrote them; empty unless
      both sides have some
    - counters: what both profilers counted in tables of their own (hbm, llc, ai_core_freq, ...), but for those that
      other sections are made of; mean over `calls` values of the run, by |diff|; delta in the unit that `attribute`
      names
    - judgement: what the runs can tell; overall, ops, kernels, communication, memory, modules, api (by its self time)
      and tree (rows whose time is that of one series) end with VERDICT_COLUMNS
    - budgets: how the candidate came out by the budgets of the settings
    - gates: how each word of `--fail-on` ends, empty where nothing was judged
    - step_kinds: the kinds of steps of both sides, the one of all tables first; empty where steps are of one kind
    - bottlenecks: of the baseline and of the candidate
    - samples: what single runs say, for drawings
    - tree, as rows `tree_table`: what `options.by` asks for, None without; the rows of NODE, below each row those with
      the largest change first. `ns` and `self_ns` are times of the kind that `metric` says, with and without the rows
      below that are no ops; the other columns are as in `Shown.tree`. Medians do not add up: a
      row is no sum of those below it
    """

    word: ClassVar[str] = "diff"
    printed_by: ClassVar[str] = "tracker diff BASELINE CANDIDATE"

    baseline: Side
    candidate: Side
    metric: str
    tables: Mapping[str, Columns]
    explanation: Explanation
    options: DiffOptions = field(default_factory=DiffOptions)
    notes: tuple[str, ...] = ()
    step_kinds: tuple[StepKind, ...] = ()
    bottlenecks: tuple[Bottleneck, Bottleneck] | None = None
    tree_table: Columns | None = None
    judgement: Judgement | None = None
    gates: Mapping[str, GateResult] = field(default_factory=dict)
    samples: DiffSamples = field(default_factory=DiffSamples)
    budgets: tuple[JudgedBudget, ...] = ()

    (
        environment, overall, ops, op_details, op_kernels, kernels, kernel_types, kernel_metrics, communication,
        communication_details, communication_links, memory, memory_details, memory_peak, memory_peak_totals,
        memory_blocks, modules, api, counters, idle, input_operations, input_queues, operator_arguments,
    ) = frames(23)  # fmt: skip

    @property
    def headline(self) -> str:
        """The sentence that answers the question."""
        return self.explanation.headline

    @property
    def unprofiled_step(self) -> OverallRow | None:
        """The overall row of the step by a log without a profiler, of which the headline is; None without one."""
        if self.is_refused:
            return None
        rows = self.tables["overall"].structs(OverallRow)
        return next((row for row in rows if row.metric == UNPROFILED_STEP), None)

    @property
    def verdict_of_parts(self) -> str | None:
        """The verdict of the total that the parts add up to: that of the headline, unless that is of a log."""
        if self.unprofiled_step is None:
            return self.explanation.verdict
        verdicts = dict(self.tables["overall"].rows("metric", "verdict"))
        return verdicts.get(self.explanation.total_metric)

    def chosen_sections(self, only: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the sections to show, in reading order; see `choose_sections`. A diff that is refused has none."""
        return () if self.is_refused else choose_sections(only, has_tree=self.tree_table is not None)

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return the tree, cut on each level, and the tables of the chosen sections."""
        return choose_tables(self.tables, self.tree_table, self.chosen_sections(only), limit)

    @property
    def is_refused(self) -> bool:
        """Whether there are no tables: the sides do different work, and nobody asked for them all the same."""
        return self.judgement is not None and self.judgement.refusal == INCOMPARABLE and not self.options.force

    @property
    def tree(self) -> pd.DataFrame | None:
        """The frame of `tree_table`, as the others are those of `tables`."""
        return None if self.tree_table is None else self.tree_table.frame.copy()


MATRIX_ROWS: Final = ("op", "kernel", "communication", "module")
"""What the rows of a matrix may be, below the numbers of the whole."""


class MatrixRow(Struct, frozen=True, kw_only=True):
    """What the cells of a matrix are of.

    - row: its number
    - section: overall, then what `by` says (op, kernel, communication, module)
    - name: a title in overall; input_shapes
    - part: what else tells the row from others of its name; in overall the metric
    - level: of overall rows, 0 main
    - unit: ns, bytes, count or ratio
    - movement: largest - smallest value of the sides, a side without the row counting as 0, by which the rows behind
      overall are ordered
    """

    row: int
    section: str
    name: str
    input_shapes: str | None
    part: str | None
    level: float | None
    unit: str
    movement: float | None


class MatrixCell(Struct, frozen=True, kw_only=True):
    """A row of a matrix on one side, in the unit of the row, per step, as in `Diff`; None: the side does not have it.

    - row: of which row it is; side: the place of its side
    - delta, diff: against the first side
    - previous_diff, verdict, q, reason: against the side before; None for the first one and where nothing was judged
    """

    row: int
    side: int
    value: float | None
    delta: float | None
    diff: float | None
    previous_diff: float | None
    verdict: str | None
    q: float | None
    reason: str | None


MATRIX_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "rows": MatrixRow.__struct_fields__,
    "cells": MatrixCell.__struct_fields__,
}


class Matrix(Result, frozen=True, eq=False):
    """Three or more sides, in the order in which they were named. `tables`: the rows of each table of MATRIX_COLUMNS;
    `found.rows` and `found.cells` are the same as frames of pandas.

    - sides; metric: as in `Diff`
    - rows, cells: what their columns mean stands with their rows, `MatrixRow` and `MatrixCell`; one cell per row and
      side
    - judged: one sentence per side but the first, what its runs can tell against those of the side before
    """

    word: ClassVar[str] = "matrix"
    printed_by: ClassVar[str] = "tracker diff SIDE SIDE SIDE..."

    sides: tuple[Side, ...]
    metric: str
    by: str
    tables: Mapping[str, Columns]
    judged: tuple[str, ...]
    options: DiffOptions = field(default_factory=DiffOptions)
    notes: tuple[str, ...] = ()

    rows, cells = frames(2)

    @property
    def headline(self) -> str:
        """The sides in order."""
        return f"{counted(len(self.sides), 'side')}: {', '.join(side.label for side in self.sides)}"


def check_matrix(options: DiffOptions, by: str, depth: int | None = None) -> None:
    """UsageError for what makes sense for two sides only."""
    check_words("matrix", (by,), MATRIX_ROWS)
    given = {
        "--depth": depth or options.depth, "--max-kernels": options.max_kernels, "--op-map": options.op_map,
        "--single-kernels": options.single_kernels,
        "--baseline-step": options.baseline_steps, "--candidate-step": options.candidate_steps, "--only": options.only,
        "--force": options.force,
    }  # fmt: skip
    two = [name for name, value in given.items() if value]
    if two:
        raise UsageError(
            f"{two[0]} compares two sides, and there are more", remedy="name two sides, or leave it out of the matrix"
        )
