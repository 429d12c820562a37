"""Keeps with each run how it was recorded, so that thousands of runs are compared without a look at their captures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Connection, text

from tracker.store.bulk import as_keys, fetch
from tracker.store.dimensions import Dimension, ids
from tracker.store.queries.recordings import Recorded, as_content, recorded
from tracker.store.sql import statement

_RECORDING: Final = Dimension("recording", ("content",), digest_bytes=8)
_RUNS: Final = text("SELECT id FROM run ORDER BY id")
_KEEP: Final = text("UPDATE run SET recording_id = :recording_id WHERE id = :run_id")


def refresh(connection: Connection, run_ids: Iterable[int]) -> None:
    """Keep what the captures of these runs now say of how they were recorded, in the open transaction."""
    found = contents(connection, run_ids)
    numbers = ids(connection, _RECORDING, {(content,) for content in found.values()})
    changes = [{"run_id": run_id, "recording_id": numbers[(content,)]} for run_id, content in sorted(found.items())]
    if changes:
        connection.execute(_KEEP, changes)


def differing(connection: Connection) -> list[int]:
    """The runs of which something else is kept than their captures say, in order."""
    run_ids = list(connection.scalars(_RUNS))
    said, kept = contents(connection, run_ids), recorded(connection, run_ids)
    return [run_id for run_id in run_ids if run_id in said and as_content(kept[run_id]) != said[run_id]]


def contents(connection: Connection, run_ids: Iterable[int]) -> dict[int, str]:
    """Run -> what its captures say, as it is kept; without runs that have no captures."""
    rows = fetch(connection.execute(statement("captures_recorded"), {"ids": as_keys(sorted(set(run_ids)))}))
    return {
        run_id: as_content(_recorded([tuple(words) for _, *words in own]))
        for run_id, own in groupby(rows, key=itemgetter(0))
    }


def _recorded(rows: Sequence[tuple[Any, ...]]) -> Recorded:
    """From the rows of one run, without its number."""
    settings, timelines, markers, formats, schemas, rules = (
        [word for word in dict.fromkeys(own) if word is not None] for own in zip(*rows, strict=True)
    )
    # of all captures of a run together, whatever their settings
    words = {
        "format": formats, "rules": map(str, rules), "schema": schemas, "steps": sorted(markers)[:1],
        "timeline": sorted(timelines)[:1],
    }  # fmt: skip
    said = {name: own for name, several in words.items() if (own := tuple(several))}
    return Recorded(said, tuple(map(json.loads, settings)))
