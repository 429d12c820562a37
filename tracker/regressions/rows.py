"""The judgement of a track as rows of the database, and back: places of versions become their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags
from tracker.detect import CHANGES, JudgedSeries, KindCode, Reason, Thresholds, Verdict
from tracker.detect.power import detectable_change
from tracker.detect.sides import exact_changes
from tracker.regressions.lifecycle import UNDECIDED, Finding, TrackState, VersionResult
from tracker.regressions.track import BEGINNING, Track, geometric_mean
from tracker.store import bulk, judged
from tracker.store.bulk import Column
from tracker.store.regressions import FindingRow, IncidentRow, JudgedRow, Levels

DIRECTIONS: Final = {1: "regression", -1: "improvement"}
SIGNS: Final = {word: sign for sign, word in DIRECTIONS.items()}
GONE: Final = 2**40
"""The place of a version that has no runs any more: behind all others."""


def load_levels(state: TrackState, at: int, stored: Levels, ids: I64, place: dict[int, int]) -> None:
    """Take the levels of a version as they are stored into a state; series that it lacks are at their first level."""
    where = judged.places_in(ids, stored.series_ids)
    state.levels[at] = np.append(_places(stored.levels, place), BEGINNING)[where]
    state.settled[at] = np.append(_places(stored.settled, place), at)[where]
    state.waits[at] = np.append(stored.waits, 0)[where]


def _places(versions: I64, place: dict[int, int]) -> I64:
    distinct, inverse = np.unique(versions, return_inverse=True)
    own = {UNDECIDED: UNDECIDED, BEGINNING: BEGINNING}
    mapped = np.array([own.get(one, place.get(one, GONE)) for one in distinct.tolist()], dtype=np.int64)
    return np.asarray(mapped[inverse])


def stored_levels(state: TrackState, at: int, keep: Flags | None, ids: I64, order: Sequence[int]) -> Levels:
    """The levels of a version as they are stored, of the series that are `keep` (None: all) or not at their first
    level.
    """
    number = np.array([BEGINNING, *order, UNDECIDED], dtype=np.int64)  # -1 is the last one
    levels = state.levels[at]
    rows = np.arange(len(ids)) if keep is None else np.flatnonzero(keep | (levels != BEGINNING))
    rows = rows[np.argsort(ids[rows])]
    settled = number[np.maximum(state.settled[at][rows], 0)]
    return Levels(ids[rows], number[levels[rows]], settled, state.waits[at][rows])


def changed_levels(before: TrackState, after: TrackState, at: int) -> bool:
    """Whether a version was decided, or is no longer."""
    pairs = ((before.levels, after.levels), (before.settled, after.settled), (before.waits, after.waits))
    return any(not np.array_equal(one[at], other[at]) for one, other in pairs)


def decided_in(before: TrackState, after: TrackState, at: int, ids: I64) -> list[tuple[int, str | None]]:
    """What became of the series of a version that waited, or wait again (None)."""
    rows = np.flatnonzero(before.levels[at] != after.levels[at])
    return [(int(ids[row]), decided_word(after, at, row)) for row in rows.tolist()]


def decided_word(state: TrackState, at: int, row: int) -> str | None:
    """What became of a series that was suspect in a version; None while it waits.

    A change where a level begins with the version, or where an open finding is over in it; else UNCHANGED: the version
    belongs to a level that began before, or was no change after all.
    """
    level, sign = int(state.levels[at][row]), int(state.waits[at][row])
    if level == UNDECIDED:
        return None
    own = [one for one in state.findings if one.series == row and one.state != "withdrawn"]
    how = next((one.how for one in own if one.first_version == at), "level")
    if level == at and sign:
        return verdict_word(sign, how)
    for one in own:
        if one.ended_version == at and one.state in ("recovered", "taken back"):
            return verdict_word(-one.sign, one.how)
    return Verdict.UNCHANGED.name


def verdict_word(sign: int, how: str) -> str:
    """The verdict of a change that was found.

    >>> verdict_word(1, "gradual"), verdict_word(-1, "presence")
    ('REGRESSED', 'REMOVED')
    """
    if how == "presence":
        return (Verdict.ADDED if sign > 0 else Verdict.REMOVED).name
    return (Verdict.REGRESSED if sign > 0 else Verdict.IMPROVED).name


def finding_of(row: FindingRow, at: dict[int, int], place: dict[int, int]) -> Finding:
    """A finding as the fold knows it, from its row."""
    return Finding(
        series=at[row.series_id],
        sign=SIGNS[row.direction],
        how=row.how,
        first_version=place.get(row.first_version_id, GONE),
        decided_version=place.get(row.decided_version_id, GONE),
        reference=tuple(map(int, row.reference_runs.split())),
        reference_level=place.get(row.reference_level_id, BEGINNING if row.reference_level_id == BEGINNING else GONE),
        size=row.size,
        contribution=row.contribution,
        q=np.nan if row.q is None else row.q,
        faster=row.was_faster,
        state=row.state,
        ended_version=0 if row.ended_version_id is None else place.get(row.ended_version_id, GONE),
        ended_by=0 if row.ended_by_version_id is None else place.get(row.ended_by_version_id, GONE),
    )


def finding_row(
    one: Finding, ids: I64, order: Sequence[int], old: FindingRow | None, data: Track | None, version: int
) -> FindingRow:
    """The row of a finding; what decided it is frozen when it is found. `version`: the one that is judged with `data`;
    `old`: its row as it is.
    """
    ended = order[one.ended_version - 1] if one.ended_version else None
    ended_by = order[one.ended_by - 1] if one.ended_by else None
    if old is not None and (data is None or one.state == "withdrawn" or one.decided_version != version):
        return replace(old, state=one.state, ended_version_id=ended, ended_by_version_id=ended_by)
    assert data is not None
    base = np.isin(data.run_ids, one.reference)
    new = data.versions >= one.first_version
    numbers = [
        float(geometric_mean(table[one.series : one.series + 1], side)[0])
        for table in (data.values, data.calls)
        for side in (base, new)
    ]
    counted = not np.isnan(data.calls[one.series, base | new]).all()
    return FindingRow(
        series_id=int(ids[one.series]),
        direction=DIRECTIONS[one.sign],
        how=one.how,
        first_version_id=order[one.first_version - 1],
        decided_version_id=order[one.decided_version - 1],
        reference_level_id=order[one.reference_level - 1] if one.reference_level else BEGINNING,
        reference_runs=" ".join(map(str, one.reference)),
        new_runs=" ".join(map(str, data.run_ids[new].tolist())),
        size=one.size,
        q=None if np.isnan(one.q) else one.q,
        contribution=one.contribution,
        value_before=numbers[0],
        value_after=numbers[1],
        calls_before=numbers[2] if counted else None,
        calls_after=numbers[3] if counted else None,
        is_leaf=bool(data.series.leaf[one.series]),
        was_faster=one.faster,
        state=one.state,
        ended_version_id=ended,
        ended_by_version_id=ended_by,
    )


def step_reference(data: Track, result: VersionResult) -> tuple[int, tuple[int, ...]]:
    """The series that is the step of a version: its own, else end to end, the first one where it has neither; and the
    ids of the runs that it is compared with.
    """
    now = result.now
    row = next((row for row in data.series.steps if result.judged.new_runs[row] > 0), 0)
    return row, now.reference(row, int(now.current[row])) if len(now.current) else ()


def incidents_of(data: Track, state: TrackState, result: VersionResult, order: Sequence[int]) -> Iterator[IncidentRow]:
    """The incidents of the findings that a version decided: one for each version that they are dated to, with older
    findings of that version. JUDGEMENT, section 6.

    The change of the step in parts (ns per step) whose sum it is exactly. `operators`: found to be slower or faster;
    `new`, `gone`: found operators of one side only; `machine`: the common-mode shift times the operators that are no
    finding; `other_operators`: what else those changed by; `beside`: whatever is in the step and in no operator. NULL
    where a side has no step.
    """
    now, leaf = result.now, data.series.leaf
    base = step_reference(data, result)[1]
    for first in sorted({one.first_version for one in result.found}):
        sides = np.isin(data.run_ids, base), np.isin(data.run_ids, now.run_ids[now.since(first)])
        old = now.window.shift[np.isin(now.run_ids, base)]
        shift = now.window.shift[now.since(first)].mean() - (old.mean() if len(old) else 0.0)
        before, after = (geometric_mean(data.values[leaf], side) for side in sides)
        step = [geometric_mean(data.step[None, :], side)[0] for side in sides]
        is_found = np.zeros(len(leaf), dtype=bool)
        rows = [one.series for one in state.findings if one.first_version == first and one.state != "withdrawn"]
        is_found[rows] = True
        found, change = is_found[leaf], after - before
        is_new, is_gone = found & (before == 0), found & (after == 0)
        machine = (before * np.expm1(shift))[~found & (before > 0) & (after > 0)].sum()
        parts = (
            step[0], step[1], change[found & ~is_new & ~is_gone].sum(), change[is_new].sum(), change[is_gone].sum(),
            machine, change[~found].sum() - machine, (step[1] - after.sum()) - (step[0] - before.sum()),
        )  # fmt: skip
        yield IncidentRow(order[first - 1], *(None if np.isnan(one) else float(one) for one in parts))


def judged_row(data: Track, result: VersionResult, version: int, rests_on: bytes) -> JudgedRow:
    """The row of a version: its runs, those that its step was judged against, and what its gate needs.

    `net`: change by the operators that were found in it, as a share of the step; `peak`: rise of peak memory.
    """
    kind, (row, base) = data.series.kind, step_reference(data, result)
    sides = [np.isin(data.run_ids, base), data.versions == result.now.version]
    step = [float(geometric_mean(data.step[None, :], side)[0]) or None for side in sides]
    found = [one for one in result.found if one.state == "open" and data.series.leaf[one.series]]
    peaks = [_rise_of_peak(result, row) for row in np.flatnonzero(kind == KindCode.PEAK).tolist()]
    is_step = len(kind) > 0 and kind[row] == KindCode.STEP
    return JudgedRow(
        version_id=version,
        rests_on=rests_on,
        runs=" ".join(map(str, sorted(data.run_ids[sides[1]].tolist()))),
        base_runs=" ".join(map(str, base)),
        step_before_ns=step[0],
        step_after_ns=step[1],
        shared_factor=float(result.now.window.shift[result.now.new].mean()),
        step_verdict=Verdict(int(result.judged.verdict[row])).name if is_step else None,
        net=sum(one.contribution for one in found),
        peak=max(peaks, default=0.0),
    )


def _rise_of_peak(result: VersionResult, row: int) -> float:
    """How far the peak memory of a version is above its level and above the version before: the smaller rise."""
    now = result.now
    logs = now.window.logs[row]
    before = now.versions[now.looked_back]
    last = now.looked_back & (now.versions == (before[-1] if len(before) else -1))
    rises = [float(result.judged.change[row])]
    if last.any():
        rises.append(float(logs[now.new].mean() - logs[last].mean()))
    return float(np.nan_to_num(np.expm1(min(rises))))


def verdict_columns(
    data: Track, state: TrackState, result: VersionResult, order: Sequence[int], limits: Thresholds
) -> list[Column]:
    """The columns of the table `verdict`, of series of which something is to be said: all that were there before and
    that are the step or large enough to be tested, and all that changed. `state`: after the version.
    """
    own, ids = result.judged, data.ids
    said, reasons = stated(data, own)
    rows = np.flatnonzero(said)
    rows = rows[np.argsort(ids[rows])]
    number = np.array([BEGINNING, *order], dtype=np.int64)
    columns = numbers_of(data, own, limits)
    # of a version of one run: that of more, where still more are to decide, does not wait for other versions
    suspect = (own.verdict[rows] == Verdict.SUSPECT) & result.now.is_single
    pairs = zip(rows.tolist(), suspect.tolist(), strict=True)
    return [
        bulk.integers("series_id", ids[rows]),
        bulk.integers("level_version_id", number[np.maximum(result.now.current[rows], 0)]),
        Column("verdict", "text", [Verdict(code).name for code in own.verdict[rows].tolist()]),
        Column(
            "decided",
            "text",
            [decided_word(state, result.now.version, row) if is_one else None for row, is_one in pairs],
        ),
        Column("reason", "text", [Reason(code).name for code in reasons[rows].tolist()]),
        *(bulk.floats(name, numbers[rows]) for name, numbers in columns.items()),
        bulk.integers("base_runs", own.base_runs[rows]),
    ]


def stated(data: Track, own: JudgedSeries) -> tuple[Flags, I64]:
    """Of which series something is to be said, and the reason of each verdict."""
    said = ~np.isnan(own.p) | np.isin(own.verdict, CHANGES) | (own.suspect != 0)
    said |= data.series.of_step & (own.verdict != Verdict.ABSENT)
    settings = (own.base_runs == 0) & (own.new_runs > 0) & ~data.alike.all(axis=1)
    said |= settings & data.series.leaf
    return said, np.where(settings & (own.reason == Reason.FEW_BASE), Reason.SETTINGS, own.reason)


def numbers_of(data: Track, own: JudgedSeries, limits: Thresholds) -> dict[str, F64]:
    """The numbers of verdicts as ratios and shares, by the columns of the table `verdict`."""
    sign = np.where(data.series.more_is_better, -1.0, 1.0)
    least = detectable_change(own, data.series.family, limits)
    return {
        "change": np.expm1(sign * own.raw_change), "judged_change": np.expm1(sign * own.change), "p": own.p, "q": own.q,
        "contribution": own.contribution, "detectable": np.expm1(least),
    }  # fmt: skip


def facts_of(data: Track, result: VersionResult) -> list[tuple[int, str, float, float]]:
    """The rows of the table `fact`: calls per step, and bytes of peak memory."""
    now, kind = result.now, data.series.kind
    is_peak = kind == KindCode.PEAK
    rows = np.flatnonzero(data.series.leaf | (kind == KindCode.COMMUNICATION) | is_peak)
    numbers = np.where(is_peak[:, None], data.values, data.calls)[np.ix_(rows, np.isin(data.run_ids, now.run_ids))]
    found = exact_changes(numbers, (now.level(now.current) & now.window.recorded)[rows], now.new)
    own = rows[found.series]
    what = np.where(is_peak[own], "bytes", "calls").tolist()
    return sorted(zip(data.ids[own].tolist(), what, found.before.tolist(), found.after.tolist(), strict=True))
