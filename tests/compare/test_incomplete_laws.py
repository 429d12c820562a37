"""A capture with one record that was lost or bent makes no verdict without a line, from the events to the diff."""

from __future__ import annotations

import uuid

import pandas as pd
import pytest
from msgspec.structs import replace

from tests.factories import H100, record
from tests.timeline.made_events import Made
from tests.timeline.test_checks import US, training
from tracker import reports
from tracker.compare import diff, show
from tracker.compare.advised import advise
from tracker.compare.gates import gate_of_diff
from tracker.profile import DeviceEvents, Source
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.results import Diff
from tracker.store import Store, save_run
from tracker.timeline import build

YEAR_NS = 365 * 24 * 3600 * 10**9
CHANGES = {"REGRESSED", "IMPROVED", "ADDED", "REMOVED", "SUSPECT"}
MORNING_NS = 1_700_000_000 * 10**9


def bend(made: Made, row: int, fault: str) -> None:
    """Change one record of the device as a profiler does that runs out of buffers, or counts wrongly."""
    events = made.rows[DeviceEvents]
    if fault == "lost":
        del events[row]
    elif fault == "no time":
        events[row] |= {"start_ns": 0, "end_ns": 0}
    elif fault == "a year away":
        events[row] |= {name: events[row][name] + YEAR_NS for name in ("start_ns", "end_ns")}
    elif fault == "too long":
        # it ends far behind the kernels that its stream runs after it
        events[row]["end_ns"] += 400 * US
    elif fault == "before its launch":
        events[row] |= {name: events[row][name] - 200 * US for name in ("start_ns", "end_ns")}
    elif fault == "twice":
        events.append(dict(events[row]))


def save(store: Store, version: str, place: int, made: Made) -> None:
    started_ns = MORNING_NS + place * 10**12
    source = Source(f"{version}-{place}.json", 1, uuid.uuid4().bytes)
    capture = build(replace(made.capture(), device=H100, sources=(source,), started_at_ns=started_ns))
    save_run(store, record(version, started_at_ns=started_ns), [capture], formats=["torch_profiler"])


FAULTS = ("lost", "no time", "a year away", "too long", "before its launch", "twice")
# the last event of a stream may take as long as it states
CASES = [(row, fault) for row in range(6) for fault in FAULTS if (row, fault) != (5, "too long")]


def compare_with_bent(store: Store, row: int, fault: str) -> Diff:
    """Three runs of 3 steps, then three more of the same code, each with the same fault in one of its 6 kernels."""
    for place in range(3):
        save(store, "v1", place, training(offset_ns=MORNING_NS))
        bent = training(offset_ns=MORNING_NS)
        bend(bent, row, fault)
        save(store, "v2", place + 3, bent)
    update(store, tracks_of(store))
    return diff(store, "v1", "v2")


@pytest.mark.parametrize(("row", "fault"), CASES)
def test_bent_record_makes_no_verdict_without_a_line(memory_store, row, fault):
    found = compare_with_bent(memory_store, row, fault)
    for name, table in found.tables.items():
        if "verdict" in table.arrays:
            assert not CHANGES & set(table.listed("verdict")), name
    assert not len(findings(memory_store).tables["findings"])
    assert any("v2: " in remark for remark in found.explanation.remarks), "a line under the headline"
    assert gate_of_diff(found).code in (0, 4)


def test_mean_step_of_windows_cut_by_a_bent_record_is_not_judged(memory_store):
    """A kernel that ends 400 us too late moves the first window: 116, 84 and 100 us in place of 100. The mean step
    leaves out the first window, as one in which a queue fills: 92 us.
    """
    found = compare_with_bent(memory_store, 1, "too long")
    mean = found.overall.set_index("metric").loc["mean_step_ns"]
    assert (mean["baseline_value"], mean["candidate_value"]) == (100 * US, 92 * US)
    assert pd.isna(mean["verdict"])
    assert mean["reason"].startswith("incomplete: ")


MAKERS = ("cudaLaunchKernel", "hipGraphLaunch", "urEnqueueKernelLaunch", "musaLaunchKernel")
DIAGNOSES = ("IMPROVED", "faster", "Idle:", "HFU", "bound:", " H1 ", " H2 ", " H3 ", " K")


def decoding(name: str, lost: tuple[int, ...] = (), steps: int = 4) -> Made:
    """Steps of 100 us in which one call launches 40 us of work, and the host waits for it. `lost`: steps without."""
    made = Made()
    for step in range(steps):
        start = MORNING_NS + 100 * US * step
        made.step(step, start, start + 100 * US)
        made.op("aten::mm", start + 5 * US, start + 12 * US)
        made.launch(start + 6 * US, step + 1, name=name)
        wait = name.partition("Launch")[0].removesuffix("Graph").removesuffix("EnqueueKernel")
        made.launch(start + 20 * US, 100 + step, end=start + 55 * US, name=f"{wait}StreamSynchronize")
        if step not in lost:
            made.kernel("gemm", start + 10 * US, start + 50 * US, step + 1)
    return made


@pytest.mark.parametrize("lost", [(1,), (0, 2), (1, 2)])
@pytest.mark.parametrize("name", MAKERS)
def test_kernels_taken_away_make_nothing_faster_and_no_diagnosis(memory_store, name, lost):
    """Whoever made the launch, and whether of a kernel or of a graph, as long as the launches stay."""
    for place in range(3):
        save(memory_store, "v1", place, decoding(name))
        save(memory_store, "v2", place + 3, decoding(name, lost))
    update(memory_store, tracks_of(memory_store))
    shown = (diff(memory_store, "v1", "v2"), show(memory_store, "v2"), advise(memory_store, "v2"))
    for found in shown:
        text = reports.render(found, "text", width=200)
        assert "launches have no kernel: the profiler lost them" in text
        assert [word for word in DIAGNOSES if word in text] == []


def test_steps_taken_away_change_no_sentence_on_those_that_stay(memory_store):
    """Of six equal steps the last two are cut off: the same step, parts, operators and bottleneck."""
    for number, steps in enumerate((6, 4)):
        save(memory_store, f"v{number}", number, decoding("cudaLaunchKernel", steps=steps))
    texts = [reports.render(show(memory_store, f"v{number}"), "text", width=200).splitlines() for number in range(2)]
    # the title counts the steps, and the last line says when the run began
    of_six, of_four = (lines[1 : lines.index("Next:") - 2] for lines in texts)
    assert of_six == of_four
