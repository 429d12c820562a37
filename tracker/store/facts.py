"""What is known of the environment of a run, and its tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Connection, text

from tracker.store.bulk import clean, insert
from tracker.store.labels import MAX_LABEL

_KNOWN: Final = text("SELECT key, value FROM run_fact WHERE run_id = :run_id AND kind = 'fact'")
_CHANGE: Final = text("UPDATE run_fact SET value = :value WHERE run_id = :run_id AND kind = 'fact' AND key = :key")
_COLUMNS: Final = ("run_id", "kind", "key", "value")
_BETWEEN: Final = " | "


def common(values: Iterable[str]) -> str:
    """What ranks say of one thing: the value, or where they differ all of them in order, joined by ` | `. The same
    whichever rank says it first, and when what some of them said is joined already.

    >>> common(["dp 2", "dp 2"]), common(["dp 4", "dp 2"]), common(["dp 2 | dp 4", "dp 1"])
    ('dp 2', 'dp 2 | dp 4', 'dp 1 | dp 2 | dp 4')
    """
    distinct = set(values)
    if len(distinct) == 1:
        return distinct.pop()
    return _BETWEEN.join(sorted({part for value in distinct for part in value.split(_BETWEEN)}))


def add(connection: Connection, run_id: int, facts: Mapping[str, str], tags: Mapping[str, str]) -> None:
    """Facts and tags of ranks of a run. To facts that are there, what these ranks say otherwise is added; a tag that is
    there stays.
    """
    new = {clean(key)[:MAX_LABEL]: clean(value) for key, value in sorted(facts.items())}
    known: dict[str, str] = {row.key: row.value for row in connection.execute(_KNOWN, {"run_id": run_id})}
    changed: list[dict[str, Any]] = [
        {"run_id": run_id, "key": key, "value": both}
        for key, value in new.items()
        if key in known and (both := common([known[key], value])) != known[key]
    ]
    if changed:
        connection.execute(_CHANGE, changed)
    rows = [(run_id, "fact", key, value) for key, value in new.items()]
    rows += [(run_id, "tag", clean(key)[:MAX_LABEL], clean(value)) for key, value in sorted(tags.items())]
    insert(connection, "run_fact", _COLUMNS, rows, or_keep="run_id, kind, key")
