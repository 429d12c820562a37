"""Samples of runs, and what is known of series over versions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracker.columns import Column, Columns, objects
from tracker.store.connect import Store
from tracker.store.judged import Line, LineRun
from tracker.store.queries.answers import answer, answer_of, answer_of_runs


def samples(store: Store, run_ids: Sequence[int]) -> Columns:
    """What runs say of their series. Columns: see sql/samples.sql."""
    return answer_of_runs(store, "samples", run_ids)


def lines(store: Store, workload: str | None = None) -> Columns:
    """The lines of a workload, or of all. Columns: see sql/lines.sql."""
    return answer(store, "lines", {"all_runs": 1, "run_ids": [-1], "workload": workload})


def board(store: Store, workload: str | None = None) -> Columns:
    """The step of all active runs. Columns: see sql/board.sql."""
    return answer(store, "board", {"workload": workload})


def board_verdicts(store: Store, workload: str | None = None) -> Columns:
    """The verdicts of the steps of all versions. Columns: see sql/board_verdicts.sql."""
    return answer(store, "board_verdicts", {"workload": workload})


def line_series(store: Store, line: Line, name: str | None = None) -> Columns:
    """The series of a line, of a name or all. Columns: see sql/line_series.sql."""
    return answer(store, "line_series", {**line.parameters, "name": name})


def series_lines(store: Store, series_ids: Sequence[int]) -> Columns:
    """The line of each of these series that there is. Columns: see sql/series_lines.sql."""
    return answer_of(store, "series_lines", "series_ids", series_ids)


def run_level(store: Store, run_ids: Sequence[int]) -> Columns:
    """What runs say of their run-level series. Columns: see sql/run_level.sql."""
    return answer_of_runs(store, "run_level", run_ids)


def run_verdicts(store: Store, workload: str) -> Columns:
    """How the whole-run numbers of a workload were judged. Columns: see sql/run_verdicts.sql."""
    return answer(store, "run_verdicts", {"workload": workload})


def series_names(store: Store, workload: str) -> Columns:
    """Which names the series of a workload have, by kind. Columns: see sql/series_names.sql."""
    return answer(store, "series_names", {"workload": workload})


def series_runs(store: Store, series_ids: Sequence[int], runs: Sequence[LineRun]) -> Columns:
    """What `runs` of lines say of series, series by series in the order of `runs`. Columns: see sql/series_runs.sql,
    and of the run started_at_ns, version_id, version: its label.
    """
    found = answer_of(store, "series_runs", "series_ids", series_ids)
    place = {run.run_id: at for at, run in enumerate(runs)}
    places = np.array([place.get(run_id, -1) for run_id in found.listed("run_id")], dtype=int)
    order = np.lexsort([places, found.integers("series_id")])
    order = order[places[order] >= 0]
    own = [runs[at] for at in places[order].tolist()]
    return found.taken(order).having(
        started_at_ns=Column.of([run.started_at_ns for run in own], np.int64),
        version_id=np.array([run.version_id for run in own], dtype=np.int64),
        version=objects([run.version for run in own]),
    )


def series_verdicts(store: Store, series_ids: Sequence[int]) -> Columns:
    """How series were judged, version by version. Columns: see sql/series_verdicts.sql."""
    return answer_of(store, "series_verdicts", "series_ids", series_ids)


def series_facts(store: Store, series_ids: Sequence[int]) -> Columns:
    """What changed of series for certain, version by version. Columns: see sql/series_facts.sql."""
    return answer_of(store, "series_facts", "series_ids", series_ids)


def thresholds(store: Store, workload: str | None = None) -> Columns:
    """The limits that users set for a workload, or for all. Columns: see sql/thresholds.sql."""
    return answer(store, "thresholds", {"workload": workload})
