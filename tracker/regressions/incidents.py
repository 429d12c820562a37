"""What a version changed, in parts that add up, and which operators took the place of others. JUDGEMENT, section 6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detect import KindCode
from tracker.regressions.state import Finding, TrackState
from tracker.regressions.track import Track, geometric_mean
from tracker.regressions.walk import VersionResult

I64 = NDArray[np.int64]


class IncidentParts(Struct, frozen=True):
    """The findings of one first version, and the change of the step in parts (ns per step).

    `operators`: found to be slower or faster; `new`, `gone`: found operators of one side only; `machine`: the
    common-mode shift times the operators that are no finding; `other_operators`: what else those changed by; `beside`:
    communication, copies, idle time, whatever is in the step and in no operator. after - before is exactly their sum.
    `net`: of the found operators, as a share of the larger step.
    """

    first_version: int
    findings: Sequence[Finding]
    before: float
    after: float
    operators: float
    new: float
    gone: float
    machine: float
    other_operators: float
    beside: float

    @property
    def net(self) -> float:
        """Change by the operators that were found, as a share of the larger step."""
        whole = max(self.before, self.after)
        return (self.operators + self.new + self.gone) / whole if whole > 0 else 0.0


def incidents_of(track: Track, state: TrackState, result: VersionResult) -> Iterator[IncidentParts]:
    """The incidents of the findings that a version decided: one for each version that they are dated to.

    The findings of a version are led by the step, then by their contribution. Older findings of the same first version
    belong to it.
    """
    for first in sorted({one.first_version for one in result.found}):
        own = [one for one in state.findings if one.first_version == first and one.state != "withdrawn"]
        kind = track.series.kind
        own.sort(key=lambda one: (kind[one.series] != KindCode.STEP, -abs(one.contribution)))
        now = result.evidence
        new = np.isin(track.run_ids, now.run_ids[now.since(first)])
        runs = step_reference(track, result)
        base = np.isin(track.run_ids, runs)
        before = now.window.shift[np.isin(now.run_ids, runs)]
        shift = now.window.shift[now.since(first)].mean() - (before.mean() if len(before) else 0.0)
        yield incident_of(track, own, first, base, new, float(shift))


def step_row(track: Track, result: VersionResult) -> int:
    """The series that is the step of a version: its own, else end to end; the first one where it has neither."""
    kind = track.series.kind
    rows = [*np.flatnonzero(kind == KindCode.STEP), *np.flatnonzero(kind == KindCode.WHOLE)]
    return next((int(row) for row in rows if result.judged.new_runs[row] > 0), 0)


def step_reference(track: Track, result: VersionResult) -> tuple[int, ...]:
    """Ids of the runs that the step of a version is compared with."""
    now, row = result.evidence, step_row(track, result)
    return now.reference(row, int(now.current[row])) if len(track.series.kind) else ()


def incident_of(
    track: Track, findings: Sequence[Finding], first: int, base: NDArray[np.bool_], new: NDArray[np.bool_], shift: float
) -> IncidentParts:
    """Split the change of the step between the runs `base` and `new` (runs,); `shift`: common-mode shift, a log."""
    leaf = track.series.leaf
    before, after = (geometric_mean(track.values[leaf], side) for side in (base, new))
    step = [geometric_mean(track.step[None, :], side)[0] for side in (base, new)]
    place = np.cumsum(leaf) - 1
    found = np.zeros(len(before), dtype=bool)
    found[[place[one.series] for one in findings if leaf[one.series]]] = True
    change = after - before
    is_new, is_gone = found & (before == 0), found & (after == 0)
    machine = float((before * np.expm1(shift))[~found & (before > 0) & (after > 0)].sum())
    return IncidentParts(
        first_version=first,
        findings=findings,
        before=float(step[0]),
        after=float(step[1]),
        operators=float(change[found & ~is_new & ~is_gone].sum()),
        new=float(change[is_new].sum()),
        gone=float(change[is_gone].sum()),
        machine=machine,
        other_operators=float(change[~found].sum()) - machine,
        beside=float((step[1] - after.sum()) - (step[0] - before.sum())),
    )


class Moved(Struct, frozen=True):
    """An operator whose calls rose or fell, or that came or went.

    `series`: its row; `change`: ns per step; `calls_before`, `calls_after`: per step, 0 for absent; `shapes`; `places`:
    parents and modules that call it.
    """

    series: int
    change: float
    calls_before: float
    calls_after: float
    shapes: str = ""
    places: frozenset[str] = frozenset()

    @property
    def calls(self) -> float:
        """How many calls per step it gained."""
        return self.calls_after - self.calls_before


class Replacement(Struct, frozen=True):
    """Operators that went and those that came in their place: rows, and the net change of their time (ns per step)."""

    gone: tuple[int, ...]
    come: tuple[int, ...]
    net: float


def replacements(moved: Sequence[Moved]) -> list[Replacement]:
    """Groups of operators of which some lost calls and some gained them in one place.

    One place: a parent or module that both have; or the same shapes and as many calls gained as lost.
    """
    went = [one for one in moved if one.calls < 0]
    came = [one for one in moved if one.calls > 0]
    group = {one.series: one.series for one in moved}
    for old in went:
        for new in came:
            same = bool(old.shapes) and old.shapes == new.shapes and old.calls == -new.calls
            if same or old.places & new.places:
                target, source = group[old.series], group[new.series]
                group = {row: target if own == source else own for row, own in group.items()}
    found = []
    for own in dict.fromkeys(group[one.series] for one in went):
        gone = [one for one in went if group[one.series] == own]
        come = [one for one in came if group[one.series] == own]
        if come:
            net = sum(one.change for one in (*gone, *come))
            found.append(Replacement(tuple(one.series for one in gone), tuple(one.series for one in come), net))
    return found


def cause_words(before: float, after: float, calls_before: float, calls_after: float) -> tuple[str, float, float]:
    """What changed an operator: the word, and its change (ns per step) by calls and by time per call; both add up.

    Change = calls gained x old time per call + new calls x change of the time per call. The larger part names it.

    >>> cause_words(100.0, 200.0, 10.0, 20.0)
    ('more calls', 100.0, 0.0)
    >>> cause_words(100.0, 130.0, 10.0, 10.0)[0], cause_words(0.0, 5.0, 0.0, 1.0)
    ('slower per call', ('new', 5.0, 0.0))
    """
    if before == 0 or after == 0:
        return ("new" if before == 0 else "gone"), after - before, 0.0
    if not (calls_before > 0 and calls_after > 0):
        return ("slower" if after > before else "faster"), 0.0, after - before
    by_calls = (calls_after - calls_before) * before / calls_before
    by_time = after - before - by_calls
    if abs(by_calls) > abs(by_time):
        return ("more calls" if by_calls > 0 else "fewer calls"), by_calls, by_time
    return ("slower per call" if by_time > 0 else "faster per call"), by_calls, by_time
