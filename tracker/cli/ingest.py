"""`tracker ingest`: profiles into the database, those that jobs queued included, and what it prints: a line per run,
warnings with the captures that they concern, and what it means.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec.structs import asdict, replace

from tracker import config, intake
from tracker.api.arguments import opened
from tracker.cli import database
from tracker.cli.clones import SHALLOW, is_merge_base_lost
from tracker.cli.ingest_summary import Standing, meaning, standing
from tracker.cli.options import Database, Labels
from tracker.cli.output import aligned, emit, next_lines, note, progress
from tracker.cli.uncompiled import note_slower_reading
from tracker.config import spools
from tracker.errors import EXIT_COULD_NOT_RUN, UsageError, without_place
from tracker.lazy import import_numpy
from tracker.limits.deadline import READ_S
from tracker.profile.branches import branch_of
from tracker.reports.commands import command
from tracker.results.options import READING, Option, Reading
from tracker.units import counted, format_moment, format_ns, format_numbers, ranges

if TYPE_CHECKING:
    from tracker.config import Settings
    from tracker.intake import IngestOptions, IngestResult, Pack
    from tracker.readers import NotRecognised
    from tracker.store import Store

_LIKE_MAIN: Final = ("main", "master", "trunk", "develop", "default", "mainline")
"""What many repositories call their main line."""
_NAMED: Final = 3
"""So many are named; more are counted."""
_DIFFERENT: Final = 2.0
"""Ratio of step times from which runs are hardly of one model: repeats differ by a few percent."""


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
            "Meaning of the folders below PATH, as in [[watch.folders]]: {workload}, {branch}, {version}, "
            "{config.KEY}, {tag.KEY} or *, such as '{workload}/{version}/*'. Default: none.",
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
            "Read the files of stored runs again where an earlier version of tracker measured steps or named kernels "
            "otherwise, or kept no times by calls, so that old and new runs are compared again; --version and "
            "--workload choose runs. With --spooled: also profiles that failed recently or were given up. Default: "
            "read PATH; retry a queued profile after 1 minute, then after twice as long each time, at most a day, 20 "
            "times."
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
    from tracker import readers

    settings = config.load(db)
    given = asdict(labels)
    version, workload = given.pop("version"), given.pop("workload")
    if spooled:
        if any(given.values()) or reading != Reading() or as_run or keep_going or layout or dask:
            raise UsageError(
                "--spooled takes each profile as its job queued it",
                remedy="leave out all other options except --version and --workload",
            )
        return ingest_spooled(settings, paths, again, intake.Sidecar(version=version, workload=workload))
    if again:
        if paths or any(given.values()) or as_run or keep_going or layout or dask:
            raise UsageError(
                "--again reads the files of stored runs, under the labels that they have",
                remedy="leave out PATH; --version and --workload choose runs",
            )
        options = intake.IngestOptions(
            **asdict(replace(reading, max_bytes=settings.max_bytes, loaders=settings.loaders))
        )
        return read_stored_again(settings, version, workload, options)
    if not paths:
        raise UsageError("no profile is named", remedy="give its path, or --spooled for what jobs queued")
    # what takes long begins first: much is imported before a database can be queried
    import_numpy()
    otherwise = defaults(settings)
    if workload is None and otherwise.workload is None:
        seen = (one for path in paths for one in readers.survey(path, reading.format))
        if not any("training_log" in one.claims for one in seen):  # a training log states its model
            otherwise = replace(otherwise, workload=database.only_workload(settings.database))
    with ExitStack() as stack:
        reading = replace(reading, max_bytes=settings.max_bytes, loaders=settings.loaders)
        options = intake.IngestOptions(
            **given, **asdict(reading), as_run=as_run, keep_going=keep_going,
            otherwise=otherwise, main_branch=settings.main_branch,
        )  # fmt: skip
        unplaced: Sequence[NotRecognised] = ()
        if layout is not None:
            from tracker.watch.find import laid_out

            placed, unplaced = laid_out(paths, layout)
            paths, options = list(placed), replace(options, places=placed)
        if dask is None:
            stack.enter_context(intake.ahead(paths, options))
        _store_runs(paths, settings, options, (version, workload), dask, unplaced)


def defaults(settings: Settings) -> intake.Sidecar:
    """Version and workload of the environment, else of the settings file, for profiles without."""
    version = os.environ.get("TRACKER_VERSION") or settings.version
    if version == "git":
        from tracker.hooks import environment

        version = environment.capture_git([os.getcwd()], 10.0).get("version")
    return intake.Sidecar(
        version=version or None,
        workload=os.environ.get("TRACKER_WORKLOAD") or settings.workload,
        branch=os.environ.get("TRACKER_BRANCH") or None,
    )


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
    from tracker.compare.references import means  # noqa: F401
    from tracker.readers import not_recognised_line
    from tracker.regressions import track  # noqa: F401
    from tracker.regressions.inbox import findings  # noqa: F401
    from tracker.reports.cells import deciding_runs  # noqa: F401
    from tracker.store.versions import seems_older_than  # noqa: F401

    version, workload = labels
    with ExitStack() as stack:
        read_with = None
        if dask is not None:
            from tracker.intake.cluster import cluster

            read_with = stack.enter_context(cluster(dask))
        report = stack.enter_context(progress(of_bytes=dask is None))
        store = stack.enter_context(opened(settings, create=True, late=True))
        before = standing(store) if store.is_made else Standing()
        options = replace(options, on_progress=report, read_with=read_with)
        results = intake.ingest(store, paths, version=version, workload=workload, options=options)
        hints = [*order_hints(store, results), *mixture_hints(store, results), *branch_hints(store, results)]
        lines = [*run_lines(store, results), meaning(store, results, before)]
    for text in warnings_of(results):
        note(f"warning: {text}")
    for text in hints:
        note(f"note: {text}")
    note_slower_reading()
    emit("\n".join(lines))
    left = sorted([*unplaced, *(one for result in results for one in result.not_recognised)])
    if left:
        note(not_recognised_line(left))
    failed = [line for result in results for line in result.failed]
    for line in failed:
        note(f"not read: {line}")
    if failed:
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def read_stored_again(settings: Settings, version: str | None, workload: str | None, options: IngestOptions) -> None:
    """Read the files of stored runs again that an earlier version of tracker read; print what came of each.

    Exit code 2 where a run stays as it is, because its files are gone or changed.
    """
    with opened(settings) as store, progress(of_bytes=True) as report:
        options = replace(options, on_progress=report)
        done = intake.ingest_again(store, version=version, workload=workload, options=options)
        lines = run_lines(store, done.results)
    for text in warnings_of(done.results):
        note(f"warning: {text}")
    for run_id, why in done.left.items():
        note(f"run {run_id} stays as it is: {why}")
    parts = [f"{counted(len(done.results), 'run')} read again"]
    parts += [f"{len(done.left)} left"] if done.left else []
    parts += [f"{done.up_to_date} up to date"] if done.up_to_date else []
    emit("\n".join([*lines, f"{', '.join(parts)}."]))
    if done.left:
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def ingest_spooled(settings: Settings, folders: Sequence[Path] | None, again: bool, unsaid: intake.Sidecar) -> None:
    """Ingest what waits in `folders`, by default the spools of this database; print what came in and what stays.

    `unsaid`: version and workload of jobs without. `again`: also what was tried recently, or given up. Exit code 2
    where something could not be read. Without entries no database is made.
    """
    from tracker.intake.spooled import ATTEMPTS

    again = again or unsaid != intake.Sidecar()  # what lacked it was tried just now
    places = spools.spools_of(settings) if folders is None else list(folders)
    done: list[intake.Spooled] = []
    results: list[intake.IngestResult] = []
    lines: list[str] = []
    if any(again or not one.given_up for place in places for one in intake.waiting(place)):
        with opened(settings, create=True) as store, intake.Toucher(READ_S) as touch:
            for place in places:
                done += intake.take_spooled(
                    store, place, max_bytes=settings.max_bytes, loaders=settings.loaders, again=again,
                    unsaid=replace(unsaid, main_branch=settings.main_branch), toucher=touch,
                )  # fmt: skip
            results = [result for one in done for result in one.results]
            lines = run_lines(store, results)
    left = [one for place in places for one in intake.waiting(place)]
    for text in warnings_of(results):
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
    emit(f"{', '.join(parts)}.{next_lines('tracker runs') if delivered else ''}")
    if any(one.error is not None for one in done):
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def _waiting_elsewhere(own: Sequence[Path]) -> dict[str, int]:
    """Other databases -> the profiles that wait for them in spools of this user."""
    from tracker.hooks import places

    found: dict[str, int] = {}
    for one in intake.waiting(Path(places.root(os.environ))):
        if not one.given_up and not any(place in one.entry.parents for place in own):
            name = _without_user(one.database) or f"that of {one.entry.parent}"
            found[name] = found.get(name, 0) + 1
    return found


def _without_user(database: str) -> str:
    """Return what an entry says of its database; hooks leave user and password out, but others write entries too."""
    scheme, separator, rest = database.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if separator else database


def run_lines(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """A line per run: `run 4  small_gpt v08  cpu  rank 0  5 steps  123.90 ms   trace.json.gz`, in columns."""
    from tracker.store import queries

    if not results:
        return []
    step_ns = dict(queries.runs_by_id(store, [one.run_id for one in results]).rows("run_id", "step_ns"))
    names = _names_of(results)
    formats = {name for result in results for name in result.formats}
    rows = []
    for result in results:
        states = {
            "already stored": result.already,
            "ranks added": result.joined,
            "details restored": result.restored,
            "another cycle counts": result.renewed,
            f"a document of run:{result.document_of}": result.document_of is not None,
            "documents added": result.documented,
        }
        files = [names[capture.path] for capture in result.captures] + [names[path] for path in result.documents]
        files = list(dict.fromkeys(files))
        row = [
            f"run {result.run_id}",
            f"{result.workload} {result.version}",
            result.device,
            f"rank {result.ranks[0]}" if len(result.ranks) == 1 else f"ranks {ranges(result.ranks)}",
            counted(result.steps, "step"),
            format_ns(step_ns.get(result.run_id)),
            *([" and ".join(result.formats)] if len(formats) > 1 else []),
            ", ".join(files) if len(files) <= _NAMED else f"{files[0]} and {len(files) - 1} more",
        ]
        state = next((words for words, holds in states.items() if holds), "")
        rows.append([*row[:-1], f"{row[-1]}{f'  ({state})' if state else ''}"])
    return aligned(rows)


def short_names(labels: Mapping[str, str]) -> dict[str, str]:
    """Path -> as much of its end as no other path shares, and that is not its label, as a folder of a version has it.

    >>> short_names({"/a/rank0": "v1", "/b/rank0": "v1", "/c/rank1": "v1"})
    {'/a/rank0': 'a/rank0', '/b/rank0': 'b/rank0', '/c/rank1': 'rank1'}
    """
    endings = Counter(path.parts[-count:] for path in map(Path, labels) for count in range(1, len(path.parts) + 1))
    names = {}
    for path, label in labels.items():
        parts = Path(path).parts
        ends = (parts[-count:] for count in range(1, len(parts)))
        names[path] = next((str(Path(*end)) for end in ends if endings[end] == 1 and str(Path(*end)) != label), path)
    return names


def _names_of(results: Sequence[IngestResult]) -> dict[str, str]:
    labels = {}
    for result in results:
        for path in (*(capture.path for capture in result.captures), *result.documents):
            labels[path] = result.version
    return short_names(labels)


def warnings_of(results: Sequence[IngestResult]) -> list[str]:
    """Each distinct warning once, with the captures that it concerns where several were read, those on runs first."""
    names = _names_of(results)
    folders = {result.run_id: os.path.commonpath([os.path.abspath(c.path) for c in result.captures] or [""])
               for result in results}  # fmt: skip
    short = short_names({folders[result.run_id]: result.version for result in results})
    places: dict[str, list[str]] = {}
    counts: Counter[str] = Counter(text for one in results for each in one.captures for text in {*each.warnings})
    for result in results:
        for warning in dict.fromkeys(text for capture in result.captures for text in capture.warnings):
            own = [capture for capture in result.captures if warning in capture.warnings]
            ranks = ", ".join(f"rank {capture.rank}" for capture in own)  # of a run of several captures
            where = names[own[0].path] if len(result.captures) == 1 else f"{ranks} of {short[folders[result.run_id]]}"
            places.setdefault(warning, []).append(where)
    total = sum(len(result.captures) for result in results)
    of_runs = dict.fromkeys(warning for result in results for warning in result.warnings if warning not in places)
    return [*of_runs, *(_with_places(text, where, counts[text], total, "capture") for text, where in places.items())]


def warnings_of_pack(made: Pack) -> list[str]:
    """Each distinct warning once, with the profiles that it concerns where several were packed."""
    names = short_names(dict.fromkeys(made.profiles, ""))
    return [
        _with_places(warning, [names[path] for path in places], len(places), len(names), "profile")
        if places
        else warning
        for warning, places in made.warnings.items()
    ]


def _with_places(warning: str, who: Sequence[str], count: int, total: int, what: str) -> str:
    """`warning` about `who`, which are `count` of `total`: by their names, or how many they are."""
    if total == 1:
        return warning
    if count > _NAMED:
        return f"{warning} ({'all ' if count == total else ''}{counted(count, what)})"
    return f"{', '.join(who)}: {warning}"


def order_hints(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """A hint for each new version that came after one that seems newer, with the command that moves it."""
    from tracker.store import queries
    from tracker.store.versions import seems_older_than

    hints = []
    for workload in dict.fromkeys(result.workload for result in results):
        created = Counter(result.version for result in results if result.created and result.workload == workload)
        known = queries.runs_of_versions(store, workload)
        labels = list(known)
        for place, (label, runs) in enumerate(known.items()):
            newer = seems_older_than(label, labels[:place]) if created[label] == runs > 0 else None
            if newer is not None:
                words = command("tracker", "versions", "order", label, "--before", newer, "--workload", workload)
                hints.append(f"{label} is ordered after {newer}, which came in earlier; if it is older: {words}")
    return hints


def branch_hints(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """What the versions of a branch that came in are judged from: which version of the main line, and why that one."""
    from tracker.regressions import judgement
    from tracker.regressions.track import NO_NAMES, read_tracks

    added = [result.run_id for result in results if result.created and branch_of(result.workload)]
    if not added:
        return []
    track_keys = judgement.tracks_of(store, added)
    hints = []
    for track in read_tracks(store, dict.fromkeys(track_keys, NO_NAMES)):
        for version, base in track.bases.items():
            if not any(run.run_id in added for run in track.runs_of(version)):
                continue
            start = f"{track.labels[version]} is judged against the main line"
            hints.append(f"{start} at {base.label}, {base.why}" if base else f"{start}, which has no runs like it yet")
    if is_merge_base_lost(store, added):
        hints.append(SHALLOW)
    branches = dict.fromkeys(branch_of(result.workload) for result in results)
    hints += [
        f'{name} is taken for a branch; if it is the main line now: main = "{name}" under [versions] of the settings '
        "file, and tracker runs edit for runs that are stored"
        for name in branches
        if name in _LIKE_MAIN
    ]
    return list(dict.fromkeys(hints))


def mixture_hints(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """A hint for runs that count as repeats of one version, but whose steps are too different for one model."""
    from tracker.store import queries

    if len(results) < 2:
        return []
    stored = queries.runs_by_id(store, [one.run_id for one in results])
    repeats: dict[tuple[str, ...], dict[int, float]] = {}
    for run_id, step_ns, *labels in stored.rows(
        "run_id", "step_ns", "version", "workload", "vendor", "device", "configuration"
    ):
        if step_ns:
            repeats.setdefault(tuple(labels), {})[int(run_id)] = step_ns
    return [
        f"runs {format_numbers(sorted(steps))} count as repeats of {version}, but their steps take "
        f"{format_ns(min(steps.values()))} to {format_ns(max(steps.values()))}; if their models differ: "
        f"tracker runs edit {max(steps)} --workload NAME, or ingest each with --config KEY=VALUE"
        for (version, *_), steps in repeats.items()
        if max(steps.values()) >= _DIFFERENT * min(steps.values())
    ]
