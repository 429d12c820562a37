"""The verdicts of candidate runs against baseline runs.

Where the candidate is a version as it was judged, and the baseline the runs that its step was judged against, they are
the stored ones, which history and findings show. Else the same judge compares exactly these runs: two sides that were
named answer for themselves. What the history of the candidate says of it stands beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.detect import CHANGES, KindCode, Reason, Thresholds, Verdict, judge_version, traits_of
from tracker.detect.thresholds import track_limits
from tracker.detect.track import Track
from tracker.errors import EXIT_FINDINGS, EXIT_OK, EXIT_TOO_LITTLE_DATA
from tracker.regressions.hosts import gates_with_host
from tracker.regressions.judgement import SIGNS, numbers_of, stated
from tracker.regressions.lifecycle import MACHINE
from tracker.regressions.track import BEGINNING, TrackRuns, recordings_of, runs_of_track
from tracker.results.recording import alike, incomplete_cells
from tracker.results.thresholds import Threshold
from tracker.results.verdicts import FAIL_ON, NOT_CONFIRMED, GateResult
from tracker.schema.series import SeriesKey
from tracker.store import Store
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.findings import JudgedRow
from tracker.store.samples.statistics import over_runs
from tracker.store.sql import statement
from tracker.store.tracks import ChosenRun, read_chosen_runs, tabulate_runs
from tracker.units import format_diff

NUMBERS: Final = ("change", "judged_change", "q", "contribution", "detectable")
_CHANGED: Final = ("REGRESSED", "IMPROVED")
STEP: Final = ("step", "e2e")
"""Names of the series that are the step: that of the whole capture where no step is marked."""
MEAN_STEP: Final = "mean step"
MAIN_LINE: Final = "main line"
"""What a gate of a branch waits for where the main line may be as slow itself."""
VerdictsBySeries = dict[SeriesKey, dict[str, Any]]
"""A series -> verdict (None: none), reason, and NUMBERS (nan: unknown): `change`, `judged_change`: ratios, with and
without the common-mode shift.
"""


def gate_of(  # noqa: PLR0913 -- the facts of a version, one by one
    limits: Thresholds, *, signs: Sequence[int] = (), mean_signs: Sequence[int] = (), net: float = 0.0,
    peak: float = 0.0, is_suspect: bool = False, is_machine: bool = False, is_decided: bool = False,
    is_incomplete: bool = False,
) -> GateResult:  # fmt: skip
    """Return the exit code, by the first rule that holds, and what gave it: docs/automate.md.

    `signs`: of the findings of the step; `mean_signs`: of the mean step, in which some slow steps show; `net`: change
    by the operators that were found, as a share of the step; `peak`: rise of peak memory, a ratio; `is_suspect`: the
    step may be slower; `is_machine`: all operators became slower together, and stay so; `is_decided`: the step has a
    verdict; `is_incomplete`: it has none, since records were lost.
    """
    rules = (
        (any(sign > 0 for sign in signs), "step", EXIT_FINDINGS),
        (any(sign > 0 for sign in mean_signs), "mean step", EXIT_FINDINGS),
        (peak >= limits.gate_peak, "peak memory", EXIT_FINDINGS),
        (not signs and net >= limits.gate_net, "net of the operators", EXIT_FINDINGS),
        (is_suspect, "suspect", EXIT_TOO_LITTLE_DATA),
        (is_machine, "machine", EXIT_TOO_LITTLE_DATA),
        (is_incomplete, "incomplete", EXIT_TOO_LITTLE_DATA),
        (not is_decided, "runs", EXIT_TOO_LITTLE_DATA),
        (True, "", EXIT_OK),
    )
    return next(GateResult(code, cause, net, peak) for holds, cause, code in rules if holds)


class InHistory(Struct, frozen=True):
    """How the step of a version was judged when it came. `verdict`: None where it has none; `change`: against the runs
    `base_runs` of the level before it, a ratio, None where that is not known. `returned`: a sentence on a finding of
    the step that was over in it. Of a version of one run that others decided, `since`: an older version with which its
    change began; `decided_by`: the version whose runs decided. `is_older`: it came before the baseline that it is
    compared with.
    """

    version: str
    verdict: str | None
    change: float | None
    base_runs: tuple[int, ...]
    since: str = ""
    decided_by: str = ""
    returned: str = ""
    is_older: bool = False

    @property
    def words(self) -> str:
        """The verdict, and what came of a single run: `REGRESSED since v4`, `NOT_CONFIRMED by v7`."""
        if self.verdict == NOT_CONFIRMED and self.decided_by:
            return f"{self.verdict} by {self.decided_by}"
        return f"{self.verdict} since {self.since}" if self.since else str(self.verdict)


class UserMark(Struct, frozen=True):
    """What a user said of findings that a candidate has open. `names`: of those; `is_whole`: it is said of all that the
    incident has open; `leaves_step`: the step is one of the others.
    """

    incident_id: int
    action: str
    who: str
    reason: str
    names: tuple[str, ...]
    is_whole: bool
    leaves_step: bool


class SideVerdicts(Struct, frozen=True, eq=False):
    """How candidate runs were judged against baseline runs.

    `by_series`: the verdict of each series.
    `rows`: the limits that users set, with which `limits` were made.
    `shift`: how much slower all operators together are, a ratio; None where too few of them are in all runs.
    `gates`: by the words of `--fail-on`; `host`: the slow one that explains a slower candidate, in words.
    `base_runs`: that a stored verdict of the step rests on; None where exactly these sides were judged.
    `still`: what was found before the candidate and is open in it, in words.
    `excused`: series that users marked as expected, or as a false positive.
    `history`: of a candidate that is a version; `marks`: of users on findings that came between the sides.
    """

    by_series: VerdictsBySeries
    rows: tuple[Threshold, ...]
    limits: Thresholds
    shift: float | None
    gates: Mapping[str, GateResult]
    host: str = ""
    base_runs: tuple[int, ...] | None = None
    still: Mapping[SeriesKey, str] = field(default_factory=dict)
    excused: frozenset[SeriesKey] = frozenset()
    history: InHistory | None = None
    marks: tuple[UserMark, ...] = ()


class Marks(Struct, frozen=True):
    """What findings say of two sides of which the candidate is a version of a track.

    `excused`: series that became worse after the baseline, as users intended (expect) or by mistake (invalid), or
    better; `older`: what was found up to the baseline and is open in the candidate; `still`, `history`, `marks`: as in
    SideVerdicts.
    """

    excused: frozenset[tuple[SeriesKey, int]] = frozenset()
    older: tuple[Any, ...] = ()
    still: Mapping[SeriesKey, str] = field(default_factory=dict)
    history: InHistory | None = None
    marks: tuple[UserMark, ...] = ()


def judged_version_of(track: TrackRuns, run_ids: Iterable[int]) -> JudgedRow | None:
    """How the version came out that is exactly these runs; None where they are none, or where it was judged from
    something else than what is there now.
    """
    own = set(run_ids)
    version = next((run.version_id for run in track.runs if run.run_id in own), 0)
    row = track.judged.get(version)
    is_whole = {run.run_id for run in track.runs_of(version)} == own
    return row if is_whole and row is not None and version not in track.late else None


def verdicts_of_sides(
    store: Store, baseline: Sequence[int], candidate: Sequence[int], *, candidate_store: Store | None = None
) -> SideVerdicts:
    """The verdicts of candidate runs against baseline runs, at least one each, of one track. Reads only.

    `candidate_store`: where the candidate runs are, if in another database. Whether the sides may be judged at all is
    for the caller to know.
    """
    if candidate_store is not None and candidate_store is not store:
        return judge_sides(store, baseline, candidate, candidate_store)
    with store.connect() as connection:
        track, row = _judged_version(connection, candidate)
        if track is None or row is None:
            marks = Marks()
        elif _is_level(row, baseline):
            return _stored(connection, track, row)
        else:
            marks = _marks_on_sides(connection, track, row, baseline)
    return judge_sides(store, baseline, candidate, store, marks)


def stored_or_history(
    connection: Connection, baseline: Sequence[int], candidate: Sequence[int]
) -> tuple[SideVerdicts | None, InHistory | None]:
    """The verdicts that history and findings show, where these sides are those that they compare; else None, and how
    the version was judged that the candidate is, None where it is none.
    """
    track, row = _judged_version(connection, candidate)
    if track is None or row is None:
        return None, None
    if _is_level(row, baseline):
        return _stored(connection, track, row), None
    return None, _mark_older_side(in_history(connection, track, row), track, row, baseline)


def _is_level(row: JudgedRow, run_ids: Iterable[int]) -> bool:
    """Whether these are the runs that the step of a version was judged against."""
    return {*run_ids} == {*map(int, row.base_runs.split())}


def _stored(connection: Connection, track: TrackRuns, row: JudgedRow) -> SideVerdicts:
    base = tuple(map(int, row.base_runs.split()))
    candidate = [run.run_id for run in track.runs_of(row.version_id)]
    said = _said(connection, track, row)
    rows = _open_in(connection, track, row.version_id)
    gates, host = _stored_gates(connection, track, row, said, rows)
    excused = frozenset(_key(one) for one in rows if one.excused)
    shift = None if not row.shared_factor else float(np.expm1(row.shared_factor))
    older = [one for one in rows if not one.excused and not _is_news(track, row, one) and SIGNS[one.direction] > 0]
    still = _still(connection, track, older, candidate)
    history = in_history(connection, track, row)
    own = [one for one in rows if _is_news(track, row, one)]
    marks = marks_of(connection, own)
    return SideVerdicts(said, track.limits, track.thresholds, shift, gates, host, base, still, excused, history, marks)


def _marks_on_sides(connection: Connection, track: TrackRuns, row: JudgedRow, baseline: Sequence[int]) -> Marks:
    """What findings say of a version against the runs of a baseline."""
    candidate = [run.run_id for run in track.runs_of(row.version_id)]
    history = _mark_older_side(in_history(connection, track, row), track, row, baseline)
    places = [track.place[run.version_id] for run in track.runs if run.run_id in {*baseline}]
    if not places or max(places) >= track.place[row.version_id]:
        # the baseline is of another track, or came later: nothing was found between the two
        return Marks(history=history)
    rows = _open_in(connection, track, row.version_id)
    is_after = [track.place.get(one.version_id, 0) > max(places) for one in rows]
    later = [one for one, after in zip(rows, is_after, strict=True) if after]
    excused = {(_key(one), SIGNS[one.direction]) for one in later if one.excused}
    older = [one for one, after in zip(rows, is_after, strict=True) if not after and not one.excused]
    worse = [one for one in older if SIGNS[one.direction] > 0]
    still = _still(connection, track, worse, candidate)
    return Marks(frozenset(excused), tuple(older), still, history, marks_of(connection, later))


def marks_of(connection: Connection, rows: Sequence[Any]) -> tuple[UserMark, ...]:
    """What users said of these findings, the last word on each that counts, by incident; notes are comments."""
    by_number = {row.finding_id: row for row in rows}
    last: dict[int, Any] = {}
    for word in connection.execute(statement("finding_words")) if rows else ():
        counts = word.action not in ("note", "undo") and not word.is_undone
        if word.finding_id in by_number and counts:
            last[word.finding_id] = word
    of_incident = Counter(row.incident_id for row in rows)
    grouped: dict[tuple[int, str, str, str], list[Any]] = {}
    for number, word in last.items():
        row = by_number[number]
        if word.action != "unmute":
            grouped.setdefault((row.incident_id, word.action, word.who, word.reason), []).append(row)
    found = []
    for key, own in grouped.items():
        numbers = {row.finding_id for row in own}
        others = [row for row in rows if row.incident_id == key[0] and row.finding_id not in numbers]
        names = tuple(dict.fromkeys(row.name for row in own))
        leaves_step = any(row.kind == "run" and row.name in STEP for row in others)
        found.append(UserMark(*key, names, of_incident[key[0]] == len(own), leaves_step))
    return tuple(found)


def _mark_older_side(history: InHistory, track: TrackRuns, row: JudgedRow, baseline: Sequence[int]) -> InHistory:
    """Return `history` with whether all runs of the baseline came after the version: the sides are in reverse order."""
    places = [track.place[run.version_id] for run in track.runs if run.run_id in {*baseline}]
    is_older = bool(places) and min(places) > track.place[row.version_id]
    return replace(history, is_older=is_older)


def in_history(connection: Connection, track: TrackRuns, row: JudgedRow) -> InHistory:
    """How the step of a version was judged when it came."""
    step = _step_of(_said(connection, track, row, kind="run"))
    version, base = track.labels[row.version_id], tuple(map(int, row.base_runs.split()))
    returned = _returned(connection, track, row.version_id)
    if step is None:
        return InHistory(version, None, None, base, returned=returned)
    change = None if np.isnan(step["change"]) else float(step["change"])
    if step["verdict"] != NOT_CONFIRMED and step["verdict"] not in _CHANGED:
        return InHistory(version, step["verdict"], change, base, returned=returned)
    levels = stored_findings.read_levels(connection, track.key, [row.version_id])[row.version_id]
    at = np.flatnonzero(levels.series_ids == step["series_id"])
    level, by = (int(own[at[0]]) if len(at) else BEGINNING for own in (levels.levels, levels.settled))
    is_waiting = level not in (row.version_id, step["level_version_id"], BEGINNING)
    since = track.labels.get(level, "") if is_waiting and step["verdict"] in _CHANGED else ""
    decided_by = track.labels.get(by, "") if by != row.version_id else ""
    return InHistory(version, step["verdict"], change, base, since, decided_by, returned)


def _returned(connection: Connection, track: TrackRuns, version_id: int) -> str:
    """What a version is back to, where a finding of the step was over in it; "" where none was."""
    label = track.label_of_run
    for row in stored_findings.list_findings(connection, track.key):
        is_step = row.kind == "run" and row.name in STEP
        if not is_step or row.ended_version_id != version_id or row.base_state not in ("recovered", "taken back"):
            continue
        before = [label[run] for run in map(int, row.baseline_runs.split()) if run in label]
        end = "over" if SIGNS[row.direction] > 0 else "gone"
        where = f"Back to the level of {before[-1]}" if before else "Back to the level before"
        return f"{where}: the {row.direction} of {row.version} (I-{row.incident_id}) is {end}."
    return ""


def _judged_version(connection: Connection, run_ids: Sequence[int]) -> tuple[TrackRuns | None, JudgedRow | None]:
    """The track and the judgement of the version that is exactly these runs."""
    track_keys = stored_tracks.list_tracks(connection, run_ids)
    track = runs_of_track(connection, track_keys[0]) if len(track_keys) == 1 else None
    return track, judged_version_of(track, run_ids) if track else None


def newest_gates(connection: Connection, track: TrackRuns) -> dict[str, GateResult]:
    """How each word of `--fail-on` ends for the newest version of a track, as in a diff of it with the version before;
    empty where its judgement is out of date.
    """
    row = judged_version_of(track, [run.run_id for run in track.newest])
    if row is None:
        return {}
    said = _said(connection, track, row, kind="run")
    return _stored_gates(connection, track, row, said, _open_in(connection, track, row.version_id))[0]


def _said(connection: Connection, track: TrackRuns, row: JudgedRow, kind: str | None = None) -> VerdictsBySeries:
    """The stored verdicts of a version."""
    said: VerdictsBySeries = {}
    for stored in stored_findings.read_verdicts(connection, track.key, row.version_id, kind=kind):
        verdict = dict(stored._mapping)
        for name in NUMBERS:
            if verdict[name] is None:
                verdict[name] = np.nan
        said[SeriesKey._make(stored[:5])] = verdict
    return said


def _stored_gates(
    connection: Connection, track: TrackRuns, row: JudgedRow, said: VerdictsBySeries, rows: Sequence[Any]
) -> tuple[dict[str, GateResult], str]:
    """How each word of `--fail-on` ends, without findings that users called expected or invalid; and the slow host.
    `said`: the verdicts of the version; `rows`: findings that are open in it.
    """
    is_peak_excused = any(one.excused and one.kind == "run" and one.metric.endswith("bytes") for one in rows)
    every = [one for one in rows if not one.excused]
    new = [one for one in every if _is_news(track, row, one)]
    gates = {}
    for word, own in zip(FAIL_ON, (new, every), strict=True):
        found = [(one.kind, one.name, SIGNS[one.direction]) for one in own if one.change != MACHINE]
        is_machine = any(one.change == MACHINE and SIGNS[one.direction] > 0 for one in own)
        net = sum(one.contribution for one in own if one.is_leaf)
        peak = 0.0 if is_peak_excused else row.peak
        gates[word] = _gate(track.thresholds, said, found, net=net, peak=peak, is_machine=is_machine)
    runs = [run.run_id for run in track.runs_of(row.version_id)]
    if track.main is not None and len(runs) >= track.thresholds.least_new:
        # enough runs of the branch: it is the main line that waits for more
        gates = {word: replace(one, cause=MAIN_LINE) if one.cause == "suspect" else one for word, one in gates.items()}
    base = [*map(int, row.base_runs.split())]
    return gates_with_host(gates, track.thresholds, (connection, runs), (connection, base))


def open_findings(connection: Connection, run_id: int) -> str:
    """What is worse in the version of a run by findings that are open to this day, a sentence; "" without any."""
    track_keys = stored_tracks.list_tracks(connection, [run_id])
    track = runs_of_track(connection, track_keys[0]) if track_keys else None
    version = next((run.version_id for run in track.runs if run.run_id == run_id), None) if track else None
    if track is None or version is None:
        return ""
    own = [run.run_id for run in track.runs_of(version)]
    still = (row for row in _open_in(connection, track, version) if row.ended_version_id is None and not row.excused)
    rows = [row for row in still if SIGNS[row.direction] > 0]
    if not rows:
        return ""
    first = max(rows, key=lambda row: (row.kind == "run" and row.name in STEP, abs(row.contribution or 0.0)))
    words = _still(connection, track, [first], own)[_key(first)]
    name = {"step": "The step is", "e2e": "The time of the whole capture is"}.get(first.name, first.name)
    if first.version == track.label_of_run.get(run_id):  # nothing is still there that this version brought
        how_much = words.partition(" (")[0].removeprefix("still ")
        is_new = how_much == "there"
        words = f"{'new' if is_new else how_much} in this version (I-{first.incident_id})"
        name = name if name.endswith(" is") else f"{name} is"
    return f"{name} {words}; tracker findings has all that is open."


def judge_sides(
    store: Store, baseline: Sequence[int], candidate: Sequence[int], candidate_store: Store, marks: Marks | None = None
) -> SideVerdicts:
    """Judge exactly these runs, by the limits of the track of the baseline, or where it has none of the candidate."""
    marks = marks or Marks()
    of_store = {store: [*baseline]}
    of_store.setdefault(candidate_store, []).extend(candidate)
    runs: list[ChosenRun] = []
    for side, run_ids in of_store.items():
        with side.connect() as connection:
            runs += read_chosen_runs(connection, run_ids)
    keys, values, calls, by_calls = tabulate_runs(runs)
    rows = next((run.limits for run in runs if run.limits), ())
    limits = track_limits(rows)
    traits = traits_of(keys, rows, device_timed=all(run.recorded.timeline == "device" for run in runs[len(baseline) :]))
    versions = np.repeat([1, 2], [len(baseline), len(candidate)])
    recordings = recordings_of(keys, values, [run.recorded for run in runs])
    same, lost = alike(keys, recordings, len(runs) - 1), incomplete_cells(keys, recordings)
    track = Track(values, versions, traits, calls=calls, alike=same, incomplete=lost, by_calls=by_calls)
    new = versions == 2
    window, _ = track.window(2, np.flatnonzero(~new), np.flatnonzero(new), limits)
    own = judge_version(window, traits, window.recorded & ~new, new, limits=limits)
    # as verdicts are stored; None where nothing is to be said
    has_words, reasons = stated(track, own)
    numbers = numbers_of(track, own, limits)
    said: VerdictsBySeries = {}
    for row, key in enumerate(keys):
        is_judged = has_words[row] and reasons[row] not in (Reason.SETTINGS, Reason.INCOMPLETE)
        said[key] = {name: numbers[name].item(row) if is_judged else np.nan for name in NUMBERS}
        said[key]["verdict"] = Verdict(int(own.verdict[row])).name if is_judged else None
        said[key]["reason"] = Reason(int(reasons[row])).name if has_words[row] else None
    signs = own.sign.tolist()
    excused = np.array([(key, sign) in marks.excused for key, sign in zip(keys, signs, strict=True)], dtype=bool)
    leaf, changed = traits.leaf, np.isin(own.verdict, CHANGES) & ~excused
    peaks = np.expm1(own.raw_change[(traits.kind == KindCode.PEAK) & ~excused])
    shift = float(np.expm1(window.shift[new].mean())) if window.shift.any() else None
    found = [(keys[row][0], keys[row][2], signs[row]) for row in np.flatnonzero(own.sign).tolist() if not excused[row]]
    net, peak = float(own.contribution[leaf & changed].sum()), float(np.nan_to_num(peaks).max(initial=0.0))
    older = [(one.kind, one.name, SIGNS[one.direction]) for one in marks.older]
    older_net = sum(one.contribution for one in marks.older if one.is_leaf)
    gates = {
        FAIL_ON[0]: _gate(limits, said, found, net=net, peak=peak),
        FAIL_ON[1]: _gate(limits, said, [*found, *older], net=net + older_net, peak=peak),
    }
    with candidate_store.connect() as after, store.connect() as before:
        gates, host = gates_with_host(gates, limits, (after, candidate), (before, baseline))
    intended = frozenset(keys[row] for row in np.flatnonzero(excused).tolist())
    return SideVerdicts(
        said,
        rows,
        limits,
        shift,
        gates,
        host,
        still=marks.still,
        excused=intended,
        history=marks.history,
        marks=marks.marks,
    )


def _gate(
    limits: Thresholds, said: VerdictsBySeries, found: Sequence[tuple[str, str, int]], *, net: float, peak: float,
    is_machine: bool = False,
) -> GateResult:  # fmt: skip
    """Return how the gate ends; `found`: kind, name and sign of the findings that are not the machine's."""
    key = _step_key(said)
    step, verdict, change = (key[2], said[key]["verdict"], said[key]["change"]) if key else ("", None, np.nan)
    signs = [sign for kind, name, sign in found if kind == "run" and name == step]
    mean_signs = [sign for kind, name, sign in found if kind == "run" and name == MEAN_STEP]
    is_suspect, is_decided = verdict == "SUSPECT" and change > 0, verdict not in (None, "TOO_FEW_RUNS")
    means = [own for key, own in said.items() if key[0] == "run" and key[2] == MEAN_STEP]
    is_suspect |= any(own["verdict"] == "SUSPECT" and own["change"] > 0 for own in means)
    reasons = {own["reason"] for key, own in said.items() if key[0] == "run" and key[2] in STEP}
    return gate_of(
        limits, signs=signs, mean_signs=mean_signs, net=net, peak=peak, is_suspect=is_suspect, is_machine=is_machine,
        is_decided=is_decided, is_incomplete=not is_decided and "INCOMPLETE" in reasons,
    )  # fmt: skip


def _step_key(said: VerdictsBySeries) -> SeriesKey | None:
    """The series that is the step, of those with a verdict."""
    steps = [key for key, own in said.items() if key[0] == "run" and key[2] in STEP and own["verdict"] is not None]
    return min(steps, key=lambda key: (STEP.index(key[2]), key[4]), default=None)


def _step_of(said: VerdictsBySeries) -> dict[str, Any] | None:
    key = _step_key(said)
    return None if key is None else said[key]


def _open_in(connection: Connection, track: TrackRuns, version_id: int) -> list[Any]:
    """The findings that were open in a version, those that it began with them."""
    place, last = track.place, len(track.order) + 1
    at = place[version_id]
    return [
        row for row in stored_findings.list_findings(connection, track.key)
        if place.get(row.version_id, last) <= at
        and (row.ended_version_id is None or place.get(row.ended_version_id, last) > at)
    ]  # fmt: skip


def _is_news(track: TrackRuns, row: JudgedRow, finding: Any) -> bool:
    """Whether a finding that is open in a version is one of it: it began there, or its runs took part in deciding."""
    decided = track.place.get(finding.decided_version_id, 0)
    return finding.version_id == row.version_id or decided >= track.place[row.version_id]


def _key(row: Any) -> SeriesKey:
    return SeriesKey(row.kind, row.metric, row.name, row.input_shapes, row.part)


def _still(
    connection: Connection, track: TrackRuns, rows: Sequence[Any], run_ids: Sequence[int]
) -> dict[SeriesKey, str]:
    """Series -> how far it is above what it was before an older finding of it, in words."""
    label = track.label_of_run
    series = sorted({row.series_id for row in rows})
    values = stored_tracks.read_values_of_series(connection, run_ids, series) if series else np.zeros((0, len(run_ids)))
    now = dict(zip(series, over_runs(values).tolist(), strict=True))
    found: dict[SeriesKey, str] = {}
    for row in rows:
        since = f"I-{row.incident_id}, open since {row.version}"
        before = [label[run] for run in map(int, row.baseline_runs.split()) if run in label]
        size = now[row.series_id] / row.baseline_value - 1.0 if row.baseline_value else np.nan
        if np.isnan(size) or not before:
            found[_key(row)] = f"still there ({since})"
        else:
            where = "above" if size >= 0 else "below"
            found[_key(row)] = f"still {format_diff(abs(size)).lstrip('+')} {where} {before[-1]} ({since})"
    return found
