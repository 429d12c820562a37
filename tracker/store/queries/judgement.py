"""What is judged and what judging said: samples, series over versions, findings, and what happened to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from tracker.columns import Column, Columns, objects
from tracker.schema.column_names import RUN_ID, SERIES_ID
from tracker.schema.series import SeriesKey
from tracker.store.answers import answer, answer_of, answer_of_runs, rows, whole
from tracker.store.bulk import LISTED
from tracker.store.connect import Store
from tracker.store.findings import StoredFinding
from tracker.store.tracks import TrackKey, TrackRun


class TrackSeries(Struct, frozen=True, gc=False):
    """A series of a track, with the columns of sql/track_series.sql."""

    series_id: int
    kind: str
    metric: str
    name: str
    input_shapes: str
    part: str
    step_kind: str

    @property
    def key(self) -> SeriesKey:
        """What names it in its track."""
        return SeriesKey(self.kind, self.metric, self.name, self.input_shapes, self.part, self.step_kind)


class StoredSeriesVerdict(Struct, frozen=True, gc=False):
    """How a series was judged in a version, with the columns of sql/series_verdicts.sql."""

    series_id: int
    version_id: int
    level_version_id: int | None
    verdict: str | None
    decided: str | None
    reason: str | None
    raw_change: float | None
    judged_change: float | None
    q: float | None
    contribution: float | None


class UserWord(Struct, frozen=True, kw_only=True):
    """What a user said of a finding, with the columns of sql/finding_words.sql."""

    finding_id: int
    mark_id: int
    action: str
    who: str
    reason: str
    when_ns: int
    until_ns: int | None
    until_version: str | None
    newest_version_id: int | None
    undoes_id: int | None
    is_undone: int


class VersionFact(Struct, frozen=True, kw_only=True):
    """What changed for certain of a series with a version, with the columns of sql/version_facts.sql."""

    series_id: int
    kind: str
    metric: str
    name: str
    input_shapes: str
    part: str
    step_kind: str
    what: str
    value_before: float
    value_after: float


class FindingStanding(Struct, frozen=True, kw_only=True):
    """Where a finding stands, with the columns of sql/standings.sql."""

    finding_id: int
    version_id: int
    series_id: int
    direction: str
    change: str
    state: str


def samples(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return what runs say of their series. Columns: see sql/samples.sql."""
    return answer_of_runs(store, "samples", run_ids)


def tracks(store: Store, workload: str | None = None) -> Columns:
    """Return the tracks of a workload, or of all. Columns: see sql/tracks.sql."""
    return answer(store, "tracks", {"all_runs": 1, "run_ids": [-1], "workload": workload})


def board(store: Store, workload: str | None = None) -> Columns:
    """Return the step of all active runs. Columns: see sql/board.sql."""
    return answer(store, "board", {"workload": workload})


def branch_standings(store: Store) -> list[Any]:
    """Return how the newest version of each branch stands, row by row. Columns: see sql/branch_standings.sql."""
    return rows(store, "branch_standings")


def partial_captures(store: Store, workload: str | None = None) -> Columns:
    """Return the captures of active runs that are partial. Columns: see sql/partial_captures.sql."""
    return answer(store, "partial_captures", {"workload": workload})


def board_verdicts(store: Store, workload: str | None = None) -> Columns:
    """Return the verdicts of the steps of all versions. Columns: see sql/board_verdicts.sql."""
    return answer(store, "board_verdicts", {"workload": workload})


def track_series(store: Store, track_key: TrackKey, name: str | None = None) -> list[TrackSeries]:
    """Return the series of a track, of a name or all."""
    found = answer(store, "track_series", {**track_key.parameters, "name": name})
    return [TrackSeries(*row) for row in found.rows(*TrackSeries.__struct_fields__)]


def series_tracks(store: Store, series_ids: Sequence[int]) -> Columns:
    """Return the track of each of these series that there is. Columns: see sql/series_tracks.sql."""
    return answer_of(store, "series_tracks", "series_ids", series_ids)


def run_level(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return what runs say of their run-level series. Columns: see sql/run_level.sql."""
    return answer_of_runs(store, "run_level", run_ids)


def run_verdicts(store: Store, workload: str) -> Columns:
    """Return how the whole-run numbers of a workload were judged. Columns: see sql/run_verdicts.sql."""
    return answer(store, "run_verdicts", {"workload": workload})


def waiting_runs(store: Store, workload: str | None = None) -> Columns:
    """Return the runs that have fewer ranks than they should, of a workload or all. Columns: sql/waiting_runs.sql."""
    return answer(store, "waiting_runs", {"workload": workload})


def series_names(store: Store, workload: str, kind: str | None = None) -> Columns:
    """Return which names the series of a workload have, of a kind or of all. Columns: see sql/series_names.sql."""
    return answer(store, "series_names", {"workload": workload, "kind": kind})


def series_runs(store: Store, series_ids: Sequence[int], runs: Sequence[TrackRun]) -> Columns:
    """Return what `runs` of tracks say of series, series by series in the order of `runs`.

    Columns: see sql/series_runs.sql, and of the run started_at_ns, version_id, version: its label.
    """
    found = answer_of(store, "series_runs", "series_ids", series_ids)
    place = {run.run_id: at for at, run in enumerate(runs)}
    places = np.array([place.get(run_id, -1) for run_id in found.listed(RUN_ID)], dtype=int)
    order = np.lexsort([places, found.integers(SERIES_ID)])
    order = order[places[order] >= 0]
    own = [runs[at] for at in places[order].tolist()]
    return found.taken(order).having(
        started_at_ns=Column.of([run.started_at_ns for run in own], np.int64),
        version_id=np.array([run.version_id for run in own], dtype=np.int64),
        version=objects([run.version for run in own]),
    )


def series_verdicts(store: Store, series_ids: Sequence[int]) -> list[StoredSeriesVerdict]:
    """Return how series were judged, version by version."""
    found = answer_of(store, "series_verdicts", "series_ids", series_ids)
    return [StoredSeriesVerdict(*row) for row in found.rows(*StoredSeriesVerdict.__struct_fields__)]


def series_facts(store: Store, series_ids: Sequence[int]) -> Columns:
    """Return what changed of series for certain, version by version. Columns: see sql/series_facts.sql."""
    return answer_of(store, "series_facts", "series_ids", series_ids)


def thresholds(store: Store, workload: str | None = None) -> Columns:
    """Return the limits that users set for a workload, or for all. Columns: see sql/thresholds.sql."""
    return answer(store, "thresholds", {"workload": workload})


def findings(
    store: Store, finding_ids: Sequence[int] | None = None, *, workload: str | None = None
) -> list[StoredFinding]:
    """Return these findings, or all, of a workload."""
    ids = [] if finding_ids is None else whole(finding_ids)
    # more numbers than a statement takes: all findings are read, and these are kept
    has_too_many = len(ids) > LISTED
    reads_all = finding_ids is None or has_too_many
    parameters = {"all_findings": int(reads_all), "finding_ids": [] if reads_all else ids, "workload": workload}
    parameters |= dict.fromkeys(TrackKey.__struct_fields__)
    records = [StoredFinding(**row._mapping) for row in rows(store, "findings", **parameters)]
    if not has_too_many:
        return records
    chosen = set(ids)
    return [record for record in records if record.finding_id in chosen]


def finding_words(store: Store) -> dict[int, list[UserWord]]:
    """Return what users said of each finding, in order."""
    found: dict[int, list[UserWord]] = {}
    for row in rows(store, "finding_words"):
        found.setdefault(row.finding_id, []).append(UserWord(**row._mapping))
    return found


def version_facts(store: Store, track_key: TrackKey, version_id: int) -> list[VersionFact]:
    """Return what changed for certain with a version of a track."""
    asked = {**track_key.parameters, "version_id": version_id}
    return [VersionFact(**row._mapping) for row in rows(store, "version_facts", **asked)]


def standings(store: Store) -> list[FindingStanding]:
    """Return where findings stand, in their order."""
    return [FindingStanding(**row._mapping) for row in rows(store, "standings")]
