"""The names of operators and ranges that make their keys, as `profile.operator_names` has them, in a capture."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tracker.profile import I64, MISSING, Column, Events, Rows, Strings, Table
from tracker.profile.numbered_names import skeleton_of
from tracker.profile.operator_names import (
    find_data_numbers,
    is_graph_call,
    is_numbered_kernel,
    number_by_order,
    stable_name,
)
from tracker.schema.column_names import NAME, RAW_NAME
from tracker.schema.column_names import OP_KEY as OP_KEY_COLUMN
from tracker.schema.declarations import Level
from tracker.schema.levels import LEVELS, OP_KEY
from tracker.table import group_rows, list_codes, look_up_texts, rank_texts
from tracker.timeline.nesting import NONE
from tracker.timeline.tree import Tree


def name_operators(events: Events, tree: Tree, op_step: I64) -> tuple[Events, I64]:
    """Return the events with the names of operators that make their keys, and per operator the code of its name as it
    was written where that is another one, 0 for the others; empty where all stay.

    tree, op_step: nesting and step of each operator.
    """
    ops, texts = events.ops, events.strings.texts
    key_of_code: dict[int, str] = {}
    numbered: list[int] = []
    for code in list_codes(ops.name):
        name = texts[code]
        if is_numbered_kernel(name):
            numbered.append(code)
        elif (key := stable_name(name)) != name:
            key_of_code[code] = key
    of_annotations = _find_data_numbers(events, op_step)
    if not (key_of_code or numbered or of_annotations):
        return events, np.zeros(0, dtype=np.int64)
    strings = Strings(texts[1:])
    new_code = np.arange(len(texts))
    for code, key in key_of_code.items():
        new_code[code] = strings.code(key)
    code_of_op = new_code[ops.name]
    is_annotation = ops.is_annotation == 1
    for code, key in of_annotations.items():
        code_of_op[is_annotation & (ops.name == code)] = strings.code(key)
    if numbered:
        rows = np.flatnonzero(np.isin(ops.name, numbered))
        code_of_op[rows] = _number_kernels(events, tree, rows, strings)
    raw_name = np.where(code_of_op == ops.name, 0, ops.name).astype(np.int64)
    named = replace(ops, name=code_of_op.astype(ops.name.dtype))
    return replace(events, strings=strings, ops=named), raw_name


def name_operators_of_rows(rows: Rows) -> Rows:
    """Return rows that a reader made from sums with such names of operators; those that become one are added up.

    All numbered kernels count as of one graph, and numbers of ranges stay: sums tell no graphs and no steps.
    """
    keys = rows.tables["op_key"]
    names = [str(name) for name in keys[NAME]]
    of_kernel = number_by_order(name for name in names if is_numbered_kernel(name))
    new_names = [of_kernel.get(name) or stable_name(name) for name in names]
    if new_names == names:
        return rows
    columns = [new_names, *(keys[name] for name in OP_KEY[1:])]
    place_of_key: dict[tuple[str, ...], int] = {}
    places = [place_of_key.setdefault(key, len(place_of_key)) for key in zip(*columns, strict=True)]
    tables = dict(rows.tables)
    tables["op_key"] = {name: list(texts) for name, texts in zip(OP_KEY, zip(*place_of_key, strict=True), strict=True)}
    raw_names = [name if new_name != name else "" for name, new_name in zip(names, new_names, strict=True)]
    for level in LEVELS:
        table = tables[level.name]
        if "op_key" in table and len(table[OP_KEY_COLUMN]):
            old_keys = np.asarray(table[OP_KEY_COLUMN], dtype=np.int64)
            renamed = {**table, "op_key": np.array(places, dtype=np.int64)[old_keys]}
            if level.name == "op":
                renamed[RAW_NAME] = look_up_texts(old_keys, raw_names)
            tables[level.name] = _add_up_alike(level, renamed)
    return replace(rows, tables=tables)


def _add_up_alike(level: Level, table: Table) -> Table:
    """Return the table with those rows added up that have one key; of what adds up in no way the first stays."""
    if not level.key:
        return table
    keys = [_as_numbers(table[name]) for name in level.key]
    groups = group_rows(*keys)
    if len(groups) == len(keys[0]):
        return table
    added: dict[str, Column] = {}
    for column in level.columns:
        for name in column.row_kinds:
            values = table[name]
            if isinstance(values, list):
                added[name] = [values[row] for row in groups.first.tolist()]
            elif column.adds in ("sum", "known", "min", "max"):
                added[name] = groups.add_up_marked(values, MISSING, column.adds)
            elif column.adds == "real_sum":
                added[name] = np.bincount(groups.number, values, len(groups))
            else:
                added[name] = values[groups.first]
    return added


def _as_numbers(column: Column) -> I64:
    return rank_texts(column) if isinstance(column, list) else np.asarray(column, dtype=np.int64)


def _number_kernels(events: Events, tree: Tree, rows: I64, strings: Strings) -> I64:
    """Return the codes in `strings` of the names of numbered kernels, which are the operators in these rows."""
    names, texts = events.ops.name, events.strings.texts
    is_graph = np.zeros(len(texts), dtype=bool)
    for code in list_codes(names):
        is_graph[code] = is_graph_call(texts[code])
    graph = tree.passed_down(np.where(is_graph[names], names, NONE).astype(np.int64), unset=NONE)
    groups = group_rows(graph[rows], names[rows])
    graphs, codes = graph[rows][groups.first].tolist(), names[rows][groups.first].tolist()
    names_of_graph: dict[int, list[str]] = {}
    for of_graph, code in zip(graphs, codes, strict=True):
        names_of_graph.setdefault(of_graph, []).append(texts[code])
    key_of_name = {of_graph: number_by_order(names) for of_graph, names in names_of_graph.items()}
    found = [strings.code(key_of_name[of_graph][texts[code]]) for of_graph, code in zip(graphs, codes, strict=True)]
    return np.array(found, dtype=np.int64)[groups.number]


def _find_data_numbers(events: Events, op_step: I64) -> dict[int, str]:
    """Return code -> key of the annotations whose numbers are data."""
    ops, texts = events.ops, events.strings.texts
    annotations = np.flatnonzero((ops.is_annotation == 1) & (op_step >= 0))
    codes_of_skeleton: dict[str, list[int]] = {}
    for code in list_codes(ops.name[annotations]):
        skeleton = skeleton_of(texts[code])
        if skeleton != texts[code]:
            codes_of_skeleton.setdefault(skeleton, []).append(code)
    alike = [code for codes in codes_of_skeleton.values() if len(codes) > 1 for code in codes]
    if not alike:
        return {}
    rows = annotations[np.isin(ops.name[annotations], alike)]
    groups = group_rows(op_step[rows], ops.name[rows])
    names_of_step: dict[int, set[str]] = {}
    for row in rows[groups.first].tolist():
        names_of_step.setdefault(int(op_step[row]), set()).add(texts[ops.name[row]])
    key_of_name = find_data_numbers(names_of_step.values())
    return {code: key_of_name[texts[code]] for code in alike if texts[code] in key_of_name}
