"""How runs were recorded, as far as their captures say; see `tracker.results.recording`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.results.recording import Recording, recording_of
from tracker.store.bulk import fetch
from tracker.store.connect import Store
from tracker.store.queries.answers import Question, answer, as_keys, whole
from tracker.store.sql import statement


class Recorded(Struct, frozen=True):
    """What the captures of a run say of how it was recorded: `said` as in `recording_of`, `settings`: its
    profiler's.
    """

    said: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: tuple[Mapping[str, str], ...] = ()

    @property
    def recording(self) -> Recording:
        """The recording of the run, as far as its captures alone say."""
        return recording_of(self.said, self.settings)

    def with_rows(self, *, shapes: bool | None, memory: bool, modules: bool) -> Recording:
        """The recording of the run, with what its rows show; see `recording_of`."""
        return recording_of(self.said, self.settings, has_shapes=shapes, has_memory=memory, has_modules=modules)


@Question
def recordings(store: Store, run_ids: Sequence[int]) -> Columns:
    """What the captures of runs say of how they were recorded. Columns: see sql/recordings.sql."""
    return answer(store, "recordings", {"ids": as_keys(whole(run_ids))})


def recorded(connection: Connection, run_ids: Iterable[int]) -> dict[int, Recorded]:
    """Run -> what its captures say of how it was recorded."""
    asked = list(dict.fromkeys(run_ids))
    rows = fetch(connection.execute(statement("recordings"), {"ids": as_keys(asked)})) if asked else ()
    return recorded_of(rows, asked)


def recorded_of(rows: Iterable[Sequence[Any]], run_ids: Iterable[int]) -> dict[int, Recorded]:
    """The same, from the rows of `recordings`."""
    found: dict[int, list[Sequence[Any]]] = {}
    for run_id, *words in rows:
        found.setdefault(run_id, []).append(words)
    known: dict[tuple[tuple[Any, ...], ...], Recorded] = {}
    runs = {}
    for run_id in run_ids:
        said = tuple(map(tuple, found.get(run_id, ())))
        if said not in known:
            known[said] = _recorded(said)
        runs[run_id] = known[said]
    return runs


def _recorded(rows: Sequence[Sequence[Any]]) -> Recorded:
    """From the rows of one run, without its number."""
    if not rows:
        return Recorded()
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
