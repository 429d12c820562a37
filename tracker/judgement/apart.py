"""Judging takes long, writing does not: nobody who writes waits for what is still being worked out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection

from tracker.store import Store, judged, judgements
from tracker.store.judged import Line, LineRun

_Made = TypeVar("_Made")

_ATTEMPTS: Final = 3


def write_apart(
    store: Store,
    line: Line,
    make: Callable[[Connection, Line], _Made | None],
    holds: Callable[[Connection, Line, _Made], bool],
    write: Callable[[Connection, Line, _Made], None],
) -> bool:
    """`write` what `make` has worked out of a line, None being nothing; whether something was written.

    Where they can queue up, one process at a time does so: those that come meanwhile wait and find it done. `make` only
    reads; on SQLite, where a writer keeps all others out, it runs before the transaction that writes. `holds` says
    whether what was made can still be written: not where runs were removed or relabelled meanwhile, nor where somebody
    else wrote what `make` had not seen, which may rest on more. Then it is made again, in the end inside of that
    transaction; what does not hold even then (on Postgres others may go on writing) is left to those who changed it,
    who judge next. So do those who bring runs meanwhile, which do no harm.
    """

    def if_it_holds(made: _Made, connection: Connection) -> bool:
        if not holds(connection, line, made):
            return False
        write(connection, line, made)
        return True

    def at_once(connection: Connection) -> bool:
        judgements.lock(connection, line)
        for _ in range(_ATTEMPTS):
            made = make(connection, line)
            if made is None:
                return False
            if if_it_holds(made, connection):
                return True
        return False

    if store.dialect == "postgresql":
        return store.transact(at_once)
    with store.turn("judges"):
        for _ in range(_ATTEMPTS):
            with store.connect() as connection:
                made = make(connection, line)
            if made is None:
                return False
            if store.transact(partial(if_it_holds, made)):
                return True
        return store.transact(at_once)


def are_there(connection: Connection, line: Line, runs: Iterable[LineRun]) -> bool:
    """Whether these runs are still in the line, each under the version that it was under."""
    wanted = {(run.run_id, run.version_id) for run in runs}
    return wanted == judged.versions_of_runs(connection, line, [run_id for run_id, _ in wanted])
