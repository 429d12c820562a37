"""Kernels that compute and communicate in one (MC2), for the overall table: by name, and how much of each computes."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.columns import Columns
from tracker.compare import reduction
from tracker.compare.metric import Metric, Sum, Sums
from tracker.table import Numbered, number_distinct_rows
from tracker.units import NS_PER_US

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.sides import Loaded

CATEGORY: Final = "mc2"
_PREFIX: Final = f"{CATEGORY}:"
_COMPUTING: Final = ":computing"
_REST: Final = ":communication"
_CORES: Final = (f"{CATEGORY}:cube", f"{CATEGORY}:vector")
KERNEL: Final = ["run_id", "name", "canonical_name", "type", "core_type", "input_shapes"]
"""What tells of which kernel of a run a metric is."""
_PIPES: Final = {
    "aic_mac_time(us)": "mac", "mac_time(us)": "mac",
    "aic_mte2_time(us)": "mte2", "mte2_time(us)": "mte2",
    "aiv_vec_time(us)": "vector", "vec_time(us)": "vector",
}  # fmt: skip
_NEEDED: Final = len({*_PIPES.values()})


def fused_sums(side: Loaded, compute: Columns) -> Sums:
    """Per fused kernel of `compute` its time and calls, `mc2:<name>`; of that computing, `mc2:<name>:computing`, and
    the rest, `mc2:<name>:communication`, where the pipes of all its calls were measured.

    Computing is what msprof-analyze takes for it: the longer of cube and loading, which work side by side, and then the
    vector unit. The rest is communication that no computing hides, and waiting for it.
    """
    fused = compute.taken(compute["category"] == CATEGORY)
    ns = fused.reals("total_ns")
    computing = np.minimum(_computing_ns(side, fused) * fused.reals("calls"), ns)
    table = fused.having(ns=ns, computing=computing, rest=ns - computing)
    parts = ["computing", "rest"]
    found: dict[str, Sum] = {}
    number, first = number_distinct_rows([fused["canonical_name"]])
    numbers = reduction.of_side(
        side, Numbered(table, number, len(first)), ["ns", "calls", *parts], parts, dict.fromkeys(parts, "ns")
    )
    names = fused["canonical_name"][first]
    for name, *row in Columns({"name": names, **numbers}).rows("name", *numbers):
        ns, calls, computing_ns, rest_ns = row
        key = f"{_PREFIX}{name}"
        found[key] = Sum(ns, calls)
        found[f"{key}{_COMPUTING}"], found[f"{key}{_REST}"] = Sum(computing_ns), Sum(rest_ns)
    return found


def _computing_ns(side: Loaded, fused: Columns) -> F64:
    """Per row of `fused` the computing time of a call in ns, nan where a pipe was not measured."""
    measured: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for metric, mean, *kernel in side.kernel_metrics().rows("metric", "mean", *KERNEL):
        if metric in _PIPES and mean is not None:
            measured.setdefault(tuple(kernel), {}).setdefault(_PIPES[metric], []).append(mean)
    times = {kernel: {pipe: fmean(own) for pipe, own in of_pipes.items()} for kernel, of_pipes in measured.items()}
    computing = {
        kernel: max(own["mac"], own["mte2"]) + own["vector"] for kernel, own in times.items() if len(own) == _NEEDED
    }
    return np.array([computing.get(kernel, np.nan) for kernel in fused.rows(*KERNEL)], dtype=np.float64) * NS_PER_US


def fused_metrics(found: Iterable[str]) -> list[Metric]:
    """The rows of the fused kernels among the keys `found`, by name."""
    rows = []
    keys = {key for key in found if key.startswith(_PREFIX) and key not in _CORES}
    for key in sorted(key for key in keys if not key.endswith((_COMPUTING, _REST))):
        rows.append(Metric(key, key.removeprefix(_PREFIX), 3, in_step=True))
        rows.append(Metric(f"{key}{_COMPUTING}", "Computing", 4, in_step=True))
        rows.append(Metric(f"{key}{_REST}", "Communication (all but computing)", 4, in_step=True))
    return rows
