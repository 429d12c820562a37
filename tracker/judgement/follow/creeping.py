"""Which series have crept away from their best level, version by version."""

from __future__ import annotations

import numpy as np

from tracker.detectors import rule
from tracker.detectors.arrays import I64, cut
from tracker.detectors.creep import WINDOW as ENOUGH
from tracker.judgement.best import LOOK_BACK, compare_with_best
from tracker.judgement.families import RUN
from tracker.judgement.follow.tracks import Said, nothing, put
from tracker.judgement.follow.watched import Watched


def crept(watched: Watched, first: int, last: int, since: I64) -> Said:
    """What the version of the runs `first` to `last` says against the best level of the versions before it.

    `since`: per series the first run that counts.
    """
    centred = np.where(np.arange(len(watched.runs)) < since[:, None], np.nan, watched.centred)
    said = nothing(len(watched.names))
    columns: dict[int, list[int]] = {}
    for place in range(first):
        columns.setdefault(watched.runs[place].version, []).append(place)
    before = [columns[version] for version in sorted(columns)][-LOOK_BACK:]
    run = list(range(first, last + 1))
    step = watched.larger_step(run, run)
    if len(before) < ENOUGH or np.isnan(step):
        return said
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
    return said
