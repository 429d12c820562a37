"""What the steps of a run or of two sides wait for, in sentences and as plain values."""

from __future__ import annotations

from typing import Any, Final

from tracker.reports._human import share
from tracker.reports.shared import plain
from tracker.results import Bottleneck, Diff, Shown

CLASSES: Final = {
    "input": "input bound",
    "communication": "communication bound",
    "host": "host bound",
    "mixed": "neither host nor device bound (mixed)",
    "device": "device bound",
}

_WHOLES: Final = {
    "step_ns": "the step time",
    "e2e_ns": "E2E",
    "capture_e2e_ns": "the capture's E2E, which holds work that no step launched",
}
"""What the utilisation is a share of."""

_WORTH_SAYING: Final = 0.05
"""Share of the capture outside of its steps; a step more or less of many is no matter."""


def of_run(shown: Shown) -> list[str]:
    """One sentence, or none where nobody asked."""
    return [] if shown.bottleneck is None else [f"Bottleneck: {words(shown.bottleneck)}"]


def of_diff(diff: Diff) -> list[str]:
    """A sentence per side, and one where the class changed."""
    if diff.bottlenecks is None:
        return []
    before, after = diff.bottlenecks
    lines = [f"Bottleneck of the baseline: {words(before)}", f"Bottleneck of the candidate: {words(after)}"]
    if changed(diff):
        lines.append(f"The bottleneck changed: {verdict(before)} -> {verdict(after)}.")
    return lines


def changed(diff: Diff) -> bool | None:
    """Whether the class differs; None where it is not known on both sides."""
    if diff.bottlenecks is None:
        return None
    before, after = diff.bottlenecks
    return None if before.bound is None or after.bound is None else before.bound != after.bound


def verdict(found: Bottleneck) -> str:
    """The class in words; what can still be said where it is not known."""
    if found.bound is not None:
        return CLASSES[found.bound]
    return "unknown" if found.data_loading_share is None else "not input bound"


def words(found: Bottleneck) -> str:
    """The class with its numbers, and what is missing.

    `input bound: data loading is 39.6 % of the step time (above 5 %), at most that much can be won; the device works
    57.5 % of the step time (below 80 %).`; what of the capture it does not speak of follows.
    """
    parts = [text for text in (_loading(found), _communication(found), _device(found)) if text]
    text = verdict(found) + (f": {'; '.join(parts)}" if parts else "")
    unknown = f" Not known: {', '.join(found.missing)}." if found.missing else ""
    alone = " Only the test for data loading applies." if found.device_utilisation is None and _loading(found) else ""
    return f"{text}.{_outside(found) if parts else ''}{unknown}{alone}"


def _outside(found: Bottleneck) -> str:
    """What the sentence does not speak of."""
    outside = found.outside_steps_share
    if outside is None or outside < _WORTH_SAYING or found.utilisation_of == "capture_e2e_ns":
        return ""
    return f" This does not speak of {share(outside)} of the capture's E2E, which lies outside of the steps."


def _loading(found: Bottleneck) -> str:
    loading = found.data_loading_share
    if loading is None:
        return ""
    limit = found.thresholds["input_bound_above"]
    side = "above" if loading > limit else "not above"
    gain = _gain(loading, found.possible_gain_share) if loading > limit else ""
    return f"data loading is {share(loading)} of the step time ({side} {_per_cent(limit)}){gain}"


def _gain(loading: float, gain: float | None) -> str:
    """How much of data loading can be won: what the device idles in it, all of it where that is not known."""
    if gain is None or gain == loading:
        return ", at most that much can be won"
    return f"; the device idles in {share(gain)}, at most that much can be won"


def _communication(found: Bottleneck) -> str:
    """Nothing of a job that hardly communicates."""
    exposed = found.communication_share
    if not exposed:
        return ""
    limit = found.thresholds["communication_bound_above"]
    side = "above" if exposed > limit else "not above"
    return f"exposed communication is {share(exposed)} of {_WHOLES[found.utilisation_of]} ({side} {_per_cent(limit)})"


def _device(found: Bottleneck) -> str:
    utilisation = found.device_utilisation
    if utilisation is None:
        return ""
    low, high = found.thresholds["host_bound_below"], found.thresholds["device_bound_above"]
    side = f"between {_per_cent(low)} and {_per_cent(high)}"
    if utilisation < low:
        side = f"below {_per_cent(low)}"
    elif utilisation > high:
        side = f"above {_per_cent(high)}"
    return f"the device works {share(utilisation)} of {_WHOLES[found.utilisation_of]} ({side})"


def _per_cent(value: float) -> str:
    return f"{value * 100:g} %"


def record(found: Bottleneck | None) -> dict[str, Any] | None:
    """The keys of JSON: class, the three quotients, what is missing, the thresholds."""
    if found is None:
        return None
    return {
        "class": found.bound,
        "data_loading_share": plain(found.data_loading_share),
        "device_utilisation": plain(found.device_utilisation),
        "possible_gain_share": plain(found.possible_gain_share),
        "utilisation_of": found.utilisation_of,
        "outside_steps_share": plain(found.outside_steps_share),
        "communication_share": plain(found.communication_share),
        "missing": list(found.missing),
        "thresholds": plain(found.thresholds),
    }


def sides(diff: Diff) -> list[dict[str, Any]]:
    """A row per side, for tables of values; none where nobody asked."""
    rows = []
    for side, found in zip(("baseline", "candidate"), diff.bottlenecks or (), strict=False):
        rows.append({"side": side} | flat(found))
    return rows


def flat(found: Bottleneck) -> dict[str, Any]:
    """`record` as cells of one row."""
    row = record(found) or {}
    return row | {"missing": "; ".join(found.missing), "thresholds": _thresholds(found)}


def _thresholds(found: Bottleneck) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_per_cent(value)}" for name, value in found.thresholds.items())
