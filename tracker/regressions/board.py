"""Where every track of a database stands: a workload in a configuration on a device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from msgspec import structs

from tracker.columns import Columns
from tracker.config import Owner
from tracker.config.owners import list_owners, matches, owner_of
from tracker.errors import UsageError
from tracker.profile.branches import main_of
from tracker.regressions.inbox import findings, number_of
from tracker.regressions.lifecycle import HOST, THROTTLED
from tracker.regressions.track import named_tracks, waiting_runs
from tracker.results import BOARD_COLUMNS, CONFIRMED_STATES, OPEN_STATES, Board, BoardOptions, FindingsOptions
from tracker.results.partial import find_partial, keep_whole
from tracker.schema.series import STEP_WAYS
from tracker.store import Store, queries, read_one_state, watchers
from tracker.store.tracks import TrackKey

Row = dict[str, Any]
_STEP: Final = ("step", "e2e")


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
    courses = _courses(store, options.workload, options.last)
    names_of = named_tracks(store, options.workload, options.device) if courses else {}
    course_of = {tuple(names.values()): courses[key] for key, names in names_of.items() if key in courses}
    chosen = FindingsOptions(workload=options.workload, device=options.device, states=(*OPEN_STATES, "expected"))
    found = findings(store, options=chosen) if courses else None
    worse: dict[tuple[str, ...], list[Row]] = {}
    accepted = set()
    for row in found.tables["findings"].records() if found else ():
        if row["state"] == "expected":
            if row["kind"] == "run" and row["name"] in _STEP:
                accepted.add((_names(row), row["version"]))
        elif row["direction"] == "regression":
            worse.setdefault(_names(row), []).append(row)
    made = [
        (
            _row(standing, course, worse.get(_names(standing), []))
            | {"accepted": (_names(standing), standing["version"]) in accepted},
            course,
        )
        for standing in (found.tables["lines"].records() if found else ())
        if (course := course_of.get(_names(standing))) and is_shown(standing["workload"])
    ]
    incidents = [row["incident_id"] for row in found.tables["incidents"].records()] if found else []
    made.sort(key=lambda one: _worst_first(one[0], incidents))
    points = [{"line": at, **version} for at, (_, course) in enumerate(made) for version in course[-options.last :]]
    late = _late_runs(store, options, is_shown, now_ns)
    waiting = [
        structs.asdict(run)
        for run in waiting_runs(store, options.workload, options.device, now_ns=now_ns)
        if is_shown(run.workload)
    ]
    tables = {"lines": [line for line, _ in made], "points": points, "late": late, "waiting": waiting}
    return Board(
        {name: Columns.of_rows(tables[name], columns) for name, columns in BOARD_COLUMNS.items()},
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
        names = {"", *queries.series_names(store, workload).listed("name")}
        return any(owner_of(owners, main, name) == who for name in names)

    return is_shown


def _late_runs(store: Store, options: BoardOptions, is_shown: Callable[[str], bool], now_ns: int | None) -> list[Row]:
    """Return what watchers wait for in vain, of the workload of the options and of any, the longest late first."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    late = [one for one in watchers.expectations(store, now_ns=now_ns) if one.is_late(now_ns)]
    rows = [
        {
            "workload": one.workload, "folder": one.folder, "every_ns": one.every_ns, "last_ns": one.last_ns,
            "due_ns": one.since_ns + one.every_ns,
        }
        for one in late
        if not one.workload or (options.workload in (None, one.workload) and is_shown(one.workload))
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row["due_ns"], row["workload"], row["folder"]))


def _courses(store: Store, workload: str | None, last: int) -> dict[TrackKey, list[Row]]:
    """Return track -> its versions in order, with how many runs they have; the `last` and pinned ones have a step."""
    courses: dict[TrackKey, list[Row]] = {}
    numbers: dict[TrackKey, list[list[tuple[str, str, float | None]]]] = {}
    verdicts = _verdicts(store, workload)
    rows = queries.board(store, workload).records()
    columns = ("run_id", "rank", "quality_reason", "settings")
    partial = find_partial(queries.partial_captures(store, workload).rows(*columns))
    which = itemgetter("workload_id", "configuration_id", "device_id", "version_id")
    # a track is shown by the kind of steps by which its newest version was judged
    kinds = {TrackKey(*which(row)[:3]): row["judged_kind"] for row in rows}
    for (*track, _), of_version in groupby(rows, which):
        own = list(of_version)
        version = {"version": own[0]["version"], "pinned": own[0]["pinned"], "step_ns": None}
        key = TrackKey(*track)
        runs = {row["run_id"] for row in own}
        whole = set(keep_whole(runs, partial))
        of_whole = []
        for row in own:
            if row["run_id"] in whole and row["step_kind"] == kinds[key]:
                of_whole.append((row["name"], row["part"], row["value"]))
        numbers.setdefault(key, []).append(of_whole)
        version["runs"] = len(runs)
        version["verdict"], version["reason"] = verdicts.get((key, own[0]["version_id"]), (None, None))
        courses.setdefault(key, []).append(version)
    for key, course in courses.items():
        way = _find_way(numbers[key])
        for at, version in enumerate(course):
            version["way"] = way
            version["step_kind"] = kinds[key]
            # of thousands of versions only these are shown, and the one before the newest is among them
            if at >= len(course) - last or version["pinned"]:
                version["step_ns"] = number_of(numbers[key][at], _STEP, [way])
    return courses


def _find_way(numbers: Sequence[Sequence[tuple[str, str, float | None]]]) -> str:
    """Return in which of STEP_WAYS the versions of a track, each of which has `numbers`, are compared: the best that
    the newest two have, else that of the newest: what was measured otherwise is no change of it.
    """
    newest: set[str] = set()
    for name in _STEP:
        of_two = [{part for own, part, _ in one if own == name} for one in numbers[-2:]]
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


def _row(standing: Row, course: list[Row], found: list[Row]) -> Row:
    """Return a row of the board: where a track stands, and how its newest step compares with those of its `course`."""
    step = course[-1]["step_ns"] or standing["step_ns"] or standing["e2e_ns"]
    pinned = next((one for one in reversed(course) if one["pinned"]), None)
    states = [row["state"] for row in found]
    # a finding of a step that was measured in another way says nothing of this one
    of_step = [
        row
        for row in found
        if row["kind"] == "run"
        and row["name"] in _STEP
        and row["part"] == course[-1]["way"]
        and row["step_kind"] == course[-1]["step_kind"]
    ]
    oldest = min(of_step, key=lambda row: row["finding_id"] or math.inf, default=None)
    # in the order of the incidents
    worst = next((row["incident_id"] for row in found if row["incident_id"] is not None), None)
    return standing | {
        "step_ns": step, "previous_change": _change(step, course[-2]["step_ns"]) if len(course) > 1 else None,
        "good_version": oldest["good_version"] if oldest else None,
        "good_change": _change(step, oldest["baseline_value"]) if oldest and _is_comparable(oldest) else None,
        "pinned_version": pinned["version"] if pinned else None,
        "pinned_change": _change(step, pinned["step_ns"]) if pinned else None,
        "new": sum(row["is_new"] for row in found),
        "open": sum(not row["is_new"] for row in found if row["state"] != "suspect"),
        "may_be_host": any(row["change"] == HOST for row in found),
        "may_be_throttled": any(row["change"] == THROTTLED for row in found),
        "suspects": states.count("suspect"), "muted": states.count("muted"),
        "incident_id": worst,
    }  # fmt: skip


def _is_comparable(finding: Row) -> bool:
    """Return whether the newest number says something of an open finding: not that of another host, or other work."""
    return finding["state"] not in CONFIRMED_STATES or finding["current_ratio"] is not None


def _change(after: float | None, before: float | None) -> float | None:
    return after / before - 1 if after and before else None


def _names(row: Mapping[str, str]) -> tuple[str, ...]:
    return row["workload"], row["configuration"], row["device"]


def _worst_first(row: Row, incidents: Sequence[int]) -> tuple[Any, ...]:
    place = incidents.index(row["incident_id"]) if row["incident_id"] in incidents else len(incidents)
    change = max(abs(row["good_change"] or 0.0), abs(row["previous_change"] or 0.0) / 1e3)
    return place, -row["suspects"], not row["lacks_runs"], -change, row["workload"], row["configuration"]
