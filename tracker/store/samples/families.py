"""Which series the rows of a rank hold: kind, metric, name, shapes and part, with a value per row of the profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import IDLE_SERIES, MISSING, Breakdown, IdleCause, StepRow, Table
from tracker.store.bulk import clean, cleaned
from tracker.units import format_bytes

SAMPLE_RULES: Final = 6
"""Goes up with every change that can change a sample; stored with the run, so that older ones are made again."""

SUMMARY: Final = "summary"
UNPROFILED: Final = "unprofiled"
"""How the numbers of a whole run came about where it was not in a trace: see `way_of`."""

I64 = NDArray[np.int64]
T = TypeVar("T")

DEVICE_OWN: Final = "device_self_ns"
HOST_OWN: Final = "host_self_ns"
RUN: Final = "run"
THROUGHPUT: Final = "samples_per_second"

RUN_LEVEL: Final[Mapping[str, str]] = {
    "step": "duration_ns",
    "e2e": "e2e_ns",
    "compute": "compute_ns",
    "exposed communication": "exposed_communication_ns",
    "exposed copy": "exposed_copy_ns",
    "idle time": "idle_ns",
    "data loading": "data_loading_ns",
    "peak memory": "peak_allocated_bytes",
    "throughput": THROUGHPUT,
}
"""Name of a run-level series -> the field of a breakdown that it follows."""

IDLE_CAUSE: Final = "idle_cause_ns"
"""Metric of the series of whole runs that say why the device idles, all places of a cause together."""

MEAN_STEP: Final = ("mean_step_ns", "mean step")
"""Metric and name of the series of the mean over all steps, in which slow steps show that the median leaves out."""

BALANCE: Final = {"imbalance_ratio": "imbalance", "rank_spread_ratio": "rank spread"}
"""Metric -> name of the series of how uneven the ranks of a run are: 1 where they are equal."""

PEAK: Final = "peak_allocated_bytes"
"""No median: the largest of the whole capture and of all ranks."""

WHOLE_CAPTURE: Final = frozenset({PEAK, THROUGHPUT})
"""Fields that the whole capture may know where its steps do not."""

_WAYS: Final[Mapping[str, str]] = {"off": UNPROFILED, "summary": SUMMARY}


def way_of(settings: Mapping[str, str]) -> str:
    """Return how the numbers of a whole run came about, from the settings of a capture: the part of its run-level
    series.

    A profiler costs time, and its summary counts otherwise than its trace, so that these are series of their own.

    >>> way_of({"profiler": "off"}), way_of({"record_shapes": "1"})
    ('unprofiled', '')
    """
    return _WAYS.get(settings.get("profiler", ""), "")


def unit_of(settings: Mapping[str, str]) -> str:
    """Return the unit of the throughput, from the settings of a capture; "" where the source does not say it.

    >>> unit_of({"throughput_unit": "images/s"}), unit_of({})
    ('images/s', '')
    """
    return clean(settings.get("throughput_unit", ""))


class SeriesKey(NamedTuple):
    """What tells a series from the others of its workload, configuration and device. `kind`, `metric`: its family.

    `part`: of a collective the role of its group and its size class, of an API call its level, of a module its phase,
    of a whole run how it was measured (`way_of`). `input_shapes`: of a throughput its unit, since images per second
    are no tokens per second. Texts are clean (see `bulk.clean`).
    """

    kind: str
    metric: str
    name: str
    input_shapes: str = ""
    part: str = ""


class RankRows(Struct, frozen=True):
    """The rows of one rank. `tables`: as in `tracker.profile.Rows`, at least the columns that are read here. `way`: see
    `way_of`. `by_owner`: whether its memory is counted to the op that a user would name, else to the allocator.
    `unit`: of its throughput, "" where the source does not say it.
    `has_windows`: whether its steps are windows of the device.
    """

    rank: int
    stage: int
    way: str
    overall: Breakdown
    steps: Sequence[StepRow]
    tables: Mapping[str, Table]
    by_owner: bool = False
    unit: str = ""
    has_windows: bool = False


class Family(Struct, frozen=True):
    """Rows of one table under the series that they belong to: `series` indexes `keys`, -1 for none.

    `step`, `values`, `calls`: per row; MISSING where the source does not say. `calls` None: the series counts none.
    """

    keys: Sequence[SeriesKey]
    series: I64
    step: I64
    values: I64
    calls: I64 | None


def families(rows: RankRows) -> Iterator[Family]:
    """Yield the families of a rank, but for the run-level series."""
    readers: dict[str, Callable[[RankRows, Table], Iterator[Family]]] = {
        "op": _ops,
        "kernel": _kernels,
        "communication": _communication,
        "memory": _memory,
        "api": _api,
        "idle": _idle,
    }
    for table, read in readers.items():
        if table in rows.tables and len(rows.tables[table]["step"]):
            yield from read(rows, rows.tables[table])


def _ops(rows: RankRows, table: Table) -> Iterator[Family]:
    """Self time per op and shapes, per op name, per module and phase, and per phase."""
    metric = HOST_OWN if rows.overall.timeline == "host" else DEVICE_OWN
    at = _whole(table["op_key"])
    names, shapes, modules, phases = (
        cleaned(rows.tables["op_key"][name]) for name in ("name", "input_shapes", "module", "phase")
    )
    parts = [(module, phase) if module else None for module, phase in zip(modules, phases, strict=True)]
    grains = (
        _coded(zip(names, shapes, strict=True), lambda pair: SeriesKey("op", metric, *pair)),
        _coded(names, lambda name: SeriesKey("op_name", metric, name)),
        _coded(parts, lambda part: SeriesKey("module", metric, part[0], part=part[1])),
        _coded([phase or None for phase in phases], lambda phase: SeriesKey("phase", metric, phase)),
    )
    values, calls = _whole(table[metric]), _whole(table["calls"])
    for keys, code in grains:
        if keys:
            yield Family(keys, code[at], _whole(table["step"]), values, calls)


def _kernels(rows: RankRows, table: Table) -> Iterator[Family]:
    """Device time per canonical name and shapes, without collectives: those are series of their own."""
    names, shapes = (cleaned(rows.tables["kernel_key"][name]) for name in ("canonical_name", "input_shapes"))
    keys, code = _coded(zip(names, shapes, strict=True), lambda pair: SeriesKey("kernel", "total_ns", *pair))
    series = code[_whole(table["kernel_key"])]
    collective = np.array([category == "communication" for category in table["category"]], dtype=bool)
    yield Family(
        keys,
        np.where(collective, -1, series),
        _whole(table["step"]),
        _whole(table["total_ns"]),
        _whole(table["calls"]),
    )


def _communication(rows: RankRows, table: Table) -> Iterator[Family]:
    """Time, and time not hidden by compute, per kind, role and size class. The size of a group is in neither."""
    parts = [
        ", ".join(filter(None, (role, format_bytes(size) if size > 0 else "")))
        for role, size in zip(table["group_role"], _whole(table["size_class_bytes"]).tolist(), strict=True)
    ]
    told = list(zip(cleaned(table["kind"]), cleaned(parts), strict=True))
    for metric in ("total_ns", "exposed_ns"):
        keys, code = _coded(told, partial(_communication_key, metric))
        yield Family(keys, code, _whole(table["step"]), _whole(table[metric]), _whole(table["calls"]))


def _communication_key(metric: str, told: tuple[str, str]) -> SeriesKey:
    kind, part = told
    return SeriesKey("communication", metric, kind, part=part)


def _memory(rows: RankRows, table: Table) -> Iterator[Family]:
    """Bytes that an op allocated, in all components together."""
    names, shapes = (cleaned(rows.tables["op_key"][name]) for name in ("name", "input_shapes"))
    metric = "bytes" if rows.by_owner else "allocator_bytes"
    keys, code = _coded(zip(names, shapes, strict=True), lambda pair: SeriesKey("memory", metric, *pair))
    at = _whole(table["op_key"])
    yield Family(keys, code[at], _whole(table["step"]), _whole(table["bytes"]), _whole(table["calls"]))


def _idle(rows: RankRows, table: Table) -> Iterator[Family]:
    """Idle time of the device by cause, parts of the step; what nobody says why is in its idle time alone."""
    causes = [None if cause == IdleCause.UNKNOWN.word else cause for cause in table["cause"]]
    keys, code = _coded(causes, lambda cause: SeriesKey(RUN, IDLE_CAUSE, f"{IDLE_SERIES}{cause}", "", rows.way))
    yield Family(keys, code, _whole(table["step"]), _whole(table["ns"]), None)


def _api(rows: RankRows, table: Table) -> Iterator[Family]:
    """Time of host API calls, without nested ones where the source tells them apart."""
    told = zip(cleaned(table["name"]), cleaned(table["level"]), strict=True)
    keys, code = _coded(told, lambda each: SeriesKey("api", "self_ns", each[0], part=each[1]))
    own, total = _whole(table["self_ns"]), _whole(table["total_ns"])
    yield Family(keys, code, _whole(table["step"]), np.where(own == MISSING, total, own), _whole(table["calls"]))


def _coded(told: Iterable[T | None], key: Callable[[T], SeriesKey]) -> tuple[list[SeriesKey], I64]:
    """Return the keys of what is told, each once, and for each entry the place of its key among them; -1 for None.

    >>> _coded([None, "forward", "forward"], lambda phase: SeriesKey("phase", "total_ns", phase))[1].tolist()
    [-1, 0, 0]
    """
    entries = list(told)
    known = [each for each in dict.fromkeys(entries) if each is not None]
    places: dict[T | None, int] = {each: place for place, each in enumerate(known)}
    places[None] = -1
    return [key(each) for each in known], np.array([*map(places.__getitem__, entries)], dtype=np.int64)


def _whole(values: Any) -> I64:
    return np.asarray(values, dtype=np.int64)
