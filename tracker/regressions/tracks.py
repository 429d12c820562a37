"""The tracks of a database: their runs, how their versions came out, and where each of them stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tracker.detect import Thresholds
from tracker.regressions.limits import track_limits
from tracker.regressions.rows import WAYS
from tracker.results import FindingsOptions
from tracker.store import Store, judged, queries, thresholds
from tracker.store.judged import Line, LineRun
from tracker.units import device_part

Row = dict[str, Any]

_SERIES: Final = {
    "step": "step_ns", "e2e": "e2e_ns", "compute": "compute_ns", "exposed communication": "exposed_communication_ns",
    "idle time": "idle_ns", "data loading": "data_loading_ns", "peak memory": "peak_allocated_bytes",
    "throughput": "samples_per_second",
}  # fmt: skip
"""Series of whole runs -> its column."""


@dataclass(frozen=True)
class TrackNow:
    """A track with runs. `names`: workload, configuration, device; `gates`: by version, as sql/version_gates.sql."""

    line: Line
    names: dict[str, str]
    runs: Sequence[LineRun]
    gates: dict[int, Row]
    limits: Thresholds

    @cached_property
    def versions(self) -> list[int]:
        """Its versions in their order."""
        return list(dict.fromkeys(run.version_id for run in self.runs))

    @cached_property
    def labels(self) -> dict[int, str]:
        """Version -> its label."""
        return {run.version_id: run.version for run in self.runs}

    @property
    def newest(self) -> list[LineRun]:
        """The runs of its newest version."""
        return [run for run in self.runs if run.version_id == self.versions[-1]]

    def before(self, version_id: int) -> str | None:
        """The label of the version before; None for the first one."""
        at = self.versions.index(version_id) if version_id in self.versions else 0
        return self.labels[self.versions[at - 1]] if at else None


class Tracks:
    """All tracks of a database, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tracks: dict[Line, TrackNow | None] = {}

    @cached_property
    def names(self) -> dict[Line, dict[str, str]]:
        """Track -> workload, configuration and device in words."""
        found = queries.lines.columns(self._store)
        ids = found.rows("workload_id", "configuration_id", "device_id")
        words = found.rows("workload", "configuration", "vendor", "device")
        return {
            Line(*line): {"workload": workload, "configuration": own, "device": f"{vendor} {device}".strip()}
            for line, (workload, own, vendor, device) in zip(ids, words, strict=True)
        }

    def of(self, line: Line) -> TrackNow | None:
        """A track; None where no run of it is left."""
        if line not in self._tracks:
            with self._store.connect() as connection:
                runs = judged.runs_of(connection, line)
                limits = track_limits(thresholds.of_line(connection, line))
            gates = {row["version_id"]: row for row in queries.version_gates(self._store, line)} if runs else {}
            found = TrackNow(line, self.names.get(line, {}), runs, gates, limits) if runs else None
            self._tracks[line] = found
        return self._tracks[line]

    def chosen(self, options: FindingsOptions) -> Iterator[TrackNow]:
        """The tracks with runs that the options leave."""
        for line, names in self.names.items():
            if options.workload is not None and names["workload"] != options.workload:
                continue
            if options.device is None or device_part(options.device) in device_part(names["device"]):
                track = self.of(line)
                if track is not None:
                    yield track


def standing(store: Store, track: TrackNow) -> Row:
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
    gate = track.gates.get(newest[0].version_id, {})
    before, after = gate.get("step_before_ns"), gate.get("step_after_ns")
    found |= {name: gate.get(name) for name in ("step_verdict", "net", "peak")}
    found["step_change"] = after / before - 1 if before and after else None
    return found
