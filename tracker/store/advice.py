"""What rules say of runs, as a text for each: `tracker.advice` knows what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, text

from tracker.store import labels
from tracker.store.bulk import fetch
from tracker.store.sql import statement

FORGET_ADVICE: Final = text("DELETE FROM advice WHERE run_id = :run_id")
_KEEP: Final = text("INSERT INTO advice (run_id, rule_version, content) VALUES (:run_id, :rule_version, :content)")
_IS_THERE: Final = text("SELECT id FROM run WHERE id = :run_id AND state <> 'deleted'")


def runs_without(connection: Connection, run_ids: Sequence[int], rule_version: int) -> list[int]:
    """Return the active runs of the tracks of these runs that have no advice by this version of the rules; no pruned
    ones.
    """
    asked = {"run_ids": list(run_ids) or [-1], "rule_version": rule_version}
    return [row.run_id for row in connection.execute(statement("unadvised_runs"), asked)]


def texts(connection: Connection, run_ids: Sequence[int]) -> dict[int, str]:
    """Return the stored text of each of these runs that has one."""
    rows = fetch(connection.execute(statement("advice"), {"run_ids": list(run_ids) or [-1]}))
    return {run_id: content for run_id, _, content in rows}


def files_of(connection: Connection, run_id: int) -> frozenset[bytes] | None:
    """Return the digests of the files that a run was read from; None of a run that is gone."""
    if connection.execute(_IS_THERE, {"run_id": run_id}).first() is None:
        return None
    return frozenset(bytes(row.digest) for row in connection.execute(statement("sources"), {"run_ids": [run_id]}))


def keep(connection: Connection, run_id: int, rule_version: int, content: str, files: frozenset[bytes]) -> None:
    """Store the text of a run that was made of these files, in place of what there was; nothing where the run is gone,
    or has other files now: the ingest that brought them advises on all of them.
    """
    labels.hold_run(connection, run_id)
    if files_of(connection, run_id) == files:
        connection.execute(FORGET_ADVICE, {"run_id": run_id})
        connection.execute(_KEEP, {"run_id": run_id, "rule_version": rule_version, "content": content})
