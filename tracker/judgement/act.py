"""What users say of findings: acknowledged, expected, muted until an end, wrong. Kept for ever; findings follow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection

from tracker.detectors.life import OPEN, Acted, Action, refusal
from tracker.errors import UsageError
from tracker.judgement.keep import keep
from tracker.judgement.tell import found_rows, line_of
from tracker.judgement.update import update_line
from tracker.results import FindingsOptions
from tracker.store import Store, findings, judged, judgements, queries
from tracker.store.judged import Line

_LIST = "tracker findings --state all --all lists them"
_DIGITS = 18  # what fits into 8 bytes, in which the database holds numbers
_INCIDENT = re.compile(rf"incident:(\d{{1,{_DIGITS}}})", re.ASCII)
_NONE = "there are none yet: tracker runs lists what there is"


class Wish(Struct, frozen=True):
    """What a user wants of findings, and why. A mute ends at `until_ns`, or with the first run of `until_version`."""

    action: Action
    who: str
    when_ns: int
    reason: str
    until_ns: int | None = None
    until_version: str | None = None


def numbers_of(targets: Sequence[str]) -> tuple[list[int], list[int]]:
    """The findings (`12`) and incidents (`incident:3`) that texts name; UsageError for any other text."""
    findings, incidents = [], []
    for target in targets:
        incident = _INCIDENT.fullmatch(target)
        if incident:
            incidents.append(int(incident[1]))
        elif target.isascii() and target.isdigit() and len(target) <= _DIGITS:
            findings.append(int(target))
        else:
            raise UsageError(
                f"{target!r} is no finding", remedy="give numbers, or incident:N; tracker findings lists them"
            )
    return findings, incidents


def act(store: Store, wish: Wish, *, finding_ids: Sequence[int] = (), incident_ids: Sequence[int] = ()) -> list[int]:
    """Do to these findings, and to those of these incidents that can take it, what a user wants; their numbers.

    All or nothing. UsageError names a finding that there is not, or that cannot be changed so, and an incident of which
    no finding can.
    """
    if not wish.reason.strip():
        raise UsageError("a reason is missing", remedy="--reason TEXT")
    with store.connect() as connection:
        known = judged.lines(connection)
    settle(store, known, wish.when_ns)  # a mute that is over is none
    rows = {int(row["finding_id"]): row for row in queries.findings(store).to_dict("records")}
    chosen = [_named(rows, number) for number in dict.fromkeys(finding_ids)]
    for number in dict.fromkeys(incident_ids):
        chosen += _of_incident(list(rows.values()), number, wish)
    chosen = list({int(row["finding_id"]): row for row in chosen}.values())
    for row in chosen:
        why = refusal(row["state"], _acted(wish))
        if why is not None:
            raise UsageError(f"finding {row['finding_id']}: {why}", remedy=f"tracker explain {row['finding_id']}")
    chosen += _covered(store, chosen, wish)
    lines = {line_of(row): [own for own in chosen if line_of(own) == line_of(row)] for row in chosen}
    store.transact(partial(_write, wish=wish, lines=lines))
    for line in lines:
        update_line(store, line, now_ns=wish.when_ns)
    return sorted(int(row["finding_id"]) for row in chosen)


def _covered(store: Store, chosen: Sequence[dict[Any, Any]], wish: Wish) -> list[dict[Any, Any]]:
    """What says the same as the chosen findings further down, and can take it: a word on an op holds for its shapes,
    one on a replacement for all ops that take part.
    """
    numbers = {int(row["finding_id"]) for row in chosen}
    rows, below = found_rows(store, FindingsOptions()), numbers.copy()
    while more := {row["finding_id"] for row in rows if row["under"] in below} - below:
        below |= more
    return [row for row in rows if row["finding_id"] in below - numbers and refusal(row["state"], _acted(wish)) is None]


def settle(store: Store, lines: Sequence[Line], now_ns: int) -> None:
    """End the mutes whose time is over."""
    for line in lines:
        keep(store, line, now_ns=now_ns)


def _acted(wish: Wish) -> Acted:
    until_version = None if wish.until_version is None else 0
    return Acted(wish.action, wish.who, wish.when_ns, wish.reason, wish.until_ns, until_version)


def _named(rows: dict[int, dict[Any, Any]], number: int) -> dict[Any, Any]:
    if number not in rows:
        raise UsageError(f"there is no finding {number}", remedy=_LIST if rows else _NONE)
    return rows[number]


def _of_incident(rows: Sequence[dict[Any, Any]], number: int, wish: Wish) -> list[dict[Any, Any]]:
    own = [row for row in rows if row["incident_id"] == number]
    if not own:
        raise UsageError(f"there is no incident {number}", remedy=_LIST if rows else _NONE)
    able = [row for row in own if row["state"] in OPEN and refusal(row["state"], _acted(wish)) is None]
    if not able:
        raise UsageError(
            f"incident {number}: no finding of it can be changed by {wish.action}",
            remedy="tracker findings --state all --all",
        )
    return able


def _write(connection: Connection, *, wish: Wish, lines: dict[Line, list[dict[Any, Any]]]) -> None:
    for line, rows in lines.items():
        judgements.lock(connection, line)
        runs = judged.runs_of(connection, line)
        for row in rows:
            key = (int(row["series_id"]), row["direction"], row["change"], int(row["first_run_id"]))
            if wish.until_version in {run.version for run in runs}:
                raise UsageError(
                    f"version {wish.until_version!r} is here already", remedy="name a later one, or a date"
                )
            after = max((run.run_id for run in runs), default=None)
            findings.add_action(
                connection,
                line,
                findings.Action(
                    key, after, wish.action, wish.who, wish.reason, wish.when_ns, wish.until_ns, wish.until_version
                ),
            )
