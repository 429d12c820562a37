"""Whether a diff fails a build: what counts, what is known, and the exit code."""

from __future__ import annotations

import math

import pytest

from tests.factories import save
from tests.judgement.made import runs
from tracker.compare import diff, gate_of_diff, known_before
from tracker.compare.gates import known_of
from tracker.errors import UsageError
from tracker.judgement import Wish, act, findings, gate_of_findings, lines_of, update
from tracker.profile import Device
from tracker.results import DiffOptions, FindingsOptions
from tracker.results.gates import GatedRow

SLOW = {"op07": 1.5}
"""One of 40 ops: 1.25 % of the step."""


def followed(store, *versions, start=0):
    """Versions v1, v2, ... of three runs each, with what is changed in them, and their findings."""
    for number, changed in enumerate(versions):
        runs(store, f"v{number + 1}", changed, start=start + 3 * number)
    update(store, lines_of(store))


def gate(store, baseline, candidate, word="any", **options):
    found = diff(store, baseline, candidate, options=DiffOptions(**options))
    return gate_of_diff(found, word, known_before(store, found) if word == "new" else ())


def names(found, outcome="failed"):
    return [row.name for row in found.of(outcome)]


def test_a_regression_is_exit_1_and_named(store):
    followed(store, None, {"op07": 1.2, "op08": 1.5})
    found = gate(store, "v1", "v2")
    assert (found.code, names(found)) == (1, ["op08", "op07"])
    assert found.because.startswith("2 regressions: op08 +49") and ", op07 +19" in found.because
    assert gate(store, "v2", "v1").code == 0  # all of it is better


def test_nothing_that_fails_is_exit_0(store):
    followed(store, None, None)
    found = gate(store, "v1", "v2", "suspect")
    assert (found.code, found.because) == (0, "nothing fails that could be judged")


@pytest.mark.parametrize("word", ["new", "any", "suspect"])
def test_what_is_never_judged_is_exit_3(store, word):
    followed(store, None)
    runs(store, "w1", SLOW, start=20, device=Device("Ascend", "910B"))
    found = gate(store, "v1", "w1", word)
    assert (found.code, found.rows) == (3, ())
    assert found.because == "Never judged as a regression: different device (NVIDIA H100 and Ascend 910B)"
    assert gate(store, "v1", "v1", word).code == 3
    assert gate(store, "v1", "run:2", word).code == 3
    assert gate(store, "v1", "w1", word, ranks=(0,)).code == 3


def test_one_run_against_one_is_exit_4(store):
    runs(store, "v1", count=1)
    runs(store, "v2", SLOW, start=1, count=1)
    found = gate(store, "v1", "v2", "suspect")
    assert found.code == 4 and found.because.startswith("1 run against 1: ratios only")


def test_a_suspicion_is_exit_4_or_1_where_suspicions_count(store):
    followed(store, None)
    runs(store, "v2", SLOW, start=3, count=1)
    found = gate(store, "v1", "v2")
    assert (found.code, names(found, "suspect")) == (4, ["op07"])
    assert found.because.startswith("1 suspicion: op07 +49") and found.because.endswith("confirm or clear them")
    assert gate(store, "v1", "v2", "suspect").code == 1
    new = gate(store, "v1", "v2", "new")
    assert (new.code, names(new, "suspect")) == (0, ["op07"]), "a suspicion alone blocks nothing"
    assert new.because.endswith("1 suspicion: op07 +494.42 us: the next runs confirm or clear them")
    assert gate(store, "v2", "v1", "suspect").code == 0  # a suspicion that it is faster


def test_runs_that_say_nothing_at_all_are_exit_4(store):
    for at, version in enumerate(("v1", "v1", "v2", "v2")):
        ns = (1000, 3000, 1500, 4000)[at]
        save(store, version, ops=[("mm", ns)], kernels=[("gemm", ns)], step_ns=ns, started_at_ns=10**18 + at * 10**12)
    found = gate(store, "v1", "v2")
    assert (found.code, found.because) == (4, "the runs differ too much, or are too few, to tell anything")


def test_a_regression_that_was_found_before_the_candidate_is_no_news(store):
    followed(store, None, SLOW, SLOW)
    found = gate(store, "v1", "v3", "new")
    assert (found.code, names(found), names(found, "known")) == (0, [], ["op07"])
    assert found.because == "nothing fails that could be judged; 1 regression known from before"
    assert gate(store, "v1", "v3", "any").code == 1
    assert gate(store, "v1", "v2", "new").code == 1  # v2 began it


def test_a_known_regression_that_got_worse_is_news(store):
    followed(store, None, SLOW, {"op07": 2.2})
    assert gate(store, "v1", "v3", "new").code == 1


def test_what_the_baseline_has_already_is_news_on_top(store):
    followed(store, None, SLOW, {"op07": 2.0})  # a third more than v2, 1.25 % of the step
    assert gate(store, "v2", "v3", "new").code == 1


def test_another_operator_is_news_beside_a_known_one(store):
    followed(store, None, SLOW, {**SLOW, "op08": 1.5})
    found = gate(store, "v1", "v3", "new")
    assert (found.code, names(found, "known")) == (1, ["op07"])
    assert "op08" in names(found)
    assert found.because.endswith("; 1 regression known from before")


def test_what_was_repaired_in_between_is_news_when_it_comes_back(store):
    followed(store, None, SLOW, None, None, SLOW)
    assert gate(store, "v1", "v5", "new").code == 1


def test_a_loss_of_less_than_a_hundredth_of_the_step_is_no_reason_to_block(store):
    followed(store, None, {"op07": 1.2})
    assert gate(store, "v1", "v2", "any").code == 1
    found = gate(store, "v1", "v2", "new")
    assert (found.code, names(found)) == (0, [])
    (row,) = [row for row in found.of("passed") if row.name == "op07"]
    assert row.remark == "operators net +0.5 % of the step: 1 % fails"


def test_a_team_says_how_much_it_lets_pass(store):
    """op07 takes 0.2 of 40 ms more."""
    followed(store, None, {"op07": 1.2})
    found = diff(store, "v1", "v2")
    codes = [gate_of_diff(found, "new", net_loss=limit).code for limit in (0.0, 0.004, 0.006)]
    assert codes == [1, 1, 0]
    shown = findings(store, options=FindingsOptions(only_new=True))
    assert [gate_of_findings(shown, "new", net_loss=limit).code for limit in (0.004, 0.006)] == [1, 0]


def test_what_is_lost_and_gained_is_netted(store):
    """op07 takes 1 ms more and op08 half a ms less, of 40: 1.2 % in all; with op09 as well it is nothing."""
    followed(store, None, {"op07": 2.0, "op08": 0.5}, {"op07": 2.0, "op08": 0.5, "op09": 0.5})
    assert (gate(store, "v1", "v2", "new").code, gate(store, "v1", "v3", "new").code) == (1, 0)


def test_a_faster_version_passes(store):
    followed(store, None, {"op07": 2.0, **{f"op{at}": 0.5 for at in range(10, 20)}})
    assert gate(store, "v1", "v2", "any").code == 1
    assert gate(store, "v1", "v2", "new").code == 0, "10 % faster in all"


def test_what_users_expected_is_no_news_and_what_they_called_invalid_is(store):
    followed(store, None, SLOW, SLOW)
    rows = findings(store, options=FindingsOptions(every=True)).findings
    ids = [int(number) for number in rows["finding_id"]]
    act(store, Wish("expect", "ann", 2 * 10**18, "meant so"), finding_ids=ids)
    assert gate(store, "v1", "v3", "new").code == 0


def test_more_calls_fail_too(store):
    for version, calls in (("v1", 2), ("v2", 4)):
        for at, ns in enumerate((1000, 1010, 990)):
            start = 10**18 + at * 10**12 + (version == "v2") * 10**14
            # twice as many calls of half the time each
            save(store, version, ops=[("mm", ns, {"calls": calls})], step_ns=8000, steps=2, started_at_ns=start)
    (row,) = gate(store, "v1", "v2", only=("operator",)).of("failed")
    assert (row.name, row.verdict) == ("mm", "UNCHANGED, more calls")


def test_sections_and_filters_choose_what_can_fail(store):
    followed(store, None, {"op07": 1.2, "op08": 3.0})
    assert names(gate(store, "v1", "v2", op="op07", only=("operator",))) == ["op07"]
    assert gate(store, "v1", "v2", only=("memory", "api")).code == 4  # nothing of it was judged
    assert "Step time" in names(gate(store, "v1", "v2"))
    assert names(gate(store, "v1", "v2", only=("operator",))) == ["op08", "op07"]


def test_other_shapes_of_an_op_that_is_no_larger_are_no_regression(store):
    for version, shapes in (("v1", "[2]"), ("v2", "[4]")):
        for at, ns in enumerate((1000, 1010, 990)):
            start = 10**18 + at * 10**12 + (version == "v2") * 10**14
            ops = [("mm", ns, {"input_shapes": shapes}), ("add", 500)]
            save(store, version, ops=ops, step_ns=2000, started_at_ns=start)
    found = gate(store, "v1", "v2", only=("operator",))
    assert found.code == 0
    (row,) = [row for row in found.rows if row.verdict == "ADDED"]
    assert (row.detail, row.remark) == ("[4]", "other shapes of what is no larger in all")


def test_a_new_op_is_a_regression(store):
    followed(store, None)
    runs(store, "v2", {"new": 2_000_000}, start=3)
    assert names(gate(store, "v1", "v2", only=("operator",))) == ["new"]


def test_a_word_that_is_none_is_refused(store):
    followed(store, None, None)
    with pytest.raises(UsageError, match="no gate 'never'; choose from new, any, suspect"):
        gate(store, "v1", "v2", "never")


def test_without_a_database_nothing_is_known(store):
    followed(store, None, SLOW)
    assert known_before(None, diff(store, "v1", "v2")) == ()


def judged_row(diff, unit="ns", verdict="REGRESSED"):
    metric = "samples_per_second" if unit == "per_second" else "mm"
    key = ("run", metric, "", "", "") if unit == "per_second" else ("op_name", "device_self_ns", metric, "", "")
    return gated(key, diff, verdict, unit)


def gated(key, diff=0.2, verdict="REGRESSED", unit="ns", calls=None):
    return GatedRow("overall", key[2], "", verdict, "failed", unit, 1.0, 1.0 + diff, diff, 0.01, "", key, calls)


def known_row(row, ratio, change="level"):
    return known(row.key, ratio, change)


def known(key, ratio=0.5, change="level", calls=(2.0, 2.0)):
    """A finding of the series `key`, in which calls per step went from and to `calls`."""
    of_series = dict(zip(("kind", "metric", "name", "input_shapes", "part"), key, strict=True))
    before, after = calls
    return known_of({**of_series, "finding_id": 7, "change": change, "ratio": ratio, "baseline_calls": before,
                     "candidate_calls": after})  # fmt: skip


def test_throughput_that_fell_further_than_what_is_known_is_news():
    """Known: a tenth less. Another tenth is news, however much smaller a number it is."""
    known = known_row(judged_row(-0.1, "per_second"), -0.1)
    assert known.covers(judged_row(-0.11, "per_second"))
    assert not known.covers(judged_row(-0.2, "per_second"))
    assert not known.covers(judged_row(-1.0, "per_second"))


def test_known_calls_say_nothing_of_time():
    """Known: called twice as often, in the same time. A call that takes longer is news."""
    known = known_row(judged_row(0.0), 1.0, "calls")
    assert known.covers(judged_row(0.01, verdict="UNCHANGED, more calls"))
    assert not known.covers(judged_row(0.5))
    assert not known.covers(judged_row(0.5, verdict="REGRESSED, more calls"))


TIME = ("op_name", "device_self_ns", "mm", "", "")
SHAPE = ("op", "device_self_ns", "mm", "[[64,64]]", "")
MEMORY = ("memory", "bytes", "mm", "[[64,64]]", "")
EXPOSED = ("communication", "exposed_ns", "allreduce", "", "dp, 1.00 MiB")
WHOLE = ("communication", "total_ns", "allreduce", "", "dp, 1.00 MiB")


def test_what_is_known_of_time_says_nothing_of_memory():
    """Known: mm takes half as long again. More memory for it is news; that one of its shapes is slower is not."""
    assert known(TIME).covers(gated(SHAPE))
    assert not known(TIME).covers(gated(MEMORY, unit="bytes"))
    assert not known(MEMORY).covers(gated(SHAPE))
    assert not known(("op_name", "host_self_ns", "mm", "", "")).covers(gated(SHAPE))


def test_the_memory_of_an_op_that_came_is_no_news():
    """Known: mm is new. So is all that it allocates; what it allocated before it came is another matter."""
    assert known(TIME, math.nan, "presence").covers(gated(MEMORY, verdict="ADDED", unit="bytes"))
    assert not known(TIME, math.nan, "presence").covers(gated(MEMORY, unit="bytes"))
    assert not known(TIME).covers(gated(MEMORY, verdict="ADDED", unit="bytes"))


def test_what_is_known_of_exposed_time_says_nothing_of_the_whole():
    """Known: half as much again is not hidden by compute. That the collective takes longer is news."""
    assert known(EXPOSED).covers(gated(EXPOSED)) and known(WHOLE).covers(gated(WHOLE))
    assert not known(EXPOSED).covers(gated(WHOLE))


def test_known_time_says_nothing_of_calls_that_became_more_since():
    """Known: 50 % slower with as many calls. More calls in the time of before are news, unless they came with it."""
    more_calls = gated(TIME, 0.0, "UNCHANGED, more calls")
    assert not known(TIME, calls=(2.0, 2.0)).covers(more_calls)
    assert known(TIME, calls=(2.0, 3.0)).covers(more_calls)
    assert known(TIME, calls=(2.0, 2.0)).covers(gated(TIME, verdict="REGRESSED, more calls"))


@pytest.mark.parametrize("change", ["level", "calls"])
def test_calls_that_grow_further_than_what_is_known_are_news(change):
    """Known: 2 calls became 4, a time once and a half as long. As many are no news, nor is 1 more in 20; 8 are."""
    finding = known(TIME, 0.5 if change == "level" else 1.0, change, calls=(2.0, 4.0))
    verdicts = ("UNCHANGED, more calls", "REGRESSED, more calls") if change == "level" else ("UNCHANGED, more calls",)
    for verdict in verdicts:
        assert finding.covers(gated(TIME, 0.2, verdict, calls=1.0))
        assert finding.covers(gated(TIME, 0.2, verdict, calls=1.1))
        assert not finding.covers(gated(TIME, 0.2, verdict, calls=3.0))
    assert finding.covers(gated(TIME, 0.2, calls=3.0)) == (change == "level"), "calls that nothing was said of"


def test_calls_that_grow_on_in_the_same_time_are_news_beside_a_finding_of_calls(store):
    """mm is called 2, 4, then 16 times per step, always in 1000 ns all together."""
    for number, calls in enumerate((2, 4, 16)):
        for at, noise in enumerate((0, 10, -10)):
            start = 10**18 + (3 * number + at) * 10**12
            save(store, f"v{number + 1}", ops=[("mm", 1000 + noise, {"calls": calls}), ("add", 5000)], step_ns=9000,
                 steps=2, started_at_ns=start)  # fmt: skip
    update(store, lines_of(store))
    assert names(gate(store, "v1", "v3", "new", only=("operator",))) == ["mm"]


def test_more_memory_is_news_beside_a_time_that_is_known(store):
    """mm takes 3000 instead of 1000 since v2, and allocates 2048 instead of 1024 bytes since v3."""
    for number, (ns, size) in enumerate(((1000, 1024), (3000, 1024), (3000, 2048))):
        for at, noise in enumerate((0, 10, -10)):
            start = 10**18 + (3 * number + at) * 10**12
            save(store, f"v{number + 1}", ops=[("mm", ns + noise), ("add", 5000)], memory=[("mm", size)], step_ns=9000,
                 started_at_ns=start)  # fmt: skip
    update(store, lines_of(store))
    assert names(gate(store, "v1", "v3", "new", only=("operator",)), "known") == ["mm"]
    memory = gate(store, "v1", "v3", "new", only=("memory",))
    assert (memory.code, names(memory)) == (1, ["mm"])
