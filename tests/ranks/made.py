"""Jobs made by hand: what each rank takes alone in each step; it waits for the slowest in a collective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tests.factories import breakdown, capture, record
from tracker.profile import Capture
from tracker.store import Store, save_run

MS = 1_000_000


def rank(
    number: int,
    own_ms: Sequence[float],
    step_ms: Sequence[float],
    *,
    idle_ms: float | Sequence[float] = 0,
    loading_ms: float | Sequence[float] | None = None,
    kernels: Sequence[Any] = (("gemm", 1000),),
    **more: Any,
) -> Capture:
    """A rank that computes for all of its own time but `idle_ms`, and then waits for the end of the step. What is idle
    or loads data may differ from step to step.
    """
    made = capture(number, steps=len(own_ms), ops=[("aten::mm", 1)], kernels=kernels, **more)
    steps = []
    for at, (step, own, whole) in enumerate(zip(made.rows.steps, own_ms, step_ms, strict=True)):
        idle = idle_ms[at] if isinstance(idle_ms, Sequence) else idle_ms
        loading = loading_ms[at] if isinstance(loading_ms, Sequence) else loading_ms
        numbers = breakdown(
            duration_ns=int(whole * MS), e2e_ns=int(whole * MS), compute_ns=int((own - idle) * MS),
            communication_ns=int((whole - own) * MS), exposed_communication_ns=int((whole - own) * MS), overlap_ns=0,
            copy_ns=0, exposed_copy_ns=0, idle_ns=int(idle * MS),
            data_loading_ns=None if loading is None else int(loading * MS),
        )  # fmt: skip
        steps.append(replace(step, breakdown=numbers))
    return replace(made, rows=replace(made.rows, steps=tuple(steps)))


def job(store: Store, own_ms: Mapping[int, Sequence[float]], of: Mapping[int, Mapping[str, Any]] | None = None, *,
        shuffled: bool = False, of_run: Mapping[str, Any] | None = None, **more: Any) -> str:  # fmt: skip
    """Save a run of these ranks, and return its reference. `of`: what else `rank` takes of each; `shuffled`: the last
    rank comes first.
    """
    steps = [max(times) for times in zip(*own_ms.values(), strict=True)]
    captures = [
        rank(number, times, steps, **{"world_size": len(own_ms), **more, **(of or {}).get(number, {})})
        for number, times in own_ms.items()
    ]
    saved = save_run(
        store, record(**(of_run or {})), captures[::-1] if shuffled else captures, formats=["torch_profiler"]
    )
    return f"run:{saved.run_id}"
