"""Ascend databases of real captures: against plain SQL to the ns, and against the text captures of the same script."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections import Counter
from contextlib import closing
from decimal import Decimal
from functools import cache

import numpy as np
import pytest

from tests.real import data
from tracker.hooks.machine import NUMBERS, STATES
from tracker.profile import MISSING, DeviceKind, LaunchLevel
from tracker.readers import ascend_db
from tracker.readers._ascend.metadata import metadata_of
from tracker.readers._ascend.shapes import shapes_text
from tracker.readers._sqlite import opened
from tracker.readers.ascend_db.analysis import communication_ops, matrix_totals, steps_of
from tracker.timeline import rows_of
from tracker.timeline.links import launches_of

RUNS = {"run_2024-10": 345, "run_2025-01": 187}
"""Compute kernels per rank; each rank has 4 collectives."""

CAPTURES = [(run, level, rank) for run in RUNS for level in (0, 1) for rank in (0, 1)]
IDS = [f"{run}-level{level}-rank{rank}" for run, level, rank in CAPTURES]
every_capture = pytest.mark.parametrize(("run", "level", "rank"), CAPTURES, ids=IDS)
NO_WORK_OF_A_COLLECTIVE = "globalTaskId NOT IN (SELECT globalTaskId FROM COMMUNICATION_TASK_INFO)"


def folder(run, level, rank, kind="db"):
    return data.path(f"ascend/{run}/{kind}/level{level}/rank{rank}_ascend_pt")


@cache
def capture(run, level, rank):
    (found,) = ascend_db.read(folder(run, level, rank)).captures
    return found


@every_capture
def test_clock_of_the_cores_is_what_the_capture_measured(run, level, rank):
    """A 910A writes no clock, and a 910B one that it measured before all kernels only at Level1."""
    expected = {"device_clock_mhz": "1800"} if (run, level) == ("run_2025-01", 1) else {}
    facts = capture(run, level, rank).facts
    assert {name: text for name, text in facts.items() if name in STATES + NUMBERS} == expected


def ask(run, level, rank, question, name="ascend_pytorch_profiler_{rank}.db"):
    path = folder(run, level, rank) / "ASCEND_PROFILER_OUTPUT" / name.format(rank=rank)
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        return db.execute(question).fetchall()


def rows_of_text(run, level, rank):
    path = folder(run, level, rank, "text") / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_kind(run, level, rank, kind):
    device = capture(run, level, rank).events.device
    rows = device.kind == kind
    return int(rows.sum()), int((device.end_ns[rows] - device.start_ns[rows]).sum())


@every_capture
def test_kernels_and_collectives_equal_plain_sql_to_the_ns(run, level, rank):
    kernels = "SELECT COUNT(*), SUM(t.endNs - t.startNs) FROM COMPUTE_TASK_INFO JOIN TASK AS t USING (globalTaskId)"
    calls = "SELECT COUNT(*), SUM(endNs - startNs) FROM COMMUNICATION_OP"
    assert of_kind(run, level, rank, DeviceKind.KERNEL) == ask(run, level, rank, kernels)[0]
    assert of_kind(run, level, rank, DeviceKind.COMMUNICATION) == ask(run, level, rank, calls)[0]
    assert of_kind(run, level, rank, DeviceKind.KERNEL)[0] == RUNS[run]
    assert of_kind(run, level, rank, DeviceKind.COMMUNICATION)[0] == 4


@every_capture
def test_copies_equal_plain_sql_to_the_ns(run, level, rank):
    # the 910A at Level0 keeps the copies of a collective's other streams out of COMMUNICATION_TASK_INFO
    question = f"""
        SELECT COUNT(*), SUM(endNs - startNs) FROM TASK AS t JOIN STRING_IDS AS s ON s.id = t.taskType
        WHERE s.value = 'MEMCPY_ASYNC' AND {NO_WORK_OF_A_COLLECTIVE}
        AND t.streamId IN (SELECT streamId FROM COMPUTE_TASK_INFO JOIN TASK USING (globalTaskId))
    """
    assert of_kind(run, level, rank, DeviceKind.COPY) == ask(run, level, rank, question)[0]
    assert of_kind(run, level, rank, DeviceKind.COPY)[0] == {"run_2024-10": 17, "run_2025-01": 24}[run]


@every_capture
def test_host_rows_equal_plain_sql_to_the_ns(run, level, rank):
    events = capture(run, level, rank).events
    question = """
        SELECT e.name, COUNT(*), SUM(CAST(endNs AS INTEGER) - CAST(startNs AS INTEGER))
        FROM PYTORCH_API AS a JOIN ENUM_API_TYPE AS e ON e.id = a.type JOIN STRING_IDS AS s ON s.id = a.name
        WHERE s.value NOT LIKE 'ProfilerStep#%' GROUP BY e.name
    """
    expected = {word: tuple(sums) for word, *sums in ask(run, level, rank, question)}
    for word, table in (("op", events.ops), ("trace", events.frames)):
        assert (len(table), int((table.end_ns - table.start_ns).sum())) == expected[word]
    levels = events.launches.level
    queue = levels == LaunchLevel.QUEUE
    duration = events.launches.end_ns - events.launches.start_ns
    assert (int(queue.sum()), int(duration[queue].sum())) == expected["queue"]
    calls = ~queue & (levels != LaunchLevel.FLOW)
    total = int(duration[calls].sum())
    assert (int(calls.sum()), total) == ask(run, level, rank, "SELECT COUNT(*), SUM(endNs - startNs) FROM CANN_API")[0]
    step = ask(run, level, rank, "SELECT id, startNs, endNs FROM STEP_TIME")[0]
    markers = events.markers
    assert (markers.step.tolist(), len(markers)) == ([step[0]], 1)
    assert abs(int(markers.start_ns[0]) - step[1]) < 1000


@every_capture
def test_memory_equals_plain_sql_to_the_byte(run, level, rank):
    events = capture(run, level, rank).events
    memory, points = events.allocations, events.extras.memory_points
    question = "SELECT SUM(size), COUNT(*), SUM(IIF(releaseTime IS NULL, 0, size)), COUNT(releaseTime) FROM OP_MEMORY"
    gets, frees = memory.bytes[memory.bytes > 0], memory.bytes[memory.bytes < 0]
    assert (gets.sum(), len(gets), -frees.sum(), len(frees)) == ask(run, level, rank, question)[0]
    question = "SELECT COUNT(*), SUM(totalAllocated), SUM(totalReserved) FROM MEMORY_RECORD"
    found = (len(points), int(points.allocated_bytes.sum()), int(points.reserved_bytes.sum()))
    assert found == ask(run, level, rank, question)[0]
    # GE's allocator keeps a record of its own
    graph = memory.component == events.strings.code("GE")
    question = "SELECT COUNT(*) FROM NPU_OP_MEM"
    assert int(graph.sum()) == ask(run, level, rank, question)[0][0]
    assert max(memory.total_reserved_bytes[~graph]) == max(
        row[0] for row in ask(run, level, rank, "SELECT totalReserved FROM MEMORY_RECORD JOIN STRING_IDS AS s"
                              " ON s.id = component WHERE s.value = 'PTA'")
    )  # fmt: skip


@every_capture
def test_measurements_equal_plain_sql(run, level, rank):
    events = capture(run, level, rank).events
    metrics = events.extras.kernel_metrics
    if not ask(run, level, rank, "SELECT 1 FROM sqlite_master WHERE name = 'TASK_PMU_INFO'"):
        assert len(metrics) == 0
        return
    question = """
        SELECT s.value, COUNT(*), SUM(p.value) FROM TASK_PMU_INFO AS p JOIN STRING_IDS AS s ON s.id = p.name
        JOIN COMPUTE_TASK_INFO USING (globalTaskId) GROUP BY 1
    """
    for name, count, total in ask(run, level, rank, question):
        spelled = {"aic_total_time": "aicore_time", "aiv_total_time": "aiv_time"}.get(name, name)
        code = events.strings.code(f"{spelled}(us)" if name.endswith("_time") else spelled)
        values = metrics.value[metrics.metric == code]
        assert len(values) == count, name
        assert values.sum() == pytest.approx(total / (1000 if name.endswith("_time") else 1)), name


@every_capture
def test_all_kernels_and_collectives_have_the_op_that_launched_them(run, level, rank):
    events = capture(run, level, rank).events
    launch = launches_of(events)
    work = events.device.kind != DeviceKind.COPY
    assert (launch[work] >= 0).all()
    launches = events.launches
    assert set(launches.level[launch[work]].tolist()) == {LaunchLevel.FLOW}
    with_ops = np.unique(events.ops.thread)
    assert np.isin(launches.thread[launch[work]], with_ops).all()
    if run == "run_2025-01":
        # copies go through the task queue: the thread that makes them runs no op
        assert np.isin(launches.thread[launch[~work]], with_ops).mean() > 0.7


@every_capture
def test_kernel_names_and_counts_equal_the_text_capture(run, level, rank):
    events = capture(run, level, rank).events
    rows = rows_of_text(run, level, rank)
    kernels = [row for row in rows if not row["Name"].startswith("hcom_")]
    device = events.device
    assert len(kernels) == RUNS[run]
    assert len(rows) - len(kernels) == int((device.kind == DeviceKind.COMMUNICATION).sum())
    if level == 0:
        return
    mine = np.flatnonzero(device.kind == DeviceKind.KERNEL)
    found = Counter(
        (
            events.strings[int(device.type[i])],
            events.strings[int(device.core_type[i])],
            events.strings[int(device.input_shapes[i])],
            int(events.extras.block_num[i]),
        )
        for i in mine
    )
    expected = Counter((row["Type"], row["Accelerator Core"], shapes_text(row["Input Shapes"]), int(row["Block Dim"]))
                       for row in kernels)  # fmt: skip
    assert found == expected


@every_capture
def test_compute_total_is_near_that_of_the_text_capture(run, level, rank):
    expected = sum(Decimal(row["Duration(us)"].strip()) for row in rows_of_text(run, level, rank)
                   if not row["Name"].startswith("hcom_")) * 1000  # fmt: skip
    assert of_kind(run, level, rank, DeviceKind.KERNEL)[1] == pytest.approx(float(expected), rel=0.025)


@every_capture
def test_shapes_and_types_of_ops_equal_those_of_the_text_trace(run, level, rank):
    path = folder(run, level, rank, "text") / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    trace = json.loads(path.read_text(encoding="utf-8"))
    args = [(e["name"], e["args"]) for e in trace if e.get("cat") == "cpu_op" and e["args"].get("Input Dims")]
    expected = Counter((name, shapes_text(said["Input Dims"])) for name, said in args if name.startswith("aten::mm"))
    events = capture(run, level, rank).events
    texts = events.strings
    found = Counter((texts[int(name)], texts[int(shapes)]) for name, shapes in
                    zip(events.ops.name, events.ops.input_shapes, strict=True)
                    if texts[int(name)].startswith("aten::mm"))  # fmt: skip
    assert found == expected
    assert expected


@every_capture
def test_who_ran_is_read(run, level, rank):
    found = capture(run, level, rank)
    model = {"run_2024-10": "Ascend910A", "run_2025-01": "Ascend910B"}[run]
    assert (found.rank, found.device.vendor, found.device.model) == (rank, "Huawei", model)
    assert found.settings["profiler_level"] == f"Level{level}"
    assert found.quality == "ok"
    assert len(found.sources) == 3


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("rank", [0, 1])
def test_analysis_of_a_database_is_on_its_collectives(run, rank):
    events = capture(run, 1, rank).events
    times, links = events.extras.collective_times, events.extras.collective_links
    question = "SELECT SUM(wait_time), SUM(transit_time), SUM(idle_time) FROM CommAnalyzerTime"
    sums = ask(run, 1, rank, question, "analysis.db")[0]
    found = [int(column.sum()) / 1e6 for column in (times.wait_ns, times.transit_ns, times.idle_ns)]
    assert found == pytest.approx(sums, abs=4e-6)
    assert times.collective.tolist() == [0, 1, 2, 3]
    # waiting, moving and idling make up the call
    calls = events.device.kind == DeviceKind.COMMUNICATION
    elapse = (events.device.end_ns - events.device.start_ns)[calls]
    assert (times.wait_ns + times.transit_ns + times.idle_ns).tolist() == pytest.approx(elapse.tolist(), rel=0.02)
    whole = (links.source < 0) & (links.packet_bytes < 0) & (links.transport == events.strings.code("SDMA"))
    packets = (links.packet_bytes > 0) & ~whole  # SDMA is the sum of HCCS and PCIE
    assert links.bytes[packets].sum() == links.bytes[whole].sum()
    # what the tasks moved from rank to rank is what the profiler's own matrix says
    question = """
        SELECT transport_type, CAST(src_rank AS INTEGER), CAST(dst_rank AS INTEGER), SUM(transit_size) * 1e6,
        SUM(transit_time) * 1e6 FROM CommAnalyzerMatrix WHERE hccl_op_name LIKE '%-total%' GROUP BY 1, 2, 3
    """
    matrix = {tuple(ends): said for *ends, said in
              ((*row[:3], row[3:]) for row in ask(run, 1, rank, question, "analysis.db"))}  # fmt: skip
    found = {}
    for row in np.flatnonzero(links.source >= 0).tolist():
        ends = events.strings[int(links.transport[row])], int(links.source[row]), int(links.target[row])
        sums = found.setdefault(ends, [0, 0])
        sums[0] += int(links.bytes[row])
        sums[1] += int(links.transit_ns[row])
    assert found.keys() == matrix.keys()
    for ends, sums in found.items():
        assert sums == pytest.approx(matrix[ends], rel=1e-4), ends


@every_capture
def test_breakdown_of_the_step_differs_from_the_profilers_own_only_in_pauses_between_tasks(run, level, rank):
    found = rows_of(capture(run, level, rank).events).overall
    question = "SELECT computing, communication, overlapped FROM StepTraceTime"
    computing, communication, overlapped = (us * 1000 for us in ask(run, level, rank, question, "analysis.db")[0])
    assert found.compute_ns == pytest.approx(computing, abs=2)
    if run == "run_2025-01":
        assert (found.communication_ns, found.overlap_ns) == pytest.approx((communication, overlapped), abs=2)
        return
    # on the 910A the profiler counts the tasks of a collective and not the pauses between them; we count the call
    question = "SELECT t.startNs, t.endNs FROM TASK AS t JOIN COMMUNICATION_TASK_INFO USING (globalTaskId) ORDER BY 1"
    running = last = 0
    for start, end in ask(run, level, rank, question):
        running += max(0, end - max(start, last))
        last = max(last, end)
    assert running == pytest.approx(communication, abs=2)
    assert found.communication_ns > running
    assert found.communication_ns == of_kind(run, level, rank, DeviceKind.COMMUNICATION)[1]


@pytest.mark.parametrize("rank", range(4))
def test_analysis_alone_equals_the_json_beside_it(rank):
    place = data.path(f"ascend/transformer_4ranks_pp2_dp2/rank_{rank}_ascend_pt")
    metadata = metadata_of({}, json.loads((place / "profiler_metadata.json").read_text(encoding="utf-8")))
    output = place / "ASCEND_PROFILER_OUTPUT"
    said = json.loads((output / "communication.json").read_text(encoding="utf-8"))
    expected = Counter()
    for kinds in said.values():
        for records in kinds.values():
            for name, record in records.items():
                if not name.startswith("Total Op Info"):
                    times = record["Communication Time Info"]
                    key = tuple(round(times[f"{word} Time(ms)"] * 1e6) for word in ("Transit", "Wait", "Idle"))
                    expected[tuple(name.split("@")) + key] += 1
    with opened(output / "analysis.db") as db:
        ops, totals = communication_ops(db), matrix_totals(db)
        steps, _ = steps_of(db, None)
    assert Counter((op.name, op.group, op.transit_ns, op.wait_ns, op.idle_ns) for op in ops) == expected
    assert {op.step for op in ops} == {13}
    assert steps.step.tolist() == [13]
    roles = {metadata.group(op.group).role for op in ops}
    assert {"pp", "default"} <= roles
    assert "" not in roles
    assert "reduce_scatter" in {total.kind for total in totals}
    assert all(total.link.bytes != MISSING for total in totals)
