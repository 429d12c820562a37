"""Where the jobs queue that send to a database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from tracker import config
from tracker.config import DATABASE_VARIABLE, FILE_VARIABLE, Settings
from tracker.errors import SourceError
from tracker.hooks import databases, places

Found = TypeVar("Found")


def spools_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """The spools of all machines for the database of `settings`, however it is named here and however jobs name it.

    A job names it by itself, by its settings file, or not at all where it is the default.
    """
    return [Path(place) for place in _each(settings, environ, places.of_all_machines)]


def shut_spools_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[tuple[Path, str]]:
    """Folders for such spools from which nothing can be taken here, with what is wrong."""
    return [(Path(place), problem) for place, problem in _each(settings, environ, places.shut)]


def _each(
    settings: Settings, environ: Mapping[str, str], look: Callable[[Mapping[str, str]], list[Found]]
) -> list[Found]:
    return list(dict.fromkeys(found for way in _ways(settings, environ) for found in look(way)))


def _ways(settings: Settings, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Environments of jobs that send to this database."""
    bare = {name: value for name, value in environ.items() if name not in (DATABASE_VARIABLE, FILE_VARIABLE)}
    yield {**bare, DATABASE_VARIABLE: settings.database}
    by_file = [{**bare, FILE_VARIABLE: str(settings.file)}] if settings.file is not None else []
    for way in (*by_file, bare):
        try:
            named = config.load(environ=way).database
        except SourceError:  # there is no such file, or it is wrong: no job gets anywhere with it
            continue
        if databases.identity(named) == databases.identity(settings.database):
            yield way
