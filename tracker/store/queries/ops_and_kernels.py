"""Ops and kernels: thousands of rows of every run, with the texts of their keys.

A database groups and carries numbers much faster than texts, and sorts thousands of long names slowest of all. So it is
asked for numbers, once for all rows, and for the texts of the keys that are left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from operator import itemgetter
from typing import Any, Final, Literal, TypeVar, Unpack

import numpy as np
from msgspec import Struct
from sqlalchemy import Connection, TextClause

from tracker.columns import I64, Column, Columns, listed, objects, stacked
from tracker.schema.column_names import (
    CALL_STACK_ID,
    CALLS,
    DEVICE_SELF_NS,
    HOST_SELF_NS,
    RAW_NAME_ID,
    SEQUENCE_ID,
    TOTAL_NS,
)
from tracker.store.answers import whole
from tracker.store.bulk import as_keys, fetch, fetch_portions
from tracker.store.connect import Store
from tracker.store.dimensions import stack_texts
from tracker.store.failures import CHECK_TELLS, Damaged
from tracker.store.levels import (
    LEAST,
    MOST,
    REAL_SUM,
    SUM,
    Filters,
    LevelQuery,
    build_statement,
    list_numbers_of_steps,
    query_of,
    sum_known_of_ranks,
    with_numbers,
)
from tracker.store.sql import statement
from tracker.table import AddUp, Groups, group_rows, order_largest_first

_MOST_KEPT: Final = 100_000
"""Keys of one kind that a store keeps in memory; a watcher sees ever new ones."""
_QUESTIONS: Final = {"kernel_key": "kernel_keys", "detail_text": "detail_texts"}

KeyTexts = tuple[str, ...]
"""The texts of a key, column by column."""
Answer = Mapping[str, Column]
"""The columns of an answer by name."""

T = TypeVar("T", str, KeyTexts)

_NO_TEXT: Final = -1
_GRAIN: Final = ("run_id", "stage", "rank", "step")
_OP: Final = {"name": 0, "input_shapes": 1, "input_types": 2, "module": 3, "phase": 4}
_LAUNCHING_OP: Final = {"op": 0, "op_input_shapes": 1}
_LAUNCHING_OP_WITH_PLACE: Final = {**_LAUNCHING_OP, "op_input_types": 2, "module": 3, "phase": 4}
_KERNEL: Final = {"name": 0, "canonical_name": 1, "type": 2, "core_type": 3, "input_shapes": 4}
_KERNEL_WITH_TYPES: Final = {**_KERNEL, "input_types": 5, "input_formats": 6}
_ADD_UP: Final[Mapping[str, AddUp]] = {SUM: "sum", REAL_SUM: "sum", LEAST: "min", MOST: "max"}


class Texts(Struct, frozen=True, eq=False):
    """The distinct keys of a column: their `columns`, and the place of each row's key among them, in the order of the
    keys (by code point, the columns one after the other).
    """

    columns: Mapping[str, Sequence[str]]
    places: I64

    @classmethod
    def of(cls, ids: I64, known: Mapping[int, Sequence[str]], columns: Mapping[str, int]) -> Texts:
        """Return the texts behind `ids`.

        `known`: number -> the texts of its key; `columns`: name -> which of these texts.
        """
        numbers, inverse = np.unique(ids, return_inverse=True)
        keys = map(itemgetter(*columns.values()), map(known.__getitem__, numbers.tolist()))
        distinct, places = _placed(list(keys))
        return cls({name: [key[at] for key in distinct] for at, name in enumerate(columns)}, places[inverse])

    @classmethod
    def single(cls, name: str, ids: I64, known: Mapping[int, KeyTexts]) -> Texts:
        """Return the texts behind `ids` as one column, `name`. `known`: number -> its text, in a row of its own."""
        numbers, inverse = np.unique(ids, return_inverse=True)
        distinct, places = _placed([known[number][0] for number in numbers.tolist()])
        return cls({name: distinct}, places[inverse])

    def taken(self, rows: I64) -> dict[str, Any]:
        """Return name -> the texts of these rows."""
        places = self.places[rows]
        return {name: objects(texts)[places] for name, texts in self.columns.items()}


def _placed(keys: Sequence[T]) -> tuple[list[T], I64]:
    """Return the distinct `keys`, in order, and the place of each of `keys` among them."""
    distinct = sorted(set(keys))
    place = {key: at for at, key in enumerate(distinct)}
    return distinct, np.array([place[key] for key in keys], dtype=np.int64)


def keys_of(store: Store, table: Literal["op_key", "kernel_key", "detail_text"], ids: I64) -> Mapping[int, KeyTexts]:
    """Return the texts behind the numbers `ids`, keys of the `table`, by number: those of op_keys.sql, kernel_keys.sql
    or detail_texts.sql. Keys never change, so that only those are asked for that were not read before.
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


def texts_of_stacks(store: Store, run_ids: Sequence[int], numbers: Set[int]) -> Mapping[int, KeyTexts]:
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


def _op_keys(connection: Connection, ids: Collection[int]) -> list[tuple[int, *KeyTexts]]:
    """Return the numbers of ops with their texts: most texts are in many ops, and joins would look each up again."""
    keys, *columns = zip(*_asked(connection, "op_keys", ids), strict=True)
    texts: dict[int, str] = dict(_asked(connection, "detail_texts", set().union(*columns)))
    return list(zip(keys, *([texts[number] for number in column] for column in columns), strict=True))


def _asked(connection: Connection, question: str, ids: Collection[int]) -> list[Any]:
    """Return the rows with these numbers; Damaged where one is gone, which no command takes away."""
    found = fetch(connection.execute(statement(question), {"ids": as_keys(ids)}))
    if len(found) < len(ids):
        raise Damaged("keys or texts of ops and kernels", CHECK_TELLS)
    return found


def ops(store: Store, run_ids: Sequence[int], **filters: Unpack[Filters]) -> Columns:
    """Return one row per grain and op (name, shapes, types, module, phase), the largest device self time first, then
    the largest host self time, then by op and grain.

    Columns: run_id; the grain `by`; name, input_shapes, input_types, module, phase; the numbers of the level op, summed
    over call stacks; call_stack: that of most of its calls, NA where none was recorded; raw_name: its name as the
    profiler wrote it, one of several, NA where that is the name.
    """
    by = filters.get("by", ())
    level = with_numbers(query_of("op"), filters.get("numbers"))
    found = _level(store, level, run_ids, filters)
    grain_of = [name for name in _GRAIN if name in found]
    grain = _integers(found, grain_of)
    (op_keys,) = _integers(found, ("op_key_id",))
    stack, calls = found[CALL_STACK_ID], found[CALLS]
    if _is_of_rows(by) and not stack.missing.all():
        calls = group_rows(*grain, op_keys, stack.missing.astype(np.int64), stack.values).share_sums(calls)
    often = np.where(calls.missing, -1, calls.values)
    groups = group_rows(*grain, op_keys, then=[stack.missing.astype(np.int64), -often, stack.values])
    numbers, first = _add_up(found, level, groups), groups.first
    texts = Texts.of(op_keys[first], keys_of(store, "op_key", op_keys), _OP)
    raw_name = groups.add_up(found[RAW_NAME_ID], "min")
    grain = [column[first] for column in grain]
    rows = order_largest_first([numbers[DEVICE_SELF_NS], numbers[HOST_SELF_NS]], [texts.places, *grain])
    return Columns(
        {
            **_grain(dict(zip(grain_of, grain, strict=True)), by, rows),
            **texts.taken(rows),
            **{name: column[rows] for name, column in numbers.items()},
            "call_stack": stack_column(store, whole(run_ids), stack[first[rows]]),
            "raw_name": _text_column(store, raw_name[rows]),
        }
    )


def _text_column(store: Store, numbers: Column) -> Any:
    """Return the text of each number in detail_text, None for what is missing."""
    if numbers.missing.all():
        return objects([None] * len(numbers))
    known = keys_of(store, "detail_text", numbers.values[~numbers.missing])
    return objects([None if number is None else known[number][0] for number in listed(numbers)])


def stack_column(store: Store, run_ids: Sequence[int], stack: Column) -> Any:
    """Return the text of each number of a call stack that was recorded in these runs, None for what is missing."""
    if stack.missing.all():
        return objects([None] * len(stack))
    numbers = listed(stack)
    known = texts_of_stacks(store, run_ids, {number for number in numbers if number is not None})
    return objects([None if number is None else known[number][0] for number in numbers])


def kernels(store: Store, run_ids: Sequence[int], **filters: Unpack[Filters]) -> Columns:
    """Return one row per grain, kernel (without types and formats), category and op (name and shapes), the largest
    total first, then by kernel, category, op and grain.

    Columns: run_id; the grain `by`; name, canonical_name, type, core_type, input_shapes; category; op,
    op_input_shapes: the launching op; the numbers of the level kernel.
    """
    level = with_numbers(query_of("kernel"), filters.get("numbers"))
    found = _level(store, level, run_ids, filters)
    kernel_keys, op_keys, categories = _integers(found, ("kernel_key_id", "op_key_id", "category_id"))
    texts = [
        Texts.of(kernel_keys, keys_of(store, "kernel_key", kernel_keys), _KERNEL),
        Texts.single("category", categories, keys_of(store, "detail_text", categories)),
        Texts.of(op_keys, keys_of(store, "op_key", op_keys), _LAUNCHING_OP),
    ]
    grain_of = [name for name in _GRAIN if name in found]
    grain = _integers(found, grain_of)
    places = [own.places for own in texts]
    groups = group_rows(*grain, *places)
    numbers, first = _add_up(found, level, groups), groups.first
    grain = [column[first] for column in grain]
    rows = order_largest_first([numbers[TOTAL_NS]], [*(own[first] for own in places), *grain])
    arrays = [own.taken(first[rows]) for own in texts]
    return Columns(
        {
            **_grain(dict(zip(grain_of, grain, strict=True)), filters.get("by", ()), rows),
            **{name: array for own in arrays for name, array in own.items()},
            **{name: column[rows] for name, column in numbers.items()},
        }
    )


def op_stacks(store: Store, run_ids: Sequence[int], parameters: Mapping[str, Any]) -> Columns:
    """Return from where the ops of each rank are called: rank; name, input_shapes, input_types, module, phase;
    call_stack. Ops without a call stack are left out.
    """
    found = _columns(store, statement("op_stacks"), parameters)
    ranks, keys = _integers(found, ("rank", "op_key_id"))
    texts = Texts.of(keys, keys_of(store, "op_key", keys), _OP)
    stacks = found[CALL_STACK_ID]
    return Columns(
        {
            "rank": ranks,
            **texts.taken(np.arange(len(ranks))),
            "call_stack": stack_column(store, whole(run_ids), stacks),
        }
    )


def rank_ops(store: Store, parameters: Mapping[str, Any]) -> Columns:
    """Return one row per rank and op: rank; name, input_shapes, input_types, module, phase; calls, host_total_ns,
    host_self_ns, device_total_ns, device_self_ns (0 where not known).
    """
    found = _columns(store, statement("rank_ops"), parameters)
    rank, keys = _integers(found, ("rank", "op_key_id"))
    texts = Texts.of(keys, keys_of(store, "op_key", keys), _OP)
    names = ("calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")
    numbers = {name: _or_zero(found[name]) for name in names}
    return Columns({"rank": rank, **texts.taken(np.arange(len(rank))), **numbers})


def rank_kernels(store: Store, parameters: Mapping[str, Any]) -> Columns:
    """Return one row per rank, kernel, category and op: rank; name, canonical_name, type, core_type, input_shapes,
    input_types, input_formats; category; op, op_input_shapes, op_input_types, module, phase; calls, total_ns, bytes (0
    where not known).
    """
    names = ("calls", "total_ns", "bytes")
    found = _columns(store, sum_known_of_ranks("kernel", names), parameters)
    rank, kernel_keys, op_keys, categories = _integers(found, ("rank", "kernel_key_id", "op_key_id", "category_id"))
    every = np.arange(len(rank))
    texts = [
        Texts.of(kernel_keys, keys_of(store, "kernel_key", kernel_keys), _KERNEL_WITH_TYPES),
        Texts.single("category", categories, keys_of(store, "detail_text", categories)),
        Texts.of(op_keys, keys_of(store, "op_key", op_keys), _LAUNCHING_OP_WITH_PLACE),
    ]
    numbers = {name: _or_zero(found[name]) for name in names}
    return Columns({"rank": rank, **{n: own for one in texts for n, own in one.taken(every).items()}, **numbers})


class StepRows(Struct, frozen=True, eq=False):
    """Rows of each rank and step. `rows`: rank, step, `key` and numbers, 0 where they are not known; several rows may
    be of one rank, step and key. `texts`: of each key, by its place. `known`: the numbers that any row states.
    """

    rows: Columns
    texts: Columns
    known: frozenset[str] = frozenset()


def step_ops(store: Store, parameters: Mapping[str, Any]) -> StepRows:
    """Return the ops of each rank and step: calls, host_self_ns, device_self_ns, kernel_count. Their texts: name,
    input_shapes, input_types, module, phase.
    """
    names = ("calls", "host_self_ns", "device_self_ns", "kernel_count")
    found = _columns(store, list_numbers_of_steps("op", ("op_key_id",), names), parameters)
    (keys,) = _integers(found, ("op_key_id",))
    texts = Texts.of(keys, keys_of(store, "op_key", keys), _OP)
    return _of_steps(found, names, [texts])


def step_kernels(store: Store, parameters: Mapping[str, Any]) -> StepRows:
    """Return the device events of each rank and step: calls, total_ns, bytes, sequence_saved_ns. Their texts: those of
    `rank_kernels`, and sequence, "" of what stands in none.
    """
    names = ("calls", "total_ns", "bytes", "sequence_saved_ns")
    references = ("kernel_key_id", "category_id", "op_key_id")
    found = _columns(store, list_numbers_of_steps("kernel", (*references, "sequence_id"), names), parameters)
    kernel_keys, categories, op_keys = _integers(found, references)
    texts = [
        Texts.of(kernel_keys, keys_of(store, "kernel_key", kernel_keys), _KERNEL_WITH_TYPES),
        Texts.single("category", categories, keys_of(store, "detail_text", categories)),
        Texts.of(op_keys, keys_of(store, "op_key", op_keys), _LAUNCHING_OP_WITH_PLACE),
        _texts_of_sequences(store, found[SEQUENCE_ID]),
    ]
    return _of_steps(found, names, texts)


def _texts_of_sequences(store: Store, numbers: Column) -> Texts:
    """Return the texts behind the numbers of sequences, "" for what is missing."""
    known = keys_of(store, "detail_text", numbers.values[~numbers.missing])
    texts = {number: known[number] for number in set(numbers.values[~numbers.missing].tolist())}
    return Texts.single("sequence", np.where(numbers.missing, _NO_TEXT, numbers.values), {**texts, _NO_TEXT: ("",)})


def _of_steps(found: Answer, names: Sequence[str], texts: Sequence[Texts]) -> StepRows:
    rank, step = _integers(found, ("rank", "step"))
    groups = group_rows(*(own.places for own in texts))
    numbers = {name: _or_zero(found[name]) for name in names}
    of_keys = {name: column for own in texts for name, column in own.taken(groups.first).items()}
    known = frozenset(name for name in names if not found[name].missing.all())
    return StepRows(Columns({"rank": rank, "step": step, "key": groups.number, **numbers}), Columns(of_keys), known)


def _or_zero(column: Column) -> I64:
    return np.where(column.missing, 0, column.values)


def _is_of_rows(by: Sequence[str]) -> bool:
    """Return whether the rows themselves are asked for: a database takes longer to group them than to give them."""
    return set(by) - {"run"} == {"rank", "step"}


def _level(store: Store, level: LevelQuery, run_ids: Sequence[int], filters: Filters) -> Answer:
    question = build_statement(level, run_ids, **filters, summed=not _is_of_rows(filters.get("by", ())))
    return _columns(store, *question, reals={name for name, how in level.numbers.items() if how == REAL_SUM})


def _columns(
    store: Store, question: TextClause, parameters: Mapping[str, Any], *, reals: Set[str] = frozenset()
) -> Answer:
    """Return the answer column by column: whole numbers, and real ones in `reals`."""
    with store.connect() as connection:
        result = connection.execute(question, dict(parameters))
        names = list(result.keys())
        kinds = [np.float64 if name in reals else np.int64 for name in names]
        parts = [[Column.of([], kind) for kind in kinds]]
        for rows in fetch_portions(result):
            parts.append([Column.of(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)])
    return {name: stacked([part[at] for part in parts]) for at, name in enumerate(names)}


def _integers(found: Answer, names: Sequence[str]) -> list[I64]:
    """Return columns of which nothing is missing."""
    return [found[name].values for name in names]


def _add_up(found: Answer, level: LevelQuery, groups: Groups) -> dict[str, Column]:
    """Return the numbers of each group of rows."""
    return {name: groups.add_up(found[name], _ADD_UP[how]) for name, how in level.numbers.items()}


def _grain(grain: Mapping[str, I64], by: Sequence[str], rows: I64) -> dict[str, Any]:
    """Return the columns of the grain that is asked for; run_id, the first one, always."""
    wanted = {name: column[rows] for name, column in grain.items() if name == "run_id" or name in by}
    return {name: Column(column, (column == -1) & (name == "stage")) for name, column in wanted.items()}
