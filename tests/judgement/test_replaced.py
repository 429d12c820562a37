"""Operators that went, and those that came in their place, are one change, judged by its net."""

from __future__ import annotations

import pytest

from tests.judgement.test_findings import found
from tests.regressions.made import runs
from tracker import compare
from tracker.compare import gate_of_diff
from tracker.judgement import Wish, act, gate_of_findings, lines_of, update
from tracker.judgement.replaced import Calls, Context, Contexts, replacements

MS = 1_000_000
GELU = [("aten::gelu", 3 * MS, {"calls": 12, "parent": "op00"})]


def parts(total_ns, **more):
    """A gelu by hand, below the same op: 12 times 4 mul, a pow and a tanh."""
    names = {"aten::mul": 48, "aten::pow": 12, "aten::tanh": 12}
    return [(name, total_ns // 3, {"calls": calls, "parent": "op00", **more}) for name, calls in names.items()]


def replaced(store, after, before=GELU, **more):
    """Version v1 has the ops `before`, v2 `after`; all else stays as it is: 40 ops of 1 ms."""
    runs(store, "v1", more_ops=before, count=5)
    runs(store, "v2", more_ops=after, count=3, start=5, **more)
    update(store, lines_of(store))


def test_an_op_that_was_replaced_by_slower_ones_is_one_finding_with_the_net(store):
    """3 ms of gelu are 24 ms of mul, pow and tanh: 21 ms lost, told once."""
    replaced(store, parts(24 * MS))
    shown = found(store)
    (row,) = shown.findings[shown.findings["kind"] == "op_name"].to_dict("records")
    assert row["name"] == "aten::gelu -> aten::mul, aten::pow, aten::tanh"
    assert (row["baseline_value"], row["candidate_value"], row["delta"]) == (3 * MS, 24 * MS, 21 * MS)
    assert (row["verdict"], row["cause"], row["covers"]) == ("REGRESSED", "replaced under op00", 4)
    (one,) = shown.replacements.to_dict("records")
    assert (one["parent"], one["gone"], one["come"]) == ("op00", "aten::gelu", "aten::mul, aten::pow, aten::tanh")
    assert one["finding_id"] == row["finding_id"]
    assert gate_of_findings(found(store, only_new=True), "new").code == 1


def test_every_finding_by_itself_is_there_with_all(store):
    replaced(store, parts(24 * MS))
    shown = found(store, every=True)
    own = shown.findings[shown.findings["kind"] == "op_name"].set_index("name")
    assert own["change"].to_dict() == dict.fromkeys(["aten::gelu", "aten::mul", "aten::pow", "aten::tanh"], "presence")
    assert own.loc["aten::gelu", "cause"] == "replaced by aten::mul, aten::pow, aten::tanh"
    assert own.loc["aten::pow", "cause"] == "replaces aten::gelu"
    assert own["replacement"].nunique() == 1


@pytest.mark.parametrize("word", ["any", "new"])
def test_an_op_that_was_replaced_by_others_of_equal_time_fails_no_gate(store, word):
    """Three ops came, 1 ms each, for one of 3 ms: the step is as long as before."""
    replaced(store, parts(3 * MS))
    shown = found(store, only_new=word == "new")
    assert shown.incidents["direction"].tolist() == ["improvement"], "nothing got worse"
    assert gate_of_findings(shown, word).code == 0


def test_a_replacement_that_is_faster_is_an_improvement(store):
    """6 ms of gelu are 1.5 ms of others."""
    replaced(store, parts(3 * MS // 2), [("aten::gelu", 6 * MS, {"calls": 12, "parent": "op00"})])
    shown = found(store)
    row = shown.findings[shown.findings["kind"] == "op_name"].iloc[0]
    assert (row["direction"], row["verdict"], row["delta"]) == ("improvement", "IMPROVED", -4.5 * MS)
    assert set(shown.incidents["direction"]) == {"improvement"}
    assert gate_of_findings(found(store, only_new=True), "new").code == 0


def test_the_sum_of_the_incident_counts_each_operator_once(store):
    replaced(store, parts(24 * MS))
    (incident,) = found(store).incidents.to_dict("records")
    assert (incident["new_ns"], incident["gone_ns"]) == (24 * MS, -3 * MS)
    assert "replaced operators" in incident["causes"]


def test_what_came_below_another_op_replaced_nothing(store):
    replaced(store, [(name, ns, {**more, "parent": "op01"}) for name, ns, more in parts(24 * MS)])
    shown = found(store)
    assert shown.replacements.empty
    assert len(shown.findings[shown.findings["kind"] == "op_name"]) == 4


def test_at_the_top_level_an_input_of_one_shape_and_fitting_calls_are_the_same_work(store):
    """Nothing is known of what called them: as many calls with the same input are the same work."""
    shape = {"input_shapes": "[[8, 64]]", "calls": 12}
    replaced(store, [("aten::gelu_", 6 * MS, shape)], [("aten::gelu", 3 * MS, shape)])
    assert found(store).replacements["come"].tolist() == ["aten::gelu_"]


def test_at_the_top_level_other_shapes_are_other_work(store):
    own, other = ({"input_shapes": shapes, "calls": 12} for shapes in ("[[8, 64]]", "[[8, 32]]"))
    replaced(store, [("aten::gelu_", 6 * MS, other)], [("aten::gelu", 3 * MS, own)])
    assert found(store).replacements.empty


def test_a_module_is_a_parent_where_no_op_is_above(store):
    own = {"module": "Block_0", "calls": 12}
    replaced(store, [("aten::mul", 6 * MS, own | {"calls": 24})], [("aten::gelu", 3 * MS, own)])
    assert found(store).replacements["parent"].tolist() == ["Block_0"]


def test_of_an_op_that_is_called_more_often_only_the_further_calls_came(store):
    """mul took 2 ms in 24 calls and takes 6 ms in 72: 4 ms of it, and not 6, came for the 3 ms of gelu."""
    mul = ("aten::mul", 2 * MS, {"calls": 24, "parent": "op00"})
    more = ("aten::mul", 6 * MS, {"calls": 72, "parent": "op00"})
    replaced(store, [more], [mul, *GELU])
    (one,) = found(store).replacements.to_dict("records")
    assert (one["gone"], one["come"]) == ("aten::gelu", "aten::mul")
    assert (one["before_ns"], one["after_ns"]) == pytest.approx((3 * MS, 4 * MS))


def test_a_diff_says_it_in_its_first_line_and_names_no_part_of_it_again(store):
    replaced(store, parts(24 * MS))
    said = compare.diff(store, "v1", "v2").explanation
    (one,) = said.renames
    assert (one.removed, one.verdict, one.is_worse) == ("aten::gelu", "REGRESSED", True)
    assert "replaced: aten::gelu => aten::mul + aten::pow and 1 more +21.00 ms" in said.answer
    assert "ADDED" not in said.answer


@pytest.mark.parametrize("word", ["any", "new"])
def test_a_diff_of_what_was_replaced_for_no_loss_fails_no_gate(store, word):
    replaced(store, parts(3 * MS))
    assert gate_of_diff(compare.diff(store, "v1", "v2"), word).code == 0


def test_a_user_says_it_once_of_the_whole_replacement(store):
    replaced(store, parts(24 * MS))
    row = found(store).findings.query("kind == 'op_name'").iloc[0]
    wish = Wish("expect", "ann", 10**18, "gelu by hand until the fix")
    act(store, wish, finding_ids=[int(row["finding_id"])])
    left = found(store, every=True).findings
    assert left[left["name"].str.startswith("aten::")].empty


def contexts(*rows, modules=None):
    """(name, place of the context above or -1, calls)."""
    made = [Context((0, 0, at), (0, 0, above), name, "", calls) for at, (name, above, calls) in enumerate(rows)]
    return Contexts(made, modules or {})


def test_what_is_below_a_replaced_op_is_part_of_it():
    """A linear with its addmm and t is one fused op: three ops went below the block."""
    before = contexts(("block", -1, 1), ("linear", 0, 12), ("t", 1, 12), ("addmm", 1, 12))
    after = contexts(("block", -1, 1), ("fused", 0, 12))
    changes = {name: Calls(12, 0) for name in ("linear", "t", "addmm")} | {"fused": Calls(0, 12)}
    (one,) = replacements(before, after, changes)
    assert (one.parent, sorted(one.gone), sorted(one.come)) == ("block", ["addmm", "linear", "t"], ["fused"])


def test_calls_that_do_not_fit_replaced_nothing():
    before = contexts(("block", -1, 1), ("gelu", 0, 12))
    after = contexts(("block", -1, 1), ("clone", 0, 5))
    assert replacements(before, after, {"gelu": Calls(12, 0), "clone": Calls(0, 5)}) == ()


def test_only_losses_or_only_gains_are_no_replacement():
    both = contexts(("block", -1, 1), ("gelu", 0, 12), ("mul", 0, 24))
    assert replacements(both, both, {"gelu": Calls(6, 12), "mul": Calls(12, 24)}) == ()


def test_findings_of_no_replacement_say_so(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.5}, start=3)
    update(store, lines_of(store))
    assert found(store).findings["replacement"].isna().all()
    assert found(store, every=True).replacements.empty
