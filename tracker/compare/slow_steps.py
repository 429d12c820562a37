"""Steps that take longer than the median, which hides them: how many there are, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.store.samples.statistics import mean_over_steps, over_ranks, over_steps, without_filling
from tracker.units import counted, format_ns

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.sides import Loaded

SLOW: Final = 1.2
"""Times the median step of its rank."""
_MATTERS: Final = 0.01
"""Share of the step by which the mean step is longer."""


class SlowSteps(Struct, frozen=True, eq=False):
    """Of each run of a side: the number of slow steps of the rank with most, how many times the median the slowest one
    took, the mean step (without a first one that holds the filling of the queue) and the step; nan where no step has a
    time.
    """

    count: F64
    longest: F64
    mean_ns: F64
    step_ns: F64


def slow_steps(side: Loaded) -> SlowSteps:
    """The slow steps of each run, in the order of `side.run_ids`."""
    run, rank = (side.steps.integers(name) for name in ("run_id", "rank"))
    durations, weights = side.steps.reals("duration_ns"), side.steps.reals("steps")
    starts, markers = side.steps.reals("start_ns"), side.steps.reals("marker_ns")
    found = np.full((4, len(side.run_ids)), np.nan)
    for at, run_id in enumerate(side.run_ids):
        ranks = {number: stage for own, number, stage in side.captures.rows("run_id", "rank", "stage") if own == run_id}
        of_ranks = []
        for number in ranks:
            own = np.flatnonzero((run == run_id) & (rank == number) & ~np.isnan(durations))
            own = own[np.argsort(starts[own], kind="stable")]
            times, weight = durations[own][None, :], weights[own]
            if len(own) and times.any():
                lasting = without_filling(times[0], markers[own])[None, :]
                step, mean = over_steps(times, weight)[0], mean_over_steps(lasting, weight)[0]
                ratio = times[0] / step
                of_ranks.append((float(weight[ratio > SLOW].sum()), float(ratio.max()), float(mean), float(step)))
            else:
                of_ranks.append((np.nan,) * 4)
        table = np.array(of_ranks).reshape(-1, 4).T
        stages = np.array(list(ranks.values()), dtype=np.int64)
        if not np.isnan(table[3]).all():
            found[:, at] = [np.nanmax(table[0]), np.nanmax(table[1]), *over_ranks(table[2:], stages)]
    return SlowSteps(*found)


def note_on_slow_steps(side: Loaded) -> tuple[str, ...]:
    """A sentence where slow steps make the mean step longer than the step by at least 1 %."""
    slow = slow_steps(side)
    cost = slow.mean_ns - slow.step_ns
    matter = np.flatnonzero((slow.count > 0) & (cost >= _MATTERS * slow.step_ns))
    if not len(matter):
        return ()
    worst = matter[np.argmax(cost[matter] / slow.step_ns[matter])]
    of_run = f" of run:{side.run_ids[worst]}" if len(side.run_ids) > 1 else ""
    # where a row is the mean of several steps, which of them were slow is not known
    own = side.steps.integers("run_id") == side.run_ids[worst]
    of_means = ", by the means of their intervals," if (side.steps.integers("steps")[own] > 1).any() else ""
    return (
        f"{counted(int(slow.count[worst]), 'step')}{of_run}{of_means} took more than {SLOW:g} times the median, up to "
        f"{slow.longest[worst]:.2f} times; they make the mean step {format_ns(cost[worst])} longer than the median "
        "step.",
    )
