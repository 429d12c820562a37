"""The history of series: their numbers over versions, how they were judged, levels, what else changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.columns import I64, Columns
from tracker.config.budgets import MFU
from tracker.detect import CHANGES, Thresholds, Verdict, judge_version
from tracker.detect.sides import newest
from tracker.detect.thresholds import words_of_limits
from tracker.detect.track import Track
from tracker.detect.verdicts import LEVEL_CHANGES
from tracker.errors import UsageError
from tracker.regressions.budgets import OF_OPERATOR, judge_newest
from tracker.regressions.causes import changes
from tracker.regressions.chosen_series import PIN, find_most_changed, find_named
from tracker.regressions.inbox import words_of_partial
from tracker.regressions.lifecycle import UNDECIDED
from tracker.regressions.track import (
    BEGINNING,
    TrackRuns,
    find_other_version,
    places,
    read_track,
    recorded_runs,
    settings_note,
    waiting_runs,
)
from tracker.results import HISTORY_COLUMNS, History, HistoryOptions
from tracker.results.budgets import JudgedBudget
from tracker.results.history import ChangedInVersion, FollowedSeries, HistoryPoint
from tracker.results.machine_state import marks_of_machines
from tracker.results.verdicts import EQUAL_MACHINE_REASON, OTHER_WORK_REASON
from tracker.schema.column_names import CALLS_PER_STEP, COMMIT, NOTE, PER_STEP, RUN_ID, SERIES_ID, VERSION, VERSION_ID
from tracker.schema.series import RUN
from tracker.store import Store, queries
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.findings import FindingRow
from tracker.store.queries.judgement import StoredSeriesVerdict, TrackSeries
from tracker.store.samples.statistics import over_runs
from tracker.units import format_bytes, size_unit, unit_of_metric

_MOST: Final = 500
"""Series that one history may hold."""
_Place = tuple[int, int]
"""A series, and a version."""


class _Numbers(Struct, frozen=True):
    """What the runs of a version say of a series: its values and its calls, per step."""

    values: list[float]
    calls: list[float | None]


class _Level(Struct, frozen=True):
    """The level of a series in a version that is judged: the version that began it, and the one whose runs decided."""

    begun_by: int
    settled_by: int


class _Known(Struct, frozen=True):
    """What is known of series by version. `facts`: what changed for certain, in words; `gradual`: changes of gradual
    slowdowns; `against_pinned`: verdicts against the pinned version.
    """

    numbers: Mapping[_Place, _Numbers]
    verdicts: Mapping[_Place, StoredSeriesVerdict]
    facts: Mapping[_Place, Sequence[str]]
    levels: Mapping[_Place, _Level]
    gradual: Mapping[_Place, float]
    against_pinned: Mapping[_Place, str]


class _About(Struct, frozen=True):
    """What there is to say of a version, whatever the series."""

    commit: str | None
    note: str | None
    environment: str
    machine: str


_NO_NUMBERS: Final = _Numbers([], [])


def history(store: Store, *, options: HistoryOptions) -> History:
    """Return the series that `options` name, over all versions of their workload.

    Reads only: versions whose judgement is out of date come without one, and the notes say so. UsageError where nothing
    is named, or too much.
    """
    with store.reading():
        found = places(store, options)
        if options.against == "pinned" and all(track.pinned is None for track in found):
            raise UsageError("no version is pinned", remedy=PIN)
        find = find_most_changed if options.top is not None else find_named
        pairs = [(track, rows) for track, rows in zip(found, find(store, found, options), strict=True) if rows]
        ids = [row.series_id for _, rows in pairs for row in rows]
        if len(ids) > _MOST:
            raise UsageError(
                f"{len(ids)} series match", remedy="name fewer: --kind, --shape, --metric, or a longer name"
            )
        numbers = queries.series_runs(store, ids, [run for track, _ in pairs for run in track.runs])
        for track, rows in pairs:
            numbers = _leave_out_partial(store, track, rows, numbers)
        of_series = _group_numbers(numbers)
        verdicts = {(row.series_id, row.version_id): row for row in queries.series_verdicts(store, ids)}
        facts = _read_facts(store, ids)
        notes = [run.sentence for run in waiting_runs(store, found[0].names.workload, options.device)]
        series: list[tuple[float, FollowedSeries]] = []
        points: list[HistoryPoint] = []
        before: list[HistoryPoint] = []
        environment: list[ChangedInVersion] = []
        left_out: set[tuple[int, str]] = set()
        budgets = list[JudgedBudget]()
        of_all: list[tuple[str, float | None]] = []
        incidents: dict[tuple[int, str], int] = {}
        for track, rows in pairs:
            budgets += judge_newest(store, [track], _budgeted_names(rows))
            notes += words_of_partial(track, queries.captures(store, [run.run_id for run in track.newest]))
            against_pinned: dict[_Place, str] = {}
            with store.connect() as connection:
                notes += notes_of(connection, track)
                if options.against == "pinned":
                    against_pinned, why = judge_against_pinned(connection, track)
                    notes += why
                levels = read_levels(connection, track, [row.series_id for row in rows])
                stored = stored_findings.read_findings(connection, track.key)
                numbers_of_incidents = stored_findings.read_incident_ids(connection, track.key)
                machines = stored_tracks.read_machines(connection, [run.run_id for run in track.runs])
            known = _Known(of_series, verdicts, facts, levels, _gradual_changes(stored), against_pinned)
            incidents |= _incidents_of(track, stored, ids, numbers_of_incidents)
            changed = _list_changed(store, track)
            said = queries.version_notes(store, track.key.workload_id)
            earlier, shown = _chosen_versions(options, [*track.labels.values()], said.listed(VERSION))
            environment += [change for change in changed if change.version in shown]
            about = _describe_versions(track, said, changed, machines)
            for row in rows:
                for point in _points(track, row, known, about):
                    of_all.append((point.version, point.value))
                    if point.version in shown:
                        points.append(point)
                        continue
                    left_out.add((row.series_id, point.version))
                    if point.version in earlier:
                        before.append(point)
                series.append(_follow(track, row, of_series))
    if options.top is None:
        series.sort(key=_runs_then_largest)
    if not points:
        raise UsageError("no version is left", remedy="choose a longer range: --last, --from, --to")
    runs = numbers.renamed({PER_STEP: "value", CALLS_PER_STEP: "calls"})
    if left_out:
        runs = runs.taken(np.array([place not in left_out for place in runs.rows(SERIES_ID, VERSION)], dtype=bool))
    tables = {
        "series": Columns.of_structs(FollowedSeries, [followed for _, followed in series]),
        "points": Columns.of_structs(HistoryPoint, points),
        "runs": runs.only(HISTORY_COLUMNS["runs"]),
        "environment": Columns.of_structs(ChangedInVersion, environment),
    }
    pinned = next((track.pinned.version for track, _ in pairs if track.pinned), None)
    points_before = Columns.of_structs(HistoryPoint, before) if before else None
    is_part = len(ids) == 1 and bool(left_out)
    return History(
        tables, pinned, options, tuple(dict.fromkeys(notes)), points_before, tuple(budgets),
        overview=tuple(of_all) if is_part else (), incidents=incidents,
    )  # fmt: skip


def _runs_then_largest(followed: tuple[float, FollowedSeries]) -> tuple[Any, ...]:
    """Return a sort key: whole runs first, then the largest."""
    largest, row = followed
    return row.kind != RUN, -largest, row.name, row.input_shapes, row.part, row.step_kind


def _follow(track: TrackRuns, row: TrackSeries, numbers: Mapping[_Place, _Numbers]) -> tuple[float, FollowedSeries]:
    """Return a series with its track, behind its largest value."""
    values = [numbers.get((row.series_id, version), _NO_NUMBERS).values for version in track.order]
    followed = FollowedSeries(
        series_id=row.series_id,
        workload=track.names.workload,
        configuration=track.names.configuration,
        device=track.names.device,
        kind=row.kind,
        metric=row.metric,
        unit=unit_of_metric(row.metric),
        name=row.name,
        input_shapes=row.input_shapes,
        part=row.part,
        step_kind=row.step_kind,
        versions=sum(map(bool, values)),
        runs=sum(map(len, values)),
    )
    return max((value for of_version in values for value in of_version), default=0), followed


def _list_changed(store: Store, track: TrackRuns) -> list[ChangedInVersion]:
    """Return the facts that no run of a version shares with any run of the version before."""
    changed = []
    for version, key, before, after in changes(store, track):
        change = ChangedInVersion(
            workload=track.names.workload,
            configuration=track.names.configuration,
            device=track.names.device,
            version=version,
            key=key,
            before=before,
            after=after,
        )
        changed.append(change)
    return changed


def _describe_versions(
    track: TrackRuns,
    said: Columns,
    changed: Sequence[ChangedInVersion],
    machines: Mapping[int, Mapping[str, str]],
) -> dict[int, _About]:
    """Return what there is to say of each version.

    said: commit and notes of the versions.
    changed: facts that changed with them.
    machines: the state of the machine in each run.
    """
    machines_of: dict[str, list[Mapping[str, str]]] = {}
    for run in track.runs:
        machines_of.setdefault(run.version, []).append(machines.get(run.run_id, {}))
    about = {}
    for number, version, commit, note in said.rows(VERSION_ID, VERSION, COMMIT, NOTE):
        words = [f"{one.key} {one.before or '-'} -> {one.after or '-'}" for one in changed if one.version == version]
        about[number] = _About(commit, note, "; ".join(words), marks_of_machines(machines_of.get(version, ())))
    return about


def _budgeted_names(rows: Sequence[TrackSeries]) -> set[str]:
    """Return the names of the series of which budgets are shown beside these."""
    names = {row.name for row in rows if row.kind in (RUN, OF_OPERATOR)}
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


def _leave_out_partial(store: Store, track: TrackRuns, rows: Sequence[TrackSeries], numbers: Columns) -> Columns:
    """Return the numbers without those of runs that lost records on which a series rests, where another run of the
    version has them: a number rests on the runs that its verdict rests on.
    """
    with store.connect() as connection:
        stated = recorded_runs(connection, track.runs)
    partial = {run.run_id: own.recording for run, own in zip(track.runs, stated, strict=True)}
    partial = {run_id: own for run_id, own in partial.items() if own.incomplete.forbids}
    if not partial:
        return numbers
    keys = {row.series_id: row.key for row in rows}
    places = [*numbers.rows(SERIES_ID, VERSION_ID, RUN_ID)]
    lacks = [run in partial and at in keys and partial[run].lacks(keys[at]) for at, _, run in places]
    has_whole = {place[:2] for place, is_lost in zip(places, lacks, strict=True) if not is_lost}
    kept = [place[:2] not in has_whole or not is_lost for place, is_lost in zip(places, lacks, strict=True)]
    return numbers.taken(np.array(kept, dtype=bool))


def _group_numbers(numbers: Columns) -> dict[_Place, _Numbers]:
    """Return what runs say of series by version."""
    grouped: dict[_Place, _Numbers] = {}
    for series_id, version, value, calls in numbers.rows(SERIES_ID, VERSION_ID, PER_STEP, CALLS_PER_STEP):
        of_version = grouped.setdefault((series_id, version), _Numbers([], []))
        of_version.values.append(value)
        of_version.calls.append(calls)
    return grouped


def _read_facts(store: Store, ids: Sequence[int]) -> dict[_Place, list[str]]:
    """Return what changed of series for certain by version, in words."""
    facts: dict[_Place, list[str]] = {}
    columns = ("series_id", "version_id", "what", "value_before", "value_after")
    for series_id, version, what, before, after in queries.series_facts(store, ids).rows(*columns):
        facts.setdefault((series_id, version), []).append(_fact_words(what, before, after))
    return facts


def read_levels(connection: Connection, track: TrackRuns, series_ids: Sequence[int]) -> dict[_Place, _Level]:
    """Return the levels of these series in the versions that are judged."""
    late = set(track.late)
    order = [version for version in track.order if version not in late]
    wanted = np.array(series_ids, dtype=np.int64)
    found = {}
    for version, stored in stored_findings.read_levels(connection, track.key, order).items():
        where = stored_tracks.places_in(wanted, stored.series_ids)
        levels, settled = (np.append(own, BEGINNING)[where] for own in (stored.levels, stored.settled))
        for number, level, by in zip(series_ids, levels.tolist(), settled.tolist(), strict=True):
            found[number, version] = _Level(level, by or version)
    return found


def _incidents_of(
    track: TrackRuns, findings: Sequence[FindingRow], series_ids: Sequence[int], incidents: Mapping[int, int]
) -> dict[tuple[int, str], int]:
    """Return the incident of each change of these series, by the version that it began with. `incidents`: the number of
    each by the number of that version.
    """
    wanted = set(series_ids)
    found = {}
    for row in findings:
        version = row.first_version_id
        if row.series_id in wanted and row.state != "withdrawn" and version in incidents and version in track.labels:
            found[row.series_id, track.labels[version]] = incidents[version]
    return found


def _gradual_changes(findings: Sequence[FindingRow]) -> dict[_Place, float]:
    """Return the gradual slowdowns of a track, as ratios, each with its series and the version that began it."""
    slowdowns = {}
    for row in findings:
        if row.how == "gradual" and row.state != "withdrawn":
            slowdowns[row.series_id, row.first_version_id] = float(np.expm1(row.size))
    return slowdowns


def _points(track: TrackRuns, series: TrackSeries, known: _Known, about: Mapping[int, _About]) -> list[HistoryPoint]:
    """Return one point per version of the track. `about`: what there is to say of versions."""
    label, pinned = {**track.labels, BEGINNING: ""}, track.pinned
    reference = None
    if pinned is not None:
        reference = _number(known.numbers.get((series.series_id, pinned.version_id), _NO_NUMBERS).values)
    points: list[HistoryPoint] = []
    level_before = BEGINNING
    for version, name in track.labels.items():
        place = (series.series_id, version)
        numbers, level = known.numbers.get(place, _NO_NUMBERS), known.levels.get(place)
        value = _number(numbers.values)
        is_pinned = pinned is not None and pinned.version_id == version
        begun_by = UNDECIDED if level is None else level.begun_by
        back_to = None
        if begun_by not in (UNDECIDED, level_before, version):
            back_to = track.labels.get(begun_by, next(iter(track.labels.values())))
        point = HistoryPoint(
            series_id=series.series_id,
            version=name,
            pinned=is_pinned,
            commit=about[version].commit,
            note=about[version].note,
            runs=len(numbers.values),
            value=value,
            minimum=min(numbers.values, default=None),
            maximum=max(numbers.values, default=None),
            calls=_number(numbers.calls),
            change_point=level is not None and begun_by == version,
            back_to=back_to,
            gradual_change=known.gradual.get(place) if level is not None else None,
            facts="; ".join(known.facts.get(place, ())) if level is not None else "",
            pinned_change=None if is_pinned else _ratio(reference, value),
            pinned_verdict=known.against_pinned.get(place),
            environment=about[version].environment,
            machine=about[version].machine,
        )
        verdict = known.verdicts.get(place)
        if level is not None and verdict is not None:
            settled_by = label.get(level.settled_by, "") if level.settled_by != version else None
            before = points[-1] if points else None
            point = _judge_point(point, verdict, label, settled_by, before, is_of_run=series.kind == RUN)
        if begun_by != UNDECIDED:
            level_before = begun_by
        points.append(point)
    return points


def _judge_point(
    point: HistoryPoint,
    stated: StoredSeriesVerdict,
    label: Mapping[int, str],
    settled_by: str | None,
    before: HistoryPoint | None,
    *,
    is_of_run: bool,
) -> HistoryPoint:
    """Return a point as it was judged.

    label: of versions, by number.
    settled_by: the version whose runs decided, None for its own.
    before: the point of the version before.
    is_of_run: it is a number of the whole run.
    """
    # of these the judged change leaves out what hosts differ by, and nothing else
    has_own_change = is_of_run and stated.judged_change is not None and stated.reason != EQUAL_MACHINE_REASON
    # too few runs of the same work, which no further run would change
    is_other_work = stated.reason == OTHER_WORK_REASON
    decided_by = settled_by if stated.decided is not None else None
    since = None
    if before is not None and stated.decided in LEVEL_CHANGES and before.verdict == stated.decided:
        # single runs that were decided together tell of one change
        is_together = bool(before.decided_by) and before.decided_by in (point.version, decided_by)
        since = (before.since or before.version) if is_together else None
    return replace(
        point,
        level_version="" if stated.level_version_id is None else label.get(stated.level_version_id, ""),
        verdict=None if is_other_work else stated.decided or stated.verdict,
        reason=stated.reason,
        change=stated.judged_change if has_own_change else stated.raw_change,
        judged_change=stated.judged_change,
        q=stated.q,
        contribution=stated.contribution,
        decided_by=decided_by,
        since=since,
    )


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


def judge_against_pinned(connection: Connection, track: TrackRuns) -> tuple[dict[_Place, str], list[str]]:
    """Return the verdicts of a track against its pinned version, since small steps that no version decides add up; and
    why there are none, nothing where there are.

    As in a diff of the two; where that is no change, by the test of a gradual slowdown: the runs of the version and the
    one before, at least 4, against those of the pinned version. Without it are the pinned version and those before it.
    """
    pinned, limits = track.pinned, track.thresholds
    where = f"{track.names.device} {track.names.configuration}".strip()
    if pinned is None:
        return {}, [f"Not judged against the pinned version: it has no runs on {where}."]
    own = len(track.runs_of(pinned.version_id))
    if own < limits.least_base:
        why = f"{pinned.version} has {own} of {limits.least_base} runs on {where}"
        return {}, [f"Not judged against the pinned version: {why}."]
    first = track.place[pinned.version_id]
    runs = [run for run in track.runs if track.place[run.version_id] >= first]
    data = read_track(connection, track, runs, like=0)
    verdicts = {}
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
                verdicts[number, track.order[at - 1]] = Verdict(code).name
    return verdicts, []


def _against(track: Track, first: int, new: I64, at: int, limits: Thresholds, ratio: float | None = None) -> I64:
    """Return the verdicts of the runs `new` of the version at `at` against those of the version at `first`."""
    window, columns = track.window(at, np.flatnonzero(track.versions == first), new, limits)
    is_new = np.isin(columns, new)
    base = newest(window.recorded & ~is_new, limits.window)
    return judge_version(window, track.series, base, is_new, ratio=ratio, limits=limits).verdict
