"""`runs`, `versions`, `thresholds`, `status` and `examine`: what a database or a folder holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from tracker.api.arguments import Place, chosen, path_texts, reading, show_screens
from tracker.units import MAX_BYTES

if TYPE_CHECKING:
    import pandas as pd

    from tracker.doctor import Findings
    from tracker.results import Status
    from tracker.store import Store


def runs(
    *,
    store: Store | None = None,
    version: str | None = None,
    workload: str | None = None,
    device: str | None = None,
    tag: str | None = None,
    state: Literal["active", "excluded", "deleted", "all"] = "active",
    limit: int | None = None,
) -> pd.DataFrame:
    """Return the runs of a database, the newest first, one row each; the columns of `tracker runs --format json`.

    `device`: part of vendor and model. `tag`: `key` or `key=value`. `limit`: at most so many, None for all. Without
    `store`, the database of the command line. UsageError for a version, workload or device without runs.
    """
    from tracker.results.options import check_words
    from tracker.store import queries

    check_words("state", (state,), ("active", "excluded", "deleted", "all"))
    with reading(store) as opened:
        queries.check_filters(opened, workload=workload, device=device, version=version)
        return queries.runs(
            opened, version=version, workload=workload, device=device, tag=tag, state=state, limit=limit
        )


def versions(workload: str | None = None, *, store: Store | None = None) -> pd.DataFrame:
    """Return the versions in their order, one row each; the columns of `tracker versions --format json`.

    Without `store`, the database of the command line. UsageError for a workload without runs.
    """
    from tracker.store import queries

    with reading(store) as opened:
        queries.check_filters(opened, workload=workload)
        return queries.versions(opened, workload)


def thresholds(workload: str | None = None, *, store: Store | None = None) -> pd.DataFrame:
    """Return the detection thresholds that users set, one row each; without a row, the defaults hold.

    Columns: those of `tracker thresholds --format json`. Without `store`, the database of the command line.
    """
    from tracker.store import queries

    with reading(store) as opened:
        return queries.thresholds(opened, workload)


def status(*, store: Store | None = None) -> Status:
    """Return what watches, what waits and what is stuck, as `tracker status` does. Nothing is changed.

    Without `store`, the database of the command line.
    """
    import time

    from tracker import config, watch
    from tracker.config import spools

    with reading(store) as opened:
        settings = config.load(opened.engine.url.render_as_string(hide_password=False))
        return watch.status(
            opened, now_ns=time.time_ns(), spools=spools.spools_of(settings), shut=spools.shut_spools_of(settings)
        )


def examine(
    paths: Place | Iterable[Place],
    *,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int = MAX_BYTES,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Findings:
    """Return what files and folders hold, before they are ingested, as `tracker doctor` does; nothing is written.

    A file that cannot be read is one of the `failures`, not an error. The other arguments are those fields of
    `tracker.intake.IngestOptions` that say how to read.
    """
    from pathlib import Path

    from tracker.doctor import examine as examine_paths
    from tracker.intake import IngestOptions

    options = chosen(IngestOptions, locals())
    show_screens()
    return examine_paths([Path(path) for path in path_texts(paths)], options)
