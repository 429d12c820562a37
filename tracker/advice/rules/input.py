"""Data and copies that the device waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy, find_rank_with_most, share_of
from tracker.advice.traits import DATA_LOADER, STACKS
from tracker.profile import EMPTY_QUEUE, TIMER_BATCH, IdleCause
from tracker.units import NS_PER_MS

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence
    from tracker.advice.pieces import WorkPiece

_GAPS: Final = 0.05
"""Of the step of a host: Python between operators takes as much in any loop."""
_MAY_BE_DATA: Final = (IdleCause.UNKNOWN, IdleCause.NO_OPERATOR, IdleCause.DEPENDENCY, IdleCause.OPERATOR)
"""Causes of idle time behind which an empty queue may be, the likeliest first."""
NO_WORKERS: Final = "no workers"
"""Mark of a claim: the training process loads itself."""
_DIRECTIONS: Final = (
    ("to the device", ("htod", "host-to-device", "host to device", "-> device")),
    ("to the host", ("dtoh", "device-to-host", "device to host", "device ->")),
    ("on the device", ("dtod", "device-to-device", "device to device", "device -> device")),
)
"""Direction of a copy -> parts of its name, as profilers write them; the last that fits."""
MARKS: Final = (NO_WORKERS, *(name for name, _ in _DIRECTIONS))
"""Marks of the claims of this family."""
_NO_WORKERS: Final = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _loading(evidence: Evidence) -> Iterator[Claim]:
    losses = {}
    for rank, row in evidence.ranks.items():
        # where it is not known when the device idles, all of the loading may be lost
        ns = row.data_loading_ns if row.data_loading_idle_ns is None else row.data_loading_idle_ns
        losses[rank] = ns or 0.0
    rank, lost = find_rank_with_most(losses)
    empty = evidence.counters.get(EMPTY_QUEUE, 0.0) / 100
    if not lost and empty:
        yield from _empty_queue(evidence, empty)
    if lost:
        row = evidence.ranks[rank]
        is_idle = row.data_loading_idle_ns is not None
        numbers = [Number("data loading", row.data_loading_ns or 0.0)]
        # a timer beside the trace measured other steps: its share is that of its own step
        batch_ms = evidence.counters.get(TIMER_BATCH)
        whole_ns = None if batch_ms is None or is_idle else batch_ms * NS_PER_MS
        if whole_ns:
            numbers.append(Number("of the step by the timer", whole_ns))
        if is_idle:
            numbers.append(Number("of it with an idle device", lost))
        marks: tuple[str, ...] = ()
        if any(evidence.op_calls(one, (_NO_WORKERS,)) for one in evidence.studied):
            marks = (NO_WORKERS,)
            numbers.append(Number("workers", "none, the training process loads itself", "text"))
        title = "" if is_idle else "the step waits for data"
        yield Claim(resource="loading", rank=rank, ns=lost, numbers=tuple(numbers), title=title,
                    whole_ns=whole_ns, marks=marks)  # fmt: skip


def _empty_queue(evidence: Evidence, empty: float) -> Iterator[Claim]:
    """The idle time in which the queue to the device may have been empty: at most the share of time that it is."""
    rank, idle = find_rank_with_most({rank: row.idle_ns or 0.0 for rank, row in evidence.ranks.items()})
    ns = min(idle, empty * evidence.step_ns)
    if ns:
        causes = _MAY_BE_DATA if evidence.says_why_idle else ()
        numbers = (Number("the queue to the device is empty", empty, "share"), Number("idle", idle))
        yield Claim(resource="idle", rank=rank, ns=ns, causes=causes, numbers=numbers)


def _gaps_on_host(evidence: Evidence, rank: int, pieces: Sequence[WorkPiece]) -> Iterator[Claim]:
    row = evidence.ranks[rank]
    free = (row.idle_ns or 0.0) - (row.data_loading_ns or 0.0)
    if not evidence.is_device and free > 0:
        yield Claim(resource="rank", ns=free, numbers=(Number("no operator runs", free),))


def _pageable(evidence: Evidence, rank: int, pieces: Sequence[WorkPiece]) -> Iterator[Claim]:
    exposed = evidence.ranks[rank].exposed_copy_ns or 0.0
    copies = [
        piece for piece in evidence.pieces
        if piece.rank == rank and piece.kind == "copy" and "pageable -> device" in piece.name.lower()
    ]  # fmt: skip
    # where nothing marks the steps, most are those of the set-up of the model
    if copies and evidence.has_markers and exposed:
        ns, moved = sum(piece.ns for piece in copies), sum(piece.bytes for piece in copies)
        numbers = (Number("moved", moved, "bytes"), Number("rate", moved / ns, "gb_per_s")) if moved else ()
        yield Claim(resource="copies", cells=share_of(copies), ns=min(ns, exposed), numbers=numbers)


def _copies(evidence: Evidence) -> Iterator[Claim]:
    """The exposed copies of the rank that has most, whatever their memory."""
    rank, ns = find_rank_with_most({rank: row.exposed_copy_ns or 0.0 for rank, row in evidence.ranks.items()})
    if not ns:
        return
    times: dict[str, float] = {}
    for piece in evidence.pieces:
        if piece.rank == rank and piece.kind == "copy":
            direction = _direction_of(piece.name)
            times[direction] = times.get(direction, 0.0) + piece.ns
    named = sorted(((own_ns, name) for name, own_ns in times.items() if name), reverse=True)
    numbers = [Number("exposed", ns), *(Number(f"copies {name}, hidden or not,", own_ns) for own_ns, name in named)]
    most = tuple(name for own_ns, name in named if own_ns >= ns / 2)
    yield Claim(resource="copies", rank=rank, ns=ns, numbers=tuple(numbers), marks=most)


def _direction_of(name: str) -> str:
    """Return in which direction a kernel copies, "" where its name does not say it."""
    found = ""
    for direction, parts in _DIRECTIONS:
        if any(part in name.lower() for part in parts):
            found = direction
    return found


RULES: Final = (
    AdviceRule(
        id="I1", title="the device waits for data",
        fires="the device idles in data loading; where that is not known, the step has data loading, or the queue to "
            "the device is empty",
        bound="exposed", confidence="certain",
        remedies=(
            Remedy("num_workers above 0 in the DataLoader, so that it loads beside the steps; persistent_workers",
                   ("torch",), needs=(NO_WORKERS,)),
            Remedy("raise num_workers (up to 16, then make preprocessing faster), prefetch_factor, persistent_workers",
                   ("torch",), needs=(DATA_LOADER,), unless=(NO_WORKERS,)),
            Remedy("raise num_workers (up to 16, then make preprocessing faster), use_shared_memory=True",
                   ("paddle",)),
            Remedy("num_parallel_workers, and autotune of the dataset", ("mindspore",)),
            Remedy("load the next batch beside the step, in processes or a thread of its own (num_workers of a "
                   "DataLoader), and make preprocessing faster", is_last=True),
        ),
        sources=("Paddle: guide to model performance, 1.1", "torch_tb_profiler", "xprof input pipeline analyzer"),
        in_run=_loading,
    ),
    AdviceRule(
        id="I3", title="no operator runs for a part of the step",
        fires="a host timeline has time outside all operators, data loading aside; shown from 5 % of the step",
        bound="exposed", confidence="likely", shown_from=_GAPS,
        remedies=(
            Remedy("look at the Python code between operators: the loader, logging, metrics, copies of batches"),
            Remedy("record with_stack=True once: the stacks around the gap name the line",
                   sources=("torch_profiler", "ascend"), unless=(STACKS,)),
        ),
        sources=("HolisticTraceAnalysis, idle time",), in_rank=_gaps_on_host,
    ),
    AdviceRule(
        id="I4", title="copies to the device from pageable memory",
        fires="kernels `Pageable -> Device` in marked steps that have exposed copies",
        bound="exposed", confidence="certain", on_devices=True,
        remedies=(
            Remedy("pin_memory=True in the DataLoader, non_blocking=True in .to(): copies then run beside compute",
                   ("torch",), needs=(DATA_LOADER,)),
            Remedy("pin_memory() of the tensors, non_blocking=True in .to(): copies then run beside compute",
                   ("torch",), unless=(DATA_LOADER,)),
            Remedy("pin_memory() of the batches, and copies that do not block", ("paddle",)),
            Remedy("copy from pinned memory, asynchronously", is_last=True),
        ),
        sources=("Nsight Systems, expert rule cuda_memcpy_async", "torch: pinned memory"), in_rank=_pageable,
    ),
    AdviceRule(
        id="I5", title="copies that nothing runs beside",
        fires="the device copies while nothing else runs, whatever the memory",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("copy the next batch while this one is computed: a stream of its own, from pinned memory",
                   needs=("to the device",)),
            Remedy("read fewer values, every n steps, into pinned memory without waiting", needs=("to the host",)),
            Remedy("fewer copies of tensors on the device: clone, contiguous(), copies between views",
                   needs=("on the device",)),
            Remedy("issue them earlier, on a stream of their own, or do without them", is_last=True),
        ),
        sources=("Nsight Systems, expert rule cuda_memcpy_sync", "CUDA: best practices, asynchronous transfers"),
        in_run=_copies,
    ),
)  # fmt: skip
