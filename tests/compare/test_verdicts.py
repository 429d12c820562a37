"""Diffs of runs that repeat: verdicts where the runs can tell, a plain sentence where they cannot."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tracker
from tests.factories import save
from tests.regressions.made import runs
from tracker.compare import diff, diffs
from tracker.profile import Device
from tracker.regressions.actions import Word, act
from tracker.regressions.inbox import found_rows
from tracker.regressions.judgement import tracks_of, update
from tracker.results import VERDICT_COLUMNS, DiffOptions

SAMPLE = Path(tracker.__file__).parent / "samples" / "v01" / "run1.pt.trace.json.gz"


def verdicts(frame, *names):
    rows = frame.set_index("name" if "name" in frame else "metric")
    return [rows.loc[name, "verdict"] for name in names]


def nothing_judged(result):
    frames = (result.overall, result.ops, result.kernels, result.communication, result.modules)
    return not result.judgement.judged and all(frame[list(VERDICT_COLUMNS)].isna().all(axis=None) for frame in frames)


def causes(result):
    """What explains the change of the step: name, verdict and why of what is named."""
    return [(row.name, row.verdict, row.why) for row in result.explanation.contributions if row.why]


def test_a_slower_op_is_regressed_and_named_first(store):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.2, "op08": 1.4}, start=5)
    result = diff(store, "v1", "v2")
    assert verdicts(result.ops, "op07", "op08", "op09") == ["REGRESSED", "REGRESSED", "UNCHANGED"]
    row = result.ops.set_index("name").loc["op07"]
    assert (row["judged_diff"], row["q"] < 0.05) == (pytest.approx(0.2, abs=0.02), True)
    assert 0 < row["detectable"] < 0.1
    assert [(cause.name, cause.verdict) for cause in result.explanation.findings] == [
        ("op08", "REGRESSED"),
        ("op07", "REGRESSED"),
    ]
    assert causes(result)[:2] == [("op08", "REGRESSED", "slower per call"), ("op07", "REGRESSED", "slower per call")]
    assert {cause.verdict for cause in result.explanation.rollup[:2]} == {"REGRESSED"}
    assert {cause.stands_out for cause in result.explanation.rollup} == {None}
    first, operators, shared = result.judgement.sentences
    assert first == "Judged for this comparison alone: 3 runs against 5."
    assert operators == "Operators by name and shapes: 2 REGRESSED, 38 UNCHANGED."
    assert shared.startswith("Machine-wide drift ") and shared.endswith(" %, removed from the verdicts.")


def test_swapped_sides_mirror_the_verdicts(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3)
    back = diff(store, "v2", "v1")
    assert verdicts(back.ops, "op07") == ["IMPROVED"]
    assert causes(back)[0] == ("op07", "IMPROVED", "faster per call")


def test_a_slower_machine_is_drift_and_nothing_is_called_slower(store):
    runs(store, "v1", count=5)
    runs(store, "v2", start=5, shared=1.041)
    result = diff(store, "v1", "v2")
    assert set(result.ops["verdict"]) == {"UNCHANGED"}
    assert verdicts(result.overall, "step_ns", "compute_ns") == ["DRIFT", "DRIFT"]
    assert result.overall.set_index("metric")["verdict"].isna()["e2e_ns"], "no part of a window"
    assert result.judgement.sentences[-1].startswith("Machine-wide drift +4.")
    assert result.judgement.shared == pytest.approx(0.041, abs=0.005)
    assert result.headline.startswith("v2 ran 4.0 % slower than v1: ")
    assert result.explanation.remarks == (
        "All 40 operators are 4.2 % slower alike (3.1 to 4.5 %): clock or power before code.",
        "Of +4.0 %, +4.1 % is machine-wide drift: no less than the whole change.",
    )
    assert {verdict for _, verdict, _ in causes(result)} == {None}


def test_what_the_machine_does_not_explain_is_said_with_the_limit_that_it_misses(store):
    """Operators share +4 % of the +5.5 %; the rest, +1.5 %, is idle time and less than the 2 % of a device."""
    runs(store, "v1", count=5)
    runs(store, "v2", start=5, count=5, shared=1.04, idle_ns=600_000)
    result = diff(store, "v1", "v2")
    assert verdicts(result.overall, "step_ns") == ["DRIFT"]
    assert result.headline.startswith("v2 ran 5.4 % slower than v1: ")
    assert result.explanation.remarks == (
        "All 40 operators are 4.0 % slower alike (3.1 to 4.7 %): clock or power before code.",
        "Of +5.4 %, +4.0 % is machine-wide drift; the rest, +1.4 %, is below the 2 % that make a finding.",
    )


def test_a_step_that_is_slower_by_a_named_operator_is_called_slower(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 3.0}, start=3)  # 2 ms of 40 ms
    result = diff(store, "v1", "v2")
    assert result.headline.startswith("v2 is 4.9 % slower than v1: 40.00 -> 41.97")
    assert (result.explanation.verdict, result.explanation.remarks) == ("REGRESSED", ())
    assert causes(result)[0] == ("op07", "REGRESSED", "slower per call")


def test_one_new_run_makes_suspects_only(store):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.2}, start=5, count=1)
    result = diff(store, "v1", "v2")
    assert verdicts(result.ops, "op07") == ["SUSPECT"]
    assert result.judgement.sentences[0] == (
        "Judged for this comparison alone: 1 run against 5: suspects only, 1 more run of v2 decides."
    )
    assert causes(result)[0] == ("op07", "SUSPECT", "slower per call")


def test_one_run_against_one_gives_ratios_only(store):
    runs(store, "v1", count=1)
    runs(store, "v2", {"op07": 1.2}, start=5, count=1)
    result = diff(store, "v1", "v2")
    assert nothing_judged(result)
    assert result.judgement.sentences == (
        "One run each: no verdict on the time; a verdict needs 2 more runs of the baseline and 1 more run of the "
        "candidate.",
    )


def test_a_single_run_alone_is_judged_as_its_track_was(store):
    """Each version has one run: the level before them has 6, which tell a change of one run from noise."""
    runs(store, "v1", count=4)
    runs(store, "v2", start=4, count=1)
    runs(store, "v3", start=5, count=1)
    runs(store, "v4", {"op07": 1.2, "op08": 1.002}, start=7, count=1)
    update(store, tracks_of(store))
    (result,) = diffs(store, ["v4"])
    assert verdicts(result.ops, "op07", "op08") == ["SUSPECT", "UNCHANGED"]
    assert verdicts(result.overall, "step_ns") == ["UNCHANGED"]
    assert result.judgement.sentences[0] == (
        "Judged as in history and findings: 1 run against 6 of the level before (run 1-6): suspects only, 1 more "
        "run of v4 decides."
    )
    assert causes(result)[0] == ("op07", "SUSPECT", "slower per call")


def test_two_named_sides_of_one_run_have_facts_and_a_history(store):
    """v4 has gelu, which v3 had not: that is certain, and all of the change."""
    runs(store, "v1", count=4)
    runs(store, "v3", start=5, count=1)
    runs(store, "v4", {"gelu": 2_000_000}, start=7, count=1)
    update(store, tracks_of(store))
    result = diff(store, "v3", "v4")
    assert nothing_judged(result) and nothing_judged(diff(store, "v4", "v3"))
    assert result.headline.startswith("v4 ran ") and result.headline.endswith("; gelu is new (+2.00 ms)")
    assert diff(store, "v4", "v3").headline.endswith("; gelu is gone (-2.00 ms)")
    (history,) = [one for one in result.explanation.remarks if one.startswith("v4 in its history: ")]
    assert history.endswith(" against the level before it (run 1-5).")


def test_two_named_sides_answer_for_themselves(store):
    """v2 is slower than v1, v3 is as v1: as fast as v1, and an improvement in its history, as v2 came before it."""
    runs(store, "v1", count=6)
    runs(store, "v2", {"op07": 9.0}, start=6, count=3)
    runs(store, "v3", start=9, count=3)
    update(store, tracks_of(store))
    back = diff(store, "v2", "v3").explanation
    assert back.headline.startswith("v3 is 16.7 % faster than v2: ") and back.verdict == "IMPROVED"
    same = diff(store, "v1", "v3").explanation
    assert same.headline.startswith("v3 is as fast as v1: ") and same.verdict == "UNCHANGED"
    assert same.remarks == (
        "v3 in its history: IMPROVED, -16.7 % against the level before it (run 7-9).",
        "Back to the level of v1: the regression of v2 (I-1) is over.",
    )


def test_new_operators_are_a_difference_in_a_step_as_long(store):
    """relu takes the time of op07: the step is as long, and the work another one."""
    runs(store, "v1")
    runs(store, "v2", {"relu": 1_000_000}, start=3, without=("op07",))
    found = diff(store, "v1", "v2").explanation
    assert found.verdict == "UNCHANGED"
    assert "as fast" not in found.headline and found.headline.endswith("; 1 operator new, 1 gone")


def test_headline_of_a_step_as_long_names_what_regressed(store):
    """op07 takes .6 ms of 40 more, and op08 .2 less: the step is as long, and a user of op07 waits."""
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.6, "op08": 0.8}, start=3)
    update(store, tracks_of(store))
    found = diff(store, "v1", "v2").explanation
    assert found.verdict != "REGRESSED" and "v2 is as fast as v1" in found.headline
    assert found.headline.partition("; ")[2].startswith("1 operator REGRESSED: op07 +59.2 %")
    assert [one.verdict for one in found.contributions[:3]] == ["REGRESSED", "IMPROVED", None]


def test_headline_names_no_operator_that_users_expect(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.6}, start=3)
    update(store, tracks_of(store))
    ids = [row.finding_id for row in found_rows(store)]
    act(store, Word("expect", "ann", 2 * 10**18, "float64"), finding_ids=ids)
    assert "REGRESSED" not in diff(store, "v1", "v2").explanation.headline


def test_headline_of_a_faster_step_names_what_regressed(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.6, **{f"op{at}": 0.5 for at in range(10, 20)}}, start=3)
    found = diff(store, "v1", "v2").explanation
    assert found.verdict == "IMPROVED" and "1 operator REGRESSED: op07 +59.2 %" in found.headline


def test_headline_names_a_replacement_once(store):
    """gelu of .4 ms is written out as pow and tanh of .4 each: one cause of +100 % in a step as long."""
    before = [("gelu", 400_000, {"module": "mlp"})]
    runs(store, "v1", more_ops=before)
    runs(store, "v2", more_ops=[(name, 400_000, {"module": "mlp"}) for name in ("pow", "tanh")], start=3)
    assert "; 1 operator REGRESSED: gelu -> pow and 1 more +100.0 %" in diff(store, "v1", "v2").explanation.headline


def test_without_a_level_before_it_one_run_has_no_verdict(store):
    runs(store, "v1", count=1)
    runs(store, "v2", start=1, count=1)
    runs(store, "v3", start=2, count=3)
    runs(store, "v0", start=9, count=3, device=Device("Huawei", "Ascend910B"))
    assert nothing_judged(diff(store, "v1", "v2"))
    by_its_own_version = diff(store, "run:3", "run:2")
    assert nothing_judged(by_its_own_version)  # v3 is the newer of the two


def test_another_device_or_configuration_is_never_a_regression(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3, device=Device("Huawei", "Ascend910B"))
    runs(store, "v3", {"op07": 1.2}, start=6, of_run={"configuration": {"batch": "64"}})
    for candidate, different in (
        ("v2", "different device (NVIDIA H100 and Huawei Ascend910B)"),
        ("v3", "different configuration (none and batch=64)"),
    ):
        result = diff(store, "v1", candidate)
        assert nothing_judged(result)
        assert result.judgement.sentences == (f"Compared, not judged: {different}.",)


def test_a_part_of_the_runs_is_not_judged(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3)
    ranks = diff(store, "v1", "v2", options=DiffOptions(ranks=(0,)))
    steps = diff(store, "v1", "v2", options=DiffOptions(candidate_steps=(1, 2)))
    again = diff(store, "v1", "run:3,run:4")
    assert nothing_judged(ranks) and nothing_judged(steps) and nothing_judged(again)
    assert ranks.judgement.sentences == ("Not judged: v1 is only chosen ranks of its runs.",)
    assert steps.judgement.sentences == ("Not judged: v2 is only chosen steps of its runs.",)
    assert again.judgement.sentences == ("Not judged: on both sides is run 3.",)
    assert diff(store, "v1", "v1").judgement.sentences == ("Not judged: both sides are the same runs.",)


def test_files_of_the_same_content_are_the_same_runs(tmp_path):
    """Two folders with copies of one file are no two measurements: their ranges do not overlap by chance."""
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    found = diff(None, str(tmp_path / "before"), str(tmp_path / "after"))
    assert found.judgement.sentences == ("Not judged: both sides are the same files.",)
    assert found.explanation.remarks == (), "their steps cannot overlap by chance"
    steps = diff(None, str(SAMPLE), str(SAMPLE), options=DiffOptions(baseline_steps=(3,), candidate_steps=(4,)))
    assert "only chosen steps" in steps.judgement.sentences[0]


def test_an_older_candidate_is_said_to_be_the_older_side(store):
    """v1 against v2: what looks like a gain is the loss of v2, seen from behind."""
    runs(store, "v1", count=3)
    runs(store, "v2", {"op07": 1.5}, start=3)
    runs(store, "v3", {"op07": 1.5}, start=6)
    update(store, tracks_of(store))
    words = "v1 is the older side: name it first for what changed since."
    assert words in diff(store, "v3", "v1").explanation.remarks
    assert not any("older side" in remark for remark in diff(store, "v1", "v3").explanation.remarks)


def test_ops_that_came_and_went_are_named(store):
    runs(store, "v1")
    runs(store, "v2", {"new": 2_000_000}, start=3, without=("op07",))
    result = diff(store, "v1", "v2")
    assert verdicts(result.ops, "new", "op07") == ["ADDED", "REMOVED"]
    assert causes(result)[:2] == [("new", "ADDED", "new"), ("op07", "REMOVED", "gone")]


def test_ops_by_name_are_judged_by_the_series_of_their_name(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3)
    result = diff(store, "v1", "v2", options=DiffOptions(match="name"))
    assert verdicts(result.ops, "op07", "op08") == ["REGRESSED", "UNCHANGED"]


def test_rows_that_are_a_part_of_what_was_judged_have_no_verdict(store):
    for version, times in (("v1", (100, 101, 99)), ("v2", (150, 151, 149))):
        for at, ns in enumerate(times):
            ops = [("mm", ns, {"module": "A_0"}), ("add", 50, {"module": "B_0"})]
            start = 10**18 + at * 10**12 + (version == "v2") * 10**14
            save(store, version, ops=ops, kernels=[("gemm", ns)], steps=3, step_ns=ns + 50, started_at_ns=start)
    whole = diff(store, "v1", "v2")
    assert verdicts(whole.ops, "mm") == verdicts(whole.kernels, "gemm") == ["REGRESSED"]
    assert whole.modules.set_index("module")["verdict"].to_dict() == {"A_0": "REGRESSED", "B_0": "UNCHANGED"}
    part = diff(store, "v1", "v2", options=DiffOptions(module="A_0"))
    assert part.ops["verdict"].isna().all() and part.modules["verdict"].tolist() == ["REGRESSED"]
    assert part.judgement.sentences[-1].startswith("Operators are listed without verdicts: with --module ")
    of_op = diff(store, "v1", "v2", options=DiffOptions(op="mm"))
    assert of_op.kernels["verdict"].isna().all() and verdicts(of_op.ops, "mm") == ["REGRESSED"]
    assert of_op.judgement.sentences[-1].startswith("Kernels are listed without verdicts: with --op ")


def test_collectives_are_judged_by_kind_role_and_size(store):
    for version, factor in (("v1", 1.0), ("v2", 1.5)):
        for at, ns in enumerate((1000, 1010, 990)):
            more = {"group_role": "dp", "size_class_bytes": 1 << 20}
            exchange = [("all_reduce", int(ns * factor), more), ("broadcast", ns, {"group_role": "tp"})]
            start = 10**18 + at * 10**12 + (version == "v2") * 10**14
            save(store, version, communication=exchange, step_ns=5000, steps=2, started_at_ns=start)
    found = diff(store, "v1", "v2").communication.set_index("kind")["verdict"]
    assert found.to_dict() == {"all_reduce": "REGRESSED", "broadcast": "UNCHANGED"}


def test_more_calls_are_shown_beside_the_verdict_of_the_time(store):
    for version, calls in (("v1", 2), ("v2", 4)):
        for at, ns in enumerate((1000, 1010, 990)):
            ops = [("mm", ns * calls, {"calls": calls})]
            start = 10**18 + at * 10**12 + (version == "v2") * 10**14
            save(store, version, ops=ops, step_ns=8000, steps=2, started_at_ns=start)
    row = diff(store, "v1", "v2").ops.iloc[0]
    assert row[["verdict", "baseline_calls", "candidate_calls"]].tolist() == ["REGRESSED", 2, 4]


def test_numbers_of_the_whole_run_are_judged_too(store):
    runs(store, "v1")
    runs(store, "v2", start=3, shared=1.1)
    overall = diff(store, "v1", "v2").overall.set_index("metric")
    assert overall.loc["step_ns", "judged_diff"] == pytest.approx(0.1, abs=0.01)  # with what all operators share
    assert overall.loc["step_ns", ["verdict", "reason"]].tolist() == ["DRIFT", "it moved with the machine"]
    assert pd.isna(overall.loc["kernel_count", "verdict"])  # nothing follows it over versions


def test_where_only_one_shape_of_an_op_regressed_its_own_change_is_named(store):
    # [2] goes from 1 to 2 us; [4], the larger part of mm, jumps about, so that mm as a whole says nothing
    jumping = (20_000, 30_000, 25_000)
    for version, small in (("v1", 1000), ("v2", 2000)):
        for at, large in enumerate(jumping):
            ops = [("mm", small + at, {"input_shapes": "[2]"}), ("mm", large, {"input_shapes": "[4]"})]
            start = 10**18 + at * 10**12 + (version == "v2") * 10**14
            save(store, version, ops=ops, steps=2, step_ns=50_000, started_at_ns=start)
    (finding,) = diff(store, "v1", "v2").explanation.findings
    assert (finding.kind, finding.input_shapes, finding.verdict) == ("op", "[2]", "REGRESSED")
    assert finding.delta_ns == pytest.approx(1000, rel=1e-4)


def test_an_op_that_jumps_within_the_baseline_is_no_finding(store):
    """op07 takes 1 or 2 ms in the runs of v1: that all runs of v2 take 2 ms says nothing."""
    for number, level in enumerate([1.0, 2.0, 1.0, 2.0]):
        runs(store, "v1", {"op07": level}, count=1, start=number)
    runs(store, "v2", {"op07": 2.0}, start=4)
    result = diff(store, "v1", "v2")
    (row,) = result.ops[result.ops["name"] == "op07"].to_dict("records")
    assert (row["verdict"], row["reason"]) == (
        "INCONCLUSIVE",
        "some of its runs are within the range of the baseline runs",
    )
    assert result.explanation.findings == ()
    assert {verdict for _, verdict, _ in causes(result)} == {None}
