"""Whether a diff fails a build: what counts, and the exit code."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.factories import save
from tests.regressions.made import runs
from tracker.compare import diff, diffs, gate_of_diff
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.regressions.judgement import tracks_of, update
from tracker.results import DiffOptions
from tracker.results.thresholds import Threshold
from tracker.store.tracks import write_limits

SLOW = {"op07": 1.5}
"""One of 40 ops: 1.25 % of the step."""


def judged(store, *versions, start=0):
    """Versions v1, v2, ... of three runs each, with what is changed in them, and their findings."""
    for number, changed in enumerate(versions):
        runs(store, f"v{number + 1}", changed, start=start + 3 * number)
    update(store, tracks_of(store))


def gate(store, baseline, candidate, word="new", **options):
    return gate_of_diff(diff(store, baseline, candidate, options=DiffOptions(**options)), word)


def names(found, outcome="failed"):
    return [row.name for row in found.of(outcome)]


def test_operators_that_make_the_step_slower_on_the_whole_are_exit_1_and_named(store):
    """op07 takes .2 ms more and op08 .5 ms, of 40 ms: 1.7 %. The step as a whole must change by 2 % to be a finding."""
    judged(store, None, {"op07": 1.2, "op08": 1.5})
    found = gate(store, "v1", "v2")
    assert (found.code, names(found)) == (1, ["op08", "op07"])
    assert found.because == "the operators found got slower by +1.7 % of the step"
    assert gate(store, "v2", "v1").code == 0, "all of it is better"


def test_a_slower_step_is_exit_1(store):
    judged(store, None, {"op07": 3.0})
    found = gate(store, "v1", "v2")
    assert (found.code, found.because) == (1, "the step got slower")
    assert names(found)[:2] == ["Step time", "op07"]


def test_nothing_that_fails_is_exit_0(store):
    judged(store, None, None)
    found = gate(store, "v1", "v2")
    assert (found.code, found.because) == (0, "nothing fails")


@pytest.mark.parametrize("word", ["new", "any"])
def test_what_is_never_judged_is_exit_3(store, word):
    judged(store, None)
    runs(store, "w1", SLOW, start=20, device=Device("Huawei", "Ascend910B"))
    found = gate(store, "v1", "w1", word)
    assert (found.code, found.rows) == (3, ())
    assert found.because == "Compared, not judged: different device (NVIDIA H100 and Huawei Ascend910B)"
    assert gate(store, "v1", "v1", word).code == 3
    assert gate(store, "v1", "run:2", word).code == 3
    assert gate(store, "v1", "w1", word, ranks=(0,)).code == 3


def test_one_run_against_one_is_exit_4(store):
    runs(store, "v1", count=1)
    runs(store, "v2", SLOW, start=1, count=1)
    found = gate(store, "v1", "v2")
    assert found.code == 4 and found.because.startswith("One run each: no verdict on the time")


def test_the_first_runs_of_a_track_are_exit_4(store):
    judged(store, None)
    runs(store, "v2", SLOW, start=3)
    assert gate(store, "run:1,run:2", "v2").code == 4, "two runs of a baseline are too few"
    assert gate(store, "run:1,run:2", "v2").because == "the step has no verdict: too few runs, or other settings"


def test_a_suspect_of_the_step_is_exit_4_and_one_of_an_operator_alone_0(store):
    judged(store, None)
    runs(store, "v2", SLOW, start=3, count=1)
    found = gate(store, "v1", "v2")
    assert (found.code, names(found, "suspect")) == (0, ["op07"])
    runs(store, "v3", {"op07": 3.0}, start=4, count=1)
    found = gate(store, "v1", "v3")
    assert (found.code, found.because) == (4, "the step may be slower: one more run of the version decides")
    assert names(found, "suspect")[:2] == ["Step time", "op07"]


def test_peak_memory_that_rises_by_a_tenth_is_exit_1(store):
    """1000, 1099, then 1300 bytes: 9.9 % is no reason to block, 18 % against the version before is."""
    for number, size in enumerate((1000, 1099, 1300)):
        runs(store, f"v{number + 1}", start=3 * number, peak_allocated_bytes=size)
    update(store, tracks_of(store))
    assert gate(store, "v1", "v2").code == 0
    found = gate(store, "v2", "v3")
    assert (found.code, found.because) == (1, "peak memory rose by +18.3 %")
    assert names(found) == ["Peak memory allocated"]
    assert gate(store, "v1", "v3").because == "peak memory rose by +30.0 %", "judged for this comparison alone"


def test_peak_memory_fails_beside_a_slower_step(store):
    for number, (changed, size) in enumerate(((None, 1000), ({"op07": 3.0}, 1300))):
        runs(store, f"v{number + 1}", changed, start=3 * number, peak_allocated_bytes=size)
    update(store, tracks_of(store))
    found = gate(store, "v1", "v2")
    assert found.because == "the step got slower"
    assert {"Step time", "Peak memory allocated"} <= {*names(found)}


def test_what_is_open_since_an_older_version_counts_for_any_alone(store):
    judged(store, None, {"op07": 3.0}, {"op07": 3.0})
    found = gate(store, "v2", "v3")
    assert (found.code, names(found)) == (0, [])
    assert {"Step time", "op07"} <= {*names(found, "known")}
    assert gate(store, "v2", "v3", "any").code == 1
    assert gate(store, "v1", "v2").code == 1, "v2 began it"
    assert gate(store, "v1", "v3").code == 1, "compared with v1 alone it is slower"


def test_what_comes_back_after_a_repair_is_new(store):
    judged(store, None, SLOW, None, None, SLOW)
    assert [gate(store, f"v{at}", f"v{at + 1}").code for at in range(1, 5)] == [1, 0, 0, 1]


def test_a_loss_of_less_than_a_hundredth_of_the_step_is_no_reason_to_block(store):
    judged(store, None, {"op07": 1.2})
    found = gate(store, "v1", "v2", "any")
    assert (found.code, names(found)) == (0, [])
    (row,) = [row for row in found.of("passed") if row.name == "op07"]
    assert row.remark == "operators net +0.5 % of the step, below the limit (gate_net)"


def test_a_team_sets_how_much_it_lets_pass(store):
    """op07 takes 0.2 of 40 ms more: 0.5 %."""
    judged(store, None, {"op07": 1.2})
    with store.begin() as connection:
        write_limits(connection, tracks_of(store)[0].workload_id, [Threshold("gate_net", 0.004)])
    update(store, tracks_of(store))
    assert gate(store, "v1", "v2").code == 1


def test_what_is_lost_and_gained_is_netted(store):
    """op07 takes 1 ms more and op08 half a ms less, of 40: 1.2 % in all; with op09 as well it is nothing."""
    judged(store, None, {"op07": 2.0, "op08": 0.5}, {"op07": 2.0, "op08": 0.5, "op09": 0.5})
    assert gate(store, "v1", "v2").code == 1
    assert gate(store, "v1", "v3").code == 0


def test_a_faster_version_passes(store):
    judged(store, None, {"op07": 2.0, **{f"op{at}": 0.5 for at in range(10, 20)}})
    assert gate(store, "v1", "v2", "any").code == 0, "10 % faster in all"


@pytest.mark.parametrize("action", ["expect", "invalid"])
def test_what_users_expected_or_called_invalid_does_not_count(store, action):
    judged(store, None, {"op07": 3.0})
    assert gate(store, "v1", "v2").code == 1
    with store.begin() as connection:
        columns = "workload_id, configuration_id, device_id, series_id, direction, how, first_version_id"
        connection.execute(
            text(
                f"INSERT INTO finding_action ({columns}, action, who, reason, when_ns) "
                f"SELECT {columns}, '{action}', 'ann', 'meant so', 1 FROM finding"
            )
        )
    found = gate(store, "v1", "v2")
    assert (found.code, names(found)) == (0, [])
    assert "expected, or a false positive, as users marked it" in {row.remark for row in found.of("passed")}


def test_sections_and_filters_choose_rows_and_no_exit_code(store):
    judged(store, None, {"op07": 1.2, "op08": 3.0})
    assert names(gate(store, "v1", "v2", op="op07", only=("operator",))) == ["op07"]
    memory = gate(store, "v1", "v2", only=("memory", "api"))
    assert (memory.code, memory.rows) == (1, ())
    assert names(gate(store, "v1", "v2", only=("operator",))) == ["op08", "op07"]


def test_a_new_op_counts_and_other_shapes_of_no_larger_one_are_not_what_fails(store):
    judged(store, None)
    runs(store, "v2", {"new": 2_000_000}, start=3)
    assert names(gate(store, "v1", "v2", only=("operator",))) == ["new"]
    for version, shapes in (("w1", "[2]"), ("w2", "[4]")):
        for at, ns in enumerate((1000, 1010, 990)):
            start = 10**18 + at * 10**12 + (version == "w2") * 10**14
            ops = [("mm", ns, {"input_shapes": shapes}), ("add", 500)]
            save(store, version, workload="other", ops=ops, step_ns=2000, started_at_ns=start)
    found = gate(store, "w1", "w2", only=("operator",))
    assert found.code == 0
    (row,) = [row for row in found.rows if row.verdict == "ADDED"]
    assert (row.detail, row.remark) == ("[4]", "other shapes of what is no larger in all")


def test_a_word_that_is_none_is_refused(store):
    judged(store, None, None)
    with pytest.raises(UsageError, match="no gate 'never'; choose from new, any"):
        gate(store, "v1", "v2", "never")


def test_one_side_alone_ends_as_it_does_beside_the_version_before(store):
    judged(store, None, None, {"op07": 3.0}, None)
    for version, before in (("v2", "v1"), ("v3", "v2"), ("v4", "v3")):
        alone = gate_of_diff(diffs(store, [version])[0])
        assert (alone.code, alone.because) == (gate(store, before, version).code, gate(store, before, version).because)
