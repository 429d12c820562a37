"""The life of findings: a fold over the versions of a track, in order. docs/every-morning.md, "How a finding ends"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags
from tracker.detect import DEFAULTS, JudgedSeries, KindCode, Reason, Thresholds, Verdict, judge_version
from tracker.detect.hosts import on_equal_hosts
from tracker.detect.judge import LEAST_JUMPS
from tracker.detect.late import (
    LEAST_AFTER,
    LEAST_AFTER_ALONE,
    LEAST_BEFORE,
    best_splits,
    lie_beyond,
    neighbour_correlation,
    without_levels,
    without_outliers,
)
from tracker.detect.rounding import is_of_rounding
from tracker.detect.series import SeriesTraits
from tracker.detect.sides import NEAR, sides_of
from tracker.detect.track import Track, VersionRuns
from tracker.regressions.track import BEGINNING
from tracker.store.findings import FindingRow
from tracker.table import sort_distinct

UNDECIDED: Final = -1
"""The level of a version that waits for further runs."""
DRIFTS: Final = 2
"""What waits in a series that moved with the machine, by the sign of the move; a suspect waits by its sign alone."""
LATE: Final = "late"
"""How a finding came about that only many runs show together."""
MACHINE: Final = "machine"
"""How a finding came about that is the machine's: the step moved with all operators, and stays so."""
ALIKE: Final = "alike"
"""How a finding of the step came about that stands for all operators, which moved by one factor and are few."""
HOST: Final = "host"
"""How a finding of the step came about that may be another host: too few runs before are of the same one."""
THROTTLED: Final = "throttled"
"""How a finding of the step came about that may be a clock that was held down, and was not in the runs before."""
OF_HOSTS: Final = (HOST, THROTTLED)
"""How findings came about of runs that are compared with those of the same host in the same state alone."""
MAYBE_CODE: Final = (MACHINE, ALIKE, *OF_HOSTS)
"""How findings came about that may not be of the code."""

_HOW_BY_REASON: Final = {
    int(Reason.ALIKE): ALIKE, int(Reason.HOST): HOST, int(Reason.THROTTLED): THROTTLED,
}  # fmt: skip

_OF_HOSTS: Final = (Reason.HOST, Reason.THROTTLED)
_DIGITS: Final = 3
"""Of the share of the step that new and gone operators make up."""


class Finding(Struct):
    """A confirmed change of a series. Its key is (series, sign, how, first_version).

    `sign`: 1 worse, -1 better; `how`: level, presence, gradual, late, machine, alike, host, throttled; `first_version`:
    that it is dated to; `decided_version`: whose runs decided it; `reference`: ids of the base runs, frozen;
    `reference_level`: their level; `size`: absolute change, a log, 0 for new and gone operators; `contribution`: share
    of the step, signed; `faster`: of an improvement, whether its version was faster on the whole; `state`: open,
    recovered, taken back, accepted, vanished or withdrawn; `ended_version`: that in which it was over,
    `ended_by_version`: that whose runs decided it, both 0 while open; `stored`: its row in the database, None: it has
    none.
    """

    series: int
    sign: int
    how: str
    first_version: int
    decided_version: int
    reference: tuple[int, ...]
    reference_level: int
    size: float
    contribution: float
    q: float
    faster: bool = False
    state: str = "open"
    ended_version: int = 0
    ended_by_version: int = 0
    stored: FindingRow | None = None

    @property
    def key(self) -> tuple[int, int, str, int]:
        """What stays the same when it is withdrawn and found again."""
        return self.series, self.sign, self.how, self.first_version

    def end(self, state: str, version: int = 0, by: int = 0) -> Finding:
        """Note what became of it: in `version`, by the runs of `by`."""
        self.state, self.ended_version, self.ended_by_version = state, version, by
        return self


class TrackState(Struct):
    """All that is kept from one version to the next; rows by version, one element per series.

    `levels`: the version with which the level of a series began, or UNDECIDED; `settled`: the version that decided it;
    `waits`: the sign of what an undecided version may be (0: it was decided at once, or says nothing of what waits),
    times 2 where the machine moved.
    """

    series: int
    levels: dict[int, I64] = field(default_factory=dict)
    settled: dict[int, I64] = field(default_factory=dict)
    waits: dict[int, I64] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _places: dict[tuple[int, int, str, int], int] = field(default_factory=dict)
    """Key of a finding -> its place in `findings`, for those that `begin` has seen."""

    @property
    def open(self) -> list[Finding]:
        """Open findings, the oldest first."""
        return sorted((one for one in self.findings if one.state == "open"), key=lambda one: one.first_version)

    @property
    def opened(self) -> Flags:
        """(series,): which have an open finding. One that may be another host says nothing of later runs of it."""
        found = np.zeros(self.series, dtype=bool)
        found[[one.series for one in self.open if one.how not in OF_HOSTS]] = True
        return found

    @property
    def current(self) -> I64:
        """The current level of each series: that of its newest decided version."""
        level = np.full(self.series, UNDECIDED)
        # the newest first: most series are decided there, however many versions there are
        for version in sorted(self.levels, reverse=True):
            level = np.where(level == UNDECIDED, self.levels[version], level)
            if not (level == UNDECIDED).any():
                break
        return np.where(level == UNDECIDED, BEGINNING, level)

    def pending(self) -> tuple[list[int], I64, I64]:
        """Return the newest undecided versions in order, how many each series has, and the sign of its first."""
        versions: list[int] = []
        count, sign = np.zeros((2, self.series), dtype=np.int64)
        still = np.ones(self.series, dtype=bool)
        for version in sorted(self.levels, reverse=True):
            still = still & (self.levels[version] == UNDECIDED)
            if not still.any():
                break
            versions.insert(0, version)
            count, sign = count + still, np.where(still, self.waits[version], sign)
        return versions, count, sign

    def divided(self, versions: I64) -> Flags:
        """Return (series, runs): the runs that a late finding sets apart within their level: those before its change as
        long as it lasts, those in between once it is over.
        """
        found = np.zeros((self.series, len(versions)), dtype=bool)
        for one in self.findings:
            if one.how != LATE or one.state == "withdrawn":
                continue
            is_before = versions < one.first_version
            is_over = one.state in ("recovered", "taken back", "vanished")
            found[one.series] |= ~is_before & (versions < one.ended_version) if is_over else is_before
        return found

    def replace_findings(self, findings: list[Finding]) -> None:
        """Take these findings in place of all that are there."""
        self.findings = findings
        self._places = {}

    def settle(self, versions: Iterable[int], row: int, level: int, by: int) -> None:
        """Decide the level of a series in versions that waited."""
        for version in versions:
            self.levels[version][row], self.settled[version][row] = level, by

    def before(self, version: int) -> TrackState:
        """Return the state in which `version` is judged for the first time: what was decided from it on is undone.

        Findings that it decided are withdrawn and keep their place, so that ids and words on them stay; findings that
        it ended are open again.
        """
        state = TrackState(self.series)
        for own in (own for own in self.levels if own < version):
            undone = self.settled[own] >= version
            state.levels[own] = np.where(undone, UNDECIDED, self.levels[own])
            state.settled[own] = np.where(undone, 0, self.settled[own])
            state.waits[own] = self.waits[own].copy()
        for one in self.findings:
            found = replace(one)
            if one.decided_version >= version or one.ended_by_version >= version:
                found.end("withdrawn" if one.decided_version >= version else "open")
            state.findings.append(found)
        return state

    def begin(self, found: Finding) -> Finding:
        """Add a finding, or revive the withdrawn one of the same key."""
        # a version may begin one for each of thousands of series
        for place in range(len(self._places), len(self.findings)):
            self._places.setdefault(self.findings[place].key, place)
        place = self._places.setdefault(found.key, len(self.findings))
        if place == len(self.findings):
            self.findings.append(found)
        else:
            found.stored = self.findings[place].stored
            self.findings[place] = found
        return found


class Pending(Struct, frozen=True):
    """Versions that wait for further runs, newest last. `count` (series,): how many of them each series has; `alike`:
    how many of these the version that is judged can confirm; `sign`: what the first of these may be, 0 without any.

    A version confirms a suspect of the step, E2E and compute only where both have the same operators, but for 1 % of
    the step.
    """

    versions: list[int]
    count: I64
    alike: I64
    sign: I64

    def of(self, row: int) -> list[int]:
        """Return the versions of a series that later runs of the same operators confirm."""
        return self.versions[len(self.versions) - self.alike[row] :]

    def before(self, row: int) -> list[int]:
        """Return the versions of a series before those: of other operators."""
        start = len(self.versions) - self.count[row]
        return self.versions[start : len(self.versions) - self.alike[row]]


class VersionResult(Struct, frozen=True):
    """What judging a version gives. `found`: the findings that it decided."""

    now: VersionRuns
    judged: JudgedSeries
    found: list[Finding]


def walk(track: Track, state: TrackState, *, start: int = 1, limits: Thresholds = DEFAULTS) -> Iterator[VersionResult]:
    """Judge the versions of a track from `start` on, in order; `state`: that before `start`, which is changed."""
    for version in sort_distinct(track.versions[track.versions >= start]).tolist():
        yield judge_next(track, state, version, limits)


def judge_next(track: Track, state: TrackState, version: int, limits: Thresholds = DEFAULTS) -> VersionResult:
    """Judge one version and take it into the state. The track needs only the runs that `needed_runs` names."""
    older = np.flatnonzero(track.versions < version)
    wanted = np.isin(track.run_ids, needed_runs(track.versions, track.run_ids, state, version, limits))
    window, columns = track.window(version, older[wanted[older]], np.flatnonzero(track.versions == version), limits)
    versions = track.versions[columns]
    none = np.full(state.series, UNDECIDED)
    rows = [state.levels.get(own, none) for own in versions.tolist()]
    levels, is_new = np.stack(rows, axis=1), versions == version
    looked_back = np.isin(columns, older[-limits.look_back :])
    if track.hosts is not None:
        window = on_equal_hosts(window, track.series, track.hosts.take(columns), levels, is_new)
    now = VersionRuns(
        version, window, track.series, track.run_ids[columns], versions, is_new, looked_back,
        levels, state.current, state.divided(versions), limits,
    )  # fmt: skip
    opened = state.opened
    judged = now.judge(now.current, now.new, opened)
    found = fold(state, now, judged)
    return at_returned_levels(state, VersionResult(now, judged, found), opened)


def at_returned_levels(state: TrackState, result: VersionResult, opened: Flags) -> VersionResult:
    """Return the result with the verdicts of series that are back, against the level that they returned to, where the
    one between has too few runs for a test. What is no finding there is no change: it is back.

    `state`: after the version; `opened`: as it was judged.
    """
    now, judged = result.now, result.judged
    target = now.current.copy()
    # runs without an operator that is gone are runs of its level, too
    base_runs = judged.base.sum(axis=1)
    for one in state.findings:
        is_back = one.state in ("recovered", "taken back") and one.ended_by_version == now.version
        if is_back and base_runs[one.series] < now.limits.least_base:
            target[one.series] = one.reference_level
    if (target == now.current).all():
        return result
    against = now.judge(target, now.new, opened)
    # the runs of that level may be too old to be looked at
    rows = (target != now.current) & (against.base.sum(axis=1) > base_runs)
    target = np.where(rows, target, now.current)
    is_back_all_the_same = (against.sign != 0) | (against.suspect != 0)
    is_back_all_the_same[[one.series for one in result.found]] = False
    against = replace(
        against,
        verdict=np.where(is_back_all_the_same, Verdict.INCONCLUSIVE, against.verdict),
        reason=np.where(is_back_all_the_same, Reason.FEW_NEW, against.reason),
        suspect=np.where(is_back_all_the_same, 0, against.suspect),
    )
    columns = {}
    for name in judged.__struct_fields__:
        columns[name] = getattr(judged, name).copy()
        columns[name][rows] = getattr(against, name)[rows]
    return VersionResult(replace(now, current=target), JudgedSeries(**columns), result.found)


def needed_runs(versions: I64, run_ids: I64, state: TrackState, version: int, limits: Thresholds = DEFAULTS) -> I64:
    """Return the ids of the runs that a version is judged with: its own, the newest 32 before, references of open
    findings.
    """
    wanted = {run for one in state.open for run in one.reference}
    chosen = np.isin(run_ids, sorted(wanted)) & (versions < version)
    chosen[np.flatnonzero(versions < version)[-limits.look_back :]] = True
    return np.asarray(run_ids[chosen | (versions == version)])


def fold(state: TrackState, now: VersionRuns, judged: JudgedSeries) -> list[Finding]:
    """Take the verdicts of a version into the state; the findings that it decided.

    In this order: open findings end or stay; suspects are confirmed, cleared, or wait; other changes begin findings;
    what returned is compared with the level it returned to; new and gone operators begin a level of the step; what
    slows down gradually is found.
    """
    level, waits = now.current.copy(), np.zeros(state.series, dtype=np.int64)
    forgotten = ~now.level(now.current).any(axis=1) & now.looked_back.any()
    versions, count, _ = state.pending()
    level[forgotten & (count == 0)] = now.version
    ended = list(end_findings(state, now, judged, waits))
    if any(one.how == LATE for one in ended):
        # the runs that it set apart are those in between now, and not those before it
        now = replace(now, divided=state.divided(now.versions))
    returned: dict[int, list[Finding]] = {}
    for one in ended:
        if one.state in ("recovered", "taken back"):
            returned.setdefault(one.series, []).append(one)
    for row, own in returned.items():
        level[row] = own[0].reference_level
        for at in versions[len(versions) - count[row] :]:
            state.settle([at], row, level[row] if at >= own[0].ended_version else now.current[row], now.version)
    silent = (count > 0) & says_nothing(now, judged)
    silent[list(returned)] = False
    free = (waits == 0) & ~silent
    free[list(returned)] = False
    free &= ~return_followers(state, now, judged, ended, level)
    pending = pending_by_code(state, now, judged, returned)
    decided = list(decide_suspects(state, now, judged, pending, free, level, waits))
    decided += decide_drifts(state, now, judged, pending, free, level, waits)
    free &= count == 0
    changed = np.isin(judged.verdict, (Verdict.ADDED, Verdict.REMOVED)) & (waits == 0)
    changed[list(returned)] = False
    waiting = free & ~changed & now.is_single
    waits[waiting] = judged.suspect[waiting]
    drifting = free & ~changed & (judged.verdict == Verdict.DRIFT)
    follows = drifting & (judged.reason == Reason.ALIKE)
    level[follows] = now.version
    drifting &= ~follows
    waits[drifting] = DRIFTS * np.sign(judged.change[drifting]).astype(np.int64)
    for row in np.flatnonzero((free & (judged.sign != 0)) | changed).tolist():
        how = "presence" if changed[row] else "level"
        state.settle(versions[len(versions) - count[row] :], row, now.current[row], now.version)
        decided.append(change_of(now, row, how, now.version, judged))
    changes = {change.series: change for change in decided}
    for row, change in changes.items():
        # what may be another host is a level of that host
        level[row] = change.first_version if change.how not in OF_HOSTS else now.current[row]
    # a fall while a regression is open only moves the level
    falling = {one.series for one in state.open if one.sign > 0 and one.how not in OF_HOSTS}
    found = [state.begin(own) for own in changes.values() if own.sign > 0 or own.series not in falling]
    found += compare_returned(state, now, judged, returned, level)
    begin_certain_levels(state, now, versions, count, level, waits)
    settled = (waits == 0) & (level == now.current)
    for change in gradual_slowdowns(state, now, settled):
        level[change.series] = now.version
        found.append(state.begin(change))
    settled &= level == now.current
    found += [state.begin(change) for change in late_changes(state, now, judged, settled)]
    is_open = (waits != 0) | silent
    state.levels[now.version] = np.where(is_open, UNDECIDED, level)
    state.settled[now.version] = np.where(is_open, 0, now.version)
    state.waits[now.version] = waits
    # whether the version of an improvement was faster on the whole: its step, or the net of its operators
    by_code = [one for one in found if one.how not in MAYBE_CODE]
    step = any(one.sign < 0 and now.series.kind[one.series] == KindCode.STEP for one in by_code)
    net = sum(one.contribution for one in found if now.series.leaf[one.series])
    for one in found:
        one.faster = one.sign < 0 and (step or net <= -now.limits.gate_net)
    return found


def says_nothing(now: VersionRuns, judged: JudgedSeries) -> Flags:
    """Return which series cannot be compared with their level: they did other work, were recorded otherwise, or lost
    records. Such a version neither confirms nor clears what waits.
    """
    unrecorded = ~now.window.recorded
    without_base = (judged.base_runs == 0) & (now.level(now.current) & unrecorded).any(axis=1)
    without_new = (judged.new_runs == 0) & (unrecorded & now.new).any(axis=1)
    return np.asarray(without_base | without_new)


def change_of(now: VersionRuns, row: int, how: str, first: int, judged: JudgedSeries, of: int | None = None) -> Finding:
    """Return a change of a series that the runs of the version decide, as a finding.

    `of`: the level that it left, None: the current one.
    """
    level = int(now.current[row]) if of is None else of
    sign, size = int(judged.sign[row]), 0.0 if how == "presence" else abs(float(judged.change[row]))
    if how == MACHINE:
        sign = 1 if judged.change[row] > 0 else -1
    elif how == "level" and int(judged.reason[row]) in _HOW_BY_REASON:
        how = _HOW_BY_REASON[int(judged.reason[row])]
    return Finding(
        row, sign, how, first_version=first, decided_version=now.version, reference=now.reference(row, judged),
        reference_level=level, size=size, contribution=float(judged.contribution[row]), q=float(judged.q[row]),
    )  # fmt: skip


def end_findings(state: TrackState, now: VersionRuns, judged: JudgedSeries, waits: I64) -> Iterator[Finding]:
    """End the open findings whose series is back, gone, or kept its improvement; `waits` gets what may be back.

    A finding is back if it lies above its reference by less than the limit, a quarter of its size, or two standard
    errors (at most half of its size); in a version of one run only if the version before was back too, or if operators
    that made up half of it are gone. What a version
    took away while it became slower on the whole stays open as long as one of its regressions does: both return
    together.
    """
    single, centred = now.is_single, judged.logs
    versions, count, _ = state.pending()
    regressed = {one.first_version for one in state.open if one.sign > 0}
    there = ~np.isnan(centred) & now.window.recorded
    for one in state.open:
        row = one.series
        new = now.new & now.window.recorded[row]
        if not new.any():
            continue
        # an odd run is not how the version usually is
        new = judged.new[row] & new if (judged.new[row] & new).any() else new
        is_there = bool(there[row, new].any())
        waited = single and count[row] > 0 and state.waits[versions[-1]][row] == -one.sign
        before = now.versions == (versions[-1] if waited else 0)
        if one.how == "presence":
            back = is_there == (one.sign < 0)
            was_back = True
        elif not is_there:
            level = now.looked_back & (now.levels[row] == now.current[row]) & now.window.recorded[row]
            if single and not there[row, level].all():
                continue  # it comes and goes
            yield one.end("vanished", now.version, now.version)
            continue
        else:
            base = np.isin(now.run_ids, one.reference) & there[row]
            logs = centred[row]
            if one.how in OF_HOSTS and now.window.measured is not None:
                # whether it is back is seen as it was measured, whatever the hosts differ by
                logs = now.window.measured[row]
            reference = logs[base].mean() if base.any() else np.nan
            least = float(np.nan_to_num(judged.se[row])) * 2
            limit = max(now.series.ratio[row], one.size / 4, min(one.size / 2, least))
            away = one.sign * (logs[new & there[row]].mean() - reference)
            if keeps_operators(state, now, one) and base.any():
                # a faster machine hides no slower step
                moved = now.window.shift[new].mean() - now.window.shift[base].mean()
                away = max(away, away - one.sign * moved)
            back = away < limit
            was_back = waited and one.sign * (logs[before].mean() - reference) < limit
            if single and back and not was_back and takes_operators_back(state, now, one):
                # that they are gone is exact: the version before still had them
                was_back, waited = True, False
        if back and (not single or was_back):
            word = "recovered" if one.sign > 0 else "taken back"
            yield one.end(word, versions[-1] if waited else now.version, now.version)
        elif back:
            waits[row] = -one.sign
        elif one.sign < 0 and one.decided_version < now.version and (one.faster or one.first_version not in regressed):
            yield one.end("accepted", now.version, now.version)


def takes_operators_back(state: TrackState, now: VersionRuns, found: Finding) -> bool:
    """Return whether operators that came or went with a slower step, and made up half of its change, are as before."""
    if found.sign < 0 or not has_all_operators(now.series)[found.series]:
        return False
    there = ~np.isnan(now.window.logs) & now.new
    share = 0.0
    for one in state.findings:
        is_cause = one.how == "presence" and one.first_version == found.first_version and now.series.leaf[one.series]
        if is_cause and one.state != "withdrawn" and bool(there[one.series].any()) != (one.sign > 0):
            share += float(np.nan_to_num(one.contribution))
    return share >= now.limits.explained * found.contribution


def keeps_operators(state: TrackState, now: VersionRuns, found: Finding) -> bool:
    """Return whether a finding of the step is one that operators made up which came or went with its version, 1 % of
    the step in its direction, and whether that is still so in this version.
    """
    if now.series.kind[found.series] not in (KindCode.STEP, KindCode.WHOLE):
        return False
    there = ~np.isnan(now.window.logs) & now.new
    share = 0.0
    for one in state.findings:
        is_cause = one.how == "presence" and one.first_version == found.first_version and now.series.leaf[one.series]
        if is_cause and one.state != "withdrawn" and bool(there[one.series].any()) == (one.sign > 0):
            share += float(np.nan_to_num(one.contribution))
    return share * found.sign >= now.limits.gate_net


def pending_by_code(
    state: TrackState, now: VersionRuns, judged: JudgedSeries, returned: Mapping[int, Sequence[Finding]]
) -> Pending:
    """Return what waits. `returned`: findings that are over with this version, by series."""
    versions, count, sign = state.pending()
    alike = count.copy()
    rows = np.flatnonzero((count > 0) & has_all_operators(now.series))
    if not len(rows):
        return Pending(versions, count, alike, sign)
    changes = certain_changes(state, now)
    is_presence = np.isin(judged.verdict, (Verdict.ADDED, Verdict.REMOVED)) & now.series.leaf
    # those that this version decides are no findings yet
    for series in np.flatnonzero(is_presence).tolist():
        if series not in returned:
            changes.setdefault(now.version, {})[series] = float(np.nan_to_num(judged.contribution[series]))
    certain = certain_versions(changes, now)
    for row in rows.tolist():
        own = versions[len(versions) - count[row] :]
        newest_code = max((at for at in [*own, now.version] if at in certain), default=own[0])
        alike[row] = sum(at >= newest_code for at in own)
        sign[row] = state.waits[versions[-alike[row]]][row] if alike[row] else 0
    return Pending(versions, count, alike, sign)


def return_followers(
    state: TrackState, now: VersionRuns, judged: JudgedSeries, ended: Sequence[Finding], level: I64
) -> Flags:
    """Return which series (series,) moved with a step that stood for all operators, and are back with it.

    They have no finding of their own that could end: `level` gets the one that they had before it. `ended`: the
    findings that are over with this version.
    """
    returned = np.zeros(state.series, dtype=bool)
    is_measured = ~np.isnan(judged.logs)
    for one in ended:
        if one.how != ALIKE or one.state not in ("recovered", "taken back"):
            continue
        has_finding = [other.series for other in state.findings if other.first_version == one.first_version]
        follows = now.current == one.first_version
        follows[has_finding] = False
        before = _mean_of_runs(judged.logs, is_measured & np.isin(now.run_ids, one.reference))
        moved = _mean_of_runs(judged.logs, is_measured & (now.versions == one.first_version))
        new = _mean_of_runs(judged.logs, is_measured & now.new)
        with np.errstate(invalid="ignore"):
            returned |= follows & (np.abs(new - before) < np.abs(new - moved))
        older = [at for at in state.levels if at < one.first_version]
        for row in np.flatnonzero(returned & follows).tolist():
            decided = [at for at in older if state.levels[at][row] != UNDECIDED]
            level[row] = state.levels[max(decided)][row] if decided else now.version
            waiting = [at for at in state.levels if state.levels[at][row] == UNDECIDED]
            state.settle(waiting, row, int(level[row]), now.version)
    return returned


def _mean_of_runs(logs: F64, runs: Flags) -> F64:
    """Return the mean of each series over its runs (series, runs); nan where it has none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: F64 = np.where(runs, logs, 0.0).sum(axis=1) / runs.sum(axis=1)
    return mean


def decide_suspects(
    state: TrackState, now: VersionRuns, judged: JudgedSeries, pending: Pending, free: Flags, level: I64, waits: I64
) -> Iterator[Finding]:
    """Confirm or clear what waits since older versions; `waits` gets what needs more runs.

    Series that moved with a step which stands for all operators get a new `level`, and no finding.

    A version of several runs decides by its own verdict. Versions of one run go on while they are beyond the limit;
    three of them are judged together, and the change is dated to the first that is nearer to the others. Those of other
    operators wait until these are decided, and are not confirmed.
    """
    versions, alike, sign = pending.versions, pending.alike, pending.sign
    waiting = free & (pending.count > 0) & (np.abs(sign) != DRIFTS)
    if not waiting.any():
        return
    needed, by_split = 1 + now.limits.confirm, is_decided_by_split(now)
    with np.errstate(invalid="ignore"):
        still = waiting & (alike > 0) & (sign * judged.change >= now.series.ratio)
    together = judged
    if now.is_single:
        enough = still & (alike + 1 >= np.where(by_split, LEAST_AFTER_ALONE, needed))
        for at in versions[-now.limits.confirm :]:
            # a version that says nothing confirms nothing
            enough &= state.waits[at] != 0
        waits[still & ~enough] = sign[still & ~enough]
        again = waiting & ~still
        waits[again] = judged.suspect[again]
        # of these the best split of the runs of the level decides, among which they are from now on
        enough &= ~by_split
        if enough.any():
            since = now.since(versions[-now.limits.confirm])
            together = now.judge(now.current, since, alpha=now.limits.alpha_suspect)
            # the first of the runs belongs to the old level unless it is nearer to the others than to the base
            columns = np.flatnonzero(now.new | now.looked_back)[-needed:]
            rise = sign[:, None] * (together.logs[:, columns] - together.base_mean[:, None])
            with np.errstate(invalid="ignore"):
                late = enough & ~(rise[:, 0] >= 0.5 * rise[:, 1:].mean(axis=1))
            enough &= ~late
            waits[late] = sign[late]
            for row in np.flatnonzero(late).tolist():
                first = versions[-now.limits.confirm :][:1]
                state.settle([*pending.before(row), *first], row, int(now.current[row]), now.version)
    else:
        enough = waiting & (alike > 0)
    # what this version may be by itself is compared with the level before the others as long as it waits
    keeps_others = (alike == 0) & (waits != 0)
    for row in np.flatnonzero(waiting & ((waits == 0) | ~still) & ~keeps_others).tolist():
        own = pending.of(row)
        confirmed = bool(enough[row]) and together.sign[row] == sign[row] and sign[row] != 0
        is_alike = together.reason[row] == Reason.ALIKE and sign[row] * together.change[row] > 0
        follows = bool(enough[row]) and together.sign[row] == 0 and bool(is_alike)
        state.settle(pending.before(row), row, int(now.current[row]), now.version)
        begins = (confirmed or follows) and together.reason[row] not in _OF_HOSTS
        state.settle(own, row, own[0] if begins else int(now.current[row]), now.version)
        if follows:
            level[row] = own[0]
        elif confirmed:
            yield change_of(now, row, "level", own[0], together)
        elif judged.verdict[row] == Verdict.REGRESSED or (judged.sign[row] != 0 and not now.is_single):
            yield change_of(now, row, "level", now.version, judged)


def is_decided_by_split(now: VersionRuns) -> Flags:
    """Return which series (series,) of a version of one run the best split of many runs decides, and not the test of
    three: those that stand alone, whose noise nothing beside them shows.

    Where the hosts of both sides differ, nobody knows by how much, no split is looked for.
    """
    compares = (now.compares | ~now.looked_back).all(axis=1)
    return np.asarray(compares & (now.series.is_alone and now.is_single))


def decide_drifts(
    state: TrackState, now: VersionRuns, judged: JudgedSeries, pending: Pending, free: Flags, level: I64, waits: I64
) -> Iterator[Finding]:
    """Decide what moved with the machine in the versions before: a shift that stays for two versions, or three of one
    run, begins a new `level`, and that of the step is a finding of the machine. `waits` gets what needs more runs.

    All of these runs are judged together. Where the shift makes up less than half of the change, nothing says what it
    was, and the runs join the level.
    """
    sign = pending.sign
    waiting = np.flatnonzero(free & (pending.alike > 0) & (np.abs(sign) == DRIFTS))
    step = now.series.choose_step(judged.new_runs, judged.base_runs)
    together: dict[int, JudgedSeries] = {}
    for row in waiting.tolist():
        direction, own, before = int(np.sign(sign[row])), pending.of(row), pending.before(row)
        if judged.sign[row] != 0:
            # what the code changed in this version hides whether the machine is still slow
            state.settle([*before, *own], row, int(now.current[row]), now.version)
            yield change_of(now, row, "level", now.version, judged)
            continue
        if not direction * judged.change[row] >= now.series.ratio[row]:
            state.settle([*before, *own], row, int(now.current[row]), now.version)
            if judged.verdict[row] == Verdict.DRIFT:
                waits[row] = -sign[row]
            continue
        if now.is_single and pending.alike[row] < now.limits.confirm:
            waits[row] = sign[row]
            continue
        state.settle(before, row, int(now.current[row]), now.version)
        if own[0] not in together:
            together[own[0]] = now.judge(now.current, now.since(own[0]))
        whole = together[own[0]]
        new = now.since(own[0])
        shift = direction * (now.window.shift[new].mean() - now.window.shift[whole.base[row]].mean())
        is_machine = whole.verdict[row] == Verdict.DRIFT and shift >= abs(float(whole.change[row])) / 2
        if not is_machine and whole.sign[row] != direction:
            state.settle(own, row, int(now.current[row]), now.version)
            continue
        state.settle(own, row, own[0], now.version)
        if whole.reason[row] in _OF_HOSTS:
            state.settle(own, row, int(now.current[row]), now.version)
        else:
            level[row] = own[0]
        if not is_machine:
            yield change_of(now, row, "level", own[0], whole)
        elif row == step:
            yield change_of(now, row, MACHINE, own[0], whole)


def compare_returned(
    state: TrackState, now: VersionRuns, judged: JudgedSeries, returned: dict[int, list[Finding]], level: I64
) -> Iterator[Finding]:
    """Yield findings of series that came back: `level` gets the new level of those that changed.

    A rise that takes back an improvement of a version that was faster on the whole is a regression, and one that takes
    back what stayed open beside a regression, unless the regression returns with it. What went further than the level
    it returned to, in the direction of the return, is a change against that level.
    """
    if not returned:
        return
    since = min(own[0].ended_version for own in returned.values())
    new = now.since(since)
    whole = judged if not now.is_single else now.judge(now.current, new)
    gains = [one for own in returned.values() for one in own if one.sign < 0]
    cost = {first: cost_of_return(state, now, whole, returned, first) for first in {one.first_version for one in gains}}
    lost = set()
    for one in gains:
        is_held = bool(((now.versions > one.decided_version) & (now.versions < one.ended_version)).any())
        if whole.sign[one.series] > 0 and (one.faster or (is_held and cost[one.first_version] > 0)):
            lost.add(one.series)
    for row in sorted(lost):
        how = "presence" if whole.verdict[row] == Verdict.ADDED else "level"
        yield state.begin(change_of(now, row, how, returned[row][0].ended_version, whole))
    target = now.current.copy()
    for row, own in returned.items():
        target[row] = own[0].reference_level
    against = now.judge(target, new)
    for row, own in returned.items():
        sign = int(against.sign[row])
        is_level = against.verdict[row] in (Verdict.REGRESSED, Verdict.IMPROVED)
        if row not in lost and is_level and sign == -own[0].sign:
            first = own[0].ended_version
            state.settle([at for at in state.levels if at >= first], row, first, now.version)
            level[row] = first
            yield state.begin(change_of(now, row, "level", first, against, int(target[row])))


def begin_certain_levels(
    state: TrackState, now: VersionRuns, versions: list[int], count: I64, level: I64, waits: I64
) -> None:
    """Begin a level of the step with each version whose new and gone operators make 1 % of it, though the step itself
    did not change; a version that takes them back returns to the level before. `level` gets that of this version.

    The step, E2E and compute have all operators in them; of the other parts nothing says whether these are in them.
    `versions`, `count`: what waited until now, as `TrackState.pending` has it.
    """
    changes = certain_changes(state, now)
    certain = certain_versions(changes, now)
    if not certain:
        return
    for row in np.flatnonzero(has_all_operators(now.series)).tolist():
        current = int(now.current[row])
        # from a version on that waits, or changed, or is back, the level is no longer the current one
        decided = [at for at in versions[len(versions) - count[row] :] if state.levels[at][row] == current]
        if waits[row] == 0 and level[row] == current:
            decided.append(now.version)
        begun = current
        for at in decided:
            if at in certain:
                begun = returned_level(state, now, row, at, begun, changes)
            if at == now.version:
                level[row] = begun
            else:
                state.settle([at], row, begun, now.version)


def has_all_operators(series: SeriesTraits) -> Flags:
    """Return which series have all operators in them: the step, E2E and compute."""
    return np.isin(series.kind, (KindCode.STEP, KindCode.WHOLE))


OperatorChanges = dict[int, dict[int, float]]
"""Version -> series of an operator that came or went with it -> by how much of the step, signed."""


def certain_versions(changes: OperatorChanges, now: VersionRuns) -> set[int]:
    """Return the versions whose operators begin a level of the step."""
    share = {version: abs(sum(of_series.values())) for version, of_series in changes.items()}
    # 0.99 % in a slower night and 1.03 % in a faster one are one change, and both are printed as 1.0 %
    return {version for version, own in share.items() if round(own, _DIGITS) >= now.limits.gate_net}


def certain_changes(state: TrackState, now: VersionRuns) -> OperatorChanges:
    """Return by how much of the step operators that came and went changed it."""
    changes: OperatorChanges = {}
    for one in state.findings:
        if one.how != "presence" or one.state == "withdrawn" or not now.series.leaf[one.series]:
            continue
        share = float(np.nan_to_num(one.contribution))
        changes.setdefault(one.first_version, {})[one.series] = share
        if one.state in ("recovered", "taken back"):
            changes.setdefault(one.ended_version, {})[one.series] = -share
    return changes


def returned_level(
    state: TrackState, now: VersionRuns, row: int, version: int, begun: int, changes: OperatorChanges
) -> int:
    """Return the level of the step from a version on whose operators changed: the newest older one with the same
    operators, if the levels in between began with operators alone, else a new one.

    `begun`: the level of the version before.
    """
    certain = certain_versions(changes, now)
    found = {one.first_version for one in state.findings if one.series == row and one.state != "withdrawn"}
    looked_back = state.levels.keys() & set(now.versions[now.looked_back].tolist())
    levels = {at: int(state.levels[at][row]) for at in looked_back}
    while begun in certain and begun not in found:
        older = [at for at, own in levels.items() if at < begun and own >= 0]
        if not older:
            break
        since: dict[int, float] = {}
        for of_series in (changes[at] for at in changes if begun <= at <= version):
            for series, share in of_series.items():
                since[series] = since.get(series, 0.0) + share
        begun = levels[max(older)]
        if round(sum(map(abs, since.values())), _DIGITS) < now.limits.gate_net:
            return begun
    return version


def cost_of_return(
    state: TrackState, now: VersionRuns, judged: JudgedSeries, returned: Mapping[int, Sequence[Finding]], first: int
) -> float:
    """Return what the changes of a version cost of the step, net, of the operators that changed in version `first`.

    `judged`: the runs that decide; `returned`: the findings that are over with them, by series.
    """
    own = {one.series for one in state.open if one.first_version == first}
    over = {row for row, findings in returned.items() if any(one.first_version == first for one in findings)}
    changed = [row for row in own if judged.sign[row] != 0]
    rows = [row for row in sorted({*changed, *over}) if now.series.leaf[row]]
    return float(np.nansum(judged.contribution[rows]))


def gradual_slowdowns(state: TrackState, now: VersionRuns, settled: Flags) -> Iterator[Finding]:
    """Find operators, and the step, whose newest runs are worse than the first 8 of their level, though no version
    changed; the step by more than the machine explains.

    The newest runs: those of this version and the one before, at least 4; with fewer the last 4 runs.
    """
    limits = now.limits
    past = np.flatnonzero(now.looked_back)
    if not len(past) or (now.series.is_alone and now.is_single):
        return  # the best split of many runs is all that such a series has
    new = now.since(int(now.versions[past[-1]]))
    if now.is_single and new.sum() > 2:
        return  # more runs of this version are to come
    if new.sum() < limits.least_gradual:
        last = np.flatnonzero(now.new | now.looked_back)[-limits.least_gradual :]
        new = np.isin(np.arange(len(new)), last)
    level = now.level(now.current) & now.compares
    whole = (level | now.new)[:, new].all(axis=1) & (new.sum() >= limits.least_gradual)
    can_creep = now.series.leaf.copy()
    can_creep[now.series.steps[:1]] = True
    rows = np.flatnonzero(can_creep & settled & whole & ~state.opened)
    base = level & ~new & (np.cumsum(level & ~new, axis=1) <= limits.window)
    least = np.log1p(limits.gradual_ratio)
    logs = now.window.logs[rows] - now.window.shift
    sides = sides_of(logs, base[rows], new)
    with np.errstate(invalid="ignore"):
        likely = rows[(sides.change >= least) & (sides.beyond > 0)]
    if not len(likely):
        return
    alpha = limits.alpha_gradual_of(is_single=now.is_single)
    own = judge_version(now.window, now.series, base, new, ratio=limits.gradual_ratio, alpha=alpha, limits=limits)
    for row in likely.tolist():
        if own.verdict[row] == Verdict.REGRESSED:
            yield change_of(now, row, "gradual", now.version, own)


def late_changes(state: TrackState, now: VersionRuns, judged: JudgedSeries, settled: Flags) -> Iterator[Finding]:
    """Find changes that no version shows by itself: the best split of the runs of a level, at the start of a version.

    Only times and rates that are `settled` are looked at, and of those with an open regression none that fell. Such a
    finding divides its level, and begins no other one.
    """
    limits, series = now.limits, now.series
    most_p = limits.late_of(is_single=now.is_single, is_alone=now.series.is_alone)
    least_after = LEAST_AFTER_ALONE if now.series.is_alone else LEAST_AFTER
    none = np.full(state.series, UNDECIDED)
    # what waited until now is in its level by now
    levels = np.stack([state.levels.get(version, none) for version in now.versions.tolist()], axis=1)
    of_level = replace(now, levels=levels).level(now.current)
    counts = (of_level | now.new) & now.window.recorded & now.compares
    columns = np.flatnonzero(counts.any(axis=0))
    can_move = series.is_time | (series.kind == KindCode.RATE)
    enough = (counts & ~np.isnan(now.window.logs)).sum(axis=1) >= LEAST_BEFORE + least_after
    rows = np.flatnonzero(settled & can_move & enough)
    if not len(rows) or now.versions[columns[0]] == now.version:
        return
    starts = np.append(False, np.diff(now.versions[columns]) > 0) & (now.versions[columns] < now.version)
    logs = np.where(counts, judged.logs, np.nan)[:, columns]
    ratio = series.ratio
    # most series did not move by half of what counts: the outliers of these need not be drawn in
    usual = float(np.median(neighbour_correlation(logs[rows]))) if len(rows) >= limits.least_leaves else 0.0
    with np.errstate(invalid="ignore"):
        rows = rows[np.abs(best_splits(logs[rows], starts, least_after=least_after).change) >= ratio[rows] / 2]
    logs = without_outliers(logs[rows])
    # a change that lasts makes neighbours alike: what is left beside it shows how much they are by themselves
    own = neighbour_correlation(without_levels(logs, best_splits(logs, starts, least_after=least_after)))
    splits = best_splits(logs, starts, np.maximum(usual, own), least_after)
    with np.errstate(invalid="ignore"):
        likely = (np.abs(splits.change) >= ratio[rows]) & (splits.p <= most_p)
    open_signs = {(one.series, one.sign) for one in state.open if one.how not in OF_HOSTS}
    for at in np.flatnonzero(likely).tolist():
        row, sign = int(rows[at]), 1 if splits.change[at] > 0 else -1
        if sign < 0 and (row, 1) in open_signs:
            continue
        is_after = np.arange(len(columns)) >= splits.place[at]
        before, after = (columns[side & counts[row, columns]] for side in (~is_after, is_after))
        if not _is_lasting(now, judged.logs, row, sign, before, after):
            continue
        before = before[-limits.window :]
        numbers = [np.exp(np.nanmean(now.window.logs[row, side])) for side in (before, after)]
        steps = [now.window.step[side] for side in (before, after)]
        has_step = all((~np.isnan(step)).any() for step in steps)
        # where no step is known, the series is all there is
        wholes = [np.exp(np.nanmean(np.log(step))) for step in steps] if has_step else numbers
        contribution = float((numbers[1] - numbers[0]) / np.fmax(*wholes))
        if series.is_time[row] and not abs(contribution) >= series.floor[row]:
            continue
        first = int(now.versions[columns[splits.place[at]]])
        yield Finding(
            row, sign, LATE, first_version=first, decided_version=now.version,
            reference=tuple(now.run_ids[before].tolist()), reference_level=int(now.current[row]),
            size=abs(float(splits.change[at])), contribution=contribution, q=float(splits.p[at]),
        )  # fmt: skip


def _is_lasting(now: VersionRuns, judged: F64, row: int, sign: int, before: I64, after: I64) -> bool:
    """Return whether a late change shows in the printed number, too, as it was measured and without the machine.

    `judged`: the logs that are judged. A series that was at the new level in two runs before jumps between both.
    """
    logs, shift = now.window.logs[row], now.window.shift
    own = judged[row]
    if not lie_beyond(own[before], own[after], sign):
        return False
    if (np.abs(own[before] - np.nanmedian(own[after])) <= NEAR).sum() >= LEAST_JUMPS:
        return False
    measured, moved = (sign * (np.nanmean(own[after]) - np.nanmean(own[before])) for own in (logs, shift))
    change = measured - moved
    if is_of_rounding(now.window, row, before, after, float(measured)):
        return False
    if now.series.of_step[row]:
        return bool(change >= now.series.ratio[row])
    return bool(change >= now.series.ratio[row] / 2 and measured >= change / 2)
