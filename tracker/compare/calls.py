"""The single calls of one name in a run: the content of `tracker show RUN --calls NAME`.

Names and sums are those of the rows of the run; the calls are read again from its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from math import floor, log10
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Column, Columns, stacked
from tracker.compare.filters import matching
from tracker.compare.loading import load_all
from tracker.compare.median_run import choose_median_run
from tracker.compare.references import find_named, needs_store
from tracker.compare.step_kinds import keep_kind
from tracker.errors import UsageError
from tracker.profile import BEFORE_CAPTURE, F64, NO_OP, NO_STEP, NOT_LISTED, UNLINKED_OP, label_idle, quantiles
from tracker.readers import ReadOptions
from tracker.results.calls import CallList, CallSpread, HistogramRow, ListedCall, StoredCalls
from tracker.results.options import KINDS_OF_CALLS, CallsOptions
from tracker.schema.column_names import (
    CANONICAL_NAME,
    CAUSE,
    COUNTS,
    DEVICE_ORDINAL,
    DIGEST,
    DURATION_NS,
    FORMAT,
    GAPS,
    GROUP_ROLE,
    HOST_TOTAL_NS,
    INPUT_SHAPES,
    KIND,
    MAX_NS,
    MIN_NS,
    NAME,
    NS,
    PATH,
    PLACE,
    RANK,
    START_NS,
    STEP,
    TOTAL_NS,
)
from tracker.store import Store, queries
from tracker.timeline import WantedCalls
from tracker.units import format_ns, some_of

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.intake.calls import ReadCalls
    from tracker.results import Selection

_STAND_INS: Final = (UNLINKED_OP, NO_OP, NOT_LISTED, BEFORE_CAPTURE)
"""Operators that stand for what has none."""
_ALWAYS: Final = ("rank", "step", "name", "start_ns", "end_ns", "duration_ns", "trace_ns")
"""Columns of every list."""
_PARTS: Final = 10
"""Rows of a histogram of times that are near to each other."""
_FAR: Final = 20
"""From this quotient of the longest to the shortest call on, rows of a histogram get wider."""
_NICE: Final = (1, 2, 5, 10)
_SHARES: Final = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


def list_calls(store: Store | None, reference: str, *, options: CallsOptions) -> CallList:
    """Return the calls of `options.calls` in the run that the database (or the path) `reference` holds.

    Of several runs of a version it is the one of the median step, as in `show`. Raises UsageError for a name that the
    run does not have, or has of several kinds, and for a run whose details were deleted or that has no calls.
    """
    if not options.calls:
        raise UsageError("no name to list the calls of", remedy="give it: --calls NAME")
    with ExitStack() as stack:
        if store is not None and needs_store(reference):
            stack.enter_context(store.reading())
        sides = find_named(store, (reference,), options.workload)
        (reference,), runs = sides.references, sides.runs
        (side,) = load_all(store, (reference,), options, stack, runs=runs, steps=(options.steps,))
        if len(side.run_ids) > 1:
            run_id, which = choose_median_run(side.leave_out_partial())
            found = list_calls(store, f"run:{run_id}", options=options)
            return replace(found, notes=(*sides.notes, which, *found.notes))
        side, on_kinds = keep_kind(side, options.step_kind)
        rows = _query_rows(side)
        kind = _choose_kind(side, rows, options)
        options.check_kind(kind)
        own = _filter_rows(rows[kind], kind, options)
        if not len(own):
            raise UsageError(f"the filters leave no call of {options.calls!r}", remedy="leave some of them out")
        measure = _choose_measure(side, kind, own)
        made = CallList(
            run={"reference": reference, **side.runs.records()[0]},
            kind=kind,
            name=options.calls,
            measure=measure,
            stored=_sum_stored(own, kind, measure),
            options=options,
            calls_table=Columns({}),
            traced_ranks=_list_traced_ranks(side),
            notes=(*sides.notes, *on_kinds),
        )
        wanted = {rank: _want(side, kind, rank, options) for rank in side.captures.listed(RANK)}
        read = read_files(side, wanted, options)
        return _with_calls(side, made, read)


def _query_rows(side: LoadedSide) -> Mapping[str, Columns]:
    """Return the rows of the run by kind of calls, of what is in its steps."""
    by, in_steps = ("run", "rank"), side.has_markers
    ops = side.query(queries.ops, by=by, in_steps=in_steps)
    idle = side.query(queries.idle, by=by, in_steps=in_steps)
    return {
        "operator": ops.taken(np.array([name not in _STAND_INS for name in ops[NAME]], dtype=bool)),
        "kernel": side.query(queries.kernels, by=by, in_steps=in_steps),
        "collective": side.query(queries.communication, by=by, in_steps=in_steps),
        "idle": idle.having(total_ns=idle[NS], calls=idle[GAPS]),
    }


def _names_of(kind: str, rows: Columns) -> Iterator[tuple[str, ...]]:
    """Yield the names that each row answers to."""
    if kind == "kernel":
        yield from rows.rows(NAME, CANONICAL_NAME)
    elif kind == "idle":
        for cause, place in rows.rows(CAUSE, PLACE):
            yield cause, place or cause, label_idle(cause, place or "")
    else:
        yield from rows.rows("name" if kind == "operator" else "kind")


def _choose_kind(side: LoadedSide, rows: Mapping[str, Columns], options: CallsOptions) -> str:
    """Return of which kind the calls are; UsageError for a name of none, or of several."""
    label, name, asked = side.side.label, str(options.calls), options.calls_of
    if not any(map(len, rows.values())):
        (format,) = side.runs.listed(FORMAT)
        raise UsageError(f"{label} has no calls: {format} states none", remedy="record a trace")
    kinds = [asked] if asked else list(KINDS_OF_CALLS)
    known = {kind: {one for names in _names_of(kind, rows[kind]) for one in names if one} for kind in kinds}
    found = [kind for kind, names in known.items() if name in names]
    if len(found) > 1 and found[-1] == "idle":
        # the device often waits for an operator that is called so, too: its idle time has a longer name
        found.pop()
    if len(found) > 1:
        choices = " or ".join(f"--calls-of {kind}" for kind in found)
        raise UsageError(f"{name!r} names calls of several kinds in {label}: {', '.join(found)}", remedy=choices)
    if not found:
        every = [one for names in known.values() for one in names]
        what = asked or "operator, kernel, collective or idle place"
        raise queries.unknown(what, name, every, f" in {label}", where=f"tracker show {label} --details")
    return found[0]


def _filter_rows(rows: Columns, kind: str, options: CallsOptions) -> Columns:
    """Return the rows whose calls are listed."""
    kept = rows.taken(np.array([options.calls in names for names in _names_of(kind, rows)], dtype=bool))
    if options.shapes is not None:
        kept = kept.taken(kept.texts(INPUT_SHAPES) == options.shapes)
    if kind == "operator":
        return matching(kept, "module", options.module)
    if kind == "kernel":
        return matching(kept, "op", options.op)
    return matching(kept, GROUP_ROLE, options.group) if kind == "collective" else kept


def _choose_measure(side: LoadedSide, kind: str, rows: Columns) -> str:
    """Return the column of the calls that says how long one took: of an operator what its row has the extremes of."""
    if kind != "operator":
        return DURATION_NS
    return "device_total_ns" if side.side.timeline == "device" else HOST_TOTAL_NS


def _sum_stored(rows: Columns, kind: str, measure: str) -> StoredCalls:
    """Return what the rows say of all calls together."""
    total = measure if kind == "operator" else TOTAL_NS
    calls, total_ns = _sum_known(rows, "calls"), _sum_known(rows, total)
    lows = rows.integers(MIN_NS)[rows.known(MIN_NS)] if MIN_NS in rows else np.zeros(0, dtype=np.int64)
    highs = rows.integers(MAX_NS)[rows.known(MAX_NS)] if MAX_NS in rows else np.zeros(0, dtype=np.int64)
    return StoredCalls(
        calls=calls,
        total_ns=total_ns,
        minimum_ns=int(lows.min()) if len(lows) else None,
        mean_ns=total_ns / calls if calls and total_ns is not None else None,
        maximum_ns=int(highs.max()) if len(highs) else None,
    )


def _sum_known(rows: Columns, name: str) -> int | None:
    return int(rows.integers(name).sum()) if rows.has(name) else None


def _list_traced_ranks(side: LoadedSide) -> tuple[int, ...]:
    from tracker.intake.cutting import traces_of

    sources = queries.sources(side.store, side.run_ids).rows(RANK, FORMAT, PATH, DIGEST)
    return tuple(traces_of(list(sources)))


def read_files(side: LoadedSide, wanted: Mapping[int, WantedCalls], options: Selection) -> ReadCalls:
    """Return the wanted calls of each rank, from the files of the run."""
    from tracker.intake.calls import StoredCapture, StoredSource, read_calls

    captures = queries.captures(side.store, side.run_ids)
    sources = queries.sources(side.store, side.run_ids).rows(RANK, FORMAT, PATH, DIGEST)
    report = options.on_progress
    read = ReadOptions(
        flow_category=options.flow_category,
        progress=None if report is None else lambda done, total: report("reading the calls", done, total),
    )
    if options.max_bytes is not None:
        read = replace(read, max_bytes=options.max_bytes)
    return read_calls(
        [StoredSource(*source) for source in sources],
        [StoredCapture(*capture) for capture in captures.rows(RANK, DEVICE_ORDINAL)],
        wanted,
        read,
        options.loaders,
    )


def _want(side: LoadedSide, kind: str, rank: int, options: CallsOptions) -> WantedCalls:
    """Return which calls of a rank are listed: those of its shown steps."""
    steps = None
    if side.chosen_steps is not None or side.step_kind:
        steps = frozenset(step for of, step in side.steps.rows(RANK, STEP) if of == rank)
    return WantedCalls(
        kind=kind,
        name=str(options.calls),
        shapes=options.shapes,
        op=options.op,
        module=options.module,
        group=options.group,
        steps=steps,
        in_steps=side.has_markers,
    )


def _with_calls(side: LoadedSide, made: CallList, read: ReadCalls) -> CallList:
    """Return the list with its calls, the slowest first, or with why there are none."""
    by_rank = dict(read.calls)
    notes = list(made.notes)
    reasons = [str(error) for error in read.unread]
    if reasons and made.kind == "collective":
        by_rank = {rank: _stored_collectives(side, rank, made.options) for rank in side.captures.listed(RANK)}
        notes.append(f"The calls are those of the database, without streams and ends: {some_of(reasons, most=2)}.")
    elif reasons and not by_rank:
        return replace(made, missing=f"The calls cannot be read again: {some_of(reasons, most=2)}")
    elif reasons:
        notes.append(f"Calls of some ranks cannot be read again: {some_of(reasons, most=2)}.")
    table = _stack_ranks(by_rank)
    if not len(table):
        return replace(made, missing="The calls cannot be listed: the source states their sum alone")
    counted_ns = table.integers(made.measure)[table.known(made.measure)]
    order_ns = np.where(table.known(made.measure), table.integers(made.measure), -1)
    order = np.lexsort((table.integers(START_NS), table.integers(RANK), -order_ns))
    if not reasons:
        notes += _compare_with_stored(made.stored, _count_calls(made.kind, table), int(counted_ns.sum()))
    # what no call states needs no column of a long list
    kept = [name for name in ListedCall.__struct_fields__ if name in table and (table.has(name) or name in _ALWAYS)]
    return replace(
        made,
        calls_table=table.taken(order).only(kept),
        histogram=tuple(_make_histogram(counted_ns)),
        spread=_measure_spread(counted_ns),
        notes=tuple(notes),
    )


def _stack_ranks(by_rank: Mapping[int, Columns]) -> Columns:
    parts = [table.having(rank=np.full(len(table), rank)) for rank, table in sorted(by_rank.items()) if len(table)]
    if not parts:
        return Columns({})
    return Columns({name: stacked([part[name] for part in parts]) for name in parts[0].arrays})


def _stored_collectives(side: LoadedSide, rank: int, options: CallsOptions) -> Columns:
    """Return the calls of a kind of collective that the database has of a rank."""
    (run_id,) = side.run_ids
    calls = queries.collective_calls(side.store, run_id, rank)
    if not len(calls):
        return calls
    step = calls.integers(STEP)
    wanted = _want(side, "collective", rank, options).keep_steps(step) & (calls.texts(KIND) == options.calls)
    calls = calls.having(step=Column(step, step == NO_STEP)).taken(wanted)
    calls = matching(calls, GROUP_ROLE, options.group)
    return calls.renamed({"kind": "name", "elapse_ns": DURATION_NS})


def _count_calls(kind: str, table: Columns) -> int | None:
    """Return how many calls the rows count: of an operator those that begin in the shown steps, None where the host
    that calls is counted with another device of its process.
    """
    if kind != "operator":
        return len(table)
    counts = int(table[COUNTS].sum())
    return counts or None


def _compare_with_stored(stored: StoredCalls, calls: int | None, total_ns: int) -> Iterator[str]:
    """Yield that the calls do not add up to the rows, which only other rules of reading can be the reason of."""
    if stored.total_ns in (None, total_ns) and (None in (calls, stored.calls) or calls == stored.calls):
        return
    known = f"{stored.calls or 0:,} calls, {format_ns(stored.total_ns)}"
    yield (f"The rows of the run have {known}: its file is read otherwise now. tracker ingest --again reads it again.")


def _measure_spread(counted_ns: Any) -> CallSpread | None:
    if not len(counted_ns):
        return None
    minimum, lower, middle, upper, maximum = quantiles(counted_ns.astype(np.float64), _SHARES).tolist()
    total_ns = int(counted_ns.sum())
    mean = total_ns / len(counted_ns)
    return CallSpread(len(counted_ns), total_ns, minimum, lower, middle, upper, maximum, mean)


def _make_histogram(counted_ns: Any) -> Iterator[HistogramRow]:
    """Yield how many calls took how long, without rows before the first and behind the last call."""
    if not len(counted_ns):
        return
    shortest_ns, longest_ns = float(counted_ns.min()), float(counted_ns.max())
    if shortest_ns == longest_ns:
        yield HistogramRow(shortest_ns, longest_ns, len(counted_ns), 1.0)
        return
    edges = _choose_edges(shortest_ns, longest_ns)
    counts, _ = np.histogram(counted_ns, bins=edges)
    for low, high, calls in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True):
        yield HistogramRow(low, high, calls, calls / len(counted_ns))


def _choose_edges(shortest_ns: float, longest_ns: float) -> F64:
    """Return round times between which calls are counted.

    >>> _choose_edges(1_000, 1_900).tolist()[:3], _choose_edges(30, 4_000).tolist()
    ([1000.0, 1100.0, 1200.0], [20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0])
    """
    if longest_ns > _FAR * max(shortest_ns, 1.0):
        powers = 10.0 ** np.arange(floor(log10(longest_ns)) + 2)
        edges = np.append(0.0, np.outer(powers, _NICE[:-1]).ravel())
        first = int(np.searchsorted(edges, shortest_ns, side="right")) - 1
        last = int(np.searchsorted(edges, longest_ns))
        return edges[first : last + 1]
    least = (longest_ns - shortest_ns) / _PARTS or 1.0
    power = 10.0 ** floor(log10(least))
    width = next(one * power for one in _NICE if one * power >= least * (1 - 1e-9))
    width = max(width, 1.0)
    first_part = floor(shortest_ns / width)
    parts = max(1, int(np.ceil(longest_ns / width)) - first_part)
    return np.array([(first_part + part) * width for part in range(parts + 1)])
