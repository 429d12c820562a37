"""The history of series: their values over versions, how they were judged, lasting changes, what else changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from tracker.detectors import change_points
from tracker.detectors.vote import LAST_RUNS
from tracker.errors import UsageError
from tracker.judgement.basis import stale
from tracker.judgement.best import shared_factor
from tracker.judgement.environment import changes
from tracker.judgement.families import LEAVES, leaf_of, unit_of
from tracker.judgement.find import Place, named, places
from tracker.judgement.recorded import sentence_of_line
from tracker.judgement.stored import with_decided
from tracker.lazy import pd
from tracker.results import HISTORY_COLUMNS, SERIES_KINDS, History, HistoryOptions
from tracker.store import Store, judged, queries
from tracker.store.chosen import Known
from tracker.store.judged import Line

_MOST_LEAVES = 200
"""Leaf series, the largest ones, that say what all operators of a run share."""

_MOST = 500
"""Series that one history may hold."""


def history(store: Store, *, options: HistoryOptions) -> History:
    """The series that `options` name, over all versions of their workload.

    Reads only: versions whose judgement is out of date come without one, and the notes say so. UsageError where nothing
    is named, or too much.
    """
    with store.reading():
        return _history(store, options)


def _history(store: Store, options: HistoryOptions) -> History:
    found = places(store, options)
    chosen = _drifted(store, found, options) if options.top is not None else named(store, found, options)
    pairs = [(place, frame) for place, frame in zip(found, chosen, strict=True) if not frame.empty]
    ids = [int(number) for _, frame in pairs for number in frame["series_id"]]
    if len(ids) > _MOST:
        raise UsageError(f"{len(ids)} series match", remedy="name fewer: --kind, --shape, --metric, or a longer name")
    notes, runs, points, environment = [], [], [], []
    said = queries.version_notes(store, found[0].line.workload_id).set_index("version_id")
    diffs = with_decided(store, queries.series_diffs(store, ids))
    diffs["best_version"] = diffs["best_version_id"].map(said["version"])
    samples = queries.series_runs(store, ids, [run for place, _ in pairs for run in place.runs])
    known = Known()
    for place, frame in pairs:
        changed = changes(store, place)
        environment.append(changed)
        notes += _notes(place)
        known.recordings.update(place.recordings)
        with store.connect() as connection:
            notes += filter(None, [sentence_of_line(connection, place.line, place.runs, known)])
        centre = _centre(store, place)
        for series in frame.itertuples():
            own = samples[samples["series_id"] == series.series_id]
            runs.append(own)
            points.append(_points(place, series, own, diffs, said, changed, centre))
    series = pd.concat([_series(place, frame, samples) for place, frame in pairs], ignore_index=True)
    if options.top is None:
        series = _largest_first(series, samples)
    return History(
        series=series[list(HISTORY_COLUMNS["series"])],
        points=_concat(points, "points"),
        runs=_concat([_runs(part) for part in runs], "runs"),
        environment=_concat(environment, "environment"),
        pinned=next((place.pinned for place, _ in pairs if place.pinned), None),
        options=options,
        notes=tuple(dict.fromkeys(notes)),
    )


def _drifted(store: Store, found: Sequence[Place], options: HistoryOptions) -> list[pd.DataFrame]:
    """The `top` series of each place that drifted most, by their part of the step."""
    if options.key is not None:
        raise UsageError("--top takes no name", remedy="leave out the name, or --top")
    if all(place.pinned is None for place in found):
        raise UsageError(
            "no version is pinned that series could have drifted from",
            remedy="pin one: tracker versions pin LABEL --workload WORKLOAD",
        )
    frames = []
    for place in found:
        rows = queries.drifted(store, place.line, place.runs[-1].version_id)
        kinds = set(rows["kind"])
        kind = options.kind or next((kind for kind in SERIES_KINDS[1:] if kind in kinds), None)
        rows = rows[rows["kind"] == kind]
        if options.metric is not None:
            rows = rows[rows["metric"] == options.metric]
        frames.append(rows.head(options.top or len(rows)))
    if all(frame.empty for frame in frames):
        raise UsageError(
            "nothing was judged against the pinned version yet",
            remedy="tracker versions judge brings the judgement up to date",
        )
    return frames


def _notes(place: Place) -> list[str]:
    late = [task.version.label for task in stale(place.basis, place.judged)]
    notes = []
    if place.limits.rows:
        notes.append(f"Judged by thresholds of your own: {place.limits.told()}.")
    if late:
        notes.append(
            f"The judgement of {', '.join(late)} is out of date and left out; tracker versions judge brings it up to "
            "date."
        )
    return notes


def _series(place: Place, frame: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    counted = samples.groupby("series_id").agg(versions=("version_id", "nunique"), runs=("run_id", "nunique"))
    return frame.assign(
        workload=place.workload,
        configuration=place.configuration,
        device=place.device,
        unit=[unit_of(metric) for metric in frame["metric"]],
        versions=counted["versions"].reindex(frame["series_id"]).fillna(0).to_numpy(dtype=int),
        runs=counted["runs"].reindex(frame["series_id"]).fillna(0).to_numpy(dtype=int),
    )


def _largest_first(series: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    largest = samples.groupby("series_id")["per_step"].max().reindex(series["series_id"]).fillna(0).to_numpy()
    order = np.lexsort([series["part"], series["input_shapes"], series["name"], -largest.astype(float)])
    return series.iloc[order].reset_index(drop=True)


def _points(
    place: Place,
    series: Any,
    samples: pd.DataFrame,
    diffs: pd.DataFrame,
    said: pd.DataFrame,
    changed: pd.DataFrame,
    centre: dict[int, float],
) -> pd.DataFrame:
    """One row per version of the place."""
    order = list(dict.fromkeys((run.version_id, run.version, run.pinned) for run in place.runs))
    number = int(series.series_id)
    own = diffs[diffs["series_id"] == number].set_index("version_id")
    by_version = samples.groupby("version_id")
    late = {task.version.version_id for task in stale(place.basis, place.judged)}
    begins = _changed_in(series, samples, centre)
    words = changed.groupby("version")
    rows = []
    for version_id, version, pinned in order:
        runs = by_version.get_group(version_id) if version_id in by_version.groups else samples.iloc[:0]
        known = own.loc[version_id].to_dict() if version_id in own.index and version_id not in late else {}
        rows.append(
            {
                **known,
                "series_id": number,
                "version": version,
                "pinned": pinned,
                "commit": said.loc[version_id, "commit"],
                "note": said.loc[version_id, "note"],
                "runs": len(runs),
                "value": _median(runs["per_step"]),
                "minimum": runs["per_step"].min() if len(runs) else pd.NA,
                "maximum": runs["per_step"].max() if len(runs) else pd.NA,
                "calls": _median(runs["calls_per_step"]),
                "change_point": version_id in begins,
                "environment": _words(words.get_group(version)) if version in words.groups else "",
            }
        )
    return pd.DataFrame(rows)


def _median(numbers: pd.Series) -> Any:
    """The median of the numbers that are there; NA without any, of which NumPy 1 would warn."""
    return numbers.median() if numbers.notna().any() else pd.NA


def _words(changed: pd.DataFrame) -> str:
    parts = []
    for row in changed.itertuples():
        before, after = ("-" if pd.isna(side) else str(side) for side in (row.before, row.after))
        parts.append(f"{row.key} {before} -> {after}")
    return "; ".join(parts)


def _changed_in(series: Any, samples: pd.DataFrame, centre: dict[int, float]) -> set[int]:
    """The versions with which a lasting change begins, by what all operators share taken out of times."""
    last = samples.tail(LAST_RUNS)
    values = last["per_step"].to_numpy(dtype=float)
    if series.kind != "run" and series.metric.endswith("_ns"):
        values = values / np.exp([centre.get(int(run), 0.0) for run in last["run_id"]])
    ids = last["version_id"].tolist()
    return {int(ids[place]) for place in change_points(values)} if len(values) else set()


def _centre(store: Store, place: Place) -> dict[int, float]:
    """What the largest leaves of the last runs share, per run, as a log."""
    runs = [run.run_id for run in place.runs[-LAST_RUNS:]]
    with store.connect() as connection:
        leaves = _leaves(connection, place.line)
        largest = _largest(connection, leaves, runs)
        values = judged.values_in(connection, runs, largest)
    return dict(zip(runs, shared_factor(values).tolist(), strict=True))


def _leaves(connection: Connection, line: Line) -> list[int]:
    """The leaf series of a line, ascending."""
    for kind in LEAVES:
        of_metric = judged.ids_of(connection, line, kind)
        leaf = leaf_of([(kind, metric) for metric in of_metric])
        if leaf is not None:
            return of_metric[leaf[1]]
    return []


def _largest(connection: Connection, leaves: Sequence[int], runs: Sequence[int]) -> list[int]:
    """The largest leaves of the newest run that has any, ascending: a training log says nothing of operators."""
    for run in reversed(runs) if leaves else ():
        values = judged.values_in(connection, [run], leaves)[:, 0]
        largest = np.argsort(-values, kind="stable")[: min(_MOST_LEAVES, np.count_nonzero(~np.isnan(values)))]
        if len(largest):
            return [leaves[place] for place in sorted(largest.tolist())]
    return []


def _runs(samples: pd.DataFrame) -> pd.DataFrame:
    return samples.rename(columns={"per_step": "value", "calls_per_step": "calls"})


def _concat(frames: Sequence[pd.DataFrame], table: str) -> pd.DataFrame:
    whole = pd.concat([frame for frame in frames if len(frame)] or [pd.DataFrame()], ignore_index=True)
    return whole.reindex(columns=list(HISTORY_COLUMNS[table]))
