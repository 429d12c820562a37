"""The order of versions: explicit, since labels do not sort."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, text

from tracker.errors import UsageError
from tracker.store import labels as names
from tracker.store.connect import Store
from tracker.store.runs import find_version

_ALL: Final = text("SELECT id, label, ordinal FROM version WHERE workload_id = :workload_id ORDER BY ordinal, id")
_NUMBERED: Final = re.compile(r"(?P<word>[A-Za-z_-]*)(?P<numbers>(?>\d+(?:[.-]\d+)*))(?![0-9A-Za-z])")
"""A word and numbers: v1.10, 2023-08-07, 20230807_73d6cf4bf9; no commits."""
_PLACE: Final = text("UPDATE version SET ordinal = :ordinal WHERE id = :id")


def seems_older_than(label: str, earlier: Sequence[str]) -> str | None:
    """The first of the `earlier` versions that seems newer than `label` by the numbers in their names; else None.

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
    names.lock(connection, "version", number)
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
