"""Data and copies that the device waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_LOADING: Final = 0.05
_COPIES: Final = 0.01


def _loading(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    found = [
        (row["data_loading_idle_ns"] if row["data_loading_idle_ns"] is not None else row["data_loading_ns"], rank)
        for rank, row in evidence.ranks.items()
    ]
    idle, rank = max(((ns or 0.0, rank) for ns, rank in found), default=(0.0, 0))
    if evidence.step_ns and idle >= _LOADING * evidence.step_ns:
        row = evidence.ranks[rank]
        numbers = [Number("data loading", row["data_loading_ns"])]
        if row["data_loading_idle_ns"] is not None:
            numbers.append(Number("of it with an idle device", idle))
        if any("_SingleProcessDataLoaderIter" in op["name"] for op in evidence.ops):
            numbers.append(
                Number("workers", "none: _SingleProcessDataLoaderIter loads in the training process", "text")
            )
        yield Claim(resource="loading", rank=rank, ns=idle, numbers=tuple(numbers))


def _gaps_on_host(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    if evidence.is_device:
        return
    for rank in evidence.studied:
        row = evidence.ranks[rank]
        free = (row["idle_ns"] or 0.0) - (row["data_loading_ns"] or 0.0)
        if evidence.step_ns and free >= _LOADING * evidence.step_ns:
            yield Claim(resource="rank", rank=rank, ns=free, numbers=(Number("no operator runs", free),))


def _pageable(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for rank in evidence.studied:
        copies = [
            piece for piece in evidence.pieces
            if piece.rank == rank and piece.kind == "copy" and "pageable -> device" in piece.name.lower()
        ]  # fmt: skip
        exposed, moved, ns = (
            evidence.ranks[rank]["exposed_copy_ns"] or 0.0,
            sum(piece.bytes for piece in copies),
            sum(piece.ns for piece in copies),
        )
        if copies and not evidence.main_range and exposed >= _COPIES * evidence.step_ns:
            yield Claim(
                resource="copies",
                rank=rank,
                ns=min(ns, exposed),
                op=max(copies, key=lambda piece: piece.ns).op,
                numbers=(
                    Number("copies from pageable memory", sum(piece.calls for piece in copies), "count"),
                    Number("their time", ns),
                    *((Number("moved", moved, "bytes"), Number("rate", moved / ns, "gb_per_s")) if moved else ()),
                ),
            )


RULES: Final = (
    AdviceRule(
        id="I1",
        title="the device waits for data",
        fires="the device idles in data loading for 5 % of the step (on a CPU: loading takes as long)",
        bound="exposed",
        confidence="certain",
        remedies=(
            Remedy("raise num_workers (up to 16, then make preprocessing faster), prefetch_factor, persistent_workers"),
            Remedy("use_shared_memory=True in the DataLoader", ("paddle",)),
            Remedy("num_parallel_workers, and autotune of the dataset", ("mindspore",)),
            Remedy("keep the cores of the workers apart from those of the operators", ("cpu", "ascend")),
        ),
        sources=("Paddle: guide to model performance, 1.1", "torch_tb_profiler", "xprof input pipeline analyzer"),
        find=_loading,
    ),
    AdviceRule(
        id="I3",
        title="no operator runs for a part of the step",
        fires="a host timeline shows 5 % of the step outside all operators, data loading aside",
        bound="exposed",
        confidence="likely",
        remedies=(
            Remedy("look at the Python code between operators: the loader, logging, metrics, copies of batches"),
            Remedy("record with_stack=True once: the stacks around the gap name the line", ("torch",)),
        ),
        sources=("HolisticTraceAnalysis, idle time",),
        find=_gaps_on_host,
    ),
    AdviceRule(
        id="I4",
        title="copies to the device from pageable memory",
        fires="kernels `Pageable -> Device` in the steps, and exposed copies of 1 % of the step",
        bound="exposed",
        confidence="certain",
        remedies=(
            Remedy("pin_memory=True in the DataLoader, non_blocking=True in .to(): copies then run beside compute"),
        ),
        sources=("Nsight Systems, expert rule cuda_memcpy_async", "torch: pinned memory"),
        find=_pageable,
    ),
)  # fmt: skip
