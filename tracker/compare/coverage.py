"""Which runs and ranks of a side report a table or a metric, and whose steps were cut by an earlier rule."""

from __future__ import annotations

import json
from itertools import compress
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Column, Columns
from tracker.compare.side import Rank, keep_ranks, ranks_of
from tracker.profile import STEP_RULES, STEP_SETTING
from tracker.results import recording
from tracker.results.recording import EARLIER_IDLE_RULES
from tracker.schema.column_names import RANK, RUN_ID, SETTINGS, STEP, STEPS, TIMELINE
from tracker.store import queries
from tracker.units import format_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracker.compare.side import LoadedSide


TIMES: Final = "compute_ns"
"""Known where the timeline of a rank is: its kernels and ops, and all parts of its steps."""
COLLECTIVES: Final = "communication_total_ns"
OPS: Final = "has_ops"
KERNELS: Final = "has_kernels"
MEMORY: Final = "has_memory"
API: Final = "has_api"
_TABLES: Final = (OPS, KERNELS, MEMORY, API)
_RANK: Final = (RUN_ID, RANK)

_OF_STEPS: Final = (
    "duration_ns", "marker_ns", "whole_ns", "compute_ns", "communication_ns", "overlap_ns", "exposed_communication_ns",
    "copy_ns", "exposed_copy_ns", "idle_ns", "data_loading_ns", "data_loading_idle_ns",
    "host_idle_ns",
)  # fmt: skip
"""Numbers of a step that depend on when it begins and ends."""
_REMEDY: Final = "tracker ingest --again reads their files again"


def ranks_that_report(side: LoadedSide, metric: str) -> Columns:
    """Return the captures of the ranks of `side` whose steps report a `metric` of the breakdown, or which have none and
    report it as a whole.
    """
    captures, steps = ranks_of(side.captures), ranks_of(side.steps)
    without_steps = set(compress(captures, side.captures.known(metric))) - set(steps)
    having = set(compress(steps, side.steps.known(metric))) | without_steps
    return side.captures.taken(keep_ranks(captures, having))


def blank_unless_both(baseline: LoadedSide, candidate: LoadedSide, table: str) -> tuple[LoadedSide, LoadedSide]:
    """Return the two sides, without anything where only one has `table` at all: what one source reports and the other
    does not was neither added nor removed.
    """
    if reports_table(baseline, table) == reports_table(candidate, table):
        return baseline, candidate
    return _blank(baseline), _blank(candidate)


def reports_table(side: LoadedSide, table: str) -> bool:
    """Return whether any rank of `side` knows its `table`: OPS, KERNELS, MEMORY, API, or COLLECTIVES."""
    if table in _TABLES:
        return bool(_with_table(side, table))
    return bool(side.captures.known(table).any())


def _with_table(side: LoadedSide, table: str) -> set[Rank]:
    """Return the ranks of `side` that have `table`."""

    def having() -> set[Rank]:
        filled = side.filled_tables()
        return set(compress(ranks_of(filled), filled.integers(table) == 1)) & set(ranks_of(side.captures))

    return side.remember(table, having)


def _blank(side: LoadedSide) -> LoadedSide:
    """Return `side` as if nothing had been asked of any of its ranks."""
    return replace(side, captures=side.captures.head(0), is_selection=True, cache={})


def with_step_counts(captures: Columns, steps: Columns) -> Columns:
    """Return `captures` with the number of steps that the rows of `steps` stand for."""
    counted: dict[Rank, int] = {}
    for run_id, rank, number in steps.rows(*_RANK, STEPS):
        counted[run_id, rank] = counted.get((run_id, rank), 0) + number
    return captures.having(steps=Column.of([counted.get(rank, 0) for rank in ranks_of(captures)], np.int64))


def ranks_without(captures: Columns, others: Columns) -> dict[int, list[int]]:
    """Return run_id -> the ranks of `captures` that are not among the `others`."""
    found: dict[int, list[int]] = {}
    for run_id, rank in sorted(set(ranks_of(captures)) - set(ranks_of(others))):
        found.setdefault(run_id, []).append(rank)
    return found


def leave_out_older_steps(captures: Columns, steps: Columns) -> tuple[Columns, tuple[str, ...]]:
    """Return `steps` without the times of runs that an earlier rule cut, where other runs of the side follow the rule
    of today, and a sentence that says so. Runs that all follow one rule stay as they are.
    """
    older = _older_runs(captures, steps)
    if not older or len(older) == len(set(captures.listed(RUN_ID))):
        return steps, ()
    is_older = np.isin(steps.integers(RUN_ID), sorted(older))
    masked = {name: Column(steps.integers(name), ~steps.known(name) | is_older) for name in _OF_STEPS}
    return steps.having(**masked), (f"{_name_runs(older)} read by an earlier step definition: no steps; {_REMEDY}.",)


def note_on_older_steps(side: LoadedSide) -> tuple[str, ...]:
    """Return a sentence where all runs of the side were cut by the earlier rule: their parts are not of the step."""
    older = _older_runs(side.captures, side.steps)
    if len(older) < len(side.run_ids):
        return ()
    return (
        f"{_name_runs(older)} read by an earlier step definition: a step is what the host marked, its parts are the "
        f"work that it launched; {_REMEDY}.",
    )


def find_idle_rules(sides: Iterable[LoadedSide]) -> set[str]:
    """Return the rules by which the runs of the sides say why their devices idle."""
    found = set()
    for side in sides:
        for settings in dict.fromkeys(side.captures.listed(SETTINGS)):
            rules = recording.find_idle_rules(json.loads(settings or "{}"))
            if rules is not None:
                found.add(rules)
    return found


def note_on_idle_rules(sides: Iterable[LoadedSide]) -> tuple[str, ...]:
    """Return a sentence where a side itself has runs of several rules: between two sides the recordings say it."""
    if all(len(find_idle_rules([side])) < 2 for side in sides):
        return ()
    return (f"Some runs were read by other rules on idle time and loaders: its causes are not compared; {_REMEDY}.",)


def note_on_earlier_idle_rules(side: LoadedSide) -> tuple[str, ...]:
    """Return a sentence where an earlier tracker named why the device idles: it blamed waits for what follows them."""
    if EARLIER_IDLE_RULES not in find_idle_rules([side]) or side.is_empty(queries.idle):
        return ()
    return (
        f"Why the device idles is by earlier rules, which count what follows a wait as synchronisation; {_REMEDY}.",
    )


def _older_runs(captures: Columns, steps: Columns) -> set[int]:
    """Return the runs on a device with step markers of which no capture states the rule of today."""
    # a capture without markers is one step, 0
    is_marked = {run_id for run_id, step in steps.rows(RUN_ID, STEP) if step != 0}
    on_device, current = set(), set()
    for run_id, timeline, settings in captures.rows(RUN_ID, TIMELINE, SETTINGS):
        if timeline == "device" and run_id in is_marked:
            on_device.add(run_id)
        if json.loads(settings or "{}").get(STEP_SETTING) == STEP_RULES:
            current.add(run_id)
    return on_device - current


def _name_runs(run_ids: Iterable[int]) -> str:
    numbers = sorted(run_ids)
    return f"run {format_numbers(numbers)} {'was' if len(numbers) == 1 else 'were'}"
