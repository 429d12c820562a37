"""The functions of the package: what the commands answer, as Python objects whose tables are pandas frames.

Every option is a named argument, with the name, the default and the meaning of the field of the option struct that it
fills. Results display their first screen in a notebook.
"""

from __future__ import annotations

from tracker.api._chosen import open_store
from tracker.api.comparing import diff, matrix, show
from tracker.api.judged import calibrate, explain, findings, history, log
from tracker.api.lists import examine, runs, status, thresholds, versions
from tracker.api.storing import ingest

__all__ = [
    "calibrate", "diff", "examine", "explain", "findings", "history", "ingest", "log", "matrix", "open_store", "runs",
    "show", "status", "thresholds", "versions",
]  # fmt: skip
