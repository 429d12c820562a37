"""`tracker status`: who watches, what waits, what is stuck."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tracker.cli import _options as options


class StatusFormat(StrEnum):
    """How the status is written."""

    TEXT = "text"
    JSON = "json"


def status(
    format: Annotated[
        StatusFormat,
        typer.Option("--format", help="How to write it: text for people, json for scripts (schema 1: docs/json.md)."),
    ] = StatusFormat.TEXT,
    db: options.Database = None,
) -> None:
    """Say who watches, which folders, which profiles are stuck or on their way, and which runs are missing.

    A watcher is late when its last sign of life, or its last round, is too long ago. Nothing is changed. Exit code 2
    where there is no database.

    \b
    Example:
      tracker status
      tracker status --format json
    """
    import time

    from tracker import config, reports, watch
    from tracker.cli import _store
    from tracker.cli._output import emit, screen
    from tracker.config import spools

    settings = config.load(db)
    with _store.reading(settings) as store:
        places, shut = spools.spools_of(settings), spools.shut_spools_of(settings)
        found = watch.status(store, now_ns=time.time_ns(), spools=places, shut=shut)
    look = screen()
    document = reports.render(found, format.value, width=look.width, color=look.color)
    emit(document if isinstance(document, str) else document.decode(), as_it_is=format is StatusFormat.JSON)
