"""Tables that a database should have and has not: what is lost with them, so that nothing lost looks like a zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tracker.readers._ascend import prof_folders
from tracker.readers._sqlite import Database
from tracker.readers.ascend_db import standins
from tracker.readers.ascend_db.tasks import Tasks
from tracker.readers.ascend_db.texts import Texts

NO_KERNELS: Final = (
    "no COMPUTE_TASK_INFO: the kernels are those of TASK, called by their type, without names, shapes and metrics"
)
NO_CALLS: Final = (
    "no COMMUNICATION_OP: the collectives are those of COMMUNICATION_TASK_INFO and TASK, without their payload"
)
NO_COLLECTIVES: Final = (
    "neither COMMUNICATION_OP nor COMMUNICATION_TASK_INFO: nothing is known of the collectives that ran"
)
_NO_METRICS: Final = ("", "ACL_AICORE_NONE", "AiCoreNone", "None")


def lacks_of(db: Database, texts: Texts, tasks: Tasks, calls: int, work: int) -> tuple[str, ...]:
    """What the work of a device lacks; empty where it is whole. `calls`: its collectives; `work`: all of its events.

    Tables without rows are not written by the profiler, so one that is missing says nothing; only tasks that it should
    explain do.
    """
    lacks = []
    if not _has_rows(db, "COMPUTE_TASK_INFO") and len(standins.kernel_rows(db, texts, tasks)):
        lacks.append(NO_KERNELS)
    if not calls and len(standins.notify_streams(texts, tasks)):
        lacks.append(NO_COLLECTIVES)
    elif calls and not _has_rows(db, "COMMUNICATION_OP"):
        lacks.append(NO_CALLS)
    return tuple(lacks)


def warnings_of(db: Database, path: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """What else is lost with tables that are missing. `settings`: the profiler's, which say what to expect."""
    is_of_framework = not prof_folders.DATABASE.fullmatch(path.name)
    if is_of_framework and not db.has("PYTORCH_API"):
        yield "no PYTORCH_API: no ops, and kernels without the op that launched them"
    if db.has("PYTORCH_API") and not db.has("CONNECTION_IDS"):
        yield "no CONNECTION_IDS: kernels without the op that launched them"
    level, metrics = settings.get("profiler_level", ""), settings.get("aic_metrics", "")
    measures = level not in ("", "Level0", "Level_none") and metrics not in _NO_METRICS
    if measures and not db.has("TASK_PMU_INFO"):
        yield f"no TASK_PMU_INFO: no measurements of the cores, though the profiler was to take them ({metrics})"
    if is_of_framework and settings.get("profile_memory") != "off" and not db.has("OP_MEMORY"):
        yield "no OP_MEMORY: nothing is known of what ops allocated"


def _has_rows(db: Database, table: str) -> bool:
    return len(db.ints(table, ("globalTaskId",) if table == "COMPUTE_TASK_INFO" else ("opId",)).popitem()[1]) > 0
