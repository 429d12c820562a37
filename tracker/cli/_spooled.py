"""Taking what jobs queued, as `tracker ingest --spooled` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tracker.errors import EXIT_COULD_NOT_RUN, without_place
from tracker.units import counted, format_moment

if TYPE_CHECKING:
    from tracker.config import Settings
    from tracker.intake import Spooled


def take(
    settings: Settings,
    folders: Sequence[Path] | None,
    *,
    again: bool = False,
    version: str | None = None,
    workload: str | None = None,
) -> None:
    """Ingest what waits in `folders`, by default the spools of this database; say what came in and what stays.

    `version`, `workload`: of jobs that said none. `again`: also what was tried a short time ago, or given up. Exit code
    2 where something could not be read. Without entries no database is made.
    """
    from tracker import intake
    from tracker.cli import _store
    from tracker.cli._output import emit, tell
    from tracker.config import spools

    again = again or bool(version or workload)  # what lacked it was tried just now
    unsaid = intake.Sidecar(version=version, workload=workload)
    places = spools.spools_of(settings) if folders is None else list(folders)
    done: list[Spooled] = []
    if any(again or not one.given_up for place in places for one in intake.waiting(place)):
        with _store.writing(settings, create=True) as store:
            for place in places:
                done += intake.take_spooled(store, place, max_bytes=settings.max_bytes, again=again, unsaid=unsaid)
    left = [one for place in places for one in intake.waiting(place)]
    _report(done)
    for shut, problem in [] if folders is not None else spools.shut_spools_of(settings):
        tell(f"warning: {shut}: {problem}")
    for note in [] if folders is not None else _notes_on_others(places):
        tell(f"note: {note}")
    tried = {one.entry for one in done}
    for one in left:
        if one.entry not in tried and not one.given_up:
            why = without_place(one.why, one.profile)
            moment = f", tried again from {format_moment(one.next_try_ns)} UTC on" if one.next_try_ns else ""
            tell(f"note: {one.profile or one.entry} waits{moment}{f': {why}' if why else ''}")
    given_up = sum(one.given_up for one in left)
    emit(summary(done, len(left) - given_up, given_up))
    if any(one.error is not None for one in done):
        raise typer.Exit(EXIT_COULD_NOT_RUN)


def _notes_on_others(own: Sequence[Path], environ: Mapping[str, str] = os.environ) -> list[str]:
    """How many profiles wait in spools of this user that are for other databases than `own` are, by database."""
    from tracker import intake
    from tracker.hooks import places

    found: dict[str, int] = {}
    for one in intake.waiting(Path(places.root(environ))):
        if not one.given_up and not any(place in one.entry.parents for place in own):
            name = one.database or f"that of {one.entry.parent}"
            found[name] = found.get(name, 0) + 1
    return [
        f"{counted(count, 'profile')} waiting for another database, {name}; name that one with --db"
        for name, count in found.items()
    ]


def _report(done: Sequence[Spooled]) -> None:
    from tracker.cli._ingested import names_of, warnings_of
    from tracker.cli._output import emit, tell
    from tracker.cli.ingest import describe
    from tracker.intake.spooled import ATTEMPTS

    results = [result for one in done for result in one.results]
    names = names_of(results)
    for warning in warnings_of(results, names):
        tell(f"warning: {warning}")
    for one in done:
        if one.error is not None:
            fate = f"given up, see {one.entry}" if one.given_up else f"attempt {one.attempts} of {ATTEMPTS}"
            tell(f"{one.error} ({fate})")
    formats = {name for result in results for name in result.formats}
    for result in results:
        emit(describe(result, names, formats))


def summary(done: Sequence[Spooled], left: int, given_up: int) -> str:
    """The last line: `2 profiles delivered, 1 waits.`"""
    delivered = sum(one.error is None for one in done)
    parts = [f"{counted(delivered, 'profile')} delivered" if done else "nothing to deliver"]
    parts += [f"{left} waiting"] if left else []
    parts += [f"{given_up} given up"] if given_up else []
    return f"{', '.join(parts)}.  Next: tracker runs" if delivered else f"{', '.join(parts)}."
