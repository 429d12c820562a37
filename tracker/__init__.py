"""Reads profiles of AI training into a database, compares versions, and says what became slower and why.

import tracker

with tracker.open_store("sqlite:///profiles.db") as store:
    tracker.ingest("run1.pt.trace.json.gz", version="v1", workload="resnet50", store=store)
    tracker.ingest("run2.pt.trace.json.gz", version="v2", workload="resnet50", store=store)
    print(tracker.diff("v1", "v2", store=store).ops.head())
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from tracker.results import Calibration, Diff, History, Log, Matrix, Shown
    from tracker.store import Store

__all__ = ["__version__", "calibrate", "diff", "history", "ingest", "log", "matrix", "open_store", "show"]

__version__ = "0.1.0"


def open_store(url: str | None = None, **options: Any) -> Store:
    """The database at `url`, made on first use; None means the one that the command line uses (see `tracker db info`).

    `url`: an SQLAlchemy URL or the path of an SQLite file. Close it, or use it in a `with` statement.
    """
    from tracker import config
    from tracker.store import open_store as open_url

    settings = config.load(url)
    if settings.origin == "default":
        config.make_default_folder()
    return open_url(settings.database, **options)


def ingest(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    version: str | None = None,
    workload: str | None = None,
    store: Store,
    **options: Any,
) -> pd.DataFrame:
    """Read profiles into `store`, as `tracker ingest` does; one row per run that they form.

    Without `version` or `workload` the files must state them.

    `options`: the fields of `tracker.intake.IngestOptions`. Columns: those of `tracker.intake.IngestResult` but the
    single captures.
    """
    import pandas as pd
    from msgspec.structs import asdict

    from tracker.intake import IngestOptions, IngestResult
    from tracker.intake import ingest as ingest_paths

    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    results = ingest_paths(
        store, [Path(path) for path in listed], version=version, workload=workload, options=IngestOptions(**options)
    )
    columns = [name for name in IngestResult.__struct_fields__ if name != "captures"]
    return pd.DataFrame([asdict(result) for result in results], columns=columns)


def diff(
    baseline: str | PathLike[str], candidate: str | PathLike[str], *, store: Store | None = None, **options: Any
) -> Diff:
    """Candidate against baseline, as `tracker diff` does; the tables of the result are pandas frames.

    The sides are what `tracker diff` takes. Without `store`, paths need none and labels mean the database that the
    command line uses. `options`: the fields of `tracker.results.DiffOptions`.
    """
    from tracker.compare import diff as compare
    from tracker.results import DiffOptions

    chosen = DiffOptions(**options)
    with _opened(store, str(baseline), str(candidate)) as opened:
        return compare(opened, str(baseline), str(candidate), options=chosen)


def matrix(*sides: str | PathLike[str], by: str = "op", store: Store | None = None, **options: Any) -> Matrix:
    """Three or more sides beside each other, as `tracker diff` shows them; its tables are pandas frames.

    `by`: a word of `tracker.results.MATRIX_ROWS`. `store`, `options`: as for `diff`.
    """
    from tracker.compare import matrix as beside_each_other
    from tracker.results import DiffOptions

    chosen = DiffOptions(**options)
    names = [str(side) for side in sides]
    with _opened(store, *names) as opened:
        return beside_each_other(opened, names, by=by, options=chosen)


def show(reference: str | PathLike[str], *, store: Store | None = None, **options: Any) -> Shown:
    """One run, as `tracker show` does; the tables of the result are pandas frames. `store`: as for `diff`.

    `options`: the fields of `tracker.results.ShowOptions`.
    """
    from tracker.compare import show as show_run
    from tracker.results import ShowOptions

    chosen = ShowOptions(**options)
    with _opened(store, str(reference)) as opened:
        return show_run(opened, str(reference), options=chosen)


def log(workload: str | None = None, *, store: Store | None = None, **options: Any) -> Log:
    """The versions of a workload and what each of them brought, as `tracker log` does; its tables are pandas frames.

    Without `store`, the database that the command line uses. `options`: the fields of `tracker.results.LogOptions`.
    """
    from tracker.compare import log as log_of
    from tracker.results import LogOptions

    chosen = LogOptions(workload=workload, **options)
    if store is not None:
        return log_of(store, options=chosen)
    with open_store(create=False, read_only=True) as opened:
        return log_of(opened, options=chosen)


def history(key: str | None = None, *, store: Store | None = None, **options: Any) -> History:
    """Series over versions, as `tracker history` shows them; the tables of the result are pandas frames.

    `key`: a name, a pattern, or the number of a series. Without `store`, the database that the command line uses.
    `options`: the fields of `tracker.results.HistoryOptions`.
    """
    from tracker.judgement import history as history_of
    from tracker.results import HistoryOptions

    chosen = HistoryOptions(key=key, **options)
    if store is not None:
        return history_of(store, options=chosen)
    with open_store(create=False, read_only=True) as opened:
        return history_of(opened, options=chosen)


def calibrate(references: str | Sequence[str], *, store: Store | None = None, **options: Any) -> Calibration:
    """How small a change can be told from noise, from repeats of one version, as `tracker calibrate` does.

    `references`: the label of a version, or its runs (`run:41`). Without `store`, the database that the command line
    uses. `options`: the fields of `tracker.results.CalibrateOptions`.
    """
    from tracker.judgement import calibrate as calibrate_runs
    from tracker.results import CalibrateOptions

    chosen = CalibrateOptions(**options)
    named = [references] if isinstance(references, str) else list(references)
    if store is not None:
        return calibrate_runs(store, named, options=chosen)
    with open_store(create=False, read_only=True) as opened:
        return calibrate_runs(opened, named, options=chosen)


@contextmanager
def _opened(store: Store | None, *references: str) -> Iterator[Store | None]:
    """`store`, or for the time of a call the default database where `references` need one."""
    from tracker.compare import needs_store

    if store is not None or not any(needs_store(reference) for reference in references):
        yield store
        return
    with open_store(create=False, read_only=True) as opened:
        yield opened
