"""What rests on all ranks of a run: what its collectives waited for, and its samples.

A run that waits for ranks has none of it but the groups of collectives that are complete, and its step so far: made
with each rank that comes, the rest would cost the square of their number. It is made when the last rank comes, or when
the run no longer waits, in the transaction that notes this, so that nobody judges a run that is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from sqlalchemy import Connection, bindparam, text

from tracker.store import labels, recordings, samples
from tracker.store.calls import splitting
from tracker.store.captures import Placed

_STATES: Final = text("SELECT id, ranks_awaited, sample_rules FROM run WHERE id IN :run_ids ORDER BY id").bindparams(
    bindparam("run_ids", expanding=True)
)
_RANKS: Final = text("SELECT rank FROM capture WHERE run_id = :run_id ORDER BY rank")


def make_arrived(
    connection: Connection,
    came: Mapping[int, Set[int]],
    *,
    documented: Set[int],
    regrouped: Set[int],
    at_hand: Sequence[Placed],
) -> set[int]:
    """Make what rests on the ranks that `came` (run -> ranks), as far as their runs do not wait for others; return the
    runs that do.

    `documented`: runs that got another source, which gives them a series more. `regrouped`: runs that got groups of
    collectives with their ranks. `at_hand`: captures whose rows need not be read. The transaction holds the runs.
    """
    waiting: set[int] = set()
    for row in connection.execute(_STATES, {"run_ids": sorted({*came, *documented}) or [-1]}).all():
        ranks = came.get(row.id, set())
        if row.ranks_awaited is not None:
            waiting.add(row.id)
            splitting.refresh_complete_groups(connection, row.id, ranks)
            samples.keep_step_alone(connection, row.id)
        elif not ranks:
            continue
        elif row.sample_rules is None:
            _split_all(connection, row.id)
        else:
            splitting.refresh(connection, {row.id: ranks}, regrouped=regrouped & {row.id})
    samples.refresh(connection, (came.keys() | documented) - waiting, at_hand)
    recordings.refresh_recordings(connection, came)
    return waiting


def make_overdue(connection: Connection, run_ids: Iterable[int]) -> None:
    """Make runs that no longer wait for ranks, as far as they were not made yet."""
    for row in connection.execute(_STATES, {"run_ids": sorted(run_ids) or [-1]}).all():
        if row.sample_rules is None:
            labels.hold_run(connection, row.id)
            _split_all(connection, row.id)
            samples.refresh(connection, [row.id])


def _split_all(connection: Connection, run_id: int) -> None:
    ranks = set(connection.scalars(_RANKS, {"run_id": run_id}))
    splitting.refresh(connection, {run_id: ranks}, regrouped={run_id})
