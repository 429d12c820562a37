"""`tracker ack`, `expect`, `mute`, `unmute`, `invalid`: marks that users give to findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from tracker.cli.options import By, Database, Reason
from tracker.results.option import Option

Targets = Annotated[
    list[str],
    Option("Findings (12) or incidents (I-3), as tracker findings lists them.", "ID...", positional=True),
]
_DONE: Final = {
    "ack": "acknowledged", "expect": "accepted as intended", "mute": "muted", "unmute": "unmuted",
    "invalid": "marked as false positive",
}  # fmt: skip


def ack(targets: Targets, reason: Reason, by: By = None, db: Database = None) -> None:
    """Acknowledge findings. They are still measured and shown; no reminders are sent.

    \b
    Example:
      tracker ack 12 13 --reason "ticket 4711"
      tracker ack I-3 --reason "the new driver; vendor is informed"
    """
    _mark("ack", targets, db, reason=reason, by=by)


def expect(targets: Targets, reason: Reason, by: By = None, db: Database = None) -> None:
    """Accept a change as intended. It is no longer shown, alerted or gated.

    \b
    Example:
      tracker expect I-3 --reason "layer norm in float64, decided in review 88"
    """
    _mark("expect", targets, db, reason=reason, by=by)


def invalid(targets: Targets, reason: Reason, by: By = None, db: Database = None) -> None:
    """Mark findings as false positives. They are no longer shown, alerted or gated.

    \b
    Example:
      tracker invalid 14 --reason "the node was shared with a compile job"
    """
    _mark("invalid", targets, db, reason=reason, by=by)


def mute(
    reason: Reason,
    until: Annotated[
        str,
        Option(
            "End of the mute: a date (2026-12-31 or 2026-12-31T18:00, UTC), an age (12h, 3d, 2w), version:LABEL (its "
            "first run), or future:LABEL for a version without runs.",
            "END",
        ),
    ],
    targets: Annotated[
        list[str] | None, Option("Findings (12) or incidents (I-3); or use --op.", "ID...", positional=True)
    ] = None,
    op: Annotated[
        str | None,
        Option("All findings of these operators, future ones included, instead of IDs; '*' for all.", "PATTERN"),
    ] = None,
    workload: Annotated[str | None, Option("With --op: only these workloads. Default: any.", "PATTERN")] = None,
    device: Annotated[str | None, Option("With --op: only these hardware models. Default: any.", "PATTERN")] = None,
    by: By = None,
    db: Database = None,
) -> None:
    """Snooze findings until a date or a version. They are still judged, shown and gated, but not alerted.

    A mute with --op has a number, silence:N, which tracker notify --list shows and tracker unmute takes. Another mute
    of the same finding replaces its end.

    \b
    Example:
      tracker mute 12 --until 2w --reason "fix is planned for the next release"
      tracker mute I-3 --until future:v2.4 --reason "fixed there"
      tracker mute --op 'aten::copy_*' --workload gpt --until 3d --reason "the copies are being rewritten"
    """
    from tracker import api, config
    from tracker.cli import database
    from tracker.cli.output import emit
    from tracker.errors import UsageError

    if op is None:
        if workload is not None or device is not None:
            raise UsageError("--workload and --device need --op", remedy="add --op '*' for all operators")
        if not targets:
            raise UsageError("no finding to mute", remedy="give IDs, or --op PATTERN")
        _mark("mute", targets, db, reason=reason, by=by, until=until)
        return
    if targets:
        raise UsageError("both IDs and --op are given", remedy="choose one of them")
    with database.writing(config.load(db)) as store:
        number = api.mute_operators(
            op, until=until, reason=reason, workload=workload or "*", device=device or "*", by=by, store=store
        )
    emit(f"silence:{number}: no alerts of {op} until {until}.  Next: tracker notify --list")


def unmute(
    targets: Annotated[
        list[str],
        Option("Findings (12), incidents (I-3), or silence:N for a mute with --op.", "ID...", positional=True),
    ],
    reason: Reason,
    by: By = None,
    db: Database = None,
) -> None:
    """End a mute early.

    \b
    Example:
      tracker unmute 12 --reason "the release is out"
      tracker unmute silence:3 --reason "the copies are rewritten"
    """
    _mark("unmute", targets, db, reason=reason, by=by)


def _mark(action: str, targets: Sequence[str], db: str | None, **given: Any) -> None:
    from tracker import api, config
    from tracker.cli import database
    from tracker.cli.output import emit
    from tracker.units import counted, format_numbers

    with database.writing(config.load(db)) as store:
        done = getattr(api, action)(targets, store=store, **given)
    silences = [target for target in targets if target.startswith("silence:")]
    lines = [f"{counted(len(done), 'finding')} {_DONE[action]}: {format_numbers(done)}"] if done else []
    emit("\n".join([*lines, *(f"{silence} ended" for silence in silences)]))
