"""COMMUNICATION_OP and COMMUNICATION_TASK_INFO -> collective calls, their groups and their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import I32, I64, MISSING, Collectives, CollectiveTasks
from tracker.readers._ascend.communication import Link, global_link, global_peers, index_in_name, other_ends
from tracker.readers._ascend.metadata import Metadata
from tracker.readers._ascend.shapes import data_type
from tracker.readers._collectives import kind_of
from tracker.readers._spans import Spans, check_range
from tracker.readers._sqlite import Database, code_column, first_rows, picked
from tracker.readers.ascend_db import standins
from tracker.readers.ascend_db.tasks import Tasks
from tracker.readers.ascend_db.texts import Texts

_NONE: Final = 0xFFFFFFFF
_ON_CHIP: Final = "ON_CHIP"
_LOCAL: Final = "LOCAL"
_NO_LINK: Final = frozenset(("", "N/A", "INVALID_TYPE", "RESERVED"))


class Calls(Struct, frozen=True):
    """The collective calls of one device, one row each in every column; `table` describes them.

    `name`, `type`: codes of `hcom_allReduce__210_0_1` and `hcom_allReduce_`. `stream`, `pid`: of the first task of the
    call, or MISSING. `moved`: row of the call, and what its tasks moved from rank to rank (global ones).
    """

    table: Collectives
    op_id: I64
    start_ns: I64
    end_ns: I64
    name: I32
    type: I32
    stream: I64
    pid: I64
    connection: I64
    wait_ns: I64
    tasks: CollectiveTasks
    moved: tuple[tuple[int, Link], ...]


class _Told(Struct, frozen=True):
    """COMMUNICATION_TASK_INFO of one device: columns, and the row of `Tasks` of each."""

    columns: Mapping[str, I64]
    task: I64


def calls_of(spans: Spans, texts: Texts, tasks: Tasks, metadata: Metadata, *, device: int, is_only: bool) -> Calls:
    """The collective calls on `device`; with several devices in one file, a call belongs where its tasks ran.

    Without COMMUNICATION_OP they are what their tasks tell.
    """
    optional = ("connectionId", "groupName", "dataType", "count", "opType", "waitNs", "deviceId")
    db = spans.db
    columns = spans.read("COMMUNICATION_OP", ("opName", "opId"), optional)
    check_range(db, "COMMUNICATION_OP", columns, "count", "waitNs")
    told = _told(db, tasks)
    if not len(columns["opId"]):
        columns = standins.calls(told.columns, told.task, tasks)
    first = first_rows(told.columns["opId"], columns["opId"])
    if not is_only:
        by_column = columns["deviceId"] != MISSING
        mine = np.where(by_column, columns["deviceId"] == device, first >= 0)
        columns, first = picked(columns, mine), first[mine]
    task = np.append(told.task, -1)[first]
    own_tasks = _tasks(texts, tasks, told, columns["opId"])
    groups = [texts.text(group) for group in columns["groupName"].tolist()]
    peer = global_peers(own_tasks.peer, own_tasks.collective, groups, metadata)
    return Calls(
        table=_table(db, texts, columns, metadata),
        op_id=columns["opId"],
        start_ns=columns["startNs"],
        end_ns=columns["endNs"],
        name=texts.codes(columns["opName"]),
        type=texts.codes(columns["opType"]),
        stream=np.append(tasks.stream, MISSING)[task],
        pid=np.append(tasks.pid, MISSING)[task],
        connection=columns["connectionId"],
        wait_ns=columns["waitNs"],
        tasks=replace(own_tasks, peer=peer),
        moved=_moved(db, texts, tasks, told, columns, metadata),
    )


def _told(db: Database, tasks: Tasks) -> _Told:
    optional = ("taskType", "planeId", "size", "srcRank", "dstRank", "linkType", "name", "groupName", "dataType")
    columns = db.ints("COMMUNICATION_TASK_INFO", ("globalTaskId", "opId"), optional)
    check_range(db, "COMMUNICATION_TASK_INFO", columns, "size")
    task = tasks.row_of(columns["globalTaskId"])
    return _Told(picked(columns, task >= 0), task[task >= 0])


def _table(db: Database, texts: Texts, columns: Mapping[str, I64], metadata: Metadata) -> Collectives:
    """What each call is. HCCL counts elements, so bytes are count x size of the data type."""
    kinds = [kind_of(_operation(texts.text(op) or texts.text(name))) for op, name in
             zip(columns["opType"].tolist(), columns["opName"].tolist(), strict=True)]  # fmt: skip
    groups = [metadata.group(texts.text(group)) for group in columns["groupName"].tolist()]
    words = db.words("ENUM_HCCL_DATA_TYPE")
    types = [data_type(words.get(number, "")) for number in columns["dataType"].tolist()]
    sizes = [
        count * size if size and count >= 0 else MISSING
        for count, (_, size) in zip(columns["count"].tolist(), types, strict=True)
    ]
    return Collectives(
        kind=code_column(kinds, texts.strings),
        group=code_column((group.id for group in groups), texts.strings),
        group_role=code_column((group.role for group in groups), texts.strings),
        group_size=np.array([group.size for group in groups], dtype=np.int64),
        data_type=code_column((name for name, _ in types), texts.strings),
        bytes=np.array(sizes, dtype=np.int64),
        group_ranks=code_column((group.members for group in groups), texts.strings),
        peer=np.full(len(sizes), -1, dtype=np.int64),
        source_index=np.array([index_in_name(texts.text(name)) for name in columns["opName"].tolist()], dtype=np.int64),
    )


def _operation(name: str) -> str:
    """`hcom_allReduce_` and `hcom_allReduce__210_0_1` -> `allReduce`."""
    return name.removeprefix("hcom_").split("__")[0].strip("_")


def _tasks(texts: Texts, tasks: Tasks, told: _Told, op_ids: I64) -> CollectiveTasks:
    """The tasks that have a name; at Level0 the profiler counts them but does not say what they are."""
    call = first_rows(op_ids, told.columns["opId"])
    name = texts.codes(told.columns["taskType"])
    known = (call >= 0) & (name > 0)
    planes = np.where(told.columns["planeId"] == _NONE, MISSING, told.columns["planeId"])[known]
    distinct, back = np.unique(planes, return_inverse=True)
    words = ["" if plane == MISSING else str(plane) for plane in distinct.tolist()]
    return CollectiveTasks(
        collective=call[known].astype(np.int32),
        name=name[known],
        plane=code_column(words, texts.strings)[back],
        start_ns=tasks.start_ns[told.task[known]],
        end_ns=tasks.end_ns[told.task[known]],
        peer=other_ends(told.columns["srcRank"][known], told.columns["dstRank"][known]),
    )


def _moved(
    db: Database, texts: Texts, tasks: Tasks, told: _Told, calls: Mapping[str, I64], metadata: Metadata
) -> tuple[tuple[int, Link], ...]:
    """Per call, kind of link, source and target what the tasks moved; a task without target stays on its chip."""
    columns = told.columns
    call = first_rows(calls["opId"], columns["opId"])
    rows = np.flatnonzero(
        (call >= 0) & (columns["size"] > 0) & (columns["srcRank"] >= 0) & (columns["srcRank"] != _NONE)
    )
    words = db.words("ENUM_HCCL_LINK_TYPE")
    target = np.where(np.isin(columns["dstRank"], (_NONE, MISSING, -1)), columns["srcRank"], columns["dstRank"])
    ends = [call[rows], columns["linkType"][rows], columns["srcRank"][rows], target[rows]]
    distinct, back = np.unique(np.stack(ends), axis=1, return_inverse=True)
    size, time = np.zeros(distinct.shape[1], dtype=np.int64), np.zeros(distinct.shape[1], dtype=np.int64)
    task = told.task[rows]
    np.add.at(size, back.reshape(-1), columns["size"][rows])
    np.add.at(time, back.reshape(-1), tasks.end_ns[task] - tasks.start_ns[task])
    found = []
    for (index, link, start, end), moved, transit in zip(
        distinct.T.tolist(), size.tolist(), time.tolist(), strict=True
    ):
        word = words.get(link, "")
        if word in _NO_LINK:
            continue
        whole = Link(_LOCAL if word == _ON_CHIP else word, start, end, -1, MISSING, moved, transit, float("nan"))
        found.append((index, global_link(whole, texts.text(int(calls["groupName"][index])), metadata)))
    return tuple(found)
