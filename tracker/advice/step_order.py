"""The steps of a stored run whose ranks count them otherwise."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from tracker.detect.step_order import Numbers, TimedStep, match_by_order
from tracker.store.sql import statement


def numbers_by_order(connection: Connection, run_id: int, steps: Iterable[tuple[int, int, int, int | None]]) -> Numbers:
    """Return which ranks of a run count their steps otherwise, and the number that each of their steps has elsewhere.

    steps: rank, number, start since the first event of the capture and duration of each.
    """
    found = connection.execute(statement("capture_starts"), {"run_ids": [run_id]})
    starts = {row.rank: row.started_at_ns for row in found}
    ranks: dict[int, list[TimedStep]] = {}
    for rank, step, start_ns, duration_ns in sorted(steps, key=lambda one: (one[0], one[2], one[1])):
        began_ns = starts.get(rank)
        if began_ns is None or duration_ns is None:
            ranks.setdefault(rank, []).append(TimedStep(step))
        else:
            begin_ns = began_ns + start_ns
            ranks.setdefault(rank, []).append(TimedStep(step, begin_ns, begin_ns + duration_ns))
    return match_by_order(ranks)
