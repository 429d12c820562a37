"""Where a track stands: the newest version with its numbers, and how it ends at each word of `--fail-on`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tracker.columns import Columns
from tracker.errors import EXIT_TOO_LITTLE_DATA
from tracker.regressions.leading import list_parts_that_changed
from tracker.regressions.run_numbers import RunNumber, RunNumbers, number_of
from tracker.regressions.track import TrackRuns
from tracker.regressions.usual_runs import list_awaited_runs
from tracker.results.board import LEAST_SEEN_CHANGE
from tracker.results.coverage import CountedSeries, Coverage
from tracker.results.findings import TrackStanding
from tracker.results.leading_cause import LeadingCause, choose_leading
from tracker.results.partial import find_partial, keep_whole
from tracker.results.recording import are_guesses
from tracker.results.verdicts import GateResult
from tracker.results.waiting import AwaitedRuns
from tracker.schema.column_names import QUALITY_REASON, RANK, RUN_ID, SETTINGS
from tracker.store import Store
from tracker.store.findings import JudgedRow
from tracker.units import counted, format_diff


class _LackingRuns(Struct, frozen=True):
    """How many more runs would decide the step: `of_version`, and `before` it."""

    of_version: int = 0
    before: int = 0


def list_runs_of_standings(tracks: Sequence[TrackRuns]) -> list[int]:
    """Return the runs whose numbers say where these tracks stand: those of their newest versions, and those before
    that these are compared with.
    """
    found = []
    for track in tracks:
        found += [run.run_id for run in track.newest]
        found += _list_base_runs(track.judged.get(track.newest[0].version_id))
    return found


def make_standing(
    store: Store,
    track: TrackRuns,
    captures: Columns,
    numbers: RunNumbers,
    gates: Mapping[str, GateResult],
    slow_host: str,
) -> TrackStanding:
    """Return where a track stands: the numbers of its newest version as a whole, None where nothing is known, and how
    it ends at each word of `--fail-on`. `captures`: of that version; `numbers`: of list_runs_of_standings; `slow_host`:
    in words, "" for none.
    """
    newest = track.newest
    run_ids = [run.run_id for run in newest]
    whole = keep_whole(run_ids, find_partial(captures.rows(RUN_ID, RANK, QUALITY_REASON, SETTINGS)))
    is_guess = are_guesses(captures.listed(SETTINGS))
    judgement = track.judged.get(newest[0].version_id)
    step_kind = judgement.step_kind if judgement else ""
    own = numbers.of(whole, step_kind)
    before, after = (judgement.step_before_ns, judgement.step_after_ns) if judgement else (None, None)
    lacking = _count_lacking_runs(track, judgement, len(newest))
    coverage = Coverage.of_numbers(judgement.coverage) if judgement else None
    counted = coverage.counted if coverage else CountedSeries()
    awaited = list_awaited(track, store.runs_settle_ns, time.time_ns()).get(track.order[-1])
    leading = None
    if lacking.of_version or lacking.before:
        is_on_device = track.names.device not in ("", "cpu")
        leading = _find_leading_part(judgement, numbers, own, is_on_device=is_on_device)
    undecided = GateResult(EXIT_TOO_LITTLE_DATA, "runs", 0.0, 0.0)
    new, any_open = (gates.get(word, undecided) for word in ("new", "any"))
    return TrackStanding(
        workload=track.names.workload,
        configuration=track.names.configuration,
        device=track.names.device,
        version=newest[0].version,
        version_runs=len(newest),
        runs=len(track.runs),
        last_run_id=max(run.run_id for run in newest),
        last_run_ns=max((run.started_at_ns for run in newest if run.started_at_ns is not None), default=None),
        step_ns=number_of(own, ["step"]),
        e2e_ns=number_of(own, ["e2e"]),
        compute_ns=number_of(own, ["compute"]),
        exposed_communication_ns=number_of(own, ["exposed communication"]),
        idle_ns=number_of(own, ["idle time"]),
        data_loading_ns=number_of(own, ["data loading"]),
        peak_allocated_bytes=number_of(own, ["peak memory"]),
        samples_per_second=number_of(own, ["throughput"]),
        step_verdict=judgement.step_verdict if judgement else None,
        step_change=after / before - 1 if before and after else None,
        net=judgement.net if judgement else None,
        peak=judgement.peak if judgement else None,
        gate_new=new.code,
        gate_new_cause=_name_cause(new, is_guess),
        gate_any=any_open.code,
        gate_any_cause=_name_cause(any_open, is_guess),
        slow_host=slow_host,
        lacks_runs=lacking.of_version,
        lacks_base_runs=lacking.before,
        step_kind=step_kind,
        so_far=awaited.words if awaited else "",
        judged_series=counted.judged,
        expected_series=counted.expected,
        coverage=counted.words,
        leading_cause="" if leading is None else leading.clause,
        leading_label="" if leading is None else leading.short,
    )


def _find_leading_part(
    judgement: JudgedRow | None, numbers: RunNumbers, own: Sequence[RunNumber], *, is_on_device: bool
) -> LeadingCause | None:
    """Return which part of the step makes most of its change in a version; None where none does. `numbers`: with those
    of the runs before it; `own`: of its runs.
    """
    if judgement is None or not judgement.step_before_ns or not judgement.step_after_ns:
        return None
    before = numbers.of(_list_base_runs(judgement), judgement.step_kind)
    parts = list_parts_that_changed(before, own, is_on_device=is_on_device)
    return choose_leading(parts, judgement.step_after_ns - judgement.step_before_ns)


def _list_base_runs(judgement: JudgedRow | None) -> list[int]:
    """Return the runs that a version is compared with; none where it was not judged."""
    return [] if judgement is None else [int(run) for run in judgement.base_runs.split()]


class UndecidedStep(Struct, frozen=True):
    """A step that further runs decide. `words`: how it compares with the level before it, and why, in a clause."""

    words: str


def find_undecided_step(store: Store, track: TrackRuns, run_id: int, *, is_on_device: bool) -> UndecidedStep | None:
    """Return how the step of the version of a run compares with the level before it, where that is not decided and is
    a change one can see; None where it is settled, or says nothing. `track`: of the run; `is_on_device`: its idle time
    is that of a device.
    """
    version_id = next((run.version_id for run in track.runs if run.run_id == run_id), None)
    judgement = None if version_id is None else track.judged.get(version_id)
    if judgement is None or not judgement.step_before_ns or not judgement.step_after_ns:
        return None
    run_ids = [run.run_id for run in track.runs_of(judgement.version_id)]
    lacking = _count_lacking_runs(track, judgement, len(run_ids))
    change = judgement.step_after_ns / judgement.step_before_ns - 1
    runs = lacking.of_version + lacking.before
    if not runs or abs(change) < LEAST_SEEN_CHANGE:
        return None
    numbers = RunNumbers(store, [*run_ids, *_list_base_runs(judgement)])
    own = numbers.of(run_ids, judgement.step_kind)
    leading = _find_leading_part(judgement, numbers, own, is_on_device=is_on_device)
    why = "" if leading is None else f": {leading.clause}"
    verb = "decides" if runs == 1 else "decide"
    level = f"{format_diff(change)} against the runs before"
    return UndecidedStep(f"{level}, which {counted(runs, 'more run')} {verb}{why}")


def _name_cause(gate: GateResult, is_guess: bool) -> str:
    """Return what gave the exit code of a gate. `is_guess`: the times of the version are one."""
    # no further run makes a guess sure
    return "guess" if is_guess and gate.cause in ("runs", "incomplete") else gate.cause


def list_awaited(track: TrackRuns, settle_ns: int, now_ns: int) -> dict[int, AwaitedRuns]:
    """Return the runs that versions of a track may still get, by version. `settle_ns`: how long runs are awaited."""
    return list_awaited_runs(track.runs, look_back=track.thresholds.look_back, settle_ns=settle_ns, now_ns=now_ns)


def _count_lacking_runs(track: TrackRuns, judgement: JudgedRow | None, runs: int) -> _LackingRuns:
    """Return how many more runs would decide the step of the newest version, of it and of the level before it."""
    limits = track.thresholds
    if judgement is None or judgement.step_verdict not in ("SUSPECT", "TOO_FEW_RUNS"):
        return _LackingRuns()
    of_version = max(0, limits.least_new - runs)
    if judgement.step_verdict == "SUSPECT" or not judgement.base_runs:
        return _LackingRuns(of_version)
    return _LackingRuns(of_version, max(0, limits.least_base - len(judgement.base_runs.split())))
