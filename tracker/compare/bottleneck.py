"""What the steps wait for: the model level of an analysis, with the thresholds of the method that it follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracker.compare import knowing
from tracker.lazy import pd
from tracker.results import Bottleneck
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

THRESHOLDS: Final = {"input_bound_above": 0.05, "host_bound_below": 0.8, "device_bound_above": 0.9}
"""From Paddle's guide to the analysis of model performance, sections 1.1 to 1.3: an average reader ratio (reader cost /
batch cost) above 5 % is an I/O bottleneck, and what is below can still be won; a GPU that works less than 80 % of the
time is a CPU bottleneck, one that works more than 90 % a GPU bottleneck.
"""

_NO_LOADING: Final = "data loading (the source does not say when a step waits for its data)"
_NO_STEP: Final = "the step time"
_NO_DEVICE: Final = "device utilisation (there is no device activity in the capture)"
_NO_SPAN: Final = "device utilisation (the source does not say how long the device worked)"
_QUEUED: Final = "device utilisation (the device did more than the steps launched, and nobody says in which step)"
_STRAY: Final = 0.01
"""Kernel time outside all steps beyond this share of the whole is work that the steps' own numbers lack."""
_SAID_BY: Final = "device_summary"
"""Source of the counters in which Paddle says `GPU Utilization = current process GPU time / elapsed time`."""


def bottleneck(side: Loaded) -> Bottleneck:
    """The bottleneck of a side; `Bottleneck` defines its numbers."""
    queued = side.has_markers and _outside_share(side) > _STRAY
    loading, utilisation = _data_loading(side), _of_captures(side) if queued else _utilisation(side)
    missing = []
    if loading is None:
        missing.append(_NO_STEP if side.steps["duration_ns"].isna().all() else _NO_LOADING)
    if utilisation is None and queued:
        missing.append(_QUEUED)
    elif utilisation is None:
        traced = side.captures["kernel_count"].notna().any()  # a log knows of no device, and not that there is none
        missing.append(_NO_DEVICE if traced and (side.captures["timeline"] == "host").all() else _NO_SPAN)
    of = "step_ns" if side.has_markers or side.steps["e2e_ns"].isna().all() else "e2e_ns"
    of = "capture_e2e_ns" if queued else of
    return Bottleneck(_bound(loading, utilisation), loading, utilisation, loading, tuple(missing), THRESHOLDS, of)


def _bound(loading: float | None, utilisation: float | None) -> str | None:
    """Data loading first: while a step waits for its data the device is idle, and the host would be blamed for it."""
    if loading is not None and loading > THRESHOLDS["input_bound_above"]:
        return "input"
    if utilisation is None:
        return None
    if utilisation < THRESHOLDS["host_bound_below"]:
        return "host"
    return "device" if utilisation > THRESHOLDS["device_bound_above"] else "mixed"


def _data_loading(side: Loaded) -> float | None:
    """Over the rows of steps that know both; the median over the runs."""
    if side.steps["data_loading_ns"].isna().all():
        return None
    known = side.steps.dropna(subset=["data_loading_ns", "duration_ns"])
    return _median_quotient(_by_run(known, "data_loading_ns"), _by_run(known, "duration_ns"))


def _utilisation(side: Loaded) -> float | None:
    """Of what the rows of steps know; else the mean of what the profiler says of its devices.

    The device may outlast its last step: that time counts as well, or a single step with a full queue would be busy for
    longer than it lasts.
    """
    known = side.steps[side.steps["timeline"] == "device"].dropna(subset=["duration_ns", "e2e_ns", "free_ns"])
    if known.empty:
        return _said(side)
    busy = _by_run(known.assign(busy=known["e2e_ns"] - known["free_ns"]), "busy")
    if not side.has_markers:
        return _median_quotient(busy, _by_run(known, "e2e_ns"))
    last = known.sort_values("step").drop_duplicates(["run_id", "rank"], keep="last")
    tail = (last["e2e_ns"] - last["duration_ns"]).clip(lower=0).groupby(last["run_id"]).sum()
    found = _median_quotient(busy, _by_run(known, "duration_ns") + tail)
    return None if found is None else min(found, 1.0)


def _of_captures(side: Loaded) -> float | None:
    """Of all that the captures hold, inside steps and outside; None for a part of their steps."""
    known = side.captures[side.captures["timeline"] == "device"].dropna(subset=["e2e_ns", "free_ns"])
    if side.is_part or known.empty:
        return None
    known = known.assign(busy=known["e2e_ns"] - known["free_ns"], steps=1)
    return _median_quotient(_by_run(known, "busy"), _by_run(known, "e2e_ns"))


def _outside_share(side: Loaded) -> float:
    """How much of the kernel time of the captures lies outside their steps, 0.0 where nobody knows.

    The device may do it during a step all the same: a queue that was filled before the capture, or before the step.
    """
    steps = side.steps
    if side.is_part:
        steps = knowing.of_captures(queries.steps(side.store, side.run_ids), side.captures)
    inside = (steps["kernel_total_ns"] * steps["steps"]).groupby([steps["run_id"], steps["rank"]]).sum(min_count=1)
    whole = side.captures.set_index(["run_id", "rank"])["kernel_total_ns"]
    outside = (whole - inside).dropna()
    total = whole.reindex(outside.index).sum()
    return float(outside.sum() / total) if total else 0.0


def _said(side: Loaded) -> float | None:
    if side.is_part or not (side.captures["timeline"] == "device").any():  # it says so of all steps together
        return None
    counters = side.ask(queries.counters, by=("run",), in_steps=False)
    of_device = (counters["source"] == _SAID_BY) & ~counters["name"].str.startswith("CPU")
    means = counters[of_device].groupby("run_id")["mean"].mean()
    return float(means.median()) / 100 if len(means) else None


def _by_run(steps: pd.DataFrame, column: str) -> pd.Series:
    """The sum over all steps and ranks; a row that is the mean of several steps counts as so many."""
    return (steps[column] * steps["steps"]).groupby(steps["run_id"]).sum().astype("float64")


def _median_quotient(part: pd.Series, whole: pd.Series) -> float | None:
    quotient = (part / whole.where(whole > 0)).dropna()
    return float(quotient.median()) if len(quotient) else None
