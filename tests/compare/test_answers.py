"""The headline of a diff and what explains it: what they name, and what they may not claim."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, breakdown, capture, record, save
from tests.regressions.made import runs
from tracker.compare import diff, diffs
from tracker.profile import CPU, Device, StepRow
from tracker.regressions.judgement import tracks_of, update
from tracker.results.verdicts import REASONS
from tracker.store import Store, save_run


def loaders(store: Store, version: str, loading_ns: int, step_ns: list[int], copy_ns: int) -> None:
    """A run per step of `step_ns`, with its wait for data beside the op that grows."""
    for number, step in enumerate(step_ns):
        start = EPOCH_NS + number * 10**12 + (version == "v2") * 10**14
        noise = 1.0 + 0.001 * number
        ops = [("mm", int(40_000_000 * noise)), ("copy_", int(copy_ns * noise))]
        made = capture(steps=[3], ops=ops, step_ns=step, e2e_ns=step, started_at_ns=start)
        numbers = replace(made.rows.steps[0].breakdown, data_loading_ns=int(loading_ns * noise))
        rows = replace(made.rows, overall=replace(made.rows.overall, data_loading_ns=numbers.data_loading_ns))
        rows = replace(rows, steps=(replace(made.rows.steps[0], breakdown=numbers),))
        save_run(store, record(version, started_at_ns=start), [replace(made, rows=rows)], formats=["torch_profiler"])


def test_uneven_runs_make_no_claim_and_the_parts_keep_their_verdicts(store: Store):
    """The step falls by some 20 ms, too unevenly to be sure; loading fell by 56 ms, for sure; one op grew by 1 ms."""
    loaders(store, "v1", 57_000_000, [150_000_000, 180_000_000, 165_000_000], 2_000_000)
    loaders(store, "v2", 1_000_000, [160_000_000, 130_000_000, 145_000_000], 3_000_000)
    found = diff(store, "v1", "v2")
    assert found.headline.startswith("v2 may be 12.2 % faster than v1: ")
    assert found.explanation.remarks == ("The runs differ too much to be sure.",)
    row, idle = found.explanation.contributions[:2]
    assert (idle.kind, idle.why) == ("part", "waits for data"), "what has a verdict stands before what has none"
    assert (row.name, row.verdict, row.why) == ("copy_", "REGRESSED", "slower per call")
    loading = found.overall.set_index("metric").loc["data_loading_ns"]
    assert (loading["verdict"], round(loading["delta"] / 1e6, 1)) == ("IMPROVED", -56.1)


def test_an_op_slower_by_less_than_the_machine_has_no_verdict(store: Store):
    """All operators take 10 % longer, op07 only 2 %: that is not faster, though its machine made 7 % more of others."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.02 / 1.10}, start=5, count=5, shared=1.10)
    found = diff(store, "v1", "v2")
    row = found.ops.set_index("name").loc["op07"]
    assert (row["verdict"], row["reason"]) == ("INCONCLUSIVE", REASONS["CORRECTION"])
    assert round(row["delta_ns"] / 1e4) == 2


def test_a_cause_is_compared_with_the_runs_of_its_verdict(store: Store):
    """op07 takes 1 ms, then 1.5, then 1.3. The step has one level, the runs of v1 and v2, of which op07 took 1.22 ms on
    the mean; it came from the 1.5 ms of v2: -13.3 %. That this is .27 ms more than the mean is no change of v3.
    """
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.5}, start=3)
    runs(store, "v3", {"op07": 1.3}, start=6)
    update(store, tracks_of(store))
    (found,) = diffs(store, ["v3"])
    rows = found.explanation.contributions
    op07 = next(row for row in rows if row.name == "op07")
    earlier = next(row for row in rows if row.kind == "earlier")
    assert (round(op07.delta_ns / 1e4), op07.verdict, op07.why) == (-19, "IMPROVED", "faster per call")
    assert round(earlier.delta_ns / 1e4) == 27
    assert sum(row.delta_ns for row in rows) == pytest.approx(found.explanation.delta_ns)
    row = found.ops.set_index("name").loc["op07"]
    assert row["diff"] == pytest.approx(1.3 / 1.5 - 1, abs=0.01), "the table has the number of the verdict"


def test_named_versions_are_exactly_these_sides_in_every_row(store: Store):
    """The step of v3 was judged against v1 and v2. Between v2 and v3 alone op07 rises from 1 to 1.5 ms, in its table as
    in its verdict, though the level that it left began with v1.
    """
    runs(store, "v1")
    runs(store, "v2", start=3)
    runs(store, "v3", {"op07": 1.5}, start=6)
    update(store, tracks_of(store))
    for sides in (["v3"], ["v2", "v3"]):
        (found,) = diffs(store, sides)
        row = found.ops.set_index("name").loc["op07"]
        assert (row["verdict"], round(row["diff"], 1)) == ("REGRESSED", 0.5)
        assert not [row for row in found.explanation.contributions if row.kind == "earlier"]


def test_operators_that_went_before_are_neither_new_nor_gone(store: Store):
    """op07 is gone since v2, op99 came in v2; the step of v3 is judged against v1 and v2. Nothing came or went in v3,
    and what came and went in v2 is no part of its change.
    """
    runs(store, "v1")
    for number, version in ((3, "v2"), (6, "v3")):
        runs(store, version, {"op99": 1_000_000}, without=("op07",), start=number)
    update(store, tracks_of(store))
    (found,) = diffs(store, ["v3"])
    assert found.ops.status.unique().tolist() == ["both"]
    assert "new" not in found.headline
    assert "gone" not in found.headline


def test_a_replacement_has_the_same_numbers_as_its_rename(store: Store):
    """aten::mul takes 50 ns of its own, before and after: that is no part of what replaced aten::gelu."""
    gelu, mul = ("aten::gelu", 100, {"input_shapes": "[8]"}), ("aten::mul", 50, {"input_shapes": "[8]"})
    save(store, "v1", ops=[gelu, mul], steps=3)
    save(store, "v2", ops=[("aten::mul", 250, {"input_shapes": "[8]", "calls": 5})], steps=3)
    found = diff(store, "v1", "v2").explanation
    (rename,) = found.renames
    (cause,) = (row for row in found.contributions if row.kind == "replacement")
    assert (rename.removed_ns, rename.added_ns) == (cause.baseline_ns, cause.candidate_ns) == (100, 200)


def window(store: Store, version: str, compute_ns: int, *, e2e_ns: int = 1000) -> None:
    """A capture without steps."""
    whole = breakdown(
        duration_ns=1100, e2e_ns=e2e_ns, compute_ns=compute_ns, communication_ns=0, overlap_ns=0,
        exposed_communication_ns=0, copy_ns=0, exposed_copy_ns=0, idle_ns=e2e_ns - compute_ns,
    )  # fmt: skip
    made = capture(ops=[("mm", compute_ns)])
    rows = replace(made.rows, overall=whole, steps=(StepRow(0, 0, whole),))
    save_run(store, record(version), [replace(made, rows=rows)], formats=["nsys_sqlite"])


def test_cut_outs_of_equal_length_say_nothing_of_speed(store: Store):
    window(store, "v1", 700)
    window(store, "v2", 600)
    found = diff(store, "v1", "v2").explanation
    assert found.headline == "v2 against v1: E2E 1.00 -> 1.00 us (0.0 %, +0 ns)"
    assert "say nothing of its speed; inside them compute -100 ns, idle +100 ns." in found.remarks[0]


def test_captures_of_the_same_work_are_as_fast(store: Store):
    window(store, "v1", 700)
    window(store, "v2", 705)
    assert diff(store, "v1", "v2").explanation.headline.startswith("v2 is as fast as v1: E2E 1.00")


def test_a_shape_that_is_a_finding_has_its_own_numbers_and_the_other_shapes_have_theirs(store: Store):
    """The small shape takes 2 ms longer, surely; the large one 0.4 ms of 98, which is too little."""
    for version, small_ns, large_ns, start in (("v1", 4_000_000, 98_000_000, 0), ("v2", 6_000_000, 98_400_000, 5)):
        shapes = [("mm", small_ns, {"input_shapes": "[2]"}), ("mm", large_ns, {"input_shapes": "[9]"})]
        runs(store, version, start=start, count=5, more_ops=shapes)
    found = [row for row in diff(store, "v1", "v2").explanation.contributions if row.name == "mm"]
    told = [(row.input_shapes, row.baseline_ns, row.candidate_ns, row.verdict) for row in found]
    assert told == [("[2]", 4e6, 6e6, "REGRESSED"), ("other shapes", 98e6, 98.4e6, None)]


def test_collectives_on_the_host_count_once(store: Store):
    """The host waits 10 ms in its collective, then 18: 8 ms of exposed communication, and of no operator."""
    for version, waits_ns in (("v1", 10_000_000), ("v2", 18_000_000)):
        ops = [("mm", 90_000_000), ("gloo:all_reduce", waits_ns)]
        ops = [(name, 0, {"host_self_ns": ns, "host_total_ns": ns}) for name, ns in ops]
        tasks = [("all_reduce", waits_ns, {"tasks": [("gloo:all_reduce", waits_ns)]})]
        step_ns = 90_000_000 + waits_ns
        made = capture(ops=ops, kernels=(), communication=tasks, steps=3, step_ns=step_ns, e2e_ns=step_ns, device=CPU)
        numbers = breakdown(
            timeline="host", duration_ns=step_ns, e2e_ns=step_ns, compute_ns=90_000_000, communication_ns=waits_ns,
            exposed_communication_ns=waits_ns, overlap_ns=0, copy_ns=0, exposed_copy_ns=0, idle_ns=0,
        )  # fmt: skip
        steps = tuple(replace(step, breakdown=numbers) for step in made.rows.steps)
        rows = replace(made.rows, overall=numbers, steps=steps)
        save_run(store, record(version, device=CPU), [replace(made, rows=rows)], formats=["torch_profiler"])
    found = diff(store, "v1", "v2").explanation.contributions
    assert [(row.kind, row.metric or row.name, row.delta_ns) for row in found] == [
        ("part", "exposed_communication_ns", 8_000_000)
    ]


def test_what_small_kinds_of_work_changed_between_devices_is_no_operator(store: Store):
    save(store, "v1", kernels=[("gemm", 5000), ("cast", 5, {"category": "vector"})], started_at_ns=EPOCH_NS)
    there = Device("AMD", "MI300X")
    save(store, "v2", kernels=[("gemm", 6000), ("cast", 6, {"category": "vector"})], device=there)
    rows = diff(store, "v1", "v2").explanation.contributions
    assert [(row.kind, row.name, row.delta_ns) for row in rows[:2]] == [
        ("category", "Matmul", 1000), ("others", "kinds of work", 1)
    ]  # fmt: skip


def test_attention_written_out_is_one_cause_and_copies_are_another(store: Store):
    """12 calls of attention became 24 of bmm, 12 of div, 12 of softmax in the same module; copies are there anyway."""
    placed = {"module": "Attention_0", "calls": 12}
    mm = ("aten::mm", 50_000, {"calls": 48})
    save(store, "v1", ops=[mm, ("aten::attention", 6_000, placed), ("aten::copy_", 1_000, {"calls": 5})])
    written_out = [("aten::bmm", 8_000, {**placed, "calls": 24}), ("aten::div", 2_000, placed)]
    written_out += [("aten::_softmax", 4_000, placed), ("aten::copy_", 2_000, {"calls": 17})]
    save(store, "v2", ops=[mm, *written_out])
    found = diff(store, "v1", "v2").explanation
    assert [(one.removed, one.added) for one in found.renames] == [
        ("aten::attention", "aten::bmm + aten::_softmax + aten::div")
    ]
    replaced, copied = found.contributions[:2]
    assert (replaced.kind, replaced.delta_ns) == ("replacement", 8_000)
    assert (copied.name, copied.delta_ns, copied.why) == ("aten::copy_", 1_000, "more calls")
