"""Alerts on budgets: one message on each that is not met, from the version on with which that began."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final

from tracker.config import Alerts, Budget
from tracker.config.budgets import MFU
from tracker.notify.alarms import Alarm
from tracker.regressions.budgets import judge_version, list_budgets
from tracker.regressions.track import TrackRuns, named_tracks, read_tracks
from tracker.regressions.usual_runs import list_awaited_runs
from tracker.reports.commands import command
from tracker.results.budgets import JudgedBudget
from tracker.store import Store, read_one_state
from tracker.store.dimensions import digest_of

_LONGEST: Final = 50
"""Versions that are looked at: with which of more a budget was first not met is not asked at every look."""


@read_one_state
def list_alarms(store: Store, alerts: Alerts, *, now_ns: int) -> list[Alarm]:
    """Return an alarm for each budget that the newest version of a main line does not meet, of which no further runs
    are awaited. Its key is the same for all versions since the budget was met.
    """
    if not store.budgets:
        return []
    named = {key: names for key, names in named_tracks(store).items() if list_budgets(store, names)}
    return [alarm for track in read_tracks(store, named) for alarm in _of_track(store, track, alerts, now_ns)]


def _of_track(store: Store, track: TrackRuns, alerts: Alerts, now_ns: int) -> Iterator[Alarm]:
    look_back = track.thresholds.look_back
    awaited = list_awaited_runs(track.runs, look_back=look_back, settle_ns=alerts.settle_ns, now_ns=now_ns)
    if track.order[-1] in awaited:
        return
    for budget in list_budgets(store, track.names):
        judged = judge_version(store, track, budget, track.newest)
        if judged.verdict == "not met":
            yield _make_alarm(judged, budget, _find_since(store, track, budget))


def _find_since(store: Store, track: TrackRuns, budget: Budget) -> str:
    """Return the version since which a budget is not met; "" where that is longer than is looked back."""
    by_version = [list(runs) for _, runs in groupby(track.runs, attrgetter("version_id"))]
    since = by_version[-1][0].version
    for runs in reversed(by_version[-_LONGEST:-1]):
        verdict = judge_version(store, track, budget, runs).verdict
        if verdict == "met":
            return since
        if verdict == "not met":
            since = runs[0].version
    return since if len(by_version) <= _LONGEST else ""


def _make_alarm(judged: JudgedBudget, budget: Budget, since: str) -> Alarm:
    where = ", ".join(filter(None, (judged.device, judged.configuration)))
    began = f"It is not met since {since}." if since else f"It is not met for {_LONGEST} versions and longer."
    # MFU is no series: it is the step by what the model needs
    name = "step" if budget.name == MFU else budget.name
    look = command("tracker", "history", name, "--workload", judged.workload)
    place = (judged.workload, judged.configuration, judged.device, judged.series, judged.limit, since)
    return Alarm(
        key=digest_of(place).hex(),
        kind="budget",
        workload=judged.workload,
        title=f"budget not met: {judged.words}",
        lines=(f"On {where}. {began}", f"Its versions: {look}"),
    )
