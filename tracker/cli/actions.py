"""`tracker ack`, `expect`, `mute`, `unmute`, `invalid`: what users say of findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tracker.cli import _options as options

if TYPE_CHECKING:
    from tracker.regressions.words import Action
    from tracker.store import Store

Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="ID...",
        help="Numbers of findings, as tracker findings lists them; I-N stands for all of an incident.",
        show_default=False,
    ),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept with the finding for ever.")]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who says so. Default: the name of your account.", show_default=False),
]
_SILENCE: Final = re.compile(r"silence:(\d{1,18})", re.ASCII)
_FUTURE: Final = "future:"
_NAMED: Final = 10
"""Versions that an error names at most, the newest ones."""
_LAST_NS: Final = 2**63 - 1


def ack(targets: Targets, reason: Reason, by: By = None, db: options.Database = None) -> None:
    """Seen: somebody works on it. It is measured on, and no reminder is sent of it.

    \b
    Example:
      tracker ack 12 13 --reason "ticket 4711"
      tracker ack I-3 --reason "the new driver; asked the vendor"
    """
    _act("ack", targets, reason, by, db)


def expect(targets: Targets, reason: Reason, by: By = None, db: options.Database = None) -> None:
    """Meant so: the change is the price of something. No gate counts it, and no more alerts are sent.

    \b
    Example:
      tracker expect I-3 --reason "layer norm in float64, decided in review 88"
    """
    _act("expect", targets, reason, by, db)


def invalid(targets: Targets, reason: Reason, by: By = None, db: options.Database = None) -> None:
    """Wrong: this is no finding. No gate counts it, and no more alerts are sent.

    \b
    Example:
      tracker invalid 14 --reason "the node was shared with a compile job"
    """
    _act("invalid", targets, reason, by, db)


def mute(
    reason: Reason,
    until: Annotated[
        str,
        typer.Option(
            metavar="END",
            help="When the mute ends: a date (2026-12-31, or with a time 2026-12-31T18:00, UTC), an age (12h, 3d, 2w), "
            "or the first run of a version: version:LABEL, future:LABEL for one that the database does not know yet. A "
            "second mute replaces the end of the first. A mute by pattern takes no version.",
        ),
    ],
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID...]",
            help="Numbers of findings, or I-N. Without any, --op says what is muted, now and later.",
            show_default=False,
        ),
    ] = None,
    op: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Instead of IDs: all findings of operators like this, with * for anything; '*' for all of a workload. "
            "Default: only IDs.",
            show_default=False,
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="With --op: only these workloads. Default: any.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="With --op: only these hardware models. Default: any.")
    ] = None,
    by: By = None,
    db: options.Database = None,
) -> None:
    """Not now: no alert is sent until END. It is still judged, shown and counted by gates.

    A mute by pattern (--op) holds for what is found until then, too, and does not end early; tracker notify --list
    names it, tracker unmute silence:N ends it.

    \b
    Example:
      tracker mute 12 --until 2w --reason "fix is planned for the next release"
      tracker mute I-3 --until future:v2.4 --reason "fixed there"
      tracker mute --op 'aten::copy_*' --workload gpt --until 3d --reason "the copies are being rewritten"
    """
    from tracker.errors import UsageError

    if op is None:
        if workload is not None or device is not None:
            raise UsageError("--workload and --device go with --op", remedy="give --op '*' for all operators")
        if not targets:
            raise UsageError("nothing is named to be muted", remedy="give IDs, or --op PATTERN")
        _act("mute", targets, reason, by, db, until=until)
        return
    if targets:
        raise UsageError("IDs and --op do not go together", remedy="give one of them")
    _silence(op, workload or "*", device or "*", reason=reason, by=by, db=db, until=until)


def unmute(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...",
            help="Numbers of findings, I-N, or silence:N for a mute by pattern.",
            show_default=False,
        ),
    ],
    reason: Reason,
    by: By = None,
    db: options.Database = None,
) -> None:
    """End a mute before its time.

    \b
    Example:
      tracker unmute 12 --reason "the release is out"
      tracker unmute silence:3 --reason "the copies are rewritten"
    """
    silences = [found for target in targets if (found := _SILENCE.fullmatch(target))]
    others = [target for target in targets if not _SILENCE.fullmatch(target)]
    if others:
        _act("unmute", others, reason, by, db)
    for found in silences:
        _end_silence(int(found[1]), db)


def _silence(op: str, workload: str, device: str, *, reason: str, by: str | None, db: str | None, until: str) -> None:
    import getpass
    import time

    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.cli._tables import moment_of
    from tracker.errors import UsageError
    from tracker.store import notifications

    now = time.time_ns()
    until_ns, until_version = _end(until, now)
    if until_ns is None or until_version is not None:
        raise UsageError("a mute by pattern ends at a time", remedy="give a date (2026-12-31) or an age (12h, 3d, 2w)")
    if until_ns <= now:
        raise UsageError("a mute needs an end that lies ahead", remedy="give a later one")
    if not reason.strip() or not op:
        raise UsageError("a reason or a pattern is empty", remedy="--op PATTERN --reason TEXT")
    silence = notifications.Silence(0, op, workload, device, by or getpass.getuser(), reason, now, until_ns)
    with _store.writing(config.load(db)) as store:
        number = store.transact(lambda connection: notifications.add_silence(connection, silence))
    emit(f"silence:{number}: no alerts of {op} until {moment_of('until')({'until': until_ns})} UTC")


def _end_silence(number: int, db: str | None) -> None:
    import time

    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.store import notifications

    with _store.writing(config.load(db)) as store:
        store.transact(lambda connection: notifications.end_silence(connection, number, time.time_ns()))
    emit(f"silence:{number} has ended")


def _act(
    action: Action, targets: list[str], reason: str, by: str | None, db: str | None, *, until: str | None = None
) -> None:
    import getpass
    import time

    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.regressions import actions
    from tracker.units import counted, format_numbers

    finding_ids, incident_ids = actions.numbers_of(targets)
    now = time.time_ns()
    until_ns, until_version = _end(until, now)
    who = by or getpass.getuser()
    wish = actions.Wish(action, who, now, reason, until_ns, until_version)
    with _store.writing(config.load(db)) as store:
        if until_version is not None and not (until or "").startswith(_FUTURE):
            _check_version(store, until_version)
        muted = _muted(store) if action == "mute" else frozenset()
        done = actions.act(store, wish, finding_ids=finding_ids, incident_ids=incident_ids)
    again = muted.intersection(done)
    replaced = f"; {len(again)} had a mute already, which ends with the new one" if again else ""
    emit(f"{counted(len(done), 'finding')}: {action} ({format_numbers(done)}){replaced}")


def _muted(store: Store) -> frozenset[int]:
    from tracker.regressions.inbox import found_rows

    return frozenset(row["finding_id"] for row in found_rows(store) if row["state"] == "muted")


def _check_version(store: Store, label: str) -> None:
    """UsageError for a version that no workload has: it would never end the mute."""
    from tracker.errors import UsageError
    from tracker.store import queries

    known = list(dict.fromkeys(queries.versions.columns(store).listed("version")))
    if label not in known:
        newest = ", ".join(known[-_NAMED:]) or "none"
        raise UsageError(
            f"--until version:{label}: there is no such version; known are {newest}",
            remedy=f"give {_FUTURE}{label} for a version that is still to come",
        )


def _end(until: str | None, now_ns: int) -> tuple[int | None, str | None]:
    """The end of a mute as UTC ns, or as a version."""
    from datetime import UTC, datetime

    from tracker.errors import UsageError
    from tracker.units import AGE, age_ns

    if until is None:
        return None, None
    for word in ("version:", _FUTURE):
        if until.startswith(word) and until != word:
            return None, until.removeprefix(word)
    if AGE.fullmatch(until):
        return _before_the_end_of_time(now_ns + age_ns(until), until), None
    try:
        when = datetime.fromisoformat(until)
    except ValueError:
        raise UsageError(
            f"--until {until!r} is no end",
            remedy="give a date (2026-12-31), an age (12h, 3d, 2w), version:LABEL or future:LABEL",
        ) from None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return _before_the_end_of_time(int(when.timestamp()) * 10**9, until), None


def _before_the_end_of_time(end: int, until: str) -> int:
    from tracker.errors import UsageError

    if end > _LAST_NS:
        raise UsageError(f"--until {until!r} lies too far ahead", remedy="give a date before 2262, or tracker expect")
    return end
