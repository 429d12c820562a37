"""Where every track of a database stands: a workload in a configuration on a device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import groupby, starmap
from typing import Any, Final

from msgspec import Struct

from tracker.config import Owner
from tracker.config.owners import list_owners, matches, owner_of
from tracker.errors import UsageError
from tracker.profile.branches import branch_of, main_of
from tracker.regressions.inbox import findings
from tracker.regressions.incidents import SEVERITIES, STEP
from tracker.regressions.lifecycle import HOST, THROTTLED
from tracker.regressions.run_numbers import RunNumber, number_of
from tracker.regressions.track import named_tracks, waiting_runs
from tracker.results import CONFIRMED_STATES, OPEN_STATES, Board, BoardOptions, FindingsOptions
from tracker.results.board import BoardBranch, BoardIncident, BoardLine, BoardPoint, BoardRows, LateRun
from tracker.results.findings import FindingsRows, ListedFinding, ListedIncident, TrackStanding
from tracker.results.partial import find_partial, keep_whole
from tracker.schema.column_names import NAME, QUALITY_REASON, RANK, RUN_ID, SETTINGS
from tracker.schema.series import STEP_SERIES, STEP_WAYS
from tracker.store import Store, queries, read_one_state, watchers
from tracker.store.tracks import TrackKey
from tracker.units import device_part

_STATES: Final = {
    "new": "new", "persisting": "open", "suspect": "open", "acknowledged": "acknowledged", "muted": "muted",
}  # fmt: skip
"""State of a finding -> the word for an incident, what needs a user most first."""


class _StoredStep(Struct, frozen=True, gc=False):
    """A step, or E2E, of a run: columns of sql/board.sql."""

    workload_id: int
    configuration_id: int
    device_id: int
    version_id: int
    version: str
    pinned: bool
    run_id: int
    name: str
    part: str
    step_kind: str
    judged_kind: str
    value: float | None

    @property
    def track_key(self) -> TrackKey:
        """The track that its run is of."""
        return TrackKey(self.workload_id, self.configuration_id, self.device_id)


class _StoredBranch(Struct, frozen=True, gc=False):
    """The newest version of a track of a branch: columns of sql/branch_standings.sql."""

    workload: str
    configuration: str
    vendor: str
    device: str
    version: str
    runs: int
    base_runs: str | None
    step_before_ns: float | None
    step_after_ns: float | None
    step_verdict: str | None


class _Version(Struct, frozen=True, kw_only=True):
    """A version in the course of a track. `step_ns`: of those that are shown; `way`: how it was measured, of STEP_WAYS;
    `step_kind`: of which steps it is.
    """

    version: str
    is_pinned: bool
    runs: int
    step_ns: float | None
    verdict: str | None
    reason: str | None
    way: str
    step_kind: str


@read_one_state
def board(
    store: Store, *, options: BoardOptions | None = None, owners: Sequence[Owner] = (), now_ns: int | None = None
) -> Board:
    """Return every track with active runs: in the order of their incidents, as findings has it, then what waits for
    runs, then the largest change since a good version. `owners`: those of the settings; `now_ns`: the moment at which
    runs are late, None: now.

    UsageError for a workload, device or owner that is not there.
    """
    options = options or BoardOptions()
    if options.owner is not None and options.owner not in list_owners(owners):
        raise _unknown_owner(options.owner, list_owners(owners))
    is_shown = _filter_by_owner(store, options.owner, owners)
    queries.check_filters(store, workload=options.workload, device=options.device)
    courses = _read_courses(store, options.workload, options.last)
    names_of = named_tracks(store, options.workload, options.device) if courses else {}
    course_of = {names.place: courses[key] for key, names in names_of.items() if key in courses}
    chosen = FindingsOptions(workload=options.workload, device=options.device, states=(*OPEN_STATES, "expected"))
    found = findings(store, options=chosen) if courses else None
    rows = found.rows if found else FindingsRows()
    worse: dict[tuple[str, str, str], list[ListedFinding]] = {}
    accepted = set()
    for row in rows.findings:
        place = row.workload, row.configuration, row.device
        if row.state == "expected":
            if row.kind == "run" and row.name in STEP_SERIES:
                accepted.add((place, row.version))
        elif row.direction == "regression":
            worse.setdefault(place, []).append(row)
    lines: list[tuple[BoardLine, Sequence[_Version]]] = []
    for standing in rows.lines:
        course = course_of.get(standing.place)
        if course and is_shown(standing.workload):
            is_accepted = (standing.place, standing.version) in accepted
            own = worse.get(standing.place, [])
            line = _make_line(standing, course, own, _incidents_of(rows, own), is_accepted=is_accepted)
            lines.append((line, course))
    numbers = [incident.incident_id for incident in rows.incidents]
    lines.sort(key=lambda one: _worst_first(one[0], numbers))
    points = []
    incidents = []
    for at, (line, versions) in enumerate(lines):
        points += [_make_point(at, version) for version in versions[-options.last :]]
        found_worse = worse.get((line.workload, line.configuration, line.device), [])
        incidents += [_make_incident(at, incident, found_worse) for incident in _incidents_of(rows, found_worse)]
    waiting = waiting_runs(store, options.workload, options.device, now_ns=now_ns)
    return Board(
        BoardRows(
            lines=tuple(line for line, _ in lines),
            points=tuple(points),
            late=tuple(_late_runs(store, options, is_shown, now_ns)),
            waiting=tuple(run for run in waiting if is_shown(run.workload)),
            incidents=tuple(incidents),
            branches=tuple(_list_branches(store, options, is_shown)),
        ),
        options=options,
        partial=found.partial if found else (),
        missing=found.missing if found else (),
        budgets=tuple(one for one in found.budgets if is_shown(one.workload)) if found else (),
    )


def _unknown_owner(name: str, known: Sequence[str]) -> UsageError:
    """Return the error for an owner that the settings do not have."""
    remedy = f"there are {', '.join(known)}" if known else "the settings file has no [[alerts.owners]] with a who"
    return UsageError(f"there is no owner {name!r}", remedy=remedy)


def _filter_by_owner(store: Store, who: str | None, owners: Sequence[Owner]) -> Callable[[str], bool]:
    """Return what says whether `who` answers for a workload: for any operator that has a series in it; None: always."""

    @cache
    def is_shown(workload: str) -> bool:
        if who is None:
            return True
        main = main_of(workload)
        if not any(owner.who == who and matches(owner.workload, main) for owner in owners):
            return False
        # without a series it is theirs who answer for all operators
        names = {"", *queries.series_names(store, workload).listed(NAME)}
        return any(owner_of(owners, main, name) == who for name in names)

    return is_shown


def _late_runs(
    store: Store, options: BoardOptions, is_shown: Callable[[str], bool], now_ns: int | None
) -> list[LateRun]:
    """Return what watchers wait for in vain, of the workload of the options and of any, the longest late first."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    late = []
    for one in watchers.expectations(store, now_ns=now_ns):
        is_chosen = not one.workload or (options.workload in (None, one.workload) and is_shown(one.workload))
        if one.is_late(now_ns) and is_chosen:
            run = LateRun(
                workload=one.workload,
                folder=one.folder,
                every_ns=one.every_ns,
                last_ns=one.last_ns,
                due_ns=one.since_ns + one.every_ns,
            )
            late.append(run)
    return sorted(late, key=lambda run: (run.due_ns, run.workload, run.folder))


def _read_courses(store: Store, workload: str | None, last: int) -> dict[TrackKey, list[_Version]]:
    """Return track -> its versions in order, with how many runs they have; the `last` and pinned ones have a step."""
    verdicts = _verdicts(store, workload)
    columns = (RUN_ID, RANK, QUALITY_REASON, SETTINGS)
    partial = find_partial(queries.partial_captures(store, workload).rows(*columns))
    rows = [_StoredStep(*row) for row in queries.board(store, workload).rows(*_StoredStep.__struct_fields__)]
    # a track is shown by the kind of steps by which its newest version was judged
    kinds = {row.track_key: row.judged_kind for row in rows}
    tracks: dict[TrackKey, list[list[_StoredStep]]] = {}
    for (track_key, _), group in groupby(rows, lambda row: (row.track_key, row.version_id)):
        tracks.setdefault(track_key, []).append(list(group))
    courses = {}
    for track_key, versions in tracks.items():
        numbers = []
        for of_version in versions:
            whole = set(keep_whole({row.run_id for row in of_version}, partial))
            chosen = [row for row in of_version if row.run_id in whole and row.step_kind == kinds[track_key]]
            numbers.append([RunNumber(row.name, row.part, row.value) for row in chosen])
        way = _find_way(numbers)
        course = []
        for at, of_version in enumerate(versions):
            first = of_version[0]
            # of thousands of versions only these are shown, and the one before the newest is among them
            is_shown = at >= len(versions) - last or first.pinned
            verdict, reason = verdicts.get((track_key, first.version_id), (None, None))
            version = _Version(
                version=first.version,
                is_pinned=bool(first.pinned),
                runs=len({row.run_id for row in of_version}),
                step_ns=number_of(numbers[at], STEP_SERIES, [way]) if is_shown else None,
                verdict=verdict,
                reason=reason,
                way=way,
                step_kind=kinds[track_key],
            )
            course.append(version)
        courses[track_key] = course
    return courses


def _find_way(numbers: Sequence[Sequence[RunNumber]]) -> str:
    """Return in which of STEP_WAYS the versions of a track, each of which has `numbers`, are compared: the best that
    the newest two have, else that of the newest: what was measured otherwise is no change of it.
    """
    newest: set[str] = set()
    for name in STEP_SERIES:
        of_two = [{one.way for one in of_version if one.name == name} for of_version in numbers[-2:]]
        newest = newest or of_two[-1]
        shared = set.intersection(*of_two)
        if shared:
            return min(shared, key=STEP_WAYS.index)
    return min(newest, key=STEP_WAYS.index, default="")


def _verdicts(store: Store, workload: str | None) -> dict[tuple[TrackKey, int], tuple[str, str]]:
    """Return the verdict of the step of each version of a track, and its reason; of E2E where no step is known."""
    columns = ("workload_id", "configuration_id", "device_id", "version_id", "name", "part", "verdict", "reason")
    known: dict[tuple[TrackKey, int], list[tuple[bool, int, str, str]]] = {}
    for *track, version_id, name, part, verdict, reason in queries.board_verdicts(store, workload).rows(*columns):
        if verdict is not None:
            place = (name != "step", STEP_WAYS.index(part), verdict, reason)
            known.setdefault((TrackKey(*track), version_id), []).append(place)
    return {of_version: min(places)[2:] for of_version, places in known.items()}


def _make_line(
    standing: TrackStanding,
    course: Sequence[_Version],
    found: Sequence[ListedFinding],
    incidents: Sequence[ListedIncident],
    *,
    is_accepted: bool,
) -> BoardLine:
    """Return where a track stands, and how its newest step compares with those of its `course`. `found`: its open
    regressions, in the order of their `incidents`.
    """
    newest = course[-1]
    step_ns = newest.step_ns or standing.step_ns or standing.e2e_ns
    pinned = next((version for version in reversed(course) if version.is_pinned), None)
    oldest = _find_oldest(found, newest)
    severity = min((incident.severity for incident in incidents), key=SEVERITIES.index, default="")
    return BoardLine(
        workload=standing.workload,
        configuration=standing.configuration,
        device=standing.device,
        version=standing.version,
        version_runs=standing.version_runs,
        runs=standing.runs,
        last_run_id=standing.last_run_id,
        last_run_ns=standing.last_run_ns,
        step_ns=step_ns,
        step_verdict=standing.step_verdict,
        may_be_host=any(row.change == HOST for row in found),
        may_be_throttled=any(row.change == THROTTLED for row in found),
        step_change=standing.step_change,
        accepted=is_accepted,
        lacks_runs=standing.lacks_runs,
        lacks_base_runs=standing.lacks_base_runs,
        previous_change=_change(step_ns, course[-2].step_ns) if len(course) > 1 else None,
        good_version=oldest.good_version if oldest else None,
        good_change=_change(step_ns, oldest.baseline_value) if oldest and _is_comparable(oldest) else None,
        pinned_version=pinned.version if pinned else None,
        pinned_change=_change(step_ns, pinned.step_ns) if pinned else None,
        peak_allocated_bytes=standing.peak_allocated_bytes,
        new=sum(row.is_new for row in found),
        open=sum(not row.is_new for row in found if row.state != "suspect"),
        suspects=sum(row.state == "suspect" for row in found),
        muted=sum(row.state == "muted" for row in found),
        incident_id=incidents[0].incident_id if incidents else None,
        state=_state_of(incidents[0], found) if incidents else "",
        severity=severity,
        step_kind=standing.step_kind,
        judged_series=standing.judged_series,
        expected_series=standing.expected_series,
        coverage=standing.coverage,
        so_far=standing.so_far,
        leading_cause=standing.leading_cause or (incidents[0].leading_cause if incidents else ""),
        leading_label=standing.leading_label or (incidents[0].leading_label if incidents else ""),
    )


def _incidents_of(rows: FindingsRows, found: Sequence[ListedFinding]) -> list[ListedIncident]:
    """Return the incidents of the open regressions of a track: what is new first, what is muted last, else in the order
    of findings.
    """
    numbers = {row.incident_id for row in found}
    own = [incident for incident in rows.incidents if incident.incident_id in numbers]
    order = list(dict.fromkeys(_STATES.values()))
    return sorted(own, key=lambda incident: order.index(_state_of(incident, found)))


def _state_of(incident: ListedIncident, found: Sequence[ListedFinding]) -> str:
    """Return the state of an incident: that of its finding which needs a user most. `found`: of its track."""
    states = {row.state for row in found if row.incident_id == incident.incident_id}
    return next(word for state, word in _STATES.items() if state in states)


def _make_incident(line: int, incident: ListedIncident, found: Sequence[ListedFinding]) -> BoardIncident:
    """Return an incident of the track that is the `line`-th. `found`: the open regressions of the track."""
    own = [row for row in found if row.incident_id == incident.incident_id]
    first = next((row for row in own if row.name not in STEP), own[0])
    assert incident.incident_id is not None
    return BoardIncident(
        line=line,
        incident_id=incident.incident_id,
        version=incident.version,
        state=_state_of(incident, own),
        is_of_step=any(row.kind == "run" and row.name in STEP_SERIES for row in own),
        step_change=_change(incident.candidate_step_ns, incident.baseline_step_ns),
        name=first.name,
        change=first.change,
        ratio=first.ratio,
        unit=first.unit,
        findings=incident.findings,
        leading_cause=incident.leading_cause,
        leading_label=incident.leading_label,
    )


def _list_branches(store: Store, options: BoardOptions, is_shown: Callable[[str], bool]) -> list[BoardBranch]:
    """Return where the newest version of each branch stands: what regressed first, then the largest change."""
    order_of = cache(partial(queries.order_of_versions, store))
    branches = []
    for row in starmap(_StoredBranch, queries.branch_standings(store)):
        main = main_of(row.workload)
        is_chosen = options.workload in (None, main, row.workload) and is_shown(main)
        device = f"{row.vendor} {row.device}".strip()
        if options.device is not None and device_part(options.device) not in device_part(device):
            is_chosen = False
        if not is_chosen:
            continue
        branch = BoardBranch(
            workload=main,
            branch=branch_of(row.workload),
            configuration=row.configuration,
            device=device,
            version=row.version,
            runs=row.runs,
            against=_find_newest_base(store, row.base_runs, order_of(main)),
            step_change=_change(row.step_after_ns, row.step_before_ns),
            step_verdict=row.step_verdict,
        )
        branches.append(branch)
    return sorted(branches, key=_worst_branch_first)


def _worst_branch_first(branch: BoardBranch) -> tuple[Any, ...]:
    """Return a sort key: what regressed, then the largest change."""
    return branch.step_verdict != "REGRESSED", -abs(branch.step_change or 0.0), branch.workload, branch.branch


def _find_newest_base(store: Store, base_runs: str | None, order: Mapping[str, int]) -> str:
    """Return the newest version of a main line that these runs are of; "" for none. `order`: of its versions."""
    if not base_runs:
        return ""
    labels = queries.labels_of(store, [int(run) for run in base_runs.split()])
    versions = {version for _, version in labels.values() if version in order}
    return max(versions, key=lambda version: order[version], default="")


def _make_point(line: int, version: _Version) -> BoardPoint:
    """Return a version in the course of the track that is the `line`-th."""
    return BoardPoint(
        line=line,
        version=version.version,
        step_ns=version.step_ns,
        runs=version.runs,
        verdict=version.verdict,
        reason=version.reason,
    )


def _find_oldest(found: Sequence[ListedFinding], newest: _Version) -> ListedFinding | None:
    """Return the oldest finding of the step; one that was measured in another way says nothing of the newest step."""
    of_step = []
    for row in found:
        is_step = row.kind == "run" and row.name in STEP_SERIES
        if is_step and row.part == newest.way and row.step_kind == newest.step_kind:
            of_step.append(row)
    return min(of_step, key=lambda row: row.finding_id or math.inf, default=None)


def _is_comparable(finding: ListedFinding) -> bool:
    """Return whether the newest number says something of an open finding: not that of another host, or other work."""
    return finding.state not in CONFIRMED_STATES or finding.current_ratio is not None


def _change(after: float | None, before: float | None) -> float | None:
    return after / before - 1 if after and before else None


def _worst_first(line: BoardLine, incidents: Sequence[int | None]) -> tuple[Any, ...]:
    """Return a sort key: what is new, what waits for runs by the size of its change, what is open, then the others by
    theirs. Incidents of one kind stand in their own order.
    """
    group = 3
    if line.is_regressed:
        group = 0 if line.is_new else 2
    elif line.is_waiting:
        group = 1
    is_in_order = group in (0, 2) and line.incident_id in incidents
    place = incidents.index(line.incident_id) if is_in_order else len(incidents)
    change = max(abs(line.since_good or 0.0), abs(line.previous_change or 0.0) / 1e3)
    return group, place, -line.suspects, -change, line.workload, line.configuration
