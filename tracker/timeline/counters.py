"""What a profiler counts in tables of its own, and the calls of modules, summed per step and thing."""

from __future__ import annotations

import numpy as np

from tracker.profile import I64, MODULE_CALLS, NO_STEP, Column, Strings, Table
from tracker.table import group_rows, look_up_texts, rank_codes
from tracker.timeline.joined import Joined
from tracker.timeline.modules import module_frames
from tracker.timeline.steps import ONLY_STEP, steps_at

MODULE_TIME = "host time (ns)"
"""`attribute` of the calls of a module: the time from its start to its end, with what runs between its ops."""


def counter_table(joined: Joined) -> Table:
    """Per step, source, name and attribute: of how many values, and their mean, smallest and largest.

    A step without a marker is none; without markers all is the one step of the capture. The calls of modules that have
    frames come last, under the source MODULE_CALLS.
    """
    counted, calls = _counters(joined), _module_calls(joined)
    return {name: _joined(counted[name], calls[name]) for name in counted}


def _joined(first: Column, second: Column) -> Column:
    if isinstance(first, list):
        return [*first, *second]
    return np.concatenate([first, np.asarray(second)])


def _module_calls(joined: Joined) -> Table:
    events, paths = joined.events, Strings()
    nested, path = module_frames(events, paths)
    rows = np.flatnonzero(path > 0) if events.host_is_primary else np.zeros(0, dtype=np.int64)
    step = steps_at(events.markers, nested.start_ns[rows])
    groups = group_rows(step, rank_codes(path[rows], paths.texts))
    first = groups.first
    return {
        "step": step[first],
        "source": [MODULE_CALLS] * len(first),
        "name": look_up_texts(path[rows][first], paths.texts),
        "attribute": [MODULE_TIME] * len(first),
        **groups.spread((nested.end_ns - nested.start_ns)[rows].astype(np.float64)),
    }


def _counters(joined: Joined) -> Table:
    counters, texts = joined.events.extras.counters, joined.events.strings.texts
    rows = np.flatnonzero(np.isfinite(counters.value))
    step = _steps(joined, counters.step[rows])
    columns = (counters.source, counters.name, counters.attribute)
    groups = group_rows(step, *(rank_codes(column[rows], texts) for column in columns))
    first = rows[groups.first]
    return {
        "step": step[groups.first],
        "source": look_up_texts(counters.source[first], texts),
        "name": look_up_texts(counters.name[first], texts),
        "attribute": look_up_texts(counters.attribute[first], texts),
        **groups.spread(counters.value[rows]),
    }


def _steps(joined: Joined, said: I64) -> I64:
    markers = joined.events.markers
    if len(markers) == 0:
        return np.full(len(said), ONLY_STEP, dtype=np.int64)
    return np.where(np.isin(said, markers.step), said, NO_STEP)
