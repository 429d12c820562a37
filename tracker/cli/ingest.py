"""`tracker ingest`: profiles into the database."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracker.cli import _labels as labels
from tracker.cli import _options as options
from tracker.cli._ingested import (
    listed,
    names_of,
    new_regressions,
    newly_recovered,
    order_hints,
    recovered,
    warnings_of,
)
from tracker.errors import EXIT_COULD_NOT_RUN, UsageError
from tracker.lazy import import_numpy
from tracker.units import counted, ranges

if TYPE_CHECKING:
    from tracker.config import Settings
    from tracker.intake import IngestOptions, IngestResult, Sidecar
    from tracker.intake.pieces import ReadWith
    from tracker.readers import NotRecognised
    from tracker.store import Store


def ingest(  # one parameter per option
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...", help="Profiles: files, or folders that are searched for them.", show_default=False
        ),
    ] = None,
    version: labels.Version = None,
    workload: labels.Workload = None,
    commit: labels.Commit = None,
    note: labels.Note = None,
    config: labels.Configuration = None,
    tag: labels.Tags = None,
    device: labels.Device = None,
    expect_ranks: labels.ExpectRanks = None,
    as_run: Annotated[
        bool,
        typer.Option(
            "--as-run",
            help="All files are ranks of one run. Default: files with distinct ranks, equal world size and overlapping "
            "times are one run, anything else is a run each.",
        ),
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "--input-format",
            metavar="NAME",
            help="The profiler's format, when it is not recognised or two formats claim a file. Default: recognise it.",
            show_default=False,
        ),
    ] = None,
    flow_category: options.FlowCategory = None,
    allow_partial: options.AllowPartial = False,
    skip_bad_rows: options.SkipBadRows = False,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Leave out profiles that cannot be read, list them, and exit with code 2. Default: one that cannot be "
            "read keeps all out.",
        ),
    ] = False,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="PARTS",
            help="What the folders below each PATH mean, as in [[watch.folders]]: {workload}, {version}, {config.KEY}, "
            "{tag.KEY} or *, such as '{workload}/{version}/*'. What fits no layout is listed. Default: folders mean "
            "nothing.",
            show_default=False,
        ),
    ] = None,
    spooled: Annotated[
        bool,
        typer.Option(
            "--spooled",
            help="Take the profiles that jobs queued and could not deliver, each under the labels of its job; "
            "--version and --workload are those of jobs that said none. PATH: spools, if others than the default ones. "
            "Default: read PATH.",
        ),
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Read the profiles on the workers of this Dask cluster, such as tcp://head:8786, which see them under "
            "the same paths and have this tracker; this process writes the runs. Default: read here.",
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="With --spooled: also what was tried a short time ago, and what was given up. Default: what failed is "
            "tried after 1 minute, then after twice as long each time, at most a day; after 20 times it is given up.",
        ),
    ] = False,
    db: options.Database = None,
) -> None:
    """Read profiles into the database as runs of a version.

    The same file again changes nothing. All files of one call come in, or none; with --keep-going all that can be read.
    Files that no reader takes are listed at the end.

    \b
    Example:
      tracker ingest run1.pt.trace.json.gz --version v1 --workload resnet50
      tracker ingest ./profiles_of_v2 --version v2 --workload resnet50 --config batch=32
      tracker ingest ./benchmark_logs     # one run per log, labelled by their names
      tracker ingest ./profiles --layout '{workload}/{version}/*' --keep-going
      tracker ingest run1.trk             # what tracker pack wrote on another machine
      tracker ingest --spooled            # what jobs queued while the database was away
      tracker ingest ./archive --dask tcp://head:8786 --workload resnet50
    """
    from tracker import config as configuration

    settings = configuration.load(db)
    if spooled:
        from tracker.cli import _spooled

        given = (commit, note, config, tag, device, expect_ranks, format, flow_category, dask)
        if any(given) or as_run or allow_partial or skip_bad_rows or keep_going or layout:
            raise UsageError(
                "--spooled takes each profile as its job queued it",
                remedy="leave out the other options, but --version and --workload for jobs that said none",
            )
        return _spooled.take(settings, paths, again=again, version=version, workload=workload)
    if again:
        raise UsageError("--again goes with --spooled", remedy="leave it out: a profile that is named is always read")
    if not paths:
        raise UsageError("no profile is named", remedy="give its path, or --spooled for what jobs queued")
    for path in paths:
        options.check_path(path)
    options.one_line("--note", note)
    options.one_line("--commit", commit)
    said: dict[str, Any] = {
        "flow_category": flow_category,
        "allow_partial": allow_partial,
        "skip_bad_rows": skip_bad_rows,
        "max_bytes": settings.max_bytes,
    }
    # what takes long begins first: much is imported before a database can be asked anything
    import_numpy()
    with ExitStack() as stack:
        from tracker import intake

        chosen = intake.IngestOptions(
            commit=commit,
            note=note,
            configuration=options.pairs(config, "--config"),
            tags=options.pairs(tag, "--tag"),
            device=device,
            expect_ranks=expect_ranks,
            as_run=as_run,
            format=format,
            otherwise=_of_environment(),
            keep_going=keep_going,
            **said,
        )
        unplaced: Sequence[NotRecognised] = ()
        if layout is not None:
            paths, chosen, unplaced = _laid_out(paths, layout, chosen)
        if dask is None:
            stack.enter_context(intake.ahead(paths, chosen))
        _take_in(paths, settings, chosen, version=version, workload=workload, dask=dask, unplaced=unplaced)


def _laid_out(
    paths: Sequence[Path], layout: str, chosen: IngestOptions
) -> tuple[list[Path], IngestOptions, Sequence[NotRecognised]]:
    """The profiles that the layout has below the folders `paths`, what it says of each, and the files that it has no
    place for.
    """
    from msgspec.structs import replace

    from tracker.watch.find import laid_out

    placed, unplaced = laid_out(paths, layout)
    return list(placed), replace(chosen, places=placed), unplaced


def _of_environment() -> Sidecar:
    """What TRACKER_VERSION and TRACKER_WORKLOAD say, where neither an option nor a sidecar does."""
    from tracker.intake import Sidecar

    return Sidecar(
        version=os.environ.get("TRACKER_VERSION") or None, workload=os.environ.get("TRACKER_WORKLOAD") or None
    )


def _take_in(
    paths: Sequence[Path],
    settings: Settings,
    chosen: IngestOptions,
    *,
    version: str | None,
    workload: str | None,
    dask: str | None,
    unplaced: Sequence[NotRecognised] = (),
) -> None:
    """Reads, writes, judges, and says what came of it. Exit code 2 where a profile could not be read."""
    # what says at the end what came of it is imported, too, while another process may read already
    from msgspec.structs import replace

    from tracker import intake
    from tracker.cli import _next as proposals  # noqa: F401
    from tracker.cli import _store
    from tracker.cli._output import emit, tell
    from tracker.cli._progress import progress
    from tracker.readers import not_recognised_line
    from tracker.regressions.inbox import findings  # noqa: F401
    from tracker.reports.commands import command  # noqa: F401
    from tracker.reports.signs import encodable  # noqa: F401
    from tracker.store.order import seems_older_than  # noqa: F401

    with (
        _reading_on(dask) as read_with,
        progress(of_bytes=dask is None) as report,
        _store.writing(settings, create=True, late=True) as store,
    ):
        before = recovered(store) if store.is_made else frozenset()
        how = replace(chosen, on_progress=report, read_with=read_with)
        results = intake.ingest(store, paths, version=version, workload=workload, options=how)
        hints = order_hints(store, results)
        regressions = new_regressions(store, results)
        over = newly_recovered(store, before)
        proposed = _proposed(store, results, regressions, over)
    names = names_of(results)
    formats = {name for result in results for name in result.formats}
    for warning in warnings_of(results, names):
        tell(f"warning: {warning}")
    for hint in hints:
        tell(f"note: {hint}")
    for result in results:
        emit(describe(result, names, formats))
    emit(summary(results, regressions, proposed=proposed, over=over))
    left = sorted([*unplaced, *(one for result in results for one in result.not_recognised)])
    if left:
        tell(not_recognised_line(left))
    failed = [line for result in results for line in result.failed]
    for line in failed:
        tell(f"not read: {line}")
    if failed:
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def _reading_on(address: str | None) -> AbstractContextManager[ReadWith | None]:
    """What reads profiles: the cluster at `address`, None for this process."""
    if address is None:
        return nullcontext()
    from tracker.intake.cluster import cluster

    return cluster(address)


def describe(result: IngestResult, names: Mapping[str, str], formats: Collection[str] = ()) -> str:
    """One line on a run: `run:1  new  v1 of gpt on cpu, rank 0, 5 steps: trace.json.gz`.

    `names`: of its captures, by their path; `formats`: of all runs of the call, where they are several the line names
    its own.
    """
    known = f", {' and '.join(result.formats)}" if len(formats) > 1 else ""
    states = {"already in": result.already, "ranks added": result.joined, "details restored": result.restored}
    state = next((words for words, holds in states.items() if holds), "new")
    what = f"{result.version} of {result.workload} on {result.device}"
    ranks = f"rank {result.ranks[0]}" if len(result.ranks) == 1 else f"ranks {ranges(result.ranks)}"
    held = f"{ranks}, {counted(result.steps, 'step')}{known}"
    return f"run:{result.run_id}  {state}  {what}, {held}: {listed(result, names)}"


def summary(
    results: list[IngestResult],
    regressions: Mapping[str, int] | None = None,
    over: Sequence[str] = (),
    *,
    proposed: str | None = None,
) -> str:
    """The last line: what changed in the database. `regressions`: new ones by workload; `over`: the workload of each
    finding that has recovered; `proposed`: the next command, default the last run.
    """
    regressions = regressions or {}
    new = sum(result.created for result in results)
    joined = sum(result.joined for result in results)
    already = sum(result.already for result in results)
    restored = sum(result.restored for result in results)
    parts = [f"{counted(new, 'new run')}"] if new or not (joined or already or restored) else []
    parts += [f"ranks added to {counted(joined, 'run')}"] if joined else []
    parts += [f"details of {counted(restored, 'run')} restored"] if restored else []
    parts += [f"{counted(already, 'run')} already in, unchanged"] if already else []
    parts += [f"{counted(sum(regressions.values()), 'finding')} of what got slower"] if regressions else []
    parts += [f"{counted(len(over), 'finding')} recovered"] if over else []
    return f"{', '.join(parts)}.  Next: {proposed or f'tracker show run:{results[-1].run_id}'}"


def _proposed(
    store: Store, results: Sequence[IngestResult], regressions: Mapping[str, int], over: Sequence[str]
) -> str | None:
    """What got slower; else what has recovered; else, after a series of training logs, what each version brought; else
    the newest version that came in against the one before it; else nothing.
    """
    from tracker.cli import _next as proposals
    from tracker.reports.commands import command

    if regressions:
        return command("tracker", "findings", "--new", "--workload", next(iter(regressions)))
    if over:
        return command("tracker", "findings", "--state", "recovered", "--workload", over[0])
    workloads = {result.workload for result in results}
    logs = all(result.formats == ("paddle_log",) for result in results)
    if logs and len({result.version for result in results}) > 1 and len(workloads) == 1:
        return command("tracker", "log", "--workload", workloads.pop())
    last = results[-1]
    if all(result.already for result in results):
        return None
    own = {result.version for result in results if result.workload == last.workload}
    return proposals.diff_of(store, last.workload, among=own)
