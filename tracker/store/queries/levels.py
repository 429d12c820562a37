"""The levels of a profile, as a database sums them up: what tells the rows of each level from each other, how their
numbers add up over ranks and steps, and the statement that says so.

The statement groups by numbers and looks up the texts of the few rows that are left: long names are slow to group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, TypedDict

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import TextClause

from tracker.store.queries.answers import dtype, parameter_list, whole
from tracker.store.sql import question

SUM: Final = "CASE WHEN COUNT(d.{0}) = COUNT(*) THEN CAST(SUM(d.{0}) AS BIGINT) END"
REAL_SUM: Final = "CASE WHEN COUNT(d.{0}) = COUNT(*) THEN SUM(d.{0}) END"
"""Missing unless it is known of every row."""
TOTAL: Final = "CAST(SUM(d.{0}) AS BIGINT)"
"""Of what is known."""
LEAST: Final = "MIN(d.{0})"
MOST: Final = "MAX(d.{0})"
MEAN_BY_CALLS: Final = "SUM(d.{0} * d.calls) / NULLIF(SUM(CASE WHEN d.{0} IS NOT NULL THEN d.calls END), 0)"
MEAN_BY_BYTES: Final = (
    "COALESCE(SUM(d.{0} * d.bytes) / NULLIF(SUM(CASE WHEN d.{0} IS NOT NULL THEN d.bytes END), 0), AVG(d.{0}))"
)
"""Means over the rows that state it."""


class Level(Struct, frozen=True, eq=False):
    """Rows of `table`, called d. `keys`: column of the answer -> what tells its rows apart; an `_id` under another name
    is the number of a text. `numbers`: column -> how it adds up, {0} is the column. `joins`: tables that have keys.
    `largest`: the number by which the rows are ordered, the unknown last, and then, or without it, by their keys.
    `step`: the column with the number of the step, "" where there is none.
    """

    table: str
    keys: dict[str, str]
    numbers: dict[str, str]
    joins: str = ""
    largest: str = ""
    step: str = "d.step"

    @property
    def grain(self) -> dict[str, str]:
        """What the rows can be kept apart by; by runs they always are."""
        steps = {"step": self.step} if self.step else {}
        return {"run_id": "d.run_id", "stage": "COALESCE(c.stage, -1)", "rank": "d.rank", **steps}


class Filters(TypedDict, total=False):
    """The part of the runs that a question is about, and how fine its answer is; all optional.

    `by`: the grain, any of `stage`, `rank`, `step`; runs are always kept apart. Grain columns come first.
    `ranks`, `steps`: only these, None for all. `in_steps`: leave out what lies outside all step markers.
    """

    by: Sequence[str]
    ranks: Sequence[int] | None
    steps: Sequence[int] | None
    in_steps: bool


def asked(
    level: Level, run_ids: Sequence[int], *, by: Sequence[str] = (), ranks: Sequence[int] | None = None,
    steps: Sequence[int] | None = None, in_steps: bool = False, summed: bool = True,
) -> tuple[TextClause, dict[str, Any]]:  # fmt: skip
    """The statement for this part of a level, and its parameters. `summed`: for each of the grain, else row by row."""
    unknown = set(by) - {"run", *level.grain}
    if unknown:
        raise ValueError(f"no such grain: {', '.join(sorted(unknown))}")
    chosen = {"ranks": ranks is not None, "steps": steps is not None, "in_steps": in_steps}
    statement = sums(level, tuple(by), **chosen) if summed else rows(level, **chosen)
    return statement, {"run_ids": whole(run_ids), "ranks": parameter_list(ranks), "steps": parameter_list(steps)}


@cache
def sums(level: Level, by: tuple[str, ...], *, ranks: bool, steps: bool, in_steps: bool) -> TextClause:
    """The statement that sums the rows of runs (`:run_ids`) up, for each of the grain `by`. NULL is missing; of a
    level without texts, stage -1 is, too.

    `ranks`, `steps`: only these (`:ranks`, `:steps`); `in_steps`: without what lies outside all steps.
    """
    grain = {name: column for name, column in level.grain.items() if name in ("run_id", *by)}
    groups = grain | level.keys
    found = groups | {name: how.format(name) for name, how in level.numbers.items()}
    if level.largest:
        found["largest"] = f"COALESCE(SUM(d.{level.largest}), -1)"
    body = _select(level, found, ranks=ranks, steps=steps, in_steps=in_steps, stages="stage" in by)
    body += f"\nGROUP BY {', '.join(str(at + 1) for at in range(len(groups)))}"
    texts = {name for name, key in level.keys.items() if key.endswith("_id") and not name.endswith("_id")}
    if not texts:
        return question(body)
    columns = {name: f"t_{name}.text" if name in texts else f"s.{name}" for name in (*groups, *level.numbers)}
    numbers = ["stage", *(name for name in level.keys if dtype(name) != "string")]
    shown = columns | {name: f"NULLIF(s.{name}, -1)" for name in numbers if name in columns}
    order = ["s.largest DESC"] * bool(level.largest) + [columns[name] for name in (*level.keys, *grain)]
    return question(
        f"WITH summed AS (\n{body}\n)\nSELECT{_columns(shown)}\nFROM summed AS s"
        + "".join(f"\nINNER JOIN detail_text AS t_{name} ON s.{name} = t_{name}.id" for name in sorted(texts))
        + f"\nORDER BY {', '.join(order)}"
    )


@cache
def rows(level: Level, *, ranks: bool, steps: bool, in_steps: bool) -> TextClause:
    """The statement that gives the rows as they are, with run, rank and step; parameters as of `sums`."""
    columns = {name: column for name, column in level.grain.items() if name != "stage"} | level.keys
    columns |= {name: f"d.{name}" for name in level.numbers}
    return question(_select(level, columns, ranks=ranks, steps=steps, in_steps=in_steps))


def _select(
    level: Level, columns: Mapping[str, str], *, ranks: bool, steps: bool, in_steps: bool, stages: bool = False
) -> str:
    joins = level.joins
    if stages:
        joins += "\nINNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank"
    chosen = {"d.run_id IN :run_ids": True, "d.rank IN :ranks": ranks}
    chosen |= {f"{level.step} IN :steps": steps, f"{level.step} >= 0": in_steps}
    where = " AND ".join(condition for condition, is_asked in chosen.items() if is_asked)
    return f"SELECT{_columns(columns)}\nFROM {level.table} AS d{joins}\nWHERE {where}"


def _columns(columns: Mapping[str, str]) -> str:
    return ",".join(f"\n    {column} AS {name}" for name, column in columns.items())


OPS: Final = Level(
    "op",
    {"op_key_id": "d.op_key_id", "call_stack_id": "d.call_stack_id"},
    {
        "calls": SUM, "host_total_ns": SUM, "host_self_ns": SUM, "device_total_ns": SUM, "device_self_ns": SUM,
        "min_ns": LEAST, "max_ns": MOST, "host_min_ns": LEAST, "host_max_ns": MOST, "sum_squares_ns2": REAL_SUM,
        "kernel_count": SUM,
    },
)  # fmt: skip
"""op_key_id: see op_keys.sql; call_stack_id: see call_stacks.sql, NULL where none was recorded. host_total_ns,
host_self_ns: host time, with and without the ops inside; device_total_ns, device_self_ns: device time launched anywhere
below the op, and by itself; min_ns, max_ns, sum_squares_ns2: of one call; host_min_ns, host_max_ns: host time of one
call; kernel_count: device events that it launched itself.
"""

KERNELS: Final = Level(
    "kernel",
    {"kernel_key_id": "d.kernel_key_id", "op_key_id": "d.op_key_id", "category_id": "d.category_id"},
    {
        "calls": SUM, "total_ns": SUM, "min_ns": LEAST, "max_ns": MOST, "sum_squares_ns2": REAL_SUM, "wait_ns": SUM,
        "bytes": SUM, "block_num": MOST,
    },
)  # fmt: skip
"""Copies and memsets are among them. kernel_key_id: see kernel_keys.sql; op_key_id: the launching op; category_id: see
detail_texts.sql. total_ns, min_ns, max_ns: device time, of all calls and of one; sum_squares_ns2: of the calls;
wait_ns: before the kernels; bytes: moved by copies; block_num: blocks that a call ran on.
"""

KERNEL_METRICS: Final = Level(
    "kernel_metric",
    {
        "name": "k.name", "canonical_name": "k.canonical_name", "type": "k.type", "core_type": "k.core_type",
        "input_shapes": "k.input_shapes", "metric": "d.metric_id",
    },
    {"calls": SUM, "mean": MEAN_BY_CALLS, "min": LEAST, "max": MOST},
    "\nINNER JOIN kernel_key AS k ON d.kernel_key_id = k.id",
    step="",
)  # fmt: skip
"""Of kernels without types and formats, over the whole capture. metric: as the profiler spells it, with its unit;
calls: that were measured; min, max: of one.
"""


def _collective(rows: str) -> dict[str, str]:
    """kind; group_role; group_size, size_class_bytes: NULL is unknown; data_type."""
    return {
        "kind": f"{rows}.kind_id", "group_role": "g.role", "group_size": "g.size",
        "data_type": f"{rows}.data_type_id", "size_class_bytes": f"{rows}.size_class_bytes",
    }  # fmt: skip


_OF_RANKS: Final = f"CASE WHEN COUNT(d.ranks_{{0}}) = COUNT(*) THEN CAST(SUM(d.ranks_{{0}}) AS BIGINT) ELSE {SUM} END"
_OF_PROFILER: Final = f"CASE WHEN COUNT(d.ranks_wait_ns) < COUNT(*) THEN {SUM} END"
COMMUNICATION: Final = Level(
    "communication",
    _collective("d"),
    {
        "calls": SUM, "bytes": SUM, "total_ns": SUM, "min_ns": LEAST, "max_ns": MOST, "transit_ns": _OF_RANKS,
        "wait_ns": _OF_RANKS, "synchronization_ns": _OF_PROFILER, "idle_ns": _OF_PROFILER, "exposed_ns": SUM,
        "exposed_wait_ns": _OF_RANKS,
        "split_by": "CASE WHEN COUNT(d.ranks_wait_ns) = COUNT(*) THEN 'ranks' "
        "WHEN COUNT(d.wait_ns) = COUNT(*) OR COUNT(d.transit_ns) = COUNT(*) THEN 'profiler' END",
    },
    "\nINNER JOIN process_group AS g ON d.process_group_id = g.id",
    largest="total_ns",
)  # fmt: skip
"""bytes: payload; total_ns, min_ns, max_ns: device time, of all calls and of one; transit_ns, wait_ns,
synchronization_ns, idle_ns: parts of it; exposed_ns: not hidden by compute; exposed_wait_ns: the waiting in it;
split_by: `ranks` where transit and wait are what all ranks of the group tell, which know no other part, else
`profiler`, NULL where neither is known; exposed_wait_ns is the profiler's where the ranks cannot tell it.
"""

_OF_COLLECTIVE: Final = """
INNER JOIN communication AS m ON d.run_id = m.run_id AND d.rank = m.rank AND d.communication = m.ordinal
INNER JOIN process_group AS g ON m.process_group_id = g.id"""
COMMUNICATION_TASKS: Final = Level(
    "communication_task",
    _collective("m") | {"name": "d.name_id", "plane": "d.plane_id"},
    {"calls": TOTAL, "total_ns": TOTAL, "min_ns": LEAST, "max_ns": MOST},
    _OF_COLLECTIVE,
    largest="total_ns",
    step="m.step",
)
"""name, plane: of the task; total_ns, min_ns, max_ns: device time, of all calls and of one."""

COMMUNICATION_WAITS: Final = Level(
    "communication_wait",
    _collective("m") | {"peer": "d.peer", "is_global": "d.is_global"},
    {"calls": TOTAL, "total_ns": TOTAL, "max_ns": MOST},
    _OF_COLLECTIVE,
    largest="total_ns",
    step="m.step",
)
"""peer: the rank that was waited for; is_global: 1 for a global rank, 0 for one of the group; total_ns, max_ns: waiting
of all calls and of one. A call can wait for several ranks at once.
"""

COMMUNICATION_LINKS: Final = Level(
    "communication_link",
    {
        **_collective("m"), "transport": "d.transport_id", "source_rank": "d.source", "target_rank": "d.target",
        "packet_bytes": "d.packet_bytes",
    },
    {"calls": TOTAL, "packets": SUM, "bytes": SUM, "transit_ns": SUM, "large_packet_ratio": MEAN_BY_BYTES},
    _OF_COLLECTIVE,
    largest="bytes",
    step="m.step",
)  # fmt: skip
"""source_rank, target_rank: NULL is all links together; packet_bytes: NULL is packets of all sizes together;
large_packet_ratio: share of large packets. The same bytes stand in several rows: those of all links or sizes, and those
of single ones.
"""

MEMORY: Final = Level(
    "memory",
    {
        "op": "k.name_id", "input_shapes": "k.input_shapes_id", "input_types": "k.input_types_id",
        "component": "d.component_id",
    },
    {"calls": SUM, "bytes": SUM, "held_ns": TOTAL, "unreleased_bytes": SUM},
    "\nINNER JOIN op_key AS k ON d.op_key_id = k.id",
    largest="bytes",
)  # fmt: skip
"""calls: allocations; bytes: allocated by the op, or by a helper inside it; held_ns: until freed, summed over what was
freed; unreleased_bytes: never freed in the capture.
"""

MEMORY_ALLOCATORS: Final = replace(MEMORY, table="memory_allocator", keys=MEMORY.keys | {"allocator": "d.allocator_id"})
"""allocator: the innermost op, which made the call."""

COUNTERS: Final = Level(
    "counter",
    {"source": "d.source_id", "name": "d.name_id", "attribute": "d.attribute_id"},
    {"calls": SUM, "mean": MEAN_BY_CALLS, "min": LEAST, "max": MOST},
)
"""source: the profiler's table; name: what was measured; attribute: the measurement, with its unit; calls: how many
values; min, max: of one.
"""

IDLE: Final = Level(
    "idle",
    {"cause": "d.cause_id", "place": "d.place_id"},
    {"ns": SUM, "gaps": SUM},
    largest="ns",
)
"""cause: why the device did nothing, a word of IDLE_CAUSES; place: the operator, call, frame or kernel, empty for none;
gaps: in how many gaps of its work.
"""

QUEUE: Final = Level(
    "queue",
    {"stream": "d.stream"},
    {"kernels": SUM, "lead_ns": SUM, "max_lead_ns": MOST, "queued": SUM},
)
"""stream: of the device; kernels: with a launch; lead_ns, max_lead_ns: from the end of the launch call to the start of
the kernel; queued: how many were launched before the event ahead of them on the stream ended.
"""

API: Final = Level(
    "api",
    {"level": "d.level_id", "name": "d.name_id"},
    {"calls": SUM, "total_ns": SUM, "self_ns": SUM, "min_ns": LEAST, "max_ns": MOST},
    largest="total_ns",
)
"""Functions of the device runtime and driver. total_ns, self_ns: host time, with and without nested calls; min_ns,
max_ns: of one call.
"""
