"""The tracks of a database: their runs and series, what the runs say of these, and the limits that users set.

A track is what forms one history: a workload, in one configuration, on one device.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from tracker.results.machine_state import KEYS
from tracker.results.thresholds import Threshold
from tracker.schema.series import SeriesKey
from tracker.store import bulk, samples
from tracker.store.recordings import Recorded, content_of
from tracker.store.samples import SAMPLE_RULES
from tracker.store.sql import statement

if TYPE_CHECKING:
    from tracker.store.samples import SampleArray

F64 = NDArray[np.float64]

_MAIN: Final = text(
    "SELECT w.main_id, COALESCE((SELECT m.id FROM configuration AS m INNER JOIN configuration AS own "
    "ON m.fingerprint = own.fingerprint WHERE own.id = :configuration_id AND m.workload_id = w.main_id), "
    ":configuration_id) AS configuration_id FROM workload AS w WHERE w.id = :id AND w.main_id IS NOT NULL"
)
_JUDGE_AGAIN: Final = text(
    "UPDATE judged_version SET rests_on = :nothing, basis = '' WHERE (configuration_id, device_id, version_id) = "
    "(SELECT configuration_id, device_id, version_id FROM run WHERE id = :run_id) OR workload_id IN "
    "(SELECT w.id FROM workload AS w INNER JOIN run AS r ON w.main_id = r.workload_id WHERE r.id = :run_id)"
)
"""The version of a run, and those of all branches, which are judged against the runs of their main line."""
_ALL_COMMITS: Final = text(
    "SELECT w.name, v.label, v.commit_id FROM version AS v INNER JOIN workload AS w ON v.workload_id = w.id "
    "WHERE v.commit_id IS NOT NULL"
)
_COMMITS: Final = text("SELECT id, commit_id, main_commits FROM version WHERE workload_id = :id")

_LIMIT_KEY: Final = ("workload_id", "configuration_id", "device_id", "kind", "pattern", "name")
_REMOVE_LIMIT: Final = text(f"DELETE FROM threshold WHERE {' AND '.join(f'{name} = :{name}' for name in _LIMIT_KEY)}")  # noqa: S608 names of above

_COLUMNS = (samples.VALUE, samples.CALLS, *samples.BY_CALLS_COLUMNS)


TRACK_COLUMNS: Final = ("workload_id", "configuration_id", "device_id")
"""The columns by which tables hold a track."""


class TrackKey(Struct, frozen=True):
    """The numbers of a workload, a configuration and a device."""

    workload_id: int
    configuration_id: int
    device_id: int

    @property
    def parameters(self) -> dict[str, Any]:
        """For the questions about a track."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class TrackRun(Struct, frozen=True, gc=False):
    """An active run of a track.

    `ranks`: that came; `started_at_ns`: None where it is unknown; `recording_id`: of how it was recorded, None where
    nothing says it; `arrived_ns`: when its last rank came in, None: before this was kept. There are thousands, which
    the garbage collector need not look at.
    """

    run_id: int
    version_id: int
    version: str
    pinned: bool
    ranks: int
    started_at_ns: int | None
    recording_id: int | None = None
    arrived_ns: int | None = None


class SeriesTable(Struct, frozen=True):
    """Series of a track: `ids`, with the key of each."""

    ids: NDArray[np.int64]
    keys: Sequence[SeriesKey]


def list_tracks(
    connection: Connection, run_ids: Iterable[int] | None = None, workload: str | None = None
) -> list[TrackKey]:
    """Return the tracks of these runs, or all of them, in order."""
    wanted = [] if run_ids is None else sorted(set(run_ids))
    parameters = {"all_runs": int(run_ids is None), "run_ids": wanted or [-1], "workload": workload}
    rows = connection.execute(statement("tracks"), parameters).all()
    return [TrackKey(row.workload_id, row.configuration_id, row.device_id) for row in rows]


def main_track_of(connection: Connection, track_key: TrackKey) -> TrackKey | None:
    """Return the track of the main line that a track of a branch is judged against; None for one that is no
    branch's.
    """
    asked = {"id": track_key.workload_id, "configuration_id": track_key.configuration_id}
    found = connection.execute(_MAIN, asked).one_or_none()
    return None if found is None else TrackKey(int(found.main_id), int(found.configuration_id), track_key.device_id)


def list_branch_tracks(connection: Connection) -> list[TrackKey]:
    """Return the tracks of all branches."""
    rows = connection.execute(statement("tracks"), {"all_runs": 1, "run_ids": [-1], "workload": None}).all()
    return [TrackKey(row.workload_id, row.configuration_id, row.device_id) for row in rows if row.is_branch]


def commits_of_versions(connection: Connection, workload_id: int) -> dict[int, tuple[str | None, list[str]]]:
    """Version -> its commit, and of a branch those of the main line from the merge base back, the newest first."""
    rows = connection.execute(_COMMITS, {"id": workload_id})
    return {row.id: (row.commit_id, (row.main_commits or "").split()) for row in rows}


def read_commits(connection: Connection) -> dict[tuple[str, str], str]:
    """(workload, label) of each version whose commit is known -> that commit."""
    return {(row.name, row.label): row.commit_id for row in connection.execute(_ALL_COMMITS)}


def judge_again(connection: Connection, run_id: int) -> None:
    """Have the version of a run judged anew: its runs are the same, recorded alike, and yet have other numbers."""
    connection.execute(_JUDGE_AGAIN, {"run_id": run_id, "nothing": b""})


def list_stale_runs(connection: Connection, track_key: TrackKey) -> list[int]:
    """Return the active runs of a track whose samples were never made, or by other rules, and whose details are
    here.
    """
    return [
        row[0] for row in connection.execute(statement("stale_runs"), {**track_key.parameters, "rules": SAMPLE_RULES})
    ]


def list_track_runs(
    connection: Connection, track_key: TrackKey, run_ids: Iterable[int] | None = None
) -> list[TrackRun]:
    """Return the active runs of a track, or these of them, in the order of versions; those of a version as they
    started, or by their numbers, as they came in, where nobody knows when one of them did: with a clock for some no
    other order fits all.
    """
    asked = {**track_key.parameters, "all_runs": int(run_ids is None), "ids": bulk.as_keys(run_ids or ())}
    rows = bulk.fetch(connection.execute(statement("track_runs"), asked))
    runs: list[TrackRun] = []
    for _, own in groupby(rows, itemgetter(1)):
        of_version = [TrackRun(row[0], row[1], row[2], bool(row[3]), *row[4:]) for row in own]
        if len(of_version) > 1 and all(run.started_at_ns is not None for run in of_version):
            of_version.sort(key=lambda run: run.started_at_ns or 0)
        runs += of_version
    return runs


def read_series(connection: Connection, track_key: TrackKey) -> SeriesTable:
    """Return all series of a track, by ascending ids."""
    rows = bulk.fetch(connection.execute(statement("track_series"), {**track_key.parameters, "name": None}))
    return SeriesTable(np.array([row[0] for row in rows], dtype=np.int64), [SeriesKey._make(row[1:]) for row in rows])


def read_values(
    connection: Connection,
    run_ids: Sequence[int],
    series: SeriesTable,
    known: dict[int, SampleArray] | None = None,
) -> tuple[F64, F64, F64]:
    """Return what is printed, calls, and the times by calls of these runs: arrays of (series, runs), the last one of
    (2, series, runs), each run together in memory; nan where it has no such series. One that is not in `series` is left
    out: it came since that was read, and who brought it judges next. `known`: samples that were read before, to which
    these are added.
    """
    values, calls = np.empty((2, len(run_ids), len(series.ids)))
    by_calls = np.empty((2, len(run_ids), len(series.ids)))
    arrays = {} if known is None else known
    arrays.update(samples.arrays_of(connection, [run_id for run_id in run_ids if run_id not in arrays]))
    ids = places = np.zeros(0, dtype=np.int64)
    for at, run_id in enumerate(run_ids):
        own = arrays[run_id]
        if at == 0 or not np.array_equal(own.series_ids, ids):  # nearly always those of the run before
            ids, places = own.series_ids, places_in(series.ids, own.series_ids)
        for table, numbers in ((values, own.values), (calls, own.calls), *zip(by_calls, own.by_calls, strict=True)):
            table[at] = np.append(numbers, np.nan)[places]
    return values.T, calls.T, by_calls.transpose(0, 2, 1)


def places_in(ids: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each of `ids` in `own`, ascending; the end of it for what is not there."""
    place = np.searchsorted(own, ids)
    return np.where(np.append(own, -1)[place] == ids, place, len(own))


def read_values_of_series(connection: Connection, run_ids: Sequence[int], series_ids: Sequence[int]) -> F64:
    """Return what is judged of these series, ascending, in these runs: (series, runs), nan for what is not there."""
    return read_values(connection, run_ids, SeriesTable(np.array(series_ids, dtype=np.int64), ()))[0]


def read_machines(connection: Connection, run_ids: Iterable[int]) -> dict[int, dict[str, str]]:
    """Run -> what is known of its machine by key, those of `machine_state.KEYS`; runs of which nothing is have none."""
    which = {"ids": bulk.as_keys(run_ids), "words": json.dumps(dict.fromkeys(KEYS, 0))}
    found: dict[int, dict[str, str]] = {}
    for row in connection.execute(statement("run_machines"), which):
        found.setdefault(row.run_id, {})[row.key] = row.value
    return found


def read_hosts(connection: Connection, run_ids: Sequence[int]) -> dict[int, frozenset[str]]:
    """Run -> the hosts that it ran on; empty where none is known."""
    rows = connection.execute(statement("run_hosts"), {"run_ids": [*run_ids]}).all()
    names: dict[int, set[str]] = {run_id: set() for run_id in run_ids}
    for run_id, host in rows:
        names[run_id].add(host)
    return {run_id: frozenset(own) for run_id, own in names.items()}


def limits_of_track(connection: Connection, track_key: TrackKey) -> tuple[Threshold, ...]:
    """Return the limits that hold in a track, those of its whole workload among them, in a fixed order."""
    rows = connection.execute(statement("track_thresholds"), track_key.parameters).all()
    return tuple(
        Threshold(
            row.name, row.threshold, row.kind, row.pattern, row.configuration_id, row.device_id, row.who, row.when_ns,
            row.reason,
        )
        for row in rows
    )  # fmt: skip


def write_limits(connection: Connection, workload_id: int, limits: Sequence[Threshold]) -> None:
    """Set these limits, each in place of the one that stood for the same place and series."""
    for limit in limits:
        connection.execute(_REMOVE_LIMIT, _limit_key(workload_id, limit))
    columns = (*_LIMIT_KEY, "value", "who", "when_ns", "reason")
    rows = [
        (
            *_limit_key(workload_id, limit).values(),
            limit.value,
            bulk.clean(limit.who),
            limit.when_ns,
            bulk.clean(limit.reason),
        )
        for limit in limits
    ]
    bulk.insert(connection, "threshold", columns, rows)


def remove_limit(connection: Connection, workload_id: int, limit: Threshold) -> bool:
    """Take back the limit of this name, place and series, whatever its value; whether there was one."""
    return connection.execute(_REMOVE_LIMIT, _limit_key(workload_id, limit)).rowcount > 0


def _limit_key(workload_id: int, limit: Threshold) -> dict[str, Any]:
    place = {name: getattr(limit, name) for name in _LIMIT_KEY[1:]}
    return {"workload_id": workload_id, **place, "pattern": bulk.clean(limit.pattern)}


class ChosenRun(Struct, frozen=True, eq=False):
    """What a run says of its series: `keys`; `values`, `calls`: per step, nan where the run does not have it;
    `by_calls` (2, series): as in `SampleArray`. `limits`: that users set in its track; `recorded`: what its captures
    say of how it was recorded; `hosts`: empty where none is known; `started_at_ns`: None: unknown; `machine`: what is
    known of it, by key.
    """

    keys: Sequence[SeriesKey]
    values: F64
    calls: F64
    by_calls: F64
    limits: tuple[Threshold, ...]
    recorded: Recorded
    hosts: frozenset[str] = frozenset()
    started_at_ns: int | None = None
    machine: Mapping[str, str] = field(default_factory=dict)

    @property
    def step_kinds(self) -> set[str]:
        """The kinds of its steps that have series."""
        there = np.flatnonzero(~np.isnan(self.values)).tolist()
        return {self.keys[row].step_kind for row in there} - {""}

    def of_kind(self, step_kind: str) -> ChosenRun:
        """Return what the run says of the series of one kind of steps, "" of those of all steps."""
        if not step_kind and not any(key.step_kind for key in self.keys):
            return self
        rows = [row for row, key in enumerate(self.keys) if key.step_kind == step_kind]
        keys = [self.keys[row] for row in rows]
        own = (self.values[rows], self.calls[rows], self.by_calls[:, rows])
        return ChosenRun(keys, *own, self.limits, self.recorded, self.hosts, self.started_at_ns, self.machine)


def read_chosen_runs(connection: Connection, run_ids: Sequence[int]) -> list[ChosenRun]:
    """Return these runs, in their order.

    Reads only: samples that are missing or by older rules are made for the answer and not stored, where the details are
    here.
    """
    rows = connection.execute(statement("run_tracks"), {"run_ids": sorted(set(run_ids))}).all()
    run_ids_by_track: dict[TrackKey, list[int]] = {}
    numbers: dict[int, tuple[Sequence[SeriesKey], F64, F64, F64]] = {}
    for row in rows:
        own = run_ids_by_track.setdefault(TrackKey(row.workload_id, row.configuration_id, row.device_id), [])
        if row.sample_rules != SAMPLE_RULES and row.pruned_at_ns is None:
            made = samples.samples_of(connection, row.run_id)
            columns = np.array([[one[at] for at in _COLUMNS] for one in made.numbers], dtype=np.float64)
            values, calls, *times = columns.reshape(-1, len(_COLUMNS)).T
            numbers[row.run_id] = (made.keys, values, calls, np.array(times))
        else:
            own.append(row.run_id)
    limits = {track_key: limits_of_track(connection, track_key) for track_key in run_ids_by_track}
    for track_key, own in run_ids_by_track.items():
        series = read_series(connection, track_key)
        tables = read_values(connection, own, series)
        for at, run_id in enumerate(own):
            values, calls, by_calls = (table[..., at] for table in tables)
            numbers[run_id] = (series.keys, values, calls, by_calls)
    hosts = read_hosts(connection, [row.run_id for row in rows])
    machines = read_machines(connection, [row.run_id for row in rows])
    found = {
        row.run_id: ChosenRun(
            *numbers[row.run_id],
            limits[TrackKey(row.workload_id, row.configuration_id, row.device_id)],
            content_of(row.content),
            hosts[row.run_id],
            row.started_at_ns,
            machines.get(row.run_id, {}),
        )
        for row in rows
    }
    return [found[run_id] for run_id in run_ids]


def tabulate_runs(runs: Sequence[ChosenRun]) -> tuple[list[SeriesKey], F64, F64, F64]:
    """Return the series that any of the runs has, sorted, with their values and calls, arrays of (series, runs), and
    times by calls (2, series, runs).
    """
    every = {id(run.keys): run.keys for run in runs}  # runs of one track have one object
    keys = sorted({key for own in every.values() for key in own})
    place = {key: at for at, key in enumerate(keys)}
    rows = {number: [place[key] for key in own] for number, own in every.items()}
    values, calls = np.full((2, len(keys), len(runs)), np.nan)
    by_calls = np.full((2, len(keys), len(runs)), np.nan)
    for at, run in enumerate(runs):
        of_run = rows[id(run.keys)]
        values[of_run, at], calls[of_run, at], by_calls[:, of_run, at] = run.values, run.calls, run.by_calls
    there = np.flatnonzero(~np.isnan(values).all(axis=1))
    return [keys[row] for row in there.tolist()], values[there], calls[there], by_calls[:, there]
