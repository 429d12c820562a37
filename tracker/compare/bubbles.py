"""The bubble of a pipeline in each step: what its ranks wait for each other, where the profiler only states 0.

Ascend's profilers sum `hcom_receive` and leave out `hcom_batchSendRecv`: their column `Bubble` is 0 beside stages that
wait for 40 % of the step. A 0 of theirs is no number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from tracker.columns import Column
from tracker.compare.side import GRAIN
from tracker.schema.column_names import BUBBLE_NS, RANK, RUN_ID, STEP, STEPS
from tracker.store import queries
from tracker.store.calls.splitting import is_between_stages

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide


def with_known_bubbles(side: LoadedSide) -> LoadedSide:
    """Return a side whose bubbles of 0 are what the ranks tell of them, else not known."""
    steps, captures = side.steps, side.captures
    is_zero = steps.known(BUBBLE_NS) & (steps.integers(BUBBLE_NS) <= 0)
    is_zero_of_capture = captures.known(BUBBLE_NS) & (captures.integers(BUBBLE_NS) == 0)
    if not is_zero.any() and not is_zero_of_capture.any():
        return side
    waits = _waits_between_stages(side)
    bubbles, is_unknown = steps.integers(BUBBLE_NS).copy(), ~steps.known(BUBBLE_NS)
    waits_of_rank: dict[tuple[int, int], float] = {}
    for at, (run_id, rank, step, count) in enumerate(steps.rows(RUN_ID, RANK, STEP, STEPS)):
        wait_ns = waits.get((run_id, rank, step), 0.0)
        if is_zero[at]:
            bubbles[at] = round(wait_ns / count)
            is_unknown[at] = not wait_ns
        waits_of_rank[run_id, rank] = waits_of_rank.get((run_id, rank), 0.0) + wait_ns
    sums, has_no_sum = captures.integers(BUBBLE_NS).copy(), ~captures.known(BUBBLE_NS)
    for at, key in enumerate(captures.rows(RUN_ID, RANK)):
        if is_zero_of_capture[at]:
            sums[at] = round(waits_of_rank.get(key, 0.0))
            has_no_sum[at] = not sums[at]
    return replace(
        side,
        steps=steps.having(bubble_ns=Column(bubbles, is_unknown)),
        captures=captures.having(bubble_ns=Column(sums, has_no_sum)),
    )


def _waits_between_stages(side: LoadedSide) -> dict[tuple[int, int, int], float]:
    """Return the waiting of each run, rank and step that no compute hides, in what one stage hands to the next; none
    where a call does not know it.
    """
    found: dict[tuple[int, int, int], float] = {}
    columns = ("run_id", "rank", "step", "group_role", "kind", "wait_ns", "exposed_wait_ns")
    for run_id, rank, step, role, kind, wait, bare in side.query(queries.communication, by=GRAIN).rows(*columns):
        if is_between_stages(role, kind):
            exposed = wait if bare is None else bare
            key = run_id, rank, step
            # one call that does not know it makes the whole sum unknown
            found[key] = found.get(key, 0.0) + (np.nan if exposed is None else exposed)
    return {key: ns for key, ns in found.items() if not np.isnan(ns)}
