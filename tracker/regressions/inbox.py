"""What was found, for the reader: findings under their incident, rolled up, with an explanation that adds up."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.detect.series import NO_OPERATORS
from tracker.errors import EXIT_TOO_LITTLE_DATA, FIRST_INGEST, UsageError
from tracker.regressions import causes
from tracker.regressions.budgets import judge_newest
from tracker.regressions.coverage import columns_of, sentences_on_missing
from tracker.regressions.hosts import note_of, share_hosts
from tracker.regressions.judgement import SIGNS, verdict_word
from tracker.regressions.lifecycle import MAYBE_CODE
from tracker.regressions.scaled_inputs import find_concerned
from tracker.regressions.sides import newest_gates
from tracker.regressions.track import (
    TrackRuns,
    find_other_version,
    named_tracks,
    read_tracks,
    settings_note,
    waiting_runs,
)
from tracker.regressions.usual_runs import list_awaited_runs
from tracker.results import CONFIRMED_STATES, ENDED_STATES, FINDINGS_COLUMNS, OPEN_STATES, Findings, FindingsOptions
from tracker.results.coverage import Coverage
from tracker.results.partial import find_partial, keep_whole
from tracker.results.recording import are_guesses
from tracker.results.verdicts import FAIL_ON, GateResult
from tracker.results.waiting import AwaitedRuns
from tracker.schema.series import KIND, OF_WHOLE_CAPTURE, RUN_SERIES, STEP_WAYS, SeriesKey
from tracker.store import Store, queries, read_one_state
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.findings import JudgedRow
from tracker.store.samples.statistics import over_runs
from tracker.store.tracks import SeriesTable, TrackKey
from tracker.units import unit_of_metric

Row = dict[str, Any]

STEP: Final = frozenset({"step", "mean step", "e2e", "compute"})
"""Series of whole runs that are the step, or what it computes."""

_OF_NO_FINDING: Final = {
    "finding_id": None, "incident_id": None, "state": "suspect", "base_state": "suspect", "verdict": "SUSPECT",
    "ordinal": 0, "is_new": False, "is_newest": True, "q": None, "until_ns": None,
    "until_version": None, "ended_version": None, "is_leaf": False, "incident_kind": "",
}  # fmt: skip
"""What a suspect has in place of what a finding has."""
_SETTLED: Final = {"ack": "acknowledged", "expect": "expected"}
_PARTS: Final = ("operators_ns", "new_ns", "gone_ns", "machine_ns", "other_operators_ns", "earlier_ns", "beside_ns")
_SAME: Final = {"e2e": "step", "mean step": "step"}
"""Series of whole runs -> the one that says the same of markers."""
_ABOVE: Final = {"op": ("op_name",), "memory": ("op_name", "op"), "run": ("run",)}
"""Kind -> kinds that say the same one level up."""
_PLACE_OF_KIND: Final = {kind: place for place, kind in enumerate(KIND)}
"""Kind -> its place among the findings of an incident."""
_NUMBERS_OF_RUN: Final = {
    series.name: series.number for series in RUN_SERIES if series.number in FINDINGS_COLUMNS["lines"]
}
"""Series of whole runs -> its column."""
SEVERITIES: Final = ("critical", "warning", "info")
"""How loud an incident is, the loudest first."""
_LEAST_CHANGE: Final = 0.005
"""Part of the step from which on its change has parts that say something."""
_MATTERS: Final = 0.01
"""Part of the step from which a finding is more than a remark."""
_CRITICAL: Final = 0.05
"""Change of the step from which a regression of it is critical."""


@read_one_state
def findings(store: Store, *, options: FindingsOptions | None = None) -> Findings:
    """Return the findings that `options` leave, under their incidents; those of a branch only where it is named.

    Reads only.

    UsageError where a workload, a device or a version is named that has no runs.
    """
    options = options or FindingsOptions()
    tracks = _tracks(store, options)
    several = len({track.names["workload"] for track in tracks}) > 1
    rows = found_rows(store, options, tracks=tracks)
    chosen = [row for row in rows if is_wanted(row, options)]
    numbers = dict.fromkeys(row["incident_id"] for row in chosen if row["incident_id"] is not None)
    found = [explained(store, [row for row in rows if row["incident_id"] == number]) for number in numbers]
    found.sort(key=lambda one: _urgency(one[0]))
    incidents, environment = [one for one, _ in found], [row for _, changed in found for row in changed]
    place = {one["incident_id"]: at for at, one in enumerate(incidents)}
    roll_up(chosen)  # under what is shown, not under what the options leave out
    shown = chosen if options.every else [causes.as_one(row) for row in chosen if row["under"] is None]
    for row in shown:
        if row["incident_id"] is not None:
            row["share_of_change"] = share_of(row, incidents[place[row["incident_id"]]])
    shown.sort(key=lambda row: (place.get(row["incident_id"], len(place)), *rank_of(row)))
    lines, partial = [], list[str]()
    notes = [run.sentence for run in waiting_runs(store, options.workload, options.device)]
    for track in tracks:
        with store.connect() as connection:
            gates = newest_gates(connection, track)
            notes.append(settings_note(connection, track))
            other = find_other_version(connection, track, track.order[-1])
        if other is not None:
            notes.append(f"{other.sentence}. Its step is not judged, and neither are these operators.")
        host = next((own.host for own in gates.values() if own.host), "")
        notes.append(note_of(host))
        lines.append(standing(store, track, gates) | {"slow_host": host})
        partial += words_of_partial(store, track, with_workload=several)
    tables = {"incidents": incidents, "findings": shown, "environment": environment, "lines": lines}
    return Findings(
        {name: Columns.of_rows(rows, FINDINGS_COLUMNS[name]) for name, rows in tables.items()},
        hidden=len(chosen) - len(shown),
        options=options,
        partial=tuple(dict.fromkeys(partial)),
        notes=tuple(filter(None, dict.fromkeys(notes))),
        missing=sentences_on_missing(tracks),
        budgets=judge_newest(store, tracks),
    )


def words_of_partial(store: Store, track: TrackRuns, *, with_workload: bool = False) -> list[str]:
    """Return what the checks of the captures of the newest version of a track found, behind its name."""
    captures = queries.captures(store, [run.run_id for run in track.newest])
    found = find_partial(captures.rows("run_id", "rank", "quality_reason", "settings"))
    version = f"{track.names['workload']} {track.newest[0].version}" if with_workload else track.newest[0].version
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


def _urgency(incident: Row) -> tuple[Any, ...]:
    """Return a sort key: what is new first, then the most severe, then what costs most time of the step, then the
    newest.
    """
    return (
        not incident["is_new"], SEVERITIES.index(incident["severity"]), incident["direction"] != "regression",
        -abs(incident["step_delta_ns"] or 0.0), -incident["ordinal"], incident["incident_id"],
    )  # fmt: skip


@read_one_state
def found_rows(  # noqa: PLR0913 -- what is read, and by which time
    store: Store, options: FindingsOptions | None = None, *, finding_ids: Sequence[int] | None = None,
    tracks: Sequence[TrackRuns] | None = None, now_ns: int | None = None, wanted: Callable[[Row], bool] | None = None,
    branches: bool = True, with_invalid: bool = False, settle_ns: int | None = None,
) -> list[Row]:  # fmt: skip
    """Return all findings of the tracks that `options` name, whatever their state, then suspects of newest versions.

    Keys: columns of FINDINGS_COLUMNS["findings"], of sql/findings.sql, `is_newest`: its version is the newest one,
    `found_again`: the last version of a branch that has it, and `awaited`, `end_awaited`: the runs that the version may
    still get that decided it, or that it was over, AwaitedRuns. `finding_ids`: only these, without suspects; to come
    out the same, whole incidents. `tracks`: those that the options name, where they were read before. `wanted`: which
    are shown, so that it is looked up what replaced what in their incidents; None: those that the options leave, and of
    `finding_ids` all. `branches`: of branches, too, where no workload is named. `with_invalid`: false positives can be
    a part of what replaced what. `settle_ns`: how long runs are awaited, None: as the store says.
    """
    options = options or FindingsOptions()
    queries.check_filters(store, workload=options.workload, device=options.device, version=options.version)
    if not len(queries.tracks(store)):
        raise UsageError("there are no runs yet", remedy=FIRST_INGEST)
    now_ns = time.time_ns() if now_ns is None else now_ns
    found = queries.findings(store, finding_ids, workload=options.workload)
    if tracks is None:
        own = None if finding_ids is None else {track_key_of(row) for row in found}
        names = named_tracks(store, options.workload, options.device, branches=branches)
        tracks = read_tracks(store, {key: names[key] for key in names if own is None or key in own})
    track_of = {track.key: track for track in tracks}
    labels_of = {track.key: track.label_of_run for track in tracks}
    words = queries.finding_words(store)
    settle_ns = store.runs_settle_ns if settle_ns is None else settle_ns
    awaited_of = {track.key: _awaited_runs(track, settle_ns, now_ns) for track in tracks}
    rows = []
    for row in found:
        track = track_of.get(track_key_of(row))
        if track is None:
            continue
        is_new = row["decided_version_id"] == track.order[-1]
        said, labels = words.get(row["finding_id"], ()), track.labels.values()
        row.update(state_of(row["base_state"], is_new=is_new, words=said, versions=labels, now_ns=now_ns))
        before, after = row["baseline_value"], row["candidate_value"]
        level_runs = getattr(track.judged.get(row["version_id"]), "base_runs", "")
        own_level = _versions_of(row["baseline_runs"], labels_of[track.key])
        level = _versions_of(level_runs, labels_of[track.key]) or own_level
        row.update({
            "device": track.names["device"], "is_newest": row["version_id"] == track.order[-1],
            "is_new": row["state"] == "new" or (is_new and row["state"] == "muted"),
            "good_version": own_level[-1] if own_level else track.before(row["version_id"]),
            "level_versions": level,
            "found_again": track.labels.get(row["decided_version_id"]) if track.main is not None else None,
            "level_runs": level_runs,
            "verdict": verdict_word(SIGNS[row["direction"]], row["change"]),
            "awaited": awaited_of[track.key].get(row["decided_version_id"]),
            "end_awaited": awaited_of[track.key].get(row["ended_by_version_id"]),
            "ratio": after / before - 1 if before and after else None,
            "coverage": _coverage_of(track, row["decided_version_id"]),
            "verdict_of_step": _step_verdict_of(track, row["decided_version_id"]),
        })  # fmt: skip
        rows.append(row)
    if finding_ids is None:
        for track in tracks:
            awaited = awaited_of[track.key].get(track.order[-1])
            rows += [row | {"awaited": awaited, "end_awaited": None} for row in suspects(store, track)]
    for row in rows:
        row["so_far"] = _so_far(row)
        delta = (row["candidate_value"] or 0.0) - (row["baseline_value"] or 0.0)
        row |= {"unit": unit_of_metric(row["metric"]), "delta": delta, "share_of_change": None}
        causes.mark_cause(row)
    shown = [row for row in rows if (wanted(row) if wanted else finding_ids is not None or is_wanted(row, options))]
    renamed = causes.find_renamed(rows)
    looked_at = {row["incident_id"] for row in (*shown, *(came for came, _ in renamed))}
    causes.mark_replaced(store, rows, looked_at, with_invalid=with_invalid)
    causes.mark_renamed(rows, renamed)
    add_current(store, rows, tracks)
    roll_up(rows)
    causes.mark_new_shapes(rows)
    return rows


def _coverage_of(track: TrackRuns, version_id: int) -> str:
    """Return how many series of a version were judged, in words; "" where that is not known."""
    judged = track.judged.get(version_id)
    coverage = None if judged is None else Coverage.of_numbers(judged.coverage)
    return "" if coverage is None else coverage.words


def _step_verdict_of(track: TrackRuns, version_id: int) -> str:
    judged = track.judged.get(version_id)
    return (judged and judged.step_verdict) or ""


def _awaited_runs(track: TrackRuns, settle_ns: int, now_ns: int) -> dict[int, AwaitedRuns]:
    return list_awaited_runs(track.runs, look_back=track.thresholds.look_back, settle_ns=settle_ns, now_ns=now_ns)


def _so_far(row: Row) -> str:
    """Return which runs may still change what is said of a finding, in words; "" where it stands."""
    awaited = row["awaited"] if row["ended_version"] is None else row["end_awaited"]
    return awaited.describe(row["version"]) if awaited else ""


def _versions_of(runs: str, labels: Mapping[int, str]) -> tuple[str, ...]:
    """Return the versions of runs, in the order of their track. `labels`: of its runs, in their order."""
    run_ids = {*map(int, runs.split())}
    return tuple(dict.fromkeys(label for run_id, label in labels.items() if run_id in run_ids))


def add_current(store: Store, rows: Sequence[Row], tracks: Sequence[TrackRuns]) -> None:
    """Add the number of the newest version to what is open: `current_value`, `current_ratio` against its baseline.

    Nothing to what was found on other hosts, of which the newest number says nothing.
    """
    of_track: dict[TrackKey, list[Row]] = {}
    for row in rows:
        row |= {"current_value": None, "current_ratio": None}
        if row["state"] in CONFIRMED_STATES:
            of_track.setdefault(track_key_of(row), []).append(row)
    for track in tracks:
        own = of_track.get(track.key, [])
        if not own:
            continue
        series = sorted({row["series_id"] for row in own})
        with store.connect() as connection:
            values = stored_tracks.read_values_of_series(connection, [run.run_id for run in track.newest], series)
            other = find_other_version(connection, track, track.order[-1])
            is_comparable = share_hosts(connection, [run.run_id for run in track.newest], own)
        own = list(compress(own, is_comparable))
        newest = dict(zip(series, over_runs(values).tolist(), strict=True))
        if other is not None:
            # the numbers of inputs of another size say nothing of what is open
            keys = [SeriesKey(*(row[name] for name in SeriesKey._fields)) for row in own]
            concerned = find_concerned(other.inputs, keys).tolist()
            own = [row for row, is_other in zip(own, concerned, strict=True) if not is_other]
        for row in own:
            now, before = newest[row["series_id"]], row["baseline_value"]
            if now > 0:
                row |= {"current_value": now, "current_ratio": now / before - 1.0 if before else None}


def standing(store: Store, track: TrackRuns, gates: Mapping[str, GateResult]) -> Row:
    """Return a row of FINDINGS_COLUMNS["lines"]: the newest version of a track, with the numbers of it as a whole, None
    where nothing is known, and how it ends at each word of `--fail-on`.
    """
    newest = track.newest
    run_ids = [run.run_id for run in newest]
    captures = queries.captures(store, run_ids)
    whole = keep_whole(run_ids, find_partial(captures.rows("run_id", "rank", "quality_reason", "settings")))
    is_guess = are_guesses(captures.listed("settings"))
    judgement = track.judged.get(newest[0].version_id)
    step_kind = judgement.step_kind if judgement else ""
    numbers = []
    for name, part, kind, value in queries.run_level(store, whole).rows("name", "part", "step_kind", "per_step"):
        if kind == step_kind or (not kind and name in OF_WHOLE_CAPTURE):
            numbers.append((name, part, value))
    row: Row = {
        **track.names, "version": newest[0].version, "version_runs": len(newest), "runs": len(track.runs),
        "last_run_id": max(run.run_id for run in newest),
        "last_run_ns": max((run.started_at_ns for run in newest if run.started_at_ns is not None), default=None),
        **{column: number_of(numbers, [name]) for name, column in _NUMBERS_OF_RUN.items()},
    }  # fmt: skip
    before, after = (judgement.step_before_ns, judgement.step_after_ns) if judgement else (None, None)
    row |= {name: getattr(judgement, name, None) for name in ("step_verdict", "net", "peak")}
    row["step_kind"] = step_kind
    row["step_change"] = after / before - 1 if before and after else None
    row |= _lacking(track, judgement, len(newest))
    row |= columns_of(Coverage.of_numbers(judgement.coverage) if judgement else None)
    awaited = _awaited_runs(track, store.runs_settle_ns, time.time_ns()).get(track.order[-1])
    row["so_far"] = awaited.words if awaited else ""
    for word in FAIL_ON:
        gate = gates.get(word, GateResult(EXIT_TOO_LITTLE_DATA, "runs", 0.0, 0.0))
        # no further run makes a guess sure
        cause = "guess" if is_guess and gate.cause in ("runs", "incomplete") else gate.cause
        row |= {f"gate_{word}": gate.code, f"gate_{word}_cause": cause}
    return row


def _lacking(track: TrackRuns, judgement: JudgedRow | None, runs: int) -> Row:
    """Return how many more runs would decide the step of the newest version, of it and of the level before it."""
    limits, nothing = track.thresholds, {"lacks_runs": 0, "lacks_base_runs": 0}
    if judgement is None or judgement.step_verdict not in ("SUSPECT", "TOO_FEW_RUNS"):
        return nothing
    lacks = max(0, limits.least_new - runs)
    if judgement.step_verdict == "SUSPECT" or not judgement.base_runs:
        return nothing | {"lacks_runs": lacks}
    return {"lacks_runs": lacks, "lacks_base_runs": max(0, limits.least_base - len(judgement.base_runs.split()))}


def number_of(
    numbers: Sequence[tuple[str, str, float | None]], names: Iterable[str], ways: Sequence[str] = STEP_WAYS
) -> float | None:
    """Return the number of several runs: of the first of `names` that they have, by the first of `ways` that is there;
    None where none is above 0. `numbers`: series, way and value of a run each.
    """
    for name in names:
        there = {part for own, part, _ in numbers if own == name}
        way = next((way for way in ways if way in there), None)
        known = [value for own, part, value in numbers if (own, part) == (name, way) and value and value > 0]
        if known:
            return float(over_runs(np.array([known]))[0])
    return None


def state_of(base: str, *, is_new: bool, words: Sequence[Row], versions: Collection[str], now_ns: int) -> Row:
    """Return the state of a finding: its own, and what users said in the order of time.

    `until_ns`, `until_version`: end of a mute.

    `base`: as the judgement says; `is_new`: the newest version decided it; `versions`: labels that have runs in its
    track, which end mutes. A finding that has ended is over whatever was said, but for invalid.
    """
    said: Row = {"state": base, "until_ns": None, "until_version": None}
    own = counting_marks(words)
    actions = [word["action"] for word in own]
    if "invalid" in actions:
        return said | {"state": "invalid"}
    if base != "open":
        return said
    if actions[-1:] == ["mute"]:
        end, version = own[-1]["until_ns"], own[-1]["until_version"]
        if version not in versions if end is None else end > now_ns:
            return {"state": "muted", "until_ns": end, "until_version": version}
    settled = [_SETTLED[action] for action in actions if action in _SETTLED]
    return said | {"state": settled[-1] if settled else "new" if is_new else "persisting"}


def counting_marks(words: Sequence[Row]) -> list[Row]:
    """Return the marks of a finding that still count: no comments, and none that was taken back."""
    return [word for word in words if word["action"] not in ("note", "undo") and not word["is_undone"]]


def suspects(store: Store, track: TrackRuns) -> list[Row]:
    """Return the suspects of the newest version of a track: no findings yet, without a number."""
    runs, version = [run.run_id for run in track.newest], track.order[-1]
    with store.connect() as connection:
        said = stored_findings.read_verdicts(connection, track.key, version, verdict="SUSPECT")
        series = [row.series_id for row in said]
        numbers = stored_tracks.read_values_of_series(connection, runs, series) if said else ()
        base = [int(run) for run in getattr(track.judged.get(version), "base_runs", "").split()]
        calls = _calls_of(connection, series, base, runs) if said else {}
    found = []
    for row, values in zip(said, numbers, strict=True):
        after = float(over_runs(values[None])[0]) if (values > 0).all() else None
        worse = (row.change > 0) != row.metric.endswith("_per_second")
        found.append({
            **row._mapping, **track.names, **track.key.parameters, **_OF_NO_FINDING, "ratio": row.change,
            "direction": "regression" if worse else "improvement", "change": "level", "version_id": version,
            "version": track.labels[version], "good_version": track.before(version),
            "baseline_value": None if after is None else after / (1.0 + row.change), "candidate_value": after,
            "baseline_runs": getattr(track.judged.get(version), "base_runs", ""),
            "candidate_runs": " ".join(map(str, runs)),
            **dict(zip(("baseline_calls", "candidate_calls"), calls.get(row.series_id, (None, None)), strict=True)),
        })  # fmt: skip
    return found


def _calls_of(
    connection: Connection, series: Sequence[int], base: Sequence[int], runs: Sequence[int]
) -> dict[int, tuple[float | None, float | None]]:
    """Return, per series (ascending), its calls per step in the runs that it was judged against, and in those of its
    version.
    """
    table = SeriesTable(np.array(series, dtype=np.int64), ())
    sides = [
        stored_tracks.read_values(connection, own, table)[1] if own else np.full((len(series), 1), np.nan)
        for own in (base, runs)
    ]
    before, after = ([None if np.isnan(one) else one for one in over_runs(calls).tolist()] for calls in sides)
    return dict(zip(series, zip(before, after, strict=True), strict=True))


def track_key_of(row: Row) -> TrackKey:
    """Return the track that a finding belongs to."""
    return TrackKey(row["workload_id"], row["configuration_id"], row["device_id"])


def is_wanted(row: Row, options: FindingsOptions) -> bool:
    """Return whether the options leave a row of `found_rows`."""
    states = options.states
    if states is None and options.only_new:
        states = (*CONFIRMED_STATES, "suspect")
    elif states is None:
        states = (*OPEN_STATES, *ENDED_STATES) if options.version is not None else OPEN_STATES
    return (
        row["state"] in states
        and (not options.only_new or row["is_new"] or row["state"] == "suspect")
        and options.version in (None, row["version"], row.get("found_again"))
        and options.kind in (None, row["kind"])
        and options.direction in (None, row["direction"])
    )


def roll_up(rows: Sequence[Row]) -> None:
    """Fill in which finding says the same one level up (`under`), one of `rows`, and how many each `covers` so.

    Shapes are under their operator, the whole capture under the step, and what was replaced under the one that stands
    for it.
    """

    def place(row: Row, kind: str, name: str | None) -> tuple[Any, ...]:
        way = row["part"] if row["kind"] == "run" else ""
        return row["incident_id"], row["direction"], track_key_of(row), kind, name, way, row["step_kind"]

    above: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        above.setdefault(place(row, row["kind"], row["name"]), row)
    for row in rows:
        name = _SAME.get(row["name"]) if row["kind"] == "run" else row["name"]
        found = (above.get(place(row, kind, name)) for kind in _ABOVE.get(row["kind"], ()))
        whole = next(filter(None, found), None)
        row["under"] = whole and (whole["finding_id"] or -1)
    _roll_up_kernels(rows)
    heads = {row["finding_id"] for row in rows if row["replaced"] is not None}
    for row in rows:
        of = row["replaced"]
        if of is not None and row["under"] is None and row["finding_id"] != of["head"] and of["head"] in heads:
            row["under"] = of["head"]
    covers = Counter(row["under"] for row in rows)
    for row in rows:
        row["covers"] = covers[row["finding_id"]] if row["finding_id"] is not None else 0


def _roll_up_kernels(rows: Sequence[Row]) -> None:
    """Put what stands for all work without an operator under the largest of its kernels that moved the same way."""
    largest: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        place = row["incident_id"], row["direction"]
        if row["is_of_no_operator"] and (place not in largest or rank_of(row) < rank_of(largest[place])):
            largest[place] = row
    for row in rows:
        kernel = largest.get((row["incident_id"], row["direction"]))
        if kernel is not None and row["name"] in NO_OPERATORS and row["kind"] in ("op", "op_name"):
            row["under"] = kernel["finding_id"] or -1


def uncovered(rows: Sequence[Row]) -> list[Row]:
    """Return the findings that no other one of `rows` covers: those that are listed and counted."""
    numbers = {row["finding_id"] for row in rows}
    return [row for row in rows if row["under"] is None or row["under"] not in numbers]


def explained(store: Store, own: Sequence[Row]) -> tuple[Row, list[Row]]:
    """Return an incident with its causes, and what else changed with it, from all of its findings."""
    incident = incident_of(own)
    changed = causes.changed_between(store, incident)
    return incident | {"causes": ", ".join(causes_of(own, changed))}, changed


def incident_of(own: Sequence[Row]) -> Row:
    """Return an incident from all of its findings: FINDINGS_COLUMNS["incidents"] without causes, and its `ordinal`."""
    first = own[0]
    before, after = first["step_before_ns"], first["step_after_ns"]
    counted = [row for row in own if row["state"] != "invalid"] or list(own)
    tops = [row for row in own if row["under"] is None]
    direction = direction_of(counted)
    parts = {name: first[name] for name in _PARTS}
    if first["other_operators_ns"] is not None:
        listed = _listed(counted)
        moved = sum(parts[name] or 0.0 for name in listed) + first["other_operators_ns"]
        parts |= listed | {"other_operators_ns": moved - sum(listed.values())}
    return {
        **{name: first[name] for name in ("incident_id", "workload", "configuration", "device", "version", "ordinal")},
        **{name: first[name] for name in ("workload_id", "version_id", "level_versions")},
        "good_version": first["level_versions"][-1] if first["level_versions"] else first["good_version"],
        "direction": direction, "severity": severity_of(counted, direction, before, after), "causes": "",
        "is_new": any(row["is_new"] for row in own), "findings": len(tops),
        "open": sum(row["state"] in CONFIRMED_STATES for row in tops),
        "baseline_runs": first["level_runs"] or first["baseline_runs"],
        "candidate_runs": Counter(row["candidate_runs"] for row in own).most_common(1)[0][0],
        "baseline_step_ns": before, "candidate_step_ns": after,
        "step_delta_ns": None if before is None or after is None else after - before,
        "shared_factor": None if first["shared_factor"] is None else math.expm1(first["shared_factor"]), **parts,
        "step_kind": first["incident_kind"], "coverage": first.get("coverage", ""),
        "so_far": next((row["so_far"] for row in tops if row["so_far"]), ""),
        "step_verdict": first.get("verdict_of_step", ""),
    }  # fmt: skip


def _listed(own: Sequence[Row]) -> dict[str, float]:
    """Return what the operators of an incident changed the step by (ns), as its findings list them: an operator once,
    not its shapes beside it, and a replacement by its net.
    """
    found = dict.fromkeys(("operators_ns", "new_ns", "gone_ns"), 0.0)
    own_time = "host_self_ns" if own[0]["device"] in ("", "cpu") else "device_self_ns"
    metrics = {row["metric"] for row in own if row["is_leaf"]} or {own_time}
    for row in own:
        is_operator = row["kind"] in ("op_name", "op", "kernel") and row["metric"] in metrics
        # the parts are those of the step of one kind
        is_operator = is_operator and row["step_kind"] == own[0]["incident_kind"]
        is_part = bool(row["replaced"]) and row["kind"] in ("op_name", "kernel")
        # what is under its kernels, is counted by its own time
        is_sum = row["name"] in NO_OPERATORS and row["kind"] == "op_name"
        if is_operator and (row["under"] is None or is_part or is_sum):
            is_both = row["change"] != "presence" or row["replaced"]
            name = "operators_ns" if is_both else "new_ns" if row["direction"] == "regression" else "gone_ns"
            found[name] += row["delta"]
    return found


def direction_of(own: Sequence[Row]) -> str:
    """Return what a version did to the step on the whole: what its own finding says.

    Where it has none, the net of its operators decides, as long as nothing else got worse; else it is a regression
    where anything did. What came in the place of others counts as they do, with what it allocates.
    """
    whole = {row["direction"] for row in own if row["kind"] == "run" and row["name"] in STEP}
    if whole:
        return "regression" if "regression" in whole else "improvement"
    replaced = {row["name"] for row in own if row["replaced"] and row["replaced"]["whole"]["delta"] <= 0}
    worse = [row for row in own if row["direction"] == "regression" and row["name"] not in replaced]
    if not worse or all(row["direction"] == "regression" for row in own):
        return "regression" if worse else "improvement"
    net = sum(row["contribution"] for row in own if row["is_leaf"])
    is_time = all(row["unit"] == "ns" and row["kind"] != "run" for row in worse)
    return "improvement" if net < 0 and is_time else "regression"


def severity_of(own: Sequence[Row], direction: str, before: float | None, after: float | None) -> str:
    """Return how loud an incident is: critical where the step itself regressed by 5 % in two runs, and that may not be
    the machine or another host; a warning where it did at all, or one finding makes it 1 % slower; what got worse in a
    version that is faster on the whole is for information.
    """
    if direction == "improvement" or all(row["state"] == "renamed" for row in own):
        return "info"
    worse = [row for row in own if row["direction"] == "regression"]
    steps = [row for row in worse if row["kind"] == "run" and row["name"] in STEP]
    whole = bool(steps)
    may_be_machine = all(row["change"] in MAYBE_CODE for row in worse)
    is_repeated = any(len(row["candidate_runs"].split()) > 1 for row in steps)
    if is_repeated and not may_be_machine and before and after and after / before - 1 >= _CRITICAL:
        return "critical"
    largest = max((causes.net_contribution(row) for row in worse), default=0.0)
    return "warning" if whole or largest >= _MATTERS else "info"


def causes_of(own: Sequence[Row], environment: Sequence[Row]) -> list[str]:
    """Return the causes of an incident, the largest part of the step first, then of memory, then what else changed."""
    weights: dict[str, float] = {}
    first = own[0]
    delta = (first["step_after_ns"] or 0.0) - (first["step_before_ns"] or 0.0)
    if delta and first["beside_ns"] and first["beside_ns"] / delta >= 0.5:
        weights["time outside operators"] = 1.0
    for row in own:
        if row["cause"] and row["under"] is None:
            part = abs(causes.net_contribution(row)) if row["unit"] == "ns" else 0.0
            cause = "replaced operators" if row["replaced"] else row["cause"]
            weights[cause] = weights.get(cause, 0.0) + part
    words = sorted(weights, key=lambda cause: -weights[cause])
    words += ["profiler settings"] * any(row["key"].startswith("profiler ") for row in environment)
    return words + ["environment"] * any(not row["key"].startswith("profiler ") for row in environment)


def share_of(row: Row, incident: Row) -> float | None:
    """Return the part of the step's change that a finding makes.

    It is None where the step did not change, where gains and losses cancel, or where the finding is no time.
    """
    delta = incident["step_delta_ns"]
    if not delta or row["unit"] != "ns" or row["kind"] == "run":
        return None
    if abs(delta) < _LEAST_CHANGE * (incident["baseline_step_ns"] or 0.0):
        return None
    moved = sum(abs(incident[name] or 0.0) for name in _PARTS)
    return None if abs(delta) < 0.3 * moved else float(row["delta"] / delta)


def rank_of(row: Row) -> tuple[Any, ...]:
    """Return a sort key: whole runs first, the step before all, then what is in them, the largest part of the step
    first.
    """
    is_step = row["kind"] == "run" and row["name"] == "step"
    return (
        not is_step, _PLACE_OF_KIND[row["kind"]], -abs(row["contribution"] or 0.0), -abs(row["delta"] or 0.0),
        row["finding_id"] or row["series_id"],
    )  # fmt: skip
