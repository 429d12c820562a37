"""Host calls of the device runtime, its driver and the layers above, summed per step and name."""

from __future__ import annotations

import numpy as np

from tracker.profile import MISSING, NO_STEP, ApiTotals, LaunchLevel, Table
from tracker.table import group_rows, look_up_texts, rank_codes
from tracker.timeline.joined import Joined
from tracker.timeline.steps import steps_at
from tracker.timeline.tree import grow


def api_table(joined: Joined) -> Table:
    """Per step, level and name: calls, total, and self = total without calls nested in it on the same thread; calls of
    the operating system nest among themselves alone. Calls of which the source knows sums alone stand behind them: they
    belong to no step, and self is MISSING.
    """
    of_calls = _of_calls(joined)
    totals = joined.events.extras.api_totals
    if not len(totals):
        return of_calls
    of_totals = _of_totals(totals, joined.events.strings.texts)
    return {
        name: [*column, *of_totals[name]] if isinstance(column, list) else np.concatenate((column, of_totals[name]))
        for name, column in of_calls.items()
    }


def _of_calls(joined: Joined) -> Table:
    launches, texts = joined.events.launches, joined.events.strings.texts
    calls = launches.level != LaunchLevel.FLOW
    rows = np.flatnonzero(calls) if joined.events.host_is_primary else np.zeros(0, dtype=np.int64)
    # what a CUDA call asks of the operating system, and what the profiler does meanwhile, stays its own time, as where
    # such calls were not traced
    level = launches.level[rows]
    lane = 3 * launches.thread[rows] + (level == LaunchLevel.OS) + 2 * (level == LaunchLevel.PROFILER)
    nested = grow(lane, launches.start_ns[rows], launches.end_ns[rows])
    duration = nested.end_ns - nested.start_ns
    step = steps_at(joined.events.markers, launches.start_ns[rows])
    groups = group_rows(step, launches.level[rows], rank_codes(launches.name[rows], texts))
    first = rows[groups.first]
    return {
        "step": step[groups.first],
        "level": [LaunchLevel(level).name.lower() for level in launches.level[first].tolist()],
        "name": look_up_texts(launches.name[first], texts),
        "calls": groups.counts,
        "total_ns": groups.sums(duration),
        "self_ns": groups.sums(nested.self_ns()),
        "min_ns": groups.smallest(duration),
        "max_ns": groups.largest(duration),
    }


def _of_totals(totals: ApiTotals, texts: list[str]) -> Table:
    groups = group_rows(totals.level, rank_codes(totals.name, texts))
    return {
        "step": np.full(len(groups.first), NO_STEP, dtype=np.int64),
        "level": [LaunchLevel(level).name.lower() for level in totals.level[groups.first].tolist()],
        "name": look_up_texts(totals.name[groups.first], texts),
        "calls": groups.sums(totals.calls),
        "total_ns": groups.sums(totals.total_ns),
        "self_ns": np.full(len(groups.first), MISSING, dtype=np.int64),
        "min_ns": groups.smallest(totals.min_ns),
        "max_ns": groups.largest(totals.max_ns),
    }
