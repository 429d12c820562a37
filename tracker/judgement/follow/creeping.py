"""Which series have crept away from their best level, version by version."""

from __future__ import annotations

import numpy as np

from tracker.detectors import rule
from tracker.detectors.arrays import I64, cut
from tracker.detectors.creep import WINDOW as ENOUGH
from tracker.judgement.best import LOOK_BACK, compare_with_best, neighbours
from tracker.judgement.families import RUN
from tracker.judgement.follow.tracks import Said, nothing, put
from tracker.judgement.follow.watched import Watched


def crept(watched: Watched, first: int, last: int, since: I64) -> tuple[Said, dict[int, tuple[int, ...]]]:
    """What the version of the runs `first` to `last` says against the best level of the versions before it, and of each
    series that crept the runs of that level that have it.

    `since`: per series the place of the first run that counts.
    """
    said = nothing(len(watched.names))
    levels: dict[int, tuple[int, ...]] = {}
    start, before = versions_before(watched, first)
    step = watched.larger_step(range(first, last + 1), range(first, last + 1))
    if len(before) < ENOUGH or np.isnan(step):
        return said, levels
    # of the other runs nothing is asked
    late = watched.places[start : last + 1] < since[:, None]
    centred = np.where(late, np.nan, watched.centred[:, start : last + 1])
    before = [[place - start for place in version] for version in before]
    run = list(range(first - start, last + 1 - start))
    for family, rows in watched.kinds.items():
        if family[0] == RUN or not watched.is_time(family) or np.isnan(cut(centred, rows, run)).all():
            continue
        limits = watched.limits[family]
        table, best = compare_with_best(
            centred[rows], before, run, np.zeros(centred.shape[1]), step, limits=limits.creep,
            step_ratio=limits.creep_step, called_only=True,
        )  # fmt: skip
        called = (table["verdict"] == rule.REGRESSED) & (best >= 0)
        put(said, rows, called.astype(np.int64), table)
        for row, at in zip(rows[called].tolist(), best[called].tolist(), strict=True):
            level = [place for version in neighbours(before, at) for place in version]
            levels[row] = tuple(start + place for place in level if not np.isnan(centred[row, place]))
    return said, levels


def versions_before(watched: Watched, first: int) -> tuple[int, list[list[int]]]:
    """The runs of the last 20 versions before the run `first`, with which another one begins, and the first of them."""
    versions: list[list[int]] = []
    for place in range(first - 1, -1, -1):
        if place == first - 1 or watched.runs[place].version != watched.runs[place + 1].version:
            if len(versions) == LOOK_BACK:
                return place + 1, versions[::-1]
            versions.append([])
        versions[-1].insert(0, place)
    return 0, versions[::-1]
