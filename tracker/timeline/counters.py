"""What a profiler counts in tables of its own, summed per step and thing."""

from __future__ import annotations

import numpy as np

from tracker.profile import I64, NO_STEP, Table
from tracker.timeline.aggregate import group_by, rank_of_texts, texts_of
from tracker.timeline.joined import Joined
from tracker.timeline.steps import ONLY_STEP


def counter_table(joined: Joined) -> Table:
    """Per step, source, name and attribute: of how many values, and their mean, smallest and largest.

    A step without a marker is none; without markers all is the one step of the capture.
    """
    counters, texts = joined.events.extras.counters, joined.events.strings.texts
    rows = np.flatnonzero(np.isfinite(counters.value))
    place = rank_of_texts(texts)
    step = _steps(joined, counters.step[rows])
    groups = group_by(step, *(place[column[rows]] for column in (counters.source, counters.name, counters.attribute)))
    first = rows[groups.first]
    return {
        "step": step[groups.first],
        "source": texts_of(counters.source[first], texts),
        "name": texts_of(counters.name[first], texts),
        "attribute": texts_of(counters.attribute[first], texts),
        **groups.spread(counters.value[rows]),
    }


def _steps(joined: Joined, said: I64) -> I64:
    markers = joined.events.markers
    if len(markers) == 0:
        return np.full(len(said), ONLY_STEP, dtype=np.int64)
    return np.where(np.isin(said, markers.step), said, NO_STEP)
