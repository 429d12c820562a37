"""The one line that answers "did it become slower, and why?"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracker.results import ADDED, REMOVED, Cause, Part
from tracker.units import format_diff, format_ns, time_unit

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

_SMALL_CHANGE: Final = 0.005


@dataclass(frozen=True, slots=True)
class Reasons:
    """What may carry a change: parts of the step, ops by name, the delta of all ops together, that of data loading."""

    parts: tuple[Part, ...]
    rollup: tuple[Cause, ...]
    explained_ns: float
    data_loading_ns: float | None


def answer(
    baseline: Loaded, candidate: Loaded, metric: str, totals: tuple[float | None, float | None], reasons: Reasons
) -> str:
    """One line: how much slower or faster, and what carries the change. It claims nothing that one run cannot say.

    `totals`: the metric (`step_ns` or `e2e_ns`) of the two sides.
    """
    a, b = _short_labels(baseline.side.label, candidate.side.label)
    what = "step" if metric == "step_ns" else "E2E"
    total0, total1 = totals
    if not total0 or total1 is None:
        return f"{b} against {a}: the captures say nothing about the {what} time."
    delta = total1 - total0
    unit = time_unit(total0, total1)
    change = f"{format_diff(delta / total0)}, {_signed(delta)}"
    size = f"{what} {format_ns(total0, unit)} -> {format_ns(total1, unit)} ({change})"
    noise = _noise_remark(baseline, candidate)
    if delta == 0:
        return f"{b} is as fast as {a}: {size}.{noise}"
    if abs(delta / total0) < _SMALL_CHANGE:
        return f"{b} is about as fast as {a}: {size}.{noise}"
    word = "slower" if delta > 0 else "faster"
    return f"{b} is {word} than {a}: {size}; {_reason(delta, reasons)}.{noise}"


def _reason(delta: float, reasons: Reasons) -> str:
    """Operators where they carry at least half of the change, else data loading, else the part that grew most."""
    explained = reasons.explained_ns
    same_way = [cause for cause in reasons.rollup if cause.delta_ns * delta > 0]
    if same_way and _carries(explained, delta):
        named = [f"{cause.name} {_signed(cause.delta_ns)}{_how(cause)}" for cause in same_way[:3]]
        return f"operators {_signed(explained)} ({_percent(explained / delta)} of the change): " + ", ".join(named)
    loading = reasons.data_loading_ns
    if loading is not None and _carries(loading, delta):
        return f"no operator explains it: data loading {_signed(loading)} ({_percent(loading / delta)} of the change)"
    largest = max(reasons.parts, key=lambda part: part.delta_ns * delta, default=None)
    if largest is None or largest.delta_ns * delta <= 0:
        return "no part of the step explains it"
    carried = f"{largest.title} {_signed(largest.delta_ns)}"
    return f"no operator explains it: {carried} ({_percent(largest.delta_ns / delta)} of the change)"


def _carries(part_ns: float, delta: float) -> bool:
    return part_ns * delta > 0 and abs(part_ns) >= abs(delta) / 2


def _how(cause: Cause) -> str:
    if cause.status in (ADDED, REMOVED):
        return f" ({cause.status})"
    if cause.calls_delta_ns is None or cause.per_call_delta_ns is None:
        return ""
    return " (calls)" if abs(cause.calls_delta_ns) > abs(cause.per_call_delta_ns) else " (per call)"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _signed(delta_ns: float) -> str:
    text = format_ns(delta_ns)
    return text if delta_ns < 0 else f"+{text}"


def _noise_remark(baseline: Loaded, candidate: Loaded) -> str:
    fewest = min(baseline.side.runs, candidate.side.runs)
    if set(baseline.run_ids) == set(candidate.run_ids) and baseline.store is candidate.store:
        return ""
    return " One run a side cannot tell change from noise." if fewest == 1 else ""


def _short_labels(a: str, b: str) -> tuple[str, str]:
    """Labels as they are; paths by as many of their last parts as tell them apart.

    >>> _short_labels("v1", "v2"), _short_labels("runs/old/t.json", "runs/new/t.json")
    (('v1', 'v2'), ('old/t.json', 'new/t.json'))
    """
    one, other = a.rstrip("/").split("/"), b.rstrip("/").split("/")
    count = next((n for n in range(1, min(len(one), len(other))) if one[-n:] != other[-n:]), max(len(one), len(other)))
    return "/".join(one[-count:]), "/".join(other[-count:])
