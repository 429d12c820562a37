"""Reads profiles of AI training into a database, compares versions, and says what became slower and why.

import tracker

with tracker.open_store("sqlite:///profiles.db") as store:
    tracker.ingest("run1.pt.trace.json.gz", version="v1", workload="resnet50", store=store)
    tracker.ingest("run2.pt.trace.json.gz", version="v2", workload="resnet50", store=store)
    print(tracker.diff("v1", "v2", store=store).ops.head())
"""

from __future__ import annotations

from tracker import api
from tracker.api import *  # noqa: F403 the names of api.__all__
from tracker.errors import TrackerError

__all__ = ["TrackerError", "__version__"]
__all__ += api.__all__

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted(__all__)
