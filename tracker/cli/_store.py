"""Opening the database that the settings name, for what a command is about to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from tracker.errors import StoreError

if TYPE_CHECKING:
    from tracker.config import Settings
    from tracker.store import Store


@contextmanager
def opened_for(settings: Settings, references: Sequence[str]) -> Iterator[Store | None]:
    """The database, opened for reading; None where all `references` are paths on disk, which need none: a name that may
    be a version is one where there is no database.
    """
    from tracker import compare

    if not any(compare.needs_store(reference) for reference in references):
        yield None
        return
    with ExitStack() as stack:
        store: Store | None = None
        try:
            store = stack.enter_context(reading(settings))
        except StoreError:
            if not all(compare.names_path(reference) for reference in references):
                raise
        yield store


def opened(database: str, *, create: bool, read_only: bool = False, late: bool = False) -> Store:
    """The database, as `open_store` opens it; a StoreError where its path is none that a file can have."""
    import logging

    from tracker.store import open_store, urls

    # else it writes tracebacks to stderr of what it tidies up after an interrupt; errors that matter are raised
    logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())
    try:
        return open_store(database, create=create, read_only=read_only, late=late)
    except OSError as error:
        name = urls.name_of(urls.parse_url(database)) if "://" in database else database
        problem = f"{name}: the database cannot be opened ({error.strerror})"
        raise StoreError(problem, remedy="name another one with --db PATH") from error


@contextmanager
def reading(settings: Settings) -> Iterator[Store]:
    """The database, opened for reading; a TrackerError where there is none yet."""
    with opened(settings.database, create=False, read_only=True) as store:
        yield store


@contextmanager
def writing(settings: Settings, *, create: bool = False, late: bool = False) -> Iterator[Store]:
    """The database, opened for writing; with `create`, a missing one is made, with `late` when it is first used: not by
    a command that is refused before.
    """
    from tracker import config

    if create and settings.origin == "default":
        config.make_default_folder()
    with opened(settings.database, create=create, late=late) as store:
        yield store
