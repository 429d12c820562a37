"""What the steps of a run or of two sides wait for, in sentences and as values."""

from __future__ import annotations

from typing import Any, Final

from tracker.reports.cells import percent, share
from tracker.reports.rows import plain
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
    parts = _in_order(found)
    text = short(found) + (f": {'; '.join(parts)}" if parts else "")
    outside = found.outside_steps_share
    if parts and outside is not None and outside >= _WORTH_SAYING:
        text += f". This leaves out {share(outside)} of the capture's E2E, which lies outside of the steps"
    if found.missing:
        text += f". Missing: {', '.join(found.missing)}"
    if found.device_utilisation is None and found.data_loading_share is not None:
        text += ". Only the test for data loading applies"
    return f"{text}."


def _in_order(found: Bottleneck) -> list[str]:
    """Return the parts of the sentence, first that of the class."""
    parts = _parts(found)
    first = parts.pop(found.bound, "") if found.bound in parts else ""
    return [text for text in (first, *parts.values()) if text]


def _parts(found: Bottleneck) -> dict[str, str]:
    """Return class -> what its number says; `queue`: how often the queue is empty."""
    parts: dict[str, str] = {}
    limits = found.thresholds
    loading, empty = found.data_loading_share, found.empty_queue_share
    if empty is not None:
        limit = limits["empty_queue_above"]
        side = "above" if empty > limit else "not above"
        parts["queue"] = f"the queue to the device is empty {share(empty)} of the time ({side} {percent(limit)})"
    if loading is not None and (empty is None or found.bound == "input"):
        limit = limits["input_bound_above"]
        gain = loading if found.possible_gain_share is None else found.possible_gain_share
        idles = "" if gain == loading else f", {share(gain)} with the device idle"
        side, most = ("above", ", at most that much can be won") if gain > limit else ("not above", "")
        timer = ""
        if found.timer_ns is not None:
            timer = f", {' of '.join(map(format_ns, found.timer_ns))} by the timer log"
        text = f"data loading is {share(loading)} of the step time{timer}{idles} ({side} {percent(limit)}){most}"
        # what says that the step waits for data stands first
        queue = parts.pop("queue", "")
        parts["input"] = "; ".join(filter(None, (queue, text)))
    exposed = found.communication_share
    if exposed:
        limit = limits["communication_bound_above"]
        side = "above" if exposed > limit else "not above"
        whole = _WHOLES[found.utilisation_of]
        most = f", mostly {found.collective}" if found.collective else ""
        waits = found.waiting_share
        most += f", and {share(waits)} of that is waiting for other ranks" if waits else ""
        parts["communication"] = f"exposed communication is {share(exposed)} of {whole}{most} ({side} {percent(limit)})"
    if found.device_utilisation is not None:
        parts["host" if found.bound == "host" else "device"] = _say_utilisation(found, found.device_utilisation)
    return parts


def _say_utilisation(found: Bottleneck, works: float) -> str:
    """Say how much the device works, and for what it waits where that is little; of a host bound step that first."""
    low, high = found.thresholds["host_bound_below"], found.thresholds["device_bound_above"]
    side = f"between {percent(low)} and {percent(high)}"
    if not low <= works <= high:
        side = f"below {percent(low)}" if works < low else f"above {percent(high)}"
    whole, waits = _WHOLES[found.utilisation_of], found.host_idle_share
    text = f"the device works {share(works)} of {whole} ({side})"
    if waits is None or works >= low:
        return text
    loading = found.possible_gain_share or 0.0
    in_loading = f" ({share(loading)} in data loading)" if loading and share(loading) != share(0.0) else ""
    if found.bound == "host":
        return (
            f"the device waits for the host in {share(waits)} of {whole}{in_loading}, and works {share(works)} ({side})"
        )
    return f"{text}; it waits for the host in {share(waits)}{in_loading}"


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


def spell_thresholds(found: Bottleneck) -> str:
    """Return the thresholds by which a bottleneck is judged, in words."""
    return ", ".join(f"{name.replace('_', ' ')} {percent(value)}" for name, value in found.thresholds.items())


def rows(*found: Bottleneck) -> list[dict[str, Any]]:
    """Return the same for tables of values: a row per side, each with its name where there are two."""
    made = []
    for side, one in zip(("baseline", "candidate"), found, strict=False):
        texts = {"missing": "; ".join(one.missing), "thresholds": spell_thresholds(one)}
        made.append(({"side": side} if len(found) > 1 else {}) | (record(one) or {}) | texts)
    return made
