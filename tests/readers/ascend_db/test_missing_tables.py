"""Tables that an Ascend database does not have: what stands in for them, and what is lost."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import T, changed, span, task, write_capture
from tests.readers.helpers import only, texts
from tracker import timeline
from tracker.profile import MISSING, DeviceKind
from tracker.readers import ascend_db


def breakdown(capture):
    return timeline.rows_of(capture.events).overall


def test_without_compute_task_info_tasks_of_kernel_types_stand_in(database):
    whole, part = only(database()), only(read := database(changed(COMPUTE_TASK_INFO=None), "b.db"))
    assert texts(part.events, part.events.device.name)[:1] == ["KERNEL_AICORE"]
    assert breakdown(part) == breakdown(whole)
    assert (part.quality, "no COMPUTE_TASK_INFO" in part.quality_reason) == ("partial", True)
    assert any(text.startswith("no COMPUTE_TASK_INFO: the kernels are those of TASK") for text in read.warnings)


def test_of_a_kernel_of_several_parts_the_parts_stand_in(database):
    place = {"streamId": 2, "taskId": 7}
    tasks = [
        task(20, "AI_CORE", 100, 150, 601, **place, contextId=made.NONE),
        task(21, "MIX_AIV", 105, 140, 601, **place, contextId=0),
        task(22, "STARS_COMMON", 200, 210, 602, taskId=8, contextId=made.NONE),
        task(23, "EVENT_WAIT", 300, 310, 603, taskId=9, contextId=made.NONE),
    ]
    capture = only(database(changed(TASK=tasks, COMPUTE_TASK_INFO=None, COMMUNICATION_OP=None)))
    device = capture.events.device
    assert texts(capture.events, device.name) == ["MIX_AIV", "STARS_COMMON"]
    assert [span(device, row) for row in range(2)] == [(105, 140), (200, 210)]


def test_without_communication_op_the_tasks_of_a_collective_are_its_call(database):
    hccl = [{**row, "groupName": T("group_name_5"), "dataType": 77} for row in made.tables()["COMMUNICATION_TASK_INFO"]]
    capture = only(read := database(changed(COMMUNICATION_OP=None, COMMUNICATION_TASK_INFO=hccl)))
    events = capture.events
    (row,) = np.flatnonzero(events.device.kind == DeviceKind.COMMUNICATION).tolist()
    assert texts(events, events.device.name)[row] == "hcom_allReduce__097_0_1"
    # from the start of Notify Wait to the end of SDMA
    assert span(events.device, row) == (700, 800)
    assert texts(events, events.collectives.kind) == ["all_reduce"]
    assert texts(events, events.collectives.group_role) == ["dp"]
    assert events.collectives.bytes.tolist() == [MISSING]
    assert (capture.quality, breakdown(capture).communication_ns) == ("partial", 100)
    assert any(text.startswith("no COMMUNICATION_OP: the collectives are those of") for text in read.warnings)


def test_collectives_of_which_nothing_is_left_are_unknown_and_not_zero(database):
    capture = only(database(changed(COMMUNICATION_OP=None, COMMUNICATION_TASK_INFO=None)))
    found = breakdown(capture)
    assert (found.communication_ns, found.exposed_communication_ns, found.idle_ns, found.e2e_ns) == (None,) * 4
    # the SDMA task on the stream of Notify Wait is no copy
    assert (found.compute_ns, found.copy_ns) == (100, 30)
    assert (capture.quality, capture.quality_reason.partition(":")[0]) == (
        "partial", "neither COMMUNICATION_OP nor COMMUNICATION_TASK_INFO",
    )  # fmt: skip


def test_a_device_that_never_waits_for_another_has_no_collectives_and_no_warning(database):
    alone = [row for row in made.tables()["TASK"] if row["globalTaskId"] < 13]
    capture = only(read := database(changed(TASK=alone, COMMUNICATION_OP=None, COMMUNICATION_TASK_INFO=None)))
    assert (capture.quality, breakdown(capture).communication_ns, read.warnings) == ("ok", 0, ())


@pytest.mark.parametrize(
    ("table", "warning"),
    [
        ("PYTORCH_API", "no PYTORCH_API: no ops, and kernels without the op that launched them"),
        ("CONNECTION_IDS", "no CONNECTION_IDS: kernels without the op that launched them"),
        ("OP_MEMORY", "no OP_MEMORY: nothing is known of what ops allocated"),
    ],
)
def test_a_missing_table_is_named_with_what_is_lost(database, table, warning):
    read = database(changed(**{table: None}))
    assert (only(read).quality, read.warnings) == ("ok", (warning,))


def test_a_capture_of_cann_alone_has_no_framework_to_miss(database):
    assert database(changed(PYTORCH_API=None, OP_MEMORY=None), "msprof_20250101000000.db").warnings == ()


@pytest.mark.parametrize(
    ("level", "metrics", "count"), [("Level1", "PIPE", 1), ("Level0", "PIPE", 0), ("Level1", "", 0)]
)
def test_measurements_are_missed_where_the_profiler_was_to_take_them(tmp_path, level, metrics, count):
    folder = write_capture(tmp_path / "rank4_ascend_pt", changed(TASK_PMU_INFO=None))
    settings = {"_profiler_level": level, "_aic_metrics": metrics}
    info = {"config": {"experimental_config": settings}, "rank_id": 4}
    (folder / "profiler_info_4.json").write_text(json.dumps(info))
    warnings = ascend_db.read(folder).warnings
    assert len([text for text in warnings if text.startswith("no TASK_PMU_INFO")]) == count
