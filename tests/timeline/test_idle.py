"""Hand-computable stories and laws: why the device idles. Times in the stories are microseconds."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.timeline.made_events import Made
from tests.timeline.test_windows import captures
from tracker.profile import MISSING, DeviceEvents, DeviceKind, Frames, HostOps, Launches, LaunchLevel, Rows
from tracker.timeline import host_work
from tracker.timeline import idle as idle_rows
from tracker.timeline.links import launches_of

US = 1_000


def times(made: Made) -> Made:
    """The same events with times of so many microseconds."""
    for rows in made.rows.values():
        for row in rows:
            for name in ("start_ns", "end_ns", "handover_ns"):
                if name in row and row[name] != MISSING:
                    row[name] *= US
    return made


def idle(made: Made, **extras: Any) -> list[tuple[str, str, float, int]]:
    """Cause, place, microseconds and gaps of each row, the largest first."""
    table = times(made).built(**extras).tables["idle"]
    columns = (table["cause"], table["place"], table["ns"].tolist(), table["gaps"].tolist())
    return [(cause, place, ns / US, gaps) for cause, place, ns, gaps in zip(*columns, strict=True)]


def busy_step(*, until: int = 600) -> Made:
    """A step of 1 ms: a kernel from 0 to 100, and one from `until` to 1000, launched by a call that ends 4 before."""
    made = Made()
    made.step(0, 0, 1000)
    made.launch(0, 1, end=1)
    made.kernel("gemm", 1, 100, 1)
    made.launch(until - 10, 2, end=until - 4)
    made.kernel("gemm", until, 1000, 2)
    return made


def test_each_part_of_a_gap_has_the_first_cause_that_applies():
    """From 100 to 600: the call that waits until 110, the loader from 120 to 220, nothing until 300; mm until 400 with
    a cudaMalloc of 20 in it; nothing until add begins at 585, whose launch ends at 596; then 4 to start.
    """
    made = busy_step()
    made.launch(90, -1, end=110, name="cudaStreamSynchronize")
    made.annotation("enumerate(DataLoader)#Iter.__next__", 120, 220)
    made.op("aten::mm", 300, 400)
    made.launch(320, -1, end=340, name="cudaMalloc")
    made.op("aten::add", 585, 598)
    assert idle(made) == [
        ("host: no operator", "", 80 + 185, 1),
        ("data loading", "enumerate(DataLoader)#Iter.__next__", 100, 1),
        ("host: operator", "aten::mm", 80, 1),
        ("allocation", "cudaMalloc", 20, 1),
        ("synchronisation", "cudaStreamSynchronize", 10 + 10, 1),
        ("host: operator", "aten::add", 11, 1),
        ("launch latency", "", 4, 1),
        # the step begins with a launch that ends at 1
        ("host: operator", "cudaLaunchKernel", 1, 1),
    ]


def test_idle_time_in_data_loading_is_one_number():
    """The loader runs from 500 to 600; the call that launches the next kernel begins at 590 and ends at 596."""
    made = busy_step()
    made.annotation("enumerate(DataLoader)#Iter.__next__", 500, 600, phase="dataloader")
    rows = times(made).built()
    (waits,) = [ns for cause, ns in zip(rows.tables["idle"]["cause"], rows.tables["idle"]["ns"], strict=True)
                if cause == "data loading"]  # fmt: skip
    assert waits == rows.steps[0].breakdown.data_loading_idle_ns == 96 * US


def test_waiting_in_an_operator_lasts_until_that_operator_ends():
    """The call returns at 140, 20 us for a launch later it is 160: item ends at 190, and mm begins at 200."""
    made = busy_step()
    made.op("aten::item", 100, 190)
    made.launch(100, -1, end=140, name="cudaStreamSynchronize")
    made.op("aten::mm", 200, 300)
    assert ("synchronisation", "aten::item", 90, 1) in idle(made)


def test_waiting_in_a_helper_is_of_the_operator_that_a_user_calls():
    made = busy_step()
    made.op("aten::item", 100, 190)
    made.op("aten::_local_scalar_dense", 100, 185)
    made.launch(100, -1, end=140, name="cudaStreamSynchronize")
    assert ("synchronisation", "aten::item", 90, 1) in idle(made)


def test_what_follows_a_short_wait_is_not_the_wait():
    """The call of 14 us returns at 110; for 20 us more the device may not have been given anything."""
    made = busy_step()
    made.launch(96, -1, end=110, name="cudaDeviceSynchronize")
    assert [row for row in idle(made) if row[2] > 10] == [
        ("host: no operator", "", 460, 1), ("synchronisation", "cudaDeviceSynchronize", 30, 1)
    ]  # fmt: skip


def test_range_that_begins_ends_a_wait_at_once():
    """A wait until 105, a range of 400 us right behind it: metrics, which no wait is to blame for."""
    made = busy_step()
    made.launch(90, -1, end=105, name="cudaStreamSynchronize")
    made.annotation("log_metrics", 105, 505)
    found = idle(made)
    assert ("synchronisation", "cudaStreamSynchronize", 5, 1) in found
    assert ("host: no operator", "log_metrics", 400, 1) in found


def behind_waits(made: Made) -> dict[tuple[str, str], float]:
    """Microseconds behind a wait of the host, of each cause and place that has any."""
    table = times(made).built().tables["idle"]
    rows = zip(table["cause"], table["place"], table["behind_wait_ns"].tolist(), strict=True)
    return {(cause, place): ns / US for cause, place, ns in rows if ns}


def test_wait_in_which_a_gap_begins_opened_it():
    """The call waits from 20 to 105, the device ends at 100: without the wait the host would have been 80 ahead, up to
    180. The wait counts until 125, a launch later; behind it the host runs no operator.
    """
    made = busy_step()
    made.op("aten::item", 10, 110)
    made.launch(20, -1, end=105, name="cudaStreamSynchronize")
    made.op("aten::mm", 300, 400)
    assert behind_waits(made) == {("host: no operator", ""): 55, ("synchronisation", "aten::item"): 55}


def test_short_wait_lets_the_queue_run_dry_for_no_longer_than_it_lasts():
    """It waited for 4 until the device was done: of the 475 behind it at most 4 are its own, and are its end."""
    made = busy_step()
    made.launch(96, -1, end=105, name="cudaDeviceSynchronize")
    assert behind_waits(made) == {}


def test_wait_on_an_idle_device_opens_no_gap():
    """The device has nothing to do from 100 on: a wait from 300 to 310 finds it so."""
    made = busy_step()
    made.launch(300, -1, end=310, name="cudaStreamSynchronize")
    assert behind_waits(made) == {}


def test_launched_work_that_waits_is_no_matter_of_the_host():
    """Both kernels were launched at once: 20 us go by between any two kernels, the other 180 wait for something."""
    made = Made()
    made.step(0, 0, 500)
    made.launch(0, 1, end=0)
    made.launch(0, 2, end=0)
    made.kernel("gemm", 0, 100, 1)
    made.kernel("void gather<float>(int*)", 300, 500, 2)
    assert idle(made) == [("dependency", "gather<float>", 180, 1), ("between kernels", "", 20, 1)]


def test_latency_is_twice_the_median_of_the_capture():
    """Launched 30, 30 and 90 us before they start, on an idle device: 60 us are latency, the other 30 are a wait."""
    made = Made()
    made.step(0, 0, 1000)
    for at, wait in ((100, 30), (200, 30), (300, 90)):
        made.launch(at - wait - 1, at, end=at - wait)
        made.kernel("gemm", at, at + 1, at)
    of_cause = Counter[str]()
    for cause, _, us, _ in idle(made):
        of_cause[cause] += us
    assert (of_cause["launch latency"], of_cause["dependency"]) == (30 + 30 + 60, 30)


def test_what_nothing_ends_waits_for_the_host():
    made = Made()
    made.step(0, 0, 300)
    made.launch(0, 1, end=0)
    made.kernel("gemm", 0, 100, 1)
    made.op("aten::sleep", 150, 300)
    assert idle(made) == [("host: operator", "aten::sleep", 150, 1), ("host: no operator", "", 50, 1)]


def test_launch_on_an_unknown_thread_leaves_its_gap_unexplained():
    """As an arrow that links an event of the device, whose end names no thread."""
    made = Made()
    made.step(0, 0, 300)
    made.launch(0, 1, thread=-1, end=0)
    made.launch(200, 2, thread=-1, end=200)
    made.kernel("gemm", 0, 100, 1)
    made.kernel("gemm", 250, 300, 2)
    assert sum(us for _, _, us, _ in idle(made)) == 150


def test_innermost_line_of_python_is_the_place():
    """Built-in functions have addresses of one run in their names: the line that calls them is the place."""
    made = busy_step()
    made.frame("train.py(10): main", 0, 1000)
    made.frame("train.py(44): log", 100, 500)
    made.frame("<built-in method write of file object at 0x7f1>", 200, 400)
    found = idle(made)
    assert ("host: no operator", "log (train.py:44)", 400, 1) in found
    assert ("host: no operator", "main (train.py:10)", 90, 1) in found


def test_range_that_the_innermost_line_opened_is_the_place():
    """The range from 150 to 400 lies in main; save, from 200 to 300, is called in the range."""
    made = busy_step()
    made.frame("train.py(10): main", 0, 1000)
    made.annotation("checkpoint", 150, 400)
    made.frame("train.py(70): save", 200, 300)
    found = idle(made)
    assert ("host: no operator", "checkpoint", 50 + 100, 1) in found
    assert ("host: no operator", "save (train.py:70)", 100, 1) in found


def test_without_frames_the_innermost_range_is_the_place():
    made = busy_step()
    made.annotation("Optimizer.step#AdamW.step", 100, 590)
    assert ("host: no operator", "Optimizer.step#AdamW.step", 490, 1) in idle(made)


def test_collector_and_compiler_have_causes_of_their_own():
    made = busy_step()
    made.frame("<built-in function collect>", 100, 200)
    made.launch(300, -1, end=350, name="cuModuleLoadData")
    found = idle(made)
    assert ("garbage collection", "<built-in function collect>", 100, 1) in found
    assert ("compile", "cuModuleLoadData", 50, 1) in found


def test_compiler_is_known_by_its_function_not_by_its_file():
    made = busy_step()
    made.frame("torch/_inductor/autotuner.py(9): choose_one", 100, 200)
    made.frame("torch/_inductor/compile_fx.py(800): inner", 200, 300)
    made.frame("triton/compiler/compiler.py(226): compile", 300, 400)
    made.launch(400, -1, end=450, name="nvrtcCompileProgram")
    found = idle(made)
    assert {row for row in found if row[0] == "compile"} == {
        ("compile", "compile (compiler.py:226)", 100, 1),
        ("compile", "nvrtcCompileProgram", 50, 1),
    }
    assert ("host: no operator", "choose_one (autotuner.py:9)", 100, 1) in found


@pytest.mark.parametrize(
    "name", ["[pl][profile][_TrainingEpochLoop].train_dataloader_next", "my_next_batch", "data_loading"]
)
def test_loader_is_a_loader_whatever_framework_names_it(name):
    made = busy_step()
    made.annotation(name, 150, 350)
    rows = times(made).built()
    assert ("data loading", name, 200 * US) in zip(
        rows.tables["idle"]["cause"], rows.tables["idle"]["place"], rows.tables["idle"]["ns"].tolist(), strict=True
    )
    assert rows.steps[0].breakdown.data_loading_idle_ns == 200 * US


def test_wait_in_a_wait_is_a_part_of_it():
    """cudaDeviceSynchronize from 90 to 400 calls cudaStreamSynchronize from 95 to 110: one wait, until 420."""
    made = busy_step()
    made.launch(90, -1, end=400, name="cudaDeviceSynchronize")
    made.launch(95, -1, end=110, name="cudaStreamSynchronize", level=LaunchLevel.DRIVER)
    assert ("synchronisation", "cudaDeviceSynchronize", 320, 1) in idle(made)


def test_caller_that_waits_keeps_the_device_waiting_for_autograd():
    """Autograd launches next, on thread 1, while the loop on thread 0 is in item from 50 to 400."""
    made = Made()
    made.step(0, 0, 600)
    made.launch(0, 1, thread=0, end=0)
    made.kernel("gemm", 0, 100, 1)
    made.op("aten::item", 50, 400, thread=0)
    made.launch(50, -1, thread=0, end=400, name="cudaStreamSynchronize")
    made.op("MmBackward0", 450, 500, thread=1)
    made.launch(490, 2, thread=1, end=500)
    made.kernel("gemm", 500, 600, 2)
    assert ("synchronisation", "aten::item", 320, 1) in idle(made)


def copying_ahead() -> Made:
    """A thread that copies batches ahead, and so launches, holds a loader open; the other launches the kernels."""
    made = busy_step()
    made.annotation("prefetch: next_batch", 0, 1000, thread=3)
    made.launch(5, 7, thread=3, end=6, name="cudaMemcpyAsync")
    made.kernel("Memcpy HtoD (Pinned -> Device)", 50, 60, 7, kind=DeviceKind.COPY, stream=8)
    return made


def test_thread_that_copies_ahead_takes_no_time_from_one_that_works():
    made = copying_ahead()
    made.launch(110, -1, end=210, name="cudaMalloc")
    made.frame("train.py(10): preprocess", 0, 1000)
    found = {(cause, place): us for cause, place, us, _ in idle(made)}
    assert found["allocation", "cudaMalloc"] == 100
    assert found["host: no operator", "preprocess (train.py:10)"] == 390
    assert ("data loading", "prefetch: next_batch") not in found


def test_frame_that_waits_for_a_lock_is_no_work():
    """A queue has one: the loop waits for the batch that another thread loads."""
    made = busy_step()
    made.annotation("prefetch: next_batch", 0, 1000, thread=3)
    made.frame("prefetch.py(22): next", 0, 1000)
    made.frame("threading.py(320): wait", 100, 590)
    assert ("data loading", "prefetch: next_batch", 490, 1) in idle(made)


def test_range_that_an_old_profiler_took_for_an_operator_ends_no_wait():
    made = busy_step()
    made.op("aten::mm", 2, 3)
    made.op("log_metrics", 96, 580)
    made.launch(96, -1, end=110, name="cudaDeviceSynchronize")
    assert ("synchronisation", "cudaDeviceSynchronize", 30, 1) in idle(made)


def test_operator_is_no_loader_nor_is_what_lies_in_one():
    made = busy_step()
    made.op("mylib::get_batch", 150, 250)
    made.annotation("get_batch", 180, 220)
    assert "data loading" not in {cause for cause, *_ in idle(made)}


@pytest.mark.parametrize("name", ["Feeder.pull", "Feeder::pull"])
def test_team_names_its_own_loaders(name):
    made = busy_step()
    made.annotation(name, 150, 350)
    rows = times(made).built(loader_names=("feeder",))
    assert rows.steps[0].breakdown.data_loading_idle_ns == 200 * US


def beside_a_loader() -> Made:
    """A thread that launches nothing holds a loader open all the time; the one that launches runs index for 300 us."""
    made = busy_step()
    made.annotation("prefetch: next_batch", 0, 1000, thread=3)
    made.op("aten::index", 150, 450)
    return made


def test_thread_that_works_does_not_wait_for_a_loader_beside_it():
    """Idle from 100 to 600: index 300 us, the launch call 6; in the rest the launching thread does nothing."""
    made = beside_a_loader()
    rows = times(made).built()
    sums = by_cause(rows)
    assert (sums["host: operator"], sums["data loading"]) == ((300 + 6 + 1) * US, (50 + 140) * US)
    # the loop waits for its data where nothing of it runs: 1000, less 300, 6 and the launch of the first kernel
    assert rows.steps[0].breakdown.data_loading_ns == (1000 - 300 - 6 - 1) * US
    assert rows.steps[0].breakdown.data_loading_idle_ns == 190 * US


def test_thread_in_a_frame_does_not_wait_for_a_loader_beside_it():
    made = beside_a_loader()
    made.frame("train.py(10): main", 0, 1000)
    assert ("host: no operator", "main (train.py:10)", 190, 1) in idle(made)


def test_loader_of_the_waiting_thread_counts_beside_autograd():
    """Autograd launches on thread 1, which does nothing while the loop on thread 0, which launches too, loads."""
    made = Made()
    made.step(0, 0, 400)
    made.launch(0, 1, thread=0, end=0)
    made.kernel("gemm", 0, 100, 1)
    made.annotation("next_batch", 120, 250, thread=0)
    made.op("MmBackward0", 250, 300, thread=1)
    made.launch(290, 2, thread=1, end=300)
    made.kernel("gemm", 300, 400, 2)
    assert ("data loading", "next_batch", 130, 1) in idle(made)


def test_thread_that_launches_for_another_waits_for_what_that_one_does():
    """Autograd launches on thread 1, which does nothing while the loss is computed on thread 0."""
    made = Made()
    made.step(0, 0, 400)
    made.launch(0, 1, thread=0, end=0)
    made.kernel("gemm", 0, 100, 1)
    made.op("aten::ones_like", 120, 200, thread=0)
    made.op("MmBackward0", 250, 300, thread=1)
    made.launch(290, 2, thread=1, end=300)
    made.kernel("gemm", 300, 400, 2)
    assert idle(made) == [
        ("host: operator", "aten::ones_like", 80, 1),
        ("host: no operator", "", 20 + 50, 1),
        ("host: operator", "MmBackward0", 50, 1),
    ]


def queued_step(*, handover: int = MISSING) -> Made:
    """A step of 1 ms in which thread 0 puts the second kernel into a queue at 20. Thread 1, which launched the first
    one, takes it out at 110 and compiles it until 580; it runs from 600 on.
    """
    made = Made()
    made.step(0, 0, 1000)
    made.launch(0, 1, thread=1, end=0)
    made.kernel("gemm", 0, 100, 1, handover_ns=0, handover_thread=1)
    made.op("aten::mm", 20, 30)
    made.launch(20, 2, end=20, name="async_npu", level=LaunchLevel.FLOW)
    made.launch(110, -1, thread=1, end=580, name="aclopCompileAndExecute", level=LaunchLevel.ACL)
    made.kernel("gemm", 600, 1000, 2, handover_ns=handover, handover_thread=1)
    return made


def test_thread_that_takes_work_from_a_queue_keeps_the_device_waiting():
    """Handed over at 595, 15 after the compiler has ended; 5 to start."""
    assert idle(queued_step(handover=595)) == [
        ("compile", "aclopCompileAndExecute", 470, 1),
        ("host: no operator", "", 10 + 15, 1),
        ("launch latency", "", 5, 1),
    ]


def test_work_in_a_queue_is_not_launched_yet():
    """It is not known when the second kernel was handed over: not at 20, when it was put into the queue."""
    assert idle(queued_step()) == [("unknown", "", 500, 1)]


def test_gap_that_two_steps_share_is_parted_between_them():
    """From 100 to 300, over the border at 200, where the first marker ends and the second begins."""
    made = Made()
    made.step(0, 0, 200)
    made.step(1, 200, 400)
    made.launch(0, 1, end=0)
    made.kernel("gemm", 0, 100, 1)
    made.launch(299, 2, end=300)
    made.kernel("gemm", 300, 400, 2)
    table = times(made).built().tables["idle"]
    sums = Counter[int]()
    for step, ns in zip(table["step"].tolist(), table["ns"].tolist(), strict=True):
        sums[step] += ns
    assert sums == {0: 100 * US, 1: 100 * US}


def test_capture_without_launches_does_not_say_why():
    made = Made()
    made.step(0, 0, 100)
    made.op("aten::mm", 0, 50)
    made.kernel("gemm", 50, 100)
    assert idle(made) == [("unknown", "", 50, 1)]


def test_idle_time_that_the_profiler_states_has_no_gaps():
    made = Made()
    made.step(7, 0, 100)
    made.kernel("MatMul", 0, 40, step=7)
    made.step_times(7, compute=40 * US, communication=0, overlap=0, exposed_communication=0, idle=60 * US)
    assert idle(made, no_copies=True) == [("unknown", "", 60, MISSING)]


def test_host_alone_has_no_device_that_idles():
    made = Made()
    made.step(0, 0, 100)
    made.op("aten::mm", 0, 50)
    assert idle(made) == []


def by_step(rows: Rows) -> Counter[int]:
    """The idle time of each step, all causes together."""
    sums = Counter[int]()
    table = rows.tables["idle"]
    for step, ns in zip(table["step"].tolist(), table["ns"].tolist(), strict=True):
        sums[step] += ns
    return sums


def with_host(made: Made, seed: int) -> Made:
    """The capture with operators, waits, allocations and frames here and there."""
    chosen = random.Random(seed)
    for _ in range(chosen.randrange(8)):
        start = chosen.randrange(60)
        end = start + chosen.randrange(20)
        kind = chosen.randrange(6)
        if kind == 0:
            made.op(chosen.choice(("aten::mm", "aten::item")), start, end, chosen.randrange(2))
        elif kind == 1:
            made.launch(start, -1, end=end, name=chosen.choice(("cudaMalloc", "cudaStreamSynchronize")))
        elif kind == 2:
            made.frame("train.py(1): main", start, end)
        elif kind == 3:
            made.frame("<built-in function collect>", start, end)
        elif kind == 4:
            made.annotation(chosen.choice(("log_metrics", "compile_fx")), start, end)
        else:
            made.annotation("enumerate(DataLoader)#Iter.__next__", start, end)
    return made


@given(captures())
def test_causes_add_up_to_the_idle_time_of_each_step(made):
    made = with_host(made, len(made.rows[Launches]))
    rows = made.built()
    on_device = {row.step: row.breakdown.idle_ns for row in rows.steps if row.breakdown.timeline == "device"}
    sums = by_step(rows)
    assert {step: ns for step, ns in on_device.items() if ns} == {step: ns for step, ns in sums.items() if ns}
    assert all(ns > 0 for ns in rows.tables["idle"]["ns"].tolist())


@given(captures())
def test_without_launches_all_is_unknown_and_no_sum_changes(made):
    made = with_host(made, len(made.rows[Launches]))
    made.rows[Launches].clear()
    rows = made.built()
    assert set(rows.tables["idle"]["cause"]) <= {"unknown"}
    assert sum(by_step(rows).values()) == sum(
        row.breakdown.idle_ns or 0 for row in rows.steps if row.breakdown.timeline == "device"
    )


def handed_over(made: Made) -> Made:
    """The same capture, of which the source says what the launch calls say: when they end, and on which thread."""
    for row, call in zip(made.rows[DeviceEvents], launches_of(made.events()).tolist(), strict=True):
        row["handover_ns"] = MISSING if call < 0 else made.rows[Launches][call]["end_ns"]
        row["handover_thread"] = -1 if call < 0 else made.rows[Launches][call]["thread"]
    return made


@given(captures())
def test_launches_that_the_source_states_are_those_of_the_calls(made):
    """And where it states none, all is unknown, and no sum changes."""
    made = with_host(made, len(made.rows[Launches]))
    by_calls = made.built()
    stated = handed_over(made).built()
    for name in ("idle", "queue"):
        columns = (by_calls.tables[name].values(), stated.tables[name].values())
        assert all(list(one) == list(other) for one, other in zip(*columns, strict=True))
    for row in made.rows[DeviceEvents]:
        row["handover_ns"] = MISSING
    unknown = made.built()
    assert by_step(unknown) == by_step(by_calls)
    assert set(unknown.tables["idle"]["cause"]) <= {"unknown"}
    assert all(row.breakdown.host_idle_ns is None for row in unknown.steps)
    assert len(unknown.tables["queue"]["step"]) == 0


@given(captures())
def test_order_of_the_events_does_not_matter(made):
    made = with_host(made, len(made.rows[HostOps]) + len(made.rows[Frames]))
    before, after = made.built().tables["idle"], made.shuffled(random.Random(1)).built().tables["idle"]
    assert [list(column) for column in before.values()] == [list(column) for column in after.values()]


@given(captures(), st.integers(1, 3))
def test_gaps_are_explained_alike_however_many_at_once(made, at_once):
    made = with_host(made, len(made.rows[HostOps]))
    together = made.built().tables["idle"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_rows, "_GAPS_AT_ONCE", at_once)
        patch.setattr(host_work, "BLOCK_ROWS", at_once)
        apart = made.built().tables["idle"]
    assert [list(column) for column in together.values()] == [list(column) for column in apart.values()]


def by_cause(rows: Rows) -> Counter[str]:
    """The idle time of each cause, all steps and places together."""
    sums = Counter[str]()
    table = rows.tables["idle"]
    for cause, ns in zip(table["cause"], table["ns"].tolist(), strict=True):
        sums[cause] += ns
    return sums


@given(captures())
def test_frames_name_only_what_else_is_no_operator(made):
    """Without them time goes to `host: no operator` and to nothing else: from the collector that only a frame names."""
    made = with_host(made, len(made.rows[Launches]))
    named = by_cause(made.built())
    made.rows[Frames].clear()
    plain = by_cause(made.built())
    changed = {cause for cause in {*named, *plain} if named[cause] != plain[cause]}
    assert changed <= {"host: no operator", "garbage collection"}
    assert named["garbage collection"] >= plain["garbage collection"]


@given(captures())
def test_ranges_of_another_thread_take_no_time_from_one_that_works(made):
    """A loader beside it may be waited for where the launching thread runs nothing, and there alone."""
    made = with_host(made, len(made.rows[Launches]))
    alone = by_cause(made.built())
    made.annotation("next_batch", 0, 60, thread=3)
    beside = by_cause(made.built())
    changed = {cause for cause in {*alone, *beside} if alone[cause] != beside[cause]}
    assert changed <= {"host: no operator", "data loading"}
