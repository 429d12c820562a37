"""Rows of the overall table that sum up other tables: kernel time by kind of work, groups, fused kernels, peaks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import match
from tracker.compare.collectives import (
    BY_TASKS,
    Names,
    name_task_waits,
    one_split,
    split_of_groups,
    split_otherwise,
    with_roles,
)
from tracker.compare.side import rows_of_captures
from tracker.profile.words import COPIES, FRAMEWORK_ALLOCATORS
from tracker.schema.column_names import (
    CALLS,
    CANONICAL_NAME,
    COMMUNICATION_NS,
    COMPONENT,
    CORE_TYPE,
    EXPOSED_COMMUNICATION_NS,
    EXPOSED_NS,
    EXPOSED_TRANSMIT_NS,
    EXPOSED_WAIT_NS,
    GROUP,
    GROUP_ROLE,
    GROUP_SIZE,
    IDLE_NS,
    INPUT_SHAPES,
    MAX,
    MEAN,
    METRIC,
    NAME,
    RANK,
    RUN_ID,
    SPLIT_BY,
    STEP,
    STEPS,
    TOTAL_NS,
    TRANSIT_NS,
    TYPE,
)
from tracker.schema.column_names import CATEGORY as CATEGORY_COLUMN
from tracker.schema.levels import PROFILER_ALONE
from tracker.store import queries
from tracker.store.samples.statistics import over_runs
from tracker.table import Numbered, is_among, number_distinct_rows, number_tables
from tracker.units import NS_PER_US

if TYPE_CHECKING:
    from tracker.columns import F64, I64, Flags, Texts
    from tracker.compare.side import LoadedSide


_PEAK_TITLES: Final = {"peak_allocated_bytes": "Peak memory allocated", "peak_reserved_bytes": "Peak memory reserved"}
_WORDS: Final = {"APP": "APP: the whole process", "GE": "GE: the graph engine"}

CATEGORY: Final = "mc2"
_PREFIX: Final = f"{CATEGORY}:"
_COMPUTING: Final = ":computing"
_REST: Final = ":communication"
_CORES: Final = (f"{CATEGORY}:cube", f"{CATEGORY}:vector")
KERNEL: Final = [RUN_ID, NAME, CANONICAL_NAME, TYPE, CORE_TYPE, INPUT_SHAPES]
"""What tells of which kernel of a run a metric is."""
CORE_TIMES: Final = ("operator_cube_ns", "operator_vector_ns")
"""Sums of the kernels on the cores of each kind."""
_CUBE, _LOADING, _VECTOR = "cube", "loading", "vector"
_PIPES: Final = {
    "aic_mac_time(us)": _CUBE, "mac_time(us)": _CUBE,
    "aic_mte2_time(us)": _LOADING, "mte2_time(us)": _LOADING,
    "aiv_vec_time(us)": _VECTOR, "vec_time(us)": _VECTOR,
}  # fmt: skip
"""Metric -> the pipe of a core whose time it is."""

_CATEGORY_TITLES: Final[Mapping[str, str]] = {
    "mc2": "MC2 (compute and communication in one)",
    "flash_attention_forward": "Flash attention (forward)",
    "flash_attention_backward": "Flash attention (backward)",
    "convolution_forward": "Convolution (forward)",
    "convolution_backward": "Convolution (backward)",
    "matmul": "Matmul",
    "page_attention": "Page attention",
    "vector": "Vector",
    "vector_trans": "Vector (trans)",
    "ai_cpu": "AI CPU",
    "tensor_move": "SDMA (tensor move)",
    "other": "Other (not named)",
}
_BY_CORE: Final = frozenset(_CATEGORY_TITLES) - {"vector", "vector_trans", "ai_cpu", "tensor_move"}
"""Categories whose kernels run on both kinds of cores; what is vector work by name needs no row that says so."""

_NPU_ONLY: Final = ("mc2", "vector_trans", "ai_cpu", "tensor_move")
"""Categories that are told apart on NPUs alone."""

_CUBE_WORK: Final = frozenset(_CATEGORY_TITLES) - {"vector", "vector_trans", "ai_cpu", "tensor_move", "other", "mc2"}
"""Categories that products of matrices dominate."""

_VECTOR_WORK: Final = ("vector", "vector_trans")
_CUBE_CORES: Final = ("AI_CORE", "MIX_AIC")
_VECTOR_CORES: Final = ("AI_VECTOR_CORE", "MIX_AIV")
_CUBE_METRIC: Final = re.compile(r"mac(?:_\w+)?_(?:ratio|time\(us\))")
"""How long the cube of a core works in a kernel, as chips with one kind of core spell it."""

EXPOSED: Final = EXPOSED_COMMUNICATION_NS
AT_ONCE: Final = "groups_at_once_ns"
_WAIT: Final = EXPOSED_WAIT_NS
_IN_PROPORTION: Final = "exposed_wait_in_proportion"
_STATED_IN_PART: Final = "exposed_stated_in_part"
_TRANSMIT: Final = EXPOSED_TRANSMIT_NS
_TOTAL: Final = "group_total_ns"
_SYNCHRONIZATION: Final = "group_synchronization_ns"
_TRANSIT: Final = "group_transit_ns"
_IDLE: Final = "group_idle_ns"
_STATED: Final = {
    _WAIT: EXPOSED_WAIT_NS,
    _TOTAL: TOTAL_NS,
    _SYNCHRONIZATION: "synchronization_ns",
    _TRANSIT: TRANSIT_NS,
    _IDLE: IDLE_NS,
}
"""Key of the overall table -> column of the collectives that it sums, where that is known of all of them."""
_WHOLE: Final = {
    _WAIT: EXPOSED_NS, _SYNCHRONIZATION: _TOTAL, _TRANSIT: _TOTAL, _IDLE: _TOTAL,
}  # fmt: skip
"""Part of the time of a group -> the time that it is a part of."""

_STEP: Final = (RUN_ID, RANK, STEP)
_PARTS: Final = (_WAIT, _TRANSMIT, _SYNCHRONIZATION, _TRANSIT, _IDLE)
"""Those that depend on where wait and transit come from."""


class Metric(Struct, frozen=True):
    """A row of the overall table; `name` is a column of the step rows, or a key of a mapping of `Sum`."""

    name: str
    title: str
    level: int = 0
    unit: str = "ns"
    in_step: bool = False


class Sum(Struct, frozen=True):
    """Time and number of what a row counts, per step; None: not known, or of no meaning."""

    ns: float | None
    calls: float | None = None


Sums = Mapping[str, Sum]


class ExposedWait(Struct, frozen=True):
    """Exposed time of all collectives of a step, and the waiting in it, ns. `is_in_proportion`: compute hides a part of
    some calls, of which the rest is taken to wait as much as all of it.
    """

    exposed_ns: float
    wait_ns: float
    is_in_proportion: bool = False


def component_peaks(side: LoadedSide) -> dict[str, float]:
    """Return `peak_allocated_bytes:<component>` and `peak_reserved_bytes:<component>` of a capture that names the
    components of an NPU's memory: the largest of a run.

    Nothing of chosen steps: the components were sampled over time.
    """
    if side.chosen_steps is not None or not side.may_have_rows(queries.memory_peaks):
        return {}
    table = rows_of_captures(side.query_with(queries.memory_peaks), side.captures)
    if not {*FRAMEWORK_ALLOCATORS} & {*table.listed(COMPONENT)}:
        return {}
    found: dict[str, float] = {}
    for name in _PEAK_TITLES:
        largest: dict[tuple[str, int], float] = {}
        for run_id, component, value in table.rows(RUN_ID, COMPONENT, name.removeprefix("peak_")):
            if value is not None:
                largest[component, run_id] = max(largest.get((component, run_id), 0.0), float(value))
        for component in sorted({component for component, _ in largest}):
            of_runs = [value for (own, _), value in largest.items() if own == component]
            found[f"{name}:{component}"] = float(over_runs(np.array([of_runs]))[0])
    return found


def peak_metrics(found: Iterable[str]) -> list[Metric]:
    """Return the rows of the peaks, given the keys `found` of `component_peaks` of all sides.

    The peak of a rank is that of its framework's allocator, which the title names where components are told apart.
    """
    keys = set(found)
    rows = []
    for name, title in _PEAK_TITLES.items():
        components = sorted(key.partition(":")[2] for key in keys if key.startswith(f"{name}:"))
        framework = " or ".join(word for word in FRAMEWORK_ALLOCATORS if word in components)
        whose = f" ({framework} alone)" if framework else ""
        rows.append(Metric(name, f"{title}{whose}", unit="bytes"))
        for component in components:
            if component not in FRAMEWORK_ALLOCATORS:
                rows.append(Metric(f"{name}:{component}", _WORDS.get(component, component), 1, unit="bytes"))
    return rows


def fused_sums(side: LoadedSide, compute: Columns) -> Sums:
    """Per fused kernel of `compute` its time and calls, `mc2:<name>`; of that computing, `mc2:<name>:computing`, and
    the rest, `mc2:<name>:communication`, where the pipes of all its calls were measured.

    Computing is what msprof-analyze takes for it: the longer of cube and loading, which work side by side, and then the
    vector unit. The rest is communication that no computing hides, and waiting for it.
    """
    fused = compute.taken(compute[CATEGORY_COLUMN] == CATEGORY)
    ns = fused.reals(TOTAL_NS)
    computing = np.minimum(_computing_ns(side, fused) * fused.reals(CALLS), ns)
    table = fused.having(ns=ns, computing=computing, rest=ns - computing)
    parts = ["computing", "rest"]
    found: dict[str, Sum] = {}
    number, first = number_distinct_rows([fused[CANONICAL_NAME]])
    numbers = match.reduce_side(
        side, Numbered(table, number, len(first)), ["ns", "calls", *parts], parts, dict.fromkeys(parts, "ns")
    )
    names = fused[CANONICAL_NAME][first]
    for name, *row in Columns({"name": names, **numbers}).rows(NAME, *numbers):
        ns, calls, computing_ns, rest_ns = row
        key = f"{_PREFIX}{name}"
        found[key] = Sum(ns, calls)
        found[f"{key}{_COMPUTING}"], found[f"{key}{_REST}"] = Sum(computing_ns), Sum(rest_ns)
    return found


def _computing_ns(side: LoadedSide, fused: Columns) -> F64:
    """Per row of `fused` the computing time of a call in ns, nan where a pipe was not measured."""
    measured: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for metric, mean, *kernel in side.query_kernel_metrics().rows(METRIC, MEAN, *KERNEL):
        if metric in _PIPES and mean is not None:
            measured.setdefault(tuple(kernel), {}).setdefault(_PIPES[metric], []).append(mean)
    computing = {}
    for key, times_of_pipe in measured.items():
        if times_of_pipe.keys() == {_CUBE, _LOADING, _VECTOR}:
            cube, loading, vector = (fmean(times_of_pipe[pipe]) for pipe in (_CUBE, _LOADING, _VECTOR))
            computing[key] = max(cube, loading) + vector
    return np.array([computing.get(kernel, np.nan) for kernel in fused.rows(*KERNEL)], dtype=np.float64) * NS_PER_US


def fused_metrics(found: Iterable[str]) -> list[Metric]:
    """Return the rows of the fused kernels among the keys `found`, by name."""
    rows = []
    keys = {key for key in found if key.startswith(_PREFIX) and key not in _CORES}
    for key in sorted(key for key in keys if not key.endswith((_COMPUTING, _REST))):
        rows.append(Metric(key, key.removeprefix(_PREFIX), 3, in_step=True))
        rows.append(Metric(f"{key}{_COMPUTING}", "Computing", 4, in_step=True))
        rows.append(Metric(f"{key}{_REST}", "Communication (all but computing)", 4, in_step=True))
    return rows


def category_sums(side: LoadedSide, *, by_rules: bool = False) -> Sums:
    """Kernel time and kernels per category and of all compute kernels (`operator_ns`); how many copies (`copy_ns`).

    A category without kernels is 0, but for those that are told apart on NPUs alone. Where `kinds_of_cores` tells cube
    and vector apart in all runs also `<category>:cube`, `<category>:vector`, `operator_cube_ns` and
    `operator_vector_ns`; per fused kernel what `fused_sums` says. `by_rules`: on a GPU the rules of categories split
    cube and vector work, for a comparison with an NPU that does.
    """
    kernels, compute = side.query(queries.kernels), _compute_kernels(side)
    cores = kinds_by_rules(compute) if by_rules and not _on_npu(compute) else _cores_in_all_runs(side, compute)
    split = cores != ""
    copied = kernels.taken(is_among(kernels[CATEGORY_COLUMN], COPIES))
    category = compute[CATEGORY_COLUMN]
    counted = [
        (compute, category),
        (compute, objects(["operator_ns"] * len(compute))),
        (copied, objects(["copy_ns"] * len(copied))),
    ]
    if split.any():
        of_core, core = compute.taken(split), cores[split]
        counted += [(of_core, category[split] + ":" + core), (of_core, "operator_" + core + "_ns")]
    times = {name: own for rows, names in counted for name, own in _sums_by_name(side, rows, names).items()}
    # the time of copies is a union over each step, which the breakdown has
    copies = {"copy_ns": Sum(None, times.pop("copy_ns").calls)} if "copy_ns" in times else {}
    if not len(compute):
        return copies
    npu = _on_npu(compute)
    names = [name for name in _CATEGORY_TITLES if npu or name not in _NPU_ONLY]
    names += [f"{name}:{core}" for name in _BY_CORE for core in ("cube", "vector") if split.any()]
    fused = fused_sums(side, compute) if CATEGORY in times else {}
    return {**dict.fromkeys(names, Sum(0.0, 0.0)), **times, **fused, **copies}


def core_times(side: LoadedSide) -> dict[str, float]:
    """Return the time of cube and of vector work per step, ns; empty where the profiler does not tell them apart."""
    sums = category_sums(side)
    return {name: sums[name].ns or 0.0 for name in CORE_TIMES if name in sums}


def _sums_by_name(side: LoadedSide, kernels: Columns, names: Texts) -> dict[str, Sum]:
    """Return the sums of kernels by the names of the rows of the overall table in which they count."""
    number, first = number_distinct_rows([names])
    numbers = match.reduce_side(side, Numbered(kernels, number, len(first)), [TOTAL_NS, CALLS])
    rows = Columns({"name": names[first], **numbers}).rows(NAME, *numbers)
    return {name: Sum(ns, calls) for name, ns, calls in rows}


def _compute_kernels(side: LoadedSide) -> Columns:
    def compute() -> Columns:
        kernels = side.query(queries.kernels)
        return kernels.taken(is_among(kernels[CATEGORY_COLUMN], _CATEGORY_TITLES))

    return side.remember("compute kernels", compute)


def is_split(side: LoadedSide) -> bool | None:
    """Return whether the kernel time of `side` is told apart into cube and vector; None where it has none on an NPU."""
    compute = _compute_kernels(side)
    if not _on_npu(compute):
        return None
    return bool((_cores_in_all_runs(side, compute) != "").any())


def kinds_by_rules(kernels: Columns) -> Texts:
    """Per row of a GPU's kernels what an NPU would do it on: `cube` for products of matrices, convolutions and
    attention, `vector` for vector work; "" where the rules of categories do not say.

    A kernel whose own name is that of vector work is such, also where a matrix product launches it.
    """
    from tracker.timeline.categories import category_of_kernel  # only a diff of two vendors needs it

    own = {name: category_of_kernel(name) for name in dict.fromkeys(kernels.listed(NAME))}
    found = [
        "vector" if category in _VECTOR_WORK or (category in _CUBE_WORK and own[name] in _VECTOR_WORK)
        else "cube" if category in _CUBE_WORK else ""
        for name, category in kernels.rows(NAME, CATEGORY_COLUMN)
    ]  # fmt: skip
    return objects(found)


def _on_npu(compute: Columns) -> bool:
    return bool((compute[CORE_TYPE] != "").any() or is_among(compute[CATEGORY_COLUMN], _NPU_ONLY).any())


def _cores_in_all_runs(side: LoadedSide, compute: Columns) -> Texts:
    """Return `kinds_of_cores`, nothing where it says nothing of a run: a median over runs needs all of them."""
    nothing = objects([""] * len(compute))
    if not is_among(compute[CORE_TYPE], (*_CUBE_CORES, *_VECTOR_CORES)).any():
        return nothing
    cores = kinds_of_cores(compute, _cube_metrics(side))
    runs = compute.integers(RUN_ID)
    return nothing if {*runs.tolist()} - {*runs[cores != ""].tolist()} else cores


def _cube_metrics(side: LoadedSide) -> dict[tuple[Any, ...], float]:
    """Of each KERNEL whose cube was measured the longest time or largest share that it worked."""
    found: dict[tuple[Any, ...], float] = {}
    for metric, largest, *kernel in side.query_kernel_metrics().rows(METRIC, MAX, *KERNEL):
        if _CUBE_METRIC.fullmatch(metric) and largest is not None:
            found[tuple(kernel)] = max(found.get(tuple(kernel), largest), largest)
    return found


def kinds_of_cores(kernels: Columns, cube_metrics: Mapping[tuple[Any, ...], float]) -> Texts:
    """Per row of kernels where its work is done, `cube` or `vector`; "" where the profiler does not say.

    Chips with two kinds of cores (910B) run vector work on vector cores, those with one (910A, and 310P, whose vector
    cores only help out) call every core AI_CORE: where most vector work of a run is on AI_CORE, such a core does both.
    There `cube_metrics` decides, if it knows all kernels of the run on these cores: one that uses the cube is cube
    work, any other vector work.
    """
    core = kernels[CORE_TYPE]
    on_vector, on_cube = is_among(core, _VECTOR_CORES), is_among(core, _CUBE_CORES)
    work = np.where(is_among(kernels[CATEGORY_COLUMN], _VECTOR_WORK), np.nan_to_num(kernels.reals(TOTAL_NS)), 0.0)
    run, first = number_distinct_rows([kernels[RUN_ID]])
    of_vector, of_cube = (np.bincount(run, work * chosen, len(first)) for chosen in (on_vector, on_cube))
    has_two_kinds = (_any(run, on_vector | (core == "MIX_AIC"), first) & (of_vector >= of_cube))[run]
    kinds = objects([""] * len(kernels))
    kinds[has_two_kinds & on_cube], kinds[has_two_kinds & on_vector] = "cube", "vector"
    measured = np.array([cube_metrics.get(kernel, np.nan) for kernel in kernels.rows(*KERNEL)], dtype=np.float64)
    lacking = _any(run, on_cube & np.isnan(measured), first)
    by_metric = ~has_two_kinds & (~lacking & _any(run, on_cube, first))[run] & (on_cube | on_vector)
    kinds[by_metric] = "vector"
    kinds[by_metric & on_cube & (measured > 0)] = "cube"
    return kinds


def _any(run: I64, flags: Flags, first: I64) -> Flags:
    """Return of each run whether any of its rows is one of these."""
    return np.bincount(run, flags, len(first)) > 0


def category_metrics(sides: Sequence[Sums]) -> list[Metric]:
    """Return the rows of the categories that either side has, in reading order."""
    found = {key for side in sides for key, summed in side.items() if summed.ns or summed.calls}
    rows = []
    for name, title in _CATEGORY_TITLES.items():
        if name not in found:
            continue
        rows.append(Metric(name, title, 2, in_step=True))
        rows += [
            Metric(f"{name}:{core}", f"{title} ({core})", 3, in_step=True)
            for core in ("cube", "vector")
            if name in _BY_CORE and f"{name}:{core}" in found
        ]
        if name == CATEGORY:
            rows += fused_metrics(found)
    return rows


class _GroupNumbers(Struct, frozen=True):
    """Collectives of a process group, per step: what of them is exposed and how many they are; of the exposed time the
    waiting and the rest; and of all of their time what the profiler states.
    """

    group: str
    exposed_ns: float | None
    calls: float | None
    exposed_wait_ns: float | None
    exposed_transmit_ns: float | None
    group_total_ns: float | None
    group_synchronization_ns: float | None
    group_transit_ns: float | None
    group_idle_ns: float | None


def group_sums(side: LoadedSide, exposed_ns: float | None, roles: Names) -> Sums | None:
    """Return `exposed_communication_ns:<group>` with the collectives of each group; how many there are
    (`communication_ns`). `roles`: what groups without a role are taken for.

    Of the exposed time the waiting (`exposed_wait_ns:<group>`, see `_exposed_wait`) and all but waiting
    (`exposed_transmit_ns:<group>`), where the waiting of all collectives of the group is known in all runs, on the
    ranks that state exposed time. Of the collectives as a whole, hidden by compute or not, what the profiler states of
    all of them: `group_synchronization_ns:<group>` (a part of the waiting), `group_transit_ns:<group>`,
    `group_idle_ns:<group>`, beside `group_total_ns:<group>`.

    All is of the steps that state their exposed time, and in none of them more than that.

    Time in which collectives of several groups are exposed at once counts in each of them.
    `groups_at_once_ns`, the rest, takes that back: it is what the groups lack to sum to `exposed_ns`, the exposed
    communication of the side, and what their medians leave over. Collectives that do not state their exposed time,
    as those of a rank whose steps alone are known, are in it too. It is left out where no collective states it, and
    where the exposed time is not computed from the same events (host timeline). None where no rank knows its exposed
    time.
    """
    if not side.steps.known(EXPOSED).any():
        return None
    if side.is_empty(queries.communication):
        return {}
    side, table = _within_steps(side, one_split(_grouped(side, roles), ["group"]))
    found: dict[str, Sum] = {}
    wait, in_part = _exposed_wait(table)
    stated = table.having(**{name: table[column] for name, column in _STATED.items()} | {_WAIT: wait})
    (own,), keys = number_tables([stated], ["group"])
    numbers = match.reduce_side(side, own, [EXPOSED_NS, CALLS, *_STATED], list(_STATED), _WHOLE)
    exposed = Numbered(stated.taken(table.known(EXPOSED_NS)), own.number[table.known(EXPOSED_NS)], own.count)
    numbers |= match.reduce_side(side, exposed, [EXPOSED_NS, _WAIT], [_WAIT], {_WAIT: EXPOSED_NS})
    numbers[_TRANSMIT] = numbers[EXPOSED_NS] - numbers[_WAIT]
    for row in keys.having(**numbers).structs(_GroupNumbers):
        found[f"{EXPOSED}:{row.group}"] = Sum(row.exposed_ns, row.calls)
        found[f"{_WAIT}:{row.group}"] = Sum(row.exposed_wait_ns)
        found[f"{_TOTAL}:{row.group}"] = Sum(row.group_total_ns)
        found[f"{_SYNCHRONIZATION}:{row.group}"] = Sum(row.group_synchronization_ns)
        found[f"{_TRANSIT}:{row.group}"] = Sum(row.group_transit_ns)
        found[f"{_IDLE}:{row.group}"] = Sum(row.group_idle_ns)
        found[f"{_TRANSMIT}:{row.group}"] = Sum(row.exposed_transmit_ns)
    for group in dict.fromkeys(table[GROUP][in_part].tolist()):
        found[f"{_IN_PROPORTION}:{group}"] = Sum(1.0)
    of_groups = [summed.ns or 0.0 for key, summed in found.items() if key.startswith(f"{EXPOSED}:")]
    every = Numbered(table, np.zeros(len(table), dtype=np.int64), 1)
    (calls,) = match.reduce_side(side, every, ["calls"])[CALLS].tolist()
    found[COMMUNICATION_NS] = Sum(None, calls)
    is_unknown = ~table.known(EXPOSED_NS)
    # where no collective states it there is nothing to be the rest of
    is_stated = not len(table) or not is_unknown.all()
    if side.side.timeline == "device" and exposed_ns is not None and is_stated:
        found[AT_ONCE] = Sum(exposed_ns - sum(of_groups))
        if is_unknown.any():
            found[_STATED_IN_PART] = Sum(1.0)
    return found


def sum_exposed_wait(side: LoadedSide, roles: Names) -> ExposedWait | None:
    """Return the waiting in the exposed communication of a step, of all groups together, by the statistic of every
    number; None where that of a collective is not known. `roles`: as in `group_sums`.

    Collectives that are exposed at the same time share that time.
    """
    if not side.steps.known(EXPOSED).any():
        return None
    if side.is_empty(queries.communication):
        return ExposedWait(0.0, 0.0)
    side, table = _within_steps(side, one_split(_grouped(side, roles), ["group"]), sharing=())
    if not table.known(EXPOSED_NS).all():
        return None
    wait, in_part = _exposed_wait(table)
    every = Numbered(table.having(exposed_wait_ns=wait), np.zeros(len(table), dtype=np.int64), 1)
    names = (EXPOSED_NS, EXPOSED_WAIT_NS)
    numbers = match.reduce_side(side, every, names, names[1:], {EXPOSED_WAIT_NS: EXPOSED_NS})
    exposed_ns, wait_ns = (float(numbers[name][0]) for name in names)
    return None if np.isnan(wait_ns) else ExposedWait(exposed_ns, wait_ns, bool(in_part.any()))


def sum_waits_of_steps(side: LoadedSide) -> dict[tuple[int, int, int], tuple[float, float]]:
    """Return the exposed time of the collectives of a run, rank and step, and the waiting in it, ns of one step; nan
    where that of a collective is not known. Collectives that are exposed at the same time share that time.
    """
    if not side.steps.known(EXPOSED).any() or side.is_empty(queries.communication):
        return {}
    weights = {(run_id, rank, step): steps for run_id, rank, step, steps in side.steps.rows(*_STEP, STEPS)}
    side, table = _within_steps(side, one_split(_grouped(side, {}), ["group"]), sharing=())
    wait, _ = _exposed_wait(table)
    table = table.having(exposed_wait_ns=wait)
    sums: dict[tuple[int, int, int], tuple[float, float]] = {}
    for run_id, rank, step, exposed_ns, wait_ns in table.rows(*_STEP, EXPOSED_NS, EXPOSED_WAIT_NS):
        before = sums.get((run_id, rank, step), (0.0, 0.0))
        count = weights[run_id, rank, step]
        of_row = [np.nan if ns is None else ns / count for ns in (exposed_ns, wait_ns)]
        sums[run_id, rank, step] = (before[0] + of_row[0], before[1] + of_row[1])
    return sums


def _exposed_wait(table: Columns) -> tuple[F64, Flags]:
    """Return the waiting that no compute hides, and which rows estimate it.

    No source says whether compute hides waiting or transfer: where it hides a part of a collective, the exposed part is
    taken to wait as much as all of it.
    """
    exposed, wait, total = (table.reals(name) for name in ("exposed_ns", "wait_ns", "total_ns"))
    lacking = ~table.known(EXPOSED_WAIT_NS) & ~np.isnan(exposed + wait) & (total > 0)
    found = np.where(lacking, wait * exposed / np.where(total > 0, total, 1.0), table.reals(EXPOSED_WAIT_NS))
    return found, lacking & (wait > 0) & (wait < total) & (exposed > 0) & (exposed < total)


def _within_steps(side: LoadedSide, table: Columns, sharing: Sequence[str] = ("group",)) -> tuple[LoadedSide, Columns]:
    """Return the side with the steps that state their exposed time, and their collectives.

    Where those of one `sharing` run at the same time, their exposed time adds up to more than that of the step: they
    share it then.
    """
    stated = side.steps.taken(side.steps.known(EXPOSED))
    key = (RUN_ID, RANK, STEP)
    (rows, steps), _ = number_tables([table, stated], key)
    whole = np.full(rows.count, np.nan)
    whole[steps.number] = stated.reals(EXPOSED) * stated.reals(STEPS)
    inside = ~np.isnan(whole[rows.number])
    table, limit = table.taken(inside), whole[rows.number[inside]]
    cell, first = number_distinct_rows([table[name] for name in (*key, *sharing)])
    sums = np.bincount(cell, np.nan_to_num(table.reals(EXPOSED_NS)), len(first))[cell]
    part = np.where(sums > limit, limit / np.where(sums > 0, sums, 1.0), 1.0)
    exposed = {name: table.reals(name) * part for name in (EXPOSED_NS, EXPOSED_WAIT_NS)}
    return replace(side, steps=stated, cache={}), table.having(**exposed)


def group_splits(side: LoadedSide, roles: Names) -> dict[str, str]:
    """Return where wait and transit of each process group come from: see `split_of_groups`."""
    return {} if side.is_empty(queries.communication) else split_of_groups(_grouped(side, roles))


def without_other_splits(sides: Sequence[Sums], splits: Sequence[Mapping[str, str]]) -> list[Sums]:
    """Return the sides without the parts of groups whose wait and transit come from the ranks on one side alone."""
    dropped = {f"{part}:{group}" for group in split_otherwise(*splits) for part in _PARTS}
    return [{key: found for key, found in side.items() if key not in dropped} for side in sides]


def _grouped(side: LoadedSide, roles: Names) -> Columns:
    """Return the collectives of a side with the name of their `group`; what the profiler states of waiting that the
    tasks tell is left out, as it is no part of it.
    """
    table = with_roles(name_task_waits(side, side.query(queries.communication)), roles)
    is_by_tasks = table[SPLIT_BY] == BY_TASKS
    stated = {name: np.where(is_by_tasks, np.nan, table.reals(name)) for name in PROFILER_ALONE}
    table = table.having(**stated)
    names = [group_name(role, size) for role, size in table.rows(GROUP_ROLE, GROUP_SIZE)]
    return table.having(group=objects(names))


def group_name(role: str, size: int | None) -> str:
    """Return a process group by what it is for and its size, which mean the same in every run.

    >>> group_name("dp", 8), group_name("", 4), group_name("", None)
    ('dp x8', 'group x4', 'group not named')
    """
    count = "" if size is None or size < 0 else f"x{size}"
    return " ".join(filter(None, (role or ("group" if count else "group not named"), count)))


def with_absent(sides: Sequence[Sums | None]) -> list[Sums]:
    """Return the sides with 0 for each group that only another side has: its collectives did not run there.

    A side that does not know its exposed time (None) has none.
    """
    absent: dict[str, Sum] = {}
    for side in sides:
        for key, total in (side or {}).items():
            # sums of a group have its name behind a colon
            if ":" in key:
                absent[key] = Sum(0.0, None if total.calls is None else 0.0)
    filled: list[Sums] = []
    for side in sides:
        filled.append({} if side is None else {**absent, **side})
    return filled


def _parts(sides: Sequence[Sums], group: str) -> list[Metric]:
    """Return the rows below one group.

    The profiler states transit, idle time and synchronization of whole collectives: where compute hides some of them,
    how much of that is exposed is not told.
    """

    def ns(side: Sums, name: str) -> float | None:
        return side[f"{name}:{group}"].ns if f"{name}:{group}" in side else None

    stated = any(ns(side, _TRANSIT) is not None for side in sides if ns(side, _TOTAL))
    hidden = any((ns(side, _TOTAL) or 0.0) > (ns(side, EXPOSED) or 0.0) for side in sides)
    of_all = ", hidden or not" if hidden else ""
    in_part = " (of calls hidden in part: in proportion)" if any(ns(side, _IN_PROPORTION) for side in sides) else ""
    return [
        Metric(f"{_WAIT}:{group}", f"Wait{in_part}", 3, in_step=True),
        Metric(f"{_SYNCHRONIZATION}:{group}", f"Synchronization{of_all}", 4, in_step=not hidden),
        Metric(f"{_TRANSMIT}:{group}", "All but wait" if stated else "Transmit (all but wait)", 3, in_step=True),
        Metric(f"{_TRANSIT}:{group}", f"Transit{of_all}", 4, in_step=not hidden),
        Metric(f"{_IDLE}:{group}", f"Idle{of_all}", 4, in_step=not hidden),
    ]


def group_metrics(sides: Sequence[Sums]) -> list[Metric]:
    """Return the rows of the groups that either side has, the largest first."""
    size: dict[str, float] = {}
    for side in sides:
        for key, found in side.items():
            if key.startswith(f"{EXPOSED}:"):
                group = key.removeprefix(f"{EXPOSED}:")
                size[group] = max(size.get(group, 0.0), found.ns or 0.0)
    rows = []
    for group in sorted(size, key=lambda group: (-size[group], group)):
        rows.append(Metric(f"{EXPOSED}:{group}", group, 2, in_step=True))
        rows += _parts(sides, group)
    if any(side[AT_ONCE].ns for side in sides if AT_ONCE in side):
        why = "collectives at the same time count twice above"
        if any(_STATED_IN_PART in side for side in sides):
            why = "some collectives do not state their exposed time"
        rows.append(Metric(AT_ONCE, f"Rest ({why}; medians do not add up)", 2, in_step=True))
    return rows
