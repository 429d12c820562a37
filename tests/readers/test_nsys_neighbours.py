"""Processes of an Nsight Systems report that are no ranks of the job."""

from __future__ import annotations

import pytest

from tests.readers.nsys_captures import read
from tests.readers.nsys_databases import call, kernel, one_step, span
from tracker.timeline import build

US = 1000


def process(number, names, *, steps=4, device=0, marks=True, every_us=300):
    """Steps of 300 us, each with a launch and a kernel of 90 us per name; the numbers of its rows are its own."""
    calls, kernels, ranges = [], [], []
    for step in range(steps):
        start = every_us * US * step
        if marks:
            ranges.append(span(f"step {step}", start, start + every_us * US, process=number))
        for place, name in enumerate(names):
            begin, identity = start + 100 * US * place, 1 + step * len(names) + place
            calls.append(call("cudaLaunchKernel_v7000", begin, begin + 5 * US, identity, number))
            kernels.append(kernel(name, begin + 6 * US, begin + 96 * US, identity, number, device))
    return calls, kernels, ranges


def report(*processes, gpus=1):
    tables = {name: rows for name, rows in one_step().items() if not name.startswith(("CUPTI_ACTIVITY", "NVTX"))}
    tables["TARGET_INFO_GPU"] = [
        {"id": number, "name": "NVIDIA H100 80GB HBM3", "cuDevice": number} for number in range(gpus)
    ]
    parts = [[row for one in processes for row in one[place]] for place in range(3)]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"], tables["CUPTI_ACTIVITY_KIND_KERNEL"], ranges = parts
    return {**tables, "NVTX_EVENTS": ranges} if ranges else tables


def captures_of(tmp_path, tables):
    """Kernel names of each capture, and what is said of processes."""
    profile = read(tmp_path, tables)
    names = [
        sorted({capture.events.strings[code] for code in capture.events.device.name.tolist()})
        for capture in profile.captures
    ]
    return names, [text for text in profile.warnings if text.startswith("process ")]


TRAINING = ("gemm", "act")
OTHER = ("other",)


def test_process_without_steps_on_the_same_device_is_no_rank(tmp_path):
    profile = report(process(7, TRAINING), process(9, OTHER, marks=False))
    names, said = captures_of(tmp_path, profile)
    assert names == [["act", "gemm"]]
    assert said == [
        "process 9 is no rank: it marks no step, where process 7 marks 4 on the same device; its 4 kernels (360.00 us) "
        "are in no step"
    ]


def test_step_is_the_same_with_and_without_a_neighbour(tmp_path):
    alone = build(read(tmp_path, report(process(7, TRAINING))).captures[0])
    tables = report(process(7, TRAINING), process(9, OTHER, marks=False))
    (beside,) = (build(capture) for capture in read(tmp_path, tables, name="b.sqlite").captures)
    assert beside.rows.steps == alone.rows.steps
    assert beside.rows.overall == alone.rows.overall


def test_neighbour_with_most_of_the_kernel_time_is_no_rank(tmp_path):
    _, said = captures_of(tmp_path, report(process(5, OTHER, steps=90, marks=False), process(7, TRAINING)))
    assert said == [
        "process 5 is no rank: it marks no step, where process 7 marks 4 on the same device; its 90 kernels (8.10 ms) "
        "are in no step"
    ]


def test_process_without_steps_on_a_device_of_its_own_is_left_out(tmp_path):
    """It may be a rank that marks nothing: that it is none is not said."""
    tables = report(process(7, TRAINING), process(8, TRAINING, device=1, marks=False), gpus=2)
    names, said = captures_of(tmp_path, tables)
    assert names == [["act", "gemm"]]
    assert said == [
        "process 8 is left out: it marks no step, where process 7 marks 4; its 8 kernels (720.00 us) are in no step"
    ]


def test_process_that_runs_other_kernels_on_the_device_is_no_rank(tmp_path):
    names, said = captures_of(tmp_path, report(process(7, TRAINING), process(9, OTHER)))
    assert names == [["act", "gemm"]]
    assert said == [
        "process 9 is no rank: it shares its device with process 7 and runs other kernels; its 4 kernels (360.00 us) "
        "are in no step"
    ]


@pytest.mark.parametrize("marks", [True, False])
def test_ranks_that_share_a_device_run_the_same_kernels(tmp_path, marks):
    names, said = captures_of(tmp_path, report(*(process(number, TRAINING, marks=marks) for number in (7, 8))))
    assert (names, said) == ([["act", "gemm"]] * 2, [])


def test_ranks_of_other_kernels_on_other_devices_stay(tmp_path):
    tables = report(process(7, TRAINING), process(8, OTHER, device=1), gpus=2)
    assert captures_of(tmp_path, tables) == ([["act", "gemm"], ["other"]], [])


def test_ranks_that_each_see_one_device_share_none(tmp_path):
    """Both call their device number 0; the report knows which one it is."""
    tables = report(process(7, TRAINING), process(8, OTHER), gpus=2)
    tables["TARGET_INFO_CUDA_DEVICE"] = [{"gpuId": number - 7, "cudaId": 0, "pid": number} for number in (7, 8)]
    assert captures_of(tmp_path, tables) == ([["act", "gemm"], ["other"]], [])


def test_steps_are_found_by_kernels_beside_a_neighbour(tmp_path):
    tables = report(process(7, TRAINING, marks=False), process(9, OTHER, steps=3, marks=False))
    profile = read(tmp_path, tables)
    assert [capture.events.markers.step.tolist() for capture in profile.captures] == [[1, 2, 3, 4]]


def test_rank_of_the_file_name_is_that_of_the_training(tmp_path):
    tables = report(process(5, OTHER, marks=False), process(7, TRAINING))
    (capture,) = read(tmp_path, tables, name="report_rank3.sqlite").captures
    assert (capture.rank, len(capture.events.markers)) == (3, 4)
