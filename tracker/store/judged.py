"""The runs of a line, its series, and what its runs say of them.

A line is what forms one history: a workload, in one configuration, on one device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from tracker.store import bulk, samples
from tracker.store.samples import SAMPLE_RULES
from tracker.store.samples.arrays import SampleArray
from tracker.store.sql import statement

F64 = NDArray[np.float64]

_MAIN: Final = text(
    "SELECT w.main_id, COALESCE((SELECT m.id FROM configuration AS m INNER JOIN configuration AS own "
    "ON m.fingerprint = own.fingerprint WHERE own.id = :configuration_id AND m.workload_id = w.main_id), "
    ":configuration_id) AS configuration_id FROM workload AS w WHERE w.id = :id AND w.main_id IS NOT NULL"
)
_COMMITS: Final = text("SELECT id, commit_id, main_commits FROM version WHERE workload_id = :id")


class Line(Struct, frozen=True):
    """The numbers of a workload, a configuration and a device."""

    workload_id: int
    configuration_id: int
    device_id: int

    @property
    def parameters(self) -> dict[str, Any]:
        """For the questions about a line."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class LineRun(Struct, frozen=True, gc=False):
    """An active run of a line. `ranks`: that came; `started_at_ns`: None where nobody knows; `recording_id`: of how it
    was recorded, None where nothing says it. There are thousands, which the garbage collector need not look at.
    """

    run_id: int
    version_id: int
    version: str
    pinned: bool
    ranks: int
    started_at_ns: int | None
    recording_id: int | None = None


class SeriesTable(Struct, frozen=True):
    """Series of a line: `ids`, with a (kind, metric, name, input_shapes, part) for each."""

    ids: NDArray[np.int64]
    keys: Sequence[tuple[str, str, str, str, str]]


def lines(connection: Connection, run_ids: Iterable[int] | None = None, workload: str | None = None) -> list[Line]:
    """The lines of these runs, or all of them, in order."""
    wanted = [] if run_ids is None else sorted(set(run_ids))
    parameters = {"all_runs": int(run_ids is None), "run_ids": wanted or [-1], "workload": workload}
    rows = connection.execute(statement("lines"), parameters).all()
    return [Line(row.workload_id, row.configuration_id, row.device_id) for row in rows]


def main_line_of(connection: Connection, line: Line) -> Line | None:
    """The line of the main line that a line of a branch is judged against; None for one that is no branch's."""
    asked = {"id": line.workload_id, "configuration_id": line.configuration_id}
    found = connection.execute(_MAIN, asked).one_or_none()
    return None if found is None else Line(int(found.main_id), int(found.configuration_id), line.device_id)


def branch_lines(connection: Connection) -> list[Line]:
    """The lines of all branches."""
    rows = connection.execute(statement("lines"), {"all_runs": 1, "run_ids": [-1], "workload": None}).all()
    return [Line(row.workload_id, row.configuration_id, row.device_id) for row in rows if row.is_branch]


def commits_of(connection: Connection, workload_id: int) -> dict[int, tuple[str | None, list[str]]]:
    """Version -> its commit, and of a branch those of the main line from the merge base back, the newest first."""
    rows = connection.execute(_COMMITS, {"id": workload_id})
    return {row.id: (row.commit_id, (row.main_commits or "").split()) for row in rows}


def stale_runs(connection: Connection, line: Line) -> list[int]:
    """The active runs of a line whose samples were never made, or by other rules, and whose details are here."""
    return [row[0] for row in connection.execute(statement("stale_runs"), {**line.parameters, "rules": SAMPLE_RULES})]


def runs_of(connection: Connection, line: Line, run_ids: Iterable[int] | None = None) -> list[LineRun]:
    """The active runs of a line, or these of them, in the order of versions; those of a version as they started, or by
    their numbers, as they came in, where nobody knows when one of them did: with a clock for some no other order fits
    all.
    """
    asked = {**line.parameters, "all_runs": int(run_ids is None), "ids": bulk.as_keys(run_ids or ())}
    rows = bulk.fetch(connection.execute(statement("line_runs"), asked))
    runs: list[LineRun] = []
    for _, own in groupby(rows, itemgetter(1)):
        of_version = [LineRun(row[0], row[1], row[2], bool(row[3]), *row[4:]) for row in own]
        if len(of_version) > 1 and all(run.started_at_ns is not None for run in of_version):
            of_version.sort(key=lambda run: run.started_at_ns or 0)
        runs += of_version
    return runs


def series_of(connection: Connection, line: Line) -> SeriesTable:
    """All series of a line, by ascending ids."""
    rows = bulk.fetch(connection.execute(statement("line_series"), {**line.parameters, "name": None}))
    return SeriesTable(np.array([row[0] for row in rows], dtype=np.int64), [row[1:] for row in rows])


def values_of(
    connection: Connection,
    run_ids: Sequence[int],
    series: SeriesTable,
    known: dict[int, SampleArray] | None = None,
) -> tuple[F64, F64, F64]:
    """What is printed, calls, and the 10th percentile over the steps, of these runs: (series, runs) arrays, each run
    together in memory; nan where it has no such series. One that is not in `series` is left out: it came since that
    was read, and who brought it judges next.
    `known`: samples that were read before, to which these are added.
    """
    values, calls, lows = np.empty((3, len(run_ids), len(series.ids)))
    arrays = {} if known is None else known
    arrays.update(samples.arrays_of(connection, [run_id for run_id in run_ids if run_id not in arrays]))
    ids = places = np.zeros(0, dtype=np.int64)
    for at, run_id in enumerate(run_ids):
        own = arrays[run_id]
        if at == 0 or not np.array_equal(own.series_ids, ids):  # nearly always those of the run before
            ids, places = own.series_ids, places_in(series.ids, own.series_ids)
        for table, numbers in ((values, own.values), (calls, own.calls), (lows, own.lows)):
            table[at] = np.append(numbers, np.nan)[places]
    return values.T, calls.T, lows.T


def places_in(ids: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each of `ids` in `own`, ascending; the end of it for what is not there."""
    place = np.searchsorted(own, ids)
    return np.where(np.append(own, -1)[place] == ids, place, len(own))


def values_in(connection: Connection, run_ids: Sequence[int], series_ids: Sequence[int]) -> F64:
    """What is judged of these series, ascending, in these runs: (series, runs), nan for what is not there."""
    return values_of(connection, run_ids, SeriesTable(np.array(series_ids, dtype=np.int64), ()))[0]
