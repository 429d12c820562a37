"""The views of levels: a row per run, rank, step and thing, made from the declarations in `tracker.schema`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracker.schema.declarations import Column, Level
from tracker.schema.levels import KERNEL_KEY, LEVEL, OP_KEY, PROFILER_ALONE, RANKS_OR_PROFILER, STEP_LEVEL
from tracker.store.views.parts import (
    JOIN_TRACK,
    RUN_ID,
    TRACK,
    Kind,
    View,
    ViewColumn,
    whole,
    word,
)

_KINDS: Final[dict[str, Kind]] = {"float": "double", "word": "text", "text": "text", "optional_text": "text"}
"""Kind of a column of a level -> that of a column of a view; all others are whole numbers."""

_RANK: Final = (
    RUN_ID,
    *TRACK,
    whole("rank", "c.rank", "rank of the process in its job: one process and one device"),
    whole("stage", "c.stage", "pipeline stage; NULL: not known"),
    word("quality", "c.quality", "ok, or partial: what the capture of the rank lacks is not in these rows"),
)


def _level_view(name: str, level: Level, title: str, extra: Sequence[ViewColumn] = ()) -> View:
    """Return the view of a level: a row per run, rank, step and thing. `extra`: columns before its numbers."""
    columns: list[ViewColumn] = []
    numbers: list[ViewColumn] = []
    joins: list[str] = []
    for column in level.answer_columns:
        if column.name == "step":
            meaning = "step number of the profiler's marker, or its own step id; NULL: outside all steps"
            columns.append(whole("step", "NULLIF(d.step, -1)", meaning))
        elif column.kind in ("op_key", "kernel_key"):
            columns += _columns_of_key(column.kind, level, joins)
        elif column.kind in ("text", "optional_text"):
            joins.append(_join_text(column.name, f"d.{column.stored_name}"))
            columns.append(word(column.name, f"t_{column.name}.text", _public_meaning(column)))
        elif column.kind == "group":
            joins.append("LEFT JOIN process_group AS p ON d.process_group_id = p.id")
            columns.append(word("group_role", "p.role", "what the group is for: dp, tp, pp, ...; empty: not known"))
            columns.append(whole("group_size", "NULLIF(p.size, -1)", "members of the group; NULL: not known"))
        elif column.kind == "size_class":
            meaning = "payload of one call, rounded up to a power of two; NULL: not known"
            columns.append(whole(column.name, f"NULLIF(d.{column.name}, -1)", meaning))
        elif column.kind != "call_stack" and not column.name.startswith("ranks_"):
            numbers.append(_number(column, level))
    source = "\n".join((
        "FROM run AS r",
        JOIN_TRACK.format("r", "version_id"),
        "INNER JOIN capture AS c ON r.id = c.run_id",
        f"INNER JOIN {level.name} AS d ON c.run_id = d.run_id AND c.rank = d.rank",
        *joins,
        "WHERE r.state = 'active'",
    ))  # fmt: skip
    return View(name, title, (*_RANK, *columns, *extra, *numbers), source)


def _join_text(name: str, number: str) -> str:
    # no row may be lost where a text is damaged, and a join that no question needs is left out by the database
    return f"LEFT JOIN detail_text AS t_{name} ON {number} = t_{name}.id"


def _columns_of_key(kind: str, level: Level, joins: list[str]) -> list[ViewColumn]:
    """Return the texts of the key of an op or a kernel; grows `joins`."""
    if kind == "kernel_key":
        joins.append("LEFT JOIN kernel_key AS k ON d.kernel_key_id = k.id")
        columns = [word("kernel", "k.name", "name of the kernel, as the profiler wrote it")]
        for name in KERNEL_KEY[1:]:
            columns.append(word(name, f"k.{name}", _KEY_MEANINGS[name]))
        return columns
    joins.append("LEFT JOIN op_key AS o ON d.op_key_id = o.id")
    is_of_kernel = level.name == "kernel"
    columns = []
    for name in OP_KEY:
        if is_of_kernel and name.startswith("input_"):
            continue  # the shapes and types of a kernel are its own
        public = "op" if name == "name" else name
        meaning = _KEY_MEANINGS[public]
        if is_of_kernel and public == "op":
            meaning = "name of the operator that launched it; empty: not known"
        joins.append(_join_text(public, f"o.{name}_id"))
        columns.append(word(public, f"t_{public}.text", meaning))
    return columns


_KEY_MEANINGS: Final = {
    "op": "name of the operator, without running numbers and hashes of compilers",
    "input_shapes": "shapes of the inputs, as the profiler wrote them",
    "input_types": "element types of the inputs",
    "module": "path of nested module instances, GPT_0/Block_0/Attention_0",
    "phase": "forward, backward, recompute, optimizer, clear_grad, dataloader, or empty",
    "canonical_name": "name without what changes from build to build: addresses, hashes, template noise",
    "type": "kind of the kernel (NPU)",
    "core_type": "kind of core it ran on (NPU): cube or vector",
    "input_formats": "memory formats of the inputs (NPU)",
}


def _public_meaning(column: Column) -> str:
    for words in ("; in detail_text", ", in detail_text"):
        if column.meaning.endswith(words):
            return column.meaning.removesuffix(words)
    return column.meaning.replace(", in detail_text;", ";")


def _number(column: Column, level: Level) -> ViewColumn:
    """Return a number of a level; of the parts of a collective the best that is known."""
    sql = f"d.{column.name}"
    if level.name == "communication" and column.name in RANKS_OR_PROFILER:
        sql = f"COALESCE(d.ranks_{column.name}, d.{column.name})"
    elif level.name == "communication" and column.name in PROFILER_ALONE:
        # what all ranks report has no such part
        sql = f"CASE WHEN d.ranks_wait_ns IS NULL THEN d.{column.name} END"
    # a bare unit is called like its level
    name = f"{level.name}_{column.name}" if column.name == "ns" else column.name
    if column.name == "steps":
        return whole(name, "COALESCE(d.steps, 1)", "how many steps the row stands for: its numbers are their mean")
    return ViewColumn(name, sql, _KINDS.get(column.kind, "bigint"), _public_meaning(column))


_STEP_NS: Final = whole(
    "step_ns",
    """COALESCE(
        d.compute_ns + d.exposed_communication_ns + COALESCE(d.exposed_copy_ns, 0) + d.idle_ns,
        CASE WHEN d.marker_ns IS NOT NULL THEN d.duration_ns END,
        d.e2e_ns,
        d.duration_ns
    )""",
    "the step: compute + exposed communication + exposed copies + idle time, else what else states it",
)

_SPLIT_BY: Final = word(
    "split_by",
    """CASE
        WHEN d.ranks_wait_ns IS NOT NULL THEN 'ranks'
        WHEN d.wait_ns IS NOT NULL OR d.transit_ns IS NOT NULL THEN 'profiler'
    END""",
    "who says what is waiting and what is transmitting: ranks (all of the group) or profiler; NULL: nobody does",
)

LEVEL_VIEWS: Final = (
    _level_view("v_step", STEP_LEVEL, "A step of a rank, and where its time went.", (_STEP_NS,)),
    _level_view("v_op", LEVEL["op"], "The calls of one operator in one step of a rank."),
    _level_view(
        "v_kernel", LEVEL["kernel"],
        "The device events of one kernel that one operator launched, in one step of a rank; copies and memsets, too.",
    ),
    _level_view(
        "v_communication", LEVEL["communication"],
        "The calls of one collective in one step of a rank: kind, group, data type and size class.", (_SPLIT_BY,),
    ),
    _level_view("v_idle", LEVEL["idle"], "Time in which the device of a rank did nothing in a step, by why and where."),
    _level_view("v_memory", LEVEL["memory"], "What one operator allocated in one step of a rank."),
)  # fmt: skip
