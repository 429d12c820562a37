"""TASK: what ran on each device, before anything explains it."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracker.errors import SourceError
from tracker.profile import I64, MISSING
from tracker.readers._spans import Spans
from tracker.readers._sqlite import EXPORT_AGAIN, first_rows, picked

NO_CONNECTION: Final = (-1, 0xFFFFFFFF)
"""What the profiler writes where a task has no connection."""


class Tasks:
    """The rows of TASK of one device. `row_of` finds them by globalTaskId."""

    def __init__(self, columns: dict[str, I64]) -> None:
        self.start_ns = columns["startNs"]
        self.end_ns = columns["endNs"]
        self.id = columns["globalTaskId"]
        self.type = columns["taskType"]
        self.stream = columns["streamId"]
        self.pid = columns["globalPid"]
        self.number = columns["taskId"]
        self.context = columns["contextId"]
        connection = columns["connectionId"]
        self.connection: I64 = np.where(np.isin(connection, NO_CONNECTION), -1, connection)

    def row_of(self, ids: I64) -> I64:
        """The row of each globalTaskId, -1 where this device has no such task."""
        return first_rows(self.id, ids)


def tasks_of(spans: Spans) -> dict[int, Tasks]:
    """The tasks of each device, by its number; a SourceError for one without a device, or where none is left."""
    optional = ("connectionId", "streamId", "globalPid", "taskId", "contextId")
    columns = spans.read("TASK", ("deviceId", "globalTaskId", "taskType"), optional)
    if spans.skipped.get("TASK") and not len(columns["startNs"]):
        raise SourceError(spans.db.path, "table TASK", "all rows have impossible times", remedy=EXPORT_AGAIN)
    devices = np.unique(columns["deviceId"]).tolist()
    if MISSING in devices:
        raise SourceError(spans.db.path, "table TASK", "a row has no deviceId", remedy=EXPORT_AGAIN)
    return {device: Tasks(picked(columns, columns["deviceId"] == device)) for device in devices}
