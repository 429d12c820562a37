"""Of a trace that ends in the middle of its events only the steps that are wholly in the file are steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.readers.traces import kernel, launch, op, step
from tracker import timeline
from tracker.doctor import examine
from tracker.intake import IngestOptions, ingest
from tracker.profile import Capture
from tracker.readers import Found, ReadOptions, read

STEPS = (1, 2, 3)
BEGINS = {number: 1_000 * number for number in STEPS}


def written(folder: Path, *, on_device: bool, until: str) -> Path:
    """Three steps of 900 us, each an op of 800 us with a launch and a kernel; the file ends with the event `until`.

    As PyTorch writes them: all steps and ops, then all launches and kernels, those in no order of time.
    """
    host = [event for number, at in BEGINS.items() for event in (step(number, at, 900), op(f"mm{number}", at, 800))]
    device = [
        event
        for number, at in BEGINS.items()
        for event in (
            launch(number, at + 10, name=f"launch{number}"),
            kernel(f"gemm{number}", at + 20, 500, correlation=number),
        )
    ]
    properties = [{"id": 0, "name": "NVIDIA H100"}] if on_device else []
    whole = json.dumps({"deviceProperties": properties, "traceEvents": host + (device if on_device else [])})
    path = folder / "a.pt.trace.json"
    start = whole.index(f'"{until}"') if until else 0
    path.write_text(whole[: whole.index("}}", start) + 2] if until else whole[:-1])
    return path


def captured(path: Path) -> Capture:
    (capture,) = read(Found(path, "torch_profiler"), ReadOptions(allow_partial=True)).captures
    return timeline.build(capture)


@pytest.mark.parametrize(
    ("on_device", "until", "steps", "left_out"),
    [
        (False, "mm3", [1, 2], "step 3"),
        (False, "ProfilerStep#2", [], "steps 1-2"),  # that step 1 is whole, only an op behind it tells
        (False, "mm1", [], "step 1"),
        (True, "mm3", [], "steps 1-3"),  # neither launches nor kernels of any step
        (True, "gemm3", [], "steps 1-3"),  # kernels stand in no order: another one of step 1 may have followed
    ],
)
def test_a_step_that_is_not_wholly_in_the_file_is_none(tmp_path, on_device, until, steps, left_out):
    capture = captured(written(tmp_path, on_device=on_device, until=until))
    assert capture.rows is not None
    assert [(row.step, row.breakdown.duration_ns) for row in capture.rows.steps] == [(n, 900_000) for n in steps]
    assert capture.quality == "partial"
    assert capture.quality_reason.endswith(f"; left out, as not wholly in the file: {left_out}")


def test_where_only_the_end_behind_the_events_is_missing_all_steps_are_there(tmp_path):
    capture = captured(written(tmp_path, on_device=True, until=""))
    assert capture.rows is not None
    assert [row.step for row in capture.rows.steps] == [1, 2, 3]
    assert (capture.quality, "left out" in capture.quality_reason) == ("partial", False)


def test_a_trace_without_any_whole_step_is_a_run_without_steps(tmp_path, store):
    path = written(tmp_path, on_device=True, until="mm3")
    options = IngestOptions(allow_partial=True)
    why = {lack.what: lack.why for lack in examine([path], options).captures[0].lacks}
    assert why["steps"] == "the file ends before any step is surely whole"
    (result,) = ingest(store, [path], version="v1", workload="gpt", options=options)
    assert (result.created, result.steps) == (True, 0)
    assert "left out, as not wholly in the file: steps 1-3" in result.warnings[0]
