"""Runs that are stored with the names of operators as they were written get the keys of today, without their files.

What cannot be told from stored rows is left to `tracker ingest --again`: the rows of such a run stay as they are, and
so does the version of its naming rules, by which it is not compared with others.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, bindparam, text

from tracker.profile import I64, MISSING, NO_OP, UNLINKED_OP
from tracker.profile.numbered_names import skeleton_of
from tracker.profile.operator_names import (
    find_data_numbers,
    is_graph_call,
    is_numbered_kernel,
    number_by_order,
    stable_name,
)
from tracker.schema.column_names import (
    CALLS,
    DEVICE_SELF_NS,
    DEVICE_TOTAL_NS,
    HOST_TOTAL_NS,
    KERNEL_COUNT,
    NODE,
    OP_KEY_ID,
    PARENT,
    RAW_NAME_ID,
    STEP,
)
from tracker.schema.levels import LEVEL
from tracker.schema.series import KINDS, SeriesKey
from tracker.store import bulk, dimensions, recordings
from tracker.store.documents import FORGET_SAMPLES
from tracker.store.packing import CONTEXT_NUMBERS, Contexts, pack_contexts, unpack_contexts
from tracker.store.samples import rename_series
from tracker.table import group_rows

RULES_BEFORE: Final = 6
RULES_AFTER: Final = 7
"""The naming rules (`timeline.names.RULES_VERSION`) of before and after."""

_MERGED: Final = ("op", "kernel", "memory", "memory_allocator")
"""Levels whose rows have an operator in their key: two operators that become one are one row."""
_REFERRING: Final = ("memory_peak", "memory_block")
_NAMING: Final = (("idle", "place_id"), ("memory_peak", "allocator_id"), ("memory_block", "allocator_id"))
"""Columns that name an operator by its text."""
_MAY_MARK_STEPS: Final = re.compile(r"(?!Optimizer\.).*(?:execute|step|iter|batch)", re.IGNORECASE | re.DOTALL)
_OF_OPERATOR: Final = re.compile(r"::|Backward\d*$|^\(|^triton_|Compiled")
NO_PARENT: Final = -1

_OP_KEYS: Final = text(
    "SELECT k.id, n.text, i.text, y.text, m.text, h.text FROM op_key AS k "
    "INNER JOIN detail_text AS n ON k.name_id = n.id INNER JOIN detail_text AS i ON k.input_shapes_id = i.id "
    "INNER JOIN detail_text AS y ON k.input_types_id = y.id INNER JOIN detail_text AS m ON k.module_id = m.id "
    "INNER JOIN detail_text AS h ON k.phase_id = h.id ORDER BY k.id"
)
_RANKS: Final = text(
    "SELECT DISTINCT o.run_id, o.rank FROM op AS o INNER JOIN run AS r ON o.run_id = r.id "
    "WHERE r.rules_version = :rules AND o.op_key_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e) "
    "ORDER BY o.run_id, o.rank"
)
_IS_AS_MARK: Final = "CASE WHEN o.calls = 1 AND o.host_total_ns = COALESCE(s.marker_ns, s.duration_ns) THEN"
_MARKS: Final = text(
    f"SELECT o.run_id, o.rank, o.op_key_id, COUNT(*), SUM({_IS_AS_MARK} 1 ELSE 0 END), "  # noqa: S608 the text above
    f"MIN({_IS_AS_MARK} o.step END), MAX({_IS_AS_MARK} o.step END) "
    "FROM op AS o INNER JOIN run AS r ON o.run_id = r.id "
    "LEFT JOIN step AS s ON o.run_id = s.run_id AND o.rank = s.rank AND o.step = s.step "
    "WHERE r.rules_version = :rules AND o.op_key_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e) "
    "GROUP BY o.run_id, o.rank, o.op_key_id ORDER BY o.run_id, o.rank, o.op_key_id"
)
_WITH_GRAPHS: Final = text(
    "SELECT DISTINCT o.run_id, o.op_key_id FROM op AS o INNER JOIN run AS r ON o.run_id = r.id "
    "WHERE r.rules_version = :rules AND o.device_self_ns > 0 "
    "AND o.op_key_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e) "
    "AND EXISTS (SELECT 1 FROM api AS a WHERE a.run_id = o.run_id "
    "AND a.name_id IN (SELECT t.id FROM detail_text AS t WHERE t.text LIKE :name)) "
    "AND NOT EXISTS (SELECT 1 FROM source AS s WHERE s.run_id = o.run_id AND s.format = 'nsys_sqlite')"
)
_ANY_TEXT: Final = text("SELECT id FROM detail_text WHERE text LIKE :name LIMIT 1")
_STEPS_OF_OPS: Final = text(
    "SELECT DISTINCT o.step, o.op_key_id FROM op AS o WHERE o.run_id = :run_id AND o.rank = :rank"
)
_TREE: Final = text("SELECT contexts FROM op_tree WHERE run_id = :run_id AND rank = :rank")
_SET_TREE: Final = text("UPDATE op_tree SET contexts = :contexts WHERE run_id = :run_id AND rank = :rank")
_RUNS: Final = text("SELECT id FROM run WHERE rules_version = :rules ORDER BY id")
_SET_RULES: Final = text("UPDATE run SET rules_version = :rules WHERE id = :run_id")
_PRUNED_NAMES: Final = text(
    "SELECT DISTINCT m.run_id, s.workload_id, s.configuration_id, s.device_id, s.name FROM sample AS m "
    "INNER JOIN series AS s ON m.series_id = s.id INNER JOIN run AS r ON m.run_id = r.id "
    "WHERE r.rules_version = :rules AND s.kind = 'op_name' AND EXISTS ("
    "SELECT 1 FROM capture AS c WHERE c.run_id = m.run_id AND c.pruned_at_ns IS NOT NULL)"
)
_TRACKS: Final = text("SELECT id, workload_id, configuration_id, device_id FROM run")
_RENAME_LIMITS: Final = text(
    "UPDATE threshold SET pattern = :new WHERE workload_id = :workload_id AND pattern = :old AND NOT EXISTS ("
    "SELECT 1 FROM threshold AS o WHERE o.workload_id = :workload_id AND o.pattern = :new)"
)
_SERIES: Final = text(
    "SELECT id, workload_id, configuration_id, device_id, kind, metric, name, input_shapes, part, step_kind "
    "FROM series "
    "WHERE kind IN :kinds ORDER BY id"
).bindparams(bindparam("kinds", expanding=True))
_KINDS: Final = tuple(kind.word for kind in KINDS if kind.texts == "op_key" and kind.name == "name")
"""Kinds of series that are called as an operator."""

_OF_PLACE: Final = "run_id = :run_id AND rank = :rank AND "
_AMONG: Final = " IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)"
_OF_KEYS: Final = f"{_OF_PLACE}op_key_id{_AMONG}"

Track = tuple[int, int, int]
Place = tuple[int, int]
"""A run and a rank."""


def rename_stored(connection: Connection) -> None:
    """Give the runs that were read by the rules of before the keys of today, in the open transaction."""
    names: dict[int, tuple[str, ...]] = {row[0]: tuple(row[1:]) for row in connection.execute(_OP_KEYS)}
    marks, to_read = _find_marks(connection, names)
    to_read |= _find_runs_with_graphs(connection, names, marks)
    changed: set[int] = set()
    for place, of_rank in sorted(marks.items()):
        if place[0] not in to_read:
            _drop_marks(connection, place, of_rank, names)
            changed.add(place[0])
    votes: dict[tuple[Track, str], Counter[str]] = defaultdict(Counter)
    track_of_run: dict[int, Track] = {row[0]: (row[1], row[2], row[3]) for row in connection.execute(_TRACKS)}
    candidates = _find_candidates(names)
    ranks: dict[int, list[int]] = {}
    if candidates:
        parameters = {"rules": RULES_BEFORE, "ids": bulk.as_keys(candidates)}
        for run_id, rank in connection.execute(_RANKS, parameters).all():
            ranks.setdefault(run_id, []).append(rank)
    for run_id, of_run in sorted(ranks.items()):
        if run_id in to_read:
            continue
        new_names = {rank: _name_rank(connection, run_id, rank, names) for rank in of_run}
        if any(own is None for own in new_names.values()):
            to_read.add(run_id)
            continue
        for rank, own in new_names.items():
            if own:
                _rename_rank(connection, run_id, rank, own, names)
                changed.add(run_id)
                for op_key, name in own.items():
                    votes[track_of_run[run_id], names[op_key][0]][name] += 1
    _vote_of_pruned(connection, votes)
    _rename_series(connection, votes)
    _rename_limits(connection, votes)
    for run_id in sorted(changed):
        connection.execute(FORGET_SAMPLES, {"run_id": run_id})
    done = [run_id for run_id in connection.scalars(_RUNS, {"rules": RULES_BEFORE}).all() if run_id not in to_read]
    for run_id in done:
        connection.execute(_SET_RULES, {"run_id": run_id, "rules": RULES_AFTER})
    recordings.refresh_recordings(connection, done)


def _find_candidates(names: Mapping[int, tuple[str, ...]]) -> list[int]:
    """Return the keys of operators whose name may be another one now."""
    of_skeleton: dict[str, set[str]] = {}
    for name, *_ in names.values():
        if _may_be_annotation(name):
            of_skeleton.setdefault(skeleton_of(name), set()).add(name)
    candidates = []
    for op_key, (name, *_) in names.items():
        has_siblings = len(of_skeleton.get(skeleton_of(name), ())) > 1
        if has_siblings or is_numbered_kernel(name) or stable_name(name) != name:
            candidates.append(op_key)
    return candidates


def _may_be_annotation(name: str) -> bool:
    return _OF_OPERATOR.search(name) is None


def _find_marks(connection: Connection, names: Mapping[int, tuple[str, ...]]) -> tuple[dict[Place, set[int]], set[int]]:
    """Return the keys of annotations that mark the steps of a rank, and the runs in which that is not sure.

    A mark comes once in each of its steps, and lasts as long as the step is marked, to the nanosecond.
    """
    asked = [op_key for op_key, (name, *_) in names.items() if _may_be_annotation(name) and _MAY_MARK_STEPS.match(name)]
    if not asked:
        return {}, set()
    marks: dict[Place, set[int]] = {}
    steps: dict[Place, set[int]] = {}
    unsure: set[Place] = set()
    found = connection.execute(_MARKS, {"rules": RULES_BEFORE, "ids": bulk.as_keys(asked)})
    for run_id, rank, op_key, rows, alike, first, last in found:
        if alike:
            place = (run_id, rank)
            marks.setdefault(place, set()).add(op_key)
            steps.setdefault(place, set()).update((first, last))
            if alike < rows:
                unsure.add(place)
    # a capture without markers is one step, which a range may fill
    marks = {place: keys for place, keys in marks.items() if len(steps[place]) > 1}
    to_read = set()
    for place, keys in marks.items():
        contexts = _read_tree(connection, place)
        if place in unsure or contexts is None or _lie_in_others(contexts, keys):
            to_read.add(place[0])
    return marks, to_read


def _lie_in_others(contexts: Contexts, marks: set[int]) -> bool:
    """Return whether a mark of steps lies in an operator or range: its work may be that one's."""
    pairs = zip(contexts.op_key_id.tolist(), contexts.parent.tolist(), strict=True)
    return any(op_key in marks and parent >= 0 for op_key, parent in pairs)


def _find_runs_with_graphs(
    connection: Connection, names: Mapping[int, tuple[str, ...]], marks: Mapping[Place, set[int]]
) -> set[int]:
    """Return the runs that launch graphs, and in which another annotation than a mark of steps has kernels: only their
    files tell whether these are a graph's.
    """
    pseudo = (NO_OP, UNLINKED_OP)
    annotations = [op_key for op_key, (name, *_) in names.items() if name not in pseudo and _may_be_annotation(name)]
    asked = {"rules": RULES_BEFORE, "ids": bulk.as_keys(annotations), "name": "%GraphLaunch%"}
    if not annotations or connection.execute(_ANY_TEXT, {"name": asked["name"]}).first() is None:
        return set()
    marks_of_run: dict[int, set[int]] = {}
    for (run_id, _), of_rank in marks.items():
        marks_of_run.setdefault(run_id, set()).update(of_rank)
    rows = connection.execute(_WITH_GRAPHS, asked)
    return {run_id for run_id, op_key in rows if op_key not in marks_of_run.get(run_id, ())}


def _drop_marks(connection: Connection, place: Place, marks: set[int], names: dict[int, tuple[str, ...]]) -> None:
    """Write the rows of a rank without the marks of its steps among the operators: their kernels have no operator."""
    texts = (NO_OP, "", "", "", "")
    named = dimensions.named(connection, {names[mark][0] for mark in marks} | {""}, [texts], ())
    no_op = named.op_keys[texts]
    names[no_op] = texts
    new_key = dict.fromkeys(marks, no_op)
    for level in ("kernel", "memory", "memory_allocator"):
        _rename_rows(connection, level, place, new_key, {})
    _drop_rows_of_marks(connection, place, marks, no_op)
    _refer_to(connection, place, new_key)
    _name_in_texts(connection, place, {named.texts[names[mark][0]]: named.texts[""] for mark in marks})
    _rewrite_tree(connection, place, {}, marks, no_op)


def _drop_rows_of_marks(connection: Connection, place: Place, marks: set[int], no_op: int) -> None:
    """Delete the operators that mark steps; the device events that they launched count to no operator."""
    asked = {"run_id": place[0], "rank": place[1], "ids": bulk.as_keys({*marks, no_op})}
    # a later migration adds columns that the table does not have yet
    question = text(f"SELECT * FROM op WHERE {_OF_KEYS}")  # noqa: S608
    result = connection.execute(question, asked)
    names = result.keys()
    columns = [name for name in names if name not in ("run_id", "rank")]
    rows = result.mappings().all()
    of_step: dict[int, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row[OP_KEY_ID] in marks):
        nothing = dict.fromkeys(columns) | {STEP: row[STEP], OP_KEY_ID: no_op, CALLS: 0}
        nothing |= {DEVICE_TOTAL_NS: 0, DEVICE_SELF_NS: 0, KERNEL_COUNT: 0}
        if row[OP_KEY_ID] == no_op:
            of_step[row[STEP]] = dict(row)
            continue
        added = of_step.setdefault(row[STEP], nothing)
        added[DEVICE_SELF_NS] += row[DEVICE_SELF_NS] or 0
        added[DEVICE_TOTAL_NS] += row[DEVICE_SELF_NS] or 0
        added[KERNEL_COUNT] += row[KERNEL_COUNT] or 0
    connection.execute(text(f"DELETE FROM op WHERE {_OF_KEYS}"), asked)  # noqa: S608 as above
    lines = [(*place, *(row[name] for name in columns)) for row in of_step.values() if row[KERNEL_COUNT]]
    if lines:
        bulk.insert(connection, "op", ("run_id", "rank", *columns), lines)


def _name_rank(
    connection: Connection, run_id: int, rank: int, names: Mapping[int, tuple[str, ...]]
) -> dict[int, str] | None:
    """Return key -> new name of the operators of a rank that have another one; None where its rows do not tell it."""
    place = {"run_id": run_id, "rank": rank}
    names_of_step: dict[int, set[str]] = {}
    used: set[int] = set()
    for step, op_key in connection.execute(_STEPS_OF_OPS, place):
        used.add(op_key)
        name = names[op_key][0]
        if step >= 0 and _may_be_annotation(name):
            names_of_step.setdefault(step, set()).add(name)
    of_annotation = find_data_numbers(names_of_step.values())
    contexts = _read_tree(connection, (run_id, rank))
    of_kernel = _number_kernels(contexts, {op_key: names[op_key][0] for op_key in used})
    if of_kernel is None:
        return None
    found = {}
    for op_key in used:
        name = names[op_key][0]
        new_name = of_kernel.get(name) or of_annotation.get(name) or stable_name(name)
        if new_name != name:
            found[op_key] = new_name
    return found


def _number_kernels(contexts: Contexts | None, names: Mapping[int, str]) -> dict[str, str] | None:
    """Return name -> new name of the numbered kernels of a rank; None where one has several places in its graphs.

    contexts: without them all kernels are of one graph. names: key -> name of the operators of the rank.
    """
    numbered = {name for name in names.values() if is_numbered_kernel(name)}
    if not numbered or contexts is None:
        return number_by_order(numbered)
    name_of_node: dict[int, str] = {}
    parent_of_node: dict[int, int] = {}
    for node, parent, op_key in zip(contexts.node, contexts.parent, contexts.op_key_id, strict=True):
        name_of_node[int(node)] = names.get(int(op_key), "")
        parent_of_node[int(node)] = int(parent)
    names_of_graph: dict[str, set[str]] = {}
    for node, name in name_of_node.items():
        if name in numbered:
            around = parent_of_node[node]
            while around >= 0 and not is_graph_call(name_of_node[around]):
                around = parent_of_node[around]
            graph = name_of_node[around] if around >= 0 else ""
            names_of_graph.setdefault(graph, set()).add(name)
    keys: dict[str, str] = {}
    for of_graph in names_of_graph.values():
        for name, key in number_by_order(of_graph).items():
            if keys.setdefault(name, key) != key:
                return None
    return number_by_order(numbered - keys.keys()) | keys


def _rename_rank(
    connection: Connection, run_id: int, rank: int, new_names: Mapping[int, str], names: dict[int, tuple[str, ...]]
) -> None:
    """Write the rows of a rank with new names. new_names: key -> name; names: key -> its texts, to which new ones are
    added.
    """
    texts_of_key = {op_key: (name, *names[op_key][1:]) for op_key, name in new_names.items()}
    raw_names = {names[op_key][0] for op_key in new_names}
    named = dimensions.named(connection, raw_names, texts_of_key.values(), ())
    new_key = {op_key: named.op_keys[texts] for op_key, texts in texts_of_key.items()}
    for op_key, texts in texts_of_key.items():
        names[new_key[op_key]] = texts
    raw_id = {op_key: named.texts[names[op_key][0]] for op_key in new_names}
    place = (run_id, rank)
    for level in _MERGED:
        _rename_rows(connection, level, place, new_key, raw_id)
    _refer_to(connection, place, new_key)
    _name_in_texts(connection, place, {raw_id[op_key]: named.texts[name] for op_key, name in new_names.items()})
    _rewrite_tree(connection, place, new_key)


def _refer_to(connection: Connection, place: Place, new_key: Mapping[int, int]) -> None:
    """Write new keys into the rows that name an operator and are numbered by their place."""
    values = [{"run_id": place[0], "rank": place[1], "old": old, "new": new} for old, new in new_key.items()]
    for level in _REFERRING:
        where = f"{_OF_PLACE}op_key_id = :old"
        # the levels are those above
        connection.execute(text(f"UPDATE {level} SET op_key_id = :new WHERE {where}"), values)  # noqa: S608


def _name_in_texts(connection: Connection, place: Place, new_text: Mapping[int, int]) -> None:
    """Write the new names of operators, old text -> new one, where a row names one by its text alone: where the device
    idled, and what made an allocation.
    """
    values = [{"run_id": place[0], "rank": place[1], "old": old, "new": new} for old, new in new_text.items()]
    for level, column in _NAMING:
        where = f"{_OF_PLACE}{column} = :old"
        # the levels and columns are those above
        connection.execute(text(f"UPDATE {level} SET {column} = :new WHERE {where}"), values)  # noqa: S608
    _rename_rows(connection, "memory_allocator", place, new_text, {}, column="allocator_id")


def _read_tree(connection: Connection, place: Place) -> Contexts | None:
    packed = connection.execute(_TREE, {"run_id": place[0], "rank": place[1]}).scalar()
    return None if packed is None else unpack_contexts(bytes(packed))


def _rewrite_tree(
    connection: Connection, place: Place, new_key: Mapping[int, int], marks: Collection[int] = (), no_op: int = -1
) -> None:
    """Write the calling contexts of a rank with new keys, without marks of steps; those that become alike are one.

    marks: keys, all of them roots, whose own device events are those of `no_op`.
    """
    contexts = _read_tree(connection, place)
    if contexts is None:
        return
    node_of: dict[int, int] = {}
    numbered: dict[tuple[int, int], int] = {}
    # a parent has a smaller number than what lies in it
    order = sorted(zip(contexts.node.tolist(), contexts.parent.tolist(), contexts.op_key_id.tolist(), strict=True))
    for node, parent, op_key in order:
        if op_key in marks:
            node_of[node] = NO_PARENT
            continue
        path = (node_of.get(parent, NO_PARENT), new_key.get(op_key, op_key))
        node_of[node] = numbered.setdefault(path, len(numbered))
    rows = _rows_of_contexts(contexts)
    if marks:
        kept, moved = _part_marks(rows, contexts, marks)
        moved[NODE][:] = numbered.setdefault((NO_PARENT, no_op), len(numbered))
        kept[NODE] = np.array([node_of[node] for node in kept[NODE].tolist()], dtype=np.int64)
        rows = {name: np.concatenate((kept[name], moved[name])) for name in kept}
    else:
        rows[NODE] = np.array([node_of[node] for node in rows[NODE].tolist()], dtype=np.int64)
    groups = group_rows(rows[NODE], rows[STEP])
    paths = list(numbered)
    summed = {name: groups.add_up_marked(rows[name], MISSING, "known") for name in CONTEXT_NUMBERS}
    nodes = rows[NODE][groups.first]
    summed |= {NODE: nodes, STEP: rows[STEP][groups.first]}
    summed[PARENT] = np.array([paths[node][0] for node in nodes.tolist()], dtype=np.int64)
    summed[OP_KEY_ID] = np.array([paths[node][1] for node in nodes.tolist()], dtype=np.int64)
    values = {"run_id": place[0], "rank": place[1], "contexts": pack_contexts(summed)}
    connection.execute(_SET_TREE, values)


def _rows_of_contexts(contexts: Contexts) -> dict[str, I64]:
    """Return a row per context and step: node, step, and the numbers."""
    numbers = {name: column.copy() for name, column in zip(CONTEXT_NUMBERS, contexts.numbers, strict=True)}
    return {NODE: contexts.node[contexts.place], STEP: contexts.step, **numbers}


def _part_marks(
    rows: Mapping[str, I64], contexts: Contexts, marks: Collection[int]
) -> tuple[dict[str, I64], dict[str, I64]]:
    """Return the rows without those of marks, and what the marks launched themselves as rows of no operator."""
    is_mark = np.isin(contexts.op_key_id, list(marks))[contexts.place]
    kept = {name: column[~is_mark] for name, column in rows.items()}
    moved = {name: column[is_mark].copy() for name, column in rows.items()}
    # their counts hold those of the contexts in them
    parent = contexts.parent[contexts.place]
    for at, (node, step) in enumerate(zip(moved[NODE].tolist(), moved[STEP].tolist(), strict=True)):
        inside = (parent == node) & (rows[STEP] == step)
        moved[KERNEL_COUNT][at] -= rows[KERNEL_COUNT][inside].sum()
    moved[DEVICE_TOTAL_NS] = moved[DEVICE_SELF_NS]
    moved[CALLS] = np.zeros_like(moved[CALLS])
    moved[HOST_TOTAL_NS] = np.full_like(moved[CALLS], MISSING)
    works = (moved[KERNEL_COUNT] > 0) | (moved[DEVICE_SELF_NS] > 0)
    return kept, {name: column[works] for name, column in moved.items()}


def _rename_rows(
    connection: Connection,
    level: str,
    place: Place,
    new_number: Mapping[int, int],
    raw_id: Mapping[int, int],
    *,
    column: str = "op_key_id",
) -> None:
    """Write the rows of a level of one rank with new numbers in a column, those that become one added up.

    raw_id: key of an operator -> the text of its name as it was written.
    """
    asked = {"run_id": place[0], "rank": place[1], "ids": bulk.as_keys({*new_number, *new_number.values()})}
    where = f"{_OF_PLACE}{column}{_AMONG}"
    # the level is a declared one; a later migration adds columns that the table does not have yet
    question = text(f"SELECT * FROM {level} WHERE {where}")  # noqa: S608
    rows = connection.execute(question, asked).mappings().all()
    if not rows:
        return
    columns = [name for name in rows[0] if name not in ("run_id", "rank")]
    merged: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    key_columns = LEVEL[level].stored_key
    for row in rows:
        number = row[column]
        renamed = {**row, column: new_number.get(number, number)}
        if level == "op" and number in raw_id:
            renamed[RAW_NAME_ID] = raw_id[number]
        merged.setdefault(tuple(renamed[name] for name in key_columns), []).append(renamed)
    connection.execute(text(f"DELETE FROM {level} WHERE {where}"), asked)  # noqa: S608 as above
    lines = []
    for own in merged.values():
        added = own[0] if len(own) == 1 else _add_up(level, own)
        lines.append((*place, *(added[name] for name in columns)))
    bulk.insert(connection, level, ("run_id", "rank", *columns), lines)


def _add_up(level: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one row of several, each number as its declaration adds it up, all else that of the first."""
    added = dict(rows[0])
    for column in LEVEL[level].columns:
        if not column.adds or column.stored_name not in added:
            continue
        values = [row[column.stored_name] for row in rows]
        known = [value for value in values if value is not None]
        is_missing = len(known) < len(values) if column.adds in ("sum", "real_sum") else not known
        if is_missing:
            added[column.stored_name] = None
        elif column.adds == "min":
            added[column.stored_name] = min(known)
        elif column.adds == "max":
            added[column.stored_name] = max(known)
        else:
            added[column.stored_name] = sum(known)
    return added


def _vote_of_pruned(connection: Connection, votes: dict[tuple[Track, str], Counter[str]]) -> None:
    """Add to `votes` the names that runs without details would have: their series are all that is left of them."""
    names_of_run: dict[tuple[int, Track], set[str]] = {}
    for run_id, workload, configuration, device, name in connection.execute(_PRUNED_NAMES, {"rules": RULES_BEFORE}):
        names_of_run.setdefault((run_id, (workload, configuration, device)), set()).add(name)
    for (_, track), names in names_of_run.items():
        of_kernel = number_by_order(name for name in names if is_numbered_kernel(name))
        for name in names:
            new_name = of_kernel.get(name) or stable_name(name)
            if new_name != name:
                votes[track, name][new_name] += 1


def _rename_series(connection: Connection, votes: Mapping[tuple[Track, str], Counter[str]]) -> None:
    """Rename the series of operators: of several names that runs give one, the most frequent."""
    if not votes:
        return
    for row in connection.execute(_SERIES, {"kinds": _KINDS}).all():
        number, workload, configuration, device, kind, metric, name, shapes, part, step_kind = row
        track: Track = (workload, configuration, device)
        of_name = votes.get((track, name))
        if of_name is None:
            continue
        new_name = max(of_name, key=lambda key: (of_name[key], key))
        rename_series(connection, number, track, SeriesKey(kind, metric, new_name, shapes, part, step_kind))


def _rename_limits(connection: Connection, votes: Mapping[tuple[Track, str], Counter[str]]) -> None:
    """Have the thresholds that name an operator as it was written name its key, where none does already."""
    for ((workload_id, _, _), name), of_name in votes.items():
        new_name = max(of_name, key=lambda key: (of_name[key], key))
        connection.execute(_RENAME_LIMITS, {"workload_id": workload_id, "old": name, "new": new_name})
