"""Sides that were recorded differently: compared on what both have, or not judged, with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories import EPOCH_NS, save
from tracker.compare import diff, diffs, log
from tracker.compare.gates import gate_of_diff
from tracker.profile import Device
from tracker.regressions.judgement import tracks_of, update
from tracker.results import UNMATCHED, DiffOptions, LogOptions

OPS = [(f"op{at}", 1_000_000) for at in range(30)]
SHAPED = [(name, ns, {"input_shapes": "[8]"}) for name, ns in OPS]
ON_HOST = [(name, 0, {"host_self_ns": ns, "host_total_ns": ns, **more}) for name, ns, more in SHAPED]
SIDES = [(SHAPED, {"record_shapes": "on"}), (OPS, {})]


def recorded(store, version, *, ops=SHAPED, settings=None, slower=1.0, count=3, **more):
    """`count` runs of `version`, whose ops and step take `slower` times as long as usual."""
    times = [(name, int(ns * slower), *rest) for name, ns, *rest in ops]
    for at in range(count):
        start = EPOCH_NS + at * 10**12 + int(version.removeprefix("v")) * 10**14
        of_run = {"ops": times, "settings": settings or {}, "started_at_ns": start, **more}
        save(store, version, steps=3, step_ns=int(40_000_000 * slower), kernels=[("gemm", 30_000_000)], **of_run)


def statuses(found, *tables):
    return {word for table in tables for word in found.tables[table].listed("status")}


def verdicts(found):
    tables = (found.tables[name] for name in ("overall", "ops", "kernels", "memory", "modules", "api"))
    return {word for table in tables for word in table.listed("verdict")} - {None}


@pytest.mark.parametrize("sides", [SIDES, SIDES[::-1]], ids=["then without", "then with"])
def test_one_side_without_shapes_is_matched_by_name(store, sides):
    for version, (ops, settings) in zip(("v1", "v2"), sides, strict=True):
        recorded(store, version, ops=ops, settings=settings)
    found = diff(store, "v1", "v2")
    assert (len(found.tables["ops"]), statuses(found, "ops", "memory", "kernels")) == (30, {"both"})
    without = "v2" if sides is SIDES else "v1"
    assert found.notes[0] == (
        f"{without} was recorded without shapes: operators are matched by name. Record with record_shapes=True to "
        "compare them per shape."
    )
    assert found.options.match == "name"
    assert gate_of_diff(found).code != 1


def test_shapes_are_known_from_rows_where_no_setting_says_so(store):
    recorded(store, "v1")
    recorded(store, "v2", ops=OPS)
    assert "v2 was recorded without shapes" in diff(store, "v1", "v2").notes[0]


def test_a_slower_kernel_is_found_though_only_one_side_has_stacks(store):
    """Stacks make the host slower, never a kernel: op0 takes twice as long on the device, the step is not judged."""
    recorded(store, "v1")
    slower = [("op0", 2_000_000, {"input_shapes": "[8]"}), *SHAPED[1:]]
    recorded(store, "v2", ops=slower, settings={"with_stack": "on"})
    found = diff(store, "v1", "v2")
    said = dict(found.tables["ops"].rows("name", "verdict"))
    assert (said["op0"], said["op1"]) == ("REGRESSED", "UNCHANGED")
    step = found.overall.set_index("metric").loc["step_ns"]
    assert step.isna()["verdict"] and "with_stack off -> on" in step["reason"]
    assert gate_of_diff(found).code == 1


def test_a_slower_host_with_stacks_is_no_regression(store):
    recorded(store, "v1")
    recorded(store, "v2", settings={"with_stack": "on"}, api=[("launch", 900)])
    found = diff(store, "v1", "v2")
    assert verdicts(found) <= {"UNCHANGED"}
    (why,) = found.explanation.remarks
    assert "slower" not in found.headline and "faster" not in found.headline
    assert why.startswith("Not judged: with_stack off -> on")


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({"profile_memory": "on"}, {"memory": [("op0", 512)]}),
        ({"with_modules": "on"}, {"ops": [(name, ns, {**more, "module": "Net_0"}) for name, ns, more in SHAPED]}),
        ({"with_stack": "on", "record_shapes": "on"}, {}),
        ({"profiler_level": "Level1"}, {"api": [("launch", 900)]}),
    ],
    ids=["memory", "modules", "stacks", "level"],
)
def test_what_one_side_alone_recorded_neither_came_nor_went(store, settings, more):
    recorded(store, "v1", settings={"profiler_level": "Level0"} if "profiler_level" in settings else {})
    recorded(store, "v2", settings=settings, **more)
    for pair in (("v1", "v2"), ("v2", "v1")):
        found = diff(store, *pair)
        assert statuses(found, "ops", "kernels", "memory", "modules", "api") <= {"both", UNMATCHED}
        assert verdicts(found) <= {"UNCHANGED", "BELOW_LIMIT"}
        assert gate_of_diff(found).code != 1


def test_sides_with_and_without_steps_are_not_comparable(store):
    """The same three steps, once with markers and once as one capture: three times as long, and no news."""
    recorded(store, "v1")
    for at in range(3):
        whole = [(name, 3 * ns, *more) for name, ns, *more in SHAPED]
        save(store, "v2", steps=1, step_ns=120_000_000, ops=whole, started_at_ns=EPOCH_NS + 10**15 + at * 10**12)
    found = diff(store, "v1", "v2")
    assert not found.judgement.judged
    assert found.judgement.sentences[0].startswith("Not comparable: step markers marked -> unmarked")
    assert (gate_of_diff(found).code, statuses(found, "kernels") <= {"both", UNMATCHED}) == (3, True)


def test_other_rules_of_names_leave_what_matches(store):
    recorded(store, "v1", settings={}, of_run={"rules_version": 2})
    more = [*SHAPED, ("renamed", 1_000_000, {"input_shapes": "[8]"})]
    recorded(store, "v2", ops=more, of_run={"rules_version": 3})
    found = diff(store, "v1", "v2")
    said = dict(found.tables["ops"].rows("name", "status"))
    assert (said["op0"], said["renamed"]) == ("both", UNMATCHED)
    assert gate_of_diff(found).code != 1


def test_a_new_framework_version_is_judged(store):
    recorded(store, "v1", of_run={"facts": {"torch_version": "2.5", "trace_schema_version": "1"}})
    slower = [("op0", 20_000_000, {"input_shapes": "[8]"}), *SHAPED[1:]]
    recorded(store, "v2", ops=slower, of_run={"facts": {"torch_version": "2.6", "trace_schema_version": "1"}})
    assert gate_of_diff(diff(store, "v1", "v2")).code == 1


def test_two_workloads_are_not_comparable_and_nothing_else_is_said(store):
    save(store, "v1", workload="gpt", runs=3, steps=3)
    save(store, "v2", workload="bert", runs=3, steps=3, step_ns=5000)
    found = diff(store, "run:1,run:2,run:3", "run:4,run:5,run:6")
    reason = "not comparable: different workload (gpt and bert)"
    assert found.explanation.headline == f"runs 4-6 against runs 1-3: {reason}"
    assert (gate_of_diff(found).code, gate_of_diff(found).because) == (3, reason.capitalize())
    assert [name for name, table in found.tables.items() if len(table)] == ["environment"]
    forced = diff(store, "run:1,run:2,run:3", "run:4,run:5,run:6", options=DiffOptions(force=True))
    assert (len(forced.tables["ops"]) > 0, gate_of_diff(forced).code) == (True, 3)
    assert (
        forced.explanation.headline.startswith("runs 4-6 against runs 1-3: ")
        and "per step" in forced.explanation.headline
    )
    why = "Not comparable: different workload (gpt and bert)"
    assert forced.explanation.remarks == (f"{why}; shown all the same, not judged.",)
    assert forced.judgement.sentences == (f"{why}.",), "nobody is sent to --force again"


def test_two_models_are_not_comparable(store):
    for version, model in (("v1", "gpt"), ("v2", "bert")):
        save(store, version, runs=3, steps=3, of_run={"configuration": {"model": model}})
    answer = diff(store, "v1", "v2").explanation.headline
    assert answer == "v2 against v1: not comparable: different model (gpt and bert)"


def of_names(prefix, times):
    return [(f"{prefix}{at}", ns * 1_000_000) for at, ns in enumerate(times)]


def test_sides_with_other_operators_are_not_comparable(store):
    """2 of 14 names are in both, with 2 of 8 ms on either side: two models under one workload."""
    both = of_names("both", [1, 1])
    save(store, "v1", ops=both + of_names("conv", [1] * 6))
    save(store, "v2", ops=both + of_names("attention", [1] * 6))
    said = diff(store, "v1", "v2").explanation.headline
    assert said == (
        "v2 against v1: not comparable: only 14 % of the operators are on both sides, by their names, with 25 % of the "
        "time of one"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (of_names("op", [1] * 6), [*of_names("op", [1] * 6), ("slow", 90_000_000)]),
        ([*of_names("op", [1] * 6), ("attention", 90_000_000)], [*of_names("op", [1] * 6), ("fused", 60_000_000)]),
        (of_names("a", [1] * 4), of_names("b", [1] * 4)),
    ],
    ids=["one is new", "one is replaced", "too few to say"],
)
def test_sides_with_most_names_in_common_are_compared(store, before, after):
    save(store, "v1", ops=before)
    save(store, "v2", ops=after)
    assert len(diff(store, "v1", "v2").tables["ops"]) >= 6


def test_another_device_is_compared_without_a_verdict(store):
    recorded(store, "v1")
    recorded(store, "v2", slower=2.0, device=Device("Huawei", "Ascend 910B"))
    found = diff(store, "v1", "v2", options=DiffOptions())
    assert found.headline == "v2 against v1: 40.00 -> 80.00 ms per step (+100.0 %, +40.00 ms)"
    assert "different device" in found.explanation.remarks[0] and gate_of_diff(found).code == 3


def test_the_window_of_a_version_holds_runs_recorded_alike(store):
    """v1 and v3 without stacks, v2 with: v3 is compared with the runs of v1."""
    recorded(store, "v1")
    recorded(store, "v2", settings={"with_stack": "on"}, slower=1.5)
    recorded(store, "v3")
    update(store, tracks_of(store))
    (found,) = diffs(store, ["v3"])
    assert found.baseline.label == "run:1,run:2,run:3"
    assert found.notes[0] == "The baseline is the level that v3 was judged against: v1 (run 1-3)."


def test_a_log_compares_steps_that_were_recorded_alike(store):
    """v1 40 ms, v2 60 ms with stacks, v3 44 ms: v3 is 10 % slower than v1, and v2 stands alone."""
    recorded(store, "v1")
    recorded(store, "v2", settings={"with_stack": "on"}, slower=1.5)
    recorded(store, "v3", slower=1.1)
    cells = log(store, options=LogOptions(metric="step")).cells
    assert cells["previous_version"].fillna("none").tolist() == ["none", "none", "v1"]
    assert cells["previous_diff"].fillna(0).round(3).tolist() == [0, 0, 0.1]


def test_graph_against_eager_compares_kernels_by_the_same_settings():
    """A CUDA graph replaces operators: the few that are left have no shapes, but both headers state record_shapes."""
    folder = Path(__file__).parents[1] / "data" / "h200"
    found = diff(None, *(str(folder / f"host_{name}.pt.trace.json.gz") for name in ("ahead", "graph")))
    assert not any("record_shapes" in text for text in (*found.explanation.remarks, *found.notes))
    kernels = {row["name"]: row["status"] for row in found.tables["kernels"].records()}
    products = [status for name, status in kernels.items() if name.startswith("nvjet")]
    assert products == ["both"]
