"""Where each line stands: its newest version, how long its steps take, how far that is from versions before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from tracker.judgement.families import WAYS
from tracker.judgement.recorded import sentence_of_line
from tracker.lazy import pd
from tracker.results import FINDINGS_COLUMNS, FindingsOptions
from tracker.store import Store, judged, queries
from tracker.store.chosen import Known
from tracker.store.judged import Line, LineRun
from tracker.units import device_part

_SERIES: Final = {
    "step": "step_ns",
    "e2e": "e2e_ns",
    "compute": "compute_ns",
    "exposed communication": "exposed_communication_ns",
    "free": "free_ns",
    "data loading": "data_loading_ns",
    "peak memory": "peak_allocated_bytes",
    "throughput": "samples_per_second",
}
"""Run-level series -> its column."""


class Lines:
    """All lines of a database and their runs, each asked for once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs: dict[Line, list[LineRun]] = {}

    @cached_property
    def all(self) -> pd.DataFrame:
        """As `queries.lines` gives them."""
        return queries.lines(self._store)

    def runs_of(self, line: Line) -> list[LineRun]:
        """As `judged.runs_of` gives them."""
        if line not in self._runs:
            with self._store.connect() as connection:
                self._runs[line] = judged.runs_of(connection, line)
        return self._runs[line]


def standing(store: Store, options: FindingsOptions, lines: Lines) -> pd.DataFrame:
    """The frame `lines` of `Findings`, for the workload and device of the options."""
    rows = [names | _of_line(store, lines.runs_of(line)) for names, line in _chosen(options, lines)]
    columns = list(FINDINGS_COLUMNS["lines"])
    frame = pd.DataFrame([[row.get(name) for name in columns] for row in rows], columns=columns, dtype=object)
    return frame.where(frame.notna(), pd.NA)


def recording_notes(store: Store, options: FindingsOptions, lines: Lines, known: Known) -> list[str]:
    """A sentence for each line of the options whose newest version is not judged by all runs before it, since they
    were recorded differently; with the names of the line where there are several. `known`: what was read before.
    """
    found = []
    chosen = list(_chosen(options, lines))
    for names, line in chosen:
        runs = lines.runs_of(line)
        with store.connect() as connection:
            sentence = sentence_of_line(connection, line, runs, known)
        where = ", ".join(filter(None, names.values()))
        found += [f"{where}: {sentence}" if len(chosen) > 1 else sentence] if sentence else []
    return found


def _chosen(options: FindingsOptions, lines: Lines) -> Iterator[tuple[dict[str, str], Line]]:
    """The lines with runs that the options leave, and the names of each."""
    wanted = lines.all[lines.all["runs"] > 0]
    if options.workload is not None:
        wanted = wanted[wanted["workload"] == options.workload]
    for row in wanted.to_dict("records"):
        device = f"{row['vendor']} {row['device']}".strip()
        line = Line(row["workload_id"], row["configuration_id"], row["device_id"])
        is_asked = options.device is None or device_part(options.device) in device_part(device)
        if is_asked and lines.runs_of(line):
            yield {"workload": row["workload"], "configuration": row["configuration"], "device": device}, line


def _of_line(store: Store, runs: list[LineRun]) -> dict[str, Any]:
    newest = [run for run in runs if run.version_id == runs[-1].version_id]
    known = queries.run_level(store, [run.run_id for run in newest])
    found: dict[str, Any] = {
        "version": newest[0].version,
        "version_runs": len(newest),
        "runs": len(runs),
        "last_run_id": max(run.run_id for run in newest),
        "last_run_ns": max((run.started_at_ns for run in newest if run.started_at_ns is not None), default=None),
    }
    for name, column in _SERIES.items():
        values = _of_one_way(known, name)
        found[column] = float(values["per_step"].median()) if len(values) else None
    step = _of_one_way(known, "step" if found["step_ns"] is not None else "e2e")
    diffs = queries.series_diffs(store, sorted({int(number) for number in step["series_id"]}))
    for own in diffs[diffs["version_id"] == newest[0].version_id].to_dict("records")[:1]:
        found |= {name: own[name] for name in ("baseline_diff", "pinned_diff", "best_diff")}
    return found


def _of_one_way(known: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of a run-level series that were measured in one way, the first of WAYS that there is."""
    rows = known[known["name"] == name]
    return rows[rows["part"] == min(rows["part"], key=WAYS.index, default="")]
