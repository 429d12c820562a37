"""Kernels of two sides: their names and cores side by side, and why one is slower, as far as its calls were measured.

Chips do the same work on other cores and planes. The pipes of a core work side by side, so the times of the metrics
overlap: their shares of a change may sum to more than all of it. A metric that moved with the time of its kernel need
not be its cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import F64, Column, Columns, objects
from tracker.compare import match
from tracker.compare.match import sum_exactly
from tracker.profile import known_medians
from tracker.results import BOTH, CORE_TIME, CYCLES, DIFF_COLUMNS, OTHER_METRIC, PIPE_TIME, RATIO
from tracker.results.diff_rows import KernelMetricRow
from tracker.schema.column_names import (
    BASELINE_AVERAGE_NS,
    BASELINE_MEAN,
    CALLS,
    CANDIDATE_AVERAGE_NS,
    CANDIDATE_MEAN,
    CANONICAL_NAME,
    CORE_TYPE,
    INPUT_SHAPES,
    MEAN,
    METRIC,
    NAME,
    NS,
    OP,
    OP_INPUT_SHAPES,
    RUN_ID,
    SETTINGS,
    SHARE,
    STATUS,
    TOTAL_NS,
)
from tracker.store import queries
from tracker.table import Numbered, is_among, number_distinct_rows, number_tables, rank_values
from tracker.units import NS_PER_MS, NS_PER_US, format_ns, format_numbers, time_unit

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.results import Cause, DiffOptions


Names = Mapping[tuple[str, ...], str]
"""Key -> what its cores or planes are called."""

KERNEL: Final = [NAME, INPUT_SHAPES, CORE_TYPE]
"""What identifies a kernel here; `name` is the canonical one."""

_CHANGED: Final = 0.02  # a kernel whose calls take this much longer or shorter has a change to speak of
_MOVED: Final = 0.1  # a metric that covers this share of the change of its kernel moved with it
_UNCHANGED: Final = 0.02
_LARGE: Final = 0.1  # a pipe that works this share of the kernel's time
_NAMED: Final = 2
_LISTED: Final = 6

_TIME: Final = re.compile(r"(?P<name>\w+_time)\((?P<unit>ns|us|ms)\)")
_UNIT_NS: Final = {"ns": 1, "us": NS_PER_US, "ms": NS_PER_MS}
_CORE_TIMES: Final = ("aicore_time", "aic_time", "aiv_time")
_PIPES: Final = {
    "mac": "cube",
    "vec": "vector",
    "scalar": "scalar",
    "mte1": "between on-chip buffers",
    "mte2": "from memory",
    "mte3": "to memory",
    "fixpipe": "cube results out",
}
"""What the pipes of an AI Core do, by the last word of their metric."""


def with_canonical_names(table: Columns, op_map: Mapping[str, str] | None = None) -> Columns:
    """Return `table` with the canonical name as `name`, `total_ns` as `ns`, and `op` under the name that `op_map` gives
    it.
    """
    found = table.without("name").renamed({CANONICAL_NAME: "name", TOTAL_NS: "ns"})
    if not op_map:
        return found
    return found.having(op=objects([op_map.get(op, op) for op in found.texts(OP).tolist()]))


def pair_cores(tables: Sequence[Columns], key: Sequence[str]) -> list[Columns]:
    """Return the tables of both sides with one `core_type` for a `key` that each side runs on one kind of core.

    Such a core is called `AI_CORE -> AI_VECTOR_CORE`. A chip with one kind of core calls it AI_CORE, one with two runs
    the same kernel on a vector core: that is the same kernel, and not one removed and one added. A key with several
    kinds of cores on a side keeps them apart.
    """
    names = shared_core_names(tables, key)
    return [with_core_names(table, key, names) for table in tables]


def shared_core_names(tables: Sequence[Columns], key: Sequence[str]) -> Names:
    """Return what `pair_cores` calls the cores of each `key` that the sides run on other cores."""
    if len({core for table in tables for core in table.listed(CORE_TYPE)}) < 2:
        return {}
    before, after = (_only_core_of_each(table, key) for table in tables)
    names = {}
    for shared_key in before.keys() & after.keys():
        old_core, new_core = before[shared_key], after[shared_key]
        if old_core == new_core:
            continue
        if old_core and new_core:
            names[shared_key] = f"{old_core} -> {new_core}"
        else:
            # one profiler does not name the core: the other side's word stands
            names[shared_key] = old_core or new_core
    return names


def _only_core_of_each(table: Columns, key: Sequence[str]) -> Names:
    """Return the core of each key that runs on one kind of core alone."""
    cores_of = _distinct_texts(table, key, CORE_TYPE)
    return {own_key: cores.pop() for own_key, cores in cores_of.items() if len(cores) == 1}


def with_core_names(table: Columns, key: Sequence[str], names: Names) -> Columns:
    """Return `table` with the cores of `names`, an answer of `shared_core_names` for this `key`."""
    return _replace_texts(table, key, CORE_TYPE, names)


def pair_planes(tables: Sequence[Columns], key: Sequence[str]) -> list[Columns]:
    """Return the tables of both sides with one `plane` for the tasks of a `key` that they run on other planes.

    Such planes are called `0 -> 1-7`. How many planes a collective uses is a matter of chip and algorithm; its tasks
    are then one row, of all planes.
    """
    planes = []
    for table in tables:
        planes.append({own_key: _name_planes(own) for own_key, own in _distinct_texts(table, key, "plane").items()})
    before, after = planes
    names = {}
    for shared_key in before.keys() & after.keys():
        if before[shared_key] != after[shared_key]:
            names[shared_key] = f"{before[shared_key]} -> {after[shared_key]}"
    return [_replace_texts(table, key, "plane", names) for table in tables]


def _name_planes(planes: Iterable[str]) -> str:
    distinct = sorted(planes)
    if all(plane.isdecimal() for plane in distinct):
        return format_numbers(sorted(map(int, distinct)))
    return ",".join(distinct)


def _distinct_texts(table: Columns, key: Sequence[str], column: str) -> dict[tuple[str, ...], set[str]]:
    """Return each key with the distinct texts of `column`."""
    found: dict[tuple[str, ...], set[str]] = {}
    for text, *own_key in table.rows(column, *key):
        found.setdefault(tuple(own_key), set()).add(text)
    return found


def _replace_texts(table: Columns, key: Sequence[str], column: str, names: Names) -> Columns:
    """Return `table` with the text that `names` has for its key in `column`, where there is one."""
    if not names:
        return table
    texts = [names.get(tuple(own_key), text) for text, *own_key in table.rows(column, *key)]
    return table.having(**{column: objects(texts)})


class Measured(Struct, frozen=True, eq=False):
    """The metrics that both sides have of kernels that both sides have: `DIFF_COLUMNS["kernel_metrics"]`.

    `why`: KERNEL -> a sentence, for kernels whose calls take longer or shorter. `cores`: what kernels are called that
    the sides run on other cores, an answer of `shared_core_names`. `notes`: what cannot be compared.
    """

    table: Columns
    why: Mapping[tuple[str, ...], str]
    cores: Names
    notes: tuple[str, ...] = ()


def kind_of(metric: str) -> str:
    """Return what a metric is, by its name: the time of a pipe or of all of a core, cycles, a ratio, or something else.

    >>> kind_of("aic_mte2_time(us)"), kind_of("aicore_time(us)"), kind_of("cube_utilization(%)"), kind_of("mac_fops")
    ('pipe time', 'core time', 'ratio', 'other')
    >>> kind_of("est. achieved occupancy %"), kind_of("blocks per SM")
    ('ratio', 'other')
    """
    if timed := _TIME.fullmatch(metric):
        return CORE_TIME if timed.group("name") in _CORE_TIMES else PIPE_TIME
    if metric.endswith("cycles"):
        return CYCLES
    return RATIO if metric.endswith(("_ratio", "_rate", "(%)", " %")) else OTHER_METRIC


def measure_kernels(baseline: LoadedSide, candidate: LoadedSide) -> Measured:
    """Return what the profilers measured in the kernels of both sides: means over the calls of whole captures, the
    median over the runs.
    """
    nothing = Measured(match.empty_table("kernel_metrics"), {}, {})
    sides = (baseline, candidate)
    if any(side.is_part for side in sides):  # the profiler does not say in which step
        return nothing
    if not any(side.may_have_rows(queries.kernel_metrics) for side in sides):
        return nothing
    stated = [with_canonical_names(side.query_kernel_metrics()) for side in sides]
    if not all(map(len, stated)):
        notes = () if not any(map(len, stated)) else (_lacking(sides, stated),)
        return replace(nothing, notes=notes)
    kernels = [with_canonical_names(side.query_with(queries.kernels, ranks=side.ranks)) for side in sides]
    cores = shared_core_names(kernels, KERNEL[:-1])
    rows, keys = number_tables([with_core_names(own, KERNEL[:-1], cores) for own in stated], [*KERNEL, "metric"])
    means = [{"mean": _average(own, own.rows.reals(MEAN) * own.rows.reals(CALLS))} for own in rows]
    table = match.match_rows(keys, rows, means)
    table = table.taken(table[STATUS] == BOTH)
    # the mean time of a call of the kernel, over the whole captures as its metrics are
    rows, keys = number_tables([with_core_names(own, KERNEL[:-1], cores) for own in kernels], KERNEL)
    place = {key: at for at, key in enumerate(keys.rows(*KERNEL))}
    at = [place.get(key, -1) for key in table.rows(*KERNEL)]
    before, after = (np.append(_average(own, own.rows.reals(NS)), np.nan)[at] for own in rows)
    table = _with_shares(table.having(baseline_average_ns=before, candidate_average_ns=after))
    found = table.only(DIFF_COLUMNS["kernel_metrics"])
    of_kernel: dict[tuple[str, ...], list[KernelMetricRow]] = {}
    for row in found.structs(KernelMetricRow):
        of_kernel.setdefault((row.name, row.input_shapes, row.core_type), []).append(row)
    why = {key: text for key, own in of_kernel.items() if (text := _sentence(own))}
    return Measured(found, why, cores, _differing(sides, stated))


def add_metrics(measured: Measured, kernels: Columns) -> tuple[Columns, Columns]:
    """Return the `kernels` of a Diff with its column `why`, and `kernel_metrics`: of these kernels, in their order."""
    keys = list(kernels.rows(*KERNEL))
    kernels = kernels.having(why=objects([measured.why.get(key, "") for key in keys]))
    table = measured.table
    place = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    places = np.array([place.get(key, len(place)) for key in table.rows(*KERNEL)], dtype=np.int64)
    share = table.reals(SHARE)
    size = np.where(np.isnan(share), -1.0, np.abs(share))
    order = np.lexsort([rank_values(table[METRIC]), -size, places])
    return kernels, table.taken(order[: int((places < len(place)).sum())])


def op_reasons(
    measured: Measured,
    sides: tuple[LoadedSide, LoadedSide],
    causes: Sequence[Cause],
    options: DiffOptions,
    *,
    by_name: bool,
) -> list[str]:
    """Return for each cause that is slower or faster per call: what the metrics of its kernel that changed most say, or
    "".
    """
    asked = {cause.name for cause in causes if _per_call(cause)}
    if not measured.why or not asked:
        return [""] * len(causes)
    tables = []
    for side, renames in zip(sides, (options.op_map, {}), strict=True):
        own = with_core_names(with_canonical_names(side.query(queries.kernels), renames), KERNEL[:-1], measured.cores)
        if by_name or options.match == "name":
            own = own.having(op_input_shapes=objects([""] * len(own)))
        tables.append(own.taken(is_among(own[OP], asked)))
    joined = match.match_sums(sides, tables, [OP, OP_INPUT_SHAPES, *KERNEL], ["ns"])
    rows = list(match.add_difference(joined, "ns").structs(_KernelOfOp))
    return [_reason(cause, rows, measured) if _per_call(cause) else "" for cause in causes]


def _per_call(cause: Cause) -> bool:
    """Return whether the calls of an op take longer or shorter, rather than being more or fewer."""
    calls, price = cause.calls_delta_ns, cause.per_call_delta_ns
    return calls is not None and price is not None and abs(price) > abs(calls)


class _KernelOfOp(Struct, frozen=True):
    """By how much a kernel changed that an op launches; `op_input_shapes`: "" for all shapes of the op."""

    op: str
    op_input_shapes: str
    name: str
    input_shapes: str
    core_type: str
    delta_ns: float | None


def _reason(cause: Cause, kernels: Sequence[_KernelOfOp], measured: Measured) -> str:
    """Return why the kernel of `cause` that changed most is slower or faster; "" where no metric says it.

    `kernels`: of all causes, the largest change first.
    """
    for kernel in kernels:
        is_own = (kernel.op, kernel.op_input_shapes) == (cause.name, cause.input_shapes)
        if is_own and (kernel.delta_ns or 0.0) * cause.delta_ns > 0:
            text = measured.why.get((kernel.name, kernel.input_shapes, kernel.core_type), "")
            return f"{kernel.name}: {text}" if text else ""
    return ""


def _average(rows: Numbered, total: F64) -> F64:
    """Of each key `total` per call: the mean over the calls of a run, the median over runs; nan where none says it."""
    (run, runs), size = number_distinct_rows([rows.rows[RUN_ID]]), rows.count
    cell = rows.number * len(runs) + run
    sums, calls = (sum_exactly(numbers, cell, size * len(runs)) for numbers in (total, rows.rows.reals(CALLS)))
    return known_medians((sums / calls).reshape(size, len(runs)))


def _with_shares(table: Columns) -> Columns:
    """Return `table` with all other columns; `share` and `moved` are missing where they say nothing: see `Diff`."""
    before, after, metrics = table[BASELINE_MEAN], table[CANDIDATE_MEAN], table[METRIC].tolist()
    change = table[CANDIDATE_AVERAGE_NS] - table[BASELINE_AVERAGE_NS]
    units = [_unit_ns_of(name) or np.nan for name in metrics]
    share = (after - before) * np.array(units) / np.where(change != 0, change, np.nan)
    is_news = ~np.isnan(share) & (np.abs(change) >= _CHANGED * table[BASELINE_AVERAGE_NS])
    return table.having(
        kind=objects([kind_of(name) for name in metrics]), delta=after - before,
        diff=match.relative_change(before, after), share=share, moved=Column(share >= _MOVED, ~is_news),
    )  # fmt: skip


class _Moved(Struct, frozen=True):
    """A time that a profiler measured in a kernel whose time changed. `share`: of that change."""

    row: KernelMetricRow
    share: float
    unit_ns: int

    @property
    def before_ns(self) -> float:
        """Its mean on the side of the baseline."""
        return (self.row.baseline_mean or 0.0) * self.unit_ns

    @property
    def is_still_and_large(self) -> bool:
        """Whether a pipe works as long as before, a large part of the time of its kernel."""
        baseline_mean, average_ns = self.row.baseline_mean or 0.0, self.row.baseline_average_ns or 0.0
        return abs(self.row.delta or 0.0) <= _UNCHANGED * baseline_mean and self.before_ns >= _LARGE * average_ns

    @property
    def name(self) -> str:
        """What is called so, and what it does where it is a pipe."""
        name = self.row.metric.partition("(")[0]
        does = _PIPES.get(name.removesuffix("_time").rpartition("_")[2])
        return f"{name} ({does})" if does else name

    @property
    def times(self) -> tuple[str, str]:
        """Its means on both sides, in one unit."""
        after_ns = (self.row.candidate_mean or 0.0) * self.unit_ns
        unit = time_unit(self.before_ns, after_ns)
        return format_ns(self.before_ns, unit), format_ns(after_ns, unit)

    @property
    def span(self) -> str:
        """The same, once where they are equal."""
        before, after = self.times
        return before if before == after else f"{before} -> {after}"

    @property
    def words(self) -> str:
        """How it changed, and how much of the change of the kernel that is."""
        return f"{self.name} {self.span} ({self.share * 100:.0f} % of the change)"


def _sentence(rows: Sequence[KernelMetricRow]) -> str:
    """Return what moved with the time of one kernel, and the largest pipe that did not; "" where its time did not
    change.
    """
    known = []
    for row in rows:
        if row.moved is not None and row.share is not None:
            known.append(_Moved(row, row.share, _unit_ns_of(row.metric) or 1))
    known.sort(key=lambda one: (-one.share, one.row.metric))
    pipes, cores = ([one for one in known if one.row.kind == kind] for kind in (PIPE_TIME, CORE_TIME))
    moved = [one.words for one in pipes if one.row.moved][:_NAMED]
    if moved:
        # the pipe with most work among those that work as long as before
        still = [one for one in pipes if one.is_still_and_large]
        still.sort(key=lambda one: (-(one.row.baseline_mean or 0.0), one.row.metric))
        return "; ".join([*moved, *(f"{one.name} stayed at {one.times[0]}" for one in still[:1])])
    nothing = ["no pipe that was measured moved with it"] if pipes else []
    for core in cores[:1]:
        return "; ".join([core.words, *nothing]) if core.row.moved else f"not in the cores: {core.name} {core.span}"
    return "".join(nothing)


def _unit_ns_of(metric: str) -> int | None:
    """Return how many ns the unit of a metric has; None for one that is no time."""
    timed = _TIME.fullmatch(metric)
    return _UNIT_NS[timed.group("unit")] if timed else None


def _lacking(sides: Sequence[LoadedSide], stated: Sequence[Columns]) -> str:
    side = next(side for side, found in zip(sides, stated, strict=True) if not len(found))
    return f"Kernel metrics cannot be compared: the profiler of {side.side.label} measured none{_groups(sides)}."


def _differing(sides: Sequence[LoadedSide], stated: Sequence[Columns]) -> tuple[str, ...]:
    """Return a sentence where the two profilers measured other pipes."""
    names = [{*found[METRIC]} for found in stated]
    pipes = [{name for name in found if kind_of(name) == PIPE_TIME} for found in names]
    if names[0] == names[1] or pipes[0] & pipes[1] or not (pipes[0] or pipes[1]):
        return ()
    both = sorted(names[0] & names[1])
    listed = " against ".join(_listed(sorted(found - {*both})) for found in names)
    left = f"only {_listed(both)} can be compared" if both else "nothing of them can be compared"
    return (f"The two sides measured different kernel metrics{_groups(sides)}: {listed}; {left}.",)


def _groups(sides: Sequence[LoadedSide]) -> str:
    """Return the metric groups that the profilers were asked for, where they differ."""
    found = []
    for side in sides:
        settings = [queries.settings_of(text) for text in side.captures.listed(SETTINGS)]
        found.append(" | ".join(sorted({group for chosen in settings if (group := chosen.get("aic_metrics"))})) or "?")
    return f" (aic_metrics: {found[0]} against {found[1]})" if found[0] != found[1] else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more if names else "nothing else"
