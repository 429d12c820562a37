"""Numbers of advice are those of a usual step: medians, and nothing of what comes in one step alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.advice.made import MS, advise, gain_ms, kernel, only, rules, save
from tracker.advice.evidence import Evidence
from tracker.advice.medians import RankSteps, median_over_steps, reduce_rows
from tracker.columns import Columns
from tracker.store.queries.ops_and_kernels import StepRows

WORK = {"compute": 60, "idle": 0}


@pytest.mark.parametrize(
    ("factors", "ms", "calls"),
    [((1, 3, 2), 10, 4), ((0, 9, 0), 0, 0), ((0, 3, 3), 15, 6), ((2, 0), 5, 2), ((0, 3, 0, 3), 7.5, 3)],
    ids=["median", "one step alone", "most steps", "of two steps the median", "mean of every second step"],
)
def test_piece_of_work_is_that_of_a_usual_step(memory_store, factors, ms, calls):
    made = {"times": WORK, "kernels": [kernel("aten::mm", 5, calls=2)], "steps": len(factors)}
    (piece,) = Evidence(memory_store, save(memory_store, **made, factors={"kernel": factors})).pieces
    assert (piece.ns / MS, piece.calls) == (ms, calls)


def test_table_with_few_filled_cells_has_the_same_medians():
    """1,500 keys in 1,500 steps: key 0 is in all, key 1 in one step, key 2 in two; the others are not there."""
    steps = np.arange(1_500)
    step = np.concatenate([steps, [7, 7, 8]])
    key = np.concatenate([np.zeros(1_500, dtype=np.int64), [1, 1_499, 1_499]])
    numbers = {"rank": np.zeros(1_503, dtype=np.int64), "step": step, "key": key}
    rows = Columns({**numbers, "total_ns": np.append(np.full(1_500, 4), [900, 750, 750])})
    texts = Columns({"name": np.array([str(at) for at in range(1_500)], dtype=object)})
    usual = reduce_rows(StepRows(rows, texts), {0: RankSteps(steps, np.ones(1_500))}, ["total_ns"])
    assert usual.key.tolist() == [0, 1, 1_499]
    assert usual.numbers["total_ns"].tolist() == [4, 0, 1]


def test_median_of_waiting_by_weights_has_no_mean():
    table = np.array([[0.0, 0.0, 90.0], [0.0, 30.0, 90.0]])
    assert median_over_steps(table, np.array([1.0, 4.0, 1.0])).tolist() == [0, 30]


@pytest.mark.parametrize(
    ("factors", "ms"), [((800, 1, 2, 2, 2), 2), ((800, 0, 0, 0, 0), None)], ids=["each step waits", "the first alone"]
)
def test_first_collective_that_waits_is_no_usual_one(memory_store, factors, ms):
    """It waits for the rank that starts last."""
    wait = ("all_reduce", MS, {"exposed_ns": MS, "exposed_wait_ns": MS, "wait_ns": MS, "transit_ns": 0})
    times = [{"exposed_communication": factor, "duration": 100 + factor} for factor in factors]
    found = advise(
        memory_store, times=WORK, of_step=times, steps=5, communication=[wait], factors={"communication": factors}
    )
    assert ("N2" in rules(found)) is (ms is not None)
    assert ms is None or gain_ms(found, "N2") == ms


def test_one_late_batch_is_no_data_loading_of_a_usual_step(memory_store):
    late = [{"data_loading": 0, "data_loading_idle": 0}] * 2 + [{"data_loading": 60, "data_loading_idle": 60}]
    assert "I1" not in rules(advise(memory_store, times=WORK, of_step=late, steps=3))
    often = advise(memory_store, times=WORK, of_step=[late[2], late[0], late[2]], steps=3)
    assert gain_ms(often, "I1") == 60


def test_what_comes_now_and_then_says_in_how_many_steps(memory_store):
    """The first step is left out: 8 ms in two of the four others are 4 ms a step."""
    idle = [("garbage collection", "gc", 8 * MS)]
    found = advise(
        memory_store, times={"compute": 60, "idle": 8}, idle=idle, steps=5, factors={"idle": (1, 1, 0, 1, 0)}
    )
    assert gain_ms(found, "H4") == 4
    assert only(found, "H4").numbers[1].words == "in steps: 2 of 4, here as their mean"


def test_collective_of_few_steps_says_so(memory_store):
    """Of six steps two have a broadcast of 12 ms: 4 ms a step."""
    found = advise(
        memory_store, times={"compute": 60, "exposed_communication": 12}, steps=6,
        communication=[("broadcast", 12 * MS)], factors={"communication": (0, 1, 0, 0, 1, 0)},
    )  # fmt: skip
    words = [number.words for number in only(found, "N1").numbers]
    assert words[0] == "exposed 4.00 ms"
    assert words[2] == "in steps: 2 of 6, here as their mean"


def test_capture_without_markers_has_e2e_as_its_step(memory_store):
    assert advise(memory_store, times={"duration": 200, "e2e": 80, "compute": 60, "idle": 20}).step_ns == 80 * MS
    marked = advise(memory_store, times={"duration": 200, "e2e": 80, "compute": 60, "idle": 20}, steps=2)
    assert marked.step_ns == 200 * MS
