"""How runs were recorded, as far as their captures say; see `tracker.results.recording`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field, json
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.results.recording import Recording, recording_of
from tracker.store.bulk import as_keys, fetch
from tracker.store.connect import Store
from tracker.store.queries.answers import answer, whole
from tracker.store.sql import statement


class Recorded(Struct, frozen=True):
    """What the captures of a run say of how it was recorded: `said` as in `recording_of`, `settings`: its
    profiler's.
    """

    said: dict[str, tuple[str, ...]] = field(default_factory=dict)
    settings: tuple[dict[str, str], ...] = ()

    @property
    def timeline(self) -> str:
        """Device where any of its ranks has one, else host."""
        return next(iter(self.said.get("timeline", ())), "host")

    @property
    def recording(self) -> Recording:
        """The recording of the run, as far as its captures alone say."""
        return recording_of(self.said, self.settings)

    def with_rows(self, *, shapes: bool | None, memory: bool, modules: bool) -> Recording:
        """The recording of the run, with what its rows show; see `recording_of`."""
        return recording_of(self.said, self.settings, has_shapes=shapes, has_memory=memory, has_modules=modules)


def recordings(store: Store, run_ids: Sequence[int]) -> Columns:
    """What the captures of runs say of how they were recorded. Columns: see sql/recordings.sql."""
    return answer(store, "recordings", {"ids": as_keys(whole(run_ids))})


def recorded(connection: Connection, run_ids: Iterable[int]) -> dict[int, Recorded]:
    """Run -> what its captures say of how it was recorded."""
    asked = list(dict.fromkeys(run_ids))
    rows = fetch(connection.execute(statement("recordings"), {"ids": as_keys(asked)})) if asked else ()
    return recorded_of(rows, asked)


def contents(connection: Connection, recording_ids: Iterable[int]) -> dict[int, Recorded]:
    """What these recordings say, by number."""
    asked = sorted(set(recording_ids))
    rows = connection.execute(statement("recording_contents"), {"ids": as_keys(asked)}).all() if asked else ()
    return {number: content_of(content) for number, content in rows}


def recorded_of(rows: Iterable[Sequence[Any]], run_ids: Iterable[int]) -> dict[int, Recorded]:
    """The same, from the rows of `recordings`."""
    found: dict[int, str | None] = dict(map(tuple, rows))
    known = {content: content_of(content) for content in {None, *found.values()}}
    return {run_id: known[found.get(run_id)] for run_id in run_ids}


def as_content(recorded: Recorded) -> str:
    """What is kept of it in the table `recording`: equal for equal ones."""
    return json.encode(recorded, order="sorted").decode()


def content_of(content: str | None) -> Recorded:
    """What `as_content` gave; nothing is said where None is kept.

    >>> content_of(as_content(Recorded({"timeline": ("device",)}))).said
    {'timeline': ('device',)}
    """
    return Recorded() if content is None else json.decode(content, type=Recorded)
