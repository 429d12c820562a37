"""What the rows of TASK tell where a table that explains them is missing: kernels without a name, collective calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I64, MISSING
from tracker.readers._ascend.trace.device import is_kernel
from tracker.readers._sqlite import Database, first_rows
from tracker.readers.ascend_db.tasks import Tasks
from tracker.readers.ascend_db.texts import Texts

COLLECTIVES: Final = ("COMMUNICATION_TASK_INFO", "COMMUNICATION_SCHEDULE_TASK_INFO")
_NO_CONTEXT: Final = (MISSING, -1, 0xFFFFFFFF)
# the generator of random numbers has a type of its own in traces, and shares one with others here
_SHARED: Final = frozenset(("STARS_COMMON",))
_NOTIFIES: Final = ("NOTIFY", "RDMA")


def kernel_rows(db: Database, texts: Texts, tasks: Tasks) -> I64:
    """Rows of `tasks` that are kernels, by their type; the tasks of collectives are none.

    A kernel of several parts has a task around them, on the same stream under the same number: the parts are what
    COMPUTE_TASK_INFO would name.
    """
    kinds = texts.ids_of(lambda text: is_kernel(text, text) or text in _SHARED)
    found = np.isin(tasks.type, kinds) & ~of_collectives(db, tasks)
    has_context = ~np.isin(tasks.context, _NO_CONTEXT)
    is_around = ~has_context & np.isin(_places(tasks), _places(tasks)[has_context])
    return np.flatnonzero(found & ~is_around)


def of_collectives(db: Database, tasks: Tasks) -> NDArray[np.bool_]:
    """Which of `tasks` a table names as parts of collectives."""
    found = np.zeros(len(tasks.id), dtype=np.bool_)
    for table in COLLECTIVES:
        found |= np.isin(tasks.id, db.ints(table, ("globalTaskId",))["globalTaskId"])
    return found


def calls(told: Mapping[str, I64], task: I64, tasks: Tasks) -> dict[str, I64]:
    """COMMUNICATION_OP by its tasks: a row per call, from the first start to the last end of its tasks.

    `told`: COMMUNICATION_TASK_INFO; `task`: the row of `tasks` of each. How much the calls moved is not known.
    """
    op_id = np.unique(told["opId"])
    first = first_rows(told["opId"], op_id)
    back = np.searchsorted(op_id, told["opId"])
    start = np.full(len(op_id), np.iinfo(np.int64).max)
    end = np.full(len(op_id), np.iinfo(np.int64).min)
    np.minimum.at(start, back, tasks.start_ns[task])
    np.maximum.at(end, back, tasks.end_ns[task])
    missing: I64 = np.full(len(op_id), MISSING, dtype=np.int64)
    return {
        "opId": op_id,
        "opName": told["name"][first],
        "startNs": start,
        "endNs": end,
        "groupName": told["groupName"][first],
        "connectionId": tasks.connection[task[first]],
        "dataType": told["dataType"][first],
        **dict.fromkeys(("count", "opType", "waitNs", "deviceId"), missing),
    }


def notify_streams(texts: Texts, tasks: Tasks) -> I64:
    """Streams with tasks by which ranks wait for each other: those of collectives."""
    kinds = texts.ids_of(lambda text: text.upper().startswith(_NOTIFIES))
    return np.unique(tasks.stream[np.isin(tasks.type, kinds)])


def _places(tasks: Tasks) -> NDArray[np.int64]:
    """A number per stream, task number and connection."""
    keys = np.stack([tasks.stream, tasks.number, tasks.connection])
    _, back = np.unique(keys, axis=1, return_inverse=True)
    places: NDArray[np.int64] = back.reshape(-1)
    return places
