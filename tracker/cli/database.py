"""The database of a command, opened as the settings name it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tracker.api.arguments import LastOpened, opened, reading_for
from tracker.errors import StoreError
from tracker.profile.branches import main_of

if TYPE_CHECKING:
    from tracker.results.options import Reading
    from tracker.store import Store

Chosen = TypeVar("Chosen", bound="Reading")


@contextmanager
def compared(db: str | None, references: Sequence[str], chosen: Chosen) -> Iterator[tuple[Store | None, Chosen]]:
    """The database that a comparison of `references` needs, and its options, with what the settings say and the bar."""
    from msgspec.structs import replace

    from tracker import config
    from tracker.cli.output import progress

    settings = config.load(db)
    with progress() as report, reading_for(None, references, settings) as store:
        yield store, replace(chosen, max_bytes=settings.max_bytes, loaders=settings.loaders, on_progress=report)


def run_reference(text: str) -> str:
    """Return `text` as the reference of a run: `run:41` for 41."""
    return f"run:{text}" if text.isascii() and text.isdigit() else text


def only_workload(database: str) -> str | None:
    """The workload of a database that has just one, whatever its branches; None where there is no database yet, or it
    is refused later.
    """
    from tracker.store import queries
    from tracker.store.failures import names_damage

    try:
        with opened(database, read_only=True) as store:
            known = set(map(main_of, queries.versions(store).listed("workload")))
    except StoreError as error:
        if names_damage(error):  # it is damaged: to ask for a workload would send its user astray
            raise
        return None
    return str(known.pop()) if len(known) == 1 else None


def damage_behind(error: Exception) -> StoreError | None:
    """What to say of an error that nobody foresaw where a database of this call is damaged; None where none is.

    One that cannot be opened for another reason, as one that is not made yet, says nothing of the error.
    """
    from tracker.store.failures import explain_damage, names_damage

    for name in LastOpened.names:
        try:
            with opened(name, read_only=True) as store:
                damage = explain_damage(store.connect, store.url, error)
        except StoreError as refused:
            damage = refused if names_damage(refused) else None
        if damage is not None:
            return damage
    return None


def be_patient(seconds: int | None) -> None:
    """Have this command wait so long for others that write its database, None: as usual, and say that it does."""
    from tracker.cli.output import note
    from tracker.store.waiting import Patience

    Patience.say = note
    Patience.seconds = Patience.usual_s if seconds is None else seconds
