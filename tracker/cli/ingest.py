"""`tracker ingest`: profiles into the database, those that jobs queued included."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracker.cli.options import Database, Labels, check_path
from tracker.errors import EXIT_COULD_NOT_RUN, UsageError, without_place
from tracker.lazy import import_numpy
from tracker.results.options import READING, Option, Reading
from tracker.units import counted, format_moment

if TYPE_CHECKING:
    from tracker.config import Settings
    from tracker.intake import IngestOptions, Sidecar
    from tracker.readers import NotRecognised


def ingest(
    labels: Labels,
    reading: Reading,
    paths: Annotated[
        list[Path] | None, Option("Profiles, or folders with profiles at any depth.", "PATH...", positional=True)
    ] = None,
    as_run: Annotated[
        bool,
        Option(
            "All files are ranks of one run. Default: files with distinct ranks, equal world size and overlapping "
            "times are one run.",
            group=READING,
        ),
    ] = False,
    keep_going: Annotated[
        bool,
        Option(
            "Leave out profiles that cannot be read, list them, and exit with 2. Default: one error stops all.",
            group=READING,
        ),
    ] = False,
    layout: Annotated[
        str | None,
        Option(
            "Meaning of the folders below PATH, as in [[watch.folders]]: {workload}, {version}, {config.KEY}, "
            "{tag.KEY} or *, such as '{workload}/{version}/*'. Default: none.",
            "PARTS",
        ),
    ] = None,
    spooled: Annotated[
        bool,
        Option(
            "Ingest the profiles that jobs queued and could not deliver, under the labels of each job; --version and "
            "--workload are for jobs without. PATH: other spools than the default ones. Default: read PATH."
        ),
    ] = False,
    dask: Annotated[
        str | None,
        Option(
            "Read the profiles on the workers of this Dask cluster, such as tcp://head:8786, which must see the same "
            "paths and have this version of tracker. Default: read here.",
            "ADDRESS",
            group=READING,
        ),
    ] = None,
    again: Annotated[
        bool,
        Option(
            "With --spooled: also profiles that failed recently or were given up. Default: retry after 1 minute, then "
            "after twice as long each time, at most a day, 20 times."
        ),
    ] = False,
    db: Database = None,
) -> None:
    """Read profiles into the database as runs of a version.

    A file that is stored already changes nothing. All files of a call are stored or none, unless --keep-going.

    \b
    Example:
      tracker ingest run1.pt.trace.json.gz --version v1 --workload resnet50
      tracker ingest ./profiles_of_v2 --version v2 --workload resnet50 --config batch=32
      tracker ingest ./benchmark_logs     # one run per log, labelled by their names
      tracker ingest ./profiles --layout '{workload}/{version}/*' --keep-going
      tracker ingest run1.trk             # what tracker pack wrote on another machine
      tracker ingest --spooled            # what jobs queued while the database was away
    """
    from msgspec.structs import asdict, replace

    from tracker import config
    from tracker.cli import database

    settings = config.load(db)
    given = asdict(labels)
    version, workload = given.pop("version"), given.pop("workload")
    if spooled:
        if any(given.values()) or reading != Reading() or as_run or keep_going or layout or dask:
            raise UsageError(
                "--spooled takes each profile as its job queued it",
                remedy="leave out all other options except --version and --workload",
            )
        return ingest_spooled(settings, paths, again=again, version=version, workload=workload)
    if again:
        raise UsageError("--again needs --spooled", remedy="leave it out: a profile that is named is always read")
    if not paths:
        raise UsageError("no profile is named", remedy="give its path, or --spooled for what jobs queued")
    for path in paths:
        check_path(path)
    # what takes long begins first: much is imported before a database can be queried
    import_numpy()
    otherwise = defaults(settings)
    if workload is None and otherwise.workload is None and not _states_workload(paths, reading.format):
        otherwise = replace(otherwise, workload=database.only_workload(settings.database))
    with ExitStack() as stack:
        from tracker import intake

        options = intake.IngestOptions(
            **given, **asdict(replace(reading, max_bytes=settings.max_bytes)), as_run=as_run, keep_going=keep_going,
            otherwise=otherwise,
        )  # fmt: skip
        unplaced: Sequence[NotRecognised] = ()
        if layout is not None:
            from tracker.watch.find import laid_out

            placed, unplaced = laid_out(paths, layout)
            paths, options = list(placed), replace(options, places=placed)
        if dask is None:
            stack.enter_context(intake.ahead(paths, options))
        _store_runs(paths, settings, options, (version, workload), dask, unplaced)


def defaults(settings: Settings) -> Sidecar:
    """Version and workload of the environment, else of the settings file, for profiles without."""
    from tracker.intake import Sidecar

    version = os.environ.get("TRACKER_VERSION") or settings.version
    if version == "git":
        from tracker.hooks import environment

        version = environment.capture_git([os.getcwd()], 10.0).get("version")
    return Sidecar(version=version or None, workload=os.environ.get("TRACKER_WORKLOAD") or settings.workload)


def _states_workload(paths: Sequence[Path], format: str | None) -> bool:
    """Whether a profile is a training log, which states its model."""
    from tracker import readers

    return any("paddle_log" in seen.claims for path in paths for seen in readers.survey(path, format))


def _store_runs(
    paths: Sequence[Path],
    settings: Settings,
    options: IngestOptions,
    labels: tuple[str | None, str | None],
    dask: str | None,
    unplaced: Sequence[NotRecognised],
) -> None:
    """Read, store and judge, and print what it means. Exit code 2 where a profile could not be read."""
    # imported now, while another process may read already, for what is printed at the end
    from msgspec.structs import replace

    from tracker import intake
    from tracker.cli import database, ingested, versions  # noqa: F401
    from tracker.cli.output import emit, note, progress
    from tracker.compare.references import means  # noqa: F401
    from tracker.readers import not_recognised_line
    from tracker.regressions import tracks  # noqa: F401
    from tracker.regressions.inbox import findings  # noqa: F401
    from tracker.reports.commands import command  # noqa: F401
    from tracker.reports.signs import encodable  # noqa: F401
    from tracker.store.order import seems_older_than  # noqa: F401

    version, workload = labels
    with ExitStack() as stack:
        read_with = None
        if dask is not None:
            from tracker.intake.cluster import cluster

            read_with = stack.enter_context(cluster(dask))
        report = stack.enter_context(progress(of_bytes=dask is None))
        store = stack.enter_context(database.writing(settings, create=True, late=True))
        before = ingested.recovered(store) if store.is_made else frozenset()
        options = replace(options, on_progress=report, read_with=read_with)
        results = intake.ingest(store, paths, version=version, workload=workload, options=options)
        hints = [*ingested.order_hints(store, results), *ingested.mixture_hints(store, results)]
        lines = [*ingested.run_lines(store, results), ingested.meaning(store, results, before)]
    for text in ingested.warnings_of(results):
        note(f"warning: {text}")
    for text in hints:
        note(f"note: {text}")
    emit("\n".join(lines))
    left = sorted([*unplaced, *(one for result in results for one in result.not_recognised)])
    if left:
        note(not_recognised_line(left))
    failed = [line for result in results for line in result.failed]
    for line in failed:
        note(f"not read: {line}")
    if failed:
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def ingest_spooled(
    settings: Settings,
    folders: Sequence[Path] | None,
    *,
    again: bool = False,
    version: str | None = None,
    workload: str | None = None,
) -> None:
    """Ingest what waits in `folders`, by default the spools of this database; print what came in and what stays.

    `version`, `workload`: of jobs without. `again`: also what was tried recently, or given up. Exit code 2 where
    something could not be read. Without entries no database is made.
    """
    from tracker import intake
    from tracker.cli import database, ingested
    from tracker.cli.output import emit, note
    from tracker.config import spools
    from tracker.intake.spooled import ATTEMPTS

    again = again or bool(version or workload)  # what lacked it was tried just now
    unsaid = intake.Sidecar(version=version, workload=workload)
    places = spools.spools_of(settings) if folders is None else list(folders)
    done: list[intake.Spooled] = []
    results: list[intake.IngestResult] = []
    lines: list[str] = []
    if any(again or not one.given_up for place in places for one in intake.waiting(place)):
        with database.writing(settings, create=True) as store:
            for place in places:
                done += intake.take_spooled(store, place, max_bytes=settings.max_bytes, again=again, unsaid=unsaid)
            results = [result for one in done for result in one.results]
            lines = ingested.run_lines(store, results)
    left = [one for place in places for one in intake.waiting(place)]
    for text in ingested.warnings_of(results):
        note(f"warning: {text}")
    for one in done:
        if one.error is not None:
            state = f"given up, see {one.entry}" if one.given_up else f"attempt {one.attempts} of {ATTEMPTS}"
            note(f"{one.error} ({state})")
    if lines:
        emit("\n".join(lines))
    if folders is None:
        for shut, problem in spools.shut_spools_of(settings):
            note(f"warning: {shut}: {problem}")
        for name, count in _waiting_elsewhere(places).items():
            note(f"note: {counted(count, 'profile')} waiting for another database, {name}; name it with --db")
    tried = {one.entry for one in done}
    for each in left:
        if each.entry not in tried and not each.given_up:
            why = without_place(each.why, each.profile)
            moment = f", next attempt {format_moment(each.next_try_ns)} UTC" if each.next_try_ns else ""
            note(f"note: {each.profile or each.entry} waits{moment}{f': {why}' if why else ''}")
    given_up = sum(one.given_up for one in left)
    delivered = sum(one.error is None for one in done)
    parts = [f"{counted(delivered, 'profile')} delivered" if done else "nothing to deliver"]
    parts += [f"{len(left) - given_up} waiting"] if len(left) > given_up else []
    parts += [f"{given_up} given up"] if given_up else []
    emit(f"{', '.join(parts)}.{'  Next: tracker runs' if delivered else ''}")
    if any(one.error is not None for one in done):
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def _waiting_elsewhere(own: Sequence[Path]) -> dict[str, int]:
    """Other databases -> the profiles that wait for them in spools of this user."""
    from tracker import intake
    from tracker.hooks import places

    found: dict[str, int] = {}
    for one in intake.waiting(Path(places.root(os.environ))):
        if not one.given_up and not any(place in one.entry.parents for place in own):
            name = one.database or f"that of {one.entry.parent}"
            found[name] = found.get(name, 0) + 1
    return found
