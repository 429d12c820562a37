"""Opening the database that the settings name, for what a command is about to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.config import Settings
    from tracker.store import Store


@contextmanager
def opened_for(settings: Settings, references: Sequence[str]) -> Iterator[Store | None]:
    """The database, opened for reading; None where all `references` are paths on disk, which need none."""
    from tracker import compare

    if not any(compare.needs_store(reference) for reference in references):
        yield None
        return
    with reading(settings) as store:
        yield store


@contextmanager
def reading(settings: Settings) -> Iterator[Store]:
    """The database, opened for reading; a TrackerError where there is none yet."""
    from tracker.store import open_store

    with open_store(settings.database, create=False, read_only=True) as store:
        yield store


@contextmanager
def writing(settings: Settings, *, create: bool = False) -> Iterator[Store]:
    """The database, opened for writing; with `create`, made on first use."""
    from tracker import config
    from tracker.store import open_store

    if create and settings.origin == "default":
        config.make_default_folder()
    with open_store(settings.database, create=create) as store:
        yield store
