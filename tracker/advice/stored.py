"""The advice of runs in the database: made after an ingest, so that versions compare, and pruned runs keep it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, text

from tracker.advice.judging import RunAdvice, of_run, with_remedies
from tracker.advice.rules import RULE_VERSION
from tracker.store.bulk import fetch
from tracker.store.sql import statement

if TYPE_CHECKING:
    from tracker.store import Store

_FORGET: Final = text("DELETE FROM advice WHERE run_id = :run_id")
_KEEP: Final = text("INSERT INTO advice (run_id, rule_version, content) VALUES (:run_id, :rule_version, :content)")
_IS_THERE: Final = text("SELECT id FROM run WHERE id = :run_id AND state <> 'deleted'")


def keep(store: Store, run_ids: Sequence[int], *, again: Iterable[int] = ()) -> None:
    """Store the advice of all runs of the tracks of these runs that have none by the rules of today, and of `again`,
    whose rows changed. What was stored of a pruned run stays: its rows are gone.
    """
    with store.connect() as connection:
        asked = {"run_ids": list(run_ids) or [-1], "rule_version": RULE_VERSION}
        lacking = {row.run_id for row in connection.execute(statement("unadvised_runs"), asked)}
    for run_id in sorted(lacking | {*again}):
        content = msgspec.json.encode(replace(of_run(store, run_id), efficiency=())).decode()
        store.transact(partial(_keep, run_id=run_id, content=content))


def _keep(connection: Connection, run_id: int, content: str) -> None:
    # the run may have been purged while its advice was made
    if connection.execute(_IS_THERE, {"run_id": run_id}).first() is not None:
        connection.execute(_FORGET, {"run_id": run_id})
        connection.execute(_KEEP, {"run_id": run_id, "rule_version": RULE_VERSION, "content": content})


def of_runs(store: Store, run_ids: Sequence[int]) -> dict[int, RunAdvice]:
    """The stored advice of these runs, with remedies; runs without any are left out, see `keep`."""
    with store.connect() as connection:
        rows = fetch(connection.execute(statement("advice"), {"run_ids": list(run_ids) or [-1]}))
    return {run_id: with_remedies(msgspec.json.decode(content, type=RunAdvice)) for run_id, _, content in rows}
