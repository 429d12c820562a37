"""The one line that answers "did it become slower, and why?"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.compare.spread import overlap
from tracker.detect import DEFAULTS
from tracker.regressions.incidents import cause_words
from tracker.results import ADDED, REMOVED, Cause, Part
from tracker.units import format_diff, format_ns, format_numbers, steps_words, time_unit

if TYPE_CHECKING:
    from tracker.compare.claims import Claim
    from tracker.compare.sides import Loaded

_SMALL_CHANGE: Final = 0.005
_MOVED: Final = 0.02
"""Part of the whole that shows, with the whole unmoved, that captures were cut and do not hold the same work."""
_LARGE_MEMORY_CHANGE: Final = 0.1
PARTS: Final = {
    "data_loading_ns": "data loading",
    "exposed_communication_ns": "exposed communication",
    "exposed_copy_ns": "exposed copies",
    "idle_ns": "idle time",
}
"""The parts of a step beside its operators that are judged, and their names in the answer."""
_HOST_DRIFT: Final = DEFAULTS.ratio_step_host


class Reasons(Struct, frozen=True):
    """What may carry a change. `before`, `after`: `overall.step_numbers`; `rollup`: ops by name, largest first.

    `explained_ns`: the delta of all ops together; `data_loading_ns`: its delta; `memory`: DIFF of the peak allocated.
    `on_device`: whether a side has a device, whose work may go on beside a part of the step.
    """

    before: dict[str, float]
    after: dict[str, float]
    parts: tuple[Part, ...]
    rollup: tuple[Cause, ...]
    explained_ns: float
    data_loading_ns: float | None
    memory: float | None
    on_device: bool


class Caveat(Struct, frozen=True):
    """Why an answer does not say which side is faster, a sentence. `with_numbers`: the two times stand beside it;
    `with_reason`: what carries the change as well.
    """

    sentence: str
    with_numbers: bool = True
    with_reason: bool = False


Range = tuple[float, float]


def answer(
    baseline: Loaded,
    candidate: Loaded,
    metric: str,
    reasons: Reasons,
    ranges: tuple[Range | None, Range | None],
    claim: Claim | None = None,
    caveat: Caveat | None = None,
) -> str:
    """One line: how much slower or faster, and what carries the change. It claims nothing that the runs cannot say.

    `metric`: `step_ns` or `e2e_ns`; `ranges`: its smallest and largest value over the runs of each side. `claim`: what
    was judged, None where nothing was. `caveat`: why no side is called faster.
    """
    a, b = _short_labels(baseline.side.label, candidate.side.label)
    if baseline.side.chosen_steps or candidate.side.chosen_steps:
        a, b = (f"{name} ({steps_words(side.chosen_steps)})" for name, side in ((a, baseline), (b, candidate)))
    if caveat is not None and not caveat.with_numbers:
        return f"{b} against {a}: {_lowered(caveat.sentence)}"
    what = "step" if metric == "step_ns" else "E2E"
    total0, total1 = reasons.before.get(metric), reasons.after.get(metric)
    if not total0 or total1 is None:
        return f"{b} against {a}: the captures say nothing about the {what} time."
    delta = total1 - total0
    unit = time_unit(total0, total1)
    change = f"{format_diff(delta / total0)}, {signed(delta)}"
    size = f"{what} {format_ns(total0, unit)} -> {format_ns(total1, unit)} ({change})"
    if caveat is not None:
        why = f"; {_reason(delta, reasons)}" if caveat.with_reason and delta else ""
        noise = _noise_remark(baseline, candidate, delta / total0, ranges) if caveat.with_reason else ""
        return f"{b} against {a}: {size}{why}. {caveat.sentence}{noise}"
    if metric == "e2e_ns" and _are_windows(delta / total0, reasons):
        return f"{b} against {a}: {size}; {_of_windows(reasons, total0)}{claim.because if claim else ''}."
    if claim is not None:
        reason = f"{claim.because}{_beyond_findings(delta, reasons, claim)}"
        return f"{b} {claim.phrase} {a}: {size}{reason}{_memory_remark(reasons)}."
    phrase, why = _unjudged(delta, total0, reasons)
    closing = f"{_memory_remark(reasons)}.{_noise_remark(baseline, candidate, delta / total0, ranges)}"
    return f"{b} {phrase} {a}: {size}{why}{closing}"


def _unjudged(delta: float, total: float, reasons: Reasons) -> tuple[str, str]:
    """What stands between the sides where nothing was judged, and what carries the change."""
    if delta == 0:
        return "is as fast as", ""
    if abs(delta / total) < _SMALL_CHANGE:
        return "is about as fast as", ""
    return f"is {'slower' if delta > 0 else 'faster'} than", f"; {_reason(delta, reasons)}"


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _are_windows(change: float, reasons: Reasons) -> bool:
    """Whether captures without steps look like cut-outs of the same length: what is in them moved, and they did not."""
    total = reasons.before["e2e_ns"]
    return abs(change) < _SMALL_CHANGE and any(abs(part.delta_ns) >= _MOVED * total for part in reasons.parts)


def _of_windows(reasons: Reasons, total: float) -> str:
    """What may be said of cut-outs, with the parts that moved."""
    moved = [part for part in reasons.parts if abs(part.delta_ns) >= _MOVED * total]
    named = ", ".join(f"{part.title} {signed(part.delta_ns)}" for part in moved)
    return (
        "captures without steps that are equally long, as cut-outs of a run are, say nothing of its speed, and inside "
        f"them {named}: mark steps (NVTX), or compare operators per call"
    )


def _reason(delta: float, reasons: Reasons) -> str:
    """Operators where they carry at least half of the change, else data loading, else the part that grew most."""
    explained = reasons.explained_ns
    if _carries(explained, delta):
        return f"operators {signed(explained)} ({_percent(explained / delta)} of the change): {_named(delta, reasons)}"
    beside = _beside_operators(delta, reasons)
    return f"no operator explains it: {beside}" if beside else "no part of the step explains it"


def _beside_operators(delta: float, reasons: Reasons) -> str:
    """Data loading where it carries at least half of the change, else the part that grew most; "" where none did."""
    loading = reasons.data_loading_ns
    if loading is not None and _carries(loading, delta):
        return f"data loading {signed(loading)} {_share_of(loading, delta, reasons)}"
    largest = max(reasons.parts, key=lambda part: part.delta_ns * delta, default=None)
    if largest is None or largest.delta_ns * delta <= 0:
        return ""
    return f"{largest.title} {signed(largest.delta_ns)} ({_percent(largest.delta_ns / delta)} of the change)"


def _beyond_findings(delta: float, reasons: Reasons, claim: Claim) -> str:
    """What else carries a change of the total that the operators found do not carry: a part of the step that was judged
    as well, or where the change itself was found the largest part; that no operator was found.
    """
    part = _judged_part(delta, reasons, claim)
    unexplained = claim.changed and delta and not _carries(claim.found_ns, delta)
    beside = part or (_beside_operators(delta, reasons) if unexplained else "")
    if claim.nobody:
        return f"; no operator explains it: {beside}" if beside else "; no operator is a finding"
    return f"; {beside}" if beside else ""


def _judged_part(delta: float, reasons: Reasons, claim: Claim) -> str:
    """The part of the step that was judged and explains most of its change, where that is more than the operators that
    were found explain; else "".
    """
    moved = {
        metric: reasons.after[metric] - reasons.before[metric]
        for metric in claim.parts
        if metric in reasons.before and metric in reasons.after
    }
    largest = max(moved, key=lambda metric: moved[metric] * delta, default=None)
    if largest is None or moved[largest] * delta <= max(claim.found_ns * delta, 0.0):
        return ""
    share = _share_of(moved[largest], delta, reasons)
    return f"{claim.parts[largest]}: {PARTS[largest]} {signed(moved[largest])} {share}"


def _share_of(part_ns: float, delta: float, reasons: Reasons) -> str:
    hidden = ", part of it beside device work" if reasons.on_device and abs(part_ns) > abs(delta) else ""
    return f"({_percent(part_ns / delta)} of the change{hidden})"


def _named(delta: float, reasons: Reasons) -> str:
    """The three ops that carry most; with several runs a side only those that stand out of the runs' differences."""
    same_way = [cause for cause in reasons.rollup if cause.delta_ns * delta > 0]
    clear = [cause for cause in same_way if cause.stands_out is not False]
    if not clear:
        return "none stands out of the differences between runs"
    return ", ".join(f"{cause.name} {signed(cause.delta_ns)}{how(cause)}" for cause in clear[:3])


def _carries(part_ns: float, delta: float) -> bool:
    return part_ns * delta > 0 and abs(part_ns) >= abs(delta) / 2


def how(cause: Cause) -> str:
    """What makes the change, in brackets: more or slower calls; ADDED or REMOVED."""
    if cause.status in (ADDED, REMOVED):
        return f" ({cause.status})"
    if cause.calls_delta_ns is None or cause.per_call_delta_ns is None:
        return ""
    numbers = (cause.baseline_ns, cause.candidate_ns, cause.baseline_calls, cause.candidate_calls)
    return f" ({cause_words(*(value or 0.0 for value in numbers))[0]})"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def signed(delta_ns: float) -> str:
    """A change of time with its sign."""
    text = format_ns(delta_ns)
    return text if delta_ns < 0 else f"+{text}"


def _memory_remark(reasons: Reasons) -> str:
    if reasons.memory is None or abs(reasons.memory) < _LARGE_MEMORY_CHANGE:
        return ""
    return f"; peak memory {format_diff(reasons.memory)}"


def _noise_remark(baseline: Loaded, candidate: Loaded, change: float, ranges: tuple[Range | None, Range | None]) -> str:
    if set(baseline.run_ids) == set(candidate.run_ids) and baseline.store is candidate.store:
        return ""
    if min(baseline.side.runs, candidate.side.runs) == 1:
        return " One run a side cannot tell change from noise."
    before, after = ranges
    if before is None or after is None:
        return ""
    if not overlap(before, after):
        drift = "host" in (baseline.side.timeline, candidate.side.timeline) and abs(change) < _HOST_DRIFT
        return " Steps timed on the host drift this much by themselves." if drift else ""
    unit = time_unit(*before, *after)
    texts = [f"{format_ns(low, unit)} to {format_ns(high, unit)}" for low, high in (before, after)]
    return f" The runs of the two sides overlap ({' and '.join(texts)}): this may be noise."


def _short_labels(a: str, b: str) -> tuple[str, str]:
    """Labels as they are, lists of runs as ranges; paths by as many of their last parts as tell them apart, by the last
    where nothing does.

    >>> _short_labels("v1", "v2"), _short_labels("runs/old/t.json", "runs/new/t.json")
    (('v1', 'v2'), ('old/t.json', 'new/t.json'))
    >>> _short_labels("run:1,run:2,run:3,run:7", "v4")
    ('runs 1-3,7', 'v4')
    """
    a, b = (_short_list(label) for label in (a, b))
    one, other = a.rstrip("/").split("/"), b.rstrip("/").split("/")
    if one == other:
        return one[-1], other[-1]
    count = next((n for n in range(1, min(len(one), len(other))) if one[-n:] != other[-n:]), max(len(one), len(other)))
    return "/".join(one[-count:]), "/".join(other[-count:])


def _short_list(label: str) -> str:
    numbers = label.replace("run:", "").split(",")
    listed = len(numbers) > 1 and label == ",".join(f"run:{number}" for number in numbers)
    return f"runs {format_numbers(sorted(map(int, numbers)))}" if listed else label
