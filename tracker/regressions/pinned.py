"""Whether versions have moved away from the pinned one: small steps that no version decides add up."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.detect import CHANGES, SeriesTraits, Thresholds, Verdict, judge_version
from tracker.regressions import comparable
from tracker.regressions.limits import track_limits, traits_of
from tracker.regressions.places import Place
from tracker.regressions.rows import series_in_order, track_of_runs
from tracker.regressions.track import I64, Track, newest
from tracker.store import judged

Words = dict[tuple[int, int], str]
"""Series and version -> REGRESSED, IMPROVED or another word of the judge."""


def against_pinned(connection: Connection, place: Place) -> tuple[Words, str]:
    """The verdicts of a track against its pinned version; and why there are none, "" where there are.

    As in a diff of the two; where that is no change, by the test of a gradual slowdown: the runs of the version and the
    one before, at least 4, against those of the pinned version. Without it are the pinned version and those before it.
    """
    pinned = place.pinned
    where = f"{place.device} {place.configuration}".strip()
    if pinned is None:
        return {}, f"Not judged against the pinned version: it has no runs on {where}."
    limits = track_limits(place.track.limits)
    first = place.track.place[pinned.version_id]
    runs = [run for run in place.runs if place.track.place[run.version_id] >= first]
    own = sum(run.version_id == pinned.version_id for run in runs)
    if own < limits.least_base:
        why = f"{pinned.version} has {own} of {limits.least_base} runs on {where}"
        return {}, f"Not judged against the pinned version: {why}."
    series = series_in_order(judged.series_of(connection, place.line))
    values, calls = judged.values_of(connection, [run.run_id for run in runs], series)
    traits = traits_of(series.keys, place.track.limits, device_timed=all(run.timeline == "device" for run in runs))
    recorded = comparable.recorded_runs(connection, runs)
    track = track_of_runs(series.keys, values, calls, runs, place.track.place, recorded, traits, like=0)
    version_of = {place.track.place[run.version_id]: run.version_id for run in runs}
    words = {
        (number, version_of[at]): word
        for at in sorted(version_of)
        for number, word in zip(series.ids.tolist(), _verdicts(track, traits, first, at, limits), strict=False)
        if word != Verdict.ABSENT.name
    }
    return words, ""


def _verdicts(track: Track, traits: SeriesTraits, first: int, at: int, limits: Thresholds) -> list[str]:
    """Of each series the word of a version against the first one; none of the first one itself."""
    if at == first:
        return []
    own = _judged(track, traits, first, np.flatnonzero(track.versions == at), at, limits)
    both = _newest_runs(track, first, at, limits.least_gradual)
    if len(both) >= limits.least_gradual:
        gradual = replace(limits, alpha=limits.alpha_gradual)
        slow = _judged(track, traits, first, both, at, gradual, ratio=limits.gradual)
        own = np.where(np.isin(slow, CHANGES) & ~np.isin(own, CHANGES), slow, own)
    return [Verdict(code).name for code in own.tolist()]


def _judged(
    track: Track, traits: SeriesTraits, first: int, new: I64, at: int, limits: Thresholds, ratio: float | None = None
) -> I64:
    window, columns = track.window(at, np.flatnonzero(track.versions == first), new, limits)
    is_new = np.isin(columns, new)
    base = newest(window.recorded & ~is_new, limits.window)
    return judge_version(window, traits, base, is_new, ratio=ratio, alpha=limits.alpha, limits=limits).verdict


def _newest_runs(track: Track, first: int, at: int, least: int) -> I64:
    """The columns of a version and of the one before; where these are fewer, the last `least` since the first one."""
    since = np.flatnonzero((track.versions > first) & (track.versions <= at))
    before = track.versions[since][track.versions[since] < at]
    two = since[track.versions[since] >= (before.max() if len(before) else at)]
    return two if len(two) >= least else since[-least:]
