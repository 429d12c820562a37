"""One script, profiled four times on one machine as text and as database: both exports have to tell the same story.

They are runs of their own, so times differ from run to run; what was run does not.
"""

from __future__ import annotations

import csv
import sqlite3
from collections import Counter
from contextlib import closing
from decimal import Decimal

import numpy as np
import pytest

from tests.real import data
from tracker import readers, timeline
from tracker.compare import diff, show
from tracker.intake import ingest
from tracker.profile import DeviceKind, LaunchLevel
from tracker.readers import ReadOptions
from tracker.readers._ascend.communication import read_matrix
from tracker.readers._sqlite import opened
from tracker.readers.ascend_db.analysis import matrix_totals
from tracker.results import DiffOptions

pytestmark = pytest.mark.slow

# capture -> compute kernels of one rank
KERNELS = {"run_2024-10": 345, "run_2025-01": 187}
COLLECTIVES = 4
EXPORTS = ("text", "db")
# old versions write the times of their breakdown as microseconds in a double: at 1.7e15 these are 250 ns apart
DOUBLE_NS = 250


def folder(run, export, level="level1"):
    return data.path(f"ascend/{run}/{export}/{level}")


def output(run, export, rank, level="level1"):
    return folder(run, export, level) / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"


def capture(run, export, rank, level="level1"):
    (found,) = readers.find(folder(run, export, level) / f"rank{rank}_ascend_pt")
    return readers.read(found).captures[0]


def ingested(store, run, level="level1"):
    for export in EXPORTS:
        (result,) = ingest(store, [folder(run, export, level)], version=export, workload=run)
        assert result.ranks == (0, 1)


def plain_kernels(run, export, rank):
    """Durations in ns of the compute kernels and of the collectives, as they stand in the file."""
    if export == "text":
        with (output(run, export, rank) / "kernel_details.csv").open(newline="", encoding="utf-8") as file:
            rows = [(row["Accelerator Core"], int(Decimal(row["Duration(us)"]) * 1000)) for row in csv.DictReader(file)]
        return [ns for core, ns in rows if core != "HCCL"], [ns for core, ns in rows if core == "HCCL"]
    name = output(run, export, rank) / f"ascend_pytorch_profiler_{rank}.db"
    with closing(sqlite3.connect(f"file:{name}?mode=ro&immutable=1", uri=True)) as db:
        kernels = db.execute("SELECT endNs - startNs FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)").fetchall()
        calls = db.execute("SELECT endNs - startNs FROM COMMUNICATION_OP").fetchall()
    return [ns for (ns,) in kernels], [ns for (ns,) in calls]


@pytest.mark.parametrize("match", ["shape", "name"])
@pytest.mark.parametrize("run", KERNELS)
def test_nothing_is_added_or_removed_between_text_and_database(store, run, match):
    ingested(store, run)
    result = diff(store, "text", "db", options=DiffOptions(match=match))
    for table in ("ops", "kernels", "communication", "memory", "modules", "api"):
        frame = getattr(result, table)
        assert len(frame), table
        assert set(frame["status"]) == {"both"}, frame[frame["status"] != "both"].to_string()
    same_calls = result.kernels[result.kernels["category"] != "copy"]
    assert (same_calls["baseline_calls"] == same_calls["candidate_calls"]).all()
    assert (result.communication["baseline_calls"] == result.communication["candidate_calls"]).all()
    assert (result.communication["baseline_bytes"] == result.communication["candidate_bytes"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("run", KERNELS)
def test_memory_of_every_op_is_equal_to_the_byte_in_text_and_database(store, run):
    """Also of what CANN allocates while the queue is worked off: it belongs to the op that enqueued the task."""
    ingested(store, run)
    details = diff(store, "text", "db").memory_details
    assert set(details["component"]) == {"PTA", "GE"}
    for column in ("bytes", "calls"):
        assert (details[f"baseline_{column}"] == details[f"candidate_{column}"]).all()


def links_of(events):
    """(transport, source, target, size of packets) -> bytes and packets, over all calls."""
    links, moved = events.extras.collective_links, {}
    columns = (links.source, links.target, links.packet_bytes, links.bytes, links.packets)
    rows = zip(links.transport.tolist(), *(column.tolist() for column in columns), strict=True)
    for transport, source, target, packet, size, packets in rows:
        key = events.strings[transport], source, target, packet
        known = moved.get(key, (0, 0))
        moved[key] = known[0] + size, known[1] + packets
    return moved


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("run", KERNELS)
def test_what_moved_over_every_link_is_equal_in_text_and_database(run, rank):
    """By the tasks of the calls and by the packets of each transport; of the matrix only the totals count."""
    text, database = (links_of(capture(run, export, rank).events) for export in EXPORTS)
    assert text == database
    assert any(source >= 0 for _, source, _, _ in text)
    assert any(packet >= 0 for *_, packet in text)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("run", KERNELS)
def test_the_matrix_alone_gives_the_same_links_in_text_and_database(run, rank):
    folders = [output(run, export, rank) for export in EXPORTS]
    text, _ = read_matrix(folders[0] / "communication_matrix.json", ReadOptions())
    with opened(folders[1] / "analysis.db") as db:
        database = matrix_totals(db)

    def said(totals):
        return Counter((one.step, one.kind, one.link.transport, one.link.source, one.link.target) for one in totals)

    assert said(text) == said(database)
    assert sum(one.link.bytes for one in text) == sum(one.link.bytes for one in database) > 0


@pytest.mark.parametrize("run", KERNELS)
def test_copies_of_synchronous_calls_are_in_the_text_alone(run):
    """`MemcopyAsync` of the old text; TASK of the database of that time has no row for them."""
    counts = [(capture(run, export, 0).events.device.kind == DeviceKind.COPY).sum() for export in EXPORTS]
    assert counts == ([17 + 7, 17] if run == "run_2024-10" else [24, 24])


@pytest.mark.parametrize("export", EXPORTS)
def test_copies_taken_out_of_the_queue_belong_to_the_op_that_put_them_there(export):
    events = capture("run_2025-01", export, 0).events
    flow = events.launches.correlation[events.launches.level == LaunchLevel.FLOW]
    assert np.isin(events.device.correlation, flow).all()


@pytest.mark.slow
@pytest.mark.parametrize("export", EXPORTS)
def test_captures_with_equal_files_beside_them_are_not_taken_for_one_another(store, export):
    """All captures of a job write the same profiler_metadata.json."""
    folders = [folder("run_2025-01", export, level) for level in ("level0", "level1")]
    for version, one in enumerate(folders):
        (result,) = ingest(store, [one], version=str(version), workload="w")
        assert result.created
    (again,) = ingest(store, [folders[1]], version="1", workload="w")
    assert again.already


@pytest.mark.slow
@pytest.mark.parametrize("run", KERNELS)
def test_compute_totals_are_within_the_noise_of_one_machine(store, run):
    ingested(store, run)
    overall = diff(store, "text", "db").overall.set_index("metric")
    assert abs(overall.loc["compute_ns", "diff"]) < 0.025
    assert abs(overall.loc["operator_ns", "diff"]) < 0.025
    count = overall.loc["kernel_count"]
    assert count["baseline_value"] == count["candidate_value"] == KERNELS[run] + COLLECTIVES


@pytest.mark.parametrize("run", KERNELS)
@pytest.mark.parametrize("export", EXPORTS)
def test_show_counts_and_adds_up_kernels_and_collectives(store, run, export):
    ingested(store, run)
    overall = show(store, export).overall
    for rank in (0, 1):
        kernels, calls = plain_kernels(run, export, rank)
        assert (len(kernels), len(calls)) == (KERNELS[run], COLLECTIVES)
        shown = overall[overall["rank"] == rank].iloc[0]
        assert shown["kernel_count"] == len(kernels) + len(calls)
        assert shown["kernel_total_ns"] == sum(kernels) + sum(calls)
        assert shown["compute_total_ns"] == sum(kernels)
        assert shown["communication_total_ns"] == sum(calls)


@pytest.mark.parametrize("level", ["level0", "level1"])
@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("run", KERNELS)
def test_the_breakdown_explains_that_of_the_profiler(run, export, level):
    for rank in (0, 1):
        read = capture(run, export, rank, level)
        events = read.events
        device = events.device
        (step,) = timeline.build(read).rows.steps
        ours, theirs = step.breakdown, said_by_the_profiler(events)
        parts = ours.compute_ns + ours.exposed_communication_ns + ours.exposed_copy_ns + ours.idle_ns
        # the step is a window of the device
        assert parts == ours.duration_ns
        # Text: the profiler adds up durations that trace_view.json rounds to the ns, one by one.
        rounded = len(device) if export == "text" else 0
        assert abs(ours.compute_ns - theirs["Computing"]) <= rounded
        # The profiler's step goes from the first to the last kernel or collective; a copy before or after is left out.
        work = device.kind != DeviceKind.COPY
        stage = int(device.end_ns[work].max() - device.start_ns[work].min())
        assert abs(stage - theirs["Stage"]) <= (DOUBLE_NS if export == "text" else 0)
        assert ours.e2e_ns >= stage
        # Databases of 2024: the profiler takes the tasks of a collective as its time, here it is the collective itself,
        # from its first task to its last. What it waits in between is communication too.
        between = waits_inside_collectives(run, export, level, events)
        if between is None:
            assert ours.communication_ns > theirs["Communication"]
            continue
        assert abs(ours.communication_ns - between - theirs["Communication"]) <= rounded
        hidden = ours.overlap_ns - theirs["Overlapped"]
        assert -rounded <= hidden <= between
        # What is left of its step is free for the profiler, copies too: it has no word for exposed ones.
        free = stage - ours.compute_ns - (ours.exposed_communication_ns - (between - hidden))
        assert abs(free - theirs["Free"]) <= rounded + (DOUBLE_NS if export == "text" else 0)


def said_by_the_profiler(events):
    """The only row of step_trace_time, in ns."""
    counters, texts = events.extras.counters, events.strings
    return {
        texts[attribute]: round(value * 1000)
        for source, attribute, value in zip(counters.source, counters.attribute, counters.value, strict=True)
        if texts[source] == "step_trace_time"
    }


def waits_inside_collectives(run, export, level, events):
    """The time in collectives in which none of their tasks runs, as far as the profiler leaves it out, in ns.

    None where the capture does not tell the tasks (Level0).
    """
    if (run, export) != ("run_2024-10", "db"):
        return 0
    tasks = events.extras.collective_tasks
    if not len(tasks):
        assert level == "level0"
        return None
    order = np.argsort(tasks.start_ns)
    starts, ends = tasks.start_ns[order], tasks.end_ns[order]
    reached = np.maximum.accumulate(ends)
    busy = int((ends[0] - starts[0]) + np.maximum(ends[1:] - np.maximum(starts[1:], reached[:-1]), 0).sum())
    device = events.device
    calls = device.kind == DeviceKind.COMMUNICATION
    first = np.argsort(device.start_ns[calls])
    call_ends = device.end_ns[calls][first]
    call_starts = np.maximum(device.start_ns[calls][first], np.append(0, np.maximum.accumulate(call_ends)[:-1]))
    return int(np.maximum(call_ends - call_starts, 0).sum()) - busy
