"""What took the place of what: one answer of findings and diffs, and no other name for it."""

from __future__ import annotations

import pytest

from tests.factories import EPOCH_NS, save
from tests.regressions.made import runs
from tracker.compare import diffs
from tracker.profile import NO_OP
from tracker.regressions.inbox import findings, found_rows
from tracker.regressions.judgement import tracks_of, update
from tracker.results import FindingsOptions

MLP = {"module": "mlp", "input_shapes": "[8]"}


def of_mlp(*times, **more):
    """Operators of one module: (name, ns[, calls])."""
    return [(name, ns, MLP | {"calls": calls[0] if calls else 1} | more) for name, ns, *calls in times]


def judged(store, before, after):
    """v1 with three runs of some operators beside 40 of 1 ms, and v2 with others."""
    runs(store, "v1", more_ops=before)
    runs(store, "v2", more_ops=after, start=3)
    update(store, tracks_of(store))


def causes(store):
    """Operator -> its state and cause."""
    return {row.name: (row.state, row.cause) for row in found_rows(store) if row.kind == "op_name"}


def test_findings_and_diff_name_one_replacement(memory_store):
    # copies and nodes of autograd come with what computes
    written_out = of_mlp(
        ("aten::tanh", 3_000_000), ("aten::pow", 2_000_000), ("aten::copy_", 500_000), ("PowBackward0", 400_000)
    )
    judged(memory_store, of_mlp(("aten::gelu", 1_500_000)), written_out)
    (found,) = (row for row in findings(memory_store).tables["findings"].listed("name") if "gelu" in row)
    (beside_level,) = diffs(memory_store, ["v2"])
    (cause,) = (row for row in beside_level.explanation.contributions if row.kind == "replacement")
    assert found == cause.name == "aten::gelu -> aten::tanh, aten::pow"
    assert cause.count == 5


def test_operator_that_is_replaced_by_several_is_not_renamed(memory_store):
    # add_ alone takes as long as gelu did
    written_out = of_mlp(("aten::add_", 1_500_000), ("aten::pow", 2_000_000))
    judged(memory_store, of_mlp(("aten::gelu", 1_500_000)), written_out)
    assert causes(memory_store) == {
        "aten::gelu": ("new", "replaced by aten::pow, aten::add_"),
        "aten::add_": ("new", "replaces aten::gelu"),
        "aten::pow": ("new", "replaces aten::gelu"),
    }


@pytest.mark.parametrize(
    ("before", "after", "is_renamed"),
    [
        (("aten::gelu", 1_500_000), ("fused::gelu", 1_500_000), True),
        (("aten::add_", 1_500_000), ("aten::gelu", 1_500_000), False),
        (("MulBackward0", 1_500_000), ("PowBackward0", 1_500_000), False),
        (("aten::gelu", 1_500_000), ("aten::gelu_backward", 1_500_000), False),
        # four calls that take as long together are other work
        (("aten::gelu", 1_500_000), ("fused::gelu", 1_500_000, 4), False),
    ],
)
def test_operator_is_renamed_by_more_than_letters(memory_store, before, after, is_renamed):
    judged(memory_store, of_mlp(before, module=""), of_mlp(after, module=""))
    states = {state for state, _ in causes(memory_store).values()}
    assert states == ({"renamed"} if is_renamed else {"new"})
    (found,) = diffs(memory_store, ["v2"])
    words = {row.why for row in found.explanation.contributions if row.kind == "replacement"}
    assert words <= {"renamed" if is_renamed else "replaced"}, "a diff has the word of findings"


def test_replacement_that_is_no_loss_is_no_regression(memory_store):
    # pow and tanh become a gelu that is new, allocates, and costs less than they did
    before, after = [("op01", 2**23)], [("op01", 2**23), ("aten::gelu", 2**20)]
    runs(memory_store, "v1", more_ops=of_mlp(("aten::pow", 400_000), ("aten::tanh", 300_000)), memory=before)
    runs(memory_store, "v2", more_ops=of_mlp(("aten::gelu", 400_000)), memory=after, start=3)
    update(memory_store, tracks_of(memory_store))
    found = findings(memory_store, options=FindingsOptions(every=True))
    assert "memory" in found.tables["findings"].listed("kind")
    assert found.tables["incidents"].listed("direction") == ["improvement"]


def of_graph(store, version, start, *kernels):
    """Three runs of a graph of 20 launches of each kernel (name, ns a step), beside attention of 5 ms."""
    for number in range(start, start + 3):
        rows = [(name, ns + number, {"op": NO_OP, "calls": 20}) for name, ns in kernels]
        rows.append(("attention", 5_000_000, {"op": NO_OP, "calls": 20, "category": "attention"}))
        total = sum(row[1] for row in rows)
        save(
            store, version, ops=[(NO_OP, total)], kernels=rows, steps=3, step_ns=total, e2e_ns=total,
            started_at_ns=EPOCH_NS + number * 10**12,
        )  # fmt: skip


@pytest.mark.parametrize(("after_ns", "is_renamed"), [(1_240_000, False), (1_050_000, False), (1_010_000, True)])
def test_replaced_graph_kernel_is_one_finding(memory_store, after_ns, is_renamed):
    """Its names are alike, and it is renamed only where it takes as long; of the graph itself nothing is listed."""
    of_graph(memory_store, "v1", 0, ("gemm_sm100", 1_000_000))
    of_graph(memory_store, "v2", 3, ("gemm_sm120", after_ns))
    update(memory_store, tracks_of(memory_store))
    rows = [row for row in found_rows(memory_store) if row.kind == "kernel"]
    assert {row.state for row in rows} == {"renamed" if is_renamed else "new"}
    if not is_renamed:
        found = findings(memory_store).tables["findings"]
        names = [name for kind, name in found.rows("kind", "name") if kind != "run"]
        assert names == ["gemm_sm100 -> gemm_sm120"]
        (incident,) = findings(memory_store).tables["incidents"].listed("operators_ns")
        assert incident == pytest.approx(after_ns - 1_000_000, abs=10)
