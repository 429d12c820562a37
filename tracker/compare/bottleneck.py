"""What the steps wait for: the model level of an analysis, with the thresholds of the method that it follows."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.advice.collectives import StepCollectives
from tracker.compare.beside import counted
from tracker.compare.overall import step_numbers
from tracker.compare.side import GRAIN
from tracker.profile import DEVICE_USE, EMPTY_QUEUE, TIMER_BATCH, TIMER_READER, median
from tracker.results import Bottleneck
from tracker.schema.column_names import (
    DATA_LOADING_IDLE_NS,
    DATA_LOADING_NS,
    DURATION_NS,
    E2E_NS,
    IDLE_NS,
    KERNEL_COUNT,
    MEAN,
    NAME,
    RANK,
    RUN_ID,
    SOURCE,
    STAGE,
    STEP_NS,
    STEPS,
    TIMELINE,
    WHOLE_NS,
)
from tracker.store import queries
from tracker.store.samples.statistics import over_ranks, over_runs, over_steps
from tracker.table import number_distinct_rows
from tracker.units import NS_PER_MS

if TYPE_CHECKING:
    from tracker.columns import I64, Columns
    from tracker.compare.side import LoadedSide

    _Times = tuple[I64, I64, I64, I64, I64]

_INPUT_ABOVE: Final = 0.05
_EMPTY_QUEUE_ABOVE: Final = 0.5
_COMMUNICATION_ABOVE: Final = 0.1
_HOST_BELOW: Final = 0.8
_DEVICE_ABOVE: Final = 0.9
THRESHOLDS: Final = {
    "input_bound_above": _INPUT_ABOVE,
    "empty_queue_above": _EMPTY_QUEUE_ABOVE,
    "communication_bound_above": _COMMUNICATION_ABOVE,
    "host_bound_below": _HOST_BELOW,
    "device_bound_above": _DEVICE_ABOVE,
}
"""From Paddle's guide to the analysis of model performance, sections 1.1 to 1.3: an average reader ratio (reader cost /
batch cost) above 5 % is an I/O bottleneck, and what is below can still be won (here of the part in which the device
idles: a loader that works beside it costs nothing); where the queue to the device is empty most of the time, the device
waits for data (MindSpore's own analysis warns from 60 % on); a GPU that works less than 80 % of the
time is a CPU bottleneck, one that works more than 90 % a GPU bottleneck. Exposed communication above 10 % of the
step is worth advice in PyTorch's TensorBoard plugin (torch_tb_profiler).
"""

_NO_LOADING: Final = "data loading (the source does not say when a step waits for its data)"
_NO_STEP: Final = "the step time"
_NOT_WHOLE: Final = "whole steps (records of the capture are lost or cannot be)"
_NO_DEVICE: Final = "device utilisation (there is no device activity in the capture)"
_NO_IDLE: Final = "when the device idles in data loading (all of data loading counts)"
_NO_SPAN: Final = "device utilisation (the source does not say how long the device worked)"


def bottleneck(side: LoadedSide) -> Bottleneck:
    """Return the bottleneck of a side; `Bottleneck` defines its numbers. Of records that were lost there is none."""
    if not side.partial.has_whole_steps:
        return Bottleneck(None, None, None, None, (_NOT_WHOLE,), THRESHOLDS, side.measured_by)
    times = _times(side)
    loading, idle = (_share(side, name, STEP_NS) for name in (DATA_LOADING_NS, DATA_LOADING_IDLE_NS))
    timer, empty_queue = _times_by_timer(side), _empty_queue(side)
    if timer is not None:
        # the log says how long the step is in which it waited; the device's part of that is not known
        loading, idle = timer[0] / timer[1], None
    gain = loading if idle is None else idle
    utilisation = _utilisation(side, times)
    missing = []
    if loading is None and empty_queue is None:
        missing.append(_NO_STEP if not side.steps.known(DURATION_NS).any() else _NO_LOADING)
    elif idle is None and loading is not None and loading > 0:
        missing.append(_NO_IDLE)
    if utilisation is None:
        traced = side.captures.known(KERNEL_COUNT).any()  # a log knows of no device, and not that there is none
        missing.append(_NO_DEVICE if traced and (side.captures[TIMELINE] == "host").all() else _NO_SPAN)
    exposed = _share(side, "exposed_communication_ns", "whole_ns")
    host_idle = _host_idle(side)
    return Bottleneck(
        _bound(gain, exposed, utilisation, host_idle, empty_queue),
        loading, utilisation, gain, tuple(missing), THRESHOLDS, side.measured_by, _outside_steps(side, times), exposed,
        host_idle, empty_queue, timer, *_exposed_collectives(side),
    )  # fmt: skip


def _bound(
    gain: float | None,
    exposed: float | None,
    utilisation: float | None,
    host_idle: float | None,
    empty_queue: float | None,
) -> str | None:
    """Return what takes most of the step, of all that is above its threshold: waiting for data, for the host or for
    other ranks, or the work of the device itself; of equal ones the first. Where none is, `mixed`, None where the
    device is not known.

    Where a source says how often the queue to the device is empty, that alone says whether it waits for data: a batch
    that is long in the making may still come in time.
    """
    if empty_queue is not None and empty_queue > _EMPTY_QUEUE_ABOVE:
        return "input"
    shares: list[tuple[str, float]] = []
    if empty_queue is None and gain is not None and gain > _INPUT_ABOVE:
        shares.append(("input", gain))
    if exposed is not None and exposed > _COMMUNICATION_ABOVE:
        shares.append(("communication", exposed))
    is_idle = utilisation is not None and utilisation < _HOST_BELOW
    if utilisation is not None and host_idle is not None and is_idle:
        shares.append(("host", _host_share(utilisation, host_idle, gain)))
    elif utilisation is not None and utilisation > _DEVICE_ABOVE:
        # a device that waits in a collective counts as one that works
        shares.append(("device", utilisation - (exposed or 0.0)))
    known = [(word, share) for word, share in shares if share > 0]
    if known:
        return max(known, key=itemgetter(1))[0]
    if is_idle and host_idle is None:
        # without launches nothing proves that the host is late: it is where nothing else is known
        return "host"
    return None if utilisation is None else "mixed"


def _host_share(utilisation: float, host_idle: float, gain: float | None) -> float:
    """Return the share of the steps in which the device waits for the host, data loading aside; 0 where nothing is
    launched in less than half of its idle time: then launched work waits for other work of the device.
    """
    return max(0.0, host_idle - (gain or 0.0)) if 2 * host_idle >= 1 - utilisation else 0.0


def _share(side: LoadedSide, part: str, whole: str) -> float | None:
    """Of the numbers that the overall table shows."""
    numbers = step_numbers(side)
    return numbers[part] / numbers[whole] if part in numbers and numbers.get(whole) else None


def _host_idle(side: LoadedSide) -> float | None:
    """Return the share of the steps in which nothing was launched for the device; None where launches are not known."""
    of_device = side.steps.taken(side.steps[TIMELINE] == "device")
    runs, (whole, waits, ranks), steps = _known(of_device, "whole_ns", "host_idle_ns", "rank")
    return _number(side, runs, ranks, waits * steps, whole * steps, steps) if len(runs) else None


def _utilisation(side: LoadedSide, times: _Times) -> float | None:
    """Of what the rows of steps know; else the mean of what the profiler says of its devices."""
    runs, ranks, busy, lasting, steps = times
    return _number(side, runs, ranks, busy, lasting, steps) if len(runs) else _said(side)


def _times(side: LoadedSide) -> _Times:
    """Return of the rows of steps that know it: run, rank, how long the device worked, how long the steps lasted, in
    ns, and how many steps it is.
    """
    of_device = side.steps.taken(side.steps[TIMELINE] == "device")
    runs, (duration, whole, idle, rank), steps = _known(of_device, DURATION_NS, WHOLE_NS, IDLE_NS, RANK)
    # a run read before steps were windows has parts that are shorter or longer than its step
    lasting = np.maximum(duration, whole) if side.has_markers else whole
    return runs, rank, (whole - idle) * steps, lasting * steps, steps


def _outside_steps(side: LoadedSide, times: _Times) -> float | None:
    """Return how much of the E2E of the captures lies in none of their steps; None for a part of the steps.

    A rank counts where all of its steps are among the `times`.
    """
    if side.is_part:
        return None
    inside: dict[tuple[int, int], int] = {}
    untold = Counter(side.steps.rows(RUN_ID, RANK))
    step_runs, step_ranks, _, lasting, _ = (column.tolist() for column in times)
    for run_id, rank, ns in zip(step_runs, step_ranks, lasting, strict=True):
        inside[run_id, rank] = inside.get((run_id, rank), 0) + ns
        untold[run_id, rank] -= 1
    runs, (ranks, e2e), _ = _known(side.captures.taken(side.captures[TIMELINE] == "device"), RANK, E2E_NS)
    keys = list(zip(runs.tolist(), ranks.tolist(), strict=True))
    known = np.array([key in inside and not untold[key] for key in keys], dtype=bool)
    outside = e2e - np.array([inside.get(key, 0) for key in keys], dtype=np.int64)
    return _number(side, runs[known], ranks[known], np.maximum(outside, 0)[known], e2e[known])


def _times_by_timer(side: LoadedSide) -> tuple[float, float] | None:
    """Return data loading and step in ns by the timer log beside a trace; None without one."""
    reader_ms, batch_ms = counted(side, TIMER_READER), counted(side, TIMER_BATCH)
    return (reader_ms * NS_PER_MS, batch_ms * NS_PER_MS) if reader_ms is not None and batch_ms else None


def _exposed_collectives(side: LoadedSide) -> tuple[str | None, float | None]:
    """Return the kind of collective that is exposed most, and which part of the exposed communication is waiting for
    other ranks, where a source tells the two apart; None where none does.
    """
    rows = side.query(queries.communication, by=GRAIN, in_steps=side.has_markers)
    kinds: dict[str, float] = {}
    exposed_ns = known_ns = waits_ns = 0.0
    for run_id in side.run_ids:
        steps = side.steps.taken(side.steps.integers(RUN_ID) == run_id)
        found = StepCollectives(rows.taken(rows.integers(RUN_ID) == run_id), steps)
        for kind, ranks in found.sum_by(lambda _, kind: kind).items():
            for row in ranks.values():
                own_ns = row.exposed_ns or 0.0
                kinds[kind] = kinds.get(kind, 0.0) + own_ns
                exposed_ns += own_ns
                known_ns += own_ns if row.wait_ns is not None else 0.0
        waits_ns += sum(waits.least for waits in found.waits_of_ranks().values())
    # a part that is known stands for the whole only where it is most of it
    is_known = 2 * known_ns > exposed_ns
    most = max((one for one in kinds if kinds[one]), key=lambda one: (kinds[one], one), default=None)
    return most, min(1.0, waits_ns / known_ns) if is_known else None


def _empty_queue(side: LoadedSide) -> float | None:
    """Return how much of the time the queue to the device is empty."""
    percent = counted(side, EMPTY_QUEUE)
    return None if percent is None else percent / 100


def _said(side: LoadedSide) -> float | None:
    if side.is_part or not (side.captures[TIMELINE] == "device").any():  # it says so of all steps together
        return None
    found: dict[int, list[float]] = {}
    counters = side.query(queries.counters, by=("run",), in_steps=False)
    for run_id, source, name, mean in counters.rows(RUN_ID, SOURCE, NAME, MEAN):
        if source == DEVICE_USE and not name.startswith("CPU") and mean is not None:
            found.setdefault(run_id, []).append(mean)
    return float(median([fmean(own) for own in found.values()])) / 100 if found else None


def _known(rows: Columns, *columns: str) -> tuple[I64, list[I64], I64]:
    """Of the rows that know all these columns: their runs, the columns, and how many steps each is the mean of."""
    known = np.logical_and.reduce([rows.known(name) for name in columns])
    runs, steps, *found = (rows.integers(name)[known] for name in (RUN_ID, STEPS, *columns))
    return runs, found, steps


def _number(side: LoadedSide, runs: I64, ranks: I64, part: I64, whole: I64, steps: I64 | None = None) -> float | None:
    """Return `part` / `whole`: over the steps of each rank, then over ranks and runs as every number."""
    stages = {(run, rank): stage for run, rank, stage in side.captures.rows(RUN_ID, RANK, STAGE)}
    place, first = number_distinct_rows([runs, ranks])
    found: dict[int, dict[int, float]] = {}
    for at, row in enumerate(first.tolist()):
        own = np.flatnonzero((place == at) & (whole > 0))
        if not len(own):
            continue
        weights = np.ones(len(own)) if steps is None else steps[own].astype(np.float64)
        (quotient,) = over_steps((part[own] / whole[own])[None, :], weights)
        found.setdefault(int(runs[row]), {})[int(ranks[row])] = float(quotient)
    of_runs = [
        over_ranks(np.array([[*own.values()]]), np.array([stages[run, rank] for rank in own], dtype=np.int64))[0]
        for run, own in found.items()
    ]
    return float(over_runs(np.array([of_runs]))[0]) if of_runs else None
