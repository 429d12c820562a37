"""Data and copies that the device waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy, share_of
from tracker.profile import EMPTY_QUEUE, TIMER_BATCH, IdleCause
from tracker.units import NS_PER_MS

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence, WorkPiece

_GAPS: Final = 0.05
"""Of the step of a host: Python between operators takes as much in any loop."""
_MAY_BE_DATA: Final = (IdleCause.UNKNOWN, IdleCause.NO_OPERATOR, IdleCause.DEPENDENCY, IdleCause.OPERATOR)
"""Causes of idle time behind which an empty queue may be, the likeliest first."""
_NO_WORKERS: Final = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _loading(evidence: Evidence) -> Iterator[Claim]:
    found = [
        (row["data_loading_ns" if row["data_loading_idle_ns"] is None else "data_loading_idle_ns"] or 0.0, -rank)
        for rank, row in evidence.ranks.items()
    ]
    lost, rank = max(found)
    empty = evidence.counters.get(EMPTY_QUEUE, 0.0) / 100
    if not lost and empty:
        yield from _empty_queue(evidence, empty)
    if lost:
        row = evidence.ranks[-rank]
        is_idle = row["data_loading_idle_ns"] is not None
        numbers = [Number("data loading", row["data_loading_ns"])]
        # a timer beside the trace measured other steps: its share is that of its own step
        batch_ms = evidence.counters.get(TIMER_BATCH)
        whole_ns = None if batch_ms is None or is_idle else batch_ms * NS_PER_MS
        numbers += [Number("of the step by the timer", whole_ns)] if whole_ns else []
        numbers += [Number("of it with an idle device", lost)] if is_idle else []
        if any(evidence.op_calls(one, (_NO_WORKERS,)) for one in evidence.studied):
            numbers.append(Number("workers", "none, the training process loads itself", "text"))
        title = "" if is_idle else "the step waits for data"
        yield Claim(resource="loading", rank=-rank, ns=lost, numbers=tuple(numbers), title=title,
                    whole_ns=whole_ns)  # fmt: skip


def _empty_queue(evidence: Evidence, empty: float) -> Iterator[Claim]:
    """The idle time in which the queue to the device may have been empty: at most the share of time that it is."""
    idle, rank = max(((row["idle_ns"] or 0.0, -rank) for rank, row in evidence.ranks.items()), default=(0.0, 0))
    ns = min(idle, empty * evidence.step_ns)
    if ns:
        causes = _MAY_BE_DATA if evidence.says_why_idle else ()
        numbers = (Number("the queue to the device is empty", empty, "share"), Number("idle", idle))
        yield Claim(resource="idle", rank=-rank, ns=ns, causes=causes, numbers=numbers)


def _gaps_on_host(evidence: Evidence, rank: int, pieces: Sequence[WorkPiece]) -> Iterator[Claim]:
    row = evidence.ranks[rank]
    free = (row["idle_ns"] or 0.0) - (row["data_loading_ns"] or 0.0)
    if not evidence.is_device and free > 0:
        yield Claim(resource="rank", ns=free, numbers=(Number("no operator runs", free),))


def _pageable(evidence: Evidence, rank: int, pieces: Sequence[WorkPiece]) -> Iterator[Claim]:
    exposed = evidence.ranks[rank]["exposed_copy_ns"] or 0.0
    copies = [
        piece for piece in evidence.pieces
        if piece.rank == rank and piece.kind == "copy" and "pageable -> device" in piece.name.lower()
    ]  # fmt: skip
    # where nothing marks the steps, most are those of the set-up of the model
    if copies and evidence.has_markers and exposed:
        ns, moved = sum(piece.ns for piece in copies), sum(piece.bytes for piece in copies)
        numbers = (Number("moved", moved, "bytes"), Number("rate", moved / ns, "gb_per_s")) if moved else ()
        yield Claim(resource="copies", cells=share_of(copies), ns=min(ns, exposed), numbers=numbers)


RULES: Final = (
    AdviceRule(
        id="I1", title="the device waits for data",
        fires="the device idles in data loading; where that is not known, the step has data loading, or the queue to "
            "the device is empty",
        bound="exposed", confidence="certain",
        remedies=(
            Remedy("raise num_workers (up to 16, then make preprocessing faster), prefetch_factor, persistent_workers",
                   ("torch",)),
            Remedy("raise num_workers (up to 16, then make preprocessing faster), use_shared_memory=True",
                   ("paddle",)),
            Remedy("num_parallel_workers, and autotune of the dataset", ("mindspore",)),
            Remedy("keep the cores of the workers apart from those of the operators", ("cpu", "ascend")),
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
            Remedy("record with_stack=True once: the stacks around the gap name the line", ("torch",)),
        ),
        sources=("HolisticTraceAnalysis, idle time",), in_rank=_gaps_on_host,
    ),
    AdviceRule(
        id="I4", title="copies to the device from pageable memory",
        fires="kernels `Pageable -> Device` in marked steps that have exposed copies",
        bound="exposed", confidence="certain", on_devices=True,
        remedies=(
            Remedy("pin_memory=True in the DataLoader, non_blocking=True in .to(): copies then run beside compute",
                   ("torch",)),
            Remedy("pin_memory() of the batches, and copies that do not block", ("paddle",)),
        ),
        sources=("Nsight Systems, expert rule cuda_memcpy_async", "torch: pinned memory"), in_rank=_pageable,
    ),
)  # fmt: skip
