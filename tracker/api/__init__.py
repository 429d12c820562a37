"""The functions of the package: what the commands answer, as Python objects whose tables are pandas frames.

Every option is a named argument, with the name, the default and the meaning of the field of the option struct that it
fills. Results display their first screen in a notebook.
"""

from __future__ import annotations

from tracker.api.arguments import open_store
from tracker.api.edits import (
    ack,
    delete_runs,
    edit_runs,
    exclude_runs,
    expect,
    forget_branch,
    invalid,
    mute,
    mute_operators,
    note,
    order_versions,
    pin_version,
    prune,
    restore_runs,
    send_notifications,
    tag_runs,
    undo,
    unmute,
    unpin_version,
    untag_runs,
)
from tracker.api.profiles import cut, ingest, pack
from tracker.api.results import (
    advise,
    board,
    calibrate,
    cluster,
    diff,
    examine,
    explain,
    findings,
    history,
    log,
    matrix,
    runs,
    show,
    status,
    thresholds,
    versions,
)

__all__: list[str] = [
    "ack", "advise", "board", "calibrate", "cluster", "cut", "delete_runs", "diff", "edit_runs", "examine",
    "exclude_runs", "expect", "explain", "findings", "forget_branch", "history", "ingest", "invalid", "log", "matrix",
    "mute", "mute_operators", "note", "open_store", "order_versions", "pack", "pin_version", "prune", "restore_runs",
    "runs", "send_notifications", "show", "status", "tag_runs", "thresholds", "undo", "unmute", "unpin_version",
    "untag_runs", "versions",
]  # fmt: skip
