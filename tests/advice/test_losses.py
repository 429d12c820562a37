"""The first line of the advice is the largest known loss, and advice, other work and the rest are the step."""

from __future__ import annotations

import pytest

from tests.advice.made import CPU, MS, advise, gain_ms, kernel, only, rules, save
from tracker.advice.evidence import Evidence
from tracker.advice.judging import of_run
from tracker.advice.losses import find_largest_loss
from tracker.compare.advised import advise as advise_side
from tracker.results import AdviseOptions

H = "host: operator"


@pytest.mark.parametrize(
    ("times", "idle", "words"),
    [
        ({"idle": 30}, [(H, "aten::x", 20), ("launch latency", "", 10)],
         "the device idles 30.00 ms (30.0 %) for the host, mostly in aten::x"),
        ({"idle": 30}, [(H, "aten::x", 10), (H, "aten::y", 10), (H, "aten::z", 10)],
         "the device idles 30.00 ms (30.0 %) for the host"),
        ({"idle": 30, "data_loading": 35, "data_loading_idle": 20}, [("data loading", "next", 20), (H, "aten::x", 10)],
         "data loading: the device waits 20.00 ms (20.0 %)"),
        ({"idle": 12, "exposed_copy": 15}, [("between kernels", "", 12)], "exposed copies take 15.00 ms (15.0 %)"),
        ({"idle": 12}, [("between kernels", "", 12)], "the device idles 12.00 ms (12.0 %) between kernels"),
        ({"idle": 12}, [], "the device idles 12.00 ms (12.0 %), and the run does not say why"),
        ({"idle": 4}, [(H, "aten::x", 4)], None),
    ],
)  # fmt: skip
def test_largest_loss_is_named_with_its_time(memory_store, times, idle, words):
    rows = [(cause, place, ms * MS) for cause, place, ms in idle]
    made = {"times": {"compute": 60, **times}, "idle": rows, "kernels": [kernel("aten::mm", 60)]}
    loss = find_largest_loss(Evidence(memory_store, save(memory_store, **made)))
    assert (loss and loss.words) == words


def test_sleeping_rank_is_one_loss_and_named(memory_store):
    """Rank 1 sleeps 40 ms before its collective; rank 0 waits for it: the same 40 ms."""
    wait, none = (
        ("all_reduce", ms * MS, {"exposed_ns": ms * MS, "exposed_wait_ns": ms * MS, "group_role": "dp"})
        for ms in (40, 0)
    )
    even = {"compute": 50, "idle": 10, "exposed_communication": 40, "timeline": "host"}
    times_of = {0: even, 1: {**even, "idle": 52, "exposed_communication": 0}}
    made = {"ranks": 2, "times_of": times_of, "communication_of": {0: [wait], 1: [none]}, "device": CPU}
    run = save(memory_store, times={"timeline": "host"}, **made)
    loss = find_largest_loss(Evidence(memory_store, run))
    assert loss.words == "rank 1 comes late by 40.00 ms (40.0 %): nothing runs on it for longer"


def test_waiting_is_named_with_who_is_waited_for(memory_store):
    wait = ("all_reduce", 30 * MS, {"exposed_ns": 30 * MS, "exposed_wait_ns": 20 * MS, "group_role": "dp"})
    run = save(memory_store, times={"compute": 60, "exposed_communication": 30}, communication=[wait])
    # transfers and waiting are one loss, as they are one bottleneck
    assert find_largest_loss(Evidence(memory_store, run)).words == (
        "exposed communication takes 30.00 ms (30.0 %): 20.00 ms waiting for other ranks, 10.00 ms transfers"
    )
    alone = ("all_reduce", 30 * MS, {"exposed_ns": 30 * MS, "exposed_wait_ns": 29 * MS, "group_role": "dp"})
    run = save(memory_store, times={"compute": 60, "exposed_communication": 30}, communication=[alone])
    assert find_largest_loss(Evidence(memory_store, run)).words == "rank 0 waits 29.00 ms (29.0 %) for other ranks"


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({"all_reduce": 28, "broadcast": 2}, "exposed all_reduce of dp takes 30.00 ms (30.0 %)"),
        ({"all_reduce": 18, "broadcast": 12}, "exposed communication takes 30.00 ms (30.0 %), mostly all_reduce of dp"),
        ({"all_reduce": 10, "broadcast": 10, "all_gather": 10}, "exposed communication takes 30.00 ms (30.0 %)"),
    ],
)
def test_exposed_communication_is_named_by_its_collective(memory_store, kinds, words):
    calls = [(kind, ms * MS, {"exposed_wait_ns": 0, "group_role": "dp"}) for kind, ms in kinds.items()]
    run = save(memory_store, times={"compute": 60, "exposed_communication": 30}, communication=calls)
    assert find_largest_loss(Evidence(memory_store, run)).words == words


def test_waiting_that_goes_round_is_no_rank_s_and_still_a_loss(memory_store):
    """Of four steps rank 0 waits 20 ms in two, and rank 1 in the two others: 20 ms in each step."""
    wait = ("all_reduce", 20 * MS, {"exposed_ns": 20 * MS, "exposed_wait_ns": 20 * MS, "group_role": "dp"})
    run = save(
        memory_store, times={"compute": 60, "exposed_communication": 20}, ranks=2, steps=4, communication=[wait],
        factors_of={0: {"communication": (1, 1, 0, 0)}, 1: {"communication": (0, 0, 1, 1)}},
    )  # fmt: skip
    found = of_run(memory_store, run)
    title = "ranks wait for each other, now one and now another"
    assert (only(found, "N2").title, gain_ms(found, "N2")) == (title, 20)
    assert found.loss.words == "ranks wait 20.00 ms (20.0 %) for each other, now one and now another"


def test_rank_that_most_waiting_is_for_is_named(memory_store):
    """Tasks name rank 5 for 15 of 20 ms, or all; where it is for 5 of them, nobody."""
    others = "other ranks"
    for ms, words in (
        (15, f"{others}, 15.00 ms of it for rank 5 of the group"),
        (5, others),
        (20, "rank 5 of the group"),
    ):
        call = ("all_reduce", 20 * MS, {"exposed_ns": 20 * MS, "exposed_wait_ns": 20 * MS, "group_role": "dp"})
        run = save(
            memory_store, f"v{ms}", times={"compute": 60, "exposed_communication": 20}, communication=[call],
            waits=[(5, ms * MS)],
        )  # fmt: skip
        loss = find_largest_loss(Evidence(memory_store, run))
        assert loss.words == f"rank 0 waits 20.00 ms (20.0 %) for {words}"


def test_loss_of_one_of_several_ranks_names_it(memory_store):
    times_of = {rank: {"compute": 60, "idle": ms, "data_loading": ms, "data_loading_idle": ms} for rank, ms in
                enumerate((10, 30))}  # fmt: skip
    run = save(memory_store, ranks=2, times_of=times_of)
    words = find_largest_loss(Evidence(memory_store, run)).words
    assert words == "data loading: the device waits 30.00 ms (30.0 %), on rank 1"


def test_timeline_of_a_host_loses_time_without_an_operator(memory_store):
    times = {"timeline": "host", "compute": 60, "idle": 40, "data_loading": 10}
    loss = find_largest_loss(Evidence(memory_store, save(memory_store, times=times, device=CPU)))
    assert loss.words == "no operator runs for 30.00 ms (30.0 %)"


def test_first_line_without_a_loss_is_the_largest_piece(memory_store):
    save(memory_store, times={"compute": 98, "idle": 2}, kernels=[kernel("aten::fill_", 20, name="transpose")])
    found = advise_side(memory_store, "v1")
    assert found.headline == "changes of memory format: transpose: at most 20.00 ms (20.0 %) of the step"
    assert found.how_the_step_adds_up == (
        "Of the step of 100.00 ms, all advice together can win at most 22.00 ms (22.0 %); 78.00 ms (78.0 %) is work "
        "without advice; not explained: 0 ns (0.0 %)."
    )
    chosen = advise_side(memory_store, "v1", options=AdviseOptions(rules=("K11",)))
    assert chosen.headline == "one change can win at most 20.00 ms of 100.00 ms a step"


def test_two_runs_have_the_loss_and_the_sum_of_one(memory_store):
    for number, ms in enumerate((20, 30, 40)):
        times = {"compute": 50, "idle": ms, "data_loading": ms, "data_loading_idle": ms}
        save(memory_store, times=times, started_at_ns=1_700_000_000_000_000_000 + number * 10**12)
    found = advise_side(memory_store, "v1")
    assert found.headline == "data loading: the device waits 30.00 ms (30.0 %)"
    assert (found.accounts.won_ns, found.accounts.work_ns, found.accounts.unexplained_ns) == (30 * MS, 50 * MS, 20 * MS)


@pytest.mark.parametrize(
    "cause",
    ["data loading", "garbage collection", "compile", "allocation", "profiler", "synchronisation", "host: operator",
     "host: no operator", "launch latency", "between kernels", "dependency", "unknown"],
)  # fmt: skip
@pytest.mark.parametrize("format", ["torch_profiler", "nsys_sqlite", "paddle_trace", "cann"])
def test_idle_time_of_any_cause_has_a_piece(memory_store, cause, format):
    loads = {"data_loading": 20, "data_loading_idle": 20} if cause == "data loading" else {}
    times = {"compute": 80, "idle": 20, **loads}
    made = {"kernels": [kernel("(unlinked)", 80)], "idle": [(cause, "", 20 * MS)], "formats": [format]}
    found = advise(memory_store, times=times, **made)
    assert [(item.gain_ns, bool(item.remedies)) for item in found.items] == [(20 * MS, True)]
    assert found.accounts.unexplained_ns == 0


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "copy the next batch"),
        ("Memcpy DtoH (Device -> Pageable)", "read fewer values"),
        ("[CUDA memcpy Device-to-Device]", "fewer copies of tensors"),
        ("CopyDeviceToSomewhere", "issue them earlier"),
    ],
)
def test_exposed_copies_have_a_piece_whatever_the_memory(memory_store, name, mark):
    copy = kernel("aten::copy_", 20, name=name, category="copy")
    found = advise(memory_store, times={"compute": 80, "exposed_copy": 20}, kernels=[kernel("a", 80), copy])
    assert gain_ms(found, "I5") == 20
    assert only(found, "I5").remedies[0].startswith(mark)


def test_exposed_communication_without_collectives_has_a_piece(memory_store):
    found = advise(memory_store, times={"compute": 80, "exposed_communication": 20}, kernels=[kernel("a", 80)])
    assert (rules(found), gain_ms(found, "N1")) == (["N1"], 20)


def test_rank_that_is_always_last_is_no_work_that_moves(memory_store):
    from tests.ranks.made import job

    # of three steps so noisy that none is called slow
    run = int(job(memory_store, {0: [50.0, 20.0, 90.0], 1: [55.0, 60.0, 130.0]})[4:])
    found = of_run(memory_store, run)
    always = [item.title for item in found.items if item.rule == "P4"]
    assert always == ["rank 1 takes longest in 3 of 3 steps"]
