"""Kernel time by kind of work, for the overall table: categories, kinds of cores, and fused kernels by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.compare import knowing, means, sums
from tracker.compare.fused import CATEGORY, KERNEL, fused_metrics, fused_sums
from tracker.compare.keys import Numbered, places
from tracker.compare.sums import Metric, Sum, Sums
from tracker.lazy import pd
from tracker.store import queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

_VECTOR_WORK: Final = ("vector", "vector_trans")
_CUBE_CORES: Final = ("AI_CORE", "MIX_AIC")
_VECTOR_CORES: Final = ("AI_VECTOR_CORE", "MIX_AIV")
_CUBE_METRIC: Final = re.compile(r"mac(?:_\w+)?_(?:ratio|time\(us\))")
"""How long the cube of a core works in a kernel, as chips with one kind of core spell it."""


def category_sums(side: Loaded) -> Sums:
    """Kernel time and kernels per category and of all compute kernels (`operator_ns`); how many copies (`copy_ns`).

    A category without kernels is 0, but for those that are told apart on NPUs alone. Where `kinds_of_cores` tells cube
    and vector apart in all runs also `<category>:cube`, `<category>:vector`, `operator_cube_ns` and
    `operator_vector_ns`; per fused kernel what `fused_sums` says.
    """
    side = side.that_knows(knowing.TIMES)
    kernels, compute = side.ask(queries.kernels), _compute_kernels(side)
    cores = _cores_in_all_runs(side, compute).to_numpy()
    split = cores != ""
    copied = kernels[kernels["category"].isin(["copy", "memset"])]
    category = compute["category"].to_numpy(dtype=object)
    counted = [
        (compute, category),
        (compute, np.full(len(compute), "operator_ns", dtype=object)),
        (copied, np.full(len(copied), "copy_ns", dtype=object)),
    ]
    if split.any():
        of_core, core = compute[split], cores[split]
        counted += [(of_core, category[split] + ":" + core), (of_core, "operator_" + core + "_ns")]
    times = {name: own for rows, names in counted for name, own in _sums_by_name(side, rows, names).items()}
    # the time of copies is a union over each step, which the breakdown has
    copies = {"copy_ns": Sum(None, times.pop("copy_ns").calls)} if "copy_ns" in times else {}
    if compute.empty:
        return copies
    npu = _on_npu(compute)
    names = [name for name in _TITLES if npu or name not in _NPU_ONLY]
    names += [f"{name}:{core}" for name in _BY_CORE for core in ("cube", "vector") if split.any()]
    fused = fused_sums(side, compute) if CATEGORY in times else {}
    return {**dict.fromkeys(names, Sum(0.0, 0.0)), **times, **fused, **copies}


def _sums_by_name(side: Loaded, kernels: pd.DataFrame, names: NDArray[np.object_]) -> dict[str, Sum]:
    """The sums of kernels by the names of the rows of the overall table in which they count."""
    number, first = places([names])
    numbers = means.per_step(side, Numbered(kernels, number, len(first)), ["total_ns", "calls"])
    rows = zip(names[first], *numbers.values(), strict=True)
    return {name: Sum(sums.known(ns), sums.known(calls)) for name, ns, calls in rows}


def _compute_kernels(side: Loaded) -> pd.DataFrame:
    def compute() -> pd.DataFrame:
        frame = side.ask(queries.kernels)
        return frame[frame["category"].isin(list(_TITLES))]

    return side.once("compute kernels", compute)


def is_split(side: Loaded) -> bool | None:
    """Whether the kernel time of `side` is told apart into cube and vector; None where it has none on an NPU."""
    side = side.that_knows(knowing.TIMES)
    compute = _compute_kernels(side)
    if not _on_npu(compute):
        return None
    return bool((_cores_in_all_runs(side, compute) != "").any())


def _on_npu(compute: pd.DataFrame) -> bool:
    return bool((compute["core_type"] != "").any() or compute["category"].isin(_NPU_ONLY).any())


def _cores_in_all_runs(side: Loaded, compute: pd.DataFrame) -> pd.Series:
    """`kinds_of_cores`, nothing where it says nothing of a run: a median over runs needs all of them."""
    nothing = pd.Series("", index=compute.index, dtype=object)
    if not compute["core_type"].isin([*_CUBE_CORES, *_VECTOR_CORES]).any():
        return nothing
    cores = kinds_of_cores(compute, _cube_metrics(side))
    return nothing if set(compute["run_id"]) - set(compute["run_id"][cores != ""]) else cores


def _cube_metrics(side: Loaded) -> pd.Series:
    """Of each kernel whose cube was measured the longest time or largest share that it worked; index: KERNEL."""
    metrics = side.kernel_metrics()
    names = [name for name in metrics["metric"].unique() if _CUBE_METRIC.fullmatch(name)]
    return metrics[metrics["metric"].isin(names)].groupby(KERNEL)["max"].max()


def kinds_of_cores(kernels: pd.DataFrame, cube_metrics: pd.Series) -> pd.Series:
    """Per row of kernels where its work is done, `cube` or `vector`; "" where the profiler does not say.

    Chips with two kinds of cores (910B) run vector work on vector cores, those with one (910A, and 310P, whose vector
    cores only help out) call every core AI_CORE: where most vector work of a run is on AI_CORE, such a core does both.
    There `cube_metrics` decides, if it knows all kernels of the run on these cores: one that uses the cube is cube
    work, any other vector work.
    """
    core = kernels["core_type"]
    on_vector, on_cube = core.isin(_VECTOR_CORES), core.isin(_CUBE_CORES)
    work = kernels["total_ns"].where(kernels["category"].isin(_VECTOR_WORK)).fillna(0).astype("float64")
    runs = kernels["run_id"]
    two_kinds = (on_vector | (core == "MIX_AIC")).groupby(runs).any()
    two_kinds &= work.where(on_vector, 0.0).groupby(runs).sum() >= work.where(on_cube, 0.0).groupby(runs).sum()
    told = runs.map(two_kinds).fillna(False).astype(bool)
    kinds = pd.Series("", index=kernels.index, dtype=object)
    kinds = kinds.mask(told & on_cube, "cube").mask(told & on_vector, "vector")
    worked = cube_metrics.reindex(pd.MultiIndex.from_frame(kernels[KERNEL])).to_numpy(dtype="float64")
    measured = pd.Series(worked, index=kernels.index)
    all_measured = (measured.notna() | ~on_cube).groupby(runs).all() & on_cube.groupby(runs).any()
    by_metric = ~told & runs.map(all_measured).fillna(False).astype(bool) & (on_cube | on_vector)
    uses_cube = on_cube & (measured > 0)
    return kinds.mask(by_metric, "vector").mask(by_metric & uses_cube, "cube")


def category_metrics(sides: Sequence[Sums]) -> list[Metric]:
    """The rows of the categories that either side has, in reading order."""
    found = {key for side in sides for key, summed in side.items() if summed.ns or summed.calls}
    rows = []
    for name, title in _TITLES.items():
        if name not in found:
            continue
        rows.append(Metric(name, title, 2, in_e2e=True))
        rows += [
            Metric(f"{name}:{core}", f"{title} ({core})", 3, in_e2e=True)
            for core in ("cube", "vector")
            if name in _BY_CORE and f"{name}:{core}" in found
        ]
        if name == CATEGORY:
            rows += fused_metrics(found)
    return rows
