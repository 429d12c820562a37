"""Where every line of a database stands: a workload in a configuration on a device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tracker.columns import Columns
from tracker.regressions.inbox import findings
from tracker.regressions.track import WAYS, named_lines
from tracker.results import BOARD_COLUMNS, OPEN_STATES, Board, BoardOptions, FindingsOptions
from tracker.store import Store, queries

Row = dict[str, Any]
Key = tuple[int, int, int]


def board(store: Store, *, options: BoardOptions | None = None) -> Board:
    """Every line with active runs: what is new first, then what is open, then the largest change since a good version.

    UsageError for a workload or device that is not there.
    """
    options = options or BoardOptions()
    queries.check_filters(store, workload=options.workload, device=options.device)
    runs = _runs_of_lines(store, options)
    lines = named_lines(store, options.workload, options.device)
    names = {(one.workload_id, one.configuration_id, one.device_id): words for one, words in lines.items()}
    chosen = FindingsOptions(workload=options.workload, device=options.device, states=(*OPEN_STATES, "muted"))
    found = findings(store, options=chosen) if runs else None
    of_track: dict[tuple[str, ...], list[Row]] = {}
    verdicts: dict[tuple[str, ...], str | None] = {}
    for row in found.tables["findings"].records() if found else ():
        if row["direction"] == "regression":
            of_track.setdefault(_names(row), []).append(row)
    for row in found.tables["lines"].records() if found else ():
        verdicts[_names(row)] = row["step_verdict"]
    made = [
        (_line(words, versions, of_track.get(_names(words), []), verdicts.get(_names(words))), versions)
        for key, versions in runs.items()
        if (words := names.get(key)) is not None
    ]
    made.sort(key=lambda one: _worst_first(one[0]))
    points = [
        {"line": at, "version": version["label"], "step_ns": version["step_ns"], "runs": len(version["runs"])}
        for at, (_, versions) in enumerate(made)
        for version in versions[-options.last :]
    ]
    tables = {"lines": [line for line, _ in made], "points": points}
    return Board(
        {name: Columns.of_rows(tables[name], columns) for name, columns in BOARD_COLUMNS.items()}, options=options
    )


def _runs_of_lines(store: Store, options: BoardOptions) -> dict[Key, list[Row]]:
    """Line -> its versions in order: label, pinned, runs, started_at_ns of the last, step_ns and peak of their runs."""
    lines: dict[Key, dict[int, Row]] = {}
    for row in queries.board(store, options.workload).records():
        key = (row["workload_id"], row["configuration_id"], row["device_id"])
        version = lines.setdefault(key, {}).setdefault(
            row["version_id"],
            {"label": row["version"], "pinned": row["pinned"], "runs": set(), "last_ns": None, "values": {}},
        )
        version["runs"].add(row["run_id"])
        version["last_ns"] = max(filter(None, (version["last_ns"], row["started_at_ns"])), default=None)
        version["values"].setdefault((row["name"], row["part"]), []).append(row["value"])
    for versions in lines.values():
        for version in versions.values():
            version["step_ns"] = _mean(version["values"], ("step", "e2e"))
            version["peak"] = _mean(version["values"], ("peak memory",))
    return {key: [*versions.values()] for key, versions in lines.items()}


def _mean(values: Mapping[tuple[str, str], list[float]], names: Iterable[str]) -> float | None:
    """The geometric mean over the runs, of the first of `names` and the first way of measuring that is there."""
    for name in names:
        for way in WAYS:
            known = [value for value in values.get((name, way), []) if value > 0]
            if known:
                return math.exp(math.fsum(map(math.log, known)) / len(known))
    return None


def _line(names: Mapping[str, str], versions: list[Row], found: list[Row], verdict: str | None) -> Row:
    newest = versions[-1]
    step = newest["step_ns"]
    pinned = next((one for one in reversed(versions) if one["pinned"]), None)
    states = [row["state"] for row in found]
    is_open = [row for row in found if row["state"] in OPEN_STATES]
    of_step = [row for row in is_open if row["kind"] == "run" and row["name"] in ("step", "e2e")]
    oldest = min(of_step, key=lambda row: row["finding_id"] or math.inf, default=None)
    worst = [row for row in is_open if row["incident_id"] is not None]
    return {
        **names, "version": newest["label"], "version_runs": len(newest["runs"]),
        "runs": sum(len(version["runs"]) for version in versions), "last_run_id": max(newest["runs"]),
        "last_run_ns": newest["last_ns"], "step_ns": step, "step_verdict": verdict,
        "previous_change": _change(step, versions[-2]["step_ns"]) if len(versions) > 1 else None,
        "good_version": oldest["good_version"] if oldest else None,
        "good_change": _change(step, oldest["baseline_value"]) if oldest else None,
        "pinned_version": pinned["label"] if pinned else None,
        "pinned_change": _change(step, pinned["step_ns"]) if pinned else None,
        "peak_allocated_bytes": newest["peak"], "new": sum(row["is_new"] for row in is_open),
        "open": sum(not row["is_new"] for row in is_open if row["state"] != "suspect"),
        "suspects": states.count("suspect"), "muted": states.count("muted"),
        "incident_id": max(worst, key=lambda row: (row["is_new"], abs(row["contribution"] or 0.0)))["incident_id"]
        if worst else None,
    }  # fmt: skip


def _change(after: float | None, before: float | None) -> float | None:
    return after / before - 1 if after and before else None


def _names(row: Mapping[str, str]) -> tuple[str, ...]:
    return row["workload"], row["configuration"], row["device"]


def _worst_first(line: Row) -> tuple[Any, ...]:
    change = max(abs(line["good_change"] or 0.0), abs(line["previous_change"] or 0.0) / 1e3)
    return (-line["new"], -line["open"], -line["suspects"], -change, line["workload"], line["configuration"])
