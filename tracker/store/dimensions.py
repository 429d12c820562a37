"""Keys and texts that recur from run to run: stored once, found by digest or by the numbers that they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Final, TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from tracker.profile import ROW_COLUMNS
from tracker.store import bulk

DIGEST_BYTES: Final = 16
_DIGESTS_PER_QUESTION: Final = 1_000

Key = tuple[str | int, ...]
"""The values of the columns of a dimension."""
KeyOf = TypeVar("KeyOf", bound=Key)
OpTexts = tuple[str, ...]
"""The texts of an op: name, shapes, types, module, phase."""


class Dimension(Struct, frozen=True):
    """A dimension table, the columns that make up its keys, and how long the digests are that it finds them by.

    `short_first`: short keys are met most often, and get the numbers that take the fewest bytes. `later`: the last
    column came later, so that keys without it keep the digests that they had before.
    """

    table: str
    columns: tuple[str, ...]
    digest_bytes: int = DIGEST_BYTES
    short_first: bool = False
    later: bool = False

    def order(self, key: Key) -> int:
        """Return what keys are sorted by before their digest."""
        return len(str(key[0])) if self.short_first else 0

    def digest(self, key: Key) -> bytes:
        """Return what stands for a key."""
        told = key[:-1] if self.later and not key[-1] else key
        return digest_of(told, self.digest_bytes)


DETAIL_TEXT: Final = Dimension("detail_text", ("text",), digest_bytes=8, short_first=True)
KERNEL_KEY: Final = Dimension("kernel_key", tuple(ROW_COLUMNS["kernel_key"]))
PROCESS_GROUP: Final = Dimension("process_group", ("role", "size"))
OP_KEY_COLUMNS: Final = tuple(f"{name}_id" for name in ROW_COLUMNS["op_key"])
BETWEEN_FRAMES: Final = ";"


def digest_of(parts: Iterable[object], size: int = DIGEST_BYTES) -> bytes:
    """Return `size` bytes that stand for `parts`; no part may contain NUL, which separates them."""
    return blake2b("\0".join(map(str, parts)).encode(), digest_size=size).digest()


def ids(connection: Connection, dimension: Dimension, keys: Iterable[KeyOf]) -> dict[KeyOf, int]:
    """Return the id of each of `keys`; those that are new get one. Texts must be clean (see `bulk.clean`).

    All keys of an ingest come in one call and are inserted sorted: writers that meet wait for each other in one
    order, and so never in a circle.
    """
    by_digest = {dimension.digest(key): key for key in keys}
    found = _find(connection, dimension, sorted(by_digest))
    new = sorted(by_digest.keys() - found.keys(), key=lambda digest: (dimension.order(by_digest[digest]), digest))
    if new:
        rows = ((digest, *by_digest[digest]) for digest in new)
        names = ["digest", *dimension.columns]
        inserted = bulk.insert_new(connection, dimension.table, names, rows, unique=["digest"])
        found.update((bytes(digest), number) for number, digest in inserted)
        # what another writer brought meanwhile
        found.update(_find(connection, dimension, [digest for digest in new if digest not in found]))
    return {key: found[digest] for digest, key in by_digest.items()}


class Named(Struct, frozen=True):
    """The ids of texts, of ops (name, shapes, types, module, phase) and of call stacks."""

    texts: dict[str, int]
    op_keys: dict[OpTexts, int]
    call_stacks: dict[str, int]


def named(connection: Connection, texts: Iterable[str], op_keys: Iterable[OpTexts], stacks: Iterable[str]) -> Named:
    """Return the ids of texts, of ops and of call stacks (frames, the innermost first), as `ids` gives them; all texts
    are stored in one go, for the sake of the order of writers.
    """
    keys, frames = set(op_keys), {stack: stack.split(BETWEEN_FRAMES)[::-1] for stack in stacks}
    single = {text: (text,) for text in {*texts, *chain.from_iterable((*keys, *frames.values()))}}
    known = ids(connection, DETAIL_TEXT, single.values())
    numbers_of = {text: known[key] for text, key in single.items()}
    numbers = {key: tuple(map(numbers_of.__getitem__, key)) for key in keys}
    found = _numbered(connection, "op_key", OP_KEY_COLUMNS, numbers.values())
    heads = dict.fromkeys(frames, 0)
    for depth in range(max(map(len, frames.values()), default=0)):
        ends = {stack: (heads[stack], numbers_of[own[depth]]) for stack, own in frames.items() if depth < len(own)}
        stored = _numbered(connection, "call_stack", ("parent_id", "frame_id"), ends.values())
        heads.update((stack, stored[end]) for stack, end in ends.items())
    return Named(numbers_of, {key: found[own] for key, own in numbers.items()}, heads)


def _numbered(
    connection: Connection, table: str, columns: Sequence[str], keys: Iterable[tuple[int, ...]]
) -> dict[tuple[int, ...], int]:
    """Return the id of each of these rows of numbers; those that are new get one."""
    wanted = set(keys)
    found = _find_numbers(connection, table, columns, sorted(wanted))
    new = sorted(wanted - found.keys())
    if new:
        inserted = bulk.insert_new(connection, table, columns, new, unique=columns)
        found.update((tuple(numbers), number) for number, *numbers in inserted)
        # what another writer brought meanwhile
        found.update(_find_numbers(connection, table, columns, [numbers for numbers in new if numbers not in found]))
    return found


def _find_numbers(
    connection: Connection, table: str, columns: Sequence[str], keys: Sequence[tuple[int, ...]]
) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    names = ", ".join(columns)
    one = f"({', '.join(['?' if connection.dialect.name == 'sqlite' else '%s'] * len(columns))})"
    remaining = iter(keys)
    while batch := list(islice(remaining, _DIGESTS_PER_QUESTION)):
        # table and columns are those above
        statement = f"SELECT id, {names} FROM {table} WHERE ({names}) IN (VALUES {', '.join([one] * len(batch))})"  # noqa: S608
        for number, *own in bulk.fetch(connection.exec_driver_sql(statement, tuple(chain.from_iterable(batch)))):
            found[tuple(own)] = number
    return found


def stack_texts(frames: Mapping[int, tuple[int, str]]) -> dict[int, str]:
    """Return the text of each call stack.

    `frames`: number -> that of the stack it was called from (0: none), and its frame.

    >>> stack_texts({5: (2, "a.py(1): f"), 2: (0, "b.py(2): g")})
    {2: 'b.py(2): g', 5: 'a.py(1): f;b.py(2): g'}
    """
    texts: dict[int, str] = {}
    for number in frames:
        path = []
        while number and number not in texts:
            path.append(number)
            number = frames[number][0]  # noqa: PLW2901 the way outwards
        for inner in reversed(path):
            parent, frame = frames[inner]
            texts[inner] = f"{frame}{BETWEEN_FRAMES}{texts[parent]}" if parent else frame
    return texts


def _find(connection: Connection, dimension: Dimension, digests: Sequence[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    remaining = iter(digests)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    while batch := tuple(islice(remaining, _DIGESTS_PER_QUESTION)):
        marks = ", ".join([mark] * len(batch))
        # The table is one of those above.
        statement = f"SELECT digest, id FROM {dimension.table} WHERE digest IN ({marks})"  # noqa: S608
        rows = bulk.fetch(connection.exec_driver_sql(statement, batch))
        found.update((bytes(digest), number) for digest, number in rows)
    return found
