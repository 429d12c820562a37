"""What is judged of the versions of a line: reading what it rests on, and writing it whole.

A line is what forms one history: a workload, in one configuration, on one device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from tracker.store import bulk, labels, samples
from tracker.store.bulk import Column
from tracker.store.dimensions import digest_of
from tracker.store.samples import SAMPLE_RULES
from tracker.store.sql import statement

F64 = NDArray[np.float64]

_OF_LINE: Final = "workload_id = :workload_id AND configuration_id = :configuration_id AND device_id = :device_id"
_FORGET_ROWS: Final = text(
    f"DELETE FROM diff_history WHERE version_id = :version_id AND series_id IN (SELECT id FROM series WHERE {_OF_LINE})"  # noqa: S608 a text of above
)
_FORGET: Final = text(f"DELETE FROM judged WHERE {_OF_LINE} AND version_id = :version_id")  # noqa: S608 the same
_ADD: Final = text(
    "INSERT INTO judged (workload_id, configuration_id, device_id, version_id, fingerprint, rule_version, "
    "previous_version_id, pinned_version_id, centre) VALUES (:workload_id, :configuration_id, :device_id, :version_id, "
    ":fingerprint, :rule_version, :previous_version_id, :pinned_version_id, :centre)"
)


class Line(Struct, frozen=True):
    """The numbers of a workload, a configuration and a device."""

    workload_id: int
    configuration_id: int
    device_id: int

    @property
    def parameters(self) -> dict[str, Any]:
        """For the questions about a line."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class LineRun(Struct, frozen=True):
    """An active run of a line. `stale`: its samples were never made, or by older rules, and its details
    are here. `ranks`: that came.

    `started_at_ns`: None where nobody knows.
    """

    run_id: int
    version_id: int
    version: str
    pinned: bool
    stale: bool
    ranks: int
    timeline: str
    started_at_ns: int | None


class SeriesTable(Struct, frozen=True):
    """The series of a line: `ids` ascending, with a (kind, metric, name, input_shapes, part) for each."""

    ids: NDArray[np.int64]
    keys: Sequence[tuple[str, str, str, str, str]]


class JudgedVersion(Struct, frozen=True):
    """How a version of a line was judged; None where there was nothing to compare with."""

    version_id: int
    fingerprint: bytes
    rule_version: int
    previous_version_id: int | None
    pinned_version_id: int | None
    centre: float | None


def lines(connection: Connection, run_ids: Iterable[int] | None = None, workload: str | None = None) -> list[Line]:
    """The lines of these runs, or all of them, in order."""
    wanted = [] if run_ids is None else sorted(set(run_ids))
    parameters = {"all_runs": int(run_ids is None), "run_ids": wanted or [-1], "workload": workload}
    rows = connection.execute(statement("lines"), parameters).all()
    return [Line(row.workload_id, row.configuration_id, row.device_id) for row in rows]


def runs_of(connection: Connection, line: Line) -> list[LineRun]:
    """The active runs of a line in the order of versions; those of a version as they started, or by their numbers, as
    they came in, where nobody knows when one of them did: with a clock for some no other order fits all.
    """
    rows = connection.execute(statement("line_runs"), line.parameters).all()
    return [
        LineRun(
            row.run_id, row.version_id, row.version, bool(row.pinned),
            row.sample_rules != SAMPLE_RULES and row.pruned_at_ns is None, row.ranks, row.timeline, row.started_at_ns,
        )
        for row in rows
    ]  # fmt: skip


def make_samples(connection: Connection, run_id: int) -> None:
    """Samples for a run that was saved before there were any, or by older rules."""
    labels.hold_run(connection, run_id)
    samples.refresh(connection, [run_id])


def series_of(connection: Connection, line: Line) -> SeriesTable:
    """All series of a line."""
    rows = bulk.fetch(connection.execute(statement("line_series"), {**line.parameters, "name": None}))
    return SeriesTable(np.array([row[0] for row in rows], dtype=np.int64), [row[1:] for row in rows])


def values_of(connection: Connection, run_ids: Sequence[int], series: SeriesTable) -> tuple[F64, F64]:
    """What is judged, and calls, of these runs: (series, runs) arrays, nan where a run does not have a series. A series
    that is not in `series` is left out: it came since that was read, and who brought it judges next.
    """
    values, calls = np.full((2, len(series.ids), len(run_ids)), np.nan)
    arrays = samples.arrays_of(connection, run_ids)
    for column, run_id in enumerate(run_ids):
        own = arrays[run_id]
        rows, known = _rows_of(own.series_ids, series.ids)
        values[rows, column], calls[rows, column] = own.values[known], own.calls[known]
    return values, calls


def _rows_of(ids: NDArray[np.int64], among: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The places of those of `ids` that are `among` ascending ones, and which these are."""
    if not len(among):
        return np.zeros(0, dtype=np.int64), np.zeros(len(ids), dtype=bool)
    place = np.minimum(np.searchsorted(among, ids), len(among) - 1)
    known = among[place] == ids
    return place[known], known


def families_of(connection: Connection, line: Line) -> list[tuple[str, str]]:
    """(kind, metric) of the series of a line."""
    return [(row.kind, row.metric) for row in connection.execute(statement("line_families"), line.parameters)]


def largest_of(connection: Connection, run_id: int, kind: str, metric: str, most: int) -> list[int]:
    """The series of a kind and metric that are the largest in a run, at most so many, the largest first."""
    wanted = {"run_id": run_id, "kind": kind, "metric": metric, "row_limit": most}
    return [row[0] for row in bulk.fetch(connection.execute(statement("largest_series"), wanted))]


def values_in(connection: Connection, run_ids: Sequence[int], series_ids: Sequence[int]) -> F64:
    """What is judged of these series, ascending, in these runs: (series, runs), nan for what is not there."""
    return values_of(connection, run_ids, SeriesTable(np.array(series_ids, dtype=np.int64), ()))[0]


def judged_of(connection: Connection, line: Line) -> dict[int, JudgedVersion]:
    """The versions of a line that were judged, by number."""
    rows = connection.execute(statement("judged"), line.parameters).all()
    return {
        row.version_id: JudgedVersion(
            row.version_id, bytes(row.fingerprint), row.rule_version, row.previous_version_id, row.pinned_version_id,
            row.centre,
        )
        for row in rows
    }  # fmt: skip


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
    connection.execute(_ADD, {**line.parameters, **{name: getattr(judged, name) for name in judged.__struct_fields__}})


def forget(connection: Connection, line: Line, version_id: int) -> None:
    """Remove what is known of a version in a line."""
    for statement_ in (_FORGET_ROWS, _FORGET):
        connection.execute(statement_, {**line.parameters, "version_id": version_id})
