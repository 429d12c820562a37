"""Versions: their order, which is explicit since labels do not sort, and the pinned one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, text

from tracker.errors import UsageError
from tracker.profile.branches import branch_of
from tracker.store.connect import Store
from tracker.store.labels import lock
from tracker.store.queries.resolve import unknown_version

_ALL: Final = text("SELECT id, label, ordinal FROM version WHERE workload_id = :workload_id ORDER BY ordinal, id")
_NUMBERED: Final = re.compile(r"(?P<word>[A-Za-z_-]*)(?P<numbers>(?>\d+(?:[.-]\d+)*))(?![0-9A-Za-z])")
"""A word and numbers: v1.10, 2023-08-07, 20230807_73d6cf4bf9; no commits."""
_VERSIONS: Final = text(
    "SELECT v.id, v.workload_id, w.name AS workload FROM version AS v INNER JOIN workload AS w ON v.workload_id = w.id "
    "WHERE v.label = :label AND (CAST(:workload AS TEXT) IS NULL OR w.name = :workload) ORDER BY w.name"
)
_LABELS: Final = text(
    "SELECT w.name AS workload, v.label FROM version AS v INNER JOIN workload AS w ON v.workload_id = w.id "
    "WHERE CAST(:workload AS TEXT) IS NULL OR w.name = :workload ORDER BY w.name, v.ordinal, v.id"
)
_PIN: Final = text("UPDATE version SET pinned = (id = :id) WHERE workload_id = :workload_id AND (pinned OR id = :id)")
_UNPIN: Final = text("UPDATE version SET pinned = FALSE WHERE id = :id AND pinned")
_PLACE: Final = text("UPDATE version SET ordinal = :ordinal WHERE id = :id")


def seems_older_than(label: str, earlier: Sequence[str]) -> str | None:
    """Return the first of the `earlier` versions that seems newer than `label` by the numbers in their names; else
    None.

    A hint, not an order: only names of one kind are compared.

    >>> seems_older_than("v1.9", ["v1.2", "v1.10", "v2"]), seems_older_than("fused", ["v1"])
    ('v1.10', None)
    """
    own = _numbers(label)
    if own is None:
        return None
    of_earlier = ((name, _numbers(name)) for name in earlier)
    return next((name for name, found in of_earlier if found and found[0] == own[0] and found[1] > own[1]), None)


def _numbers(label: str) -> tuple[str, list[int]] | None:
    match = _NUMBERED.match(label)
    return None if match is None else (match["word"], [int(part) for part in re.split(r"[.-]", match["numbers"])])


def order_versions(
    store: Store,
    labels: Sequence[str],
    *,
    workload: str | None = None,
    after: str | None = None,
    before: str | None = None,
) -> list[str]:
    """Put versions into this order, and return all labels of their workload in the new one.

    `after`, `before`: the version next to which `labels` go, in the order given; without either, `labels` are all
    versions of the workload. UsageError where a label is unknown, twice there, or one is missing.
    """
    if len(set(labels)) < len(labels):
        raise UsageError("a version is named twice", remedy="name each version once")
    if (after or before) in labels:
        raise UsageError(f"{after or before!r} cannot stand beside itself", remedy="leave it out of the list")
    return store.transact(lambda connection: _order(connection, labels, workload, after, before))


def _order(
    connection: Connection, labels: Sequence[str], workload: str | None, after: str | None, before: str | None
) -> list[str]:
    beside = after or before
    versions = [find_version(connection, label, workload) for label in [*labels, *([beside] if beside else [])]]
    owners = sorted({row.workload for row in versions})
    if len(owners) != 1:
        raise UsageError(
            f"the versions are of several workloads: {', '.join(owners)}" if owners else "no version is named",
            remedy="choose one with --workload" if owners else "name the versions in their order",
        )
    number = versions[0].workload_id
    # a new version must not get a place in between
    lock(connection, "version", number)
    known = {row.label: row for row in connection.execute(_ALL, {"workload_id": number}).all()}
    if beside:
        order = [label for label in known if label not in labels]
        place = order.index(beside) + (1 if after else 0)
        order[place:place] = labels
    else:
        order = list(labels)
        missing = [label for label in known if label not in order]
        if missing:
            raise UsageError(
                f"the order lacks {', '.join(missing)}", remedy="name all versions, or say --after or --before which"
            )
    _write(connection, known, order)
    return order


def _write(connection: Connection, known: dict[str, Any], order: Sequence[str]) -> None:
    for ordinal, label in enumerate(order, 1):
        if known[label].ordinal != ordinal:
            connection.execute(_PLACE, {"id": known[label].id, "ordinal": ordinal})


def workload_of(store: Store, label: str, workload: str | None = None) -> str:
    """Return the workload that has the version `label`; UsageError where none has, or several."""
    with store.connect() as connection:
        return str(find_version(connection, label, workload).workload)


def pin_version(store: Store, label: str, *, workload: str | None = None) -> str:
    """Make a version the fixed baseline of its workload, instead of the one that was; returns the workload."""

    def work(connection: Connection) -> str:
        # of two that pin at once the later one must see what the earlier one pinned, and nobody may remove the version
        lock(connection, "forget", find_version(connection, label, workload).workload_id)
        version = find_version(connection, label, workload)
        connection.execute(_PIN, {"id": version.id, "workload_id": version.workload_id})
        return str(version.workload)

    return store.transact(work)


def unpin_version(store: Store, label: str, *, workload: str | None = None) -> None:
    """Take a version back from being the baseline; UsageError where it is not pinned."""

    def work(connection: Connection) -> None:
        version = find_version(connection, label, workload)
        if connection.execute(_UNPIN, {"id": version.id}).rowcount != 1:
            raise UsageError(
                f"version {label!r} of {version.workload} is not pinned", remedy="tracker versions shows which one is"
            )

    store.transact(work)


def find_version(connection: Connection, label: str, workload: str | None) -> Any:
    """Return the version `label`: id, workload_id, workload; UsageError where it is unknown, or in several
    workloads.
    """
    rows = connection.execute(_VERSIONS, {"label": label, "workload": workload}).all()
    if not rows:
        known = connection.execute(_LABELS, {"workload": workload}).all()
        raise unknown_version(label, [(row.workload, row.label) for row in known])
    rows = [row for row in rows if not branch_of(row.workload)] or rows
    if len(rows) > 1:
        names = ", ".join(row.workload for row in rows)
        raise UsageError(
            f"version {label!r} is used by several workloads: {names}", remedy="choose one with --workload"
        )
    return rows[0]
