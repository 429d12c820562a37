"""The data pipeline of the input, of a run and of two sides: its operations, and how full the queues behind them are.

Both are made of the counters INPUT_OPERATIONS and INPUT_QUEUES, which count over whole captures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from tracker.columns import Columns
from tracker.compare.summaries import grains_of
from tracker.profile import INPUT_OPERATIONS, INPUT_QUEUES, InputAttribute
from tracker.results import SHOWN_COLUMNS
from tracker.results.diff_rows import InputOperationChange, InputQueueChange
from tracker.results.shown_rows import InputOperationRow, InputQueueRow
from tracker.schema.column_names import RANK, RUN_ID, SOURCE, STEP
from tracker.store import queries
from tracker.table import is_among
from tracker.units import NS_PER_MS, NS_PER_US

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide

_INTERVAL: Final = re.compile(rf"{InputAttribute.SIZE} (?P<interval>\d+)/(?P<intervals>\d+)")
_PERCENT: Final = 100


class _Measurement(Struct, frozen=True):
    """What was counted of an operation: a row of `counters`."""

    name: str
    attribute: str
    calls: int
    mean: float
    min: float
    max: float


Counted = Mapping[str, _Measurement]
"""Attribute -> what was counted of it, of one operation."""


class _PipelineKey(Struct, frozen=True):
    """What a row of a diff is matched by: an operation, or an interval of the time of a queue."""

    operation: str
    interval: int | None = None
    intervals: int | None = None


class _Numbers(Struct, frozen=True):
    """The numbers of an operation or a queue, or of an interval of its time, on one side."""

    average_ns: float | None = None
    total_ns: float | None = None
    calls: float | None = None
    share: float | None = None
    mean: float | None = None
    empty_share: float | None = None
    capacity: float | None = None
    workers: float | None = None
    cpu_percent: float | None = None


Side = Mapping[_PipelineKey, _Numbers]
_Row = TypeVar("_Row", InputOperationRow, InputQueueRow)


def counters_of(side: LoadedSide, by: Sequence[str]) -> Columns:
    """Return what was counted of the data pipeline of a side at the grain `by`, of whole captures."""
    table = side.query_with(queries.counters, by=tuple(by), ranks=side.ranks, steps=None)
    return table.taken(is_among(table[SOURCE], (INPUT_OPERATIONS, INPUT_QUEUES)))


def list_operations(counted: Columns) -> Columns:
    """Return `input_operations` of a run, the operation with most time first; of several ranks their sums."""
    rows = [row for own in _grouped(counted, INPUT_OPERATIONS) for row in _operations_of(own)]
    return _with_grains("input_operations", InputOperationRow, rows, counted)


def list_queues(counted: Columns) -> Columns:
    """Return `input_queues` of a run, that next to the device first, each with its intervals of time behind it."""
    rows = [row for own in _grouped(counted, INPUT_QUEUES) for row in _queues_of(own)]
    return _with_grains("input_queues", InputQueueRow, rows, counted)


def compare_operations(baseline: LoadedSide, candidate: LoadedSide) -> Columns:
    """Return the `input_operations` of a Diff, by change of the average time; none unless both sides know them."""
    sides = _both(baseline, candidate, INPUT_OPERATIONS, _operations_of, lambda row: _PipelineKey(row.operation))
    rows = []
    for key, before, after in _pairs(sides):
        delta, diff = _change(before.average_ns, after.average_ns)
        rows.append(
            InputOperationChange(
                operation=key.operation,
                baseline_calls=before.calls,
                candidate_calls=after.calls,
                baseline_average_ns=before.average_ns,
                candidate_average_ns=after.average_ns,
                delta_ns=delta,
                diff=diff,
                baseline_share=before.share,
                candidate_share=after.share,
                baseline_total_ns=before.total_ns,
                candidate_total_ns=after.total_ns,
            )
        )
    rows.sort(key=lambda row: -abs(row.delta_ns or 0.0))
    return Columns.of_structs(InputOperationChange, rows)


def compare_queues(baseline: LoadedSide, candidate: LoadedSide) -> Columns:
    """Return the `input_queues` of a Diff in the order of the pipeline; none unless both sides know them."""
    sides = _both(
        baseline,
        candidate,
        INPUT_QUEUES,
        _queues_of,
        lambda row: _PipelineKey(row.operation, row.interval, row.intervals),
    )
    rows = []
    for key, before, after in _pairs(sides):
        delta, diff = _change(before.mean, after.mean)
        rows.append(
            InputQueueChange(
                operation=key.operation,
                interval=key.interval,
                intervals=key.intervals,
                baseline_mean=before.mean,
                candidate_mean=after.mean,
                delta=delta,
                diff=diff,
                baseline_empty_share=before.empty_share,
                candidate_empty_share=after.empty_share,
                baseline_capacity=before.capacity,
                candidate_capacity=after.capacity,
                baseline_workers=before.workers,
                candidate_workers=after.workers,
                baseline_cpu_percent=before.cpu_percent,
                candidate_cpu_percent=after.cpu_percent,
            )
        )
    return Columns.of_structs(InputQueueChange, rows)


class _Place(Struct, frozen=True):
    """What a row is of: a run, and the rank and step where they are kept apart."""

    run_id: int | None
    rank: int | None
    step: int | None


class _Operations(Struct, frozen=True):
    """What was counted of the operations at one place."""

    place: _Place
    by_name: Mapping[str, Counted]


def _grouped(counted: Columns, source: str) -> list[_Operations]:
    """Return the counters of a source by what a row is of, in the order in which these first come."""
    own = counted.taken(counted[SOURCE] == source)
    grains = [name for name in (RUN_ID, *grains_of(own)) if name in own]
    lacking = [None] * len(own)
    places = map(_Place, *(own.listed(name) if name in grains else lacking for name in (RUN_ID, RANK, STEP)))
    found: dict[_Place, dict[str, dict[str, _Measurement]]] = {}
    for place, counter in zip(places, own.structs(_Measurement), strict=True):
        found.setdefault(place, {}).setdefault(counter.name, {})[counter.attribute] = counter
    return [_Operations(place, by_name) for place, by_name in found.items()]


def _operations_of(own: _Operations) -> list[InputOperationRow]:
    rows = []
    totals = {name: _sum(counted, InputAttribute.TOTAL) for name, counted in own.by_name.items()}
    every = sum(total or 0.0 for total in totals.values())
    for name, counted in own.by_name.items():
        calls, total_us = _sum(counted, InputAttribute.CALLS), totals[name]
        total_ns = None if total_us is None else total_us * NS_PER_US
        rows.append(
            InputOperationRow(
                rank=own.place.rank,
                step=own.place.step,
                operation=name,
                calls=calls,
                total_ns=total_ns,
                average_ns=total_ns / calls if total_ns is not None and calls else None,
                share=total_us / every if total_us is not None and every else None,
            )
        )
    return sorted(rows, key=lambda row: (-(row.total_ns or 0.0), row.operation))


def _queues_of(own: _Operations) -> list[InputQueueRow]:
    rows: list[InputQueueRow] = []
    order = sorted(own.by_name, key=lambda name: (_mean(own.by_name[name], InputAttribute.NUMBER) or 0.0, name))
    for name in order:
        counted = own.by_name[name]
        empty, sampled_ms = _mean(counted, InputAttribute.EMPTY), _mean(counted, InputAttribute.SAMPLED)
        size = counted.get(InputAttribute.SIZE)
        rows.append(
            InputQueueRow(
                rank=own.place.rank,
                step=own.place.step,
                operation=name,
                interval=None,
                intervals=None,
                workers=_mean(counted, InputAttribute.WORKERS),
                capacity=_mean(counted, InputAttribute.CAPACITY),
                cpu_percent=_mean(counted, InputAttribute.CPU),
                empty_share=None if empty is None else empty / _PERCENT,
                mean=None if size is None else size.mean,
                min=None if size is None else size.min,
                max=None if size is None else size.max,
                sampled_ns=None if not sampled_ms else sampled_ms * NS_PER_MS,
            )
        )
        rows += _intervals_of(own, name, rows[-1].sampled_ns)
    return rows


def _intervals_of(own: _Operations, name: str, sampled_ns: float | None) -> list[InputQueueRow]:
    intervals = []
    for attribute, counter in own.by_name[name].items():
        match = _INTERVAL.fullmatch(attribute)
        if match is None:
            continue
        intervals.append(
            InputQueueRow(
                rank=own.place.rank,
                step=own.place.step,
                operation=name,
                interval=int(match.group("interval")),
                intervals=int(match.group("intervals")),
                workers=None,
                capacity=None,
                cpu_percent=None,
                empty_share=None,
                mean=counter.mean,
                min=counter.min,
                max=counter.max,
                sampled_ns=None if sampled_ns is None else sampled_ns / int(match.group("intervals")),
            )
        )
    return sorted(intervals, key=lambda row: (row.intervals or 0, row.interval or 0))


def _sum(counted: Counted, attribute: str) -> float | None:
    counter = counted.get(attribute)
    return None if counter is None else counter.mean * counter.calls


def _mean(counted: Counted, attribute: str) -> float | None:
    counter = counted.get(attribute)
    return None if counter is None else counter.mean


def _with_grains(name: str, kind: type[Struct], rows: Sequence[Struct], counted: Columns) -> Columns:
    return Columns.of_structs(kind, rows).only([*grains_of(counted), *SHOWN_COLUMNS[name]])


def _both(
    baseline: LoadedSide,
    candidate: LoadedSide,
    source: str,
    rows_of: Callable[[_Operations], Sequence[_Row]],
    key_of: Callable[[_Row], _PipelineKey],
) -> tuple[Side, Side]:
    """Return the numbers of both sides by key, medians over their runs and ranks; none unless both sides have some."""
    found: list[Side] = []
    for side in (baseline, candidate):
        numbers: dict[_PipelineKey, list[_Row]] = {}
        # the counters of runs were asked for by their own section: most have no data pipeline, and need no ranks
        has_pipeline = side.may_have_rows(queries.counters) and len(counters_of(side, ("run",)))
        groups = _grouped(counters_of(side, ("run", "rank")), source) if has_pipeline else {}
        for own in groups:
            for row in rows_of(own):
                numbers.setdefault(key_of(row), []).append(row)
        found.append({key: _medians(rows) for key, rows in numbers.items()})
    before, after = found
    return (before, after) if before and after else ({}, {})


def _medians(rows: Sequence[Struct]) -> _Numbers:
    """Return the median of each number over these rows, None where none has it."""
    medians: dict[str, float | None] = {}
    for name in _Numbers.__struct_fields__:
        known = [number for row in rows if (number := getattr(row, name, None)) is not None]
        medians[name] = median(known) if known else None
    return _Numbers(**medians)


def _pairs(sides: tuple[Side, Side]) -> Iterator[tuple[_PipelineKey, _Numbers, _Numbers]]:
    """Yield the numbers of both sides, those of the baseline in their order, then what is new."""
    before, after = sides
    for key in dict.fromkeys([*before, *after]):
        yield key, before.get(key, _Numbers()), after.get(key, _Numbers())


def _change(before: float | None, after: float | None) -> tuple[float | None, float | None]:
    if before is None or after is None:
        return None, None
    return after - before, after / before - 1 if before else None
