"""Thresholds: which limit holds for a series, and that all that is judged follows them at once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.made import runs
from tracker.errors import UsageError
from tracker.judgement import (
    Where,
    apply_calibration,
    calibrate,
    explain,
    findings,
    history,
    lines_of,
    set_thresholds,
    unset_thresholds,
    update,
    verdicts_of,
)
from tracker.judgement.setting import check
from tracker.judgement.thresholds import NONE, Thresholds
from tracker.profile import Device
from tracker.results import CalibrateOptions, FindingsOptions, HistoryOptions
from tracker.store import queries
from tracker.store import runs as edits
from tracker.store.thresholds import Threshold, of_line

OP = ("op", "device_self_ns")
WHY = {"who": "ann", "when_ns": 1, "reason": "noisy"}


def limit(name, value, kind="", pattern="", **where):
    return Threshold(name, value, kind, pattern, **where, **WHY)


# -- which limit holds -------------------------------------------------------------------------------------------------


def test_without_thresholds_the_usual_limits_hold():
    assert (NONE.limits(OP, ["a"]).min_ratio, NONE.confirm) == (0.03, 2)
    assert NONE.limits(("communication", "total_ns"), ["a"]).min_ratio == 0.10
    assert [NONE.limits(("run", ""), ["step"], device_timed=timed).min_ratio for timed in (True, False)] == [0.02, 0.05]
    assert NONE.limits_of_calls(("communication", "total_ns"), ["a"]).min_ratio == 0.03
    creep, step = NONE.creep(OP, ["a"])
    assert (creep.min_ratio, step) == (0.08, 0.03)


def test_a_name_goes_before_a_kind_and_a_kind_before_all():
    known = Thresholds((limit("min_ratio", 0.2), limit("min_ratio", 0.3, "op"), limit("min_ratio", 0.4, "", "gemm*")))
    assert known.limits(OP, ["relu", "gemm_1"]).min_ratio.tolist() == [0.3, 0.4]
    assert known.limits(("api", "self_ns"), ["cudaLaunch"]).min_ratio == 0.2
    assert known.of("min_ratio", "op", "gemm_1").pattern == "gemm*"


def test_a_longer_name_goes_before_a_shorter_one_and_a_device_before_all():
    known = Thresholds(
        (limit("min_ratio", 0.1, "", "aten::*"), limit("min_ratio", 0.2, "", "aten::copy_"), limit("confirm", 3),
         limit("confirm", 4, device_id=7))
    )  # fmt: skip
    assert known.limits(OP, ["aten::copy_", "aten::add"]).min_ratio.tolist() == [0.2, 0.1]
    assert known.confirm == 4


def test_what_steps_only_count_from_ten_per_cent_on_does_not_creep_by_eight():
    known = Thresholds((limit("min_ratio", 0.10, "op", "gemm"),))
    creep, step = known.creep(OP, ["gemm", "relu"])
    assert (creep.min_ratio.tolist(), step.tolist()) == ([0.10, 0.08], [0.10, 0.03])
    own = Thresholds((*known.rows, limit("creep_ratio", 0.05)))
    assert own.creep(OP, ["gemm", "relu"])[0].min_ratio == 0.05


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (limit("min_ration", 0.1), "there is no threshold 'min_ration'; choose from min_ratio, "),
        (limit("min_ratio", 0.0), "min_ratio cannot be 0; give a fraction .0.03, or 3%. between 0.001 and 1"),
        (limit("min_ratio", 10.0), "min_ratio cannot be 10; give a fraction .0.03, or 3%."),  # 10 % were meant
        (limit("min_ratio", float("nan")), "min_ratio cannot be nan"),
        (limit("confirm", 11), "confirm cannot be 11; give a whole number between 1 and 10"),
        (limit("confirm", 1.5), "confirm cannot be 1.5"),
        (limit("confirm", 3, "op"), "confirm is for a line as a whole"),
        (limit("alpha", 0.01, "", "gemm"), "alpha is shared by all series of a kind"),
        (limit("min_ratio", 0.1, "", "x" * 401), "the pattern has 401 characters"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(bad, message):
    with pytest.raises(UsageError, match=message):
        check(bad)


# -- everything follows ------------------------------------------------------------------------------------------------


def two_versions(store):
    """op07 is 6 % slower from the first run of v2 on."""
    runs(store, "v1", count=8)
    runs(store, "v2", {"op07": 1.06}, count=3, start=8)
    update(store, lines_of(store))


def open_ops(store):
    frame = findings(store, options=FindingsOptions(kind="op")).findings
    return frame["name"].tolist()


def previous(store):
    points = history(store, options=HistoryOptions(key="op07", kind="op")).points
    return points["baseline_verdict"].tolist()[-1]


def test_a_larger_threshold_takes_a_finding_back_and_without_it_it_is_there_again(store):
    two_versions(store)
    assert (open_ops(store), previous(store)) == (["op07"], "REGRESSED")
    assert set_thresholds(store, [limit("min_ratio", 0.10, "op", "op0*")], Where()) == 2
    assert (open_ops(store), previous(store)) == ([], "UNCHANGED")
    sides = [queries.run_ids_of_version(store, label) for label in ("v1", "v2")]
    assert verdicts_of(store, *sides).table.xs("op07", level="name").xs("op")["verdict"].tolist() == ["UNCHANGED"]
    note = history(store, options=HistoryOptions(key="op07")).notes[0]
    assert note == "Judged by thresholds of your own: min_ratio 10 % of op op0*."
    assert unset_thresholds(store, [Threshold("min_ratio", 0.0, "op", "op0*")], Where()) == 2
    assert (open_ops(store), previous(store)) == (["op07"], "REGRESSED")


def test_setting_the_same_again_judges_nothing_anew(store):
    two_versions(store)
    assert set_thresholds(store, [limit("alpha", 0.01)], Where()) == 2
    assert set_thresholds(store, [limit("alpha", 0.01)], Where()) == 0
    assert len(queries.thresholds(store)) == 1


def test_a_threshold_for_another_device_changes_nothing_here(store):
    two_versions(store)
    runs(store, "v1", count=1, start=20, device=Device("NVIDIA", "A100"))
    update(store, lines_of(store))
    set_thresholds(store, [limit("min_ratio", 0.10)], Where(device="A100"))
    assert open_ops(store) == ["op07"]
    with pytest.raises(UsageError, match=r"several devices match: NVIDIA A100; .*; name one of them with --device"):
        set_thresholds(store, [limit("min_ratio", 0.10)], Where(device="n"))


def test_three_confirming_runs_are_waited_for_where_three_are_wanted(store):
    runs(store, "v1", count=8)
    update(store, lines_of(store))
    set_thresholds(store, [limit("confirm", 3)], Where())
    states = []
    for number in range(8, 12):
        runs(store, "v2", {"op07": 1.2}, count=1, start=number)
        update(store, lines_of(store))
        found = findings(store, options=FindingsOptions(kind="op"))
        states.append(found.findings["state"].item())
    assert states == ["suspect", "suspect", "new", "new"], "three runs of the version decide, where two are usual"
    assert found.findings["confirm"].item() == 3
    gate = explain(store, found.findings["finding_id"].item()).gates.set_index("gate").loc["candidate runs"]
    assert (gate["value"], gate["limit"], gate["passes"]) == (4, 3, True)
    assert gate["limit_from"] == "confirm 3, ann: noisy"


def test_one_confirming_run_decides_where_one_is_enough(store):
    two_versions(store)
    runs(store, "v3", {"op07": 1.06, "op09": 1.3}, count=1, start=11)
    runs(store, "v4", {"op07": 1.06, "op09": 1.3}, count=1, start=12)
    update(store, lines_of(store))
    before = findings(store).findings.set_index("name").loc["op09", "state"]
    set_thresholds(store, [limit("confirm", 1)], Where())
    after = findings(store).findings.set_index("name").loc["op09", "state"]
    assert (set(np.atleast_1d(before)), set(np.atleast_1d(after))) == ({"suspect"}, {"new"})


def test_explain_names_the_limit_that_held_and_where_it_is_from(store):
    two_versions(store)
    set_thresholds(store, [limit("min_ratio", 0.05, "op")], Where())
    (number,) = findings(store, options=FindingsOptions(kind="op")).findings["finding_id"]
    gates = explain(store, number).gates.set_index("gate")
    assert gates.loc["effect", ["limit", "limit_from"]].tolist() == [0.05, "min_ratio 5 % of op, ann: noisy"]
    assert gates.loc["contribution", ["limit", "limit_from"]].tolist() == [0.001, "usual"]


def test_a_calibration_can_be_applied_and_then_is_what_is_in_use(store):
    factors = {f"op{at:02}": 1.02 + 0.005 * at for at in range(0, 40, 2)}
    runs(store, "v1", count=3)
    runs(store, "v1", factors, count=3, start=3)
    found = calibrate(store, ["v1"])
    proposed = found.proposals.set_index("kind")["proposed_ratio"].to_dict()
    kinds = apply_calibration(store, found, who="ann", when_ns=1, reason="six repeats")
    assert set(kinds) == set(proposed)
    kept = queries.thresholds(store).set_index("kind")["threshold"].to_dict()
    assert kept == proposed
    again = calibrate(store, ["v1"]).proposals.set_index("kind")
    assert again["used_ratio"].to_dict() == proposed
    assert (again["used_false"] <= 1).all()


def test_a_noisy_series_with_a_threshold_of_its_own_no_longer_raises_that_of_its_kind(store):
    for number in range(8):
        runs(store, "v1", {f"op{at:02}": 1.5 if number > 4 else 1.0 for at in (7, 8, 9)}, count=1, start=number)
    options = CalibrateOptions(splits=60)
    ops = {"kind": "op", "pattern": "op0?"}
    before = calibrate(store, ["v1"], options=options).ratios.set_index(["kind", "min_ratio"])["worst_false"]
    set_thresholds(store, [limit("min_ratio", 0.6, **ops)], Where())
    after = calibrate(store, ["v1"], options=options).ratios.set_index(["kind", "min_ratio"])["worst_false"]
    assert (before["op", 0.2], after["op", 0.2]) == (3, 0)


def test_thresholds_go_with_the_last_run_of_their_workload(store):
    ids = runs(store, "v1", count=1)
    set_thresholds(store, [limit("confirm", 3)], Where())
    edits.delete_all(store, ids, "test", purge=True)
    assert len(queries.thresholds(store)) == 0


def test_a_configuration_whose_values_another_one_has_beside_others_is_named_by_just_these(store):
    """Of `a=1`, `a=1 b=2` and `c=3 d=4` the first is meant by a=1, the second by b=2; of the third a part is enough."""
    for start, values in enumerate(({"a": "1"}, {"a": "1", "b": "2"}, {"c": "3", "d": "4"})):
        runs(store, "v1", start=3 * start, of_run={"configuration": values})
    number = {row["configuration"]: row["configuration_id"] for row in queries.lines(store).to_dict("records")}

    def is_set():
        return {row["configuration"] for row in queries.thresholds(store, None).to_dict("records")}

    for config, expected in (({"a": "1"}, "a=1"), ({"a": "1", "b": "2"}, "a=1 b=2"), ({"d": "4"}, "c=3 d=4")):
        where = Where(config=config)
        set_thresholds(store, [limit("min_ratio", 0.2)], where)
        assert is_set() == {expected}
        holds = {line.configuration_id for line in lines_of(store) if the_limits(store, line)}
        assert holds == {number[expected]}
        unset_thresholds(store, [limit("min_ratio", 0.0)], where)
        assert is_set() == set()
    with pytest.raises(UsageError, match="no threshold min_ratio is set"):
        unset_thresholds(store, [limit("min_ratio", 0.0)], Where(config={"b": "2"}))


def the_limits(store, line):
    with store.connect() as connection:
        return of_line(connection, line)


def test_a_configuration_that_several_could_be_is_refused_and_so_is_a_device(store):
    for start, (values, model) in enumerate((({"a": "1", "b": "2"}, "H100"), ({"a": "1", "b": "3"}, "H100 NVL"))):
        device = Device("NVIDIA", model)
        runs(store, "v1", start=3 * start, of_run={"configuration": values}, device=device)
    with pytest.raises(UsageError, match="several configurations match: a=1 b=2; a=1 b=3; name one of them"):
        set_thresholds(store, [limit("min_ratio", 0.2)], Where(config={"a": "1"}))
    with pytest.raises(UsageError, match="several devices match: NVIDIA H100; NVIDIA H100 NVL; name one of them"):
        set_thresholds(store, [limit("min_ratio", 0.2)], Where(device="h10"))
    set_thresholds(store, [limit("min_ratio", 0.2)], Where(device="h100"))
    assert queries.thresholds(store, None)["device"].tolist() == ["H100"]
