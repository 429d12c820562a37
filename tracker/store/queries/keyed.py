"""From rows with the numbers of their keys to columns with the texts of these: the tools for ops and kernels.

A database groups and carries numbers much faster than texts, and sorts thousands of long names slowest of all. So it is
asked for numbers, once for the texts of those that are new, and what is left is done here, column by column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from operator import itemgetter
from typing import Any, Final, Literal, TypeVar

import numpy as np
from msgspec import Struct
from sqlalchemy import Connection

from tracker.columns import I64, objects
from tracker.store.bulk import as_keys, fetch
from tracker.store.connect import Store
from tracker.store.dimensions import stack_texts
from tracker.store.failures import Damaged
from tracker.store.sql import statement

_MOST_KEPT: Final = 100_000
"""Keys of one kind that a store keeps in memory; a watcher sees ever new ones."""
_QUESTIONS: Final = {"kernel_key": "kernel_keys", "detail_text": "detail_texts"}

Row = tuple[Any, ...]
T = TypeVar("T", str, Row)


class Texts(Struct, frozen=True, eq=False):
    """The distinct keys of a column: their `columns`, and the place of each row's key among them, in the order of the
    keys (by code point, the columns one after the other).
    """

    columns: Mapping[str, Sequence[str]]
    places: I64

    @classmethod
    def of(cls, ids: I64, known: Mapping[int, Sequence[str]], columns: Mapping[str, int]) -> Texts:
        """`known`: the texts of the key behind each number; `columns`: name -> which of these, all others aside."""
        numbers, inverse = np.unique(ids, return_inverse=True)
        keys = map(itemgetter(*columns.values()), map(known.__getitem__, numbers.tolist()))
        distinct, places = _placed(list(keys))
        return cls({name: [key[at] for key in distinct] for at, name in enumerate(columns)}, places[inverse])

    @classmethod
    def single(cls, name: str, ids: I64, known: Mapping[int, Row]) -> Texts:
        """`known`: the text behind each number, in a row of its own; the column is called `name`."""
        numbers, inverse = np.unique(ids, return_inverse=True)
        distinct, places = _placed([known[number][0] for number in numbers.tolist()])
        return cls({name: distinct}, places[inverse])

    def taken(self, rows: I64) -> dict[str, Any]:
        """Name -> the texts of these rows."""
        places = self.places[rows]
        return {name: objects(texts)[places] for name, texts in self.columns.items()}


def _placed(keys: Sequence[T]) -> tuple[list[T], I64]:
    """The distinct `keys`, in order, and the place of each of `keys` among them."""
    distinct = sorted(set(keys))
    place = {key: at for at, key in enumerate(distinct)}
    return distinct, np.array([place[key] for key in keys], dtype=np.int64)


def keys_of(store: Store, table: Literal["op_key", "kernel_key", "detail_text"], ids: I64) -> Mapping[int, Row]:
    """The texts behind the numbers `ids`, keys of the `table`, by number: those of op_keys.sql, kernel_keys.sql or
    detail_texts.sql. Keys never change, so that only those are asked for that were not read before.
    """
    known, wanted = store.keys.setdefault(table, {}), set(ids.tolist())
    missing = wanted - known.keys()
    if missing:
        if len(known) > _MOST_KEPT:
            known, missing = {}, wanted
            store.keys[table] = known
        with store.connect() as connection:
            rows = (
                _op_keys(connection, missing) if table == "op_key" else _asked(connection, _QUESTIONS[table], missing)
            )
        known.update({row[0]: row[1:] for row in rows})
    return known


def texts_of_stacks(store: Store, run_ids: Sequence[int], numbers: Set[int]) -> Mapping[int, Row]:
    """Return the text of each call stack in `numbers`, which were recorded in these runs, in a row of its own.

    Several tables of one report have stacks; they are read once, as by `keys_of`.
    """
    known = store.keys.setdefault("call_stack", {})
    if numbers - known.keys():
        if len(known) > _MOST_KEPT:
            known = store.keys["call_stack"] = {}
        with store.connect() as connection:
            rows = fetch(connection.execute(statement("call_stacks"), {"run_ids": run_ids}))
        frames = {number: (parent, frame) for number, parent, frame in rows}
        known.update((number, (stack,)) for number, stack in stack_texts(frames).items())
    return known


def _op_keys(connection: Connection, ids: Collection[int]) -> list[Row]:
    """The numbers of ops with their texts: most texts are in many ops, and joins would look each up again."""
    keys, *columns = zip(*_asked(connection, "op_keys", ids), strict=True)
    texts: dict[int, str] = dict(_asked(connection, "detail_texts", set().union(*columns)))
    return list(zip(keys, *([texts[number] for number in column] for column in columns), strict=True))


def _asked(connection: Connection, question: str, ids: Collection[int]) -> list[Any]:
    """The rows with these numbers; Damaged where one is gone, which no command takes away."""
    found = fetch(connection.execute(statement(question), {"ids": as_keys(ids)}))
    if len(found) < len(ids):
        raise Damaged("keys or texts of ops and kernels", "tracker db check tells which")
    return found
