"""Which of the runs that come in are documents of others, as the timer log beside a trace is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracker.intake.pieces import Piece
from tracker.profile import documents
from tracker.profile.documents import Execution
from tracker.schema.series import way_of

Run = Sequence[Piece]


def find_documents(runs: Sequence[Run]) -> dict[int, int]:
    """Return the places of runs that are documents of another one, each with the place of that one."""
    return documents.find_documents([_execution_of(run) for run in runs])


def leave_out_documents(runs: Sequence[Run]) -> list[Piece]:
    """Return the captures of the runs that are no documents of others."""
    found = find_documents(runs)
    return [piece for place, run in enumerate(runs) if place not in found for piece in run]


def _execution_of(run: Run) -> Execution:
    first, told = run[0].capture, run[0].told
    job = {name: value for name, value in first.facts.items() if name == "job_id"}
    named = {name: value for name in ("version", "workload") if (value := getattr(told, name))}
    return Execution(
        folders=frozenset(str(Path(piece.place).parent) for piece in run),
        way=way_of(first.settings.get("profiler", "")),
        says={**first.configuration, **first.labels, **job, **told.configuration, **named},
        times=[piece.capture for piece in run],
    )
