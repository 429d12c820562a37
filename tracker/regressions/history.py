"""The history of series: their numbers over versions, how they were judged, levels, what else changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
from msgspec.structs import asdict, replace
from sqlalchemy import Connection

from tracker.columns import I64, Columns
from tracker.config.budgets import MFU
from tracker.detect import CHANGES, Thresholds, Verdict, judge_version
from tracker.detect.sides import newest
from tracker.detect.thresholds import like, words_of_limits
from tracker.detect.track import Track
from tracker.errors import UsageError
from tracker.regressions.budgets import OF_OPERATOR, judge_newest
from tracker.regressions.causes import changes
from tracker.regressions.inbox import words_of_partial
from tracker.regressions.lifecycle import UNDECIDED
from tracker.regressions.track import (
    BEGINNING,
    TrackRuns,
    find_other_version,
    geometric_mean,
    places,
    read_track,
    recorded_runs,
    settings_note,
    waiting_runs,
)
from tracker.results import HISTORY_COLUMNS, SERIES_KINDS, History, HistoryOptions
from tracker.results.budgets import JudgedBudget
from tracker.results.machine_state import marks_of_machines
from tracker.results.verdicts import EQUAL_MACHINE_REASON, OTHER_WORK_REASON
from tracker.schema.series import RUN, SeriesKey
from tracker.store import Store, queries
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.samples.statistics import over_runs
from tracker.units import format_bytes, size_unit, unit_of_metric

_CHANGED: Final = ("REGRESSED", "IMPROVED")
_PIN: Final = "pin one: tracker versions pin LABEL --workload WORKLOAD"
_MOST: Final = 500
"""Series that one history may hold."""
_PATTERN: Final = "*?["
_NAMED: Final = 5
"""Values that an error names at most."""
_AS_THE_STEP: Final = ("e2e", "mean step")
"""Series of whole runs that say what the step says, where that is known."""

Row = dict[str, Any]
Cells = dict[tuple[int, int], Row]
"""Series and version -> what is known of it: `values` and `calls` of its runs, `facts` in words; of a version that is
judged `level`, the version with which its level began, and `stated`, its verdict; `gradual`: a slowdown found;
`pinned`: the verdict against the pinned version.
"""


def history(store: Store, *, options: HistoryOptions) -> History:
    """Return the series that `options` name, over all versions of their workload.

    Reads only: versions whose judgement is out of date come without one, and the notes say so. UsageError where nothing
    is named, or too much.
    """
    with store.reading():
        found = places(store, options)
        if options.against == "pinned" and all(track.pinned is None for track in found):
            raise UsageError("no version is pinned", remedy=_PIN)
        chosen = _changed_most(store, found, options) if options.top is not None else named(store, found, options)
        pairs = [(track, rows) for track, rows in zip(found, chosen, strict=True) if rows]
        ids = [row["series_id"] for _, rows in pairs for row in rows]
        if len(ids) > _MOST:
            raise UsageError(
                f"{len(ids)} series match", remedy="name fewer: --kind, --shape, --metric, or a longer name"
            )
        numbers = queries.series_runs(store, ids, [run for track, _ in pairs for run in track.runs])
        for track, rows in pairs:
            numbers = _leave_out_partial(store, track, rows, numbers)
        cells = _cells(store, ids, numbers)
        notes = [run.sentence for run in waiting_runs(store, found[0].names.workload, options.device)]
        made: dict[str, list[Row]] = {"series": [], "points": [], "environment": [], "earlier": []}
        left_out: set[tuple[int, str]] = set()
        budgets = list[JudgedBudget]()
        for track, rows in pairs:
            budgets += judge_newest(store, [track], _budgeted_names(rows))
            notes += words_of_partial(store, track)
            with store.connect() as connection:
                notes += notes_of(connection, track)
                if options.against == "pinned":
                    notes += against_pinned(connection, track, cells)
                add_levels(connection, track, [row["series_id"] for row in rows], cells)
                machines = stored_tracks.read_machines(connection, [run.run_id for run in track.runs])
            changed = changes(store, track)
            said = queries.version_notes(store, track.key.workload_id)
            earlier, shown = _chosen_versions(options, [*track.labels.values()], said.listed("version"))
            made["environment"] += [
                {**asdict(track.names), "version": version, "key": key, "before": before, "after": after}
                for version, key, before, after in changed
                if version in shown
            ]
            machines_of: dict[str, list[Mapping[str, str]]] = {}
            for run in track.runs:
                machines_of.setdefault(run.version, []).append(machines.get(run.run_id, {}))
            about = {}
            for number, version, commit, note in said.rows("version_id", "version", "commit", "note"):
                words = [f"{key} {old or '-'} -> {new or '-'}" for of, key, old, new in changed if of == version]
                machine = marks_of_machines(machines_of.get(version, ()))
                about[number] = {"commit": commit, "note": note, "environment": "; ".join(words), "machine": machine}
            for row in rows:
                for point in _points(track, row["series_id"], cells, about, of_run=row["kind"] == RUN):
                    if point["version"] in shown:
                        made["points"].append(point)
                        continue
                    left_out.add((row["series_id"], point["version"]))
                    if point["version"] in earlier:
                        made["earlier"].append(point)
                values = [cells[row["series_id"], version]["values"] for version in track.order]
                largest = max((value for own in values for value in own), default=0)
                counts = {"versions": sum(map(bool, values)), "runs": sum(map(len, values)), "largest": largest}
                made["series"].append({**row, **asdict(track.names), **counts, "unit": unit_of_metric(row["metric"])})
    if options.top is None:
        made["series"].sort(
            key=lambda row: (
                row["kind"] != RUN,
                -row["largest"],
                row["name"],
                row["input_shapes"],
                row["part"],
                row["step_kind"],
            )
        )
    if not made["points"]:
        raise UsageError("no version is left", remedy="choose a longer range: --last, --from, --to")
    runs = numbers.renamed({"per_step": "value", "calls_per_step": "calls"})
    if left_out:
        runs = runs.taken(np.array([place not in left_out for place in runs.rows("series_id", "version")], dtype=bool))
    tables = {
        name: runs.only(columns) if name == "runs" else Columns.of_rows(made[name], columns)
        for name, columns in HISTORY_COLUMNS.items()
    }
    pinned = next((track.pinned.version for track, _ in pairs if track.pinned), None)
    before = Columns.of_rows(made["earlier"], HISTORY_COLUMNS["points"]) if made["earlier"] else None
    return History(tables, pinned, options, tuple(dict.fromkeys(notes)), before, tuple(budgets))


def _budgeted_names(rows: Sequence[Row]) -> set[str]:
    """Return the names of the series of which budgets are shown beside these."""
    names = {row["name"] for row in rows if row["kind"] in (RUN, OF_OPERATOR)}
    # MFU is no series: it is the step by what the model needs
    return names | {MFU} if "step" in names else names


def _chosen_versions(
    options: HistoryOptions, of_track: Sequence[str], of_workload: Sequence[str]
) -> tuple[set[str], set[str]]:
    """Return the versions of a track before those that `options` choose, and these; UsageError for one that is none.

    Both take the versions in their order. The ends of a range may be versions without a run on this track.
    """
    place = {label: at for at, label in enumerate(of_workload)}
    for label in (options.from_version, options.to_version):
        if label is not None and label not in place:
            near = get_close_matches(label, place, 1)
            remedy = f"did you mean {near[0]}?" if near else "tracker versions lists them"
            raise UsageError(f"there is no version {label!r}", remedy=remedy)
    first = place[options.from_version] if options.from_version is not None else 0
    last = place[options.to_version] if options.to_version is not None else len(place)
    within = [label for label in of_track if first <= place[label] <= last]
    if options.last is not None:
        within = within[-options.last :]
    start = place[within[0]] if within else first
    return {label for label in of_track if place[label] < start}, set(within)


def notes_of(connection: Connection, track: TrackRuns) -> list[str]:
    """Say what a reader of the verdicts of a track must know: limits of users, what is out of date, other settings."""
    notes = []
    if track.limits:
        notes.append(f"Judged by thresholds of your own: {words_of_limits(track.limits)}.")
    if track.late:
        late = ", ".join(track.labels[version] for version in track.late)
        notes.append(
            f"The judgement of {late} is out of date and left out; tracker versions judge brings it up to date."
        )
    if settings := settings_note(connection, track):
        notes.append(settings)
    if other := find_other_version(connection, track, track.order[-1]):
        notes.append(f"{other.sentence}.")
    return notes


def _leave_out_partial(store: Store, track: TrackRuns, rows: Sequence[Row], numbers: Columns) -> Columns:
    """Return the numbers without those of runs that lost records on which a series rests, where another run of the
    version has them: a number rests on the runs that its verdict rests on.
    """
    with store.connect() as connection:
        stated = recorded_runs(connection, track.runs)
    partial = {run.run_id: own.recording for run, own in zip(track.runs, stated, strict=True)}
    partial = {run_id: own for run_id, own in partial.items() if own.incomplete.forbids}
    if not partial:
        return numbers
    keys = {row["series_id"]: SeriesKey(*(row[name] for name in SeriesKey._fields)) for row in rows}
    places = [*numbers.rows("series_id", "version_id", "run_id")]
    lacks = [run in partial and at in keys and partial[run].lacks(keys[at]) for at, _, run in places]
    has_whole = {place[:2] for place, is_lost in zip(places, lacks, strict=True) if not is_lost}
    kept = [place[:2] not in has_whole or not is_lost for place, is_lost in zip(places, lacks, strict=True)]
    return numbers.taken(np.array(kept, dtype=bool))


def _cells(store: Store, ids: Sequence[int], numbers: Columns) -> Cells:
    """Return what runs say of series by version, how these were judged, and what changed of them for certain."""
    cells: Cells = defaultdict(lambda: {"values": [], "calls": [], "facts": []})
    for at, version, value, calls in numbers.rows("series_id", "version_id", "per_step", "calls_per_step"):
        cells[at, version]["values"].append(value)
        cells[at, version]["calls"].append(calls)
    for row in queries.series_verdicts(store, ids).records():
        cells[row["series_id"], row["version_id"]]["stated"] = row
    for row in queries.series_facts(store, ids).records():
        words = _fact_words(row["what"], row["value_before"], row["value_after"])
        cells[row["series_id"], row["version_id"]]["facts"].append(words)
    return cells


def add_levels(connection: Connection, track: TrackRuns, series_ids: Sequence[int], cells: Cells) -> None:
    """Add the levels of these series in the versions that are judged, and the gradual slowdowns of the track."""
    late = set(track.late)
    order = [version for version in track.order if version not in late]
    wanted = np.array(series_ids, dtype=np.int64)
    for version, stored in stored_findings.read_levels(connection, track.key, order).items():
        where = stored_tracks.places_in(wanted, stored.series_ids)
        levels, settled = (np.append(own, BEGINNING)[where] for own in (stored.levels, stored.settled))
        for number, level, by in zip(series_ids, levels.tolist(), settled.tolist(), strict=True):
            cells[number, version] |= {"level": level, "settled": by or version}
    for row in stored_findings.read_findings(connection, track.key):
        if row.how == "gradual" and row.state != "withdrawn":
            cells[row.series_id, row.first_version_id]["gradual"] = float(np.expm1(row.size))


def _points(
    track: TrackRuns, number: int, cells: Cells, about: Mapping[int, Row], *, of_run: bool
) -> list[Row]:  # fmt: skip
    """Return one row per version of the track. `about`: notes on versions; `of_run`: of a number of the whole run."""
    label, pinned = {**track.labels, BEGINNING: ""}, track.pinned
    reference = _number(cells[number, pinned.version_id]["values"]) if pinned else None
    rows: list[Row] = []
    before = BEGINNING
    for version, name in track.labels.items():
        cell = cells[number, version]
        values, level = cell["values"], cell.get("level", UNDECIDED)
        value = _number(values)
        is_pinned = pinned is not None and pinned.version_id == version
        row = {
            "series_id": number, "version": name, "pinned": is_pinned, "runs": len(values), "value": value,
            "minimum": min(values, default=None), "maximum": max(values, default=None),
            "calls": _number(cell["calls"]), "change_point": False, "facts": "",
            "pinned_change": None if is_pinned else _ratio(reference, value),
            "pinned_verdict": cell.get("pinned"), **about[version],
        }  # fmt: skip
        if "level" in cell:
            row |= {"change_point": level == version, "facts": "; ".join(cell["facts"])}
            row["gradual_change"] = cell.get("gradual")
        if "level" in cell and "stated" in cell:
            stated = cell["stated"]
            against, decided = stated["level_version_id"], stated["decided"]
            row |= {
                "level_version": label.get(against, ""), "verdict": decided or stated["verdict"],
                "reason": stated["reason"], "change": stated["raw_change"],
                **{name: stated[name] for name in ("judged_change", "q", "contribution")},
            }  # fmt: skip
            if of_run and stated["judged_change"] is not None and stated["reason"] != EQUAL_MACHINE_REASON:
                # of these it leaves out what hosts differ by, and nothing else
                row["change"] = stated["judged_change"]
            if stated["reason"] == OTHER_WORK_REASON:
                # too few runs of the same work, which no further run would change
                row["verdict"] = None
            if decided is not None and cell.get("settled", version) != version:
                row["decided_by"] = label.get(cell["settled"], "")
            # single runs that were decided together tell of one change
            last: Row = rows[-1] if rows else {}
            together = last.get("decided_by") in (name, row.get("decided_by")) and last.get("decided_by")
            if decided in _CHANGED and together and last.get("verdict") == decided:
                row["since"] = last.get("since") or last["version"]
        if level not in (UNDECIDED, before, version):
            row["back_to"] = track.labels.get(level, next(iter(track.labels.values())))
        before = before if level == UNDECIDED else level
        rows.append(row)
    return rows


def _number(values: Sequence[float | None]) -> float | None:
    """Return the number of several runs; None where none is known."""
    known = [value for value in values if value is not None]
    return float(over_runs(np.array([known]))[0]) if known else None


def _ratio(before: float | None, after: float | None) -> float | None:
    return None if not before or after is None else after / before - 1


def _fact_words(what: str, before: float, after: float) -> str:
    """Say an exact fact in words: calls 129 -> 135; peak 45.8 MiB -> 66.1 MiB; new, 5 calls; gone."""
    if what == "bytes":
        unit = size_unit(before, after)
        return f"peak {format_bytes(before, unit)} -> {format_bytes(after, unit)}"
    if before == 0:
        return f"new, {after:g} calls"
    return "gone" if after == 0 else f"calls {before:g} -> {after:g}"


def against_pinned(connection: Connection, track: TrackRuns, cells: Cells) -> list[str]:
    """Add the verdicts of a track against its pinned version, since small steps that no version decides add up; why
    there are none, nothing where there are.

    As in a diff of the two; where that is no change, by the test of a gradual slowdown: the runs of the version and the
    one before, at least 4, against those of the pinned version. Without it are the pinned version and those before it.
    """
    pinned, limits = track.pinned, track.thresholds
    where = f"{track.names.device} {track.names.configuration}".strip()
    if pinned is None:
        return [f"Not judged against the pinned version: it has no runs on {where}."]
    own = len(track.runs_of(pinned.version_id))
    if own < limits.least_base:
        why = f"{pinned.version} has {own} of {limits.least_base} runs on {where}"
        return [f"Not judged against the pinned version: {why}."]
    first = track.place[pinned.version_id]
    runs = [run for run in track.runs if track.place[run.version_id] >= first]
    data = read_track(connection, track, runs, like=0)
    for at in range(first + 1, len(track.order) + 1):
        found = _against(data, first, np.flatnonzero(data.versions == at), at, limits)
        # the runs of the version and of the one before; where these are fewer, the last ones since the pinned version
        both = np.flatnonzero((data.versions > max(first, at - 2)) & (data.versions <= at))
        if len(both) < limits.least_gradual:
            both = np.flatnonzero((data.versions > first) & (data.versions <= at))[-limits.least_gradual :]
        if len(both) >= limits.least_gradual:
            gradual = replace(limits, alpha=limits.alpha_gradual)
            slow = _against(data, first, both, at, gradual, ratio=limits.gradual_ratio)
            found = np.where(np.isin(slow, CHANGES) & ~np.isin(found, CHANGES), slow, found)
        for number, code in zip(data.ids.tolist(), found.tolist(), strict=True):
            if code != Verdict.ABSENT:
                cells[number, track.order[at - 1]]["pinned"] = Verdict(code).name
    return []


def _against(track: Track, first: int, new: I64, at: int, limits: Thresholds, ratio: float | None = None) -> I64:
    """Return the verdicts of the runs `new` of the version at `at` against those of the version at `first`."""
    window, columns = track.window(at, np.flatnonzero(track.versions == first), new, limits)
    is_new = np.isin(columns, new)
    base = newest(window.recorded & ~is_new, limits.window)
    return judge_version(window, track.series, base, is_new, ratio=ratio, limits=limits).verdict


def named(store: Store, found: Sequence[TrackRuns], options: HistoryOptions) -> list[list[Row]]:
    """Return the series that the options name, those of each track; UsageError where no track has one."""
    key = options.key
    if options.module is not None and key is not None:
        raise UsageError(
            "an op is not followed module by module", remedy="give the name of an op, or --module PATTERN alone"
        )
    is_number = key is not None and key.isascii() and key.isdigit()
    is_pattern = key is not None and any(char in key for char in _PATTERN)
    is_named = like(options.module or key or "*")

    def series(track: TrackRuns, name: str | None = None) -> list[Row]:
        return queries.track_series(store, track.key, name).records()

    def is_meant(row: Row) -> bool:
        return row["series_id"] == int(key or 0) if is_number else is_named(row["name"])

    # one name is looked up; patterns, and names that are not there, take all
    name = None if is_number or is_pattern else key
    all_of = [_filtered(series(track, name), options) for track in found]
    if name is not None and not any(all_of):
        all_of = [_filtered(series(track), options) for track in found]
    matching = [[row for row in rows if is_meant(row)] for rows in all_of]
    if options.module is None and not is_number:
        kinds = {row["kind"] for rows in matching for row in rows}
        if is_pattern:
            kinds_meant = _kinds_below_runs(kinds)
        else:
            # the kind that is meant where several have the name
            order = SERIES_KINDS if key is not None else SERIES_KINDS[1:]
            kinds_meant = _first_kind(kinds, order)
        matching = [[row for row in rows if row["kind"] in kinds_meant] for rows in matching]
    if any(matching):
        return matching
    # where the key is known, the filter is named that leaves nothing of it, and not the key
    known = [] if key is None else [row for track in found for row in series(track) if is_meant(row)]
    for name, column in (("kind", "kind"), ("metric", "metric"), ("shape", "input_shapes")):
        value = getattr(options, name)
        left = _filtered(known, HistoryOptions(**{name: value}))
        if known and not left:
            there = list(dict.fromkeys(row[column] for row in known if row[column]))
            more = f", and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
            remedy = f"its {name}s are {', '.join(there[:_NAMED])}{more}" if there else f"leave out --{name}"
            raise UsageError(f"no series {key!r} is left by --{name} {value}", remedy=remedy)
        known = left
    wanted = key or options.module or options.shape or "these options"
    close = get_close_matches(wanted, sorted({row["name"] for rows in all_of for row in rows}), n=3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    raise UsageError(f"no series is called {wanted!r}", remedy=f"{meant}tracker history '*' lists them")


def _first_kind(kinds: Collection[str], order: Sequence[str]) -> set[str]:
    """Return the first of `order` that is in `kinds`, as a set; an empty one where none is."""
    return {*[kind for kind in order if kind in kinds][:1]}


def _kinds_below_runs(kinds: Collection[str]) -> set[str]:
    """Return the kinds of `kinds` that are listed together: the numbers of whole runs (the step, its parts, memory),
    and the first one of what happens in a run, such as operators.
    """
    return {RUN} & {*kinds} | _first_kind(kinds, SERIES_KINDS[1:])


def _filtered(series: Sequence[Row], options: HistoryOptions) -> list[Row]:
    return [
        row for row in series
        if options.kind in (None, row["kind"])
        and (options.module is None or row["kind"] == "module")
        and options.metric in (None, row["metric"])
        and (options.shape is None or (row["input_shapes"] and like(options.shape)(row["input_shapes"])))
    ]  # fmt: skip


def _changed_most(store: Store, found: Sequence[TrackRuns], options: HistoryOptions) -> list[list[Row]]:
    """Return the `top` series of each track that changed most from the pinned to the newest version, by their part of
    the step: of the larger one, and of what is no time, of the larger sum of its family, which of peak memory is its
    own. Of whole runs and of operators, unless a kind is named. Only of what was recorded alike.
    """
    if options.key is not None:
        raise UsageError("--top takes no name", remedy="leave out the name, or --top")
    if all(track.pinned is None for track in found):
        raise UsageError("no version is pinned that series could have changed from", remedy=_PIN)
    chosen: list[list[Row]] = []
    for track in found:
        chosen.append([])
        if track.pinned is None or track.pinned.version_id == track.order[-1]:
            continue
        with store.connect() as connection:
            data = read_track(connection, track, [*track.runs_of(track.pinned.version_id), *track.newest])
        sides = [data.versions == place for place in (track.place[track.pinned.version_id], len(track.order))]
        before, after = (geometric_mean(data.values, side) for side in sides)
        step = max(geometric_mean(data.step[None, :], side)[0] for side in sides)
        families = [np.bincount(data.series.family, weights=side)[data.series.family] for side in (before, after)]
        whole = np.where(data.series.is_time & (step > 0), step, np.maximum(*families))
        known = np.flatnonzero((before + after > 0) & data.alike.all(axis=1) & (whole > 0))
        moved = dict(zip(data.ids[known].tolist(), (after - before)[known] / whole[known], strict=True))
        rows = [row for row in queries.track_series(store, track.key).records() if row["series_id"] in moved]
        has_step = any((row["kind"], row["name"]) == (RUN, "step") for row in rows)
        kinds = {options.kind} if options.kind else _kinds_below_runs({row["kind"] for row in rows})
        rows = [row for row in rows if row["kind"] in kinds and options.metric in (None, row["metric"])]
        if has_step and options.kind is None:
            rows = [row for row in rows if row["kind"] != RUN or row["name"] not in _AS_THE_STEP]
        rows.sort(key=lambda row: -abs(moved[row["series_id"]]))
        chosen[-1] = rows[: options.top or None]
    if not any(chosen):
        raise UsageError(
            "no series can be compared with the pinned version: it is the newest one, or has none of this kind",
            remedy="pin an older version: tracker versions pin LABEL",
        )
    return chosen
