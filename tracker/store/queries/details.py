"""What happened in runs: communication, memory, idle time, host API calls, calling contexts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, Protocol, Unpack

import numpy as np
from sqlalchemy import Connection

from tracker.columns import I64, Column, Columns, objects
from tracker.profile import MISSING, NO_STEP
from tracker.schema.column_names import (
    CALL_STACK_ID,
    CALLS,
    CANONICAL_NAME,
    INPUT_SHAPES,
    NAME,
    OP,
    OP_INPUT_SHAPES,
    OP_KEY_ID,
    RANK,
    STEP,
)
from tracker.store import levels
from tracker.store.answers import (
    OfKind,
    Steps,
    answer,
    answer_of_runs,
    parameter_list,
    ranks_parameters,
    steps_parameters,
    whole,
)
from tracker.store.bulk import fetch
from tracker.store.connect import Store
from tracker.store.dimensions import DETAIL_TEXT, digest_of
from tracker.store.failures import Damaged, explain_damaged
from tracker.store.levels import list_rows
from tracker.store.packing import (
    CONTEXT_NUMBERS,
    Contexts,
    damaged_calls,
    damaged_contexts,
    unpack_calls,
    unpack_contexts,
)
from tracker.store.queries import ops_and_kernels
from tracker.store.queries.ops_and_kernels import StepRows, Texts, keys_of
from tracker.store.sql import statement
from tracker.table import Groups, group_rows

Ranks = Sequence[int] | None

OWNERS: Final = list_rows(
    "memory_peak",
    (
        "component", "op_key", "allocator", "call_stack", "calls", "bytes", "largest_bytes", "first_ns", "first_step",
        "peak_ns", "peak_step",
    ),
)  # fmt: skip
BLOCKS: Final = list_rows(
    "memory_block",
    ("step", "component", "op_key", "allocator", "call_stack", "bytes", "time_ns", "held_ns", "is_released"),
    ("t_component.text", "d.bytes DESC"),
)
CURVE_COLUMNS: Final = ("component", "time_ns", "allocated_bytes", "reserved_bytes")
CURVE_ORDER: Final = ("t_component.text", "d.time_ns")

_CONTEXT_PLACE: Final = ("run_id", "rank", "stage", "step", "node", "parent")
_CONTEXT_LINES: Final = (*_CONTEXT_PLACE, "op_key_id", *CONTEXT_NUMBERS)
_OP: Final = {"name": 0, "input_shapes": 1, "input_types": 2}


class LevelQuestion(Protocol):
    """A question about a level: it answers with the rows of runs, summed over the grain."""

    def __call__(self, store: Store, run_ids: Sequence[int], **filters: Unpack[levels.Filters]) -> Columns:
        """Return the rows, as the filters choose them."""
        ...


@cache
def of_level(name: str) -> LevelQuestion:
    """Return the question about the level called `name` in `schema.levels`, one for each.

    Its answer has run_id, the grain, the key of the level and its numbers, added up as they are declared.
    """

    def ask(store: Store, run_ids: Sequence[int], **filters: Unpack[levels.Filters]) -> Columns:
        level = levels.query_of(name)
        found = answer(store, *levels.build_statement(level, run_ids, **filters))
        try:
            return levels.check_texts(level, found)
        except Damaged as damaged:
            raise explain_damaged(store.url, damaged) from None

    return ask


communication = of_level("communication")
"""The collectives of runs. group_size, size_class_bytes: NULL is unknown; split_by: `ranks` where transit_ns and
wait_ns are what all ranks of the group report, else `profiler`, NULL where neither is known; exposed_wait_ns is
the profiler's where the ranks cannot tell it.
"""
communication_tasks = of_level("communication_task")
"""What the collectives of runs consist of."""
communication_waits = of_level("communication_wait")
"""Which ranks the collectives of runs waited for; a call can wait for several ranks at once."""
communication_links = of_level("communication_link")
"""What the collectives of runs moved over which link. source_rank, target_rank: NULL is all links together;
packet_bytes: NULL is packets of all sizes together. The same bytes stand in several rows: those of all links or sizes,
and those of single ones.
"""
memory = of_level("memory")
"""What the ops of runs allocated, the most bytes first."""
memory_allocators = of_level("memory_allocator")
"""The same per helper that made the call, where that is known."""
api = of_level("api")
"""The host API calls of runs."""
idle = of_level("idle")
"""Why the devices of runs did nothing."""
queue = of_level("queue")
"""How far ahead of the device the hosts of runs launch."""
counters = of_level("counter")
"""What the profiler of runs counted in tables of its own."""


def ops(store: Store, run_ids: Sequence[int], **filters: Unpack[levels.Filters]) -> Columns:
    """Return the ops of `run_ids`, summed over the grain, the largest device self time first.

    Columns: see `ops_and_kernels.ops`.
    """
    return ops_and_kernels.ops(store, run_ids, **filters)


def kernels(store: Store, run_ids: Sequence[int], **filters: Unpack[levels.Filters]) -> Columns:
    """Return the device events of `run_ids` per kernel and launching op, copies and memsets among them.

    Columns: see `ops_and_kernels.kernels`.
    """
    return ops_and_kernels.kernels(store, run_ids, **filters)


def rank_ops(
    store: Store, run_ids: Sequence[int], *, ranks: Ranks = None, steps: Steps = None, launching: bool = False,
    names: Sequence[str] = (),
) -> Columns:  # fmt: skip
    """Return the ops of each rank, inside the steps; `launching`: only those that launched device events themselves;
    `names`: only those called so, empty for all. Columns: see `ops_and_kernels.rank_ops`.
    """
    digests = [digest_of([name], DETAIL_TEXT.digest_bytes) for name in names] or [b""]
    chosen = {"launching": int(launching), "all_names": int(not names), "digests": digests}
    return ops_and_kernels.rank_ops(store, _parameters(run_ids, ranks, steps) | chosen)


def op_stacks(store: Store, run_ids: Sequence[int], *, ranks: Ranks = None, steps: Steps = None) -> Columns:
    """Return from where the ops of each rank are called, inside the steps. See `ops_and_kernels.op_stacks`."""
    return ops_and_kernels.op_stacks(store, run_ids, _parameters(run_ids, ranks, steps))


def rank_kernels(store: Store, run_ids: Sequence[int], *, ranks: Ranks = None, steps: Steps = None) -> Columns:
    """Return the device events of each rank, inside the steps. Columns: see `ops_and_kernels.rank_kernels`."""
    return ops_and_kernels.rank_kernels(store, _parameters(run_ids, ranks, steps))


def step_ops(store: Store, run_ids: Sequence[int], *, ranks: Ranks = None, steps: Steps = None) -> StepRows:
    """Return the ops of each rank and step, inside the steps. See `ops_and_kernels.step_ops`."""
    return ops_and_kernels.step_ops(store, _parameters(run_ids, ranks, steps))


def step_kernels(store: Store, run_ids: Sequence[int], *, ranks: Ranks = None, steps: Steps = None) -> StepRows:
    """Return the device events of each rank and step, inside the steps. See `ops_and_kernels.step_kernels`."""
    return ops_and_kernels.step_kernels(store, _parameters(run_ids, ranks, steps))


def calls_of_steps(
    store: Store, run_ids: Sequence[int], ranks: Sequence[int]
) -> Iterator[tuple[int, int, str, str, int]]:
    """Yield rank, step, name, shapes and number of the calls of each kernel, where there is none of each op: the work
    of ranks in their steps. Copies and collectives are among them. A kernel that an op launched has name and shapes of
    the op: which kernel a library chooses for the same work may differ from rank to rank.
    """
    chosen: levels.Filters = {"by": ("rank", "step"), "ranks": ranks, "in_steps": True}
    found = kernels(store, run_ids, **chosen)
    for rank, step, name, canonical_name, shapes, op, op_shapes, calls in found.rows(
        RANK, STEP, NAME, CANONICAL_NAME, INPUT_SHAPES, OP, OP_INPUT_SHAPES, CALLS
    ):
        work = (op, op_shapes) if op_shapes else (canonical_name or name, shapes)
        yield rank, step, *work, calls
    if not len(found):
        yield from ops(store, run_ids, **chosen).rows(RANK, STEP, NAME, INPUT_SHAPES, CALLS)


def kernel_metrics(store: Store, run_ids: Sequence[int], *, by: Sequence[str] = (), ranks: Ranks = None) -> Columns:
    """Return what the profiler measured in the kernels of `run_ids`, over the whole capture: `by` takes no `step`.

    Columns: run_id, the grain, and those of the level kernel_metric.
    """
    return answer(store, *levels.build_statement(levels.query_of("kernel_metric"), run_ids, by=by, ranks=ranks))


def collective_calls(store: Store, run_id: int, rank: int) -> Columns:
    """Return the collective calls of a rank in order of their start, none where it has none: kind, group_role, step,
    start_ns (from the start of the capture), elapse_ns, bytes and peer, NA where not known.

    Damaged for calls that cannot be unpacked.
    """
    which = {"run_id": run_id, "rank": rank}
    with store.connect() as connection:
        packed = connection.execute(statement("collective_calls"), which).one_or_none()
        rows = connection.execute(statement("collective_rows"), which).all()
    if packed is None:
        return Columns({})
    place = {of.ordinal: number for number, of in enumerate(rows)}
    try:
        calls = unpack_calls(bytes(packed.calls))
        at = [place[ordinal] for ordinal in calls.communication.tolist()]
    except (ValueError, KeyError) as error:
        raise damaged_calls(run_id, rank) from error
    return Columns(
        {
            "kind": objects([rows[row].kind for row in at]),
            "group_role": objects([rows[row].group_role or None for row in at]),
            "step": calls.step,
            "start_ns": calls.start_ns,
            "elapse_ns": calls.elapse_ns,
            "bytes": Column(calls.bytes, calls.bytes == MISSING),
            "peer": Column(calls.peer, calls.peer < 0),
        }
    )


def run_groups(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return the process groups of `run_ids`, and how many of their members are captured.

    Columns: see sql/run_groups.sql.
    """
    return answer_of_runs(store, "run_groups", run_ids)


def memory_owners(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return what was held when each component of memory held most, the most bytes first: run_id, rank, then columns
    of the level memory_peak, with the text of the `call_stack`, NA for none.
    """
    return _with_stacks(store, run_ids, answer_of_runs(store, OWNERS, run_ids))


def memory_blocks(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return the largest single allocations, as far as they are kept, the largest of each component first: run_id,
    rank, then columns of the level memory_block, with the text of the `call_stack`, NA for none.
    """
    return _with_stacks(store, run_ids, answer_of_runs(store, BLOCKS, run_ids))


def _with_stacks(store: Store, run_ids: Sequence[int], found: Columns) -> Columns:
    """Return the rows with the text of each call stack in place of its number."""
    stacks = ops_and_kernels.stack_column(store, whole(run_ids), Column.of(found.listed(CALL_STACK_ID), np.int64))
    return Columns(
        {
            ("call_stack" if name == "call_stack_id" else name): stacks if name == "call_stack_id" else column
            for name, column in found.arrays.items()
        }
    )


def op_tree(
    store: Store,
    run_ids: Sequence[int],
    *,
    ranks: Ranks = None,
    steps: Steps = None,
    in_steps: bool = False,
    by_step: bool = False,
) -> Columns:
    """Return the calling contexts of `run_ids`, summed over steps unless `by_step`, parents before children.

    Columns: see `sum_contexts`.

    With `steps` or `in_steps` a context may stay whose parent began in another step, or in none, and is left out.
    """
    parameters = {"run_ids": whole(run_ids), **ranks_parameters(ranks)}
    return sum_contexts(store, parameters, steps, in_steps=in_steps, by_step=by_step)


def memory_curve(store: Store, run_ids: Sequence[int], *, ranks: Ranks = None) -> Columns:
    """Return the allocator's counters over time: run_id, rank, then the columns of the level memory_curve."""
    question = list_rows("memory_curve", CURVE_COLUMNS, CURVE_ORDER, ranks=ranks is not None)
    chosen = {} if ranks is None else {"ranks": parameter_list(ranks)}
    return answer_of_runs(store, question, run_ids, **chosen)


def memory_peaks(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return the largest counters of each component of memory. Columns: see sql/memory_peaks.sql."""
    return answer_of_runs(store, "memory_peaks", run_ids)


def _parameters(run_ids: Sequence[int], ranks: Ranks, steps: Steps) -> dict[str, Any]:
    """Return what a question about the ranks of runs inside their steps takes."""
    return {"run_ids": whole(run_ids), **ranks_parameters(ranks), **steps_parameters(steps, in_steps=True)}


def sum_contexts(
    store: Store, parameters: Mapping[str, Any], steps: Steps, *, in_steps: bool, by_step: bool
) -> Columns:
    """Return one row per run, rank and calling context, in the order of their numbers, of `steps` (None: all), without
    step -1 where `in_steps`: their sum, or `by_step` a row for each. `parameters`: those of sql/op_tree.sql.

    Columns: run_id, rank, stage (NA: none), step (-1: summed), node, parent (-1: none); name, input_shapes,
    input_types; calls; host_total_ns: host time with the ops inside; device_total_ns: launched anywhere below;
    device_self_ns: by the op itself; kernel_count: device events launched anywhere below. A sum is that of what is
    known, NA where nothing is.
    """
    nothing = np.zeros((len(_CONTEXT_LINES), 0), dtype=np.int64)
    lines = np.concatenate([nothing, *_context_lines_by_rank(store, parameters, steps, in_steps, by_step)], axis=1)
    found = dict(zip(_CONTEXT_LINES, lines, strict=True))
    texts = Texts.of(found[OP_KEY_ID], keys_of(store, "op_key", found[OP_KEY_ID]), _OP)
    groups = group_rows(*(found[name] for name in ("run_id", "rank", "step", "node", "parent")), texts.places)
    first = groups.first
    return Columns(
        {
            **{name: _column_of_marked(found[name][first]) for name in _CONTEXT_PLACE},
            **texts.taken(first),
            **{name: groups.add_up(_column_of_marked(found[name]), "known") for name in CONTEXT_NUMBERS},
        }
    )


def _context_lines_by_rank(
    store: Store, parameters: Mapping[str, Any], steps: Steps, in_steps: bool, by_step: bool
) -> Iterator[I64]:
    """Yield the numbers of each rank, a line for each of _CONTEXT_LINES."""
    if not parameters["run_ids"]:
        return
    with store.connect() as connection:
        rows = fetch(connection.execute(statement("op_tree"), dict(parameters)))
        numbers = _steps_of_kind(connection, parameters["run_ids"], steps) if isinstance(steps, OfKind) else {}
    for run_id, rank, stage, content in rows:
        try:
            contexts = unpack_contexts(bytes(content))
        except ValueError as error:
            found = damaged_contexts(run_id, rank)
            raise explain_damaged(store.url, found) from error
        own_steps = numbers.get((run_id, rank), []) if isinstance(steps, OfKind) else steps
        summed = _sum_steps(contexts, own_steps, in_steps, by_step)
        place = np.array([[run_id], [rank], [MISSING if stage is None else stage]], dtype=np.int64)
        yield np.vstack([place.repeat(summed.shape[1], axis=1), summed])


def _steps_of_kind(connection: Connection, run_ids: Sequence[int], of: OfKind) -> dict[tuple[int, int], list[int]]:
    """Return the numbers of the steps of a kind, by run and rank."""
    numbers: dict[tuple[int, int], list[int]] = {}
    for row in connection.execute(statement("steps"), {"run_ids": list(run_ids)}):
        if row.kind == of.step_kind:
            numbers.setdefault((row.run_id, row.rank), []).append(row.step)
    return numbers


def _sum_steps(contexts: Contexts, steps: Sequence[int] | None, in_steps: bool, by_step: bool) -> I64:
    """Return step, node, parent, op_key_id and CONTEXT_NUMBERS of each context that is in one of the chosen steps."""
    chosen = contexts.step >= (0 if in_steps else MISSING)
    if steps is not None:
        chosen &= np.isin(contexts.step, np.array(whole(steps), dtype=np.int64))
    place, step = contexts.place[chosen], contexts.step[chosen] if by_step else np.full(int(chosen.sum()), NO_STEP)
    # the rows are stored by place, then by step
    opens = (np.diff(place, prepend=-1) | np.diff(step, prepend=MISSING)) != 0
    starts = np.flatnonzero(opens)
    groups = Groups(np.cumsum(opens) - 1, starts, np.arange(len(place)))
    numbers = [groups.add_up_marked(row, MISSING, "known") for row in contexts.numbers[:, chosen]]
    at = place[starts]
    return np.vstack([step[starts], contexts.node[at], contexts.parent[at], contexts.op_key_id[at], *numbers])


def _column_of_marked(values: I64) -> Column:
    """MISSING is missing."""
    missing = values == MISSING
    return Column(np.where(missing, 0, values), missing)
