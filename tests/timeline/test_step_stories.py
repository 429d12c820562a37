"""Hand-computable stories: which step an event belongs to."""

from __future__ import annotations

from tests.timeline.made_events import Made, records
from tracker.profile import NO_STEP


def test_a_device_event_belongs_to_the_step_whose_marker_contains_its_launch():
    made = Made()
    made.step(4, 100, 200)
    made.step(5, 200, 300)
    made.launch(199, 1)
    made.launch(200, 2)
    made.launch(320, 3)
    made.kernel("late", 350, 360, 1)
    made.kernel("later", 360, 380, 2)
    made.kernel("after", 380, 390, 3)
    rows = made.built()
    assert [(row.step, row.breakdown.kernel_total_ns) for row in rows.steps] == [(4, 10), (5, 20)]
    assert sorted(records(rows.tables["kernel"], "step", "total_ns")) == [(NO_STEP, 10), (4, 10), (5, 20)]
    assert rows.overall.kernel_total_ns == 40


def test_without_a_launch_the_own_step_the_first_linked_event_or_the_own_start_decides():
    made = Made()
    made.step(1, 0, 100)
    made.step(2, 100, 200)
    made.launch(50, 9)
    made.kernel("queued before the capture", 10, 20)
    made.kernel("says its own step", 11, 21, step=2)
    made.kernel("first linked", 60, 70, 9)
    made.kernel("own start", 110, 120)
    made.kernel("other stream", 5, 6, stream=8)
    made.kernel("says a step without a marker", 5, 6, step=7, stream=8)
    kernels = made.built().tables
    names = kernels["kernel_key"]["name"]
    assert {names[key]: step for key, step in records(kernels["kernel"], "kernel_key", "step")} == {
        "queued before the capture": NO_STEP,
        "says its own step": 2,
        "first linked": 1,
        "own start": 2,
        "other stream": 1,
        "says a step without a marker": NO_STEP,
    }


def test_without_markers_the_capture_is_one_step():
    made = Made()
    made.op("aten::mm", 1000, 1100)
    made.kernel("sgemm", 1150, 1250)
    rows = made.built()
    (step,) = rows.steps
    assert (step.step, step.start_ns, step.breakdown) == (0, 0, rows.overall)
    assert rows.overall.duration_ns == 250


def test_host_ops_belong_to_the_step_that_contains_their_start_on_any_thread():
    made = Made()
    made.step(1, 0, 100)
    made.op("aten::mm", 90, 110, thread=1)
    made.op("aten::mm", 100, 110)
    assert records(made.built().tables["op"], "step", "calls", "host_total_ns")[:2] == [(NO_STEP, 1, 10), (1, 1, 20)]
