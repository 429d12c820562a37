"""Hand-computable stories and laws: when a step runs on the device, and what it is made of."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.timeline.made_events import Made
from tracker.profile import STEP_RULES, STEP_SETTING, DeviceEvents, Rows
from tracker.timeline import build
from tracker.timeline.joined import join
from tracker.timeline.windows import overlap_warning


def parts(rows: Rows) -> list[tuple[Any, ...]]:
    """Step, start, time, compute, exposed communication, exposed copies and idle time of each step."""
    found = []
    for row in rows.steps:
        own = row.breakdown
        times = (own.duration_ns, own.compute_ns, own.exposed_communication_ns, own.exposed_copy_ns, own.idle_ns)
        found.append((row.step, row.start_ns, *times))
    return found


def launched(made: Made, name: str, call: int, start: int, end: int, **given: Any) -> None:
    """A kernel and the call that launched it."""
    correlation = len(made.rows[DeviceEvents]) + 1
    made.launch(call, correlation)
    made.kernel(name, start, end, correlation, **given)


def host_ahead(kernel_ns: int = 100) -> Made:
    """The host marks and launches three steps in 30 ns; the device needs `kernel_ns` for each."""
    made = Made()
    for step in range(3):
        made.step(step, 10 * step, 10 * step + 10)
        launched(made, "gemm", 10 * step + 2, 5 + kernel_ns * step, 5 + kernel_ns * (step + 1))
    return made


def test_host_that_runs_ahead_is_not_the_clock():
    """Steps of 105, 100 and 100 ns: the first one holds the filling of the queue."""
    rows = host_ahead().built()
    assert parts(rows) == [(0, 0, 105, 100, 0, 0, 5), (1, 105, 100, 100, 0, 0, 0), (2, 205, 100, 100, 0, 0, 0)]
    assert [row.marker_ns for row in rows.steps] == [10, 10, 10]


def test_slower_device_makes_slower_steps_where_host_runs_ahead():
    before, after = (parts(host_ahead(kernel_ns).built()) for kernel_ns in (100, 120))
    assert [row[2] for row in before] == [105, 100, 100]
    assert [row[2] for row in after] == [125, 120, 120]


def test_device_that_finishes_in_time_keeps_the_markers():
    made = Made()
    for step in range(2):
        made.step(step, 100 * step, 100 * step + 90)
        launched(made, "gemm", 100 * step + 10, 100 * step + 20, 100 * step + 60)
    # 10 ns of the host between the two markers are in no step
    assert parts(made.built()) == [(0, 0, 90, 40, 0, 0, 50), (1, 100, 90, 40, 0, 0, 50)]


def test_everything_in_a_window_is_of_its_step():
    """A copy and a collective of another stream run on into step 1, which did not launch them."""
    made = Made()
    made.step(0, 0, 100)
    made.step(1, 100, 200)
    launched(made, "gemm", 10, 20, 80)
    launched(made, "gemm", 110, 130, 180)
    made.copy(90, 120, stream=8)
    launched(made, "ncclDevKernel_AllReduce_Sum_f32", 20, 150, 190, stream=9)
    rows = made.built()
    assert parts(rows) == [(0, 0, 100, 60, 0, 10, 30), (1, 100, 100, 50, 10, 20, 20)]
    assert [row.breakdown.kernel_count for row in rows.steps] == [2, 1], "kernels stay with the step that launched them"


def test_window_begins_when_the_queue_before_it_is_done():
    made = Made()
    made.step(0, 0, 100)
    made.kernel("of the warm-up", -10, 40)
    launched(made, "gemm", 10, 50, 90)
    assert parts(made.built()) == [(0, 50, 60, 40, 0, 0, 20)]


def test_kernels_long_before_the_first_step_change_no_step():
    made = host_ahead()
    before = [row[2:] for row in parts(made.built())]
    made.kernel("of the warm-up", -1_000_000, -999_900)
    assert [row[2:] for row in parts(made.built())] == before


def test_step_without_kernels_is_its_marker():
    made = Made()
    made.step(0, 0, 100)
    made.step(1, 100, 200)
    launched(made, "gemm", 10, 20, 80)
    assert parts(made.built())[1] == (1, 100, 100, 0, 0, 0, 100)


def test_step_that_the_device_ran_past_has_no_time():
    """Step 1 launches nothing, and its marker lies within the work of step 0: no time is its own, not 0 ns."""
    made = Made()
    made.step(0, 0, 10)
    made.step(1, 10, 20)
    made.step(2, 20, 30)
    launched(made, "gemm", 5, 6, 100)
    launched(made, "gemm", 25, 100, 190)
    assert parts(made.built()) == [
        (0, 0, 100, 94, 0, 0, 6), (1, 100, None, None, None, None, None), (2, 100, 90, 90, 0, 0, 0)
    ]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [((0, 100), (60, 200)), ((0, 200), (60, 100))], ids=["cross", "nest"])
def test_overlapping_markers_have_disjoint_windows(first, second):
    """The marker that starts last decides, as for operators."""
    made = Made()
    made.step(0, *first)
    made.step(1, *second)
    launched(made, "gemm", 10, 20, 50)
    launched(made, "gemm", 70, 80, 90)
    assert overlap_warning(made.events().markers) == ""  # within a microsecond
    rows = parts(made.built())
    assert rows[0] == (0, 0, 60, 30, 0, 0, 30)
    assert rows[1][:2] == (1, 60)
    assert rows[1][2] == second[1] - 60


def test_overlapping_markers_are_said():
    made = Made()
    made.step(0, 0, 100_000)
    made.step(1, 60_000, 90_000)
    made.step(2, 100_000, 200_000)
    sentence = overlap_warning(made.events().markers)
    assert sentence == "1 step marker overlaps the next one: a step ends where the next one begins"


def test_evaluation_between_two_steps_is_in_no_step():
    made = Made()
    made.step(0, 0, 100)
    made.step(1, 1000, 1100)
    launched(made, "gemm", 10, 20, 80)
    launched(made, "evaluation", 900, 910, 1020)
    launched(made, "gemm", 1010, 1030, 1080)
    assert parts(made.built()) == [(0, 0, 100, 60, 0, 0, 40), (1, 1020, 80, 50, 0, 0, 30)]


def test_main_stream_is_that_with_most_compute():
    """Collectives of stream 9 take longer and run on, but the step ends where stream 7 has finished it."""
    made = Made()
    made.step(0, 0, 100)
    launched(made, "gemm", 10, 20, 120, stream=7)
    launched(made, "ncclDevKernel_AllReduce_Sum_f32", 20, 30, 400, stream=9)
    assert parts(made.built()) == [(0, 0, 120, 100, 0, 0, 20)]


def test_idle_time_is_the_hosts_where_nothing_launched_waits():
    """Gaps of the device: 0-20 (the launch ends at 11), 60-80 (launched long before), 90-130 (launch until 121), then
    a tail of 20 that nothing ends: 11 + 0 + 31 + 20 of 100 ns of idle time.
    """
    made = Made()
    made.step(0, 0, 160)
    launched(made, "gemm", 10, 20, 60)
    launched(made, "gemm", 30, 80, 90)
    launched(made, "gemm", 120, 130, 140)
    (step,) = made.built().steps
    assert (step.breakdown.idle_ns, step.breakdown.host_idle_ns) == (100, 62)


def test_any_later_work_that_waits_ends_the_hosts_part():
    """Two starts of gaps: 0-1, and from 50 until the launch of any later work ends at 61: the host has 1 + 11."""
    made = Made()
    made.step(0, 0, 200)
    launched(made, "gemm", 0, 1, 50)
    launched(made, "gemm", 99, 100, 150)
    launched(made, "gemm", 60, 150, 200, stream=8)
    (step,) = made.built().steps
    assert (step.breakdown.idle_ns, step.breakdown.host_idle_ns) == (51, 12)


def test_without_launches_idle_time_has_no_cause():
    made = Made()
    made.step(0, 0, 100)
    made.kernel("gemm", 10, 20)
    (step,) = made.built().steps
    assert (step.breakdown.idle_ns, step.breakdown.host_idle_ns) == (90, None)


def test_without_compute_kernels_the_markers_are_the_windows():
    made = Made()
    made.step(0, 0, 100)
    made.copy(50, 150)
    rows = made.built()
    assert parts(rows) == [(0, 0, 100, 0, 0, 50, 50)]
    assert rows.steps[0].marker_ns is None


def test_capture_says_by_which_rule_its_steps_were_cut():
    assert build(host_ahead().capture()).settings[STEP_SETTING] == STEP_RULES
    host = Made()
    host.step(0, 0, 100)
    host.op("aten::mm", 10, 20)
    assert STEP_SETTING not in build(host.capture()).settings, "on the host a step is what it was"


def test_stated_steps_are_the_one_source_without_a_host():
    """kernel_details.csv and step_trace_time.csv alone: Computing 80 + Communication 5 + Free 115, not the span 90."""
    made = Made()
    made.step(7, 100, 190)
    made.kernel("MatMul", 100, 180, step=7)
    made.kernel("hcom_allReduce_", 185, 190, step=7)
    made.step_times(7, compute=80, communication=10, overlap=5, exposed_communication=5, idle=115)
    rows = made.built(no_copies=True)
    (step,) = rows.steps
    own = step.breakdown
    assert (own.duration_ns, own.compute_ns, own.communication_ns, own.overlap_ns) == (200, 80, 10, 5)
    assert (own.exposed_communication_ns, own.exposed_copy_ns, own.idle_ns) == (5, None, 115)


MOMENT = st.integers(0, 60)


@st.composite
def captures(draw: Any) -> Made:
    """Up to four markers, in order or not, and kernels and copies on two streams, most with a launch before them."""
    made = Made()
    for step in range(draw(st.integers(1, 4))):
        start = draw(MOMENT)
        made.step(draw(st.sampled_from((step, 0))), start, start + draw(st.integers(0, 20)))
    for correlation in range(draw(st.integers(0, 8))):
        start = draw(MOMENT)
        if draw(st.integers(0, 3)):
            made.launch(max(0, start - draw(st.integers(0, 30))), correlation)
        event = draw(st.sampled_from((made.copy, made.kernel, made.kernel)))
        name = () if event == made.copy else (draw(st.sampled_from(("gemm", "ncclDevKernel_AllReduce"))),)
        event(*name, start, start + draw(st.integers(0, 25)), correlation, stream=draw(st.sampled_from((7, 8))))
    return made


def keeps_its_steps(made: Made) -> bool:
    """Whether the steps hold half of the work: else the capture is looked at as a whole."""
    return "lies in no step" not in build(made.capture()).quality_reason


def known(rows: Rows) -> list[tuple[Any, ...]]:
    """The parts of the steps that have a time."""
    return [row for row in parts(rows) if row[2] is not None]


@given(captures())
def test_windows_never_overlap_and_parts_add_up(made):
    assume(keeps_its_steps(made))
    built = made.built()
    rows = known(built)
    for _, _, step_ns, *of_step in rows:
        assert sum(of_step) == step_ns
        assert all(0 <= part <= step_ns for part in of_step)
    for own in (built.overall, *(row.breakdown for row in built.steps)):
        assert own.host_idle_ns is None or 0 <= own.host_idle_ns <= own.idle_ns
    windows = join(made.events()).windows
    assert (windows.start_ns <= windows.end_ns).all()
    assert all(end <= start for end, start in zip(windows.end_ns[:-1], windows.start_ns[1:], strict=True))


@given(captures(), st.integers(-1000, 10**18))
def test_shifting_all_times_changes_nothing(made, shift):
    before = made.built()
    for rows in made.rows.values():
        for row in rows:
            for name in ("start_ns", "end_ns"):
                if name in row:
                    row[name] += shift
    assert made.built().steps == before.steps


@given(captures(), MOMENT, st.integers(0, 20))
def test_copy_on_another_stream_never_adds_idle_time(made, start, length):
    assume(keeps_its_steps(made))
    before = {row[0]: row for row in parts(made.built())}
    made.copy(start, min(start + length, 60), stream=99)
    assume(keeps_its_steps(made))
    for row in parts(made.built()):
        assert row[2] == before[row[0]][2]
        assert row[2] is None or row[6] <= before[row[0]][6]


@given(captures(), st.randoms(use_true_random=False))
def test_order_of_the_events_does_not_matter(made, order: random.Random):
    assert made.shuffled(order).built().steps == made.built().steps
