"""Make the messages that are due: what is new since each channel was told last, grouped, and never twice; and alarms,
which are about no incident: no run came, a profile cannot be read, the watcher itself is in trouble.

What is due is computed from a snapshot outside any transaction; it is written only if nobody decided anything since,
else computed anew. Doing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.config import Alerts
from tracker.notify import seen
from tracker.notify.alarms import Alarm
from tracker.notify.budgets import list_alarms
from tracker.notify.composing import Composer, Wish
from tracker.notify.delivering import due
from tracker.notify.life import OPENING, Heard, Want, find_awaited, wanted
from tracker.notify.routes import SOONEST, Route, alarm_channels, channels_of, default_when, is_louder, routes
from tracker.notify.seen import OVER, Incident, finding_name, silenced
from tracker.reports.message import json_of, of_json, title_of
from tracker.results import Message
from tracker.results.waiting import WaitingAlert
from tracker.store import Store, notifications, queries, read_one_state
from tracker.store.notifications import NewMessage, Record, Undelivered

_TRIES = 5
_VERSION = 3
"""Where the version stands in the key of an incident."""


def enqueue(store: Store, alerts: Alerts, *, now_ns: int) -> int:
    """Make the messages that are due at `now_ns`; how many were added to the outbox.

    Where a channel is new, what began before the newest version of its line is old history, and not told. Where others
    decide at the same time over and over, the rest is left for the next time.
    """
    if not channels_of(alerts):
        return 0
    on_budgets = _messages_on_budgets(store, alerts, now_ns)
    count = store.transact(partial(_add_or_keep, made=on_budgets, now_ns=now_ns)) if on_budgets else 0
    for _ in range(_TRIES):
        plan = _planned(store, alerts, now_ns)
        if not (plan.added or plan.changed or plan.skipped):
            return count
        try:
            return count + store.transact(partial(_write, plan=plan, now_ns=now_ns))
        except _Outdated:
            continue
    return count


@read_one_state
def preview(store: Store, alerts: Alerts, *, now_ns: int) -> list[tuple[str, Message]]:
    """Channel and message of all that would be made now, and of what would be tried now. Reads only.

    Without what has to wait for a message before it on the same incident, that is not to be tried now.
    """
    plan = _planned(store, alerts, now_ns)
    gone = {number for number, _ in plan.skipped} | {number for number, _ in plan.changed}
    with store.connect() as connection:
        old = [one for one in notifications.undelivered(connection) if one.id not in gone]
    on_budgets = []
    for message in _messages_on_budgets(store, alerts, now_ns):
        if not notifications.is_known(store, message.key, message.channel):
            on_budgets.append(message)
    made = [*plan.added, *(message for _, message in plan.changed), *on_budgets]
    new = [
        Undelivered(0, one.channel, frozenset(one.incidents), one.content, now_ns, now_ns, 0, None)
        for one in made
        if one.state == "pending"
    ]
    messages = [one for of_channel in due([*old, *new], now_ns).values() for one in of_channel]
    return [(one.channel, said) for one in messages if one.content and (said := _readable(one.content))]


@read_one_state
def list_waiting(store: Store, alerts: Alerts, *, now_ns: int) -> list[WaitingAlert]:
    """What waits for further runs of a version before any channel is told: incidents in their order, then budgets.
    Reads only.
    """
    channels = channels_of(alerts)
    if not channels:
        return []
    with store.connect() as connection:
        records = notifications.records(connection)
    heard = {channel: Heard(own) for channel, own in _by_channel(records, channels).items()}
    incidents = seen.read(store, now_ns, unsettled(store, [*heard.values()]), alerts.settle_ns)
    composer = Composer(store, alerts, incidents)
    waiting: dict[str, WaitingAlert] = {}
    for channel, told in heard.items():
        listener = _Listener(channel, told, composer, now_ns)
        for incident in incidents:
            found = find_awaited(incident, told) if told.is_started or incident.is_new else None
            if found is None or _routed(incident, Want(found[0], frozenset()), listener) is None:
                continue
            row, (event, awaited) = incident.findings[0].row, found
            waiting[incident.key] = WaitingAlert(
                incident.number, row.workload, row.version, row.device, event,
                awaited.version, awaited.runs, awaited.usual, awaited.until_ns,
            )  # fmt: skip
    of_budgets = list_alarms(store, alerts, now_ns=now_ns).waiting
    return [
        *(waiting[incident.key] for incident in incidents if incident.key in waiting),
        *(one for one in of_budgets if not _is_silenced(store, one.workload, now_ns)),
    ]


def _readable(content: str) -> Message | None:
    """None: a message that will be given up as soon as it is tried."""
    try:
        return of_json(content)
    except ValueError:
        return None


class _Outdated(Exception):
    """Somebody else decided about messages since the snapshot."""


class _Plan(Struct):
    """What is to be written. `fingerprint`: of what was decided before. `changed`: messages that become others."""

    fingerprint: object
    added: list[NewMessage] = field(default_factory=list)
    changed: list[tuple[int, NewMessage]] = field(default_factory=list)
    skipped: list[tuple[int, frozenset[str]]] = field(default_factory=list)


class _Listener(Struct, frozen=True):
    """A channel, what it was told so far, and what is known of the incidents that it may hear of now."""

    channel: str
    heard: Heard
    composer: Composer
    now_ns: int


class _Due(Struct, frozen=True):
    """One incident that one channel is to be told of."""

    incident: Incident
    want: Want
    event: str
    route: Route


def _fingerprint(records: Iterable[Record]) -> object:
    return frozenset((one.id, one.covers, one.incidents, one.event, one.state == "skipped") for one in records)


@read_one_state
def _planned(store: Store, alerts: Alerts, now_ns: int) -> _Plan:
    with store.connect() as connection:
        records = notifications.records(connection)
    plan = _Plan(_fingerprint(records))
    heard = [Heard(own) for own in _by_channel(records, channels_of(alerts)).values()]
    incidents = seen.read(store, now_ns, unsettled(store, heard), alerts.settle_ns)
    composer = Composer(store, alerts, incidents)
    plan.skipped = _unwanted(records, composer.incidents, now_ns)
    taken = dict(plan.skipped)
    records = [replace(one, state="skipped", covers=taken[one.id]) if one.id in taken else one for one in records]
    for channel, own in _by_channel(records, channels_of(alerts)).items():
        served = Heard(own)
        if not served.is_started:
            # what is old by then is never told
            old = [one for incident in incidents if not incident.is_new for one in incident.findings]
            covers = frozenset(event for one in old for event in one.events)
            plan.added.append(NewMessage("start", channel, "start", 1, "skipped", now_ns, covers=covers))
            served = Heard((*own, _as_record(plan.added[-1])))
        _plan_channel(plan, _Listener(channel, served, composer, now_ns))
    return plan


def unsettled(store: Store, heard: Sequence[Heard]) -> list[int] | None:
    """The findings that some channel may have to hear of, with all of their version; None: all there are.

    All, where a channel is new: what is old by then has to be written down. Else all but those of versions that are
    over, and told to be over, so that what a look costs follows what is open, not all that ever was.
    """
    if not all(one.is_started for one in heard):
        return None
    rows = queries.standings(store)
    # messages on their way can still become others, or nothing
    records = [record for one in heard for record in one.records if record.state in notifications.UNDELIVERED]
    wanted = {int(key.split(".")[_VERSION]) for record in records for key in record.incidents}
    for row in rows:
        name = finding_name(row)
        is_news = row.direction == "regression" and row.state in OVER
        if row.state == "open" or (
            is_news and any(f"{name}.began" in one.told and f"{name}.{row.state}" not in one.settled for one in heard)
        ):
            wanted.add(row.version_id)
    return [row.finding_id for row in rows if row.version_id in wanted]


def _by_channel(records: Iterable[Record], channels: Iterable[str]) -> dict[str, tuple[Record, ...]]:
    found: dict[str, list[Record]] = {channel: [] for channel in channels}
    for record in records:
        if record.channel in found:
            found[record.channel].append(record)
    return {channel: tuple(own) for channel, own in found.items()}


def _as_record(message: NewMessage) -> Record:
    return Record(
        0, message.key, message.channel, message.event, message.counter, message.state, message.severity,
        message.incidents, message.covers, message.created_ns, message.next_try_ns, 0, None, message.created_ns,
    )  # fmt: skip


def _unwanted(
    records: Iterable[Record], incidents: dict[str, Incident], now_ns: int
) -> list[tuple[int, frozenset[str]]]:
    """Messages on their way that nobody wants any more, and what they still cover: what is muted is told later."""
    found = []
    for record in records:
        free = record.claimed_until_ns is None or record.claimed_until_ns <= now_ns
        if record.state not in notifications.UNDELIVERED or not free or not record.incidents:
            continue
        if record.event not in OPENING | {"reminder"}:
            continue
        findings = [own for key in record.incidents if key in incidents for own in incidents[key].findings]
        if any(one.is_live for one in findings):
            continue
        if record.attempts and any(one.is_over for one in findings):
            continue  # it may have arrived; that it is over will be told after it
        # what runs may still bring back is told when they did
        later = [one for one in findings if one.is_silent or (one.is_over and not one.is_surely_over)]
        found.append((record.id, record.covers - frozenset(event for one in later for event in one.events)))
    return found


def _plan_channel(plan: _Plan, listener: _Listener) -> None:
    composer, heard = listener.composer, listener.heard
    found: dict[tuple[str, str], list[_Due]] = {}
    for incident in composer.incidents.values():
        want = wanted(incident, heard, composer.alerts, listener.now_ns)
        if want is None:
            continue
        one = _routed(incident, want, listener)
        if one is not None:
            found.setdefault((incident.link, _class(one.event)), []).append(one)
        elif want.covers and not _waits(want, incident, listener):
            # the channel does not hear of these events
            counter = heard.next_counter(incident.key, "passed")
            plan.added.append(
                NewMessage(
                    f"{incident.key}:passed:{counter}", listener.channel, "passed", counter, "skipped",
                    listener.now_ns, incidents=(incident.key,), covers=want.covers,
                )
            )  # fmt: skip
    for group in found.values():
        _plan_group(plan, group, listener)


def _waits(want: Want, incident: Incident, listener: _Listener) -> bool:
    """Whether it is too early for another message on an incident that got no more severe."""
    if want.not_before_ns is None or listener.now_ns >= want.not_before_ns:
        return False
    return not is_louder(listener.composer.subject(incident.key).severity, want.severity)


def _routed(incident: Incident, want: Want, listener: _Listener) -> _Due | None:
    if want.event is None or _waits(want, incident, listener):
        return None
    composer = listener.composer
    subject = composer.subject(incident.key)
    route = None
    if not composer.is_part_of_another(incident.key):
        route = routes(composer.alerts, subject).get(listener.channel)
    if want.event == "recovered":
        # who was told that it began is told that it is over, whatever the rules say by now
        return _Due(incident, want, want.event, route or Route(default_when(subject.severity)))
    if route is None or (composer.held_back(incident.key) and want.event != "opened"):
        return None
    return _Due(incident, want, want.event, route)


def _class(event: str) -> str:
    return "opening" if event in OPENING else event


def _plan_group(plan: _Plan, group: Sequence[_Due], listener: _Listener) -> None:
    """One message on the incidents of one version, in the one that is not sent yet where there is such a one."""
    first, alerts, now_ns = group[0], listener.composer.alerts, listener.now_ns
    keys = [one.incident.key for one in group]
    covers = frozenset(event for one in group for event in one.want.covers)
    incidents = listener.composer.incidents

    def joins(record: Record) -> bool:
        links = {incidents[key].link for key in record.incidents if key in incidents}
        return _class(record.event) == _class(first.event) and first.incident.link in links

    open_one = next(filter(joins, listener.heard.untried), None)
    when = min((one.route for one in group), key=lambda route: SOONEST.index(route.when))
    if open_one is not None:
        keys = [*open_one.incidents, *(key for key in keys if key not in open_one.incidents)]
        wish = Wish(open_one.event, open_one.key, when, open_one.covers | covers)
        made = _made(keys, wish, open_one.counter, listener)
        next_try = min(open_one.next_try_ns or now_ns, _next_try(when, open_one.event, alerts, now_ns))
        plan.changed.append((open_one.id, replace(made, next_try_ns=next_try)))
        return
    event = first.event if len({one.event for one in group}) == 1 else "opened"
    counter = listener.heard.next_counter(keys[0], event)
    wish = Wish(event, f"{keys[0]}:{event}:{counter}", when, covers)
    made = _made(keys, wish, counter, listener)
    plan.added.append(replace(made, next_try_ns=_next_try(when, event, alerts, now_ns)))


def _made(keys: Sequence[str], wish: Wish, counter: int, listener: _Listener) -> NewMessage:
    there = [key for key in keys if key in listener.composer.incidents]
    message = listener.composer.message(there, wish)
    return NewMessage(
        wish.key, listener.channel, wish.event, counter, "pending", listener.now_ns, severity=message.severity,
        workload=message.workload, title=title_of(message), incidents=tuple(there), covers=wish.covers,
        content=json_of(message).decode(),
    )  # fmt: skip


def _next_try(route: Route, event: str, alerts: Alerts, now_ns: int) -> int:
    """When a new message is due; what comes after the first one has waited already."""
    waits = route.when == "grouped" and event in {"opened", "recovered"}
    return now_ns + (alerts.wait_ns if waits else 0)


def _write(connection: Connection, *, plan: _Plan, now_ns: int) -> int:
    notifications.lock(connection)
    if _fingerprint(notifications.records(connection)) != plan.fingerprint:
        raise _Outdated
    for number, covers in plan.skipped:
        if not notifications.skip(connection, number, covers, now_ns):
            raise _Outdated  # somebody is sending it
    for number, message in plan.changed:
        if not notifications.change(connection, number, message):
            raise _Outdated
    return sum(notifications.add(connection, message) and message.state != "skipped" for message in plan.added)


Remember = Callable[[Connection], bool]
"""Remembers, in an open transaction, that something was told; whether nobody had remembered it before."""


def alarm(store: Store, alerts: Alerts, alarm: Alarm, *, now_ns: int, then: Remember | None = None) -> int:
    """Make a message of `alarm` for each channel that has none of its key yet; how many channels have one now.

    `then` remembers in the same transaction that it was told; says it that this is no news, no message is made.

    None while the whole workload is silenced: who asks again after that is heard. Who asks again and again, because it
    is still so, is not forgotten: an alarm expires when nobody asked for so long.
    """
    made = _messages_of_alarm(store, alarm, alarm_channels(alerts, alarm.workload), now_ns)

    def add(connection: Connection) -> int:
        if then is not None and not then(connection):
            raise _Outdated  # what `then` wrote is taken back
        _add_or_keep(connection, made, now_ns)
        return len(made)

    try:
        return store.transact(add) if made else 0
    except _Outdated:
        return 0


def _messages_of_alarm(store: Store, alarm: Alarm, channels: Iterable[str], now_ns: int) -> list[NewMessage]:
    """Return the message of an alarm for each of `channels`; none while the whole workload is silenced."""
    if _is_silenced(store, alarm.workload, now_ns):
        return []
    key = f"{alarm.kind}:{alarm.key}"
    message = Message(
        event=alarm.kind, key=key, workload=alarm.workload, title=alarm.title, lines=alarm.lines,
        severity=alarm.severity,
    )  # fmt: skip
    return [
        NewMessage(
            key, channel, alarm.kind, 1, "pending", now_ns, severity=alarm.severity, workload=alarm.workload,
            title=title_of(message), content=json_of(message).decode(), next_try_ns=now_ns,
        )
        for channel in channels
    ]  # fmt: skip


def _add_or_keep(connection: Connection, made: Sequence[NewMessage], now_ns: int) -> int:
    """Add the messages whose key is new for their channel, and keep the others from being forgotten; how many are
    new.
    """
    added = 0
    for message in made:
        if notifications.add(connection, message):
            added += 1
        else:
            notifications.keep(connection, message.key, message.channel, now_ns=now_ns)
    return added


def _messages_on_budgets(store: Store, alerts: Alerts, now_ns: int) -> list[NewMessage]:
    """Return the messages on budgets that are not met, those of before among them, and on those that are met again."""
    found = list_alarms(store, alerts, now_ns=now_ns)
    messages = []
    for alarm in found.broken:
        messages += _messages_of_alarm(store, alarm, alarm_channels(alerts, alarm.workload), now_ns)
    there = {channel.name for channel in alerts.channels}
    for alarm, alerted in found.met_again:
        # channels that were alerted get the end of it, whatever the rules say by now
        messages += _messages_of_alarm(store, alarm, [name for name in alerted if name in there], now_ns)
    return messages


def _is_silenced(store: Store, workload: str, now_ns: int) -> bool:
    """Return whether nothing is said of a whole workload for now."""
    return silenced(notifications.silences(store, now_ns), op="", workload=workload, device="")
