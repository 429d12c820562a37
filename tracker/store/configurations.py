"""The configuration of a run that comes in: one that is there, maybe better known from now on, or a new one.

Sources begin to state more: a new reader, a new launcher, a name with the batch size. A history must not end there
without a word. So where a run states keys that a configuration of its workload leaves out, and agrees in all others, it
is of that configuration, and the keys become known of it, as long as nothing tells of two values: neither another
configuration of the workload nor another run of the same ingest states another value of such a key. Then, and where the
user states the key, the run is of a configuration of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from sqlalchemy import Connection

from tracker.store import labels
from tracker.store.sql import statement

Values = Mapping[str, str]


class Placed(Struct, frozen=True):
    """The configuration of a run, and what its user should know of it ('': nothing)."""

    configuration_id: int
    note: str = ""


def place(
    connection: Connection,
    workload: int,
    values: Values,
    *,
    stated: Collection[str],
    beside: Mapping[str, Collection[str]],
) -> Placed:
    """The configuration of a run with these `values`.

    `stated`: the keys that only its source states. `beside`: key -> the values that the runs of the same ingest and
    workload have.
    """
    known = labels.find_configuration(connection, workload, values)
    if known is not None:
        return Placed(known)
    # of two runs that add a key at once the later one must see what the earlier one added
    labels.lock(connection, "version", workload)
    stored = of_workload(connection, workload)
    mine = dict(labels.configuration_pairs(values))
    home = _to_complete(stored, mine, stated, beside)
    if home is not None:
        added = _listed({key: mine[key] for key in mine.keys() - stored[home].keys()})
        labels.describe_configuration(connection, home, values)
        return Placed(home, f"states {added}, which the runs before it did not: taken to be theirs as well")
    return Placed(labels.configuration_id(connection, workload, values), _why_new(stored, mine, stated))


def place_on_branch(
    connection: Connection, workload: int, main: int, values: Values, *, stated: Collection[str]
) -> Placed:
    """The configuration of a run of a branch: the one of its main line that it fits, else one of the branch's own.

    Nothing that a branch states becomes known of the main line.
    """
    known = labels.find_configuration(connection, main, values)
    if known is None:
        known = _to_complete(of_workload(connection, main), dict(labels.configuration_pairs(values)), stated, {})
    return Placed(labels.configuration_id(connection, workload, values) if known is None else known)


def of_workload(connection: Connection, workload: int) -> dict[int, dict[str, str]]:
    """The configurations of a workload: id -> values."""
    found: dict[int, dict[str, str]] = {}
    for row in connection.execute(statement("workload_configurations"), {"workload_id": workload}):
        values = found.setdefault(row.id, {})
        if row.key is not None:
            values[row.key] = row.value
    return found


def _to_complete(
    stored: Mapping[int, Values], mine: Values, stated: Collection[str], beside: Mapping[str, Collection[str]]
) -> int | None:
    """The configuration to which a run only adds keys of which one value is known; the one that says most, if it is
    alone.
    """
    fitting = []
    for number, values in stored.items():
        added = mine.keys() - values.keys()
        agrees = all(mine.get(key) == value for key, value in values.items())
        if agrees and all(key in stated and _is_one(stored, beside, key, mine[key]) for key in added):
            fitting.append((len(values), number))
    most = max((count for count, _ in fitting), default=0)
    chosen = [number for count, number in fitting if count == most]
    return chosen[0] if len(chosen) == 1 else None


def _is_one(stored: Mapping[int, Values], beside: Mapping[str, Collection[str]], key: str, value: str) -> bool:
    others = {values[key] for values in stored.values() if key in values} | set(beside.get(key, ()))
    return others <= {value}


def _why_new(stored: Mapping[int, Values], mine: Values, stated: Collection[str]) -> str:
    """Why a run that differs from another configuration only in keys that one of the two leaves out is not of it."""
    for values in stored.values():
        shared = values.keys() & mine.keys()
        if any(values[key] != mine[key] for key in shared):
            continue
        silent = {key: values[key] for key in values.keys() - mine.keys()}
        added = {key: mine[key] for key in mine.keys() - values.keys()}
        if silent:
            way = " ".join(f"--config {key}={value}" for key, value in sorted(silent.items()))
            return f"does not state {', '.join(sorted(silent))}, so it is of a configuration of its own; {way} adds it"
        if added.keys() <= set(stated):
            several = ", ".join(sorted(added))
            return f"states {_listed(added)}; runs differ in {several}, so it is of a configuration of its own"
    return ""


def _listed(values: Values) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items()))
