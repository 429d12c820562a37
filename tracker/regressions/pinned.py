"""Whether versions have moved away from the pinned one: small steps that no version decides add up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detect import SeriesTraits, Thresholds, Verdict, judge_version
from tracker.errors import UsageError
from tracker.regressions import comparable
from tracker.regressions.limits import track_limits, traits_of
from tracker.regressions.places import Place
from tracker.regressions.rows import series_in_order, track_of_runs
from tracker.regressions.track import Track, newest
from tracker.store import judged


def against_pinned(connection: Connection, place: Place) -> dict[tuple[int, int], str]:
    """Series and version -> REGRESSED, IMPROVED or the other words of the judge, against the pinned version.

    The test of a gradual slowdown: the runs of a version and the one before, at least 4, against those of the pinned
    version. Without it are the pinned version, those before it, and those with fewer runs. UsageError where the pinned
    version has too few.
    """
    pinned = place.pinned
    if pinned is None:
        return {}
    limits = track_limits(place.track.limits)
    first = place.track.place[pinned.version_id]
    runs = [run for run in place.runs if place.track.place[run.version_id] >= first]
    own = sum(run.version_id == pinned.version_id for run in runs)
    if own < limits.least_base:
        raise UsageError(
            f"the pinned version {pinned.version} has {own} of the {limits.least_base} runs that a comparison takes",
            remedy="pin another: tracker versions pin LABEL",
        )
    series = series_in_order(judged.series_of(connection, place.line))
    values, calls = judged.values_of(connection, [run.run_id for run in runs], series)
    traits = traits_of(series.keys, place.track.limits, device_timed=all(run.timeline == "device" for run in runs))
    recorded = comparable.recorded_runs(connection, runs)
    track = track_of_runs(series.keys, values, calls, runs, place.track.place, recorded, traits, like=0)
    version_of = {place.track.place[run.version_id]: run.version_id for run in runs}
    return {
        (number, version_of[at]): word
        for at in sorted(version_of)
        for number, word in zip(series.ids.tolist(), _verdicts(track, traits, first, at, limits), strict=False)
        if word != Verdict.ABSENT.name
    }


def _verdicts(track: Track, traits: SeriesTraits, first: int, at: int, limits: Thresholds) -> list[str]:
    """Of each series the word of a version against the first one; none where there are too few runs."""
    base = np.flatnonzero(track.versions == first)
    new = _newest_runs(track, first, at, limits.least_gradual)
    if len(new) < limits.least_gradual:
        return []
    window, columns = track.window(at, base, new, limits)
    is_new = np.isin(columns, new)
    reference = newest(window.recorded & ~is_new, limits.window)
    own = judge_version(
        window, traits, reference, is_new, ratio=limits.gradual, alpha=limits.alpha_gradual, limits=limits
    )
    return [Verdict(code).name for code in own.verdict.tolist()]


def _newest_runs(track: Track, first: int, at: int, least: int) -> NDArray[Any]:
    """The columns of a version and of the one before; where these are fewer, the last `least` since the first one."""
    since = np.flatnonzero((track.versions > first) & (track.versions <= at))
    before = track.versions[since][track.versions[since] < at]
    two = since[track.versions[since] >= before.max(initial=at)]
    return two if len(two) >= least else since[-least:]
