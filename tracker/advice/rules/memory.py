"""Device memory that is full, fragmented or growing. No time: what is at stake is the next step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy
from tracker.advice.rules.host import ALLOCATOR
from tracker.advice.traits import BACKWARD

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_FULL: Final = 0.9
_FRAGMENTED: Final = 0.2
_RESERVED: Final = 0.3
_GROWS: Final = 0.01
_FEWEST_STEPS: Final = 4
_GIB: Final = 1 << 30


def _full(evidence: Evidence) -> Iterator[Claim]:
    size = evidence.device.memory_gib if evidence.device is not None else None
    peaks = [(row.peak_reserved_bytes or row.peak_allocated_bytes or 0, row.rank) for row in evidence.captures]
    peak, rank = max(peaks)
    if size and peak >= _FULL * size * _GIB:
        numbers = (Number("peak", float(peak), "bytes"), Number("of the device", peak / size / _GIB, "share"))
        yield Claim(resource="none", rank=rank, numbers=numbers)


def _fragmented(evidence: Evidence) -> Iterator[Claim]:
    size = evidence.device.memory_gib if evidence.device is not None else None
    unused = []
    for row in evidence.captures:
        allocated, reserved = row.peak_allocated_bytes, row.peak_reserved_bytes
        if allocated and reserved and size and reserved >= _RESERVED * size * _GIB:
            unused.append((1 - allocated / reserved, -row.rank, float(reserved), float(allocated)))
    share, negative_rank, reserved_bytes, allocated_bytes = max(unused, default=(0.0, 0, 0.0, 0.0))
    if share >= _FRAGMENTED:
        numbers = (
            Number("reserved", reserved_bytes, "bytes"),
            Number("allocated", allocated_bytes, "bytes"),
            Number("not in use", share, "share"),
        )
        yield Claim(resource="none", rank=-negative_rank, numbers=numbers)


def _growing(evidence: Evidence) -> Iterator[Claim]:
    for rank, rows in sorted(evidence.steps.items()):
        own = sorted((row.step, float(row.peak_allocated_bytes)) for row in rows
                     if row.peak_allocated_bytes and row.steps == 1)  # fmt: skip
        peaks = [peak for _, peak in own]
        if len(peaks) < _FEWEST_STEPS or peaks[-1] < (1 + _GROWS) * peaks[0]:
            continue
        grows = all(after >= (1 + _GROWS) * before for before, after in pairwise(peaks))
        # what the first steps keep are states of the optimizer, what the last one keeps ends with it
        kept = max(evidence.kept_bytes[rank, step] for step, _ in own[2:-1])
        if grows or kept >= _GROWS * max(peaks):
            numbers = [Number("peak of the first step", peaks[0], "bytes"), Number("of the last", peaks[-1], "bytes")]
            numbers += [Number("kept of one step", float(kept), "bytes")] if kept else []
            numbers.append(Number("steps", float(len(peaks)), "count"))
            yield Claim(resource="none", rank=rank, numbers=tuple(numbers))
            return


RULES: Final = (
    AdviceRule(
        id="M2", title="device memory is nearly full", fires="the peak is 90 % of the memory of the device",
        bound="bytes", confidence="certain",
        remedies=(
            Remedy("activation checkpointing; shard parameters and optimizer state; smaller microbatches",
                   needs=(BACKWARD,)),
            Remedy("smaller batches, shorter sequences, or weights in fewer bits", unless=(BACKWARD,)),
        ),
        sources=("torch_tb_profiler, memory view",), in_run=_full,
    ),
    AdviceRule(
        id="M3", title="reserved memory that is not in use",
        fires="at the peak a fifth of what is reserved is not allocated, and 30 % of the device is reserved",
        bound="bytes", confidence="likely",
        remedies=(*ALLOCATOR, Remedy("fewer different shapes")),
        sources=("torch: CUDA semantics, memory management",), in_run=_fragmented,
    ),
    AdviceRule(
        id="M4", title="memory grows from step to step",
        fires="of four steps or more each has a peak 1 % above the one before; or the last is 1 % above the first, and "
            "memory of 1 % of the peak that a step between the second and the last allocated is not freed",
        bound="bytes", confidence="likely",
        remedies=(
            Remedy("detach the loss before it is kept", needs=(BACKWARD,)),
            Remedy("drop lists of tensors that outlive the step"),
        ),
        sources=("tests of this project: nightly_gpt v10",), in_run=_growing,
    ),
)  # fmt: skip
