"""What profilers count in tables of their own, on two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.compare import join
from tracker.compare.keys import taken
from tracker.lazy import pd
from tracker.profile import MODULE_CALLS
from tracker.results import BOTH, COUNTER_KEY, REPEATED_COUNTERS
from tracker.store import queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.compare.sides import Loaded

_KEY: Final = list(COUNTER_KEY)


def compare(baseline: Loaded, candidate: Loaded) -> pd.DataFrame:
    """The `counters` frame of a Diff: what both sides counted, the largest |diff| first, without REPEATED_COUNTERS."""
    sides = (baseline, candidate)
    frames = [of_side(side, ("run",)) for side in sides if side.has_rows(queries.counters)]
    if len(frames) < len(sides) or any(frame.empty for frame in frames):
        return join.nothing("counters")
    before, after = map(_medians, frames)
    joined = join.outer(before, after)
    joined = taken(joined, np.flatnonzero(joined["status"] == BOTH))
    mean0, mean1 = joined["baseline_mean"], joined["candidate_mean"]
    joined |= {"delta": mean1 - mean0, "diff": join.ratio(mean0, mean1)}
    return join.frame("counters", join.by_size(joined, "diff"))


def of_side(side: Loaded, by: Sequence[str]) -> pd.DataFrame:
    """The counters of a side at the grain `by`; those of no step too, unless some of several steps were chosen.

    Without the calls of modules, which the tree of modules shows.
    """
    steps = side.chosen_steps if side.is_part else None
    frame = side.about(queries.counters, by=tuple(by), ranks=side.ranks, steps=steps)
    return frame[frame["source"] != MODULE_CALLS].reset_index(drop=True)


def _medians(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over all values of a run, the median over the runs; index: source, name, attribute."""
    frame = frame[~frame["source"].isin(list(REPEATED_COUNTERS))]
    numbers = {name: frame[name].astype("Float64").astype("float64") for name in ("calls", "mean", "min", "max")}
    grouped = frame.assign(**numbers).groupby(_KEY)
    found: pd.DataFrame = grouped[["calls", "mean"]].median()
    return found.assign(min=grouped["min"].min(), max=grouped["max"].max())
