"""Hand-computable stories: launches of any maker, graphs, waits for nothing, time counted twice, work in no step."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.timeline.made_events import Made
from tests.timeline.test_checks import MS, US, forbidden, steps_of, training
from tracker.profile import AS_WINDOWS, MARKERS_SETTING, Capture, DeviceKind, LaunchLevel
from tracker.results.recording import incomplete_of
from tracker.schema.series import LOST_DEVICE, LOST_STEPS
from tracker.timeline import build


def said(made: Made) -> tuple[str, str]:
    capture = build(made.capture())
    return capture.quality, capture.quality_reason


@pytest.mark.parametrize(
    "name",
    ["urEnqueueKernelLaunchWithArgsExp", "zeCommandListAppendLaunchKernel", "musaLaunchKernel", "hipExtLaunchKernel"],
)
def test_launch_of_any_maker_needs_its_kernel(name):
    made = training()
    made.launch(5 * US, 99, name=name)
    assert said(made) == ("partial", "1 of 7 launches have no kernel: the profiler lost them")


def test_call_that_has_kernels_elsewhere_needs_one():
    made = training()
    made.launch(5 * US, 98, name="vendorSubmit")
    made.kernel("add", 95 * US, 96 * US, 98)
    made.launch(6 * US, 99, name="vendorSubmit")
    assert said(made) == ("partial", "1 of 8 launches have no kernel: the profiler lost them")


def test_copy_that_is_a_kernel_elsewhere_needs_none():
    """AMD copies by kernels; a copy of no bytes has none."""
    made = training()
    made.launch(5 * US, 98, name="hipMemcpyAsync")
    made.kernel("__amd_rocclr_copyBuffer", 95 * US, 96 * US, 98)
    made.launch(6 * US, 99, name="hipMemcpyAsync")
    assert said(made) == ("ok", "")


def test_lost_call_of_the_driver_in_one_of_the_runtime_counts_once():
    made = training()
    made.launch(5 * US, 98, end=9 * US)
    made.launch(6 * US, 99, end=8 * US, level=LaunchLevel.DRIVER, name="cuLaunchKernel")
    assert said(made) == ("partial", "1 of 7 launches have no kernel: the profiler lost them")


@pytest.mark.parametrize("maker", ["cuda", "hip", "musa"])
def test_stream_capture_of_any_maker_runs_nothing(maker):
    made = training()
    made.launch(2 * US, 97, name=f"{maker}StreamBeginCapture")
    made.launch(5 * US, 98, name=f"{maker}LaunchKernel")
    made.launch(7 * US, 99, name=f"{maker}StreamEndCapture")
    assert said(made) == ("ok", "")


def replays(kernels: tuple[int, ...], name: str = "hipGraphLaunch") -> Made:
    """Steps of 100 us, each with one graph launch; `kernels`: of 2 us, how many of each replay are there."""
    made = Made()
    for step, count in enumerate(kernels):
        start = 100 * US * step
        made.step(step, start, start + 100 * US)
        made.launch(start + 1 * US, step + 1, name=name)
        for at in range(count):
            made.kernel("k", start + (10 + 2 * at) * US, start + (12 + 2 * at) * US, step + 1)
    return made


def test_graph_launch_without_kernels_is_lost_where_others_have_some():
    capture = build(replays((4, 0, 0, 23, 12)).capture())
    assert capture.quality_reason == "2 of 5 graph launches have no kernel: the profiler lost them"
    assert forbidden(capture) == (LOST_DEVICE,)


@pytest.mark.parametrize("kernels", [(4, 15, 12), (0, 0, 0)])
def test_graphs_of_unequal_size_and_graphs_without_names_are_whole(kernels):
    made = replays(kernels)
    made.kernel("other", 90 * US, 91 * US, stream=8)
    assert said(made) == ("ok", "")


def test_last_graph_launches_without_kernels_leave_out_their_steps():
    capture = build(replays((4, 4, 4, 0)).capture())
    assert steps_of(capture) == [0, 1, 2]
    assert capture.quality_reason.startswith("step 3 is left out: 1 of 1 launches in it have no kernel")


def test_graph_whose_kernels_another_process_has_is_whole():
    capture = replays((4, 0, 4)).capture()
    assert capture.events is not None
    extras = replace(capture.events.extras, served_elsewhere=np.array([2]))
    assert build(replace(capture, events=replace(capture.events, extras=extras))).quality == "ok"


@pytest.mark.parametrize(("waits_until_us", "has_markers"), [(99, True), (None, False)])
def test_step_of_lost_work_is_its_marker_where_the_host_waits(waits_until_us, has_markers):
    """Steps of 100 us, of which the device works for 6 us where its records are there."""
    made = replays((3, 0, 3))
    for step in range(3):
        if waits_until_us is not None:
            start = 100 * US * step
            made.launch(start + 16 * US, 90 + step, end=start + waits_until_us * US, name="hipStreamSynchronize")
    capture = build(made.capture())
    incomplete = incomplete_of(capture.settings)
    assert incomplete is not None and incomplete.has_markers is has_markers
    assert capture.rows is not None
    assert [row.breakdown.duration_ns for row in capture.rows.steps] == [100 * US] * 3


def test_wait_before_the_work_proves_no_end_of_the_step():
    """The host waits for an old event, launches, and marks 20 us for steps of which the device takes 100."""
    made = Made()
    for step in range(3):
        start = 20 * US * step
        made.step(step, start, start + 20 * US)
        made.launch(start + 1 * US, 90 + step, end=start + 2 * US, name="cudaEventSynchronize")
        made.launch(start + 5 * US, 2 * step + 1)
        made.launch(start + 7 * US, 2 * step + 2)
        made.kernel("mm", 30 * US + 100 * US * step, 120 * US + 100 * US * step, 2 * step + 1)
        if step != 1:
            made.kernel("add", 120 * US + 100 * US * step, 130 * US + 100 * US * step, 2 * step + 2)
    incomplete = incomplete_of(build(made.capture()).settings)
    assert incomplete is not None and LOST_DEVICE in incomplete.forbids and not incomplete.has_markers


def test_step_with_impossible_times_is_not_judged_by_its_marker():
    """A lost kernel, and one that begins 200 us before its launch: the clocks may differ."""
    made = replays((3, 0, 3))
    for step in range(3):
        made.launch(100 * US * step + 16 * US, 90 + step, end=100 * US * step + 99 * US, name="hipStreamSynchronize")
    made.launch(250 * US, 80, name="hipLaunchKernel")
    made.kernel("early", 50 * US, 51 * US, 80)
    incomplete = incomplete_of(build(made.capture()).settings)
    assert incomplete is not None
    assert {LOST_DEVICE, LOST_STEPS} <= set(incomplete.forbids) and not incomplete.has_markers


def test_whole_capture_says_that_its_windows_are_as_long_as_markers():
    """A host that runs ahead marks 20 us for steps of which the device takes 100."""
    assert build(training().capture()).settings[MARKERS_SETTING] == AS_WINDOWS
    ahead = Made()
    for step in range(3):
        ahead.step(step, 20 * US * step, 20 * US * step + 20 * US)
        ahead.launch(20 * US * step + 1 * US, step + 1)
        ahead.kernel("mm", 30 * US + 100 * US * step, 130 * US + 100 * US * step, step + 1)
    assert MARKERS_SETTING not in build(ahead.capture()).settings


def waiting(runs_ns: int, name: str = "cudaStreamSynchronize") -> Made:
    """Two steps of 1 ms, in each of which the host waits for 800 us, of which the device works for `runs_ns`."""
    made = Made()
    for step in range(2):
        start = 1 * MS * step
        made.step(step, start, start + 1 * MS)
        made.launch(start + 10 * US, step + 1)
        made.launch(start + 100 * US, 10 + step, end=start + 900 * US, name=name)
        made.kernel("k", start + 100 * US, start + 100 * US + runs_ns, step + 1)
    return made


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "hipDeviceSynchronize", "musaEventSynchronize"])
def test_wait_under_which_nothing_runs_is_no_whole_capture(name):
    """Of 800 us 600 are waited in vain; a wait of 180 us, the latency of a launch here, is its own: 420 of 1,000."""
    capture = build(waiting(200 * US, name).capture())
    assert capture.quality_reason == (
        "for 42 % of the steps the host waits for the device and nothing runs there: records were lost, or the clocks "
        "of host and device differ"
    )
    assert forbidden(capture) == (LOST_DEVICE,)


def test_wait_that_ends_with_the_work_is_whole():
    assert said(waiting(790 * US)) == ("ok", "")


def test_wait_of_a_copy_that_blocks_says_nothing():
    assert said(waiting(200 * US, "cudaMemcpy")) == ("ok", "")


def test_npu_may_wait_while_nothing_runs():
    made = waiting(200 * US)
    made.npu_kernel("MatMulV2", 950 * US, 960 * US, 1, core_type="AI_CORE")
    assert said(made) == ("ok", "")


def overlapping(overlap_us: int, name: str) -> Made:
    """Ten kernels of 100 us on one stream, each begun `overlap_us` before the end of the one before."""
    made = Made()
    for at in range(10):
        made.launch(at, at + 1, name=name)
        start = (100 + at * (100 - overlap_us)) * US
        made.kernel("k", start, start + 100 * US, at + 1)
    return made


def test_kernels_of_one_stream_that_overlap_cannot_be():
    """Nine times 30 us of 1,000 count twice."""
    capture = build(overlapping(30, "urEnqueueKernelLaunch").capture())
    assert capture.quality_reason == (
        "kernels of one stream overlap by 27 % of their time, which cannot be: their durations are wrong"
    )
    assert forbidden(capture) == (LOST_DEVICE,)


def test_kernels_that_overlap_by_two_in_a_hundred_are_whole():
    assert said(overlapping(2, "cudaLaunchKernel")) == ("ok", "")


@pytest.mark.parametrize("name", ["cudaLaunchKernelExC_v11060", "cuLaunchKernelEx", "cudaGraphLaunch"])
def test_early_launch_counts_to_the_start_of_the_next_kernel(name):
    capture = build(overlapping(30, name).capture())
    assert capture.quality == "ok"
    assert capture.quality_reason == (
        "kernels of one stream overlap by 27 % of their time: early launch, each counts to the start of the next"
    )
    assert forbidden(capture) == ()
    assert capture.rows is not None
    assert capture.rows.overall.kernel_total_ns == (9 * 70 + 100) * US


def test_branch_of_a_graph_within_a_longer_kernel_takes_no_time_away():
    """The device works for 1 ms: one kernel runs that long, and ten of 10 us beside it."""
    made = Made()
    made.launch(0, 1, name="cudaGraphLaunch")
    made.kernel("long", 10 * US, 1_010 * US, 1)
    for at in range(10):
        made.kernel("short", (20 + 20 * at) * US, (30 + 20 * at) * US, 1)
    capture = build(made.capture())
    assert capture.rows is not None
    assert capture.rows.overall.compute_ns == 1_000 * US


def decoding(work_us: int) -> Capture:
    """Two steps with a kernel of 10 us each, and one kernel of `work_us` without a launch behind them."""
    made = Made()
    for step in range(2):
        made.step(step, 100 * US * step, 100 * US * step + 50 * US)
        made.launch(100 * US * step + 1 * US, step + 1)
        made.kernel("sample", 100 * US * step + 10 * US, 100 * US * step + 20 * US, step + 1)
    made.kernel("decode", 300 * US, (300 + work_us) * US, 0)
    return build(made.capture())


def test_steps_that_hold_less_than_half_of_the_work_are_not_judged():
    """Kernels are those of the whole capture, and there is no step beside E2E."""
    capture = decoding(30)
    assert capture.quality_reason == "60 % of the work of the device (30.00 us of 50.00 us) lies in no step"
    assert forbidden(capture) == (LOST_STEPS,)
    assert capture.rows is not None
    assert capture.rows.overall.kernel_total_ns == 50 * US


def test_steps_that_hold_half_of_the_work_are_judged():
    assert (decoding(20).quality, steps_of(decoding(20))) == ("ok", [0, 1])


def test_work_before_the_first_step_is_warm_up():
    made = Made()
    made.launch(1 * US, 9)
    made.kernel("warm", 2 * US, 90 * US, 9)
    made.step(0, 100 * US, 150 * US)
    made.launch(101 * US, 1)
    made.kernel("sample", 110 * US, 120 * US, 1)
    assert said(made) == ("ok", "")


def test_nothing_is_said_without_a_correlation():
    """4294967295 is -1 of a profiler that knows no launch."""
    made = training()
    made.launch(5 * US, 4_294_967_295, name="cudaGraphLaunch")
    for at in range(3):
        made.kernel("k", (310 + 10 * at) * US, (315 + 10 * at) * US, 4_294_967_295, kind=DeviceKind.KERNEL)
    assert said(made)[0] == "ok"
