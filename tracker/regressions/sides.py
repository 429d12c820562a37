"""The verdicts of candidate runs against baseline runs.

Where the candidate is a version as it was judged, and the baseline the runs that its step was judged against, they are
the stored ones, which history and findings show. Else the same judge compares exactly these runs: two sides that were
named answer for themselves. What the history of the candidate says of it stands beside them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.columns import Flags
from tracker.detect import (
    CHANGES,
    JudgedSeries,
    KindCode,
    Reason,
    Thresholds,
    Verdict,
    Window,
    judge_version,
    traits_of,
)
from tracker.detect.coverage import count_coverage
from tracker.detect.hosts import on_equal_hosts
from tracker.detect.known_hosts import Hosts, code_hosts
from tracker.detect.sides import newest
from tracker.detect.thresholds import track_limits
from tracker.detect.track import Track
from tracker.detect.verdicts import LEVEL_CHANGES
from tracker.errors import EXIT_FINDINGS, EXIT_OK, EXIT_TOO_LITTLE_DATA
from tracker.regressions.bases import Bases, read_bases
from tracker.regressions.hosts import (
    gates_with_host,
    other_hosts,
    share_hosts,
    throttled_sides,
    words_of_other_hosts,
    words_of_throttled,
)
from tracker.regressions.judged_rows import SIGNS, numbers_of, stated
from tracker.regressions.lifecycle import ALIKE, HOST, MACHINE, MAYBE_CODE, OF_HOSTS, THROTTLED, UNDECIDED
from tracker.regressions.rounding import tabulate_roundings
from tracker.regressions.scaled_inputs import find_concerned, find_other_runs
from tracker.regressions.track import (
    BEGINNING,
    TrackRuns,
    find_other_version,
    recordings_of,
    runs_of_track,
    unjudged_track,
)
from tracker.regressions.usual_runs import list_awaited_runs
from tracker.results.coverage import Coverage
from tracker.results.machine_state import throttled_by
from tracker.results.recording import alike, incomplete_cells
from tracker.results.thresholds import Threshold
from tracker.results.verdicts import (
    FAIL_ON,
    NOT_CONFIRMED,
    OTHER_WORK_REASON,
    VERDICT_OF_DIRECTION,
    WORST_FIRST,
    GateResult,
    SeriesVerdict,
    word_of_step,
)
from tracker.results.waiting import AwaitedRuns
from tracker.schema.series import OF_WHOLE_CAPTURE, STEP_SERIES, STEP_WAYS, SeriesKey
from tracker.store import Store
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.findings import JudgedRow, StoredFinding
from tracker.store.samples.statistics import over_runs
from tracker.store.sql import statement
from tracker.store.tracks import ChosenRun, read_chosen_runs, tabulate_runs
from tracker.units import format_diff, level_words

_NO_VERDICT: Final = (Reason.SETTINGS, Reason.INCOMPLETE, Reason.OTHER_WORK)
"""Reasons why two sides cannot be compared: they stand without a verdict."""
_BASELINE: Final = 1
_CANDIDATE: Final = 2
"""The sides as versions of a track."""
MEAN_STEP: Final = "mean step"
MAIN_LINE: Final = "main line"
"""What a gate of a branch waits for where the main line may be as slow itself."""
VerdictsBySeries = Mapping[SeriesKey, SeriesVerdict]
"""How each series was judged."""
VerdictKind = TypeVar("VerdictKind", bound=SeriesVerdict)


class StoredVerdict(SeriesVerdict, frozen=True, kw_only=True):
    """A verdict that is stored.

    - series_id: the number of the series
    - level_version_id: the version with which the level began that it was compared with
    """

    series_id: int
    level_version_id: int | None


def gate_of(  # noqa: PLR0913 -- the facts of a version, one by one
    limits: Thresholds, *, signs: Sequence[int] = (), mean_signs: Sequence[int] = (), net: float = 0.0,
    peak: float = 0.0, is_suspect: bool = False, is_machine: bool = False, is_alike: bool = False,
    is_host: bool = False, is_throttled: bool = False, is_decided: bool = False, is_incomplete: bool = False,
    is_other_work: bool = False,
) -> GateResult:  # fmt: skip
    """Return the exit code, by the first rule that holds, and what gave it: docs/ci.md.

    `signs`: of the findings of the step; `mean_signs`: of the mean step, in which some slow steps show; `net`: change
    by the operators that were found, as a share of the step; `peak`: rise of peak memory, a ratio; `is_suspect`: the
    step may be slower; `is_machine`: all operators became slower together, and stay so; `is_alike`: all of a few did by
    one factor, which may be the machine; `is_host`: it is slower, or runs on another host; `is_throttled`: or its
    machine was throttled; `is_decided`: the step has
    a verdict; `is_incomplete`: it has none, since records were lost; `is_other_work`: it has none, since the inputs
    have another size.
    """
    rules = (
        (any(sign > 0 for sign in signs), "step", EXIT_FINDINGS),
        (any(sign > 0 for sign in mean_signs), "mean step", EXIT_FINDINGS),
        (peak >= limits.gate_peak, "peak memory", EXIT_FINDINGS),
        (not signs and net >= limits.gate_net, "net of the operators", EXIT_FINDINGS),
        (is_suspect, "suspect", EXIT_TOO_LITTLE_DATA),
        (is_machine, "machine", EXIT_TOO_LITTLE_DATA),
        (is_alike, "alike", EXIT_TOO_LITTLE_DATA),
        (is_host, "host", EXIT_TOO_LITTLE_DATA),
        (is_throttled, "throttled", EXIT_TOO_LITTLE_DATA),
        (is_incomplete, "incomplete", EXIT_TOO_LITTLE_DATA),
        (is_other_work, "other work", EXIT_TOO_LITTLE_DATA),
        (not is_decided, "runs", EXIT_TOO_LITTLE_DATA),
        (True, "", EXIT_OK),
    )
    return next(GateResult(code, cause, net, peak) for holds, cause, code in rules if holds)


class InHistory(Struct, frozen=True):
    """How the step of a version was judged when it came.

    `verdict`: None where it has none.
    `change`: against the runs `base_runs` of the level before it, a ratio, None where that is not known.
    `since`: of a version of one run that others decided, an older version with which its change began.
    `decided_by`: of such a version, the version whose runs decided.
    `returned`: a sentence on a finding of the step that was over in it.
    `reason`: the code of why it has the verdict.
    `is_older`: it came before the baseline that it is compared with.
    """

    version: str
    verdict: str | None
    change: float | None
    base_runs: tuple[int, ...]
    since: str = ""
    decided_by: str = ""
    returned: str = ""
    reason: str = ""
    is_older: bool = False

    @property
    def words(self) -> str:
        """The verdict, and what came of a single run: `REGRESSED since v4`, `NOT_CONFIRMED by v7`.

        Where the hosts alone may make it, that too.
        """
        if self.verdict == NOT_CONFIRMED and self.decided_by:
            return f"{self.verdict} by {self.decided_by}"
        word = word_of_step(self.verdict, self.reason)
        return f"{word} since {self.since}" if self.since else word


class UserMark(Struct, frozen=True):
    """A mark that a user gave to findings of one incident that a candidate has open.

    `names`: of those findings; `is_whole`: it is on all that the incident has open; `leaves_step`: the step is one
    of the others.
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
    `shift`: how much slower all operators together are than in the runs that the step was judged against, a ratio;
    None where too few of them are in all runs.
    `gates`: by the words of `--fail-on`; `host`: the slow one that explains a slower candidate, in words.
    `hosts`: those of the runs before and after in words, where no host ran both, else "". `throttled`: as of
    `throttled_sides`.
    `coverage`: how many series were judged; None: not known, of what an earlier program judged.
    `base_runs`: that a stored verdict of the step rests on; None where exactly these sides were judged.
    `still`: what was found before the candidate and is open in it, in words.
    `excused`: series that users marked as expected, or as a false positive.
    `history`: of a candidate that is a version; `marks`: of users on findings that came between the sides.
    `bases`: the runs that a verdict rests on, of series for which these are not all runs of the baseline.
    `shift_of_kind`: `shift` by kinds of steps; `step_kind`: of a stored verdict the kind that stands for the version.
    `awaited`: of a candidate that is a version, the runs that may still come; None: none are awaited.
    """

    by_series: VerdictsBySeries
    rows: tuple[Threshold, ...]
    limits: Thresholds
    shift: float | None
    gates: Mapping[str, GateResult]
    host: str = ""
    hosts: tuple[str, str] = ("", "")
    throttled: tuple[str, str] = ("", "")
    coverage: Coverage | None = None
    base_runs: tuple[int, ...] | None = None
    still: Mapping[SeriesKey, str] = field(default_factory=dict)
    excused: frozenset[SeriesKey] = frozenset()
    history: InHistory | None = None
    marks: tuple[UserMark, ...] = ()
    bases: Bases = field(default_factory=dict)
    shift_of_kind: Mapping[str, float | None] = field(default_factory=dict)
    step_kind: str = ""
    awaited: AwaitedRuns | None = None

    def of_kind(self, step_kind: str) -> SideVerdicts:
        """Return the verdicts of one kind of steps as those of a run that has no other ones."""
        if not any(key.step_kind == step_kind for key in self.by_series):
            # all steps are of one kind, or there are no kinds
            return self

        def chosen(key: SeriesKey) -> bool:
            return key.step_kind == step_kind or (not key.step_kind and key.name in OF_WHOLE_CAPTURE)

        def plain(key: SeriesKey) -> SeriesKey:
            return key._replace(step_kind="")

        return replace(
            self,
            by_series={plain(key): own for key, own in self.by_series.items() if chosen(key)},
            still={plain(key): own for key, own in self.still.items() if chosen(key)},
            excused=frozenset(plain(key) for key in self.excused if chosen(key)),
            bases={plain(key): own for key, own in self.bases.items() if chosen(key)},
            shift=self.shift if step_kind == self.step_kind else self.shift_of_kind.get(step_kind),
            # how the version came out is by the kind that stood for it
            history=self.history if step_kind == (self.step_kind or step_kind) else None,
        )


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
    """Return how the version was judged that is exactly these runs; None where they are none.

    None, too, where it was judged from something else than what is there now.
    """
    chosen = set(run_ids)
    version = next((run.version_id for run in track.runs if run.run_id in chosen), 0)
    row = track.judged.get(version)
    is_whole = {run.run_id for run in track.runs_of(version)} == chosen
    if not is_whole or row is None or version in track.late:
        return None
    return row


def verdicts_of_sides(
    store: Store, baseline: Sequence[int], candidate: Sequence[int], *, candidate_store: Store | None = None,
    bases: Bases | None = None,
) -> SideVerdicts:  # fmt: skip
    """Return the verdicts of candidate runs against baseline runs, at least one each, of one track. Reads only.

    `candidate_store`: where the candidate runs are, if in another database. `bases`: where the baseline stands
    for the level of the candidate, what each series was judged against; None: it is exactly these runs for every
    series. Whether the sides may be judged at all is for the caller to know.
    """
    if candidate_store is not None and candidate_store is not store:
        return judge_sides(store, baseline, candidate, candidate_store)
    stored: SideVerdicts | None = None
    awaited: AwaitedRuns | None = None
    with store.connect() as connection:
        track, row = _judged_version(connection, candidate)
        if track is None or row is None:
            marks = Marks()
        else:
            awaited = _list_awaited(store, track).get(row.version_id)
            if _is_level(row, baseline):
                stored = _stored_verdicts(connection, track, row, bases)
            if stored is not None and bases is not None:
                return replace(stored, awaited=awaited)
            if stored is not None and not _list_beyond(stored, baseline):
                return replace(_between(stored, None, baseline), awaited=awaited)
            marks = _marks_on_sides(connection, track, row, baseline)
    exact = judge_sides(store, baseline, candidate, store, marks)
    return replace(exact if stored is None else _between(stored, exact, baseline), awaited=awaited)


def _list_awaited(store: Store, track: TrackRuns) -> dict[int, AwaitedRuns]:
    return list_awaited_runs(
        track.runs, look_back=track.thresholds.look_back, settle_ns=store.runs_settle_ns, now_ns=time.time_ns()
    )


def _list_beyond(stored: SideVerdicts, baseline: Sequence[int]) -> list[SeriesKey]:
    """Return the series that were judged against other runs than these."""
    return [key for key, own in stored.bases.items() if not {*own.runs} <= {*baseline}]


def _between(stored: SideVerdicts, exact: SideVerdicts | None, baseline: Sequence[int]) -> SideVerdicts:
    """Return stored verdicts for two named sides, all of whose numbers are of exactly these runs: with the verdicts of
    these sides for series that were judged against other runs.

    `exact`: None where there are none, or where these sides cannot be judged by themselves: they have no verdict.
    """
    beyond = set(_list_beyond(stored, baseline))
    by_series: dict[SeriesKey, SeriesVerdict] = {}
    by_series |= {key: verdict for key, verdict in stored.by_series.items() if key not in beyond}
    if exact is not None:
        by_series |= {key: verdict for key, verdict in exact.by_series.items() if key in beyond}
    return replace(stored, by_series=by_series, bases={})


def stored_or_history(
    connection: Connection, baseline: Sequence[int], candidate: Sequence[int], *, bases: Bases | None = None
) -> tuple[SideVerdicts | None, InHistory | None]:
    """Return the verdicts that history and findings show, where these sides are those that they compare; `bases`: as in
    `verdicts_of_sides`.

    Else None, and how the version was judged that the candidate is, None where it is none.
    """
    track, row = _judged_version(connection, candidate)
    if track is None or row is None:
        return None, None
    if _is_level(row, baseline):
        stored = _stored_verdicts(connection, track, row, bases)
        # what came of the version stands beside the verdicts of its level, and not of two sides
        return (_between(stored, None, baseline), None) if bases is None else (stored, stored.history)
    return None, _mark_older_side(in_history(connection, track, row), track, row, baseline)


def _is_level(row: JudgedRow, run_ids: Iterable[int]) -> bool:
    """Return whether these are the runs that the step of a version was judged against."""
    return {*run_ids} == {*map(int, row.base_runs.split())}


def _stored_verdicts(
    connection: Connection, track: TrackRuns, row: JudgedRow, bases: Bases | None = None
) -> SideVerdicts:
    """Return what is stored of a version, compared with the runs that its step was judged against; `bases`: what its
    series were, None: they are read.
    """
    candidate, base = [run.run_id for run in track.runs_of(row.version_id)], [*map(int, row.base_runs.split())]
    verdicts = _read_verdicts(connection, track, row)
    findings = _findings_open_in(connection, track, row.version_id)
    gates, host = _stored_gates(connection, track, row, verdicts, findings)
    new = [finding for finding in findings if _is_new_in(track, row, finding)]
    older = [finding for finding in findings if not _is_new_in(track, row, finding)]
    older_and_worse = [finding for finding in older if not finding.excused and SIGNS[finding.direction] > 0]
    return SideVerdicts(
        by_series=verdicts,
        rows=track.limits,
        limits=track.thresholds,
        shift=float(np.expm1(row.shared_factor)) if row.shared_factor else None,
        gates=gates,
        host=host,
        coverage=Coverage.of_numbers(row.coverage),
        hosts=other_hosts((connection, candidate), (connection, base)),
        throttled=throttled_sides((connection, candidate), (connection, base)),
        base_runs=tuple(map(int, row.base_runs.split())),
        still=_words_of_older(connection, track, older_and_worse, candidate),
        excused=frozenset(_key_of(finding) for finding in findings if finding.excused),
        history=in_history(connection, track, row),
        marks=marks_of(connection, new),
        bases=read_bases(connection, track, row.version_id) if bases is None else bases,
        step_kind=row.step_kind,
    )


def _marks_on_sides(connection: Connection, track: TrackRuns, row: JudgedRow, baseline: Sequence[int]) -> Marks:
    """Return what findings say of a version against the runs of a baseline."""
    candidate = [run.run_id for run in track.runs_of(row.version_id)]
    history = _mark_older_side(in_history(connection, track, row), track, row, baseline)
    places = [track.place[run.version_id] for run in track.runs if run.run_id in {*baseline}]
    if not places or max(places) >= track.place[row.version_id]:
        # the baseline is of another track, or came later: nothing was found between the two
        return Marks(history=history)
    later, older = [], []
    for finding in _findings_open_in(connection, track, row.version_id):
        if track.place.get(finding.version_id, 0) > max(places):
            later.append(finding)
        elif not finding.excused:
            older.append(finding)
    older_and_worse = [finding for finding in older if SIGNS[finding.direction] > 0]
    return Marks(
        excused=frozenset((_key_of(finding), SIGNS[finding.direction]) for finding in later if finding.excused),
        older=tuple(older),
        still=_words_of_older(connection, track, older_and_worse, candidate),
        history=history,
        marks=marks_of(connection, later),
    )


def marks_of(connection: Connection, rows: Sequence[Any]) -> tuple[UserMark, ...]:
    """Return the marks that users gave to these findings: the last that counts on each, equal ones in one."""
    if not rows:
        return ()
    finding_of_id = {row.finding_id: row for row in rows}
    last_words: dict[int, Any] = {}
    for word in connection.execute(statement("finding_words")):
        # notes are comments
        counts = word.action not in ("note", "undo") and not word.is_undone
        if word.finding_id in finding_of_id and counts:
            last_words[word.finding_id] = word
    marked: dict[tuple[int, str, str, str], list[Any]] = {}
    for finding_id, word in last_words.items():
        finding = finding_of_id[finding_id]
        # a finding that is no longer muted is one without a mark
        if word.action != "unmute":
            marked.setdefault((finding.incident_id, word.action, word.who, word.reason), []).append(finding)
    marks = []
    for (incident_id, action, who, reason), findings in marked.items():
        ids = {finding.finding_id for finding in findings}
        others = [row for row in rows if row.incident_id == incident_id and row.finding_id not in ids]
        names = tuple(dict.fromkeys(finding.name for finding in findings))
        leaves_step = any(row.kind == "run" and row.name in STEP_SERIES for row in others)
        marks.append(UserMark(incident_id, action, who, reason, names, not others, leaves_step))
    return tuple(marks)


def _mark_older_side(history: InHistory, track: TrackRuns, row: JudgedRow, baseline: Sequence[int]) -> InHistory:
    """Return `history` with whether all runs of the baseline came after the version: the sides are in reverse order."""
    places = [track.place[run.version_id] for run in track.runs if run.run_id in {*baseline}]
    is_older = bool(places) and min(places) > track.place[row.version_id]
    return replace(history, is_older=is_older)


def in_history(connection: Connection, track: TrackRuns, row: JudgedRow) -> InHistory:
    """Return how the step of a version was judged when it came."""
    verdicts = _read_verdicts(connection, track, row, kind="run")
    step = _step_of({key: own for key, own in verdicts.items() if key.step_kind == row.step_kind})
    version, base = track.labels[row.version_id], tuple(map(int, row.base_runs.split()))
    returned = _returned(connection, track, row.version_id)
    if step is None:
        return InHistory(version, None, None, base, returned=returned)
    change = None if np.isnan(step.change) else float(step.change)
    if step.verdict != NOT_CONFIRMED and step.verdict not in LEVEL_CHANGES:
        return InHistory(version, step.verdict, change, base, returned=returned)
    levels = stored_findings.read_levels(connection, track.key, [row.version_id])[row.version_id]
    at = np.flatnonzero(levels.series_ids == step.series_id)
    level, settled_by = (int(own[at[0]]) if len(at) else BEGINNING for own in (levels.levels, levels.settled))
    since, decided_by = "", ""
    # the level that it is in now began in an older version, and is not the one that it was compared with
    began_before = level not in (row.version_id, step.level_version_id, BEGINNING)
    if began_before and step.verdict in LEVEL_CHANGES and not returned:
        since = track.labels.get(level, "")
    if settled_by != row.version_id:
        decided_by = track.labels.get(settled_by, "")
    return InHistory(version, step.verdict, change, base, since, decided_by, returned, step.reason or "")


def _returned(connection: Connection, track: TrackRuns, version_id: int) -> str:
    """Say what a version is back to, where a finding of the step was over in it; "" where none was."""
    label = track.label_of_run
    for row in stored_findings.list_findings(connection, track.key):
        is_step = row.kind == "run" and row.name in STEP_SERIES
        if not is_step or row.ended_version_id != version_id or row.base_state not in ("recovered", "taken back"):
            continue
        before = [label[run] for run in map(int, row.baseline_runs.split()) if run in label]
        end = "over" if SIGNS[row.direction] > 0 else "gone"
        where = f"Back to the level of {before[-1]}" if before else "Back to the level before"
        if row.ended_by_version_id == version_id and len(track.runs_of(version_id)) == 1:
            version = track.labels[version_id]
            return (
                f"{where}: the {row.direction} of {row.version} (I-{row.incident_id}) is gone in {version} (one run)."
            )
        return f"{where}: the {row.direction} of {row.version} (I-{row.incident_id}) is {end}."
    return ""


def _judged_version(connection: Connection, run_ids: Sequence[int]) -> tuple[TrackRuns | None, JudgedRow | None]:
    """Return the track and the judgement of the version that is exactly these runs; None for runs of several tracks."""
    track_keys = stored_tracks.list_tracks(connection, run_ids)
    if len(track_keys) != 1:
        return None, None
    track = runs_of_track(connection, track_keys[0])
    return track, judged_version_of(track, run_ids)


def newest_gates(connection: Connection, track: TrackRuns) -> dict[str, GateResult]:
    """Return how each word of `--fail-on` ends for the newest version of a track, as in a diff with the version before.

    Empty where its judgement is out of date.
    """
    row = judged_version_of(track, [run.run_id for run in track.newest])
    if row is None:
        return {}
    verdicts = _read_verdicts(connection, track, row, kind="run")
    gates, _ = _stored_gates(connection, track, row, verdicts, _findings_open_in(connection, track, row.version_id))
    return gates


def _read_verdicts(
    connection: Connection, track: TrackRuns, row: JudgedRow, kind: str | None = None
) -> dict[SeriesKey, StoredVerdict]:
    """Return the stored verdicts of a version; `kind`: of series of this kind alone."""
    verdicts: dict[SeriesKey, StoredVerdict] = {}
    for stored in stored_findings.read_verdicts(connection, track.key, row.version_id, kind=kind):
        numbers = (stored.change, stored.judged_change, stored.q, stored.contribution, stored.detectable)
        verdicts[stored.key] = StoredVerdict(
            stored.verdict,
            stored.reason,
            *(np.nan if number is None else number for number in numbers),
            series_id=stored.series_id,
            level_version_id=stored.level_version_id,
        )
    return verdicts


def _stored_gates(
    connection: Connection,
    track: TrackRuns,
    row: JudgedRow,
    verdicts: VerdictsBySeries,
    findings: Sequence[StoredFinding],
) -> tuple[dict[str, GateResult], str]:
    """Return how each word of `--fail-on` ends, without findings that users called expected or invalid; the slow host.

    `verdicts`: of the version; `findings`: those that are open in it.
    """
    is_peak_excused = any(one.excused and one.kind == "run" and one.metric.endswith("bytes") for one in findings)
    peak = 0.0 if is_peak_excused else row.peak
    every = [finding for finding in findings if not finding.excused]
    new = [finding for finding in every if _is_new_in(track, row, finding)]
    gates = {}
    for word, gated in zip(FAIL_ON, (new, every), strict=True):
        of_code = [one for one in gated if one.change not in MAYBE_CODE]
        signs = [(one.kind, one.name, SIGNS[one.direction]) for one in of_code]
        slower_by = {one.change for one in gated if SIGNS[one.direction] > 0}
        net = _net_of(gated)
        gates[word] = _gate(
            track.thresholds, verdicts, signs, net=net, peak=peak,
            is_machine=MACHINE in slower_by, is_alike=ALIKE in slower_by, is_host=HOST in slower_by,
            is_throttled=THROTTLED in slower_by,
        )  # fmt: skip
    runs = [run.run_id for run in track.runs_of(row.version_id)]
    if track.main is not None and len(runs) >= track.thresholds.least_new:
        # enough runs of the branch: it is the main line that waits for more
        gates = {word: replace(one, cause=MAIN_LINE) if one.cause == "suspect" else one for word, one in gates.items()}
    base = [*map(int, row.base_runs.split())]
    return gates_with_host(gates, track.thresholds, (connection, runs), (connection, base))


def _net_of(findings: Sequence[StoredFinding]) -> float:
    """Return the change by operators as a share of the step: of several kinds of steps that of the kind that lost most,
    for shares of different steps have no sum.
    """
    nets: dict[str, float] = {}
    for one in findings:
        if one.is_leaf:
            nets[one.step_kind] = nets.get(one.step_kind, 0.0) + one.contribution
    return max(nets.values(), default=0.0)


class OpenFinding(Struct, frozen=True):
    """What is worse in the version of a run by the first of the findings that are open to this day.

    `words`: in a sentence without its end; `step_incident_id`: of which incident, where it is the step that is worse.
    """

    words: str
    workload: str
    step_incident_id: int | None = None


def find_open_finding(connection: Connection, track: TrackRuns, run_id: int) -> OpenFinding | None:
    """Return what is worse in the version of a run by findings that are open to this day; None without any. `track`: of
    the run.
    """
    version = next((run.version_id for run in track.runs if run.run_id == run_id), None)
    if version is None:
        return None
    worse = []
    for finding in _findings_open_in(connection, track, version):
        is_open_now = finding.ended_version_id is None and not finding.excused
        if is_open_now and SIGNS[finding.direction] > 0:
            worse.append(finding)
    if not worse:
        return None
    # the step before anything else, then the largest
    first = max(worse, key=_weigh_open)
    run_ids = [run.run_id for run in track.runs_of(version)]
    words = _words_of_older(connection, track, [first], run_ids)[_key_of(first)]
    name = {"step": "The step is", "e2e": "The time of the whole capture is"}.get(first.name, first.name)
    if first.version == track.label_of_run.get(run_id):  # nothing is still there that this version brought
        how_much = words.partition(" (")[0].removeprefix("still ")
        if how_much == "there":
            how_much = "new"
        words = f"{how_much} in this version (I-{first.incident_id}{_doubt_of(first)})"
        name = name if name.endswith(" is") else f"{name} is"
    is_step = first.kind == "run" and first.name in STEP_SERIES
    return OpenFinding(f"{name} {words}", first.workload, first.incident_id if is_step else None)


def _weigh_open(row: StoredFinding) -> tuple[bool, bool, float]:
    """Return a key by which the largest open finding is the step, else E2E, else the largest part of the step."""
    is_of_run = row.kind == "run"
    return is_of_run and row.name == STEP_SERIES[0], is_of_run and row.name in STEP_SERIES, abs(row.contribution or 0.0)


_SESSION_NS: Final = 3600 * 10**9
"""Runs that began within an hour are of one session."""


class _Judged(Struct, frozen=True):
    """What judging the steps of one kind of two sides gives."""

    step_kind: str
    track: Track
    judged: JudgedSeries
    window: Window


def judge_sides(
    store: Store, baseline: Sequence[int], candidate: Sequence[int], candidate_store: Store, marks: Marks | None = None
) -> SideVerdicts:
    """Judge exactly these runs, by the limits of the track of the baseline, or where it has none of the candidate; each
    kind of steps by itself.
    """
    marks = marks or Marks()
    of_store = {store: [*baseline]}
    of_store.setdefault(candidate_store, []).extend(candidate)
    runs: list[ChosenRun] = []
    for side, run_ids in of_store.items():
        with side.connect() as connection:
            runs += read_chosen_runs(connection, run_ids)
    rows = next((run.limits for run in runs if run.limits), ())
    limits = track_limits(rows)
    counts = (len(baseline), len(candidate))
    before_side, after_side = slice(counts[0]), slice(counts[0], None)
    kinds = _find_kinds(runs, len(baseline))
    by_turns = _ran_by_turns(runs[: len(baseline)], runs[len(baseline) :])
    parts = [_judge_kind(kind, runs, counts, rows, by_turns=by_turns) for kind in ("", *kinds.shared)]
    if any((_moves(part) & (~part.track.series.of_step | part.track.series.is_alone)).any() for part in parts):
        # whether such a series jumps between two levels is what the look-back of the candidate shows, and of a series
        # alone how much nights differ
        with candidate_store.connect() as connection:
            places = _look_back(connection, [*(baseline if store is candidate_store else ()), *candidate], limits)
            older = [run_id for run_id in places if run_id not in {*of_store[candidate_store]}]
            past_runs = read_chosen_runs(connection, older)
            at_level = _list_runs_at_level(connection, baseline, older) if store is candidate_store else frozenset()
        if places:
            own = baseline if store is candidate_store else [None] * len(baseline)
            past = [places.get(run_id, 0) for run_id in (*older, *own)] + [0] * len(candidate)
            parts = [
                _judge_kind(
                    kind,
                    runs,
                    counts,
                    rows,
                    past_runs,
                    past,
                    by_turns=by_turns,
                    at_level=[run_id in at_level for run_id in older],
                )
                for kind in ("", *kinds.shared)
            ]
    found = _join_parts(parts, marks, limits, is_by_kind=kinds.is_by_kind)
    older_of_code = [one for one in marks.older if one.change not in (ALIKE, *OF_HOSTS)]
    older_slower_by = {one.change for one in marks.older if SIGNS[one.direction] > 0}
    signs = [*found.signs, *((one.kind, one.name, SIGNS[one.direction]) for one in older_of_code)]
    net = {FAIL_ON[0]: found.net, FAIL_ON[1]: found.net + _net_of(marks.older)}
    slower_by = {FAIL_ON[0]: found.slower_by, FAIL_ON[1]: found.slower_by | older_slower_by}
    gates = {}
    for word, own_signs in zip(FAIL_ON, (found.signs, signs), strict=True):
        gates[word] = _gate(
            limits, found.verdicts, own_signs, net=net[word], peak=found.peak,
            is_alike=ALIKE in slower_by[word], is_host=HOST in slower_by[word],
            is_throttled=THROTTLED in slower_by[word],
        )  # fmt: skip
    with candidate_store.connect() as after, store.connect() as before:
        gates, host = gates_with_host(gates, limits, (after, candidate), (before, baseline))
    shifts = {part.step_kind: _shift_of(part.window, part.judged, part.track) for part in parts}
    return SideVerdicts(
        by_series=found.verdicts,
        rows=rows,
        limits=limits,
        shift=shifts[""],
        gates=gates,
        host=host,
        coverage=found.coverage,
        hosts=words_of_other_hosts(*([run.hosts for run in runs[side]] for side in (before_side, after_side))),
        throttled=words_of_throttled(*([run.machine for run in runs[side]] for side in (before_side, after_side))),
        still=marks.still,
        excused=found.excused,
        history=marks.history,
        marks=marks.marks,
        shift_of_kind=shifts,
    )


class _Found(Struct, frozen=True):
    """What all kinds of steps of two sides show: their verdicts; `signs`: kind, name and sign of what changed; `net`:
    of the operators that changed, in the kind that lost most; `peak`: rise of peak memory; `slower_by`: ALIKE where a
    step is slower because all of its few operators are, by one factor, HOST or THROTTLED where its hosts may be it.
    `coverage`: how many series were judged.
    """

    verdicts: VerdictsBySeries
    excused: frozenset[SeriesKey]
    signs: Sequence[tuple[str, str, int]]
    net: float
    peak: float
    slower_by: set[str]
    coverage: Coverage


def _join_parts(parts: Sequence[_Judged], marks: Marks, limits: Thresholds, *, is_by_kind: bool) -> _Found:
    """Return what the parts show together, "" among them; `is_by_kind`: all steps together have no verdict."""
    verdicts: dict[SeriesKey, SeriesVerdict] = {}
    every_excused: set[SeriesKey] = set()
    every_sign: list[tuple[str, str, int]] = []
    nets, peak, slower_by, coverage = [0.0] if is_by_kind else [], 0.0, set[str](), Coverage()
    for part in parts:
        keys, traits, judged = part.track.keys, part.track.series, part.judged
        own = _list_verdicts(part.track, judged, keys, limits)
        signs = judged.sign.tolist()
        excused = np.array([(key, sign) in marks.excused for key, sign in zip(keys, signs, strict=True)], dtype=bool)
        every_excused.update(keys[row] for row in np.flatnonzero(excused).tolist())
        peaks = np.expm1(judged.raw_change[(traits.kind == KindCode.PEAK) & ~excused])
        peak = max(peak, float(np.nan_to_num(peaks).max(initial=0.0)))
        if is_by_kind and not part.step_kind:
            # a mix of steps has no verdict beside those of its kinds
            verdicts |= {key: verdict for key, verdict in own.items() if key.name in OF_WHOLE_CAPTURE}
            continue
        verdicts |= own
        _, reasons = stated(part.track, judged, part.track.versions > 0)
        coverage = coverage.add(count_coverage(judged, reasons, traits, limits))
        changed = np.isin(judged.verdict, CHANGES) & ~excused
        nets.append(float(judged.contribution[traits.leaf & changed].sum()))
        of_code = (judged.sign != 0) & ~excused
        for reason, how in ((Reason.ALIKE, ALIKE), (Reason.HOST, HOST), (Reason.THROTTLED, THROTTLED)):
            may_be_else = of_code & (judged.reason == reason)
            if (may_be_else & (judged.sign > 0)).any():
                slower_by.add(how)
            of_code &= ~may_be_else
        moved = np.flatnonzero(of_code).tolist()
        every_sign += [(keys[row].kind, keys[row].name, signs[row]) for row in moved]
    return _Found(verdicts, frozenset(every_excused), every_sign, max(nets), peak, slower_by, coverage)


class _Kinds(Struct, frozen=True):
    """The kinds of steps of two sides: those that both have, and whether steps are compared kind by kind."""

    shared: Sequence[str] = ()
    is_by_kind: bool = False


def _find_kinds(runs: Sequence[ChosenRun], baseline: int) -> _Kinds:
    """Return the kinds of steps of two sides, the first `baseline` runs being the one side.

    Steps are compared kind by kind where some side has several kinds, or the sides have not the same; all steps are
    where a side was read before kinds were known.
    """
    of_runs = [run.step_kinds for run in runs]
    before, after = (set().union(*own) for own in (of_runs[:baseline], of_runs[baseline:]))
    if not before or not after or (before == after and len(before) == 1):
        return _Kinds()
    return _Kinds(sorted(before & after), is_by_kind=True)


def _ran_by_turns(baseline: Sequence[ChosenRun], candidate: Sequence[ChosenRun]) -> bool:
    """Return whether the runs of both sides are of one session: by turns, on one host, within an hour.

    No night lies between such sides. False where the host or the start of a run is not known.
    """
    hosts = {run.hosts for run in (*baseline, *candidate)}
    before = [run.started_at_ns for run in baseline if run.started_at_ns is not None]
    after = [run.started_at_ns for run in candidate if run.started_at_ns is not None]
    if len(hosts) != 1 or frozenset() in hosts or len(before) < len(baseline) or len(after) < len(candidate):
        return False
    is_by_turns = min(after) < max(before) and min(before) < max(after)
    return is_by_turns and max(*before, *after) - min(*before, *after) <= _SESSION_NS


def _judge_kind(
    step_kind: str, runs: Sequence[ChosenRun], counts: tuple[int, int], rows: Sequence[Threshold],
    past_runs: Sequence[ChosenRun] = (), past: Sequence[int] = (), *, by_turns: bool = False,
    at_level: Sequence[bool] = (),
) -> _Judged:  # fmt: skip
    """Judge the series of one kind of steps; the others as of `_judge_runs`."""
    own, older = ([run.of_kind(step_kind) for run in some] for some in (runs, past_runs))
    return _Judged(step_kind, *_judge_runs(own, counts, rows, older, past, by_turns=by_turns, at_level=at_level))


def _moves(part: _Judged) -> Flags:
    return np.isin(part.judged.verdict, (Verdict.REGRESSED, Verdict.IMPROVED))


def _judge_runs(
    runs: Sequence[ChosenRun], counts: tuple[int, int], rows: Sequence[Threshold],
    past_runs: Sequence[ChosenRun] = (), past: Sequence[int] = (), *, by_turns: bool = False,
    at_level: Sequence[bool] = (),
) -> tuple[Track, JudgedSeries, Window]:  # fmt: skip
    """Judge the last runs against the first ones; `counts`: of the baseline, and of the candidate.

    `past_runs`: of the look-back beside them; `past`: of these and of `runs` the version in the look-back, 0 for none.
    `at_level`: which of `past_runs` are of the level of the baseline, and show how nights of a series alone vary.
    `by_turns`: both sides ran in one session, so that no night lies between them; else each is one night.
    """
    limits, older = track_limits(rows), len(past_runs)
    every = [*past_runs, *runs]
    keys, values, calls, by_calls = tabulate_runs(every)
    # what neither side has is no row of the comparison
    there = np.flatnonzero(~np.isnan(values[:, older:]).all(axis=1))
    keys, values, calls, by_calls = [keys[row] for row in there], values[there], calls[there], by_calls[:, there]
    traits = traits_of(keys, rows, device_timed=all(run.recorded.timeline == "device" for run in runs[counts[0] :]))
    recordings = recordings_of(keys, values, [run.recorded for run in every])
    last = len(every) - 1
    same, lost = alike(keys, recordings, last), incomplete_cells(keys, recordings, last)
    versions = np.repeat([0, _BASELINE, _CANDIDATE], [older, *counts])
    repeats = np.array([*(-place for place in past[:older]), *versions[older:]], dtype=np.int64)
    other = find_other_runs(keys, values, calls, repeats)
    track = Track(
        values, versions, traits, calls=calls, alike=same, incomplete=lost, by_calls=by_calls, keys=keys,
        other_work=None if other is None else other.cells,
        roundings=tabulate_roundings(keys, [run.recorded for run in every]),
    )  # fmt: skip
    base, new = versions == _BASELINE, versions == _CANDIDATE
    nearest = newest(base[None, :], limits.window)[0]
    window = track.part(np.arange(len(every)), nearest, new, limits)
    if len(past):
        window = replace(window, past=np.array(past, dtype=np.int64))
    if by_turns:
        window = replace(window, versions=None)
    levels = np.broadcast_to(np.where(base, 0, UNDECIDED), values.shape)
    window = on_equal_hosts(window, traits, _hosts_of(every), levels, new)
    of_nights = None
    if traits.is_alone and any(at_level) and not by_turns:
        is_night = base | np.array([*at_level, *np.zeros(sum(counts), dtype=bool)], dtype=bool)
        of_nights = window.recorded & is_night
        window = replace(window, versions=repeats)
    judged = judge_version(window, traits, window.recorded & base, new, of_nights=of_nights, limits=limits)
    return track, judged, window


def _list_runs_at_level(connection: Connection, baseline: Sequence[int], older: Sequence[int]) -> frozenset[int]:
    """Return which of the runs of a look-back are at the level of the step that the baseline is at.

    Empty where the baseline is of several tracks, or of a version that was not judged.
    """
    track_keys = stored_tracks.list_tracks(connection, baseline)
    if len(track_keys) != 1:
        return frozenset()
    (key,) = track_keys
    series = stored_tracks.read_series(connection, key)
    rows = [at for at, own in enumerate(series.keys) if own.kind == "run" and own.name in STEP_SERIES]
    version_of = {run.run_id: run.version_id for run in stored_tracks.list_track_runs(connection, key)}
    versions = sorted({version_of[run] for run in (*baseline, *older) if run in version_of})
    levels: dict[int, tuple[int, ...]] = {}
    for version, stored in stored_findings.read_levels(connection, key, versions).items():
        places = stored_tracks.places_in(series.ids[rows], stored.series_ids)
        levels[version] = tuple(np.append(stored.levels, BEGINNING)[places].tolist())
    of_baseline = {levels.get(version_of.get(run, 0)) for run in baseline}
    if len(of_baseline) != 1 or None in of_baseline:
        return frozenset()
    return frozenset(run for run in older if levels.get(version_of.get(run, 0)) in of_baseline)


def _hosts_of(runs: Sequence[ChosenRun]) -> Hosts:
    return code_hosts([run.hosts for run in runs], [bool(throttled_by(run.machine)) for run in runs])


def _shift_of(window: Window, judged: JudgedSeries, track: Track) -> float | None:
    """Return how much slower all operators of the candidate are than those of the runs that its step was judged
    against, a ratio; None where too few of them are in all runs.
    """
    if not window.shift.any():
        return None
    base, new = track.versions == _BASELINE, track.versions == _CANDIDATE
    row = track.series.choose_step(judged.new_runs, judged.base_runs)
    before = judged.base[row] if row is not None and judged.base_runs[row] else base
    return float(np.expm1(window.shift[new].mean() - window.shift[before].mean()))


def _look_back(connection: Connection, run_ids: Sequence[int], limits: Thresholds) -> dict[int, int]:
    """Return the runs that came before the newest version among these, with the place of their version: as many as the
    judge looks back on. Empty where the runs are of several tracks.
    """
    track_keys = stored_tracks.list_tracks(connection, run_ids)
    # a branch and its main line are one look-back
    mains = [stored_tracks.main_track_of(connection, key) for key in track_keys]
    track_keys = [key for key in track_keys if key not in mains]
    if len(track_keys) != 1:
        return {}
    track = unjudged_track(connection, track_keys[0])
    last = max((track.place[run.version_id] for run in track.runs if run.run_id in {*run_ids}), default=0)
    if last and track.main is not None:
        base = track.bases[track.order[last - 1]]
        track, last = track.main, 1 + (base.place if base else 0)
    older = [run for run in track.runs if track.place[run.version_id] < last]
    return {run.run_id: track.place[run.version_id] for run in older[-limits.look_back :]}


def _list_verdicts(
    track: Track, judged: JudgedSeries, keys: Sequence[SeriesKey], limits: Thresholds
) -> dict[SeriesKey, SeriesVerdict]:
    """Return the verdicts of all series as they would be stored."""
    is_stated, reasons = stated(track, judged, track.versions > 0)
    numbers = numbers_of(track, judged)
    verdicts: dict[SeriesKey, SeriesVerdict] = {}
    for row, key in enumerate(keys):
        verdict = SeriesVerdict()
        if is_stated[row]:
            verdict = SeriesVerdict(reason=Reason(int(reasons[row])).name)
        if is_stated[row] and reasons[row] not in _NO_VERDICT:
            verdict = replace(
                verdict,
                verdict=Verdict(int(judged.verdict[row])).name,
                change=numbers.change.item(row),
                judged_change=numbers.judged_change.item(row),
                q=numbers.q.item(row),
                contribution=numbers.contribution.item(row),
                detectable=numbers.detectable.item(row),
            )
        verdicts[key] = verdict
    return verdicts


def _gate(  # noqa: PLR0913 -- what of the findings may not be of the code
    limits: Thresholds, verdicts: VerdictsBySeries, signs: Sequence[tuple[str, str, int]], *, net: float, peak: float,
    is_machine: bool = False, is_alike: bool = False, is_host: bool = False,
    is_throttled: bool = False,
) -> GateResult:  # fmt: skip
    """Return how the gate ends; `signs`: kind, name and sign of the findings that are not the machine's, and may not
    be.
    """
    step_key = _step_key(verdicts)
    step_name = ""
    steps: list[SeriesVerdict] = []
    suspects = [verdict for key, verdict in verdicts.items() if key.kind == "run" and key.name == MEAN_STEP]
    if step_key is not None:
        step_name = step_key.name
        for key, own in verdicts.items():
            # of each kind of steps
            if (key.kind, key.name, key.part) == (step_key.kind, step_key.name, step_key.part):
                steps.append(own)
        suspects += steps
    # a kind of steps that is rare need not be decided where another one is
    is_decided = any(verdict.verdict not in (None, "TOO_FEW_RUNS") for verdict in steps)
    reasons = {verdict.reason for key, verdict in verdicts.items() if key.kind == "run" and key.name in STEP_SERIES}
    return gate_of(
        limits,
        signs=[sign for kind, name, sign in signs if kind == "run" and name == step_name],
        mean_signs=[sign for kind, name, sign in signs if kind == "run" and name == MEAN_STEP],
        net=net,
        peak=peak,
        is_suspect=any(verdict.verdict == "SUSPECT" and verdict.change > 0 for verdict in suspects),
        is_machine=is_machine,
        is_alike=is_alike,
        is_host=is_host,
        is_throttled=is_throttled,
        is_decided=is_decided,
        is_incomplete=not is_decided and "INCOMPLETE" in reasons,
        is_other_work=not is_decided and OTHER_WORK_REASON in reasons,
    )


def _step_key(verdicts: VerdictsBySeries) -> SeriesKey | None:
    """Return the series that is the step, of those with a verdict."""
    steps = []
    for key, verdict in verdicts.items():
        if key.kind == "run" and key.name in STEP_SERIES and verdict.verdict is not None:
            steps.append(key)

    def order(key: SeriesKey) -> tuple[int, int, int, float]:
        # of several kinds of steps the one that became slower by most
        verdict = verdicts[key].verdict
        worst = len(WORST_FIRST) if verdict is None or verdict not in WORST_FIRST else WORST_FIRST.index(verdict)
        return STEP_SERIES.index(key.name), STEP_WAYS.index(key.part), worst, -np.nan_to_num(verdicts[key].change)

    return min(steps, key=order, default=None)


def _step_of(verdicts: Mapping[SeriesKey, VerdictKind]) -> VerdictKind | None:
    key = _step_key(verdicts)
    return None if key is None else verdicts[key]


def _findings_open_in(connection: Connection, track: TrackRuns, version_id: int) -> list[StoredFinding]:
    """Return the findings that were open in a version, with those that began in it."""
    # a version that is not in the order of the track comes after all that are
    place, last = track.place, len(track.order) + 1
    at = place[version_id]
    found = []
    for finding in stored_findings.list_findings(connection, track.key):
        has_begun = place.get(finding.version_id, last) <= at
        has_ended = finding.ended_version_id is not None and place.get(finding.ended_version_id, last) <= at
        if has_begun and not has_ended:
            found.append(finding)
    return found


def _doubt_of(finding: StoredFinding) -> str:
    """Return the verdict of a finding where its hosts may be all of it, to stand behind its number; else ""."""
    verdict = VERDICT_OF_DIRECTION[finding.direction]
    return f", {word_of_step(verdict, finding.change)}" if finding.change in OF_HOSTS else ""


def _is_new_in(track: TrackRuns, row: JudgedRow, finding: StoredFinding) -> bool:
    """Return whether a finding that is open in a version is one of it: it began there, or its runs helped to decide."""
    decided = track.place.get(finding.decided_version_id, 0)
    return finding.version_id == row.version_id or decided >= track.place[row.version_id]


def _key_of(finding: StoredFinding) -> SeriesKey:
    return SeriesKey(finding.kind, finding.metric, finding.name, finding.input_shapes, finding.part, finding.step_kind)


def _words_of_older(
    connection: Connection, track: TrackRuns, findings: Sequence[StoredFinding], run_ids: Sequence[int]
) -> dict[SeriesKey, str]:
    """Say how far the series of older findings are from what they were before, in the runs of a version."""
    if not findings:
        return {}
    label = track.label_of_run
    series = sorted({finding.series_id for finding in findings})
    values = stored_tracks.read_values_of_series(connection, run_ids, series)
    value_now = dict(zip(series, over_runs(values).tolist(), strict=True))
    unknown = _list_other_work(connection, track, findings, run_ids)
    is_comparable = share_hosts(connection, run_ids, findings)
    unknown |= {_key_of(finding) for finding, has_host in zip(findings, is_comparable, strict=True) if not has_host}
    words: dict[SeriesKey, str] = {}
    for finding in findings:
        since = f"I-{finding.incident_id}, open since {finding.version}{_doubt_of(finding)}"
        if _key_of(finding) in unknown:
            # its number is that of inputs of another size, or of another host
            words[_key_of(finding)] = f"still open ({since})"
            continue
        before = [label[run] for run in map(int, finding.baseline_runs.split()) if run in label]
        # an operator that was added has no number before
        size = np.nan
        if finding.baseline_value:
            size = value_now[finding.series_id] / finding.baseline_value - 1.0
        if np.isnan(size) or not before:
            words[_key_of(finding)] = f"still there ({since})"
        else:
            where = "above" if size >= 0 else "below"
            level = level_words(before)
            words[_key_of(finding)] = f"still {format_diff(abs(size)).lstrip('+')} {where} {level} ({since})"
    return words


def _list_other_work(
    connection: Connection, track: TrackRuns, findings: Sequence[StoredFinding], run_ids: Sequence[int]
) -> set[SeriesKey]:
    """Return the series of findings of which a version says nothing, since its inputs have another size."""
    version = next((run.version_id for run in track.runs if run.run_id in {*run_ids}), None)
    other = None if version is None else find_other_version(connection, track, version)
    if other is None:
        return set()
    keys = [_key_of(finding) for finding in findings]
    return {key for key, is_one in zip(keys, find_concerned(other.inputs, keys).tolist(), strict=True) if is_one}
