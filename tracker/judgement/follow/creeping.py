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

    `since`: per series the first run that counts.
    """
    centred = np.where(np.arange(len(watched.runs)) < since[:, None], np.nan, watched.centred)
    said = nothing(len(watched.names))
    levels: dict[int, tuple[int, ...]] = {}
    columns: dict[int, list[int]] = {}
    for place in range(first):
        columns.setdefault(watched.runs[place].version, []).append(place)
    before = [columns[version] for version in sorted(columns)][-LOOK_BACK:]
    run = list(range(first, last + 1))
    step = watched.larger_step(run, run)
    if len(before) < ENOUGH or np.isnan(step):
        return said, levels
    for family, rows in watched.kinds.items():
        if family[0] == RUN or not watched.is_time(family) or np.isnan(cut(watched.centred, rows, run)).all():
            continue
        limits = watched.limits[family]
        table, best = compare_with_best(
            centred[rows], before, run, np.zeros(len(watched.runs)), step, limits=limits.creep,
            step_ratio=limits.creep_step, called_only=True,
        )  # fmt: skip
        called = (table["verdict"] == rule.REGRESSED) & (best >= 0)
        put(said, rows, called.astype(np.int64), table)
        for row, at in zip(rows[called].tolist(), best[called].tolist(), strict=True):
            level = [place for version in neighbours(before, at) for place in version]
            levels[row] = tuple(place for place in level if not np.isnan(centred[row, place]))
    return said, levels
