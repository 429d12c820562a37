"""Reads profiles of AI training into a database, compares versions, and says what became slower and why.

import tracker

with tracker.open_store("sqlite:///profiles.db") as store:
    tracker.ingest("run1.pt.trace.json.gz", version="v1", workload="resnet50", store=store)
    tracker.ingest("run2.pt.trace.json.gz", version="v2", workload="resnet50", store=store)
    print(tracker.diff("v1", "v2", store=store).ops.head())
"""

from __future__ import annotations

from tracker.api import (
    calibrate,
    diff,
    examine,
    explain,
    findings,
    history,
    ingest,
    log,
    matrix,
    open_store,
    runs,
    show,
    status,
    thresholds,
    versions,
)
from tracker.errors import TrackerError

__all__ = [
    "TrackerError", "__version__", "calibrate", "diff", "examine", "explain", "findings", "history", "ingest", "log",
    "matrix", "open_store", "runs", "show", "status", "thresholds", "versions",
]  # fmt: skip

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted(__all__)
