"""Alerts on budgets: one message on each that is not met, from the version on with which that began, and one when it is
met again. What further runs of a version may change waits for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from msgspec import Struct

from tracker.config import Alerts, Budget
from tracker.config.budgets import MFU
from tracker.notify.alarms import Alarm
from tracker.regressions.budgets import judge_version, list_budgets
from tracker.regressions.track import TrackRuns, named_tracks, read_tracks
from tracker.regressions.usual_runs import list_awaited_runs
from tracker.reports.commands import command
from tracker.results.budgets import JudgedBudget
from tracker.results.waiting import AwaitedRuns, WaitingAlert
from tracker.schema.column_names import CHANNEL, EVENT, KEY, WORKLOAD
from tracker.store import Store, notifications, read_one_state
from tracker.store.dimensions import digest_of
from tracker.store.tracks import TrackRun

_LONGEST: Final = 50
"""Versions that are looked at: with which of more a budget was first not met is not asked at every look."""


class BudgetAlarms(Struct, frozen=True):
    """Alarms on budgets. `broken`: on those that are not met; `met_again`: with the channels that were alerted before;
    `waiting`: what waits for further runs of a version.
    """

    broken: Sequence[Alarm] = ()
    met_again: Sequence[tuple[Alarm, Sequence[str]]] = ()
    waiting: Sequence[WaitingAlert] = ()


class _Newest(Struct, frozen=True):
    """A budget and the newest version of a track. `awaits`: the runs that may still change it, None: none."""

    track: TrackRuns
    budget: Budget
    judged: JudgedBudget
    awaits: AwaitedRuns | None


@read_one_state
def list_alarms(store: Store, alerts: Alerts, *, now_ns: int) -> BudgetAlarms:
    """Return the alarms on budgets of main lines. Their key is the same for all versions since the budget was met, and
    for the one that meets it again.
    """
    if not store.budgets:
        return BudgetAlarms()
    alerted, workloads = _read_alerted(store)
    broken: list[Alarm] = []
    met_again: list[tuple[Alarm, Sequence[str]]] = []
    waiting: list[WaitingAlert] = []
    for newest in _judge_newest(store, alerts, now_ns):
        judged, budget = newest.judged, newest.budget
        versions = [[*runs] for _, runs in groupby(newest.track.runs, attrgetter("version_id"))]
        if judged.verdict == "not met":
            since = _find_since(store, newest.track, budget, versions)
            alarm = _alarm_on_broken(judged, budget, since)
            if newest.awaits is None:
                broken.append(alarm)
            elif alarm.key not in alerted:
                waiting.append(_waiting_alert(judged, "opened", newest.awaits))
        elif judged.verdict == "met" and judged.workload in workloads:
            over = _alarm_on_met(store, newest, versions, alerted)
            if over is not None and newest.awaits is None:
                met_again.append((over, alerted[over.key]))
            elif over is not None and newest.awaits is not None:
                waiting.append(_waiting_alert(judged, "recovered", newest.awaits))
    return BudgetAlarms(broken, met_again, waiting)


def _read_alerted(store: Store) -> tuple[dict[str, list[str]], set[str]]:
    """Return the keys of alarms on budgets that are not met, each with the channels that have a message of it, and none
    yet that the budget is met again; and the workloads of these.
    """
    alerted: dict[str, list[str]] = {}
    workloads = set()
    rows = [*notifications.budget_messages(store).rows(EVENT, KEY, CHANNEL, WORKLOAD)]
    is_over = {(key.partition(":")[2], channel) for event, key, channel, _ in rows if event == "budget_met"}
    for event, key, channel, workload in rows:
        own = key.partition(":")[2]
        if event == "budget" and (own, channel) not in is_over:
            alerted.setdefault(own, []).append(channel)
            workloads.add(workload)
    return alerted, workloads


def _judge_newest(store: Store, alerts: Alerts, now_ns: int) -> Iterator[_Newest]:
    named = {key: names for key, names in named_tracks(store).items() if list_budgets(store, names)}
    for track in read_tracks(store, named):
        look_back = track.thresholds.look_back
        awaited = list_awaited_runs(track.runs, look_back=look_back, settle_ns=alerts.settle_ns, now_ns=now_ns)
        for budget in list_budgets(store, track.names):
            judged = judge_version(store, track, budget, track.newest)
            yield _Newest(track, budget, judged, awaited.get(track.order[-1]))


def _find_since(store: Store, track: TrackRuns, budget: Budget, versions: Sequence[Sequence[TrackRun]]) -> str:
    """Return the version since which a budget is not met in the newest of `versions`, the runs of each; "" where that
    is longer than is looked back.
    """
    since = versions[-1][0].version
    for runs in reversed(versions[-_LONGEST:-1]):
        verdict = judge_version(store, track, budget, runs).verdict
        if verdict == "met":
            return since
        if verdict == "not met":
            since = runs[0].version
    return since if len(versions) < _LONGEST else ""


def _alarm_on_met(
    store: Store, newest: _Newest, versions: Sequence[Sequence[TrackRun]], alerted: Mapping[str, Sequence[str]]
) -> Alarm | None:
    """Return the alarm that a budget is met again; None where no channel was `alerted` before."""
    for at in range(len(versions) - 2, max(-1, len(versions) - 2 - _LONGEST), -1):
        judged = judge_version(store, newest.track, newest.budget, versions[at])
        if judged.verdict != "not met":
            continue
        since = _find_since(store, newest.track, newest.budget, versions[: at + 1])
        before = _alarm_on_broken(judged, newest.budget, since)
        if before.key not in alerted:
            return None
        how_long = f"since {since}" if since else f"for {_LONGEST} versions and longer"
        line = f"On {_place(newest.judged)}. It was not met {how_long}, until {judged.version}."
        return Alarm(
            key=before.key,
            kind="budget_met",
            workload=newest.judged.workload,
            title=f"budget met again: {newest.judged.words}",
            lines=(line, before.lines[-1]),
            severity="info",
        )
    return None


def _alarm_on_broken(judged: JudgedBudget, budget: Budget, since: str) -> Alarm:
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
        lines=(f"On {_place(judged)}. {began}", f"Its versions: {look}"),
    )


def _place(judged: JudgedBudget) -> str:
    return ", ".join(filter(None, (judged.device, judged.configuration)))


def _waiting_alert(judged: JudgedBudget, event: str, awaits: AwaitedRuns) -> WaitingAlert:
    return WaitingAlert(
        None, judged.workload, judged.version, judged.device, event, awaits.version, awaits.runs, awaits.usual,
        awaits.until_ns, budget=f"{judged.series}, {judged.limit}",
    )  # fmt: skip
