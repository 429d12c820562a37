"""Edits of runs and versions: each one transaction, each with a clear error for what does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, text

from tracker.errors import UsageError
from tracker.profile import Device
from tracker.store import labels
from tracker.store.bulk import clean
from tracker.store.connect import Store
from tracker.store.partitions import DETAIL_TABLES
from tracker.store.sql import statement

_SET_LABELS: Final = text(
    "UPDATE run SET workload_id = :workload_id, configuration_id = :configuration_id, version_id = :version_id, "
    "device_id = :device_id WHERE id = :id"
)
_SET_STATE: Final = text("UPDATE run SET state = :state, state_reason = :reason WHERE id = :id")
_SET_NOTE: Final = text("UPDATE run SET note = :note WHERE id = :id")
_REMOVE_TAG: Final = text("DELETE FROM run_fact WHERE run_id = :id AND kind = 'tag' AND key = :key")
_ADD_TAG: Final = text("INSERT INTO run_fact (run_id, kind, key, value) VALUES (:id, 'tag', :key, :value)")
_CONFIGURATION: Final = text("SELECT key, value FROM configuration_value WHERE configuration_id = :id ORDER BY key")
_VERSIONS: Final = text(
    "SELECT v.id, v.workload_id, w.name AS workload FROM version AS v INNER JOIN workload AS w ON v.workload_id = w.id "
    "WHERE v.label = :label AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload) ORDER BY w.name"
)
_UNPIN_ALL: Final = text("UPDATE version SET pinned = FALSE WHERE workload_id = :workload_id AND pinned")
_PIN: Final = text("UPDATE version SET pinned = :pinned WHERE id = :id")
_TABLES_OF_A_RUN: Final = (*reversed(DETAIL_TABLES), "capture", "source", "run_fact")


def relabel(
    store: Store,
    run_id: int,
    *,
    version: str | None = None,
    workload: str | None = None,
    device: Device | None = None,
    configuration: Mapping[str, str] | None = None,
) -> None:
    """File a run under another version, workload, device or configuration; None leaves it. Names are made when new."""
    with store.begin() as connection:
        run = _require(connection, run_id)
        target = run.workload_id if workload is None else labels.workload_id(connection, workload)
        values = _configuration(connection, run.configuration_id) if configuration is None else configuration
        found = {
            "id": run_id,
            "workload_id": target,
            "configuration_id": labels.configuration_id(connection, target, values),
            "version_id": labels.version_id(connection, target, run.version if version is None else version),
            "device_id": run.device_id if device is None else labels.device_id(connection, device),
        }
        connection.execute(_SET_LABELS, found)
        _forget_labels(connection, run)


def set_note(store: Store, run_id: int, note: str) -> None:
    """Replace the remark on a run; an empty one removes it."""
    with store.begin() as connection:
        _require(connection, run_id)
        connection.execute(_SET_NOTE, {"id": run_id, "note": clean(note) or None})


def tag(store: Store, run_id: int, key: str, value: str = "") -> None:
    """Set a tag on a run; one of the same key is replaced."""
    if not key.strip() or len(key) > labels.MAX_LABEL:
        raise UsageError(f"a tag has a name of 1 to {labels.MAX_LABEL} characters", remedy="write --tag KEY=VALUE")
    with store.begin() as connection:
        _require(connection, run_id)
        connection.execute(_REMOVE_TAG, {"id": run_id, "key": clean(key)})
        connection.execute(_ADD_TAG, {"id": run_id, "key": clean(key), "value": clean(value)})


def untag(store: Store, run_id: int, key: str) -> None:
    """Remove a tag from a run; UsageError where it has none of that key."""
    with store.begin() as connection:
        _require(connection, run_id)
        if connection.execute(_REMOVE_TAG, {"id": run_id, "key": clean(key)}).rowcount != 1:
            raise UsageError(f"run {run_id} has no tag {key!r}", remedy="tracker runs shows the tags")


def exclude(store: Store, run_id: int, reason: str) -> None:
    """Leave a run out of every comparison, with the reason."""
    with store.begin() as connection:
        _require(connection, run_id)
        _set_state(connection, run_id, "excluded", reason)


def restore(store: Store, run_id: int) -> None:
    """Take an excluded or deleted run back."""
    with store.begin() as connection:
        _require(connection, run_id, or_deleted=True)
        connection.execute(_SET_STATE, {"id": run_id, "state": "active", "reason": ""})


def delete(store: Store, run_id: int, reason: str) -> None:
    """Hide a run from every list and comparison, with the reason; `restore` takes it back, `purge` ends it."""
    with store.begin() as connection:
        _require(connection, run_id, or_deleted=True)
        _set_state(connection, run_id, "deleted", reason)


def purge(store: Store, run_id: int) -> None:
    """Remove a run with all its rows for good; its files may then come in again."""
    with store.begin() as connection:
        run = _require(connection, run_id, or_deleted=True)
        # First of all the row that late ranks would join: they wait for it, and then find it gone.
        _set_state(connection, run_id, "deleted", "purged")
        for table in _TABLES_OF_A_RUN:
            # The names are those above.
            connection.execute(text(f"DELETE FROM {table} WHERE run_id = :id"), {"id": run_id})  # noqa: S608
        connection.execute(text("DELETE FROM run WHERE id = :id"), {"id": run_id})
        _forget_labels(connection, run)


def pin(store: Store, label: str, *, workload: str | None = None) -> None:
    """Make a version the fixed baseline of its workload, instead of the one that was."""
    with store.begin() as connection:
        version = _version(connection, label, workload)
        connection.execute(_UNPIN_ALL, {"workload_id": version.workload_id})
        connection.execute(_PIN, {"id": version.id, "pinned": True})


def unpin(store: Store, label: str, *, workload: str | None = None) -> None:
    """Take a version back from being the baseline; nothing changes where it is not."""
    with store.begin() as connection:
        connection.execute(_PIN, {"id": _version(connection, label, workload).id, "pinned": False})


def _require(connection: Connection, run_id: int, *, or_deleted: bool = False) -> Any:
    """What `run_id` is filed under; UsageError for an unknown run, and for a deleted one unless that will do."""
    run = connection.execute(statement("run_state"), {"run_id": run_id}).one_or_none()
    if run is None:
        raise UsageError(f"there is no run {run_id}", remedy="tracker runs lists them")
    if run.state == "deleted" and not or_deleted:
        raise UsageError(f"run {run_id} was deleted", remedy=f"to take it back: tracker runs restore {run_id}")
    return run


def _set_state(connection: Connection, run_id: int, state: str, reason: str) -> None:
    if not reason.strip():
        raise UsageError("the reason is empty", remedy="say why with --reason TEXT")
    connection.execute(_SET_STATE, {"id": run_id, "state": state, "reason": clean(reason)})


def _configuration(connection: Connection, configuration_id: int) -> dict[str, str]:
    return {row.key: row.value for row in connection.execute(_CONFIGURATION, {"id": configuration_id})}


def _forget_labels(connection: Connection, run: Any) -> None:
    """Remove the labels that `run` was filed under, where nothing else is."""
    labels.forget_unused(
        connection, workload=run.workload_id, configuration=run.configuration_id, version=run.version_id
    )


def _version(connection: Connection, label: str, workload: str | None) -> Any:
    rows = connection.execute(_VERSIONS, {"label": label, "workload": workload}).all()
    if not rows:
        raise UsageError(f"there is no version {label!r}", remedy="tracker versions lists them")
    if len(rows) > 1:
        names = ", ".join(row.workload for row in rows)
        raise UsageError(
            f"version {label!r} is used by several workloads: {names}", remedy="choose one with --workload"
        )
    return rows[0]
