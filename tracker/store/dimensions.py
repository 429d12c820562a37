"""Keys and texts that recur from run to run: stored once, found by digest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection

from tracker.profile import ROW_COLUMNS
from tracker.store import bulk

DIGEST_BYTES: Final = 16
_DIGESTS_PER_QUESTION: Final = 1_000

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension table and the columns that make up its keys."""

    table: str
    columns: tuple[str, ...]


OP_KEY: Final = Dimension("op_key", tuple(ROW_COLUMNS["op_key"]))
KERNEL_KEY: Final = Dimension("kernel_key", tuple(ROW_COLUMNS["kernel_key"]))
PROCESS_GROUP: Final = Dimension("process_group", ("role", "size"))
CALL_STACK: Final = Dimension("call_stack", ("text",))


def digest_of(parts: Iterable[object]) -> bytes:
    """16 bytes that stand for `parts`; no part may contain NUL, which separates them."""
    return blake2b("\0".join(map(str, parts)).encode(), digest_size=DIGEST_BYTES).digest()


def ids(connection: Connection, dimension: Dimension, keys: Iterable[Key]) -> dict[Key, int]:
    """The id of each of `keys`; those that are new get one. Texts must be clean (see `bulk.clean`).

    All keys of an ingest come in one call and are inserted sorted: writers that meet wait for each other in one
    order, and so never in a circle.
    """
    by_digest = {digest_of(key): key for key in keys}
    found = _find(connection, dimension, sorted(by_digest))
    new = sorted(by_digest.keys() - found.keys())
    if new:
        rows = ((digest, *by_digest[digest]) for digest in new)
        bulk.insert(connection, dimension.table, ["digest", *dimension.columns], rows, or_keep="digest")
        found.update(_find(connection, dimension, new))
    return {key: found[digest] for digest, key in by_digest.items()}


def _find(connection: Connection, dimension: Dimension, digests: Sequence[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    remaining = iter(digests)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    while batch := tuple(islice(remaining, _DIGESTS_PER_QUESTION)):
        marks = ", ".join([mark] * len(batch))
        # The table is one of the four above.
        statement = f"SELECT digest, id FROM {dimension.table} WHERE digest IN ({marks})"  # noqa: S608
        found.update((bytes(digest), number) for digest, number in connection.exec_driver_sql(statement, batch))
    return found
