"""`ingest`, `pack` and `cut`: profiles into a database, into one file, and one step out of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.api.arguments import EMPTY, Place, chosen, path_texts, reading, writing
from tracker.api.files import check_file, write_file
from tracker.errors import SourceError, UsageError
from tracker.limits.files import same_file
from tracker.units import MAX_BYTES

if TYPE_CHECKING:
    import pandas as pd

    from tracker.intake import Cut, Pack, Sidecar
    from tracker.intake.pieces import ReadWith
    from tracker.store import Store

__all__ = ["cut", "ingest", "pack"]


_NOWHERE: Final[Mapping[Path, Sidecar]] = {}


def ingest(
    paths: Place | Iterable[Place],
    *,
    version: str | None = None,
    workload: str | None = None,
    store: Store | None = None,
    branch: str | None = None,
    main_branch: str | None = None,
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
    loaders: str | Iterable[str] = (),
    one_process: bool = False,
    threads: int = 0,
    on_progress: Callable[[str, int, int], None] | None = None,
    read_with: ReadWith | None = None,
    judge: bool = True,
    keep_going: bool = False,
    places: Mapping[Path, Sidecar] = _NOWHERE,
    as_stored: bool = False,
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
    with writing(store, create=True) as opened:
        results = ingest_paths(opened, listed, version=version, workload=workload, options=options)
    columns = [name for name in IngestResult.__struct_fields__ if name != "captures"]
    return pd.DataFrame([asdict(result) for result in results], columns=columns)


def pack(
    paths: Place | Iterable[Place],
    output: Place | None = None,
    *,
    version: str | None = None,
    workload: str | None = None,
    branch: str | None = None,
    commit: str | None = None,
    note: str | None = None,
    configuration: Mapping[str, str] = EMPTY,
    tags: Mapping[str, str] = EMPTY,
    device: str | None = None,
    expect_ranks: int | None = None,
    force: bool = False,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int = MAX_BYTES,
    loaders: str | Iterable[str] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Pack:
    """Pack profiles into one small file for an ingest elsewhere, as `tracker pack` does. Return what it holds.

    `output`: the file to write; None: only return the `content`. `force`: replace a pack that exists. The labels are
    those of `ingest`. SourceError where a profile cannot be read or the file cannot be written.
    """
    from tracker import intake
    from tracker.version import VERSION

    given = locals()
    target = None if output is None else Path(output)
    if target is not None:
        _check_pack(target, force)
    labels = chosen(intake.Sidecar, given)
    reading = chosen(intake.IngestOptions, {name: given[name] for name in given.keys() - {*labels.__struct_fields__}})
    places = [Path(path) for path in path_texts(paths)]
    try:
        made = intake.pack(places, asked=labels, writer=VERSION, options=reading)
    except UnicodeEncodeError as error:
        problem = "a file name is not UTF-8, which a pack cannot hold"
        raise SourceError(places[0], "", problem, remedy="rename the file") from error
    if target is not None:
        _check_pack(target, force)
        write_file(target, made.content)
    return made


def _check_new(target: Path, force: bool) -> None:
    """Raise SourceError where `target` cannot be written, or is there already, unless `force` replaces it."""
    check_file(target)
    if target.is_file() and not force:
        raise SourceError(target, "", "exists already", remedy="name another file, or replace it with --force")


def _check_pack(target: Path, force: bool) -> None:
    """The same for a pack, which replaces nothing else."""
    from tracker.intake import is_pack

    _check_new(target, force)
    if target.is_file() and not is_pack(target):
        raise SourceError(target, "", "is not a pack and is not replaced", remedy="name another file")


def cut(
    run: int | str,
    output: Place,
    *,
    step: int | None = None,
    rank: int | None = None,
    store: Store | None = None,
    workload: str | None = None,
    force: bool = False,
    max_bytes: int = MAX_BYTES,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Cut:
    """Cut one step out of the trace of a run, as `tracker cut` does. Return which step it is, and its size.

    `run`: a number, or what `tracker cut` takes. `output`: a file that ends in .json or .json.gz; `force`: replace one
    that exists. SourceError where the file that the run was read from is gone, or has another content by now.
    """
    from functools import partial

    from tracker.compare import resolve
    from tracker.intake import cut as cut_run
    from tracker.readers import ReadOptions

    target = Path(output)
    is_gzip = target.name.lower().endswith(".json.gz")
    if not (is_gzip or target.suffix.lower() == ".json"):
        raise UsageError(f"{target} does not end in .json or .json.gz", remedy="name a file such as step3.json.gz")
    _check_new(target, force)
    with reading(store) as opened:
        run_ids, of_side = resolve(opened, f"run:{run}" if str(run).isdecimal() else str(run), workload)
        if len(run_ids) > 1:
            raise UsageError(f"{run} is {len(run_ids)} runs", remedy=f"name one of them: run:{run_ids[-1]}")
        read = ReadOptions(max_bytes=max_bytes, progress=on_progress and partial(on_progress, "cut"))
        made = cut_run(opened, run_ids[0], step=step, rank=of_side if rank is None else rank, options=read)
    if same_file(target, made.path):
        raise SourceError(target, "", "is the trace itself", remedy="name another file")
    write_file(target, made.content(compressed=is_gzip))
    return made
