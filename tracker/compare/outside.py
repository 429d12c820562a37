"""Work of the device that no step launched: before the first marker, after the last one, or between two; and steps
without work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracker.units import counted, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.compare.sides import Loaded

_KERNELS: Final = ("kernel_total_ns",)
_ALL_WORK: Final = ("compute_total_ns", "communication_total_ns", "copy_total_ns")
_WORTH_SAYING: Final = 0.01
"""Share of the work of the device: a kernel or two at the edges of a capture are no matter."""


def kernel_time_outside_steps(side: Loaded) -> dict[int, float]:
    """Return for each run the kernel time of no step, in ns, as the mean over its ranks.

    Of the ranks that state both the whole and all their steps; a run without any is left out.
    """
    return {run_id: outside for run_id, (outside, _) in _time_outside_steps(side, _KERNELS).items()}


def note_on_outside_work(side: Loaded) -> tuple[str, ...]:
    """Return a sentence where a part of the work of the device was launched outside all steps, of the run with most."""
    if not side.has_markers or side.is_part:
        return ()
    times = {}
    for run_id, (outside, whole) in _time_outside_steps(side, _ALL_WORK).items():
        if outside > _WORTH_SAYING * whole:
            times[run_id] = outside
    if not times:
        return ()
    run_id = max(times, key=lambda number: (times[number], -number))
    of_run = f" of run:{run_id}" if len(side.run_ids) > 1 else ""
    return (
        f"{format_ns(times[run_id])} of device work{of_run} were launched outside all steps: in no table of steps, and "
        "a part of a step only where they run in it.",
    )


def note_on_steps_without_time(side: Loaded) -> tuple[str, ...]:
    """Return a sentence where the device worked on earlier steps during a whole step that launched nothing."""
    has_marker = side.steps.known("marker_ns")
    count = int((has_marker & ~side.steps.known("duration_ns")).sum())
    if not count:
        return ()
    return (
        f"{counted(count, 'step')} launched nothing while the device worked on earlier ones: no time of their own.",
    )


def _time_outside_steps(side: Loaded, columns: Sequence[str]) -> dict[int, tuple[float, float]]:
    """Return for each run what of the sum of `columns` is in no step, and the sum: means over ranks, in ns."""
    inside: dict[tuple[int, int], list[tuple[int | None, int]]] = {}
    for run_id, rank, steps, *values in side.steps.rows("run_id", "rank", "steps", *columns):
        inside.setdefault((run_id, rank), []).append((_sum(values), steps))
    ranks: dict[int, list[tuple[int, int, int]]] = {}
    for run_id, rank, *values in side.captures.rows("run_id", "rank", *columns):
        own, whole = inside.get((run_id, rank)), _sum(values)
        if not own or whole is None:
            continue
        in_steps = [None if ns is None else ns * steps for ns, steps in own]
        known = [ns for ns in in_steps if ns is not None]
        if len(known) < len(in_steps):
            continue
        # the mean of many steps is rounded to whole ns: what that leaves over is nothing outside
        rounding = sum(steps for _, steps in own if steps > 1)
        ranks.setdefault(run_id, []).append((whole - sum(known), whole, rounding))
    found = {}
    for run_id, rows in ranks.items():
        outside, whole, rounding = (sum(column) for column in zip(*rows, strict=True))
        found[run_id] = (0.0 if abs(outside) <= rounding else outside / len(rows), whole / len(rows))
    return found


def _sum(values: Sequence[int | None]) -> int | None:
    """Return the sum, None where any value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
