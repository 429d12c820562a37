"""TASK: what ran on each device, before anything explains it."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracker.errors import SourceError
from tracker.profile import I64
from tracker.readers._sqlite import EXPORT_AGAIN, Database, first_rows, picked
from tracker.readers._times import MAX_NS

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


def tasks_of(db: Database, *, skip_bad_rows: bool = False) -> tuple[dict[int, Tasks], int]:
    """The tasks of each device, by its number, and how many rows were left out.

    SourceError for one that ends before its start or beyond all dates; with `skip_bad_rows` it is left out.
    """
    required = ("startNs", "endNs", "deviceId", "globalTaskId", "taskType")
    columns = db.ints("TASK", required, ("connectionId", "streamId", "globalPid", "taskId", "contextId"))
    bad = (columns["endNs"] < columns["startNs"]) | (columns["endNs"] > MAX_NS)
    if bad.any():
        row = int(np.argmax(bad))
        problem = f"starts at {columns['startNs'][row]} and ends at {columns['endNs'][row]}"
        if not skip_bad_rows or bad.all():
            remedy = f"{EXPORT_AGAIN}, or leave such rows out with --skip-bad-rows"
            raise SourceError(db.path, f"table TASK, row {row + 1}", problem, remedy=remedy)
        columns = picked(columns, ~bad)
    devices = np.unique(columns["deviceId"]).tolist()
    return {device: Tasks(picked(columns, columns["deviceId"] == device)) for device in devices}, int(bad.sum())
