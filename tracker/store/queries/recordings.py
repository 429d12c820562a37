"""How runs were recorded, as far as their captures say; see `tracker.results.recording`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.results.recording import Recording, recording_of
from tracker.store import bulk
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
    rows = bulk.fetch(connection.execute(statement("recordings"), {"ids": as_keys(asked)})) if asked else ()
    return recorded_of(rows, asked)


def recorded_of(rows: Iterable[tuple[int, str, str]], run_ids: Iterable[int]) -> dict[int, Recorded]:
    """The same, from the rows (run_id, key, value) of `recordings`. Of runs that say the same it is one object."""
    found: dict[int, dict[str, list[str]]] = {run_id: {} for run_id in run_ids}
    for run_id, name, value in rows:
        found[run_id].setdefault(name, []).append(value)
    same: dict[tuple[object, ...], Recorded] = {}
    runs = {}
    for run_id, said in found.items():
        words = tuple((name, tuple(own)) for name, own in said.items())
        if words not in same:
            texts = said.pop("settings", [])
            same[words] = Recorded({name: tuple(own) for name, own in said.items()}, tuple(map(json.loads, texts)))
        runs[run_id] = same[words]
    return runs
