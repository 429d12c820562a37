"""Why the devices of two sides did nothing, cause by cause and place by place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracker.columns import objects
from tracker.compare import join
from tracker.results import BOTH, IDLE_KEY
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions


def compare(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> Columns:
    """Return the `idle` of a Diff: ns and gaps per step. Empty where a side that idles does not say why."""
    sides = baseline, candidate
    if not all(_says_why(side) for side in sides):
        return join.nothing("idle")
    joined = join.summed(sides, [side.ask(queries.idle) for side in sides], IDLE_KEY, ["ns", "gaps"])
    # the rows add up to all idle time: what has no row takes none
    names = [f"{side}_{number}" for side in ("baseline", "candidate") for number in ("ns", "gaps")]
    numbers = {name: np.nan_to_num(joined[name]) for name in names}
    joined = joined.having(status=objects([BOTH] * len(joined)), **numbers)
    return join.finished("idle", join.large(join.with_difference(joined, "ns"), "ns", options.minimum_ns))


def _says_why(side: Loaded) -> bool:
    """Return whether the side has rows of its idle time, or no idle time at all."""
    if not side.lacks(queries.idle):
        return True
    return bool(side.steps.known("idle_ns").any()) and not side.steps.integers("idle_ns").any()
