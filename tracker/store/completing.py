"""What rests on all ranks of a run: what its collectives waited for, its samples, and its advice.

A run that waits for ranks has none of it but the groups of collectives that are complete, and its step so far: made
with each rank that comes, the rest would cost the square of their number. It is made when the last rank comes, or when
the run no longer waits, in the transaction that notes this, so that no run without it is in a level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

from sqlalchemy import Connection, bindparam, text

from tracker.store import labels, recordings, samples
from tracker.store.advice import FORGET_ADVICE
from tracker.store.calls import splitting
from tracker.store.captures import Placed

_STATES: Final = text("SELECT id, ranks_awaited, sample_rules FROM run WHERE id IN :run_ids ORDER BY id").bindparams(
    bindparam("run_ids", expanding=True)
)
_RANKS: Final = text("SELECT rank FROM capture WHERE run_id = :run_id ORDER BY rank")
LOST_DETAILS: Final = text("SELECT 1 FROM capture WHERE run_id = :run_id AND pruned_at_ns IS NOT NULL")


def take_in(
    connection: Connection,
    arrived_ranks: Mapping[int, Set[int]],
    *,
    documented: Set[int],
    regrouped: Set[int],
    at_hand: Sequence[Placed],
) -> set[int]:
    """Make what rests on the ranks that arrived (run -> ranks), as far as their runs do not wait for others; return the
    runs that do.

    `documented`: runs that got another source, which gives them a series more. `regrouped`: runs that got groups of
    collectives with their ranks. `at_hand`: captures whose rows need not be read. The transaction holds the runs.
    """
    waiting: set[int] = set()
    for run in _states_of(connection, {*arrived_ranks, *documented}):
        ranks = arrived_ranks.get(run.id, set())
        if run.ranks_awaited is not None:
            waiting.add(run.id)
            splitting.refresh_complete_groups(connection, run.id, ranks)
            _keep_little(connection, run.id)
        elif ranks and run.sample_rules is None:
            _split_all(connection, run.id)
        elif ranks:
            splitting.refresh(connection, {run.id: ranks}, regrouped=regrouped & {run.id})
    samples.refresh(connection, (arrived_ranks.keys() | documented) - waiting, at_hand)
    recordings.refresh_recordings(connection, arrived_ranks)
    return waiting


def complete(connection: Connection, run_ids: Iterable[int]) -> None:
    """Make runs of which nothing was made so far, of the ranks that came; of one that still waits, too. The transaction
    holds the runs.
    """
    for run in _states_of(connection, run_ids):
        if run.sample_rules is None:
            _split_all(connection, run.id)
            samples.refresh(connection, [run.id])


def make_again(connection: Connection, run_id: int) -> None:
    """Make the samples of a run again, as much of them as it has now. The transaction holds the run."""
    for run in _states_of(connection, [run_id]):
        if run.ranks_awaited is not None:
            _keep_little(connection, run_id)
            continue
        if run.sample_rules is None:
            _split_all(connection, run_id)
        samples.refresh(connection, [run_id])


def hold_and_make_again(connection: Connection, run_id: int) -> None:
    """Hold a run to the end of the transaction, and `make_again`."""
    labels.hold_run(connection, run_id)
    make_again(connection, run_id)


def _states_of(connection: Connection, run_ids: Iterable[int]) -> Sequence[Any]:
    return connection.execute(_STATES, {"run_ids": sorted(run_ids) or [-1]}).all()


def _keep_little(connection: Connection, run_id: int) -> None:
    """Keep of a run that waits what screens show: its step so far. Samples that cannot be made again stay."""
    if connection.execute(LOST_DETAILS, {"run_id": run_id}).first() is not None:
        # where the run was filed elsewhere its samples follow
        samples.refresh(connection, [run_id])
        return
    samples.keep_step_alone(connection, run_id)
    connection.execute(FORGET_ADVICE, {"run_id": run_id})


def _split_all(connection: Connection, run_id: int) -> None:
    ranks = set(connection.scalars(_RANKS, {"run_id": run_id}))
    splitting.refresh(connection, {run_id: ranks}, regrouped={run_id})
