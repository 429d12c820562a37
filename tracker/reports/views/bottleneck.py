"""What the steps of a run or of two sides wait for, in sentences and as values."""

from __future__ import annotations

from typing import Any, Final

from tracker.reports.cells import percent, share
from tracker.reports.rows import Row, plain
from tracker.results import Bottleneck, Diff
from tracker.units import format_ns

_CLASSES: Final = {
    "input": "input bound", "communication": "communication bound", "host": "host bound",
    "mixed": "neither host nor device bound (mixed)", "device": "device bound",
}  # fmt: skip
_WHOLES: Final = {
    "step_ns": "the step time",
    "e2e_ns": "E2E",
}
"""What the utilisation is a share of."""
_WORTH_SAYING: Final = 0.05
"""Share of the capture outside of its steps; a step more or less of many is no matter."""


def short(found: Bottleneck) -> str:
    """Return the class in words; what can still be said where it is not known."""
    if found.bound is not None:
        return _CLASSES[found.bound]
    return "not classified" if found.data_loading_share is None else "not input bound"


def changed(diff: Diff) -> bool | None:
    """Return whether the class differs; None where it is not known on both sides."""
    if diff.bottlenecks is None:
        return None
    before, after = diff.bottlenecks
    return None if before.bound is None or after.bound is None else before.bound != after.bound


def sentence(found: Bottleneck) -> str:
    """Say the class with its numbers, and what is missing."""
    parts = _parts(found)
    text = short(found) + (f": {'; '.join(parts)}" if parts else "")
    outside = found.outside_steps_share
    if parts and outside is not None and outside >= _WORTH_SAYING:
        text += f". This leaves out {share(outside)} of the capture's E2E, which lies outside of the steps"
    if found.missing:
        text += f". Missing: {', '.join(found.missing)}"
    if found.device_utilisation is None and found.data_loading_share is not None:
        text += ". Only the test for data loading applies"
    return f"{text}."


def _parts(found: Bottleneck) -> list[str]:
    parts, limits = [], found.thresholds
    loading, empty = found.data_loading_share, found.empty_queue_share
    if empty is not None:
        limit = limits["empty_queue_above"]
        side = "above" if empty > limit else "not above"
        parts.append(f"the queue to the device is empty {share(empty)} of the time ({side} {percent(limit)})")
    if loading is not None and (empty is None or found.bound == "input"):
        limit = limits["input_bound_above"]
        gain = loading if found.possible_gain_share is None else found.possible_gain_share
        idles = "" if gain == loading else f", {share(gain)} with the device idle"
        side, most = ("above", ", at most that much can be won") if gain > limit else ("not above", "")
        timer = ""
        if found.timer_ns is not None:
            timer = f", {' of '.join(map(format_ns, found.timer_ns))} by the timer log"
        parts.append(f"data loading is {share(loading)} of the step time{timer}{idles} ({side} {percent(limit)}){most}")
    exposed = found.communication_share
    if exposed:
        limit = limits["communication_bound_above"]
        side = "above" if exposed > limit else "not above"
        whole = _WHOLES[found.utilisation_of]
        most = f", mostly {found.collective}" if found.collective else ""
        waits = found.waiting_share
        most += f", and {share(waits)} of that is waiting for other ranks" if waits else ""
        parts.append(f"exposed communication is {share(exposed)} of {whole}{most} ({side} {percent(limit)})")
    works = found.device_utilisation
    if works is not None:
        low, high = limits["host_bound_below"], limits["device_bound_above"]
        side = f"between {percent(low)} and {percent(high)}"
        if not low <= works <= high:
            side = f"below {percent(low)}" if works < low else f"above {percent(high)}"
        parts.append(f"the device works {share(works)} of {_WHOLES[found.utilisation_of]} ({side})")
        waits = found.host_idle_share
        if waits is not None and works < low:
            parts.append(f"it waits for the host in {share(waits)}")
    return parts


def record(found: Bottleneck | None) -> dict[str, Any] | None:
    """Return a bottleneck by name: its class, quotients, what is missing, the thresholds."""
    if found is None:
        return None
    numbers = (
        "data_loading_share", "device_utilisation", "possible_gain_share", "utilisation_of", "outside_steps_share",
        "communication_share", "host_idle_share", "empty_queue_share", "collective", "waiting_share", "missing",
        "thresholds",
    )  # fmt: skip
    return {"class": found.bound, **{name: plain(getattr(found, name)) for name in numbers}}


def rows(*found: Bottleneck) -> list[Row]:
    """Return the same for tables of values: a row per side, each with its name where there are two."""
    made = []
    for side, one in zip(("baseline", "candidate"), found, strict=False):
        limits = [f"{name.replace('_', ' ')} {percent(value)}" for name, value in one.thresholds.items()]
        texts = {"missing": "; ".join(one.missing), "thresholds": ", ".join(limits)}
        made.append(({"side": side} if len(found) > 1 else {}) | (record(one) or {}) | texts)
    return made
