"""Device memory that is full, fragmented or growing. No time: what is at stake is the next step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_FULL: Final = 0.9
_FRAGMENTED: Final = 0.2
_RESERVED: Final = 0.3
_GROWS: Final = 0.01
_FEWEST_STEPS: Final = 4
_GIB: Final = 1 << 30


def _full(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    size = _size(evidence)
    peaks = [(row["peak_reserved_bytes"] or row["peak_allocated_bytes"] or 0, row["rank"]) for row in evidence.captures]
    peak, rank = max(peaks, default=(0, 0))
    if size and peak >= _FULL * size:
        yield Claim(resource="none", rank=rank, is_always_shown=True,
                    numbers=(Number("peak", float(peak), "bytes"), Number("of it", peak / size, "share")))  # fmt: skip


def _size(evidence: Evidence) -> float | None:
    return evidence.device.memory_gib * _GIB if evidence.device is not None and evidence.device.memory_gib else None


def _fragmented(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    size = _size(evidence)
    for row in evidence.captures:
        allocated, reserved = row["peak_allocated_bytes"], row["peak_reserved_bytes"]
        if not allocated or not reserved or not size or reserved < _RESERVED * size:
            continue
        if reserved - allocated >= _FRAGMENTED * reserved:
            yield Claim(
                resource="none", rank=row["rank"], is_always_shown=True,
                numbers=(Number("reserved", float(reserved), "bytes"), Number("allocated", float(allocated), "bytes"),
                         Number("not in use", 1 - allocated / reserved, "share")),
            )  # fmt: skip
            return


def _growing(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for rank in sorted(evidence.ranks):
        own = sorted((row["step"], row["peak_allocated_bytes"]) for row in evidence.steps
                     if row["rank"] == rank and row["peak_allocated_bytes"] and row["steps"] == 1)  # fmt: skip
        peaks = [float(peak) for _, peak in own]
        if len(peaks) < _FEWEST_STEPS:
            continue
        grows = all(after >= (1 + _GROWS) * before for before, after in pairwise(peaks))
        # what the first steps keep are states of the optimizer, what the last one keeps ends with it
        kept = [evidence.kept_bytes.get(rank, {}).get(step, 0) for step, _ in own[2:-1]]
        if grows or (kept and max(kept) >= _GROWS * max(peaks)):
            yield Claim(
                resource="none", rank=rank, is_always_shown=True,
                numbers=(Number("peak of the first step", peaks[0], "bytes"),
                         Number("of the last", peaks[-1], "bytes"),
                         Number("kept of one step", float(max(kept, default=0)), "bytes"),
                         Number("steps", float(len(peaks)), "count")),
            )  # fmt: skip
            return


RULES: Final = (
    AdviceRule(
        id="M2", title="device memory is nearly full", fires="the peak is 90 % of the memory of the device",
        bound="bytes", confidence="certain",
        remedies=(Remedy("activation checkpointing; shard parameters and optimizer state; smaller microbatches"),),
        sources=("torch_tb_profiler, memory view",), find=_full,
    ),
    AdviceRule(
        id="M3", title="reserved memory that is not in use",
        fires="at the peak a fifth of what is reserved is not allocated, and 30 % of the device is reserved",
        bound="bytes", confidence="likely",
        remedies=(
            Remedy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; fewer different shapes", ("nvidia", "amd")),
            Remedy("PYTORCH_NPU_ALLOC_CONF=expandable_segments:True; fewer different shapes", ("ascend",)),
        ),
        sources=("torch: CUDA semantics, memory management",), find=_fragmented,
    ),
    AdviceRule(
        id="M4", title="memory grows from step to step",
        fires="of four steps or more each has a peak 1 % above the one before; or memory of 1 % of the peak that a "
            "step between "
        "the second and the last allocated is not freed",
        bound="bytes", confidence="likely",
        remedies=(Remedy("detach the loss before it is kept; drop lists of tensors that outlive the step"),),
        sources=("tests of this project: nightly_gpt v10",), find=_growing,
    ),
)  # fmt: skip
