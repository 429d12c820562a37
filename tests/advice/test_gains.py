"""Laws of the bounds: no claim wins more than it is about, and all of them together no more than the step."""

from __future__ import annotations

from operator import itemgetter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.advice.made import MS, NPU, V100, advise, kernel, only, op, save
from tests.ranks.made import job
from tracker.advice.judging import of_run

NAMES = ("aten::add", "aten::mul", "aten::tanh", "aten::pow", "aten::mm", "aten::neg", "aten::cat", "aten::_softmax")
SHAPES = ((64, 64), (8, 512, 512), (2, 16, 512, 32), (4096, 50_000), (333, 77))
KERNELS = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.sampled_from(SHAPES), st.integers(1, 20), st.integers(1, 200),
        st.sampled_from(("", "A_0/Norm_0", "A_0/Mlp_0")), st.sampled_from(("forward", "backward", "optimizer")),
        st.sampled_from(("float", "c10::BFloat16", "double")),
    ), max_size=8, unique_by=itemgetter(0, 1, 4, 5, 6),
)  # fmt: skip


@given(st.sampled_from([V100, NPU]), KERNELS, st.integers(0, 100), st.integers(0, 100))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bound_is_above_what_it_is_about(memory_store, device, kernels, idle, loading):
    made = [kernel(op(name, shape, types=kind, module=module, phase=phase), ms, calls=calls)
            for name, shape, ms, calls, module, phase, kind in kernels]  # fmt: skip
    compute = min(100, sum(ms for _, _, ms, *_ in kernels))
    found = advise(
        memory_store, device=device, kernels=made,
        times={"compute": compute, "idle": idle, "data_loading": loading, "data_loading_idle": min(loading, idle)},
    )  # fmt: skip
    for item in found.items:
        if item.gain_ns is not None:
            assert 0 <= item.gain_ns <= (item.local_ns or 0.0) + 1
    gains = [item.gain_ns or 0.0 for item in found.items]
    assert max(gains, default=0.0) - 1 <= found.together_ns <= min(found.step_ns, sum(gains)) + 1


SHARES = st.integers(0, 40)
CAUSES = ("compile", "allocation", "synchronisation", "host: operator", "between kernels", "dependency", "unknown")


@given(st.lists(st.tuples(SHARES, SHARES, SHARES, SHARES, SHARES), min_size=1, max_size=3), st.sampled_from(CAUSES),
       st.integers(1, 4), st.booleans())  # fmt: skip
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_advice_work_and_the_rest_are_the_step(memory_store, ranks, cause, steps, is_shuffled):
    """Of each rank: data loading in which the device idles, other idle time, exposed copies, waiting, transfers."""
    times_of, communication_of, idle_of = {}, {}, {}
    for rank, (loading, idle, copies, waiting, transfers) in enumerate(ranks):
        lost = loading + idle + copies + waiting + transfers
        times_of[rank] = {
            "compute": max(0, 100 - lost), "duration": max(100, lost), "e2e": max(100, lost), "idle": loading + idle,
            "data_loading": loading, "data_loading_idle": loading, "exposed_copy": copies,
            "exposed_communication": waiting + transfers,
        }  # fmt: skip
        call = {"exposed_ns": (waiting + transfers) * MS, "exposed_wait_ns": waiting * MS, "group_role": "dp"}
        idle_of[rank] = [("data loading", "next", loading * MS), (cause, "", idle * MS)]
        communication_of[rank] = [("all_reduce", (waiting + transfers) * MS, call)]
    made = {"times_of": times_of, "communication_of": communication_of, "ranks": len(ranks), "steps": steps,
            "idle_of": idle_of, "kernels": [kernel("aten::add", 20)]}  # fmt: skip
    order = sorted(range(len(ranks)), reverse=is_shuffled)
    found = advise(memory_store, order=order, **made)
    accounts = found.accounts
    parts = (accounts.won_ns, accounts.work_ns, accounts.unexplained_ns)
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(accounts.step_ns, abs=1e-3)
    assert accounts.step_ns == found.step_ns
    assert accounts.won_ns == pytest.approx(found.together_ns, abs=1e-3)
    for item in found.items:
        assert item.gain_ns is None or 0 <= item.gain_ns <= min(item.local_ns, found.step_ns) + 1
        assert item.remedies
    # what a rank loses in 5 % of the step or more has a piece
    assert accounts.unexplained_ns <= 0.05 * accounts.step_ns + 1


def test_two_rules_on_one_kernel_count_once(memory_store):
    short = kernel(op("aten::_to_copy", (64, 64)), 4, name="transpose_kernel", calls=1000)
    found = advise(memory_store, times={"compute": 60}, kernels=[short])
    assert [item.rule for item in found.items] == ["K11"]  # it says more than that the kernels are short
    assert found.together_ns == 4 * MS


def test_kernels_of_several_streams_win_no_more_than_the_step(memory_store):
    """Three streams change formats for 60 ms each in a step of 100 ms, in which any of them runs for 80 ms."""
    made = [kernel(op("aten::_to_copy", (64, 64 + at)), 60, name=f"transpose_{at}") for at in range(3)]
    found = advise(memory_store, times={"compute": 80}, kernels=made)
    item = only(found, "K11")
    assert (item.local_ns, item.gain_ns, found.together_ns) == (80 * MS, 80 * MS, 80 * MS)


def test_a_stage_that_is_not_the_slowest_wins_by_the_microbatch(memory_store):
    moved = {"kernels": [("transpose", 8 * MS, {"category": "vector"})]}
    run = int(job(memory_store, {0: [80.0], 1: [100.0]}, {0: {"stage": 0, **moved}, 1: {"stage": 1}})[4:])
    (item,) = [item for item in of_run(memory_store, run, 4).items if item.rule == "K11"]
    assert (item.local_ns, item.gain_ns) == (
        8 * MS,
        2 * MS,
    )  # 8 ms over 4 microbatches, and the other stage sets the pace
    (item,) = [item for item in of_run(memory_store, run).items if item.rule == "K11"]
    assert item.gain_ns == 8 * MS  # without their number the bound is what the stage saves


def test_the_order_of_ranks_changes_nothing(memory_store):
    times = {rank: [50.0, 52.0, 51.0 + rank] for rank in range(3)}
    found = [of_run(memory_store, int(job(memory_store, times, shuffled=shuffled)[4:])) for shuffled in (False, True)]
    assert found[0] == found[1]


def test_a_capture_that_missed_the_work_gets_no_advice(memory_store):
    found = of_run(memory_store, save(memory_store, times={"compute": 0.1, "idle": 99.9}, kernels=[kernel("a", 0.1)]))
    assert (found.items, found.missing) == (
        (), ("Everything: the device computes less than 1 % of the time, so the capture missed the work.",)
    )  # fmt: skip


def test_a_device_that_is_not_in_the_table_is_measured_by_its_own_best(memory_store):
    slow = op("aten::mm", (1000, 1000), (1000, 1000))
    fast = op("aten::mm", (2000, 1000), (1000, 1000))
    ops = [(row["name"], ms * MS, {k: v for k, v in row.items() if k != "name"}) for row, ms in ((slow, 2), (fast, 2))]
    made = [kernel(row, 2, category="matmul") for row in (slow, fast)]
    found = advise(memory_store, device=NPU, times={"compute": 60}, ops=ops, kernels=made)
    assert [(row.efficiency, row.ceiling) for row in found.efficiency] == [(0.5, "measured"), (1.0, "measured")]
    assert found.use["hfu"] is None  # the fastest of the run is no peak
    assert any("not in the table of devices" in sentence for sentence in found.missing)


IDLE = [("compile", "aclopCompileAndExecute", 30 * MS), ("host: no operator", "log (train.py:44)", 10 * MS)]


def test_idle_time_that_two_rules_explain_is_of_the_first(memory_store):
    """The calls that compile take 24 ms on the host; the device idles 30 ms for want of code: 6 ms are left of it."""
    calls = [("aclopCompileAndExecute", 24 * MS, {"calls": 20, "level": "acl"})]
    found = advise(memory_store, device=NPU, times={"compute": 60, "idle": 40}, api=calls, idle=IDLE,
                   kernels=[kernel("aten::add", 60)])  # fmt: skip
    assert [(item.rule, item.gain_ns) for item in found.items] == [("H6", 24 * MS), ("H3", 10 * MS), ("H5", 6 * MS)]
    assert [number.words for number in found.items[-1].numbers][-1] == "already claimed by H6 24.00 ms"
    assert found.together_ns == 40 * MS


def test_a_smaller_claim_on_a_kernel_shows_what_it_wins_more(memory_store):
    """Of 40 ms on a V100 float16 saves 34.98; what the convolution itself could win is mostly the same time."""
    conv = op("aten::convolution_backward", (64, 256, 14, 14), (64, 256, 14, 14), (256, 256, 3, 3), types="float")
    ops = [("aten::convolution_backward", 40 * MS, {key: value for key, value in conv.items() if key != "name"})]
    made = kernel(conv, 40, category="convolution_backward")
    found = advise(memory_store, times={"compute": 60}, device=V100, ops=ops, kernels=[made])
    gains = {item.rule: item.gain_ns for item in found.items}
    assert sum(gains.values()) == found.together_ns
    assert max(gains.values()) < 40 * MS


def test_waiting_for_a_rank_is_claimed_once(memory_store):
    """Rank 1 idles 30 ms in its loader; the other one waits 25 of its 28 ms of communication for it."""
    waits = {0: 25.0, 1: 0.0}
    found = advise(
        memory_store, ranks=2, times={"compute": 60, "exposed_communication": 28, "idle": 0, "data_loading": 0},
        communication_of={rank: [("all_reduce", int((3 + ms) * MS), {"exposed_wait_ns": int(ms * MS)})]
                          for rank, ms in waits.items()},
        times_of={1: {"exposed_communication": 3, "data_loading": 30, "data_loading_idle": 30, "idle": 30}},
    )  # fmt: skip
    gains = {item.rule: item.gain_ns / MS for item in found.items}
    assert found.items[0].title == "rank 1 comes late, and the other one waits for it"
    assert gains == {"N2": 25, "I1": 5, "N1": 3}
    assert "its data loading, more than that of the other one 30.00 ms" in [one.words for one in found.items[0].numbers]
