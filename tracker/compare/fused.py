"""Kernels that compute and communicate in one (MC2), for the overall table: by name, and how much of each computes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tracker.compare import means, sums
from tracker.compare.keys import Numbered, places
from tracker.compare.sums import Metric, Sum, Sums
from tracker.lazy import pd
from tracker.units import NS_PER_US

if TYPE_CHECKING:
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


def fused_sums(side: Loaded, compute: pd.DataFrame) -> Sums:
    """Per fused kernel of `compute` its time and calls, `mc2:<name>`; of that computing, `mc2:<name>:computing`, and
    the rest, `mc2:<name>:communication`, where the pipes of all its calls were measured.

    Computing is what msprof-analyze takes for it: the longer of cube and loading, which work side by side, and then the
    vector unit. The rest is communication that no computing hides, and waiting for it.
    """
    fused = compute[compute["category"] == CATEGORY]
    computing = (_computing_ns(side, fused) * fused["calls"]).clip(upper=fused["total_ns"].astype("float64"))
    name = _PREFIX + fused["canonical_name"]
    keyed = fused.assign(ns=fused["total_ns"].astype("float64"), computing=computing)
    keyed["rest"] = keyed["ns"] - computing
    parts = ["computing", "rest"]
    found: dict[str, Sum] = {}
    number, first = places([name])
    numbers = means.per_step(side, Numbered(keyed, number, len(first)), ["ns", "calls", *parts], parts)
    for key, *row in zip(name.iloc[first], *numbers.values(), strict=True):
        ns, calls, computing_ns, rest_ns = map(sums.known, row)
        found[key] = Sum(ns, calls)
        found[f"{key}{_COMPUTING}"], found[f"{key}{_REST}"] = Sum(computing_ns), Sum(rest_ns)
    return found


def _computing_ns(side: Loaded, fused: pd.DataFrame) -> pd.Series:
    """Per row of `fused` the computing time of a call in ns, NaN where a pipe was not measured."""
    metrics = side.kernel_metrics()
    pipe = metrics["metric"].map(_PIPES)
    of_pipes = metrics[pipe.notna()].assign(pipe=pipe)
    by_pipe = of_pipes.groupby([*KERNEL, "pipe"])["mean"].mean().unstack("pipe")
    by_pipe = by_pipe.reindex(columns=["mac", "mte2", "vector"])
    computing = by_pipe[["mac", "mte2"]].max(axis=1, skipna=False) + by_pipe["vector"]
    rows = computing.reindex(pd.MultiIndex.from_frame(fused[KERNEL])).to_numpy(dtype="float64")
    return pd.Series(rows * NS_PER_US, index=fused.index)


def fused_metrics(found: Iterable[str]) -> list[Metric]:
    """The rows of the fused kernels among the keys `found`, by name."""
    rows = []
    keys = {key for key in found if key.startswith(_PREFIX) and key not in _CORES}
    for key in sorted(key for key in keys if not key.endswith((_COMPUTING, _REST))):
        rows.append(Metric(key, key.removeprefix(_PREFIX), 3, in_e2e=True))
        rows.append(Metric(f"{key}{_COMPUTING}", "Computing", 4, in_e2e=True))
        rows.append(Metric(f"{key}{_REST}", "Communication (all but computing)", 4, in_e2e=True))
    return rows
