"""Windows of dynamic profiling: the steps that a folder is named after are those of the run.

The profiler counts inside of each window from its own start, so that steps 8 to 10 of a run stand there as 1 to 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.profile import I64, MISSING, NO_STEP, Events
from tracker.profile.step_windows import Window, window_in_path
from tracker.units import ranges

_LISTED: Final = 10


def window_of(path: Path) -> Window | None:
    """Return the window that the folder of a capture is named after, None for another name.

    A SourceError for a name whose last step is before its first.
    """
    window = window_in_path(str(path.resolve()))
    if window is not None and window.last < window.first:
        raise SourceError(
            path,
            window.name,
            f"by its name the window stops at step {window.last}, before it starts at step {window.first}",
            remedy="name the folder rankN_startA_stopB after the first and the last step, or give it another name",
        )
    return window


def number_steps_by_window(events: Events, window: Window | None) -> tuple[Events, tuple[str, ...]]:
    """Return the events with the step numbers of the run, and what to know of them.

    Numbers within the window are those of the run already; others are moved so that the first one is that of the
    window. Events that name no step stay as they are, and so do all of a capture in no window.
    """
    if window is None:
        return events, ()
    inside = _steps_inside(events)
    if not inside:
        if window.first == window.last:
            return events, (f"no event names a step: the one step here is step {window.first} of the run",)
        return events, (
            f"no event names a step: steps {window.first}-{window.last} of the run are one step here; call step() of "
            "DynamicProfilerMonitor behind each step",
        )
    is_of_run = window.first <= inside[0] and inside[-1] <= window.last
    shift = 0 if is_of_run else window.first - inside[0]
    found = [step + shift for step in inside]
    return _shift_steps(events, shift), tuple(filter(None, [_note_on_steps(window, found)]))


def _note_on_steps(window: Window, found: Sequence[int]) -> str:
    """Return what to know of a capture that does not hold the steps of its window; "" where it does."""
    if (found[0], len(found)) == (window.first, window.steps):
        return ""
    return (
        f"{window.name} holds steps {ranges(found, _LISTED)}: {len(found)} of the {window.steps} that it is named after"
    )


def _steps_inside(events: Events) -> list[int]:
    """Return the numbers of the steps as the profiler counted them, in order: of the markers, else of the device."""
    for column in (events.markers.step, events.device.step, events.extras.step_times.step):
        numbers = np.unique(column[_is_step(column)])
        if len(numbers):
            return [int(number) for number in numbers]
    return []


def _shift_steps(events: Events, shift: int) -> Events:
    if not shift:
        return events
    extras = events.extras
    return replace(
        events,
        markers=replace(events.markers, step=_shifted(events.markers.step, shift)),
        device=replace(events.device, step=_shifted(events.device.step, shift)),
        extras=replace(
            extras,
            counters=replace(extras.counters, step=_shifted(extras.counters.step, shift)),
            step_times=replace(extras.step_times, step=_shifted(extras.step_times.step, shift)),
            step_names={step + shift: name for step, name in extras.step_names.items()},
        ),
    )


def _shifted(column: I64, shift: int) -> I64:
    moved: I64 = np.where(_is_step(column), column + shift, column)
    return moved


def _is_step(column: I64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    is_step: np.ndarray[tuple[int], np.dtype[np.bool_]] = (column != MISSING) & (column != NO_STEP)
    return is_step
