"""Inputs of another size are other work: neither slower nor faster code."""

from __future__ import annotations

import pytest

from tests.factories import EPOCH_NS, save
from tracker.compare import diff
from tracker.compare.gates import gate_of_diff
from tracker.results import DiffOptions

MM = "[[{},4096],[4096,4096]]"
GELU = "[[8,{},4096]]"


def side(store, version, *sizes, mm=4_000_000, gelu=100_000, fixed=300_000, more=(), mm_shapes=MM):
    """A run for each size of the inputs of mm and gelu, which take as long as given; norm's inputs stay the same."""
    first = 10 * (version == "v2")
    for number, size in enumerate(sizes, first):
        ops = [
            ("aten::mm", mm + number, {"input_shapes": mm_shapes.format(size), "calls": 8}),
            ("aten::gelu", gelu + number, {"input_shapes": GELU.format(size)}),
            ("aten::norm", fixed + number, {"input_shapes": "[[4096]]"}),
            *more,
        ]
        total = sum(op[1] for op in ops)
        kernels = [(f"kernel of {op[0]}", op[1], {"op": {"name": op[0], **shaped(op)}}) for op in ops]
        save(
            store, version, ops=ops, kernels=kernels, steps=3, step_ns=total, e2e_ns=total,
            started_at_ns=EPOCH_NS + number * 10**12,
        )  # fmt: skip


def shaped(op):
    return {"input_shapes": op[2]["input_shapes"]}


def longer(store, *, times=1.5, **after):
    """v1 of sequences of 2048, and v2 of `times` as long ones, each as fast as before for its length."""
    side(store, "v1", 2048, 2048, 2048)
    size = round(2048 * times)
    side(store, "v2", size, size, size, **{"mm": int(4_000_000 * times), "gelu": int(100_000 * times)} | after)
    return diff(store, "v1", "v2")


def verdicts(found):
    """Return name -> verdict and status of each operator."""
    return {name: (verdict, status) for name, verdict, status in found.tables["ops"].rows("name", "verdict", "status")}


def test_longer_inputs_are_other_work_and_no_slower_step(memory_store):
    found = longer(memory_store)
    work = "other work: 2048 -> 3072 in 2 operators, 1.5 x the elements"
    assert found.headline == f"v2 against v1: {work}; 4.40 -> 6.45 ms per step (+46.6 %, +2.05 ms)"
    assert found.explanation.verdict is None
    assert "aten::mm: time per FLOP unchanged; aten::gelu: time per byte unchanged." in found.explanation.remarks
    assert verdicts(found)["aten::mm"] == (None, "both")
    assert set(found.tables["overall"].listed("verdict")) == {None}
    assert gate_of_diff(found).code == 4


def test_shorter_inputs_are_other_work_too(memory_store):
    found = longer(memory_store, times=0.5)
    assert found.headline.startswith("v2 against v1: other work: 2048 -> 1024 in 2 operators, 0.5 x the elements; ")


def test_causes_of_other_work_are_not_called_slower(memory_store):
    (mm, gelu) = longer(memory_store).explanation.contributions[:2]
    assert [(row.name, row.why, round(row.delta_ns / 1e3)) for row in (mm, gelu)] == [
        ("aten::mm", "other work", 2000),
        ("aten::gelu", "other work", 50),
    ]


def test_operator_with_the_same_inputs_is_judged_beside(memory_store):
    """norm takes 0.3 ms, then 0.45, though its inputs are the same."""
    found = longer(memory_store, fixed=450_000)
    assert verdicts(found)["aten::norm"][0] == "REGRESSED"
    assert found.headline.endswith("; 1 operator REGRESSED: aten::norm +50.0 %")
    assert gate_of_diff(found).code == 1


def test_rate_that_changed_with_the_inputs_is_said(memory_store):
    """mm takes 7.2 ms for what would take 6 at the speed of before."""
    found = longer(memory_store, mm=7_200_000)
    assert found.explanation.remarks[0].startswith("aten::mm: time per FLOP +20.0 %; ")


@pytest.mark.parametrize(
    "after",
    [
        {"times": 1.04},  # as batches differ
        {"mm_shapes": "[[{},4096],[4096,512]]"},  # another size differs as well
        {"more": [("aten::bmm", 9_000_000, {"input_shapes": "[[4]]"})]},  # what is new takes more than half
    ],
)
def test_more_than_one_larger_size_is_no_other_work(memory_store, after):
    assert "other work" not in longer(memory_store, **after).headline


def test_batches_of_any_length_are_no_other_work(memory_store):
    side(memory_store, "v1", 2048, 1800, 2300)
    side(memory_store, "v2", 3072, 3072, 3072, mm=6_000_000)
    assert "other work" not in diff(memory_store, "v1", "v2").headline


def test_other_work_is_known_where_operators_match_by_name(memory_store):
    longer(memory_store)
    found = diff(memory_store, "v1", "v2", options=DiffOptions(match="name"))
    assert "other work: 2048 -> 3072" in found.headline


def test_single_runs_of_other_work_wait_for_no_verdict_on_the_step(memory_store):
    side(memory_store, "v1", 2048)
    side(memory_store, "v2", 3072, mm=6_000_000, gelu=150_000)
    (reason,) = diff(memory_store, "v1", "v2").judgement.sentences
    assert reason.startswith("One run each: no verdict on operators with the same inputs; ")
