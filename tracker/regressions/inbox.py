"""What was found, for the reader: findings under their incident, rolled up, with an explanation that adds up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.detect.series import NO_OPERATORS
from tracker.errors import FIRST_INGEST, UsageError
from tracker.regressions import causes
from tracker.regressions.budgets import judge_newest
from tracker.regressions.coverage import sentences_on_missing
from tracker.regressions.experiments import with_experiments
from tracker.regressions.found import FoundFinding, IncidentStep, as_one, keep_columns, order_in_incident
from tracker.regressions.hosts import note_of, share_hosts
from tracker.regressions.incidents import (
    explain_incident,
    list_runs,
    make_incident,
    share_of,
    urgency_of,
    with_leading_cause,
)
from tracker.regressions.judged_rows import SIGNS, verdict_word
from tracker.regressions.run_numbers import RunNumbers
from tracker.regressions.scaled_inputs import find_concerned
from tracker.regressions.sides import newest_gates
from tracker.regressions.standings import list_awaited, list_runs_of_standings, make_standing
from tracker.regressions.track import (
    TrackRuns,
    find_other_version,
    named_tracks,
    read_tracks,
    settings_note,
    waiting_runs,
)
from tracker.results import CONFIRMED_STATES, ENDED_STATES, OPEN_STATES, Findings, FindingsOptions
from tracker.results.coverage import Coverage
from tracker.results.findings import FindingsRows, ListedFinding, ListedIncident
from tracker.results.partial import find_partial
from tracker.results.waiting import AwaitedRuns
from tracker.schema.column_names import QUALITY_REASON, RANK, RUN_ID, SETTINGS
from tracker.store import Store, queries, read_one_state
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.findings import StoredFinding
from tracker.store.queries.judgement import UserWord
from tracker.store.samples.statistics import over_runs
from tracker.store.tracks import SeriesTable, TrackKey
from tracker.units import unit_of_metric

_SETTLED: Final = {"ack": "acknowledged", "expect": "expected"}
_SAME: Final = {"e2e": "step", "mean step": "step"}
"""Series of whole runs -> the one that says the same of markers."""
_ABOVE: Final = {"op": ("op_name",), "memory": ("op_name", "op"), "run": ("run",)}
"""Kind -> kinds that say the same one level up."""


class FindingState(Struct, frozen=True):
    """The state of a finding, and the end of its mute: a moment, or a version."""

    state: str
    until_ns: int | None = None
    until_version: str | None = None


class _Calls(Struct, frozen=True):
    """Calls per step of both sides, None where that is not known."""

    baseline: float | None = None
    candidate: float | None = None


@read_one_state
def findings(store: Store, *, options: FindingsOptions | None = None) -> Findings:
    """Return the findings that `options` leave, under their incidents; those of a branch only where it is named.

    Reads only.

    UsageError where a workload, a device or a version is named that has no runs.
    """
    options = options or FindingsOptions()
    tracks = _tracks(store, options)
    several = len({track.names.workload for track in tracks}) > 1
    rows = found_rows(store, options, tracks=tracks)
    chosen = [row for row in rows if is_wanted(row, options)]
    incident_ids = dict.fromkeys(row.incident_id for row in chosen if row.incident_id is not None)
    rows_of: dict[int, list[FoundFinding]] = {number: [] for number in incident_ids}
    for row in rows:
        if row.incident_id in rows_of:
            rows_of[row.incident_id].append(row)
    runs_of_incidents = list_runs([row for own in rows_of.values() for row in own])
    numbers = RunNumbers(store, {*runs_of_incidents, *list_runs_of_standings(tracks)})
    explained = [explain_incident(store, own, numbers) for own in rows_of.values()]
    explained.sort(key=lambda one: urgency_of(one[0]))
    incidents = [incident for incident, _ in explained]
    places = {incident.incident_id: place for place, incident in enumerate(incidents)}
    # under what is shown, not under what the options leave out
    chosen = roll_up(chosen)
    shown = chosen if options.every else [as_one(row) for row in chosen if row.under is None]
    shown = [_with_share(row, incidents, places) for row in shown]
    shown.sort(key=lambda row: (places.get(row.incident_id, len(places)), *order_in_incident(row)))
    lines, partial = [], list[str]()
    notes = [run.sentence for run in waiting_runs(store, options.workload, options.device)]
    captures = queries.captures(store, [run.run_id for track in tracks for run in track.newest])
    for track in tracks:
        with store.connect() as connection:
            gates = newest_gates(connection, track)
            notes.append(settings_note(connection, track))
            other = find_other_version(connection, track, track.order[-1])
        if other is not None:
            notes.append(f"{other.sentence}. Its step is not judged, and neither are these operators.")
        host = next((own.host for own in gates.values() if own.host), "")
        notes.append(note_of(host))
        of_newest = captures.taken(np.isin(captures.integers(RUN_ID), [run.run_id for run in track.newest]))
        lines.append(make_standing(store, track, of_newest, numbers, gates, host))
        partial += words_of_partial(track, of_newest, with_workload=several)
    environment = []
    for _, changed in explained:
        environment += changed
    found = FindingsRows(
        incidents=tuple(keep_columns(ListedIncident, incident) for incident in incidents),
        findings=tuple(keep_columns(ListedFinding, row) for row in shown),
        environment=tuple(environment),
        lines=tuple(lines),
    )
    return Findings(
        found,
        hidden=len(chosen) - len(shown),
        options=options,
        partial=tuple(dict.fromkeys(partial)),
        notes=tuple(filter(None, dict.fromkeys(notes))),
        missing=sentences_on_missing(tracks),
        budgets=judge_newest(store, tracks),
    )


def _with_share(
    row: FoundFinding, incidents: Sequence[ListedIncident], places: Mapping[int | None, int]
) -> FoundFinding:
    """Return a finding with its part of the change of the step. `places`: of `incidents`, by number."""
    if row.incident_id is None:
        return row
    return replace(row, share_of_change=share_of(row, incidents[places[row.incident_id]]))


def words_of_partial(track: TrackRuns, captures: Columns, *, with_workload: bool = False) -> list[str]:
    """Return what the checks of the captures of the newest version of a track found, behind its name."""
    found = find_partial(captures.rows(RUN_ID, RANK, QUALITY_REASON, SETTINGS))
    version = f"{track.names.workload} {track.newest[0].version}" if with_workload else track.newest[0].version
    return [f"{version}: {sentence}" for sentence in found.sentences]


def _tracks(store: Store, options: FindingsOptions) -> list[TrackRuns]:
    """Return the tracks that the options leave: of main lines, or of branches with the version, where only they have
    it.
    """
    tracks = read_tracks(store, named_tracks(store, options.workload, options.device))
    wanted = options.version
    if options.workload is not None or wanted is None or any(wanted in track.labels.values() for track in tracks):
        return tracks
    every = read_tracks(store, named_tracks(store, device=options.device, branches=True))
    return [track for track in every if wanted in track.labels.values()] or tracks


@read_one_state
def found_rows(  # noqa: PLR0913 -- what is read, and by which time
    store: Store, options: FindingsOptions | None = None, *, finding_ids: Sequence[int] | None = None,
    tracks: Sequence[TrackRuns] | None = None, now_ns: int | None = None,
    wanted: Callable[[FoundFinding], bool] | None = None, branches: bool = True, with_invalid: bool = False,
    settle_ns: int | None = None,
) -> list[FoundFinding]:  # fmt: skip
    """Return all findings of the tracks that `options` name, whatever their state, then suspects of newest versions.

    finding_ids: only these, without suspects; to come out the same, whole incidents.
    tracks: those that the options name, where they were read before.
    wanted: which are shown, so that it is looked up what replaced what in their incidents; None: those that the options
    leave, and of `finding_ids` all.
    branches: of branches, too, where no workload is named.
    with_invalid: also look for replacements among false positives.
    settle_ns: how long runs are awaited, None: as the store says.
    """
    options = options or FindingsOptions()
    queries.check_filters(store, workload=options.workload, device=options.device, version=options.version)
    if not len(queries.tracks(store)):
        raise UsageError("there are no runs yet", remedy=FIRST_INGEST)
    now_ns = time.time_ns() if now_ns is None else now_ns
    stored = queries.findings(store, finding_ids, workload=options.workload)
    if tracks is None:
        own = None if finding_ids is None else {finding.track_key for finding in stored}
        names = named_tracks(store, options.workload, options.device, branches=branches)
        tracks = read_tracks(store, {key: names[key] for key in names if own is None or key in own})
    track_of = {track.key: track for track in tracks}
    labels_of = {track.key: track.label_of_run for track in tracks}
    words = queries.finding_words(store)
    settle_ns = store.runs_settle_ns if settle_ns is None else settle_ns
    awaited_of = {track.key: list_awaited(track, settle_ns, now_ns) for track in tracks}
    rows = []
    for finding in stored:
        track = track_of.get(finding.track_key)
        if track is not None:
            is_new = finding.decided_version_id == track.order[-1]
            versions = track.labels.values()
            said = words.get(finding.finding_id, ())
            state = state_of(finding.base_state, is_new=is_new, words=said, versions=versions, now_ns=now_ns)
            rows.append(_make_finding(finding, track, state, labels_of[track.key], awaited_of[track.key]))
    if finding_ids is None:
        for track in tracks:
            rows += suspects(store, track, awaited_of[track.key].get(track.order[-1]))
    rows = [causes.with_cause(row) for row in rows]
    renamed = causes.find_renamed(rows)
    looked_at = {rows[came].incident_id for came, _ in renamed}
    for row in rows:
        is_shown = wanted(row) if wanted is not None else finding_ids is not None or is_wanted(row, options)
        if is_shown:
            looked_at.add(row.incident_id)
    rows = causes.with_replaced(store, rows, looked_at, with_invalid=with_invalid)
    rows = causes.with_renamed(rows, renamed)
    rows = with_current(store, rows, tracks)
    rows = with_experiments(store, rows)
    return causes.with_new_shapes(roll_up(rows))


def leading_cause_of(store: Store, workload: str, incident_id: int) -> str:
    """Return what makes most of the change of the step of an incident, in a clause; "" where nothing does."""
    stored = queries.findings(store, workload=workload)
    own = [finding.finding_id for finding in stored if finding.incident_id == incident_id]
    rows = found_rows(store, finding_ids=own)
    return with_leading_cause(store, make_incident(rows), rows).leading_cause


def _make_finding(
    stored: StoredFinding,
    track: TrackRuns,
    state: FindingState,
    labels: Mapping[int, str],
    awaited_of: Mapping[int, AwaitedRuns],
) -> FoundFinding:
    """Return a finding as its track and the words of users have it, without its cause.

    labels: the version of each run of the track, in their order.
    awaited_of: the runs that versions may still get.
    """
    is_new = stored.decided_version_id == track.order[-1]
    before, after = stored.baseline_value, stored.candidate_value
    judgement = track.judged.get(stored.version_id)
    level_runs = judgement.base_runs if judgement else ""
    decided = track.judged.get(stored.decided_version_id)
    own_level = _versions_of(stored.baseline_runs, labels)
    awaited = awaited_of.get(stored.decided_version_id)
    end_awaited = None if stored.ended_by_version_id is None else awaited_of.get(stored.ended_by_version_id)
    still_awaited = awaited if stored.ended_version is None else end_awaited
    return FoundFinding(
        finding_id=stored.finding_id,
        incident_id=stored.incident_id,
        workload=stored.workload,
        configuration=stored.configuration,
        device=track.names.device,
        version=stored.version,
        good_version=own_level[-1] if own_level else track.before(stored.version_id),
        series_id=stored.series_id,
        kind=stored.kind,
        metric=stored.metric,
        unit=unit_of_metric(stored.metric),
        name=stored.name,
        input_shapes=stored.input_shapes,
        part=stored.part,
        step_kind=stored.step_kind,
        direction=stored.direction,
        change=stored.change,
        state=state.state,
        is_new=state.state == "new" or (is_new and state.state == "muted"),
        verdict=verdict_word(SIGNS[stored.direction], stored.change),
        ratio=after / before - 1 if before and after else None,
        q=stored.q,
        contribution=stored.contribution,
        baseline_value=before,
        candidate_value=after,
        delta=(after or 0.0) - (before or 0.0),
        baseline_calls=stored.baseline_calls,
        candidate_calls=stored.candidate_calls,
        baseline_runs=stored.baseline_runs,
        candidate_runs=stored.candidate_runs,
        until_ns=state.until_ns,
        until_version=state.until_version,
        ended_version=stored.ended_version,
        so_far=still_awaited.describe(stored.version) if still_awaited else "",
        track_key=track.key,
        vendor=stored.vendor,
        version_id=stored.version_id,
        ordinal=stored.ordinal,
        base_state=stored.base_state,
        decided_version_id=stored.decided_version_id,
        ended_by_version_id=stored.ended_by_version_id,
        is_newest=stored.version_id == track.order[-1],
        is_leaf=bool(stored.is_leaf),
        step=_step_of(stored),
        found_again=track.labels.get(stored.decided_version_id) if track.main is not None else None,
        level_runs=level_runs,
        level_versions=_versions_of(level_runs, labels) or own_level,
        awaited=awaited,
        end_awaited=end_awaited,
        coverage=_coverage_of(track, stored.decided_version_id),
        step_verdict=decided.step_verdict or "" if decided else "",
    )


def _step_of(stored: StoredFinding) -> IncidentStep:
    """Return how the step changed with the incident of a finding."""
    return IncidentStep(
        kind=stored.incident_kind,
        before_ns=stored.step_before_ns,
        after_ns=stored.step_after_ns,
        operators_ns=stored.operators_ns,
        new_ns=stored.new_ns,
        gone_ns=stored.gone_ns,
        machine_ns=stored.machine_ns,
        other_operators_ns=stored.other_operators_ns,
        earlier_ns=stored.earlier_ns,
        beside_ns=stored.beside_ns,
        shift_log=stored.shared_factor,
    )


def _coverage_of(track: TrackRuns, version_id: int) -> str:
    """Return how many series of a version were judged, in words; "" where that is not known."""
    judged = track.judged.get(version_id)
    coverage = None if judged is None else Coverage.of_numbers(judged.coverage)
    return "" if coverage is None else coverage.words


def _versions_of(runs: str, labels: Mapping[int, str]) -> tuple[str, ...]:
    """Return the versions of runs, in the order of their track. `labels`: of its runs, in their order."""
    run_ids = {*map(int, runs.split())}
    return tuple(dict.fromkeys(label for run_id, label in labels.items() if run_id in run_ids))


def with_current(store: Store, rows: Sequence[FoundFinding], tracks: Sequence[TrackRuns]) -> list[FoundFinding]:
    """Return the rows with the number of the newest version of what is open: `current_value`, and `current_ratio`
    against its baseline.

    Without one of what was found on other hosts, of which the newest number says nothing.
    """
    places: dict[TrackKey, list[int]] = {}
    for place, row in enumerate(rows):
        if row.state in CONFIRMED_STATES:
            places.setdefault(row.track_key, []).append(place)
    current: dict[int, float] = {}
    for track in tracks:
        if track.key in places:
            current |= _read_current(store, track, rows, places[track.key])
    return [_with_value(row, current.get(place)) for place, row in enumerate(rows)]


def _read_current(
    store: Store, track: TrackRuns, rows: Sequence[FoundFinding], places: Sequence[int]
) -> dict[int, float]:
    """Return the number of the newest version of a track of each of these rows, by place, that it says something of."""
    series = sorted({rows[place].series_id for place in places})
    run_ids = [run.run_id for run in track.newest]
    with store.connect() as connection:
        values = stored_tracks.read_values_of_series(connection, run_ids, series)
        other = find_other_version(connection, track, track.order[-1])
        is_comparable = share_hosts(connection, run_ids, [rows[place] for place in places])
    comparable = list(compress(places, is_comparable))
    newest = dict(zip(series, over_runs(values).tolist(), strict=True))
    if other is not None:
        # the numbers of inputs of another size say nothing of what is open
        concerned = find_concerned(other.inputs, [rows[place].key for place in comparable])
        comparable = list(compress(comparable, ~concerned))
    return {place: newest[rows[place].series_id] for place in comparable}


def _with_value(row: FoundFinding, value: float | None) -> FoundFinding:
    """Return a finding with the number of the newest version, where there is one above 0."""
    # of runs without a number it is nan
    if value is None or not value > 0:
        return row
    before = row.baseline_value
    return replace(row, current_value=value, current_ratio=value / before - 1.0 if before else None)


def state_of(
    base: str, *, is_new: bool, words: Sequence[UserWord], versions: Collection[str], now_ns: int
) -> FindingState:
    """Return the state of a finding: its own, and what users said in the order of time.

    `base`: as the judgement says; `is_new`: the newest version decided it; `versions`: labels that have runs in its
    track, which end mutes. A finding that has ended is over whatever was said, but for invalid.
    """
    marks = counting_marks(words)
    actions = [mark.action for mark in marks]
    if "invalid" in actions:
        return FindingState("invalid")
    if base != "open":
        return FindingState(base)
    if actions[-1:] == ["mute"]:
        end, version = marks[-1].until_ns, marks[-1].until_version
        is_muted = version not in versions if end is None else end > now_ns
        if is_muted:
            return FindingState("muted", end, version)
    settled = [_SETTLED[action] for action in actions if action in _SETTLED]
    if settled:
        return FindingState(settled[-1])
    return FindingState("new" if is_new else "persisting")


def counting_marks(words: Sequence[UserWord]) -> list[UserWord]:
    """Return the marks of a finding that still count: no comments, and none that was taken back."""
    return [word for word in words if word.action not in ("note", "undo") and not word.is_undone]


def suspects(store: Store, track: TrackRuns, awaited: AwaitedRuns | None = None) -> list[FoundFinding]:
    """Return the suspects of the newest version of a track: no findings yet, without a number. `awaited`: the runs that
    the version may still get.
    """
    runs, version_id = [run.run_id for run in track.newest], track.order[-1]
    judgement = track.judged.get(version_id)
    base_runs = judgement.base_runs if judgement else ""
    with store.connect() as connection:
        verdicts = stored_findings.read_verdicts(connection, track.key, version_id, verdict="SUSPECT")
        series = [row.series_id for row in verdicts]
        numbers = stored_tracks.read_values_of_series(connection, runs, series) if verdicts else ()
        calls_of = _calls_of(connection, series, [int(run) for run in base_runs.split()], runs) if verdicts else {}
    version = track.labels[version_id]
    found = []
    for row, values in zip(verdicts, numbers, strict=True):
        after = float(over_runs(values[None])[0]) if (values > 0).all() else None
        # a suspect has a change
        change = row.change or 0.0
        before = None if after is None else after / (1.0 + change)
        is_worse = (change > 0) != row.metric.endswith("_per_second")
        calls = calls_of.get(row.series_id, _Calls())
        suspect = FoundFinding(
            finding_id=None,
            incident_id=None,
            workload=track.names.workload,
            configuration=track.names.configuration,
            device=track.names.device,
            version=version,
            good_version=track.before(version_id),
            series_id=row.series_id,
            kind=row.kind,
            metric=row.metric,
            unit=unit_of_metric(row.metric),
            name=row.name,
            input_shapes=row.input_shapes,
            part=row.part,
            step_kind=row.step_kind,
            direction="regression" if is_worse else "improvement",
            change="level",
            state="suspect",
            is_new=False,
            verdict="SUSPECT",
            ratio=row.change,
            q=None,
            contribution=row.contribution,
            baseline_value=before,
            candidate_value=after,
            delta=(after or 0.0) - (before or 0.0),
            baseline_calls=calls.baseline,
            candidate_calls=calls.candidate,
            baseline_runs=base_runs,
            candidate_runs=" ".join(map(str, runs)),
            so_far=awaited.describe(version) if awaited else "",
            track_key=track.key,
            vendor="",
            version_id=version_id,
            ordinal=0,
            base_state="suspect",
            is_newest=True,
            awaited=awaited,
        )
        found.append(suspect)
    return found


def _calls_of(
    connection: Connection, series: Sequence[int], base: Sequence[int], runs: Sequence[int]
) -> dict[int, _Calls]:
    """Return the calls per step of each series (ascending) in the runs that it was judged against, and in those of its
    version.
    """
    table = SeriesTable(np.array(series, dtype=np.int64), ())
    sides = [
        stored_tracks.read_values(connection, own, table)[1] if own else np.full((len(series), 1), np.nan)
        for own in (base, runs)
    ]
    before, after = ([None if np.isnan(one) else one for one in over_runs(calls).tolist()] for calls in sides)
    return {number: _Calls(*calls) for number, *calls in zip(series, before, after, strict=True)}


def is_wanted(row: FoundFinding, options: FindingsOptions) -> bool:
    """Return whether the options leave a row of `found_rows`."""
    states = options.states
    if states is None and options.only_new:
        states = (*CONFIRMED_STATES, "suspect")
    elif states is None:
        states = (*OPEN_STATES, *ENDED_STATES) if options.version is not None else OPEN_STATES
    return (
        row.state in states
        and (not options.only_new or row.is_new or row.state == "suspect")
        and options.version in (None, row.version, row.found_again)
        and options.kind in (None, row.kind)
        and options.direction in (None, row.direction)
    )


def roll_up(rows: Sequence[FoundFinding]) -> list[FoundFinding]:
    """Return the rows, each with the finding that says the same one level up (`under`), one of `rows`, and the number
    of those that it `covers`.

    Shapes are under their operator, the whole capture under the step, and what was replaced under the one that stands
    for it.
    """
    above: dict[tuple[object, ...], FoundFinding] = {}
    for row in rows:
        above.setdefault(_place_of(row, row.kind, row.name), row)
    kernels = _find_largest_kernels(rows)
    heads = {row.finding_id for row in rows if row.replaced is not None}
    under = []
    for row in rows:
        under.append(_find_above(row, above, kernels, heads))
    covers = Counter(under)
    rolled = []
    for row, number in zip(rows, under, strict=True):
        covered = 0 if row.finding_id is None else covers[row.finding_id]
        rolled.append(replace(row, under=number, covers=covered))
    return rolled


def _find_above(
    row: FoundFinding,
    above: Mapping[tuple[object, ...], FoundFinding],
    kernels: Mapping[tuple[int | None, str], FoundFinding],
    heads: Collection[int | None],
) -> int | None:
    """Return the number of the finding that covers a row, -1 where a suspect does, None where nothing does.

    above: the first row of each place.
    kernels: the largest kernel without an operator, by incident and direction.
    heads: findings of replacements.
    """
    name = _SAME.get(row.name) if row.kind == "run" else row.name
    found = (above.get(_place_of(row, kind, name)) for kind in _ABOVE.get(row.kind, ()))
    whole = next(filter(None, found), None)
    kernel = kernels.get((row.incident_id, row.direction))
    if kernel is not None and row.name in NO_OPERATORS and row.kind in ("op", "op_name"):
        # what stands for all work without an operator is under the largest of its kernels that moved the same way
        whole = kernel
    if whole is not None:
        # a suspect has no number
        return whole.finding_id or -1
    head = None if row.replaced is None else row.replaced.head
    return head if head != row.finding_id and head in heads else None


def _place_of(row: FoundFinding, kind: str, name: str | None) -> tuple[object, ...]:
    """Return what the rows have in common that say the same of `name` on the level `kind`."""
    way = row.part if row.kind == "run" else ""
    return row.incident_id, row.direction, row.track_key, kind, name, way, row.step_kind


def _find_largest_kernels(rows: Sequence[FoundFinding]) -> dict[tuple[int | None, str], FoundFinding]:
    """Return the largest kernel that no operator launched, by incident and direction."""
    largest: dict[tuple[int | None, str], FoundFinding] = {}
    for row in rows:
        if not row.is_of_no_operator:
            continue
        place = row.incident_id, row.direction
        if place not in largest or order_in_incident(row) < order_in_incident(largest[place]):
            largest[place] = row
    return largest


def uncovered(rows: Sequence[FoundFinding]) -> list[FoundFinding]:
    """Return the findings that no other one of `rows` covers: those that are listed and counted."""
    numbers = {row.finding_id for row in rows}
    return [row for row in rows if row.under is None or row.under not in numbers]
