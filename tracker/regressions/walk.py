"""The versions of a track in order: verdicts, levels, findings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detect import DEFAULTS, JudgedSeries, Thresholds
from tracker.detect.presence import Facts, exact_changes
from tracker.regressions.lifecycle import VersionRuns, fold
from tracker.regressions.state import UNDECIDED, Finding, TrackState
from tracker.regressions.track import BEGINNING, Track

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]


class VersionResult(Struct, frozen=True):
    """What judging a version gives. `found`: the findings that it decided; `ended`: those that it
    ended; `shift`: its common-mode shift against the runs before, a log; `calls`: call counts that changed for certain.
    """

    version: int
    judged: JudgedSeries
    evidence: VersionRuns
    found: list[Finding]
    ended: list[Finding]
    shift: float
    calls: Facts


def walk(track: Track, state: TrackState, *, start: int = 1, limits: Thresholds = DEFAULTS) -> Iterator[VersionResult]:
    """Judge the versions of a track from `start` on, in order; `state`: that before `start`, which is changed."""
    for version in np.unique(track.versions[track.versions >= start]).tolist():
        yield judge_next(track, state, version, limits)


def judge_next(track: Track, state: TrackState, version: int, limits: Thresholds = DEFAULTS) -> VersionResult:
    """Judge one version and take it into the state. The track needs only the runs that `needed_runs` names."""
    now = evidence_of(track, state, version, limits)
    opened = np.zeros(state.series, dtype=bool)
    opened[[one.series for one in state.open]] = True
    judged = now.judge(now.current, now.new, opened)
    was_open = state.open
    found = fold(state, now, judged)
    columns = np.isin(track.run_ids, now.run_ids)
    level = now.level(now.current) & now.window.recorded
    calls = exact_changes(track.calls[:, columns], level, now.new)
    return VersionResult(
        version,
        judged,
        now,
        found,
        [one for one in was_open if one.state != "open"],
        float(now.window.shift[now.new].mean()),
        calls,
    )


def needed_runs(versions: I64, run_ids: I64, state: TrackState, version: int, limits: Thresholds = DEFAULTS) -> I64:
    """Ids of the runs that a version is judged with: its own, the newest 32 before, references of open findings."""
    places = np.flatnonzero(versions < version)[-limits.look_back :]
    wanted = {run for one in state.open for run in one.reference}
    chosen = np.isin(run_ids, sorted(wanted)) & (versions < version)
    chosen[places] = True
    return np.asarray(run_ids[chosen | (versions == version)])


def evidence_of(track: Track, state: TrackState, version: int, limits: Thresholds) -> VersionRuns:
    """The runs that a version is judged with, and the level of each of them."""
    wanted = needed_runs(track.versions, track.run_ids, state, version, limits)
    chosen = np.isin(track.run_ids, wanted)
    window, columns = track.window(
        version, np.flatnonzero(chosen & (track.versions < version)), np.flatnonzero(track.versions == version), limits
    )
    versions = track.versions[columns]
    looked_back = np.isin(columns, np.flatnonzero(track.versions < version)[-limits.look_back :])
    none = np.full(state.series, UNDECIDED)
    rows = [state.levels.get(own, none) for own in versions.tolist()]
    levels = np.stack(rows, axis=1) if rows else np.zeros((state.series, 0), dtype=np.int64)
    current = state.current if state.levels else np.full(state.series, BEGINNING)
    return VersionRuns(
        version, window, track.series, track.run_ids[columns], versions, versions == version, looked_back, levels,
        current, limits,
    )  # fmt: skip
