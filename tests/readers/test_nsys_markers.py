"""Step markers of an Nsight Systems export that are numbered again, nested, or cut by the end of the capture."""

from __future__ import annotations

import pytest

from tests.readers.helpers import only
from tests.readers.nsys_captures import read
from tests.readers.nsys_databases import one_step, span, tid
from tracker.timeline import rows_of


def steps_of(tmp_path, *ranges):
    """(step, start) of each marker, and what is said of them."""
    profile = read(tmp_path, {**one_step(), "NVTX_EVENTS": list(ranges)})
    markers = only(profile).events.markers
    said = [text.partition(": ")[2] for text in profile.warnings if text.startswith("process 7: ")]
    return list(zip(markers.step.tolist(), markers.start_ns.tolist(), strict=True)), said


def epochs(word, count, per_epoch, first=0):
    """Ranges of 90 ns, one each 100 ns, whose numbers begin again in each epoch."""
    names = [f"{word} {first + number}" for _ in range(count) for number in range(per_epoch)]
    return [span(name, 100 * place, 100 * place + 90) for place, name in enumerate(names)]


def test_ranges_numbered_anew_in_each_epoch_are_that_many_steps(tmp_path):
    steps, said = steps_of(tmp_path, *epochs("iteration", 8, 4))
    assert steps == [(number, 100 * number) for number in range(32)]
    assert said == ["the numbers of the step markers begin again, in 8 rounds: 32 steps, numbered in order"]


def test_numbers_that_begin_at_one_are_counted_on_from_there(tmp_path):
    steps, _ = steps_of(tmp_path, *epochs("step", 2, 3, first=1))
    assert [number for number, _ in steps] == [1, 2, 3, 4, 5, 6]


def test_one_epoch_alone_is_no_round(tmp_path):
    assert steps_of(tmp_path, *epochs("iteration", 1, 4)) == ([(0, 0), (1, 100), (2, 200), (3, 300)], [])


def test_epochs_that_are_ranges_themselves_change_nothing(tmp_path):
    around = [span("epoch", 0, 290), span("epoch", 300, 590)]
    steps, _ = steps_of(tmp_path, *around, *epochs("step", 2, 3))
    assert len(steps) == 6


def test_another_thread_that_counts_the_same_begins_no_round(tmp_path):
    """A thread that fetches data marks step 0 to 2 ahead of the training, in shorter ranges."""
    fetching = [span(f"step {step}", 30 * step, 30 * step + 20, globalTid=tid(7, 9)) for step in range(3)]
    training = [span(f"step {step}", 100 * step + 50, 100 * step + 140) for step in range(3)]
    steps, said = steps_of(tmp_path, *fetching, *training)
    assert steps == [(0, 50), (1, 150), (2, 250)]
    assert said == ["3 step markers whose number comes again were left out, the longest kept"]


def test_two_ranges_of_one_step_in_each_epoch_are_one(tmp_path):
    names = ["step 0", "step 0", "step 1", "step 1"] * 2
    lengths = [40, 90] * 4
    ranges = [span(name, 100 * place, 100 * place + lengths[place]) for place, name in enumerate(names)]
    steps, _ = steps_of(tmp_path, *ranges)
    assert steps == [(0, 100), (1, 300), (2, 500), (3, 700)]


def test_step_that_was_never_closed_is_left_out_and_said(tmp_path):
    closed = [span(f"step {step}", 100 * step, 100 * step + 90) for step in range(3)]
    steps, said = steps_of(tmp_path, *closed, span("step 3", 300, None))
    assert steps == [(0, 0), (1, 100), (2, 200)]
    assert said == ["1 step marker left out: still open when the capture ended"]


def test_only_step_that_was_never_closed_ends_with_the_capture(tmp_path):
    profile = read(tmp_path, {**one_step(), "NVTX_EVENTS": [span("step 3", 100, None)]})
    assert only(profile).events.markers.end_ns.tolist() == [432]


def test_step_left_open_by_mistake_hides_no_other(tmp_path):
    later = [span(f"step {step}", 100 * step, 100 * step + 90) for step in (1, 2, 3)]
    assert steps_of(tmp_path, span("step 0", 0, None), *later)[0] == [(1, 100), (2, 200), (3, 300)]


def test_step_inside_of_another_one_is_left_out_and_said(tmp_path):
    outer = [span("step 0", 0, 190), span("step 1", 200, 390)]
    steps, said = steps_of(tmp_path, *outer, span("step 7", 20, 80))
    assert steps == [(0, 0), (1, 200)]
    assert said == ["1 step marker left out: inside of another one"]


def test_counter_inside_of_another_counter_is_no_step(tmp_path):
    iterations = [span(f"iteration {at}", 100 * at, 100 * at + 90) for at in range(3)]
    parts = [span(f"step {at}", 100 * at + 10, 100 * at + 60) for at in range(3)]
    assert steps_of(tmp_path, *iterations, *parts)[0] == [(0, 0), (1, 100), (2, 200)]


def test_counted_warm_up_is_left_out_where_others_repeat(tmp_path):
    """Two iterations inside of a range called warmup, and three behind it that are numbered anew."""
    warm_up = [span("warmup", 0, 195), span("iteration 0", 0, 90), span("iteration 1", 100, 190)]
    others = [span(f"iteration {at}", 200 + 100 * at, 290 + 100 * at) for at in range(3)]
    steps, said = steps_of(tmp_path, *warm_up, *others)
    assert steps == [(0, 200), (1, 300), (2, 400)]
    assert said == ["2 step markers left out: inside of a warm-up range"]


def test_warm_up_alone_keeps_its_steps(tmp_path):
    warm_up = [span("warmup", 0, 195), span("iteration 0", 0, 90), span("iteration 1", 100, 190)]
    assert [number for number, _ in steps_of(tmp_path, *warm_up)[0]] == [0, 1]


@pytest.mark.parametrize(("around", "steps"), [([], 3), ([span("forward", 0, 1000)], 0)])
def test_bare_numbers_inside_of_another_range_are_layers(tmp_path, around, steps):
    numbers = [span(str(at), 100 * at, 100 * at + 90) for at in range(3)]
    assert len(steps_of(tmp_path, *around, *numbers)[0]) == steps


def test_each_epoch_counts_its_own_kernels(tmp_path):
    """Kernels of 200 and 340 ns lie in the first and the second of two ranges of one number."""
    ranges = [span("iteration 0", 100, 310), span("iteration 1", 311, 312), span("iteration 0", 315, 400)]
    events = only(read(tmp_path, {**one_step(), "NVTX_EVENTS": ranges})).events
    counts = {row.step: row.breakdown.kernel_count for row in rows_of(events).steps}
    assert (counts[0], counts[2]) == (1, 1)
