"""Kernel time by kind of work, for the overall table: categories, kinds of cores, and fused kernels by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.columns import Columns, objects
from tracker.compare import reduction
from tracker.compare.fused import CATEGORY, KERNEL, fused_metrics, fused_sums
from tracker.compare.metric import Metric, Sum, Sums
from tracker.store import queries
from tracker.table import Numbered, is_among, number_distinct_rows

if TYPE_CHECKING:
    from tracker.columns import I64, Flags, Texts
    from tracker.compare.sides import Loaded

_TITLES: Final[Mapping[str, str]] = {
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
_BY_CORE: Final = frozenset(_TITLES) - {"vector", "vector_trans", "ai_cpu", "tensor_move"}
"""Categories whose kernels run on both kinds of cores; what is vector work by name needs no row that says so."""

_NPU_ONLY: Final = ("mc2", "vector_trans", "ai_cpu", "tensor_move")
"""Categories that are told apart on NPUs alone."""

_CUBE_WORK: Final = frozenset(_TITLES) - {"vector", "vector_trans", "ai_cpu", "tensor_move", "other", "mc2"}
"""Categories that products of matrices dominate."""

_VECTOR_WORK: Final = ("vector", "vector_trans")
_CUBE_CORES: Final = ("AI_CORE", "MIX_AIC")
_VECTOR_CORES: Final = ("AI_VECTOR_CORE", "MIX_AIV")
_CUBE_METRIC: Final = re.compile(r"mac(?:_\w+)?_(?:ratio|time\(us\))")
"""How long the cube of a core works in a kernel, as chips with one kind of core spell it."""


def category_sums(side: Loaded, *, by_rules: bool = False) -> Sums:
    """Kernel time and kernels per category and of all compute kernels (`operator_ns`); how many copies (`copy_ns`).

    A category without kernels is 0, but for those that are told apart on NPUs alone. Where `kinds_of_cores` tells cube
    and vector apart in all runs also `<category>:cube`, `<category>:vector`, `operator_cube_ns` and
    `operator_vector_ns`; per fused kernel what `fused_sums` says. `by_rules`: on a GPU the rules of categories split
    cube and vector work, for a comparison with an NPU that does.
    """
    kernels, compute = side.ask(queries.kernels), _compute_kernels(side)
    cores = kinds_by_rules(compute) if by_rules and not _on_npu(compute) else _cores_in_all_runs(side, compute)
    split = cores != ""
    copied = kernels.taken(is_among(kernels["category"], ("copy", "memset")))
    category = compute["category"]
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
    names = [name for name in _TITLES if npu or name not in _NPU_ONLY]
    names += [f"{name}:{core}" for name in _BY_CORE for core in ("cube", "vector") if split.any()]
    fused = fused_sums(side, compute) if CATEGORY in times else {}
    return {**dict.fromkeys(names, Sum(0.0, 0.0)), **times, **fused, **copies}


def _sums_by_name(side: Loaded, kernels: Columns, names: Texts) -> dict[str, Sum]:
    """The sums of kernels by the names of the rows of the overall table in which they count."""
    number, first = number_distinct_rows([names])
    numbers = reduction.of_side(side, Numbered(kernels, number, len(first)), ["total_ns", "calls"])
    rows = Columns({"name": names[first], **numbers}).rows("name", *numbers)
    return {name: Sum(ns, calls) for name, ns, calls in rows}


def _compute_kernels(side: Loaded) -> Columns:
    def compute() -> Columns:
        kernels = side.ask(queries.kernels)
        return kernels.taken(is_among(kernels["category"], _TITLES))

    return side.once("compute kernels", compute)


def is_split(side: Loaded) -> bool | None:
    """Whether the kernel time of `side` is told apart into cube and vector; None where it has none on an NPU."""
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

    own = {name: category_of_kernel(name) for name in dict.fromkeys(kernels.listed("name"))}
    found = [
        "vector" if category in _VECTOR_WORK or (category in _CUBE_WORK and own[name] in _VECTOR_WORK)
        else "cube" if category in _CUBE_WORK else ""
        for name, category in kernels.rows("name", "category")
    ]  # fmt: skip
    return objects(found)


def _on_npu(compute: Columns) -> bool:
    return bool((compute["core_type"] != "").any() or is_among(compute["category"], _NPU_ONLY).any())


def _cores_in_all_runs(side: Loaded, compute: Columns) -> Texts:
    """`kinds_of_cores`, nothing where it says nothing of a run: a median over runs needs all of them."""
    nothing = objects([""] * len(compute))
    if not is_among(compute["core_type"], (*_CUBE_CORES, *_VECTOR_CORES)).any():
        return nothing
    cores = kinds_of_cores(compute, _cube_metrics(side))
    runs = compute.integers("run_id")
    return nothing if {*runs.tolist()} - {*runs[cores != ""].tolist()} else cores


def _cube_metrics(side: Loaded) -> dict[tuple[Any, ...], float]:
    """Of each KERNEL whose cube was measured the longest time or largest share that it worked."""
    found: dict[tuple[Any, ...], float] = {}
    for metric, largest, *kernel in side.kernel_metrics().rows("metric", "max", *KERNEL):
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
    core = kernels["core_type"]
    on_vector, on_cube = is_among(core, _VECTOR_CORES), is_among(core, _CUBE_CORES)
    work = np.where(is_among(kernels["category"], _VECTOR_WORK), np.nan_to_num(kernels.reals("total_ns")), 0.0)
    run, first = number_distinct_rows([kernels["run_id"]])
    of_vector, of_cube = (np.bincount(run, work * chosen, len(first)) for chosen in (on_vector, on_cube))
    told = (_any(run, on_vector | (core == "MIX_AIC"), first) & (of_vector >= of_cube))[run]
    kinds = objects([""] * len(kernels))
    kinds[told & on_cube], kinds[told & on_vector] = "cube", "vector"
    measured = np.array([cube_metrics.get(kernel, np.nan) for kernel in kernels.rows(*KERNEL)], dtype=np.float64)
    lacking = _any(run, on_cube & np.isnan(measured), first)
    by_metric = ~told & (~lacking & _any(run, on_cube, first))[run] & (on_cube | on_vector)
    kinds[by_metric] = "vector"
    kinds[by_metric & on_cube & (measured > 0)] = "cube"
    return kinds


def _any(run: I64, flags: Flags, first: I64) -> Flags:
    """Of each run whether any of its rows is one of these."""
    return np.bincount(run, flags, len(first)) > 0


def category_metrics(sides: Sequence[Sums]) -> list[Metric]:
    """The rows of the categories that either side has, in reading order."""
    found = {key for side in sides for key, summed in side.items() if summed.ns or summed.calls}
    rows = []
    for name, title in _TITLES.items():
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
