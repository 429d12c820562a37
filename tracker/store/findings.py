"""What judging made of a track: verdicts and levels per version, findings, incidents; and what users said of findings.

Everything is written within a transaction that the caller opens. Versions are named by their ids; 0 is the level before
the first version.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, text

from tracker.schema.series import SeriesKey
from tracker.store import bulk, labels
from tracker.store.bulk import Column
from tracker.store.sql import statement
from tracker.store.tracks import TRACK_COLUMNS, TrackKey

I64 = NDArray[np.int64]

_OF_TRACK: Final = " AND ".join(f"{name} = :{name}" for name in TRACK_COLUMNS)
_KEY: Final = ("series_id", "direction", "how", "first_version_id")
_RESTS_ON: Final = text(f"SELECT version_id, rests_on FROM judged_version WHERE {_OF_TRACK}")  # noqa: S608 names of above
_LEVELS: Final = text(
    f"SELECT version_id, levels FROM judged_version WHERE {_OF_TRACK} AND version_id IN :version_ids"  # noqa: S608 the same
).bindparams(bindparam("version_ids", expanding=True))
_SET_LEVELS: Final = text(f"UPDATE judged_version SET levels = :levels WHERE {_OF_TRACK} AND version_id = :version_id")  # noqa: S608 the same
_FORGET: Final = tuple(
    text(statement)
    for statement in (
        f"DELETE FROM verdict WHERE version_id = :version_id "  # noqa: S608 the same
        f"AND series_id IN (SELECT id FROM series WHERE {_OF_TRACK})",
        f"DELETE FROM fact WHERE version_id = :version_id "  # noqa: S608 the same
        f"AND series_id IN (SELECT id FROM series WHERE {_OF_TRACK})",
        f"DELETE FROM judged_version WHERE {_OF_TRACK} AND version_id = :version_id",  # noqa: S608 the same
    )
)
_DECIDE: Final = text(
    "UPDATE verdict SET decided = :decided "
    "WHERE version_id = :version_id AND series_id = :series_id AND verdict = 'SUSPECT'"
)


class Levels(Struct, frozen=True):
    """Of a version, per series (ids ascending): the version with which its level began, the version that decided it,
    and the sign of what still waits; as in `TrackState`, by ids of versions.
    """

    series_ids: I64
    levels: I64
    settled: I64
    waits: I64


class JudgedRow(Struct, frozen=True):
    """A row of the table `judged_version` without its levels and its basis."""

    version_id: int
    rests_on: bytes
    runs: str
    base_runs: str
    step_before_ns: float | None
    step_after_ns: float | None
    shared_factor: float | None
    step_verdict: str | None
    net: float
    peak: float
    step_kind: str = ""
    coverage: str | None = None


_JUDGED: Final = text(
    f"SELECT {', '.join(JudgedRow.__struct_fields__)} FROM judged_version WHERE {_OF_TRACK}"  # noqa: S608 the same
)


class StoredFinding(Struct, frozen=True, kw_only=True, gc=False):
    """A finding that is not withdrawn, with the columns of sql/findings.sql."""

    finding_id: int
    incident_id: int
    workload: str
    configuration: str
    vendor: str
    device: str
    workload_id: int
    configuration_id: int
    device_id: int
    series_id: int
    kind: str
    metric: str
    name: str
    input_shapes: str
    part: str
    step_kind: str
    direction: str
    change: str
    base_state: str
    version: str
    version_id: int
    ordinal: int
    decided_version_id: int
    ended_version: str | None
    ended_version_id: int | None
    ended_by_version_id: int | None
    excused: int
    size: float
    q: float | None
    contribution: float
    baseline_value: float | None
    candidate_value: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    baseline_runs: str
    candidate_runs: str
    is_leaf: bool
    step_before_ns: float | None
    step_after_ns: float | None
    operators_ns: float | None
    new_ns: float | None
    gone_ns: float | None
    machine_ns: float | None
    other_operators_ns: float | None
    earlier_ns: float | None
    beside_ns: float | None
    incident_kind: str
    shared_factor: float | None

    @property
    def track_key(self) -> TrackKey:
        """The track that it is of."""
        return TrackKey(self.workload_id, self.configuration_id, self.device_id)


class VersionVerdict(Struct, frozen=True, gc=False):
    """How a series was judged in a version, with the columns of sql/stored_verdicts.sql."""

    kind: str
    metric: str
    name: str
    input_shapes: str
    part: str
    step_kind: str
    verdict: str | None
    reason: str
    change: float | None
    judged_change: float | None
    q: float | None
    contribution: float | None
    detectable: float | None
    level_version_id: int | None
    series_id: int

    @property
    def key(self) -> SeriesKey:
        """What names its series in its track."""
        return SeriesKey(self.kind, self.metric, self.name, self.input_shapes, self.part, self.step_kind)


class FindingRow(Struct, frozen=True):
    """A row of the table `finding` without its number and its track."""

    series_id: int
    direction: str
    how: str
    first_version_id: int
    decided_version_id: int
    reference_level_id: int
    reference_runs: str
    new_runs: str
    size: float
    q: float | None
    contribution: float
    value_before: float | None
    value_after: float | None
    calls_before: float | None
    calls_after: float | None
    is_leaf: bool
    was_faster: bool
    state: str
    ended_version_id: int | None = None
    ended_by_version_id: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes it the same finding when it is found again."""
        return tuple(getattr(self, name) for name in _KEY)


_COLUMNS: Final = FindingRow.__struct_fields__
_FINDINGS: Final = text(f"SELECT {', '.join(_COLUMNS)} FROM finding WHERE {_OF_TRACK} ORDER BY id")  # noqa: S608 the same
_WRITE_FINDING: Final = text(
    f"INSERT INTO finding ({', '.join((*TRACK_COLUMNS, *_COLUMNS))}) "  # noqa: S608 the same
    f"VALUES ({', '.join(f':{name}' for name in (*TRACK_COLUMNS, *_COLUMNS))}) ON CONFLICT ({', '.join(_KEY)}) "
    f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS if name not in _KEY)}"
)


_INCIDENT_IDS: Final = text(f"SELECT first_version_id, id FROM incident WHERE {_OF_TRACK}")  # noqa: S608 the same


class IncidentRow(Struct, frozen=True):
    """A row of the table `incident` without its number and its track: parts of the change of a step, ns."""

    first_version_id: int
    before_ns: float | None
    after_ns: float | None
    operators_ns: float | None = None
    new_ns: float | None = None
    gone_ns: float | None = None
    machine_ns: float | None = None
    other_operators_ns: float | None = None
    earlier_ns: float | None = None
    beside_ns: float | None = None
    step_kind: str = ""


_PARTS: Final = IncidentRow.__struct_fields__
_WRITE_INCIDENT: Final = text(
    f"INSERT INTO incident ({', '.join((*TRACK_COLUMNS, *_PARTS))}) "  # noqa: S608 the same
    f"VALUES ({', '.join(f':{name}' for name in (*TRACK_COLUMNS, *_PARTS))}) "
    f"ON CONFLICT ({', '.join(TRACK_COLUMNS)}, first_version_id) "
    f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _PARTS if name != 'first_version_id')}"
)


Action = Literal["ack", "expect", "mute", "unmute", "invalid", "note", "undo"]


class Word(Struct, frozen=True):
    """What a user says of findings, and why. A mute ends at `until_ns`, or with the first run of `until_version`."""

    action: Action
    who: str
    when_ns: int
    reason: str
    until_ns: int | None = None
    until_version: str | None = None


_SAID: Final = Word.__struct_fields__
_ADD_WORD: Final = text(
    f"INSERT INTO finding_action ({', '.join((*TRACK_COLUMNS, *_KEY, *_SAID))}, newest_version_id) "  # noqa: S608 the same
    f"SELECT {', '.join((*TRACK_COLUMNS, *_KEY))}, {', '.join(f':{name}' for name in _SAID)}, "
    "(SELECT v.id FROM judged_version AS j INNER JOIN version AS v ON j.version_id = v.id "
    f"WHERE {' AND '.join(f'j.{name} = finding.{name}' for name in TRACK_COLUMNS)} "
    "ORDER BY v.ordinal DESC, v.id DESC LIMIT 1) "
    "FROM finding WHERE id = :finding_id"
)


_TAKE_BACK: Final = text(
    f"INSERT INTO finding_action ({', '.join((*TRACK_COLUMNS, *_KEY, *_SAID))}, newest_version_id, undoes_id) "  # noqa: S608 the same
    f"SELECT {', '.join((*TRACK_COLUMNS, *_KEY))}, {', '.join(f':{name}' for name in _SAID)}, newest_version_id, id "
    "FROM finding_action AS a WHERE id = :mark_id "
    "AND NOT EXISTS (SELECT 1 FROM finding_action AS u WHERE u.undoes_id = a.id)"
)


def add_words(connection: Connection, finding_ids: Iterable[int], word: Word) -> None:
    """Keep what a user said of findings."""
    own = asdict(word) | {name: bulk.clean(getattr(word, name)) for name in ("who", "reason")}
    connection.execute(_ADD_WORD, [{"finding_id": number, **own} for number in finding_ids])


def take_back(connection: Connection, mark_id: int, undo: Word) -> bool:
    """Keep that a user took a mark back; False, and nothing is kept, where it was taken back before."""
    own = asdict(undo) | {name: bulk.clean(getattr(undo, name)) for name in ("who", "reason")}
    return connection.execute(_TAKE_BACK, {"mark_id": mark_id, **own}).rowcount == 1


def find_version_judged_after(connection: Connection, track_key: TrackKey, version_id: int) -> str | None:
    """The label of the first version behind `version_id` that was judged in a track; None where none was."""
    asked = {**track_key.parameters, "version_id": version_id}
    label: str | None = connection.execute(statement("judged_after"), asked).scalar()
    return label


def lock_track(connection: Connection, track_key: TrackKey) -> None:
    """Let one transaction at a time judge a track."""
    labels.lock(connection, "judges", *track_key.parameters.values())


def read_rests(connection: Connection, track_key: TrackKey) -> dict[int, bytes]:
    """Return what the judgement of each version that was judged rests on."""
    return {
        version: bytes(digest) for version, digest in bulk.fetch(connection.execute(_RESTS_ON, track_key.parameters))
    }


def read_judged_versions(connection: Connection, track_key: TrackKey) -> dict[int, JudgedRow]:
    """Return how each version of a track came out as a whole, of those that were judged."""
    return {row.version_id: JudgedRow(*row) for row in connection.execute(_JUDGED, track_key.parameters)}


def read_verdicts(
    connection: Connection, track_key: TrackKey, version_id: int, *, kind: str | None = None, verdict: str | None = None
) -> list[VersionVerdict]:
    """Return the verdicts of the series of a version."""
    asked = {**track_key.parameters, "version_id": version_id, "kind": kind, "verdict": verdict}
    return [VersionVerdict(*row) for row in connection.execute(statement("stored_verdicts"), asked)]


def list_findings(connection: Connection, track_key: TrackKey) -> list[StoredFinding]:
    """Return what was found in a track, by number."""
    asked = {"all_findings": 1, "finding_ids": [-1], "workload": None, **track_key.parameters}
    found = [StoredFinding(**row._mapping) for row in connection.execute(statement("findings"), asked)]
    return sorted(found, key=lambda finding: finding.finding_id)


def read_levels(connection: Connection, track_key: TrackKey, version_ids: Sequence[int]) -> dict[int, Levels]:
    """Return the levels of these versions, of those that were judged."""
    asked = {**track_key.parameters, "version_ids": list(version_ids) or [-1]}
    return {row[0]: _unpack_levels(bytes(row[1])) for row in connection.execute(_LEVELS, asked)}


def read_incident_ids(connection: Connection, track_key: TrackKey) -> dict[int, int]:
    """Return the number of each incident of a track, by the version that it began with."""
    rows = connection.execute(_INCIDENT_IDS, track_key.parameters)
    return {row.first_version_id: row.id for row in rows}


def read_findings(connection: Connection, track_key: TrackKey) -> list[FindingRow]:
    """Return all findings of a track, withdrawn ones too, by their numbers."""
    return [FindingRow(*row) for row in bulk.fetch(connection.execute(_FINDINGS, track_key.parameters))]


def forget_versions(connection: Connection, track_key: TrackKey, version_ids: Iterable[int]) -> None:
    """Remove the verdicts, facts and levels of versions; findings stay."""
    for version_id in version_ids:
        for question in _FORGET:
            connection.execute(question, {**track_key.parameters, "version_id": version_id})


def write_version(
    connection: Connection, track_key: TrackKey, row: JudgedRow, basis: str, levels: Levels, verdicts: Sequence[Column],
    facts: Sequence[tuple[int, str, float, float]],
) -> None:  # fmt: skip
    """Add a version that was judged. `basis`: what `row.rests_on` stands for, in words; `verdicts`: columns of the
    table, by ascending series; `facts`: series, what, before, after.
    """
    columns = {**track_key.parameters, **asdict(row), "levels": _pack_levels(levels), "basis": basis}
    bulk.insert(connection, "judged_version", list(columns), [list(columns.values())])
    count = len(verdicts[0].values)
    bulk.load(connection, "verdict", [Column("version_id", "int", [row.version_id] * count), *verdicts])
    own = [(row.version_id, *fact) for fact in facts]
    bulk.insert(connection, "fact", ("version_id", "series_id", "what", "value_before", "value_after"), own)


def write_levels(connection: Connection, track_key: TrackKey, version_id: int, levels: Levels) -> None:
    """Replace the levels of a version that later runs decided on, or no longer do."""
    connection.execute(_SET_LEVELS, {**track_key.parameters, "version_id": version_id, "levels": _pack_levels(levels)})


def decide_series(connection: Connection, version_id: int, series: Sequence[tuple[int, str | None]]) -> None:
    """Say what became of suspects of a version: series and verdict, None for still open."""
    if series:
        rows = [{"version_id": version_id, "series_id": own, "decided": word} for own, word in series]
        connection.execute(_DECIDE, rows)


def write_findings(connection: Connection, track_key: TrackKey, rows: Sequence[FindingRow]) -> None:
    """Add findings, or change those of the same key; numbers stay."""
    if rows:
        connection.execute(_WRITE_FINDING, [{**track_key.parameters, **asdict(row)} for row in rows])


def write_incidents(connection: Connection, track_key: TrackKey, rows: Sequence[IncidentRow]) -> None:
    """Add incidents, or change those of the same first version; numbers stay."""
    if rows:
        connection.execute(_WRITE_INCIDENT, [{**track_key.parameters, **asdict(row)} for row in rows])


def _pack_levels(levels: Levels) -> bytes:
    """zlib of four rows of whole numbers, 8 bytes each, the lowest first; of the series the steps between them."""
    rows = (np.diff(levels.series_ids, prepend=0), levels.levels, levels.settled, levels.waits)
    return zlib.compress(b"".join(row.astype("<i8").tobytes() for row in rows), 1)


def _unpack_levels(numbers: bytes) -> Levels:
    steps, *rows = np.frombuffer(zlib.decompress(numbers), dtype="<i8").reshape(4, -1)
    return Levels(np.cumsum(steps), *rows)
