"""Runs that are stored with the names of operators as they were written get the keys of today, without their files.

What cannot be told from stored rows is left to `tracker ingest --again`: the rows of such a run stay as they are, and
so does the version of its naming rules, by which it is not compared with others.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, text

from tracker.profile import NO_OP, UNLINKED_OP
from tracker.profile.numbered_names import skeleton_of
from tracker.profile.operator_names import (
    find_data_numbers,
    is_graph_call,
    is_numbered_kernel,
    number_by_order,
    stable_name,
)
from tracker.schema.levels import LEVEL
from tracker.schema.series import KINDS, SeriesKey
from tracker.store import bulk, dimensions, recordings
from tracker.store.packing import CONTEXT_NUMBERS, Contexts, pack_contexts, unpack_contexts
from tracker.store.samples import rename_series

RULES_BEFORE: Final = 6
RULES_AFTER: Final = 7
"""The naming rules (`timeline.names.RULES_VERSION`) of before and after."""

_MERGED: Final = ("op", "kernel", "memory", "memory_allocator")
"""Levels whose rows have an operator in their key: two operators that become one are one row."""
_REFERRING: Final = ("memory_peak", "memory_block")
_MAY_MARK_STEPS: Final = re.compile(r"execute|step|iter|batch", re.IGNORECASE)
_OF_OPERATOR: Final = re.compile(r"::|Backward\d*$|^\(|^triton_|Compiled")
_FEWEST_STEPS: Final = 2

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
_MARKED: Final = text(
    "SELECT o.run_id FROM op AS o INNER JOIN run AS r ON o.run_id = r.id "
    "INNER JOIN step AS s ON o.run_id = s.run_id AND o.rank = s.rank AND o.step = s.step "
    "WHERE r.rules_version = :rules AND o.op_key_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e) "
    "AND o.step >= 0 AND o.calls = 1 AND o.host_total_ns = COALESCE(s.marker_ns, s.duration_ns) "
    "GROUP BY o.run_id, o.rank HAVING COUNT(DISTINCT o.step) >= :steps"
)
_WITH_GRAPHS: Final = text(
    "SELECT DISTINCT a.run_id FROM api AS a INNER JOIN run AS r ON a.run_id = r.id "
    "WHERE r.rules_version = :rules AND a.name_id IN (SELECT t.id FROM detail_text AS t WHERE t.text LIKE :name) "
    "AND NOT EXISTS (SELECT 1 FROM source AS s WHERE s.run_id = a.run_id AND s.format = 'nsys_sqlite') "
    "AND EXISTS (SELECT 1 FROM op AS o WHERE o.run_id = a.run_id AND o.device_self_ns > 0 "
    "AND o.op_key_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e))"
)
_STEPS_OF_OPS: Final = text(
    "SELECT DISTINCT o.step, o.op_key_id FROM op AS o WHERE o.run_id = :run_id AND o.rank = :rank"
)
_TREE: Final = text("SELECT contexts FROM op_tree WHERE run_id = :run_id AND rank = :rank")
_SET_TREE: Final = text("UPDATE op_tree SET contexts = :contexts WHERE run_id = :run_id AND rank = :rank")
_RUNS: Final = text("SELECT id FROM run WHERE rules_version = :rules ORDER BY id")
_SET_RULES: Final = text("UPDATE run SET rules_version = :rules WHERE id = :run_id")
_FORGET_SAMPLES: Final = text("UPDATE run SET sample_rules = NULL WHERE id = :run_id")
_PRUNED_NAMES: Final = text(
    "SELECT DISTINCT m.run_id, s.workload_id, s.configuration_id, s.device_id, s.name FROM sample AS m "
    "INNER JOIN series AS s ON m.series_id = s.id INNER JOIN run AS r ON m.run_id = r.id "
    "WHERE r.rules_version = :rules AND s.kind = 'op_name' AND EXISTS ("
    "SELECT 1 FROM capture AS c WHERE c.run_id = m.run_id AND c.pruned_at_ns IS NOT NULL)"
)
_TRACKS: Final = text("SELECT id, workload_id, configuration_id, device_id FROM run")
_SERIES: Final = text(
    "SELECT id, workload_id, configuration_id, device_id, kind, metric, name, input_shapes, part FROM series "
    "WHERE kind IN :kinds ORDER BY id"
).bindparams(bindparam("kinds", expanding=True))
_KINDS: Final = tuple(kind.word for kind in KINDS if kind.texts == "op_key" and kind.name == "name")
"""Kinds of series that are called as an operator."""

Track = tuple[int, int, int]


def rename_stored(connection: Connection) -> None:
    """Give the runs that were read by the rules of before the keys of today, in the open transaction."""
    names: dict[int, tuple[str, ...]] = {row[0]: tuple(row[1:]) for row in connection.execute(_OP_KEYS)}
    to_read = _find_runs_to_read(connection, names)
    renamed: set[int] = set()
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
                renamed.add(run_id)
                for op_key, name in own.items():
                    votes[track_of_run[run_id], names[op_key][0]][name] += 1
    _vote_of_pruned(connection, votes)
    _rename_series(connection, votes)
    for run_id in sorted(renamed):
        connection.execute(_FORGET_SAMPLES, {"run_id": run_id})
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


def _find_runs_to_read(connection: Connection, names: Mapping[int, tuple[str, ...]]) -> set[int]:
    """Return the runs that only their files can tell: an annotation marks steps, or may own the kernels of graphs."""
    found: set[int] = set()
    marks = [
        op_key for op_key, (name, *_) in names.items() if _may_be_annotation(name) and _MAY_MARK_STEPS.search(name)
    ]
    if marks:
        asked = {"rules": RULES_BEFORE, "ids": bulk.as_keys(marks), "steps": _FEWEST_STEPS}
        found.update(connection.scalars(_MARKED, asked))
    pseudo = (NO_OP, UNLINKED_OP)
    annotations = [op_key for op_key, (name, *_) in names.items() if name not in pseudo and _may_be_annotation(name)]
    if annotations:
        asked = {"rules": RULES_BEFORE, "ids": bulk.as_keys(annotations), "name": "%GraphLaunch%"}
        found.update(connection.scalars(_WITH_GRAPHS, asked))
    return found


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
    packed = connection.execute(_TREE, place).scalar()
    contexts = None if packed is None else unpack_contexts(bytes(packed))
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
    for level in _MERGED:
        _rename_rows(connection, level, (run_id, rank), new_key, raw_id)
    for level in _REFERRING:
        where = "run_id = :run_id AND rank = :rank AND op_key_id = :old"
        # the levels are those above
        statement = text(f"UPDATE {level} SET op_key_id = :new WHERE {where}")  # noqa: S608
        values = [{"run_id": run_id, "rank": rank, "old": old, "new": new} for old, new in new_key.items()]
        connection.execute(statement, values)
    _rename_tree(connection, run_id, rank, new_key)


def _rename_tree(connection: Connection, run_id: int, rank: int, new_key: Mapping[int, int]) -> None:
    place = {"run_id": run_id, "rank": rank}
    packed = connection.execute(_TREE, place).scalar()
    if packed is None:
        return
    contexts = unpack_contexts(bytes(packed))
    op_keys = contexts.op_key_id.copy()
    for at, op_key in enumerate(op_keys.tolist()):
        op_keys[at] = new_key.get(op_key, op_key)
    rows = {"node": contexts.node, "parent": contexts.parent, "op_key_id": op_keys}
    rows = {name: column[contexts.place] for name, column in rows.items()} | {"step": contexts.step}
    rows |= dict(zip(CONTEXT_NUMBERS, contexts.numbers, strict=True))
    connection.execute(_SET_TREE, {**place, "contexts": pack_contexts(rows)})


def _rename_rows(
    connection: Connection, level: str, place: tuple[int, int], new_key: Mapping[int, int], raw_id: Mapping[int, int]
) -> None:
    """Write the rows of a level of one rank with new keys, those that become one added up."""
    touched = bulk.as_keys({*new_key, *new_key.values()})
    columns = [column.stored_name for column in LEVEL[level].columns]
    where = (
        "run_id = :run_id AND rank = :rank AND op_key_id IN (SELECT CAST(e.key AS BIGINT) FROM JSON_EACH(:ids) AS e)"
    )
    asked = {"run_id": place[0], "rank": place[1], "ids": touched}
    # the level and its columns are declared ones
    rows = connection.execute(text(f"SELECT {', '.join(columns)} FROM {level} WHERE {where}"), asked).mappings().all()  # noqa: S608
    if not rows:
        return
    merged: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    key_columns = LEVEL[level].stored_key
    for row in rows:
        op_key = row["op_key_id"]
        renamed = {**row, "op_key_id": new_key.get(op_key, op_key)}
        if level == "op" and op_key in raw_id:
            renamed["raw_name_id"] = raw_id[op_key]
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
        if not column.adds:
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
        number, workload, configuration, device, kind, metric, name, shapes, part = row
        track: Track = (workload, configuration, device)
        of_name = votes.get((track, name))
        if of_name is None:
            continue
        new_name = max(of_name, key=lambda key: (of_name[key], key))
        rename_series(connection, number, track, SeriesKey(kind, metric, new_name, shapes, part))
