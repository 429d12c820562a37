"""A profiler's bubble of 0 beside stages that wait is no number: what the ranks tell stands for it, else nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.factories import record
from tests.ranks.made import MS, rank
from tracker import reports
from tracker.compare import diff, show
from tracker.profile import MISSING
from tracker.store import save_run


def npu_rank(number: int, wait_ms: int | None, bubble_ms: int):
    """A rank of a pipeline that waits so long for the next stage in each of 3 steps, and what its profiler says."""
    waits = [("send_recv", 8 * MS, {"group_role": "pp", "wait_ns": MISSING if wait_ms is None else wait_ms * MS})]
    made = rank(number, [10] * 3, [20] * 3, world_size=2, stage=number, communication=waits)
    steps = [replace(row, breakdown=replace(row.breakdown, bubble_ns=bubble_ms * MS)) for row in made.rows.steps]
    overall = replace(made.rows.overall, bubble_ns=3 * bubble_ms * MS)
    return replace(made, rows=replace(made.rows, steps=tuple(steps), overall=overall))


@pytest.mark.parametrize(
    ("wait_ms", "bubble_ms", "shown_ms"), [(6, 0, 6), (None, 0, None), (0, 0, None), (6, 5, 5)],
    ids=["the ranks tell it", "no call tells it", "nobody waits", "the profiler tells it"],
)  # fmt: skip
def test_bubble_of_0_is_what_the_ranks_tell(store, wait_ms, bubble_ms, shown_ms):
    save_run(
        store, record(), [npu_rank(0, wait_ms, bubble_ms), npu_rank(1, wait_ms, bubble_ms)], formats=["ascend_text"]
    )
    shown = show(store, "run:1")
    per_step = None if shown_ms is None else shown_ms * MS
    assert shown.tables["steps"].listed("bubble_ns") == [per_step] * 6
    assert shown.tables["overall"].listed("bubble_ns") == [None if per_step is None else 3 * per_step] * 2
    assert ("pipeline bubble" in reports.render(shown, "text", details=True)) == (shown_ms is not None)
    rows = {row["metric"]: row["candidate_value"] for row in diff(store, "run:1", "run:1").tables["overall"].records()}
    assert rows.get("bubble_ns") == per_step
