"""`ingest`: profiles into a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.api._chosen import EMPTY, Place, chosen, path_texts, writing
from tracker.units import MAX_BYTES

if TYPE_CHECKING:
    import pandas as pd

    from tracker.intake import Sidecar
    from tracker.intake.pieces import ReadWith
    from tracker.store import Store


_NOWHERE: Final[Mapping[Path, Sidecar]] = {}


def ingest(
    paths: Place | Iterable[Place],
    *,
    version: str | None = None,
    workload: str | None = None,
    store: Store | None = None,
    commit: str | None = None,
    note: str | None = None,
    configuration: Mapping[str, str] = EMPTY,
    tags: Mapping[str, str] = EMPTY,
    device: str | None = None,
    expect_ranks: int | None = None,
    as_run: bool = False,
    otherwise: Sidecar | None = None,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int = MAX_BYTES,
    one_process: bool = False,
    on_progress: Callable[[str, int, int], None] | None = None,
    read_with: ReadWith | None = None,
    judge: bool = True,
    keep_going: bool = False,
    places: Mapping[Path, Sidecar] = _NOWHERE,
) -> pd.DataFrame:
    """Read profiles into `store`, as `tracker ingest` does; one row per run that they form.

    Without `version` or `workload` the files must state them. Without `store`, the database of the command line,
    created where it is missing. The other arguments are the fields of `tracker.intake.IngestOptions`. Columns: those of
    `tracker.intake.IngestResult` but the single captures.
    """
    import pandas as pd
    from msgspec.structs import asdict

    from tracker.intake import IngestOptions, IngestResult
    from tracker.intake import ingest as ingest_paths

    options = chosen(IngestOptions, {name: value for name, value in locals().items() if value is not None})
    listed = [Path(path) for path in path_texts(paths)]
    with writing(store) as opened:
        results = ingest_paths(opened, listed, version=version, workload=workload, options=options)
    columns = [name for name in IngestResult.__struct_fields__ if name != "captures"]
    return pd.DataFrame([asdict(result) for result in results], columns=columns)
