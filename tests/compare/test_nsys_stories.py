"""Versions of a training that Nsight Systems recorded: what its report says of itself decides what is judged."""

from __future__ import annotations

from tests.readers.nsys_databases import UTC, T, call, kernel, one_step, pid, span, write
from tracker import intake
from tracker.compare import diff
from tracker.compare.gates import gate_of_diff

US = 1000


def training(names, *, number, step_us=430, counted=None, process=7):
    """Steps of about 430 us, each with kernels of 200, 100 and 50 us. `counted`: how many events the report states."""
    kernel_us = {"gemm": 200, "act": 100, "norm": 50}
    calls, kernels, ranges, correlation = [], [], [], 0
    at = 1_000_000 * US
    for place, name in enumerate(names):
        # runs of one version differ by up to 2 us, steps by up to 6
        length = (step_us + number + 3 * (place % 3)) * US
        ranges.append(span(name, at, at + length, process=process))
        begin = at + 20 * US
        for kernel_name, lasts_us in kernel_us.items():
            correlation += 1
            calls.append(call("cudaLaunchKernel_v7000", at + correlation % 10 * US, at + 10 * US, correlation, process))
            kernels.append(kernel(kernel_name, begin, begin + lasts_us * US, correlation, process))
            begin += (lasts_us + 2) * US
        at += length
    events = [{"text": f"Number of CUDA events collected: \t{counted}.", "globalPid": pid(process)}] if counted else []
    return calls, kernels, ranges, events


def write_run(folder, number, *parts, version):
    tables = one_step()
    tables["TARGET_INFO_SESSION_START_TIME"] = [{"utcEpochNs": UTC + number * 10**12 + version * 10**14}]
    columns = [[row for part in parts for row in part[place]] for place in range(4)]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"], tables["CUPTI_ACTIVITY_KIND_KERNEL"], tables["NVTX_EVENTS"], events = columns
    del tables["CUPTI_ACTIVITY_KIND_MEMCPY"], tables["CUPTI_ACTIVITY_KIND_MEMSET"]
    if events:
        tables["DIAGNOSTIC_EVENT"] = events
    return write(folder / f"run{number}.sqlite", tables)


def diff_of(store, v1, v2):
    for version, paths in (("v1", v1), ("v2", v2)):
        intake.ingest(store, paths, version=version, workload="w")
    return diff(store, "v1", "v2")


def without(name, part):
    """The same records without the launches and kernels of this name."""
    calls, kernels, ranges, events = part
    lost = {row["correlationId"] for row in kernels if row["demangledName"] == name}
    kept = [[row for row in rows if row["correlationId"] not in lost] for rows in (calls, kernels)]
    return [*kept, ranges, events]


STEPS = [f"step {step}" for step in range(6)]


def test_kernels_that_the_report_counted_and_lost_win_nothing(store, tmp_path):
    """36 events: 6 steps with 3 launches and 3 kernels each. Without those of act there are 24."""
    whole = [write_run(tmp_path / "v1", n, training(STEPS, number=n, counted=36), version=1) for n in range(3)]
    lost = [
        write_run(tmp_path / "v2", n, without("act", training(STEPS, number=n, counted=36)), version=2)
        for n in range(3)
    ]
    found = diff_of(store, whole, lost)
    assert found.explanation.remarks[0] == (
        "v2: the report collected 36 CUDA events, 24 are in the export; not judged: work of the device, calls of the "
        "runtime."
    )
    assert set(found.tables["overall"].listed("verdict")) == {None}
    assert gate_of_diff(found).code == 4


def test_neighbour_on_the_device_makes_no_step_longer(store, tmp_path):
    alone = [write_run(tmp_path / "v1", n, training(STEPS, number=n), version=1) for n in range(3)]
    calls, kernels, _, events = training(STEPS, number=0, step_us=3000, process=9)
    other = [{**row, "demangledName": T("other_k"), "shortName": T("other_k")} for row in kernels]
    beside = [
        write_run(tmp_path / "v2", n, training(STEPS, number=n), (calls, other, [], events), version=2)
        for n in range(3)
    ]
    found = diff_of(store, alone, beside)
    assert [side.ranks for side in (found.baseline, found.candidate)] == [1, 1]
    assert found.explanation.baseline_ns == found.explanation.candidate_ns
    assert found.explanation.verdict == "UNCHANGED"


def test_epochs_are_as_fast_as_one_of_them(store, tmp_path):
    """Four iterations against eight times four, whose longest ones are no other than the rest."""
    names = [f"iteration {number}" for number in range(4)]
    one = [write_run(tmp_path / "v1", n, training(names, number=n), version=1) for n in range(3)]
    eight = [write_run(tmp_path / "v2", n, training(names * 8, number=n), version=2) for n in range(3)]
    found = diff_of(store, one, eight)
    assert [side.steps for side in (found.baseline, found.candidate)] == [4, 32]
    assert found.explanation.verdict == "UNCHANGED"
