"""What a report says of itself: the table DIAGNOSTIC_EVENT.

CUPTI counts the events of a process: its CUDA calls, kernels, copies and memsets, without graphs that were traced as a
whole. In 14 real exports that state the number it is that of the rows, exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.readers._sqlite import Database
from tracker.readers.nsys_sqlite.tables import Arrays, pid_of, process_of
from tracker.units import counted

TABLE: Final = "DIAGNOSTIC_EVENT"
_COUNT: Final = re.compile(r"Number of CUDA events collected:\s*(\d{1,15})\.?\s*")
_NOT_ALL: Final = "Not all CUDA events might have been collected"


class Diagnostics(Struct, frozen=True):
    """What a report says of its processes. `collected`: process -> how many CUDA events it counted; `warned`: the
    processes of which it says that some may be missing.
    """

    collected: Mapping[int, int]
    warned: frozenset[int]

    def sentences(self, exported: Mapping[int, int], captured: Sequence[int]) -> list[str]:
        """Return what it says that no check of a capture says.

        exported: process -> how many of its CUDA events are in the export; captured: processes that have a capture.
        """
        found = []
        for process in sorted(self.warned & set(captured)):
            count, rows = self.collected.get(process), exported.get(process, 0)
            if count is None or count <= rows:
                agrees = f", and counts {counted(rows, 'event')}, which are in the export" if count == rows else ""
                found.append(
                    f"process {pid_of(process)}: the report says that not all CUDA events might have been collected"
                    f"{agrees}"
                )
        for process, count in sorted(self.collected.items()):
            rows = exported.get(process, 0)
            if process not in captured and count > rows:
                found.append(
                    f"process {pid_of(process)}: the report collected {count:,} CUDA events, {rows:,} are in the "
                    "export: it is left out"
                )
        return found


def diagnostics_of(db: Database) -> Diagnostics:
    """Return what the table says; nothing where it is not there, or its columns are others."""
    collected: dict[int, int] = {}
    warned: set[int] = set()
    if not (db.has_column(TABLE, "text") and db.has_column(TABLE, "globalPid")):
        return Diagnostics(collected, frozenset())
    for text, global_pid in db.rows(TABLE, "text", "globalPid"):
        if not isinstance(text, str) or not isinstance(global_pid, int):
            continue
        process = int(process_of(np.array([global_pid], dtype=np.int64))[0])
        if count := _COUNT.fullmatch(text):
            # a report of several captures may state one number each: the largest is collected in any case
            collected[process] = max(int(count[1]), collected.get(process, 0))
        elif text.startswith(_NOT_ALL):
            warned.add(process)
    return Diagnostics(collected, frozenset(warned))


def exported_events(diagnostics: Diagnostics, launches: Arrays, work: Arrays, skipped: int) -> dict[int, int]:
    """Return how many of the events that CUPTI counts are in the export, by process, of those that it speaks of.

    skipped: rows of these tables that were left out; they may be of any process.
    """
    is_event = ~work["is_graph"]
    counts: dict[int, int] = {}
    for process in diagnostics.warned | set(diagnostics.collected):
        calls = int((launches["process"] == process).sum())
        device_events = int((is_event & (work["process"] == process)).sum())
        counts[process] = calls + device_events + skipped
    return counts
