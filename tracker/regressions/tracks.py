"""The tracks of a database: their runs, the limits that hold in them, and where each of them stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.detect import Thresholds
from tracker.errors import UsageError
from tracker.regressions.track import WAYS, limits_key, track_limits
from tracker.results import FindingsOptions, HistoryOptions
from tracker.store import Store, judged, queries, regressions, thresholds
from tracker.store.dimensions import digest_of
from tracker.store.judged import Line, LineRun
from tracker.store.regressions import JudgedRow
from tracker.store.samples import SAMPLE_RULES
from tracker.store.thresholds import Threshold
from tracker.units import device_part

Row = dict[str, Any]

RULE_VERSION: Final = 6
"""Changes with the rules, so that all versions are judged again."""

_LINE: Final = ("workload_id", "configuration_id", "device_id")
_LONGEST: Final = 18
"""Digits of the longest number that a database can have."""
_SERIES: Final = {
    "step": "step_ns", "e2e": "e2e_ns", "compute": "compute_ns", "exposed communication": "exposed_communication_ns",
    "idle time": "idle_ns", "data loading": "data_loading_ns", "peak memory": "peak_allocated_bytes",
    "throughput": "samples_per_second",
}  # fmt: skip
"""Series of whole runs -> its column."""


@dataclass(frozen=True)
class TrackRuns:
    """The active runs of a track in the order of versions. `rows`: what was read of them; `limits`: that users set;
    `rests_on`: what the judgement of each version rests on, in their order; `judged`: how they came out that were
    judged, from whatever; `names`: workload, configuration and device.
    """

    line: Line
    rows: Sequence[tuple[Any, ...]]
    runs: Sequence[LineRun]
    limits: tuple[Threshold, ...]
    rests_on: dict[int, bytes]
    judged: Mapping[int, JudgedRow]
    names: Mapping[str, str]

    @cached_property
    def order(self) -> list[int]:
        """Its versions in their order."""
        return list(self.rests_on)

    @cached_property
    def place(self) -> dict[int, int]:
        """Version -> its place in their order, from 1."""
        return {version: at for at, version in enumerate(self.order, 1)}

    @cached_property
    def labels(self) -> dict[int, str]:
        """Version -> its label, in order."""
        return {run.version_id: run.version for run in self.runs}

    @cached_property
    def thresholds(self) -> Thresholds:
        """The limits that are the same for all series."""
        return track_limits(self.limits)

    @property
    def newest(self) -> list[LineRun]:
        """The runs of its newest version."""
        return self.runs_of(self.order[-1])

    @property
    def pinned(self) -> LineRun | None:
        """A run of the pinned version, where it has any here."""
        return next((run for run in self.runs if run.pinned), None)

    def runs_of(self, version_id: int) -> list[LineRun]:
        """The runs of a version."""
        return [run for run in self.runs if run.version_id == version_id]

    def before(self, version_id: int) -> str | None:
        """The label of the version before; None for the first one, and for one that is not there."""
        at = self.place.get(version_id, 1)
        return self.labels[self.order[at - 2]] if at > 1 else None

    @cached_property
    def late(self) -> list[int]:
        """The versions whose judgement is missing or out of date, in order."""
        first = self.first_difference({version: row.rests_on for version, row in self.judged.items()})
        return [] if first is None else self.order[first - 1 :]

    def first_difference(self, known: dict[int, bytes]) -> int | None:
        """The place of the first version that was judged from something else than what is there now; None: all is
        judged. `known`: what was judged rests on.
        """
        for at, (version, own) in enumerate(self.rests_on.items(), 1):
            if known.get(version) != own:
                return at
        return len(self.order) + 1 if known.keys() - self.rests_on.keys() else None


def runs_of_track(connection: Connection, line: Line, names: Mapping[str, str] | None = None) -> TrackRuns:
    """What the judgement of a track rests on now."""
    rows = judged.rows_of_runs(connection, line)
    runs = judged.runs_of(connection, line, rows)
    limits = thresholds.of_line(connection, line)
    chain = digest_of((SAMPLE_RULES, RULE_VERSION, *limits_key(limits)))
    found = {}
    for version, own in groupby(runs, lambda run: run.version_id):
        said = (f"{run.run_id} {run.ranks} {run.timeline} {run.recording_id}" for run in own)
        chain = found[version] = digest_of((chain.hex(), version, *said))
    return TrackRuns(line, rows, runs, limits, found, regressions.judged_rows(connection, line), names or {})


def named_lines(rows: Columns) -> Iterator[tuple[Line, dict[str, str]]]:
    """Of `queries.lines` each track, with workload, configuration and device in words."""
    words = rows.rows("workload", "configuration", "vendor", "device")
    for line, (workload, own, vendor, device) in zip(rows.rows(*_LINE), words, strict=True):
        yield Line(*line), {"workload": workload, "configuration": own, "device": f"{vendor} {device}".strip()}


class Tracks:
    """All tracks of a database, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tracks: dict[Line, TrackRuns | None] = {}

    @cached_property
    def names(self) -> dict[Line, dict[str, str]]:
        """Track -> workload, configuration and device in words."""
        return dict(named_lines(queries.lines.columns(self._store)))

    def of(self, line: Line) -> TrackRuns | None:
        """A track; None where no run of it is left."""
        if line not in self._tracks:
            with self._store.connect() as connection:
                track = runs_of_track(connection, line, self.names.get(line))
            self._tracks[line] = track if track.runs else None
        return self._tracks[line]

    def chosen(self, options: FindingsOptions) -> Iterator[TrackRuns]:
        """The tracks with runs that the options leave."""
        for line, names in self.names.items():
            if options.workload is not None and names["workload"] != options.workload:
                continue
            if options.device is None or device_part(options.device) in device_part(names["device"]):
                track = self.of(line)
                if track is not None:
                    yield track


def places(store: Store, options: HistoryOptions) -> list[TrackRuns]:
    """The tracks that the options leave; UsageError where there are none, or several workloads."""
    queries.check_filters(store, workload=options.workload, device=options.device, config=options.config)
    rows = queries.lines.columns(store, options.workload)
    rows = rows.taken(rows.integers("runs") > 0)
    if options.device is not None:
        rows = queries.on_device(rows, options.device)
    rows = queries.with_values(store, rows, options.config)
    key = options.key or ""
    if key.isascii() and key.isdigit() and len(key) <= _LONGEST and len(rows) > 1:
        # the number of a series says which workload is meant; what is the number of none here may be a name
        own = {tuple(line) for line in queries.series_lines(store, [int(key)])[list(_LINE)].to_numpy().tolist()}
        if not own:
            raise UsageError(f"there is no series {key}", remedy="tracker history '*' --workload WORKLOAD lists them")
        mine = np.array([line in own for line in rows.rows(*_LINE)], dtype=bool)
        rows = rows.taken(mine) if mine.any() else rows
    workloads = list(dict.fromkeys(rows.listed("workload")))
    if len(workloads) > 1:
        raise UsageError(f"there are several workloads: {', '.join(workloads)}", remedy="choose one with --workload")
    if not workloads:
        raise UsageError("no active runs are left to show", remedy="tracker runs --state all lists what there is")
    with store.connect() as connection:
        return [runs_of_track(connection, line, names) for line, names in named_lines(rows)]


def standing(store: Store, track: TrackRuns) -> Row:
    """Where a track stands: its newest version, with the numbers of it as a whole; NA where nothing is known."""
    newest = track.newest
    known = list(queries.run_level(store, [run.run_id for run in newest]).rows("name", "part", "per_step"))
    found: Row = {
        **track.names,
        "version": newest[0].version,
        "version_runs": len(newest),
        "runs": len(track.runs),
        "last_run_id": max(run.run_id for run in newest),
        "last_run_ns": max((run.started_at_ns for run in newest if run.started_at_ns is not None), default=None),
    }
    for name, column in _SERIES.items():
        rows = [(part, value) for own, part, value in known if own == name]
        way = min((part for part, _ in rows), key=WAYS.index, default="")
        values = [value for part, value in rows if part == way and value is not None and value > 0]
        found[column] = math.exp(sum(map(math.log, values)) / len(values)) if values else None
    gate = track.judged.get(newest[0].version_id)
    before, after = (gate.step_before_ns, gate.step_after_ns) if gate else (None, None)
    found |= {name: getattr(gate, name, None) for name in ("step_verdict", "net", "peak")}
    found["step_change"] = after / before - 1 if before and after else None
    return found
