"""One finding with everything that decided: each test with its value and limit, its runs, its life."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from tracker.advice.versions import on_findings
from tracker.columns import F64, I64, Flags
from tracker.detect import JudgedSeries, Reason, Thresholds, Window, judge_version
from tracker.detect.hosts import on_equal_hosts
from tracker.detect.judge import exact_share, is_certain
from tracker.detect.late import lie_beyond
from tracker.detect.power import detectable_change
from tracker.detect.sides import Statistic, newest
from tracker.detect.thresholds import MIN_CONTRIBUTION, MIN_RATIO, OF_SERIES, limit_of, words_of_limit
from tracker.detect.track import LEAST_BESIDE, Track
from tracker.errors import UsageError
from tracker.regressions.found import FoundFinding, as_one, keep_columns, order_in_incident
from tracker.regressions.hosts import note_of, other_hosts, slow_host, throttled_sides
from tracker.regressions.inbox import found_rows
from tracker.regressions.incidents import explain_incident, share_of
from tracker.regressions.lifecycle import ALIKE, HOST, LATE, MACHINE, THROTTLED, UNDECIDED
from tracker.regressions.track import (
    TrackRuns,
    geometric_mean,
    join_main,
    named_tracks,
    read_track,
    read_tracks,
    settings_note,
)
from tracker.results import NOBODY, ExplainedFinding, finding_tests
from tracker.results.findings import (
    ExplainedRows,
    FindingEvent,
    FindingFact,
    FindingRun,
    FindingTest,
    ListedFinding,
    ListedIncident,
)
from tracker.results.verdicts import sentence_on_other_hosts, sentence_on_throttled, word_of_step
from tracker.schema.series import NO_SERIES
from tracker.store import Store, queries
from tracker.store.queries.judgement import UserWord
from tracker.units import format_diff, format_moment, format_ns, time_unit

_WORDS_OF_CHANGE: Final = {
    (Statistic.PRINTED, False): finding_tests.CHANGE,
    (Statistic.PRINTED, True): finding_tests.CHANGE_WITHOUT_DRIFT,
    (Statistic.CALL_QUARTILE, False): finding_tests.CHANGE_OF_QUARTILE,
    (Statistic.CALL_QUARTILE, True): finding_tests.CHANGE_OF_QUARTILE_WITHOUT_DRIFT,
    (Statistic.CALL_MEDIAN, False): finding_tests.CHANGE_OF_MEDIAN,
    (Statistic.CALL_MEDIAN, True): finding_tests.CHANGE_OF_MEDIAN_WITHOUT_DRIFT,
}
"""The words of the test of a change, by the statistic that is judged, and whether drift is removed from it."""

_LIST: Final = "tracker findings --state all lists them"
_ALIKE: Final = 0.02
"""Part of the time of a replacement up to which the sum of its operators may differ from it."""
_MOST_RUNS: Final = 64
"""Runs that are read around the finding: the newest ones beside those that decided."""


def explain(store: Store, finding_id: int) -> ExplainedFinding:
    """Return everything about one finding. Reads only; UsageError where there is no such finding."""
    tracks = read_tracks(store, named_tracks(store, branches=True))
    rows = found_rows(store, tracks=tracks, wanted=lambda row: row.finding_id == finding_id)
    # suspects have no number
    findings = [row for row in rows if row.finding_id is not None]
    finding = next((row for row in findings if row.finding_id == finding_id), None)
    if finding is None:
        remedy = _LIST if findings else "there are none yet: tracker runs lists what there is"
        raise UsageError(f"there is no finding {finding_id}", remedy=remedy)
    track = next(track for track in tracks if track.key == finding.track_key)
    of_incident = [row for row in findings if row.incident_id == finding.incident_id]
    incident, changed = explain_incident(store, of_incident)
    shown = as_one(finding)
    shown = replace(shown, share_of_change=share_of(shown, incident))
    sides = [[int(run) for run in runs.split()] for runs in (finding.baseline_runs, finding.candidate_runs)]
    # what is found is decided by the runs of a version
    decided_id = finding.decided_version_id or finding.version_id
    with store.connect() as connection:
        note_on_settings, known, own_track = settings_note(connection, track), None, track
        if track.main is not None:
            track, known = join_main(connection, track, decided_id)
        # those that decided, with those before them that the common-mode shift rested on, and the newest ones, of those
        # recorded alike
        place = track.place[decided_id]
        before = [run.run_id for run in track.runs if track.place[run.version_id] < place]
        newest_runs = [run.run_id for run in track.runs[-_MOST_RUNS:]]
        chosen = {*newest_runs, *before[-track.thresholds.window :], *sides[0], *sides[1]}
        runs = [run for run in track.runs if run.run_id in chosen]
        deciding = [run for run in runs if run.run_id in {*sides[0], *sides[1]}]
        like = [run.run_id for run in runs].index(max(sides[1]))
        kind = finding.step_kind
        data = read_track(connection, track, runs, like=like, timed_by=deciding, known=known, step_kind=kind)
        host = slow_host((connection, sides[1]), (connection, sides[0])) if finding.is_worse else ""
        hosts = other_hosts((connection, sides[1]), (connection, sides[0]))
        throttled = throttled_sides((connection, sides[1]), (connection, sides[0]))
    row = data.keys.index(finding.key)
    base, new = (np.isin(data.run_ids, side) for side in sides)
    deciding_window = window = _deciding_window(data, place, track.thresholds)
    if data.hosts is not None:
        levels = np.broadcast_to(np.where(base, 0, UNDECIDED), data.values.shape)
        deciding_window = window = on_equal_hosts(window, data.series, data.hosts, levels, new)
    statistic = None
    if finding.change == LATE:
        window, statistic = _with_late_statistic(window, data, base | new, data.versions == place, track.thresholds)
    bases, outlier = _judged_base(window, data, row, base, new, track.thresholds)
    beside = _noise_beside(window, row, bases, track.thresholds)
    judged = judge_version(window, data.series, bases, new, beside=beside, limits=track.thresholds)
    if statistic is not None:
        judged = replace(judged, statistic=statistic)
    centred, shift = judged.logs[row], _judged_shift(deciding_window, judged, row)
    outlier_note = "" if outlier is None else _outlier_words(track, data, row, outlier, base, "the baseline")
    is_odd = _odd_runs(data, judged, row, new)
    odd_notes = (
        _outlier_words(track, data, row, column, judged.new[row], "its version")
        for column in np.flatnonzero(is_odd).tolist()
    )
    notes = (
        _part_words(finding, shown), _machine_words(finding), outlier_note, *odd_notes, note_on_settings, note_of(host),
        sentence_on_other_hosts(hosts) if finding.change == HOST and not host else "",
        sentence_on_throttled(throttled) if finding.change == THROTTLED else "",
    )  # fmt: skip
    explained = ExplainedRows(
        tests=tuple(tests_of(finding, judged, row, data, track, window, new)),
        runs=tuple(_runs(track, data, row, sides, centred, shift, is_odd)),
        events=tuple(events_of(store, finding, own_track)),
        facts=tuple(_list_facts(store, finding)),
        environment=tuple(changed),
    )
    return ExplainedFinding(
        keep_columns(ListedFinding, shown),
        explained,
        notes=tuple(filter(None, notes)),
        advice=on_findings(store, [shown], *sides) if finding.is_worse and not host else (),
        incident=keep_columns(ListedIncident, incident),
        replacement_values=_sum_replacement(data, finding, of_incident, base, new),
    )


def _sum_replacement(
    data: Track, finding: FoundFinding, own: Sequence[FoundFinding], base: Flags, new: Flags
) -> tuple[float, ...]:
    """Return what all operators of a replacement take in each run; nothing where these are not all of it.

    `own`: the findings of its incident. An operator that went takes nothing, so that it has no number.
    """
    whole = finding.replaced
    if whole is None or not finding.stands_for_replacement:
        return ()
    keys = {row.key for row in own if row.replaced is not None and row.replaced.head == whole.head}
    rows = [at for at, key in enumerate(data.keys) if key in keys]
    values = data.values[rows]
    summed = np.where(np.isnan(values).all(axis=0), np.nan, np.nansum(values, axis=0))
    for side, value in ((base, whole.baseline_value), (new, whole.candidate_value)):
        if abs(float(geometric_mean(summed[None], side)[0]) - value) > _ALIKE * value:
            return ()
    return tuple(summed.tolist())


def _list_facts(store: Store, finding: FoundFinding) -> list[FindingFact]:
    """Return what changed for certain with the version of a finding."""
    facts = []
    for fact in queries.version_facts(store, finding.track_key, finding.version_id):
        listed = FindingFact(
            kind=fact.kind,
            name=fact.name,
            input_shapes=fact.input_shapes,
            what=fact.what,
            before=fact.value_before,
            after=fact.value_after,
        )
        facts.append(listed)
    return facts


def _deciding_window(data: Track, version: int, limits: Thresholds) -> Window:
    """Return all runs as a window, with the common-mode shift that `version` was judged with, which decided."""
    before = newest((data.versions < version)[None], limits.window)[0]
    return data.part(np.arange(len(data.versions)), before, data.versions == version, limits)


def _with_late_statistic(
    window: Window, data: Track, level: Flags, decided: Flags, limits: Thresholds
) -> tuple[Window, I64]:
    """Return the window with the statistics that a late change was found by as its logs, and which these are.

    They were chosen for the version that decided, by the newest runs of the level (runs,) before it.
    """
    base = newest((level & ~decided)[None], limits.window) & window.recorded
    own = judge_version(window, data.series, base, decided, limits=limits)
    # their common-mode shifts are taken out
    return Window(own.logs, window.recorded, np.zeros_like(window.shift), window.step), own.statistic


def _judged_shift(window: Window, own: JudgedSeries, row: int) -> F64:
    """Return the common-mode shift (runs,) of the statistic that was judged of a series."""
    statistic = Statistic(int(own.statistic[row]))
    if statistic is Statistic.PRINTED or window.by_calls_shift is None:
        return window.shift
    shift: F64 = window.by_calls_shift[statistic - Statistic.CALL_QUARTILE]
    return shift


def _judged_base(
    window: Window, data: Track, row: int, base: Flags, new: Flags, limits: Thresholds
) -> tuple[Flags, int | None]:
    """Return the base runs (series, runs) that the judge was given, and the column of the one that it left out.

    A finding keeps only the runs that counted. Its baseline was a full window, unless the level had no more runs. Where
    it is smaller, the newest run is looked for that the judge leaves out beside them.
    """
    whole = np.tile(base, (len(data.keys), 1))
    if not base.any() or base.sum() >= limits.window:
        return whole, None
    first_new = int(np.flatnonzero(new)[0]) if new.any() else len(new)
    for column in np.flatnonzero(~base & ~new & (np.arange(len(new)) < first_new)).tolist()[::-1]:
        tried = whole.copy()
        tried[:, column] = window.recorded[:, column]
        counts = judge_version(window, data.series, tried, new, limits=limits).base[row]
        if np.array_equal(counts, base):
            return tried, column
    return whole, None


def _noise_beside(window: Window, row: int, bases: Flags, limits: Thresholds) -> Flags:
    """Return the runs (series, runs) whose noise counts beside a level of two runs: those before it."""
    beside = np.zeros(bases.shape, dtype=bool)
    columns = np.flatnonzero(bases[row])
    if LEAST_BESIDE <= len(columns) < limits.least_base:
        before = np.flatnonzero(window.recorded[row, : columns[0]])[-limits.window :]
        beside[row, before] = True
    return beside


def _odd_runs(data: Track, own: JudgedSeries, row: int, new: Flags) -> Flags:
    """Return the runs (runs,) of the version that its number leaves out, since they stand alone."""
    is_odd: Flags = new & ~np.isnan(data.values[row]) & ~own.new[row]
    return is_odd


def _outlier_words(track: TrackRuns, data: Track, row: int, column: int, others: Flags, side: str) -> str:
    """Name the run that is left out of a side, and how far off it is from the `others` (runs,)."""
    run_id = int(data.run_ids[column])
    version = next(run.version for run in track.runs if run.run_id == run_id)
    usual = geometric_mean(data.values[row : row + 1], others)[0]
    off = format_diff(float(data.values[row, column] / usual - 1.0))
    return (
        f"Run {run_id} of {version} is left out of {side}: {off} against its other runs. "
        f"tracker runs exclude {run_id} takes it out of all verdicts."
    )


def _part_words(finding: FoundFinding, shown: FoundFinding) -> str:
    """Say which operator of a replacement the tests and runs are of; "" for a finding that is shown as it is."""
    if not finding.stands_for_replacement:
        return ""
    ends = (finding.baseline_value, finding.candidate_value)
    before, after = (format_ns(end or 0.0, time_unit(*ends)) for end in ends)
    change = f", {format_diff(finding.ratio)}" if finding.ratio is not None else ""
    return (
        f"The tests and runs below are those of {finding.name}, the largest operator of this replacement: "
        f"{before} -> {after} per step{change}."
    )


def _machine_words(finding: FoundFinding) -> str:
    """Say what to do about a shift of the machine, or what may be one; "" for another finding."""
    if finding.change not in (MACHINE, ALIKE):
        return ""
    before = finding.good_version or "the version before"
    how = "together" if finding.change == MACHINE else "by one factor"
    return (
        f"All operators moved {how}: the machine, or what all of them use. Measure {before} again: if it is as "
        "slow, tracker expect accepts the new level; if it is not, the code or its environment is the cause."
    )


def findings_of(store: Store, incident_id: int) -> list[int]:
    """Return the findings of an incident that no other one covers, the step first; UsageError where there is none."""
    rows = found_rows(store, wanted=lambda row: row.incident_id == incident_id)
    own = [row for row in rows if row.incident_id == incident_id]
    if not own:
        raise UsageError(f"there is no incident I-{incident_id}", remedy=_LIST)
    ordered = sorted(own, key=order_in_incident)
    return [row.finding_id for row in ordered if row.under is None and row.finding_id is not None]


def _drift_between(window: Window, own: JudgedSeries, row: int, new: Flags) -> float:
    """Return the machine-wide drift from the base runs of a series to the new ones, a log."""
    base = own.base[row]
    return float(window.shift[new].mean() - window.shift[base].mean()) if base.any() and new.any() else 0.0


def tests_of(
    finding: FoundFinding,
    own: JudgedSeries,
    row: int,
    data: Track,
    track: TrackRuns,
    window: Window,
    is_new: Flags,
) -> list[FindingTest]:
    """List what had to hold, each with its value and limit: docs/judging.md, step 7.

    `own`: the judgement of the runs `is_new` of `window` again; `row`: the series.
    """
    key, limits = data.keys[row], track.thresholds
    is_presence, is_gradual, is_late = (finding.change == how for how in ("presence", "gradual", LATE))
    sign = 1 if finding.direction == "regression" else -1
    found: list[FindingTest] = []

    def add(test: str, value: float | None, limit: float | None, passes: bool | None, meaning: str, name: str) -> None:
        origin = limit_of(name, key if name in OF_SERIES else NO_SERIES, track.limits)
        source: str | None = "default"
        if origin is not None:
            source = f"{words_of_limit(origin)}, {origin.who}: {origin.reason}"
        if limit is None:
            source = None
        found.append(
            FindingTest(test=test, value=value, limit=limit, passes=passes, limit_from=source, meaning=meaning)
        )

    before, after = (len(runs.split()) for runs in (finding.baseline_runs, finding.candidate_runs))
    after -= int(_odd_runs(data, own, row, is_new).sum())
    is_of_one_run = not is_presence and own.reason[row] == Reason.OPERATORS
    least = 2 if is_presence else limits.least_base
    new = 1 if is_presence or is_of_one_run else limits.least_new
    words = finding_tests.RUNS_BEFORE
    if not is_presence and before < least:
        least, words = LEAST_BESIDE, finding_tests.RUNS_BEFORE_WITH_OLDER_NOISE
    add("runs before", before, least, before >= least, words.meaning, "least_base")
    add("runs after", after, new, after >= new, finding_tests.RUNS_AFTER.meaning, "confirm")
    if not is_presence:
        ratio = limits.gradual_ratio if is_gradual else float(np.expm1(data.series.ratio[row]))
        is_centred = bool(data.series.shares_shift[row]) or own.reason[row] == Reason.EQUAL_MACHINE
        words = _WORDS_OF_CHANGE[Statistic(own.statistic[row]), is_centred]
        passes = abs(float(own.change[row])) >= math.log1p(ratio) - 1e-9
        add("change", math.expm1(float(own.change[row])), ratio, passes, words.meaning, MIN_RATIO)
        if finding.change == MACHINE:
            half = math.expm1(float(own.change[row]) / 2)
            drift = math.expm1(_drift_between(window, own, row, is_new))
            add("machine", drift, half, abs(drift) >= abs(half), finding_tests.MACHINE.meaning, "")
        certain = exact_share(own, data.series)
        if is_late:
            logs, is_known = own.logs[row], ~np.isnan(own.logs[row])
            is_beyond = lie_beyond(logs[own.base[row] & is_known], logs[is_new & is_known], sign)
            add("range", None, None, is_beyond, finding_tests.BEYOND_FOR_LATE.meaning, "")
        elif own.beyond[row] or not is_certain(own, data.series, limits)[row]:
            add("range", None, None, bool(own.beyond[row] != 0), finding_tests.BEYOND.meaning, "")
        else:
            add("certain causes", certain, limits.gate_net, True, finding_tests.CERTAIN.meaning, "gate_net")
        if is_of_one_run:
            half = limits.explained * float(own.contribution[row])
            add("certain causes", certain, half, certain >= half, finding_tests.CERTAIN_FOR_ONE_RUN.meaning, "")
    floor = float(data.series.floor[row])
    if not data.series.of_step[row] or floor > 0:
        share = finding.contribution or 0.0
        passes = abs(share) >= floor - 1e-12
        is_of_step = bool(data.series.is_time[row]) and not np.isnan(window.step).all()
        words = finding_tests.CONTRIBUTION if is_of_step else finding_tests.CONTRIBUTION_TO_KIND
        add("contribution", share, floor, passes, words.meaning, MIN_CONTRIBUTION)
    if not is_presence:
        q = finding.q
        decided = data.versions == track.place[finding.decided_version_id or finding.version_id]
        is_single = int(decided.sum()) == 1
        if is_of_one_run:
            add("q", q, None, None, finding_tests.FALSE_DISCOVERY_RATE_OF_ONE_RUN.meaning, "")
        elif is_late:
            most_p = limits.late_of(is_single=is_single, is_alone=data.series.is_alone)
            add("q", q, most_p, q is None or q <= most_p, finding_tests.CHANCE_OF_SPLIT.meaning, "")
        else:
            alpha = limits.alpha_gradual_of(is_single=is_single) if is_gradual else limits.alpha
            words = finding_tests.FALSE_DISCOVERY_RATE
            if not is_gradual and own.alpha[row] < alpha:
                alpha, words = float(own.alpha[row]), finding_tests.CHANCE_WITH_NIGHTS
            add("q", q, alpha, q is None or q <= alpha, words.meaning, "alpha")
        if not is_late and own.nights[row] > 0:
            runs_alone = 1.0 / before + 1.0 / after
            share = float(own.nights[row] / (own.nights[row] + runs_alone))
            add("nights", share, None, None, finding_tests.describe_nights(int(own.base_versions[row])), "")
        least_change = float(np.expm1(detectable_change(own, data.series.family)[row]))
        if not math.isnan(least_change):
            add("detectable", least_change, None, None, finding_tests.SMALLEST_CHANGE.meaning, "")
    return found


def events_of(store: Store, finding: FoundFinding, track: TrackRuns) -> list[FindingEvent]:
    """List when a finding began and ended, and what users said, in the order of time as far as it is known."""
    found = word_of_step(finding.verdict, finding.change)
    events = [_make_event(finding, track, found, finding.version, finding.decided_version_id)]
    words = [] if finding.finding_id is None else queries.finding_words(store).get(finding.finding_id, [])
    actions_of_marks = {word.mark_id: word.action for word in words}
    for word in words:
        if word.action == "undo":
            action = "a mark" if word.undoes_id is None else actions_of_marks.get(word.undoes_id, "a mark")
            state = f"undo of {action}"
        else:
            state = f"{word.action}{_until_words(word)}{', taken back' if word.is_undone else ''}"
        events.append(FindingEvent(when_ns=word.when_ns, state=state, who=word.who, reason=word.reason))
    if finding.ended_version is not None:
        ended_by = finding.ended_by_version_id
        events.append(_make_event(finding, track, finding.base_state, finding.ended_version, ended_by))
    return events


def _make_event(
    finding: FoundFinding, track: TrackRuns, state: str, version: str, decided_id: int | None
) -> FindingEvent:
    """Return what runs decided: a state as of a version, by the runs of `decided_id`."""
    decided = "" if decided_id is None else track.labels.get(decided_id, "")
    confirmed = "found again in" if track.main is not None else "confirmed by the runs of"
    reason = "" if decided == version else f"{confirmed} {decided}"
    runs = [] if decided_id is None else track.runs_of(decided_id)
    if not reason and finding.change != "presence" and len(runs) == 1:
        reason = "by one run"
    return FindingEvent(state=state, who=NOBODY, version=version, reason=reason)


def _until_words(word: UserWord) -> str:
    """Return the end of a mute, behind a blank; "" without one."""
    if word.until_version:
        return f" until {word.until_version}"
    return "" if word.until_ns is None else f" until {format_moment(word.until_ns)[:10]}"


def _runs(
    track: TrackRuns, data: Track, row: int, sides: Sequence[Sequence[int]], centred: F64, shift: F64, is_odd: Flags
) -> list[FindingRun]:
    """List the runs around a finding. `centred`: its numbers without the common-mode shift, `shift`: of each run;
    `is_odd`: which of them its version leaves out.
    """
    numbers = data.run_ids.tolist()
    level = [own for own, run in zip(centred.tolist(), numbers, strict=True) if run in sides[0] and not math.isnan(own)]
    base = sum(level) / len(level) if level else math.nan
    last = max((at for at, run in enumerate(numbers) if run in sides[1]), default=len(numbers))
    sign = -1.0 if data.series.more_is_better[row] else 1.0
    runs = {run.run_id: run for run in track.runs}
    found = []
    for at, run_id in enumerate(numbers):
        side = "later" if at > last else ""
        if run_id in sides[0]:
            side = "baseline"
        elif run_id in sides[1] and not is_odd[at]:
            side = "candidate"
        listed = FindingRun(
            run_id=run_id,
            version=runs[run_id].version,
            side=side,
            started_at_ns=runs[run_id].started_at_ns,
            value=data.values[row, at],
            calls=data.calls[row, at],
            shared_factor=math.expm1(shift[at]),
            change=math.expm1(sign * (centred[at] - base)),
        )
        found.append(listed)
    return found
