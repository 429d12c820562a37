"""What judging a version gives, as rows of the database: its verdicts, facts, findings and incidents.

In memory versions are places in their order, in the database they are ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, compress
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import Connection

from tracker.columns import F64, I64, Flags
from tracker.detect import CHANGES, JudgedSeries, KindCode, Reason, Verdict
from tracker.detect.bases import own_bases
from tracker.detect.coverage import count_coverage
from tracker.detect.power import detectable_change
from tracker.detect.sides import exact_changes
from tracker.detect.track import Track, VersionRuns
from tracker.regressions.lifecycle import DRIFTS, HOST, LATE, MACHINE, UNDECIDED, Finding, TrackState, VersionResult
from tracker.regressions.step_kinds import JudgedKind, JudgedVersion
from tracker.regressions.track import BEGINNING, geometric_mean
from tracker.results.coverage import Coverage
from tracker.results.verdicts import NOT_CONFIRMED
from tracker.schema.column_names import BASE_RUNS, LEVEL_VERSION_ID, SERIES_ID
from tracker.schema.series import UNPROFILED
from tracker.store import bulk
from tracker.store.bulk import Column
from tracker.store.findings import FindingRow, IncidentRow, JudgedRow, Levels
from tracker.store.samples.statistics import over_runs
from tracker.store.sql import statement

DIRECTIONS: Final = {1: "regression", -1: "improvement"}
SIGNS: Final = {word: sign for sign, word in DIRECTIONS.items()}

_VERSIONS: Final = ("first_version", "decided_version", "reference_level", "ended_version", "ended_by_version")
"""Fields of a finding that are places of versions in the fold, and ids in its row."""
_VERDICT_NAMES: Final = {int(code): code.name for code in Verdict}
_REASON_NAMES: Final = {int(code): code.name for code in Reason}
GONE: Final = 2**40
"""The place of a version that has no runs any more: behind all others."""


def time_of_kinds(connection: Connection, judged: JudgedVersion, run_ids: Sequence[int]) -> dict[str, float]:
    """Return how long the steps of each kind took in these runs, in ns; nothing where a version has no kinds."""
    if len(judged.kinds) == 1:
        return {}
    rows = connection.execute(statement("kind_times"), {"run_ids": sorted(run_ids) or [-1]}).all()
    return {row.step_kind: float(row.total_ns) for row in rows}


def incidents_of_kinds(judged: JudgedVersion, main: JudgedKind, order: Sequence[int]) -> list[IncidentRow]:
    """Return the incidents of a version, one for each version that findings are dated to: by the kind of steps that
    stands for it, `main`, or where that has no finding, by another one.
    """
    found: dict[int, IncidentRow] = {}
    others = sorted((one for one in judged.kinds if one is not main), key=lambda one: one.of_whole)
    for one in (main, *others):
        for row in incidents_of(one.track, one.state, one.result, order):
            found.setdefault(row.first_version_id, replace(row, step_kind=one.step_kind))
    return [found[version] for version in sorted(found)]


def judged_row_of_kind(judged: JudgedVersion, main: JudgedKind, version: int, rests_on: bytes) -> JudgedRow:
    """Return the row of a version, by the kind of steps that stands for it, with the peak of the whole captures."""
    row = replace(judged_row(main.track, main.state, main.result, version, rests_on), step_kind=main.step_kind)
    row = replace(row, coverage=coverage_of_kinds(judged).numbers)
    peaks = [
        judged_row(one.track, one.state, one.result, version, rests_on).peak for one in judged.kinds if one.of_whole
    ]
    return replace(row, peak=max(peaks)) if peaks else row


def coverage_of_kinds(judged: JudgedVersion) -> Coverage:
    """Return how many series of all kinds of steps were judged.

    Beside kinds, all steps together count only where runs without kinds were there to compare with.
    """
    whole = Coverage()
    for one in judged.kinds:
        own = one.result.judged
        is_beside_kinds = len(judged.kinds) > 1 and not one.step_kind and not one.of_whole
        if is_beside_kinds and not own.base_runs.any():
            continue
        _, reasons = stated(one.track, own)
        whole = whole.add(count_coverage(own, reasons, one.track.series, one.result.now.limits))
    return whole


def verdict_columns_of_kinds(judged: JudgedVersion, order: Sequence[int]) -> list[Column]:
    """Return the columns of the table `verdict` of all kinds of steps.

    Beside kinds a verdict on all steps together stands only where runs without kinds were there to compare with.
    """
    parts = []
    for one in judged.kinds:
        columns = verdict_columns(one.track, one.state, one.result, order)
        if len(judged.kinds) > 1 and not one.step_kind and not one.of_whole:
            (base_runs,) = (column.values for column in columns if column.name == BASE_RUNS)
            is_kept = [bool(count) for count in base_runs]
            columns = [replace(column, values=[*compress(column.values, is_kept)]) for column in columns]
        parts.append(columns)
    if len(parts) == 1:
        return parts[0]
    return [
        replace(own[0], values=[*chain.from_iterable(part.values for part in own)]) for own in zip(*parts, strict=True)
    ]


def facts_of_kinds(judged: JudgedVersion) -> list[tuple[int, str, float, float]]:
    """Return the rows of the table `fact` of all kinds of steps."""
    return sorted(chain.from_iterable(facts_of(one.track, one.result) for one in judged.kinds))


def stored_levels(state: TrackState, at: int, keep: Flags | None, ids: I64, order: Sequence[int]) -> Levels:
    """Return the levels of a version as they are stored, of the series that are `keep` (None: all) or not at their
    first level.
    """
    number = np.array([BEGINNING, *order, UNDECIDED], dtype=np.int64)  # -1 is the last one
    levels = state.levels[at]
    rows = np.arange(len(ids)) if keep is None else np.flatnonzero(keep | (levels != BEGINNING))
    rows = rows[np.argsort(ids[rows])]
    settled = number[np.maximum(state.settled[at][rows], 0)]
    return Levels(ids[rows], number[levels[rows]], settled, state.waits[at][rows])


def decided_word(state: TrackState, at: int, row: int) -> str | None:
    """Return what became of a series that was suspect in a version; None while it waits.

    A change where a level begins with the version, or with an older one that waited with it, or where an open finding
    is over in it; else NOT_CONFIRMED: later runs are as those before it.
    """
    level, sign = int(state.levels[at][row]), int(state.waits[at][row])
    if level == UNDECIDED or abs(sign) == DRIFTS:
        return None  # a drift stays one, whatever later runs decide
    own = [one for one in state.findings if one.series == row and one.state != "withdrawn"]
    how = next((one.how for one in own if one.first_version == at), "level")
    is_found = any(one.first_version == at for one in own)
    # a fall beside an open regression is no finding, and moves the level
    is_fall = sign < 0 and any(one.sign > 0 and one.first_version < at <= (one.ended_version or at) for one in own)
    if level == at and sign and (is_found or is_fall):
        return verdict_word(sign, how)
    for one in own:
        if one.how in (HOST, LATE) and one.first_version <= at <= one.decided_version and sign == one.sign:
            return verdict_word(sign, one.how)
        if one.ended_version <= at <= one.ended_by_version and one.state in ("recovered", "taken back"):
            return verdict_word(-one.sign, one.how)
        if one.first_version == level < at <= one.decided_version and sign in (0, one.sign):
            return verdict_word(one.sign, one.how)
    return NOT_CONFIRMED


def verdict_word(sign: int, how: str) -> str:
    """Return the verdict of a change that was found.

    >>> verdict_word(1, "gradual"), verdict_word(-1, "presence"), verdict_word(1, "machine")
    ('REGRESSED', 'REMOVED', 'DRIFT')
    """
    if how == MACHINE:
        return Verdict.DRIFT.name
    if how == "presence":
        return (Verdict.ADDED if sign > 0 else Verdict.REMOVED).name
    return (Verdict.REGRESSED if sign > 0 else Verdict.IMPROVED).name


def finding_of(row: FindingRow, at: dict[int, int], place: dict[int, int]) -> Finding:
    """Return a finding as the fold has it, from its row. `place`: of versions, of BEGINNING as well."""
    return Finding(
        at[row.series_id], SIGNS[row.direction], row.how, reference=tuple(map(int, row.reference_runs.split())),
        size=row.size, contribution=row.contribution, q=np.nan if row.q is None else row.q, faster=row.was_faster,
        state=row.state, stored=row,
        **{name: place.get(getattr(row, f"{name}_id") or BEGINNING, GONE) for name in _VERSIONS},
    )  # fmt: skip


def finding_row(one: Finding, ids: I64, order: Sequence[int], data: Track | None, version: int) -> FindingRow:
    """Return the row of a finding; what decided it is frozen when it is found.

    `version`: that is judged with `data`.
    """
    ended: dict[str, Any] = {
        f"{name}_id": order[at - 1] if (at := getattr(one, name)) else None for name in _VERSIONS[3:]
    }
    if one.stored is not None and (one.state == "withdrawn" or one.decided_version != version):
        return replace(one.stored, state=one.state, **ended)
    assert data is not None
    base = np.isin(data.run_ids, one.reference)
    new = data.versions >= one.first_version
    numbers = [
        float(geometric_mean(table[one.series : one.series + 1], side)[0])
        for table in (data.values, data.calls)
        for side in (base, new)
    ]
    counted = not np.isnan(data.calls[one.series, base | new]).all()
    number = (BEGINNING, *order)
    return FindingRow(
        int(ids[one.series]), DIRECTIONS[one.sign], one.how,
        **{f"{name}_id": number[getattr(one, name)] for name in _VERSIONS[:3]},
        reference_runs=" ".join(map(str, one.reference)), new_runs=" ".join(map(str, data.run_ids[new].tolist())),
        size=one.size, q=None if np.isnan(one.q) else one.q, contribution=one.contribution,
        value_before=numbers[0], value_after=numbers[1], calls_before=numbers[2] if counted else None,
        calls_after=numbers[3] if counted else None, is_leaf=bool(data.series.leaf[one.series]),
        was_faster=one.faster, state=one.state, **ended,
    )  # fmt: skip


def step_reference(data: Track, result: VersionResult) -> tuple[int, tuple[int, ...]]:
    """Return the series that is the step of a version, and the ids of the runs that it is compared with.

    The step is its own, without a profiler where that is known, else end to end, and the first series where it has
    neither.
    """
    now, judged = result.now, result.judged
    row = data.series.choose_step(judged.new_runs, judged.base_runs) or 0
    return row, now.reference(row, judged) if len(now.current) else ()


def _step_of_runs(data: Track, row: int, runs: Flags) -> float | None:
    """Return the step of some runs, ns, by the series `row`, that of another kind where it is none; None: not known."""
    is_step = len(data.series.kind) > 0 and row in data.series.steps
    steps = data.values[row] if is_step else data.measured_step
    return float(geometric_mean(steps[None, :], runs)[0]) or None


def shift_between(now: VersionRuns, base: Sequence[int], new: Flags) -> float:
    """Return the common-mode shift of the runs `new` (runs,) less that of the runs `base` (ids), a log."""
    before = now.window.shift[np.isin(now.run_ids, base)]
    return float(now.window.shift[new].mean() - (before.mean() if len(before) else 0.0))


def incidents_of(data: Track, state: TrackState, result: VersionResult, order: Sequence[int]) -> Iterator[IncidentRow]:
    """Yield the incidents of the findings that a version decided: one for each version that they are dated to, with
    older findings of that version. docs/every-morning.md names what stands in them.

    The change of the step in parts (ns per step) whose sum it is exactly. `operators`: found to be slower or faster;
    `new`, `gone`: found operators of one side only; `machine`: the common-mode shift times the operators that are no
    finding; `other_operators`: what else those changed by; `earlier`: operators that changed, or had another level,
    are compared with their own runs (`detect.bases`), and would have changed by this much more against those of the
    step; `beside`: whatever is in the step and in no operator. NULL where a side has no step, and where neither has an
    operator: a training log does not split its steps, nor does a trace that of the log beside it.
    """
    now, leaf = result.now, data.series.leaf
    row, base = step_reference(data, result)
    own_numbers, own_shifts = _of_own_bases(data, result, base)
    for first in sorted({one.first_version for one in result.found}):
        sides = np.isin(data.run_ids, base), np.isin(data.run_ids, now.run_ids[now.since(first)])
        shift = shift_between(now, base, now.since(first))
        before, after = (geometric_mean(data.values[leaf], side) for side in sides)
        old_step, new_step = (_step_of_runs(data, row, side) for side in sides)
        # operators under a profiler are no parts of a step without one
        is_split = bool(before.any() or after.any()) and data.series.part[row] != UNPROFILED
        if old_step is None or new_step is None or not is_split:
            yield IncidentRow(order[first - 1], old_step, new_step)
            continue
        findings = [one for one in state.findings if one.first_version == first and one.state != "withdrawn"]
        leaves = np.flatnonzero(leaf)
        found = np.isin(leaves, [one.series for one in findings])
        own_before, own_shift = before.copy(), np.full(len(before), shift)
        if first == now.version:
            own_before, own_shift = own_numbers[leaf], own_shifts[leaf]
        for reference in {one.reference for one in findings}:
            of_reference = np.isin(leaves, [one.series for one in findings if one.reference == reference])
            runs = np.isin(data.run_ids, reference)
            if runs.any():
                own_before[of_reference] = geometric_mean(data.values[leaves[of_reference]], runs)
        change = after - own_before
        is_new, is_gone = found & (own_before == 0), found & (after == 0)
        machine = (own_before * np.expm1(own_shift))[~found & (own_before > 0) & (after > 0)].sum()
        yield IncidentRow(
            order[first - 1], old_step, new_step,
            operators_ns=float(change[found & ~is_new & ~is_gone].sum()),
            new_ns=float(change[is_new].sum()),
            gone_ns=float(change[is_gone].sum()),
            machine_ns=float(machine),
            other_operators_ns=float(change[~found].sum() - machine),
            earlier_ns=float((own_before - before).sum()),
            beside_ns=float((new_step - after.sum()) - (old_step - before.sum())),
        )  # fmt: skip


def _of_own_bases(data: Track, result: VersionResult, step: Sequence[int]) -> tuple[F64, F64]:
    """Return the number of each series in the runs that it is compared with, 0 where none of them has it; and the
    common-mode shift of the new runs less that of these, a log.

    `step`: the ids of the runs that the step is compared with.
    """
    now = result.now
    base, _ = own_bases(now, result.judged, np.isin(now.run_ids, step))
    place = {run: column for column, run in enumerate(data.run_ids.tolist())}
    values = data.values[:, [place[run] for run in now.run_ids.tolist()]]
    shift = now.window.shift
    of_base = np.where(base, shift, 0.0).sum(axis=1) / np.maximum(base.sum(axis=1), 1)
    return np.nan_to_num(over_runs(np.where(base, values, np.nan))), shift[now.new].mean() - of_base


def judged_row(data: Track, state: TrackState, result: VersionResult, version: int, rests_on: bytes) -> JudgedRow:
    """Return the row of a version: its runs, those that its step was judged against, and what its gate needs.

    `state`: after the version.

    `net`: change by the operators that were found in it, as a share of the step; `peak`: rise of peak memory.
    """
    now, kind, (row, base) = result.now, data.series.kind, step_reference(data, result)
    sides = [np.isin(data.run_ids, base), data.versions == now.version]
    step = [_step_of_runs(data, row, side) for side in sides]
    found = [one for one in result.found if one.state == "open" and data.series.leaf[one.series]]
    last = now.looked_back & (now.versions == now.versions[now.looked_back].max(initial=-1))
    peaks = []
    for at in np.flatnonzero(kind == KindCode.PEAK).tolist():
        # above its level and above the version before: the smaller rise
        logs, rises = now.window.logs[at], [float(result.judged.change[at])]
        if last.any():
            rises.append(float(logs[now.new].mean() - logs[last].mean()))
        peaks.append(float(np.nan_to_num(np.expm1(min(rises)))))
    word = None
    if len(kind) > 0 and kind[row] == KindCode.STEP:
        word = Verdict(int(result.judged.verdict[row])).name
        if now.is_single and word == Verdict.SUSPECT.name:
            # it may be the run that decides those before it
            word = decided_word(state, now.version, row) or word
    if len(kind) > 0 and data.other_work[row].any() and not result.judged.base_runs[row]:
        # no number of runs would decide it
        word = None
    return JudgedRow(
        version_id=version,
        rests_on=rests_on,
        runs=" ".join(map(str, sorted(data.run_ids[sides[1]].tolist()))),
        base_runs=" ".join(map(str, base)),
        step_before_ns=step[0],
        step_after_ns=step[1],
        shared_factor=shift_between(now, base, now.new),
        step_verdict=word,
        net=sum(one.contribution for one in found),
        peak=max(peaks, default=0.0),
    )


def verdict_columns(data: Track, state: TrackState, result: VersionResult, order: Sequence[int]) -> list[Column]:
    """Return the columns of the table `verdict`, for the step, for series that were tested, and for those that changed.
    `state`: after the version.
    """
    own, ids = result.judged, data.ids
    said, reasons = stated(data, own)
    rows = np.flatnonzero(said)
    rows = rows[np.argsort(ids[rows])]
    number = np.array([BEGINNING, *order], dtype=np.int64)
    numbers = asdict(numbers_of(data, own))
    # of a version of one run: that of more, where still more are to decide, does not wait for other versions
    suspect = (own.suspect[rows] != 0) & result.now.is_single
    pairs = zip(rows.tolist(), suspect.tolist(), strict=True)
    return [
        bulk.integers(SERIES_ID, ids[rows]),
        bulk.integers(LEVEL_VERSION_ID, number[np.maximum(result.now.current[rows], 0)]),
        Column("verdict", "text", [_VERDICT_NAMES[code] for code in own.verdict[rows].tolist()]),
        Column(
            "decided",
            "text",
            [decided_word(state, result.now.version, row) if is_one else None for row, is_one in pairs],
        ),
        Column("reason", "text", [_REASON_NAMES[code] for code in reasons[rows].tolist()]),
        *(bulk.floats(name, values[rows]) for name, values in numbers.items()),
        bulk.integers(BASE_RUNS, own.base_runs[rows]),
    ]


def stated(data: Track, own: JudgedSeries, runs: Flags | None = None) -> tuple[Flags, I64]:
    """Return which series have a verdict to state, and the reason of each verdict. `runs` (runs,): those that are
    compared, None: all.
    """
    compared = np.ones(len(data.versions), dtype=bool) if runs is None else runs
    said = ~np.isnan(own.p) | np.isin(own.verdict, CHANGES) | (own.suspect != 0)
    said |= data.series.of_step & (own.verdict != Verdict.ABSENT)
    without_base = (own.base_runs == 0) & (own.new_runs > 0)
    settings = without_base & ~data.alike[:, compared].all(axis=1)
    said |= settings & data.series.leaf
    reasons = np.where(settings & (own.reason == Reason.FEW_BASE), Reason.SETTINGS, own.reason)
    is_other = without_base & data.other_work[:, compared].any(axis=1)
    said |= is_other & (data.series.kind == KindCode.NAME)
    reasons = np.where(is_other & (reasons == Reason.SETTINGS), Reason.OTHER_WORK, reasons)
    # a side without any run, where one of its runs lost what the series rests on
    lacks_side = (own.base_runs == 0) != (own.new_runs == 0)
    lost = lacks_side & data.incomplete[:, compared].any(axis=1)
    said |= lost
    return said, np.where(lost & (own.verdict == Verdict.TOO_FEW_RUNS), Reason.INCOMPLETE, reasons)


class VerdictNumbers(Struct, frozen=True, eq=False):
    """The numbers of the verdicts of all series, as ratios and shares: columns of the table `verdict`."""

    change: F64
    judged_change: F64
    p: F64
    q: F64
    contribution: F64
    detectable: F64


def numbers_of(data: Track, own: JudgedSeries) -> VerdictNumbers:
    """Return the numbers of the verdicts of all series."""
    sign = np.where(data.series.more_is_better, -1.0, 1.0)
    return VerdictNumbers(
        change=np.expm1(sign * own.raw_change),
        judged_change=np.expm1(sign * own.change),
        p=own.p,
        q=own.q,
        contribution=own.contribution,
        detectable=np.expm1(detectable_change(own, data.series.family)),
    )


def facts_of(data: Track, result: VersionResult) -> list[tuple[int, str, float, float]]:
    """Return the rows of the table `fact`: calls per step, and bytes of peak memory."""
    now, kind = result.now, data.series.kind
    is_peak = kind == KindCode.PEAK
    rows = np.flatnonzero(data.series.leaf | (kind == KindCode.COMMUNICATION) | is_peak)
    numbers = np.where(is_peak[:, None], data.values, data.calls)[np.ix_(rows, np.isin(data.run_ids, now.run_ids))]
    places, before, after = exact_changes(numbers, (now.level(now.current) & now.window.recorded)[rows], now.new)
    own = rows[places]
    what = np.where(is_peak[own], "bytes", "calls").tolist()
    return sorted(zip(data.ids[own].tolist(), what, before.tolist(), after.tolist(), strict=True))
