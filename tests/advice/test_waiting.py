"""What advice knows of waiting: the split that all ranks of a group tell, and why there is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.advice.made import save
from tests.factories import record
from tests.ranks.made import job
from tests.ranks.test_cluster import MOVING, gemms
from tests.store.test_call_splits import EARLY, FORMATS, MS, rank
from tracker.advice.evidence import Evidence
from tracker.advice.judging import of_run
from tracker.store import save_run


def test_exposed_waiting_is_at_least_what_is_no_transit(store):
    """40 ms, of which compute hides 5; the late rank needs 10 ms: 25 of the exposed 35 ms are waiting."""
    early, late = rank(0, [(0, 40)], exposed_ns=[35 * MS]), rank(1, [(30, 40)])
    save_run(store, record(), [early, late], formats=FORMATS)
    waits = Evidence(store, 1).waits
    assert {number: own.whole / MS for number, own in waits.items()} == {0: 25, 1: 0}


def test_reason_of_unknown_waiting_is_looked_up(store):
    of_three = {"groups": ["0,1,2"], "world": 3}
    save_run(store, record(), [rank(0, [(0, 40)], **of_three), rank(1, [(30, 40)], **of_three)], formats=FORMATS)
    why = Evidence(store, 1).why_waiting_is_unknown("dp")
    assert why == "not known, 2 of 3 ranks of a group are captured"


def test_calls_that_do_not_match_have_no_split(store):
    """All ranks are captured: that is not the reason."""
    save_run(store, record(), [EARLY, rank(1, [(900, 950)])], formats=FORMATS)
    assert Evidence(store, 1).why_waiting_is_unknown("dp") == "not known, the calls of its ranks could not be matched"


def test_rank_that_is_waited_for_has_a_name(store):
    made = rank(0, [(0, 8)], groups=("",), world=8, group_size=8)
    columns = ("communication", "peer", "is_global", "calls", "total_ns", "max_ns")
    waits = zip(columns, np.array([[0, 3, 0, 1, MS, MS], [0, 5, 0, 1, 8 * MS, 8 * MS]]).T, strict=True)
    made.rows.tables["communication_wait"] = dict(waits)
    save_run(store, record(), [made], formats=["ascend_text"])
    assert Evidence(store, 1).name_waited_for(0) == ("rank 5 of the group", 8 * MS)


@pytest.mark.parametrize(("sizes", "has_advice"), [((16, 32, 48, 64), True), ((16, 16, 16, 16), False)])
def test_work_moves_only_where_it_is_unequal(store, sizes, has_advice):
    job(store, MOVING, gemms(*sizes))
    assert ("P4" in {item.rule for item in of_run(store, 1).items}) is has_advice


@pytest.mark.parametrize(
    ("own_ms", "is_late"),
    [
        ({0: [60.0] * 5, 1: [90.0] * 5}, True),
        ({0: [60.0, 95.0, 60.0, 95.0, 60.0], 1: [90.0, 61.0, 90.0, 61.0, 90.0]}, False),
        ({0: [60.0], 1: [90.0]}, True),
        ({0: [60.0], 1: [66.0]}, False),
    ],
    ids=["in each step", "in most steps by chance", "one step, much", "one step, little"],
)
def test_rank_is_late_where_it_is_more_than_chance(memory_store, own_ms, is_late):
    """The other rank waits until the step of 100 ms ends."""
    count = len(own_ms[0])
    waits = {rank: [100 - ms for ms in times] for rank, times in own_ms.items()}
    least = min(min(own) for own in waits.values())
    of_step = {rank: [int(ms - least) for ms in own] for rank, own in waits.items()}
    call = ("all_reduce", MS, {"exposed_ns": MS, "exposed_wait_ns": MS, "wait_ns": MS, "group_role": "dp"})
    run = save(
        memory_store, ranks=2, steps=count, communication=[call], times={"compute": 50},
        times_of_steps={rank: [{"exposed_communication": ms} for ms in own] for rank, own in waits.items()},
        factors_of={rank: {"communication": own} for rank, own in of_step.items()},
    )  # fmt: skip
    assert (Evidence(memory_store, run).late_rank is not None) is is_late
