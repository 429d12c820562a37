"""Dropping the details of old runs: samples, history, findings and the totals of each rank and step stay for ever.

Ingesting the profile of such a run again brings its details back.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.profile.branches import main_of
from tracker.store import completing, labels, samples
from tracker.store.answers import rows as rows_of
from tracker.store.captures import DETAIL_TABLES
from tracker.store.connect import Store
from tracker.store.runs import forget_branch
from tracker.store.sql import statement

KEPT_TABLES: Final = ("step",)
"""Detail tables that stay: they are small, and what is said of a run as a whole rests on them."""

_PRUNED_TABLES: Final = tuple(table for table in reversed(DETAIL_TABLES) if table not in KEPT_TABLES)
_MARK: Final = text("UPDATE capture SET pruned_at_ns = :now_ns WHERE run_id = :id AND pruned_at_ns IS NULL")
_RULES: Final = text("SELECT sample_rules FROM run WHERE id = :id")


class Policy(Struct, frozen=True):
    """Which runs lose their details: those that started before `before_ns` (UTC), and are none of the newest
    `keep_versions` versions of their workload, of no pinned version, and no run that an open finding rests on.
    Runs of which nobody knows when they started stay.
    """

    before_ns: int
    keep_versions: int
    workload: str | None = None


class Prunable(Struct, frozen=True):
    """A run that a policy takes."""

    run_id: int
    workload: str
    version: str
    started_at_ns: int


def prunable(store: Store, policy: Policy) -> list[Prunable]:
    """Return the runs that `policy` takes, the oldest first."""
    with store.connect() as connection:
        return _prunable(connection, policy, None)


def _prunable(connection: Connection, policy: Policy, run_id: int | None) -> list[Prunable]:
    parameters = {
        "before_ns": policy.before_ns, "keep_versions": policy.keep_versions, "workload": policy.workload,
        "run_id": run_id,
    }  # fmt: skip
    rows = connection.execute(statement("prunable_runs"), parameters).all()
    used = _used(connection) if rows else set()
    return [
        Prunable(row.run_id, row.workload, row.version, row.started_at_ns) for row in rows if row.run_id not in used
    ]


def _used(connection: Connection) -> set[int]:
    """Return the runs that open findings rest on."""
    return {int(number) for row in connection.execute(statement("runs_in_use")) for number in str(row.runs).split()}


def prune(store: Store, run_id: int, policy: Policy | None = None, *, now_ns: int) -> int | None:
    """Drop the details of a run in one transaction; how many rows went. Its samples are made first where they are not
    by the rules of today.

    With `policy`, only where that still takes the run, else None: since it was chosen, its version may have been
    pinned, or a finding opened that rests on it.
    """
    return store.transact(partial(_prune, run_id=run_id, policy=policy, now_ns=now_ns))


def prune_all(store: Store, policy: Policy, *, now_ns: int) -> tuple[list[Prunable], int]:
    """Drop the details of all runs that `policy` takes, each in a transaction of its own: the runs, and how many rows
    went.
    """
    done: list[Prunable] = []
    rows = 0
    for run in prunable(store, policy):
        gone = prune(store, run.run_id, policy, now_ns=now_ns)
        if gone is not None:
            done.append(run)
            rows += gone
    return done, rows


def forget_old_branches(store: Store, policy: Policy, *, dry_run: bool = False) -> list[str]:
    """Remove the branches whose newest run is older than `policy` allows, for good; return their workloads.

    `dry_run`: say only which they are. A branch of which nobody knows when it ran stays.
    """
    found = [
        str(row.workload)
        for row in rows_of(store, "branches")
        if row.last_started_ns is not None
        and row.last_started_ns < policy.before_ns
        and policy.workload in (None, row.workload, main_of(row.workload))
    ]
    for workload in () if dry_run else found:
        forget_branch(store, workload)
    return found


def _prune(connection: Connection, run_id: int, policy: Policy | None, now_ns: int) -> int | None:
    labels.hold_run(connection, run_id)
    if policy is not None and not _prunable(connection, policy, run_id):
        return None
    completing.complete(connection, [run_id])
    if connection.execute(_RULES, {"id": run_id}).scalar() != samples.SAMPLE_RULES:
        samples.refresh(connection, [run_id])
    gone = 0
    for table in _PRUNED_TABLES:
        # the names are those of DETAIL_TABLES
        gone += connection.execute(text(f"DELETE FROM {table} WHERE run_id = :id"), {"id": run_id}).rowcount  # noqa: S608
    connection.execute(_MARK, {"id": run_id, "now_ns": now_ns})
    return gone


def compact(store: Store) -> None:
    """Give the room of dropped rows back to the system: rewrites a SQLite file whole; Postgres does it by itself."""
    if store.dialect == "sqlite":
        with store._explained(), store.engine.connect() as connection:
            connection.connection.driver_connection.execute("VACUUM")  # type: ignore[union-attr]
