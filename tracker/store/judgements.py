"""Writing how the versions of a line were judged, whole; what it rests on is read by `judged`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict, astuple
from sqlalchemy import Connection, text

from tracker.store import bulk, labels, samples
from tracker.store.bulk import Column
from tracker.store.dimensions import digest_of
from tracker.store.judged import JudgedVersion, Line
from tracker.store.samples import SAMPLE_RULES

_OF_LINE: Final = "workload_id = :workload_id AND configuration_id = :configuration_id AND device_id = :device_id"
_FORGET_ROWS: Final = text(
    f"DELETE FROM diff_history WHERE version_id = :version_id AND series_id IN (SELECT id FROM series WHERE {_OF_LINE})"  # noqa: S608 a text of above
)
_FORGET: Final = text(f"DELETE FROM judged WHERE {_OF_LINE} AND version_id = :version_id")  # noqa: S608 the same
_ADD: Final = text(
    "INSERT INTO judged (workload_id, configuration_id, device_id, version_id, fingerprint, rule_version, "
    "previous_version_id, judged_runs, baseline_runs, pinned_version_id, centre) VALUES "
    "(:workload_id, :configuration_id, :device_id, :version_id, :fingerprint, :rule_version, :previous_version_id, "
    ":judged_runs, :baseline_runs, :pinned_version_id, :centre)"
)


def make_samples(connection: Connection, run_id: int) -> None:
    """Samples for a run that was saved before there were any, or by older rules."""
    labels.hold_run(connection, run_id)
    samples.refresh(connection, [run_id])


def fingerprint(*parts: object) -> bytes:
    """16 bytes for all that a judgement rests on."""
    return digest_of((SAMPLE_RULES, *parts))


def lock(connection: Connection, line: Line) -> None:
    """Let one transaction at a time judge a line."""
    labels.lock(connection, "judge", *astuple(line))


def write(connection: Connection, line: Line, judged: JudgedVersion, rows: Sequence[Column]) -> None:
    """Replace what is known of a version; `rows`: the columns of `diff_history` but version and rule version, in order
    of series_id.
    """
    forget(connection, line, judged.version_id)
    count = len(rows[0].values) if rows else 0
    fixed = [
        Column("version_id", "int", [judged.version_id] * count),
        Column("rule_version", "short", [judged.rule_version] * count),
    ]
    bulk.load(connection, "diff_history", [*fixed, *rows])
    connection.execute(_ADD, {**line.parameters, **asdict(judged)})


def forget(connection: Connection, line: Line, version_id: int) -> None:
    """Remove what is known of a version in a line."""
    for statement_ in (_FORGET_ROWS, _FORGET):
        connection.execute(statement_, {**line.parameters, "version_id": version_id})
