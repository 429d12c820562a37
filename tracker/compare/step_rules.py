"""Runs whose steps were cut by an earlier rule: what the host marked, not when the device works on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import Column
from tracker.profile import STEP_SETTING
from tracker.units import format_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracker.columns import Columns
    from tracker.compare.sides import Loaded

_OF_STEPS: Final = (
    "duration_ns", "marker_ns", "whole_ns", "compute_ns", "communication_ns", "overlap_ns", "exposed_communication_ns",
    "copy_ns", "exposed_copy_ns", "idle_ns", "data_loading_ns", "data_loading_idle_ns",
    "host_idle_ns",
)  # fmt: skip
"""Numbers of a step that depend on when it begins and ends."""
_REMEDY: Final = "tracker ingest --again reads their files again"


def leave_out_older_steps(captures: Columns, steps: Columns) -> tuple[Columns, tuple[str, ...]]:
    """Return `steps` without the times of runs that an earlier rule cut, where other runs of the side follow the rule
    of today, and a sentence that says so. Runs that all follow one rule stay as they are.
    """
    older = _older_runs(captures)
    if not older or len(older) == len(set(captures.listed("run_id"))):
        return steps, ()
    is_older = np.isin(steps.integers("run_id"), sorted(older))
    masked = {name: Column(steps.integers(name), ~steps.known(name) | is_older) for name in _OF_STEPS}
    return steps.having(**masked), (f"{_named(older)} read by an earlier step definition: no steps; {_REMEDY}.",)


def note_on_older_steps(side: Loaded) -> tuple[str, ...]:
    """Return a sentence where all runs of the side were cut by the earlier rule: their parts are not of the step."""
    older = _older_runs(side.captures) if side.has_markers else set()
    if len(older) < len(side.run_ids):
        return ()
    return (
        f"{_named(older)} read by an earlier step definition: a step is what the host marked, its parts are the work "
        f"that it launched; {_REMEDY}.",
    )


def _older_runs(captures: Columns) -> set[int]:
    """Return the runs on a device of which no capture states the rule of today."""
    on_device, current = set(), set()
    for run_id, timeline, settings in captures.rows("run_id", "timeline", "settings"):
        if timeline == "device":
            on_device.add(run_id)
        if STEP_SETTING in json.loads(settings or "{}"):
            current.add(run_id)
    return on_device - current


def _named(run_ids: Iterable[int]) -> str:
    numbers = sorted(run_ids)
    return f"run {format_numbers(numbers)} {'was' if len(numbers) == 1 else 'were'}"
