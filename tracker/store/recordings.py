"""How runs were recorded, as far as their captures say; see `tracker.results.recording`.

It is kept with each run, so that thousands of runs are compared without a look at their captures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct, field, json
from sqlalchemy import Connection, text

from tracker.columns import Columns
from tracker.results.recording import Recording, recording_of
from tracker.store.answers import answer, whole
from tracker.store.bulk import as_keys, fetch
from tracker.store.connect import Store
from tracker.store.dimensions import Dimension, ids
from tracker.store.sql import statement

_RECORDING: Final = Dimension("recording", ("content",), digest_bytes=8)
_RUNS: Final = text("SELECT id FROM run ORDER BY id")
_SET_RECORDING: Final = text("UPDATE run SET recording_id = :recording_id WHERE id = :run_id")


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
        """Return the recording of the run, with what its rows show; see `recording_of`."""
        return recording_of(self.said, self.settings, has_shapes=shapes, has_memory=memory, has_modules=modules)


def recordings(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return what the captures of runs say of how they were recorded. Columns: see sql/recordings.sql."""
    return answer(store, "recordings", {"ids": as_keys(whole(run_ids))})


def recorded(connection: Connection, run_ids: Iterable[int]) -> dict[int, Recorded]:
    """Return run -> what its captures say of how it was recorded."""
    asked = list(dict.fromkeys(run_ids))
    rows = fetch(connection.execute(statement("recordings"), {"ids": as_keys(asked)})) if asked else ()
    return recorded_of(rows, asked)


def recorded_by_id(connection: Connection, recording_ids: Iterable[int]) -> dict[int, Recorded]:
    """Return what these recordings say, by number."""
    asked = sorted(set(recording_ids))
    rows = connection.execute(statement("recording_contents"), {"ids": as_keys(asked)}).all() if asked else ()
    return {number: content_of(content) for number, content in rows}


def recorded_of(rows: Iterable[Sequence[Any]], run_ids: Iterable[int]) -> dict[int, Recorded]:
    """Return what the captures of each run say, from the rows that `recordings` gives."""
    found: dict[int, str | None] = dict(map(tuple, rows))
    known = {content: content_of(content) for content in {None, *found.values()}}
    return {run_id: known[found.get(run_id)] for run_id in run_ids}


def as_content(recorded: Recorded) -> str:
    """Return what is kept of it in the table `recording`: equal for equal ones."""
    return json.encode(recorded, order="sorted").decode()


def content_of(content: str | None) -> Recorded:
    """Return what `as_content` gave; nothing is said where None is kept.

    >>> content_of(as_content(Recorded({"timeline": ("device",)}))).said
    {'timeline': ('device',)}
    """
    return Recorded() if content is None else json.decode(content, type=Recorded)


def refresh_recordings(connection: Connection, run_ids: Iterable[int]) -> None:
    """Keep what the captures of these runs now say of how they were recorded, in the open transaction."""
    found = read_contents(connection, run_ids)
    numbers = ids(connection, _RECORDING, {(content,) for content in found.values()})
    changes = [{"run_id": run_id, "recording_id": numbers[(content,)]} for run_id, content in sorted(found.items())]
    if changes:
        connection.execute(_SET_RECORDING, changes)


def list_differing_runs(connection: Connection) -> list[int]:
    """Return the runs of which something else is kept than their captures say, in order."""
    run_ids = list(connection.scalars(_RUNS))
    said, kept = read_contents(connection, run_ids), recorded(connection, run_ids)
    return [run_id for run_id in run_ids if run_id in said and as_content(kept[run_id]) != said[run_id]]


def read_contents(connection: Connection, run_ids: Iterable[int]) -> dict[int, str]:
    """Return run -> what its captures say, as it is kept; without runs that have no captures."""
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
    return Recorded(said, tuple(map(json.decode, settings)))
