"""Experiments: two builds that one machine ran by turns, and their runs, which no level, history or finding has."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, text

from tracker.errors import UsageError
from tracker.profile.experiments import SIDES, name_experiment
from tracker.store import runs as stored_runs
from tracker.store.bulk import LARGEST, clean
from tracker.store.connect import Store
from tracker.store.tracks import TrackKey

RUNNING: Final = "running"
DECIDED: Final = "decided"
NOT_DECIDED: Final = "not decided"
FAILED: Final = "failed"


class StoredExperiment(Struct, frozen=True, kw_only=True):
    """A row of the table `experiment`; what its columns mean is in `store.tables.meanings`."""

    experiment_id: int = 0
    state: str = RUNNING
    baseline: str
    candidate: str
    baseline_commit: str | None = None
    candidate_commit: str | None = None
    finding_id: int | None = None
    host: str = ""
    devices: str = ""
    settings: str = "{}"
    seed: int
    limit_ratio: float
    noise_sd: float | None = None
    measured_by: str = ""
    started_at_ns: int = 0
    ended_at_ns: int | None = None
    outcome: str = ""
    change_ratio: float | None = None
    low_ratio: float | None = None
    high_ratio: float | None = None
    counted_runs: int = 0

    @property
    def name(self) -> str:
        """What users call it: `E-3`."""
        return name_experiment(self.experiment_id)


class PlacedRun(Struct, frozen=True):
    """A run of an experiment: its `side`, its `pair` (0: warm-up, None: of no pair that counts), and its workload."""

    run_id: int
    side: str
    pair: int | None
    workload: str


class DecidedExperiment(Struct, frozen=True):
    """An experiment that is decided. `track_key`: that its runs would be in, if they were followed; the other fields
    are columns of its table.
    """

    track_key: TrackKey
    experiment_id: int
    finding_id: int | None
    baseline_commit: str | None
    candidate_commit: str | None
    outcome: str
    change_ratio: float | None
    low_ratio: float | None
    high_ratio: float | None
    limit_ratio: float
    counted_runs: int


_COLUMNS: Final = tuple(name for name in StoredExperiment.__struct_fields__ if name != "experiment_id")
_ADD: Final = text(
    f"INSERT INTO experiment ({', '.join(_COLUMNS)}) "  # noqa: S608 names of above
    f"VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) RETURNING id"
)
_READ: Final = text(f"SELECT id AS experiment_id, {', '.join(_COLUMNS)} FROM experiment ORDER BY id")  # noqa: S608 the same
_READ_ONE: Final = text(
    f"SELECT id AS experiment_id, {', '.join(_COLUMNS)} FROM experiment WHERE id = :experiment_id"  # noqa: S608 the same
)
_CHANGE: Final = text(
    f"UPDATE experiment SET {', '.join(f'{name} = :{name}' for name in _COLUMNS)} WHERE id = :experiment_id"  # noqa: S608 the same
)
_REMOVE: Final = text("DELETE FROM experiment WHERE id = :experiment_id")
_RUNS: Final = text(
    "SELECT r.id, r.experiment_side, r.experiment_pair, w.name FROM run AS r "
    "INNER JOIN workload AS w ON r.workload_id = w.id "
    "WHERE r.experiment_id = :experiment_id AND r.document_of IS NULL AND r.state <> 'deleted' ORDER BY r.id"
)
_ALL_RUNS: Final = text("SELECT id FROM run WHERE experiment_id = :experiment_id ORDER BY id")
_LEAVE_OUT: Final = text("UPDATE run SET experiment_pair = NULL WHERE id IN :run_ids").bindparams(
    bindparam("run_ids", expanding=True)
)
_TRACK: Final = text(
    "SELECT COALESCE(w.main_id, r.workload_id) AS workload_id, r.configuration_id, r.device_id FROM run AS r "
    "INNER JOIN workload AS w ON r.workload_id = w.id WHERE r.id = :run_id"
)
_DECIDED: Final = text(
    "SELECT e.id, e.settings, e.finding_id, e.baseline_commit, e.candidate_commit, e.outcome, e.change_ratio, "
    "e.low_ratio, e.high_ratio, e.limit_ratio, e.counted_runs, COALESCE(w.main_id, w.id) AS workload_id, "
    "r.configuration_id, r.device_id FROM experiment AS e INNER JOIN run AS r ON r.id = "
    "(SELECT MIN(o.id) FROM run AS o WHERE o.experiment_id = e.id) INNER JOIN workload AS w ON r.workload_id = w.id "
    "WHERE e.state = 'decided' AND e.measured_by <> 'wall' ORDER BY e.id"
)


def add_experiment(store: Store, experiment: StoredExperiment) -> StoredExperiment:
    """Store a new experiment, and return it with its number and the time of its start."""
    values = {**_values_of(experiment), "started_at_ns": time.time_ns()}
    number = store.transact(lambda connection: int(connection.execute(_ADD, values).scalar_one()))
    return read_experiment(store, number)


def change_experiment(store: Store, experiment: StoredExperiment) -> None:
    """Write what became of an experiment."""
    values = {**_values_of(experiment), "experiment_id": experiment.experiment_id}
    store.transact(lambda connection: connection.execute(_CHANGE, values))


def read_experiments(store: Store) -> list[StoredExperiment]:
    """Return all experiments, the oldest first."""
    with store.connect() as connection:
        return [StoredExperiment(**row) for row in connection.execute(_READ).mappings()]


def read_experiment(store: Store, experiment_id: int) -> StoredExperiment:
    """Return an experiment; UsageError for a number that none has."""
    with store.connect() as connection:
        is_possible = 0 < experiment_id <= LARGEST
        found = connection.execute(_READ_ONE, {"experiment_id": experiment_id}).mappings() if is_possible else iter(())
        row = next(iter(found), None)
    if row is None:
        name = name_experiment(experiment_id)
        raise UsageError(f"there is no experiment {name}", remedy="tracker experiments lists them")
    return StoredExperiment(**row)


def list_runs(store: Store, experiment_id: int) -> list[PlacedRun]:
    """Return the runs of an experiment in the order in which they were run, without those that were deleted."""
    with store.connect() as connection:
        return [PlacedRun(*row) for row in connection.execute(_RUNS, {"experiment_id": experiment_id})]


def leave_out(store: Store, run_ids: Sequence[int]) -> None:
    """Let runs count in no pair: their pair was broken off, or is repeated."""
    if run_ids:
        store.transact(lambda connection: connection.execute(_LEAVE_OUT, {"run_ids": list(run_ids)}))


def track_of_main_line(store: Store, run_id: int) -> TrackKey:
    """Return the track of the main line that a run of an experiment would be in, if it were followed."""
    with store.connect() as connection:
        row = connection.execute(_TRACK, {"run_id": run_id}).one()
    return TrackKey(int(row.workload_id), int(row.configuration_id), int(row.device_id))


def list_decided(connection: Connection) -> list[DecidedExperiment]:
    """Return the experiments that decide the step of two commits, the oldest first: their sides differ in their files
    alone, steps were measured, and where no difference was found each side is known to have run its own code.
    """
    found = []
    for row in connection.execute(_DECIDED):
        settings = json.loads(row.settings)
        is_own_code = len(settings.get("own_code", ())) == len(SIDES)
        if settings.get("differs_otherwise") or (row.outcome == "no difference" and not is_own_code):
            continue
        track_key = TrackKey(int(row.workload_id), int(row.configuration_id), int(row.device_id))
        values = (getattr(row, name) for name in DecidedExperiment.__struct_fields__[2:])
        found.append(DecidedExperiment(track_key, row.id, *values))
    return found


def delete_experiment(store: Store, experiment_id: int) -> int:
    """Remove an experiment with its runs for good; how many runs it had. UsageError for a number that none has."""
    experiment = read_experiment(store, experiment_id)
    of_experiment = {"experiment_id": experiment_id}
    with store.connect() as connection:
        run_ids = list(connection.execute(_ALL_RUNS, of_experiment).scalars())
    stored_runs.delete_all(store, run_ids, f"{experiment.name} was deleted", purge=True)
    store.transact(lambda connection: connection.execute(_REMOVE, of_experiment))
    return len(run_ids)


def _values_of(experiment: StoredExperiment) -> dict[str, Any]:
    """Return the columns of an experiment as parameters, with texts that any database takes."""
    values = asdict(experiment)
    values.pop("experiment_id")
    return {name: clean(value) if isinstance(value, str) else value for name, value in values.items()}
