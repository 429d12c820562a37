"""`tracker status`: watchers, waiting profiles and failures."""

from __future__ import annotations

from tracker.cli.options import Color, Database, JsonFormat


def status(format: JsonFormat = "text", color: Color = "auto", db: Database = None) -> None:
    """Show watchers, folders, waiting profiles, failures and missing runs.

    A watcher is late when its last heartbeat or round is too old. Nothing is changed. Exit code 2 without a database.

    \b
    Example:
      tracker status
      tracker status --format json
    """
    import time

    from tracker import config, reports, watch
    from tracker.cli import database
    from tracker.cli.output import emit, screen
    from tracker.config import spools

    settings = config.load(db)
    with database.reading(settings) as store:
        places, shut = spools.spools_of(settings), spools.shut_spools_of(settings)
        found = watch.status(store, now_ns=time.time_ns(), spools=places, shut=shut)
    emit(str(reports.render(found, format, **screen(color))), as_it_is=format == "json")
