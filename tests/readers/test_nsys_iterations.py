"""Steps of an Nsight Systems export in which no range counts them: found where they are sure, and said."""

from __future__ import annotations

import numpy as np
import pytest

from tests.readers.helpers import only
from tests.readers.nsys_captures import read
from tests.readers.nsys_databases import call, kernel, one_step, span
from tracker.results.recording import recording_of
from tracker.timeline import rows_of

ADAM = "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float>>"


def work(*names, process=7, device=0, every_us=100):
    """A launch and a kernel of 50 us per name, one each 100 us, the launch 20 us before its kernel begins."""
    calls, kernels = [], []
    for number, name in enumerate(names, start=1):
        begin = number * every_us * 1000
        identity = number + 1000 * process
        calls.append(call("cudaLaunchKernel_v7000", begin, begin + 5000, identity, process))
        kernels.append(kernel(name, begin + 20_000, begin + 70_000, identity, process, device))
    return calls, kernels


def export(*works, ranges=()):
    tables = {name: rows for name, rows in one_step().items() if not name.startswith(("CUPTI_ACTIVITY", "NVTX"))}
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [row for calls, _ in works for row in calls]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [row for _, kernels in works for row in kernels]
    if ranges:
        tables["NVTX_EVENTS"] = list(ranges)
    return tables


def steps_of(profile):
    """The step numbers of each capture, and what is said of them."""
    said = [text.partition(": ")[2] for text in profile.warnings if text.startswith("no NVTX range marks a step")]
    return [capture.events.markers.step.tolist() for capture in profile.captures], said


def test_the_same_kernels_from_the_first_to_the_last_are_iterations(tmp_path):
    profile = read(tmp_path, export(work(*["embed", "layer", "layer", "loss"] * 3)))
    assert steps_of(profile) == (
        [[1, 2, 3]],
        ["3 iterations were found, each with the same kernels in the same order"],
    )
    rows = rows_of(only(profile).events)
    assert [row.breakdown.duration_ns for row in rows.steps] == [400_000, 400_000, 370_000]
    assert [row.breakdown.kernel_count for row in rows.steps] == [4, 4, 4]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["embed", *["norm", "matmul"] * 6, "loss"], "the layers of one step repeat, too"),
        (["matmul", *["norm", "matmul"] * 6], "a window that was cut out of layers"),
        (["norm", "matmul"] * 2, "two halves may be anything"),
        (["matmul"] * 12, "a benchmark of one kernel"),
        (["norm", "matmul", "lambda"], "nothing comes again"),
    ],
)
def test_what_may_be_layers_is_no_iteration(tmp_path, names, why):
    assert steps_of(read(tmp_path, export(work(*names)))) == ([[]], ["the whole capture is one step"]), why


def test_iterations_behind_a_warm_up_end_with_their_optimizer(tmp_path):
    warm_up = ["find_algorithm", "embed", "matmul", "loss", ADAM]
    profile = read(tmp_path, export(work(*warm_up, *["embed", "matmul", "matmul", "loss", ADAM, ADAM] * 4, "evaluate")))
    assert steps_of(profile)[0] == [[1, 2, 3, 4]]
    assert [row.breakdown.kernel_count for row in rows_of(only(profile).events).steps] == [6, 6, 6, 6]


def test_an_optimizer_of_two_groups_of_parameters_is_one_iteration(tmp_path):
    iteration = ["embed", "matmul", ADAM, "clip", ADAM]
    assert steps_of(read(tmp_path, export(work(*iteration * 3, "evaluate"))))[0] == [[1, 2, 3]]


def test_iterations_that_hold_less_than_half_of_the_kernel_time_are_none(tmp_path):
    evaluation = [f"evaluate_{number}" for number in range(10)]
    assert steps_of(read(tmp_path, export(work(*["matmul", "loss", ADAM] * 3, *evaluation)))) == (
        [[]],
        ["the whole capture is one step"],
    )


def test_ranges_with_a_word_for_it_are_steps_also_within_others(tmp_path):
    ranges = [span("epoch", 0, 1_300_000), *(span("train_step", 50_000 + at, 240_000 + at) for at in (0, 400_000))]
    profile = read(tmp_path, export(work("matmul", "loss", "a", "b", "matmul", "loss"), ranges=ranges))
    assert steps_of(profile) == ([[1, 2]], ["each of the 2 ranges train_step is one"])


def test_a_range_that_comes_once_is_no_step(tmp_path):
    ranges = [span("warmup", 50_000, 150_000), span("benchmark", 190_000, 480_000)]
    profile = read(tmp_path, export(work("a", "b", "c", "d"), ranges=ranges))
    assert steps_of(profile) == ([[]], ["the whole capture is one step"])


def test_a_loop_of_equal_iterations_is_cut_into_them(tmp_path):
    """Three iterations of two kernels in a range, behind one in another."""
    ranges = [span("warmup", 50_000, 290_000), span("benchmark", 290_000, 990_000)]
    profile = read(tmp_path, export(work(*["matmul", "loss"] * 4), ranges=ranges))
    assert steps_of(profile)[0] == [[1, 2, 3, 4]]
    assert [row.breakdown.kernel_count for row in rows_of(only(profile).events).steps] == [2, 2, 2, 2]


STEPS_OF_200_US = (0, 200_000, 400_000)
"""Three starts; `work` launches two kernels behind each."""


def spans_at(name, starts, *, first=90_000, length=150_000, **columns):
    """A range of this name behind each of the starts."""
    return [span(name, start + first, start + first + length, **columns) for start in starts]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scaler.step(optimizer)", "a single call of a method"),
        ("{'mod': 'Adam', 'op': 'step', 'args': []}", "a marker of PyProf"),
        ('{"step": 3}', "a dictionary"),
    ],
)
def test_calls_and_dictionaries_are_no_steps(tmp_path, name, why):
    kernels = ["a", "b", "c", "d", "e", "f"]
    profile = read(tmp_path, export(work(*kernels), ranges=spans_at(name, STEPS_OF_200_US)))
    assert steps_of(profile) == ([[]], ["the whole capture is one step"]), why


def test_a_part_of_each_range_is_no_step(tmp_path):
    """Each train_batch holds one closure_step, which has all of its kernels."""
    outer = spans_at("train_batch", STEPS_OF_200_US, first=80_000, length=190_000)
    inner = spans_at("closure_step", STEPS_OF_200_US)
    profile = read(tmp_path, export(work("a", "b", "c", "d", "e", "f"), ranges=[*outer, *inner]))
    assert steps_of(profile)[0] == [[]]


def test_of_nested_steps_the_outer_one_counts(tmp_path):
    outer = spans_at("a_step", STEPS_OF_200_US, first=80_000, length=190_000)
    inner = spans_at("micro_step", (0, 100_000, 200_000, 300_000, 400_000, 500_000), first=90_000, length=50_000)
    profile = read(tmp_path, export(work("a", "b", "c", "d", "e", "f"), ranges=[*outer, *inner]))
    assert steps_of(profile) == ([[1, 2, 3]], ["each of the 3 ranges a_step is one"])


def test_warm_up_ranges_are_no_steps_where_others_repeat(tmp_path):
    """Four warm-up steps have four of six kernels, two of the benchmark the rest."""
    warm_up = spans_at("warmup_step", (0, 100_000, 200_000, 300_000), length=50_000)
    others = spans_at("batch", (400_000, 500_000), length=50_000)
    tables = export(work("a", "b", "c", "d", "e", "f"), ranges=[*warm_up, *others])
    assert steps_of(read(tmp_path, tables))[0] == [[]]
    alone = export(work("a", "b", "c", "d", "e", "f"), ranges=warm_up)
    assert steps_of(read(tmp_path, alone, name="b.sqlite"))[0] == [[1, 2, 3, 4]]


def test_a_range_around_everything_is_the_capture(tmp_path):
    profile = read(tmp_path, export(work("a", "b", "c", "d"), ranges=[span("main", 0, 900_000)]))
    assert steps_of(profile) == ([[]], ["the whole capture is one step"])


def test_layers_that_are_marked_are_no_steps(tmp_path):
    layers = [span("attention", 90_000 + at, 180_000 + at) for at in (0, 100_000, 200_000, 300_000)]
    assert steps_of(read(tmp_path, export(work("a", "b", "c", "d"), ranges=layers)))[0] == [[]]


def test_ranks_with_other_iterations_than_the_rest_have_none(tmp_path):
    three, four = ["embed", "loss"] * 3, ["embed", "loss"] * 4
    ranks = [work(*names, process=process, device=process - 7) for process, names in ((7, three), (8, three))]
    assert steps_of(read(tmp_path, export(*ranks)))[0] == [[1, 2, 3]] * 2
    ranks[1] = work(*four, process=8, device=1)
    assert steps_of(read(tmp_path, export(*ranks), name="b.sqlite")) == ([[], []], ["the whole capture is one step"])


def test_kernels_without_launches_are_cut_where_they_run(tmp_path):
    _, kernels = work(*["embed", "loss"] * 3)
    for row in kernels:
        row["correlationId"] = 0
    profile = read(tmp_path, export(([call("cudaDeviceSynchronize_v3020", 1000, 2000)], kernels)))
    (capture,) = profile.captures
    assert np.diff(capture.events.markers.start_ns).tolist() == [200_000, 200_000]


def test_how_steps_were_found_is_a_setting_that_must_be_equal(tmp_path):
    profile = read(tmp_path, export(work(*["embed", "layer", "loss"] * 3)))
    assert only(profile).settings["steps_found_by"] == "repeated kernels"
    ranges = [span("train_step", at, at + 190_000) for at in (90_000, 290_000, 490_000)]
    profile = read(tmp_path, export(work(*["b", "c"] * 3), ranges=ranges), name="b.sqlite")
    assert only(profile).settings["steps_found_by"] == "range train_step"
    by_kernels, by_range = (
        recording_of({"steps": ["marked"]}, [{"steps_found_by": how}])
        for how in ("repeated kernels", "range train_step")
    )
    assert by_kernels.steps != by_range.steps
