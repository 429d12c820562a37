"""The history of series: their numbers over versions, how they were judged, levels, what else changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from sqlalchemy import Connection

from tracker.detect import DEFAULTS
from tracker.errors import UsageError
from tracker.lazy import pd
from tracker.regressions import comparable
from tracker.regressions.environment import changes
from tracker.regressions.limits import track_limits, traits_of, words_of_limits
from tracker.regressions.pinned import against_pinned
from tracker.regressions.places import Place, named, places
from tracker.regressions.rows import series_in_order, track_of_runs
from tracker.regressions.state import UNDECIDED
from tracker.regressions.track import BEGINNING, geometric_mean
from tracker.results import HISTORY_COLUMNS, SERIES_KINDS, History, HistoryOptions
from tracker.store import Store, judged, queries, regressions
from tracker.store.judged import Line, LineRun
from tracker.units import format_bytes, size_unit, unit_of_metric

_PIN: Final = "pin one: tracker versions pin LABEL --workload WORKLOAD"
_MOST: Final = 500
"""Series that one history may hold."""


def history(store: Store, *, options: HistoryOptions) -> History:
    """The series that `options` name, over all versions of their workload.

    Reads only: versions whose judgement is out of date come without one, and the notes say so. UsageError where nothing
    is named, or too much.
    """
    with store.reading():
        found = places(store, options)
        if options.against == "pinned" and all(place.pinned is None for place in found):
            raise UsageError("no version is pinned", remedy=_PIN)
        chosen = _changed_most(store, found, options) if options.top is not None else named(store, found, options)
        pairs = [(place, frame) for place, frame in zip(found, chosen, strict=True) if not frame.empty]
        ids = [int(number) for _, frame in pairs for number in frame["series_id"]]
        if len(ids) > _MOST:
            raise UsageError(
                f"{len(ids)} series match", remedy="name fewer: --kind, --shape, --metric, or a longer name"
            )
        numbers = queries.series_runs(store, ids, [run for place, _ in pairs for run in place.runs])
        verdicts, facts = queries.series_verdicts(store, ids), queries.series_facts(store, ids)
        notes: list[str] = []
        points, environment = [], []
        for place, frame in pairs:
            own = frame["series_id"].tolist()
            with store.connect() as connection:
                notes += notes_of(connection, place)
                pinned, why = against_pinned(connection, place) if options.against == "pinned" else ({}, "")
                notes += [why] if why else []
                levels = _levels(connection, place, own)
                gradual = {
                    (row.series_id, row.first_version_id): float(np.expm1(row.size))
                    for row in regressions.findings_of(connection, place.line)
                    if row.how == "gradual" and row.state != "withdrawn"
                }
            environment.append(changes(store, place))
            said = queries.version_notes(store, place.line.workload_id).set_index("version_id")
            known = _Tables(numbers, verdicts, facts, said, environment[-1], levels, gradual, pinned)
            points += [_points(place, number, known) for number in own]
    series = pd.concat([_series(place, frame, numbers) for place, frame in pairs], ignore_index=True)
    if options.top is None:
        series = _largest_first(series, numbers)
    return History(
        series=series[list(HISTORY_COLUMNS["series"])],
        points=_concat(points, "points"),
        runs=_concat([numbers.rename(columns={"per_step": "value", "calls_per_step": "calls"})], "runs"),
        environment=_concat(environment, "environment"),
        pinned=next((place.pinned.version for place, _ in pairs if place.pinned), None),
        options=options,
        notes=tuple(dict.fromkeys(notes)),
    )


def notes_of(connection: Connection, place: Place) -> list[str]:
    """What a reader of the verdicts of a track must know: limits of users, what is out of date, other settings."""
    notes = []
    if place.track.limits:
        notes.append(f"Judged by thresholds of your own: {words_of_limits(place.track.limits)}.")
    if place.late:
        late = ", ".join(place.labels[version] for version in place.late)
        notes.append(
            f"The judgement of {late} is out of date and left out; tracker versions judge brings it up to date."
        )
    note = comparable.settings_note(connection, place.line, place.runs, track_limits(place.track.limits).look_back)
    return [*notes, note] if note else notes


def _levels(connection: Connection, place: Place, series_ids: Sequence[int]) -> dict[int, dict[int, int]]:
    """Series -> version -> the version with which its level began, of versions that are judged."""
    order = [version for version in place.track.order if version not in place.late]
    wanted = np.array(sorted(series_ids), dtype=np.int64)
    found: dict[int, dict[int, int]] = {number: {} for number in wanted.tolist()}
    for version, stored in regressions.levels_of(connection, place.line, order).items():
        at = np.searchsorted(stored.series_ids, wanted)
        at = np.where(at < len(stored.series_ids), at, 0)
        known = stored.series_ids[at] == wanted if len(stored.series_ids) else np.zeros(len(wanted), dtype=bool)
        for number, is_known, row in zip(wanted.tolist(), known.tolist(), at.tolist(), strict=True):
            found[number][version] = int(stored.levels[row]) if is_known else BEGINNING
    return found


class _Tables(Struct, frozen=True, eq=False):
    """What is known of the series of a place. `said`: of versions; `changed`: what else changed with them; `levels`:
    series -> version -> with which its level began; `gradual`: series and version -> a gradual slowdown found in it;
    `pinned`: the verdict against the pinned version.
    """

    numbers: pd.DataFrame
    verdicts: pd.DataFrame
    facts: pd.DataFrame
    said: pd.DataFrame
    changed: pd.DataFrame
    levels: dict[int, dict[int, int]]
    gradual: dict[tuple[int, int], float]
    pinned: dict[tuple[int, int], str]


def _points(place: Place, number: int, known: _Tables) -> pd.DataFrame:
    """One row per version of the place."""
    labels, level_of, said = place.labels, known.levels[number], known.said
    label = {**labels, BEGINNING: ""}
    numbers, verdicts, facts = (
        table[table["series_id"] == number] for table in (known.numbers, known.verdicts, known.facts)
    )
    judged_in = {int(row["version_id"]): row for row in verdicts.astype(object).to_dict("records")}
    runs_in: dict[int, list[tuple[Any, Any]]] = {}
    for version, value, calls in numbers[["version_id", "per_step", "calls_per_step"]].itertuples(index=False):
        runs_in.setdefault(version, []).append((value, calls))
    facts_in = {version: _fact_words(own) for version, own in facts.groupby("version_id")}
    words = {version: _environment_words(own) for version, own in known.changed.groupby("version")}
    pinned = place.pinned
    reference = _mean([value for value, _ in runs_in.get(pinned.version_id, [])]) if pinned else None
    commits, notes = said["commit"].to_dict(), said["note"].to_dict()
    rows, before = [], BEGINNING
    of_level: dict[int, list[float]] = {}
    for version, name in labels.items():
        runs = runs_in.get(version, [])
        values = [value for value, _ in runs]
        value = _mean(values)
        is_pinned = pinned is not None and pinned.version_id == version
        row = {
            "series_id": number, "version": name, "pinned": is_pinned, "commit": commits[version],
            "note": notes[version], "runs": len(runs), "value": value,
            "minimum": min(values, default=None), "maximum": max(values, default=None),
            "calls": _mean([calls for _, calls in runs]), "change_point": False, "facts": "",
            "pinned_change": None if is_pinned else _ratio(reference, value),
            "pinned_verdict": known.pinned.get((number, version)),
            "environment": words.get(name, ""),
        }  # fmt: skip
        level = level_of.get(version, UNDECIDED)
        verdict = judged_in.get(version)
        if version in level_of:
            row["change_point"] = level == version
            row["facts"] = facts_in.get(version, "")
            row["gradual_change"] = known.gradual.get((number, version))
        if version in level_of and verdict is not None:
            against = int(verdict["level_version_id"])
            row |= {
                "level_version": label.get(against, ""), "verdict": verdict["verdict"], "reason": verdict["reason"],
                "change": verdict["raw_change"], "judged_change": verdict["judged_change"], "q": verdict["q"],
                "contribution": verdict["contribution"],
            }  # fmt: skip
            if not pd.isna(verdict["decided"]):
                row["verdict"] = verdict["decided"]
                if verdict["decided"] == "UNCHANGED" and level not in (UNDECIDED, against):
                    # later runs decided that it belongs to a level that began meanwhile
                    own = of_level.get(level, [])[-DEFAULTS.window :]
                    row |= {
                        "level_version": label.get(level, ""), "change": _ratio(_mean(own), value),
                        "judged_change": None, "q": None, "contribution": None,
                    }  # fmt: skip
        if level not in (UNDECIDED, before, version):
            row["back_to"] = labels.get(level, next(iter(labels.values())))
        before = before if level == UNDECIDED else level
        of_level.setdefault(level, []).extend(values)
        rows.append(row)
    return pd.DataFrame(rows)


def _mean(values: Sequence[Any]) -> float | None:
    """The geometric mean; of equal numbers exactly these, the smallest where one is not positive, None without any."""
    known = np.array([value for value in values if not pd.isna(value)], dtype=np.float64)
    if not len(known):
        return None
    if known.min() == known.max() or known.min() <= 0:
        return float(known.min())
    return float(np.exp(np.log(known).mean()))


def _ratio(before: float | None, after: float | None) -> float | None:
    return None if not before or after is None else after / before - 1


def _fact_words(facts: pd.DataFrame) -> str:
    """Exact facts in words: calls 129 -> 135; peak 45.8 MiB -> 66.1 MiB; new, 5 calls; gone."""
    parts = []
    for what, before, after in zip(facts["what"], facts["value_before"], facts["value_after"], strict=True):
        if what == "bytes":
            unit = size_unit(before, after)
            parts.append(f"peak {format_bytes(before, unit)} -> {format_bytes(after, unit)}")
        elif before == 0:
            parts.append(f"new, {after:g} calls")
        elif after == 0:
            parts.append("gone")
        else:
            parts.append(f"calls {before:g} -> {after:g}")
    return "; ".join(parts)


def _environment_words(changed: pd.DataFrame) -> str:
    parts = []
    for row in changed.itertuples():
        before, after = ("-" if pd.isna(side) else str(side) for side in (row.before, row.after))
        parts.append(f"{row.key} {before} -> {after}")
    return "; ".join(parts)


def _changed_most(store: Store, found: Sequence[Place], options: HistoryOptions) -> list[pd.DataFrame]:
    """The `top` series of each place that changed most since the pinned version, by their part of the step."""
    if options.key is not None:
        raise UsageError("--top takes no name", remedy="leave out the name, or --top")
    if all(place.pinned is None for place in found):
        raise UsageError("no version is pinned that series could have changed from", remedy=_PIN)
    frames = []
    for place in found:
        frame = queries.line_series(store, place.line)
        if place.pinned is None or place.pinned.version_id == place.runs[-1].version_id:
            frames.append(frame.iloc[:0])
            continue
        with store.connect() as connection:
            moved = _contributions(connection, place.line, place.runs, place.pinned.version_id)
        frame = frame.assign(moved=[moved.get(int(number), np.nan) for number in frame["series_id"]])
        frame = frame[frame["moved"].notna()]
        kinds = set(frame["kind"])
        kind = options.kind or next((kind for kind in SERIES_KINDS[1:] if kind in kinds), None)
        frame = frame[frame["kind"] == kind]
        if options.metric is not None:
            frame = frame[frame["metric"] == options.metric]
        order = np.argsort(-frame["moved"].abs().to_numpy(dtype=float), kind="stable")
        frames.append(frame.iloc[order].head(options.top or len(frame)).drop(columns="moved"))
    if all(frame.empty for frame in frames):
        raise UsageError(
            "no series can be compared with the pinned version: it is the newest one, or has none of this kind",
            remedy="pin an older version: tracker versions pin LABEL",
        )
    return frames


def _contributions(connection: Connection, line: Line, runs: Sequence[LineRun], pinned_id: int) -> dict[int, float]:
    """Series -> its change of the step from the pinned to the newest version, as a share of the larger step; of what
    is no time, of the larger sum of its family. Only of what was recorded alike.
    """
    place = {pinned_id: 1, runs[-1].version_id: 2}
    sides = sorted((run for run in runs if run.version_id in place), key=lambda run: place[run.version_id])
    series = series_in_order(judged.series_of(connection, line))
    values, calls = judged.values_of(connection, [run.run_id for run in sides], series)
    recorded = comparable.recorded_runs(connection, sides)
    traits = traits_of(series.keys, (), device_timed=all(run.timeline == "device" for run in sides))
    track = track_of_runs(series.keys, values, calls, sides, place, recorded, traits)
    before, after = (geometric_mean(track.values, track.versions == at) for at in (1, 2))
    step = max(geometric_mean(track.step[None, :], track.versions == at)[0] for at in (1, 2))
    families = [np.bincount(traits.family, weights=side)[traits.family] for side in (before, after)]
    whole = np.where(traits.is_time & (step > 0), step, np.maximum(*families))
    there = (before + after > 0) & track.alike.all(axis=1) & (whole > 0)
    return {
        number: change
        for number, change, is_there in zip(
            series.ids.tolist(), ((after - before) / np.maximum(whole, 1e-300)).tolist(), there.tolist(), strict=True
        )
        if is_there
    }


def _series(place: Place, frame: pd.DataFrame, numbers: pd.DataFrame) -> pd.DataFrame:
    counted = numbers.groupby("series_id").agg(versions=("version_id", "nunique"), runs=("run_id", "nunique"))
    return frame.assign(
        workload=place.workload,
        configuration=place.configuration,
        device=place.device,
        unit=[unit_of_metric(metric) for metric in frame["metric"]],
        versions=counted["versions"].reindex(frame["series_id"]).fillna(0).to_numpy(dtype=int),
        runs=counted["runs"].reindex(frame["series_id"]).fillna(0).to_numpy(dtype=int),
    )


def _largest_first(series: pd.DataFrame, numbers: pd.DataFrame) -> pd.DataFrame:
    largest = numbers.groupby("series_id")["per_step"].max().reindex(series["series_id"]).fillna(0).to_numpy()
    order = np.lexsort([series["part"], series["input_shapes"], series["name"], -largest.astype(float)])
    return series.iloc[order].reset_index(drop=True)


def _concat(frames: Sequence[pd.DataFrame], table: str) -> pd.DataFrame:
    whole = pd.concat([frame for frame in frames if len(frame)] or [pd.DataFrame()], ignore_index=True)
    return whole.reindex(columns=list(HISTORY_COLUMNS[table]))
