"""The optimisation log: what each version of a workload reached, per configuration, and what it gained."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Columns
from tracker.compare.log_advice import TAKEN, Place, of_versions, promised
from tracker.compare.log_verdicts import JudgedNumber, StoredVerdict, read_verdicts, verdict_of_runs
from tracker.errors import FIRST_INGEST, UsageError
from tracker.profile import UNKNOWN_DEVICE
from tracker.profile.branches import main_of
from tracker.results import LOG_COLUMNS, LOG_TITLES, PROFILERS, Log, LogOptions
from tracker.results.machine_state import marks_of_machines
from tracker.results.recording import Recording, rests_on
from tracker.schema.series import PROFILER_OF_WAY, RUN, SeriesKey, key_of_run, way_of
from tracker.store import queries, read_one_state
from tracker.store.samples.statistics import over_runs
from tracker.units import SAMPLES, device_part, natural

if TYPE_CHECKING:
    from tracker.store import Store

DIRECTION: Final = "direction"
EXPECTED: Final = "expected"
"""Run tags that the log reads: what kind of optimisation a version is, and the gain that was hoped for."""

UNSAID: Final = "per rank or total: not stated"
"""The scope of a throughput of a job of several processes where the profile does not tell."""

_PER_CENT: Final = re.compile(r"(?P<sign>[+-]?)\s*(?P<number>\d+(?:\.\d+)?)\s*%")
_TIMES: Final = re.compile(r"x\s*(?P<before>\d+(?:\.\d+)?)|(?P<behind>\d+(?:\.\d+)?)\s*x")


class _Measure(Struct, frozen=True):
    """`source`: the column of sql/run_numbers.sql; `way`: that of how it was measured, "": as the whole run; `unit`:
    None where the profile names it.
    """

    name: str
    source: str
    unit: str | None
    higher_is_better: bool = False
    way: str = ""

    def of(self, run: _Run) -> float | None:
        """Return what `run` reached, None where it is not known."""
        number = run.row[self.source]
        return None if number is None else float(number)


_MEASURES: Final = {
    "throughput": _Measure("throughput", "samples_per_second", None, higher_is_better=True, way="throughput_way"),
    "step": _Measure("step", "run_step_ns", "ns", way="step_way"),
    "e2e": _Measure("e2e", "run_e2e_ns", "ns"),
    "memory": _Measure("memory", "run_peak_bytes", "bytes"),
}


_METRICS: Final = {
    "throughput": key_of_run("throughput").metric,
    "step": key_of_run("step").metric,
    "e2e": key_of_run("e2e").metric,
    "memory": key_of_run("peak memory").metric,
}
"""Measure -> the metric of its series."""


class _Key(Struct, frozen=True):
    """What makes a column: numbers of different keys are never compared."""

    measure: str
    unit: str
    scope: str
    profiler: str
    device: str
    configuration: tuple[tuple[str, str], ...]

    @property
    def order(self) -> tuple[object, ...]:
        """Measures in their own order, then devices, then configurations with their numbers as numbers."""
        place = list(_MEASURES).index(self.measure)
        return (place, self.profiler, self.device, natural(self.words), self.unit, self.scope)

    @property
    def words(self) -> str:
        """The configuration as text."""
        return " ".join(f"{key}={value}" for key, value in self.configuration)

    @property
    def title(self) -> str:
        """All that makes the column, in words."""
        where = PROFILERS[self.profiler]
        what = LOG_TITLES[self.measure]
        if self.measure == "throughput":
            what = f"{what} in {self.unit}"
        device = "unknown device" if self.device == UNKNOWN_DEVICE.model else self.device
        return ", ".join(filter(None, (self.words, device, f"{what} {where}", self.scope)))


class _Value(Struct, frozen=True):
    """One number of one run. `sign`: how it was recorded, as far as the number rests on it."""

    version: str
    key: _Key
    number: float
    expected: str
    series: JudgedNumber
    sign: tuple[str, ...] = ()
    is_judged: bool = True


class _Run(Struct, frozen=True):
    """A run with what is known of it beside its numbers, and how it was recorded."""

    row: Mapping[str, Any]
    configuration: Mapping[str, str]
    tags: Mapping[str, str]
    facts: Mapping[str, str]
    settings: Mapping[str, str]
    recording: Recording


@read_one_state
def log(store: Store, *, options: LogOptions | None = None) -> Log:
    """Return the versions of a workload in their order, with what each reached per column and its change.

    Only active runs count. DIFF is against the baseline, and against the version before that has runs in the same
    column; both are looked for among all versions, also those that `options.last` hides. Raises UsageError for a
    workload, version or configuration that is not there.
    """
    options = options or LogOptions()
    workload = _workload(store, options.workload)
    queries.check_filters(store, workload=workload, device=options.device)
    runs = _runs(store, workload)
    versions = list(dict.fromkeys(str(run.row["version"]) for run in runs))
    baseline = _baseline(runs, versions, options, workload)
    _check_keys(runs, options, workload)
    advice = list(of_versions(store, [run.row for run in runs]))
    values = list(_values(runs, options, promised(advice)))
    if not values and runs:
        asked = [("--config", options.config), ("--device", options.device), ("--metric", options.metric != "best")]
        given = " and ".join(name for name, value in asked if value) or "these options"
        raise UsageError(
            f"no run of {workload} has a number that {given} asks for",
            remedy="tracker log without it shows all there is",
        )
    keys = sorted({value.key for value in values}, key=lambda key: key.order)
    verdicts = read_verdicts(store, workload)
    values_of: dict[_Key, list[_Value]] = {}
    for value in values:
        values_of.setdefault(value.key, []).append(value)
    cells: list[dict[str, Any]] = []
    for place, key in enumerate(keys):
        cells += _column(place, key, values_of[key], versions, baseline, verdicts)
    rows = _list_versions(versions, runs, cells, advice)
    narrowed = bool(options.config or options.device or options.metric != "best")
    shown = [row for row in rows if row["runs"] or not narrowed]
    shown = shown[-options.last :] if options.last is not None else shown
    names = {row["version"] for row in shown}
    filled = {cell["column"] for cell in cells if cell["version"] in names}
    names_of = {
        (int(run.row["configuration_id"]), int(run.row["device_id"])): {
            "device": f"{run.row['vendor']} {run.row['device']}".strip(),
            "configuration": " ".join(f"{key}={value}" for key, value in sorted(run.configuration.items())),
        } for run in runs
    }  # fmt: skip
    direction_of = {str(row["version"]): str(row["direction"] or "") for row in rows}
    tables = {
        "versions": shown,
        "columns": [_described(place, key) for place, key in enumerate(keys) if place in filled],
        "cells": [cell for cell in cells if cell["version"] in names],
        "directions": list(_directions(cells, direction_of)),
        "advice": [
            row | names_of[row["configuration_id"], row["device_id"]] for row in advice if row["version"] in names
        ],
    }
    made = {name: Columns.of_rows(rows, LOG_COLUMNS[name]) for name, rows in tables.items()}
    return Log(workload=workload, baseline=baseline, options=options, tables=made)


def _workload(store: Store, name: str | None) -> str:
    known: list[str] = list(dict.fromkeys(map(main_of, queries.versions(store).listed("workload"))))
    if name is None:
        if len(known) == 1:
            return known[0]
        if not known:
            raise UsageError("there are no runs yet", remedy=FIRST_INGEST)
        raise UsageError(f"there are several workloads: {', '.join(known)}", remedy="choose one with --workload")
    return name


def _runs(store: Store, workload: str) -> list[_Run]:
    rows = queries.run_numbers(store, workload).records()
    run_ids = [row["run_id"] for row in rows]
    known: dict[tuple[int, str], dict[str, str]] = {}
    for run_id, kind, key, value in queries.facts(store, run_ids).rows("run_id", "kind", "key", "value"):
        known.setdefault((run_id, kind), {})[key] = value
    with store.connect() as connection:
        recordings = queries.recorded(connection, run_ids)
    return [
        _Run(
            row,
            known.get((row["run_id"], "configuration"), {}),
            known.get((row["run_id"], "tag"), {}),
            known.get((row["run_id"], "fact"), {}),
            queries.settings_of(row["settings"]),
            recordings[row["run_id"]].recording,
        )
        for row in rows
    ]


def _baseline(runs: Sequence[_Run], versions: Sequence[str], options: LogOptions, workload: str) -> str | None:
    """Return the version that the user names, else the pinned one; None for the first of each column."""
    if options.baseline is None:
        return next((str(run.row["version"]) for run in runs if run.row["pinned"]), None)
    if options.baseline not in versions:
        close = queries.similar_labels(options.baseline, versions)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        raise UsageError(
            f"there is no version {options.baseline!r} of workload {workload!r} with active runs",
            remedy=f"{meant}tracker versions lists them",
        )
    return options.baseline


def _check_keys(runs: Sequence[_Run], options: LogOptions, workload: str) -> None:
    """UsageError for the first tag, or value of a configuration, that no run has."""
    tags = [key for run in runs for key in run.tags]
    known_tags = set(tags)
    for key in options.by:
        if key not in known_tags and not any(key in run.configuration for run in runs):
            raise queries.unknown("tag", key, tags, f" of workload {workload!r}")
    parts = [pair for run in runs for pair in _parts(run, options).items()]
    for key, value in options.config.items():
        if (key, value) not in parts:
            same = [f"{name}={own}" for name, own in parts if name == key] or [f"{name}={own}" for name, own in parts]
            raise queries.unknown("configuration", f"{key}={value}", same, f" of workload {workload!r}")


def _parts(run: _Run, options: LogOptions) -> dict[str, str]:
    """Return what tells the column of a run from others: its configuration, and the tags that are asked for."""
    return {**run.configuration, **{key: run.tags[key] for key in options.by if key in run.tags}}


def _values(runs: Sequence[_Run], options: LogOptions, promises: Mapping[Place, str]) -> Iterator[_Value]:
    """Yield the numbers of each run that the options ask for. `promises`: what advice that was taken could win
    at most.
    """
    for run in runs:
        parts = _parts(run, options)
        device = f"{run.row['vendor']} {run.row['device']}".strip()
        if any(parts.get(key) != value for key, value in options.config.items()):
            continue
        if options.device is not None and device_part(options.device) not in device_part(device):
            continue
        measure = _measure(run, options.metric)
        number = measure.of(run)
        if number is not None:
            key = _key(run, measure, device, parts)
            rests = rests_on(RUN, _METRICS[measure.name], run.recording.timeline)
            version = str(run.row["version"])
            line = int(run.row["configuration_id"]), int(run.row["device_id"])
            promise = "" if measure.name == "memory" else promises.get((version, *line), "")
            expected = run.tags.get(EXPECTED, "") or promise
            series = JudgedNumber(version, *line, _METRICS[measure.name], way_of(key.profiler))
            is_judged = not run.recording.lacks(SeriesKey(RUN, series.metric, measure.name, "", series.part))
            yield _Value(version, key, number, expected, series, run.recording.sign(rests), is_judged)


def _measure(run: _Run, metric: str) -> _Measure:
    if metric != "best":
        return _MEASURES[metric]
    return _MEASURES["step" if run.row["samples_per_second"] is None else "throughput"]


def _key(run: _Run, measure: _Measure, device: str, configuration: Mapping[str, str]) -> _Key:
    scope = ""
    if measure.name == "throughput":
        scope = run.settings.get("throughput_scope", UNSAID) if _many(run) else ""
    return _Key(
        measure=measure.name,
        unit=measure.unit or run.row["throughput_unit"] or run.settings.get("throughput_unit", SAMPLES),
        scope=scope,
        profiler=_find_profiler(run, measure),
        device=device,
        configuration=(*sorted(configuration.items()), *_steps_of(run, measure)),
    )


def _steps_of(run: _Run, measure: _Measure) -> list[tuple[str, str]]:
    """Return of which steps a number is, as a key of its configuration; nothing where steps are of one kind."""
    kind = run.row["step_kind"] if measure.name == "step" else None
    return [("steps", kind)] if kind else []


def _find_profiler(run: _Run, measure: _Measure) -> str:
    """Return how a number came about, one of PROFILERS: a run may have a log beside its trace."""
    if measure.way and run.row[measure.way] is not None:
        return PROFILER_OF_WAY[run.row[measure.way]]
    profiler = run.settings.get("profiler", "")
    return profiler if profiler in PROFILERS else "on"


def _many(run: _Run) -> bool:
    """Return whether the job has several processes, so that a throughput could mean one of them or all."""
    said = [run.configuration.get(key, "") for key in ("devices", "world_size")]
    counts = [int(text) for text in said if text.isascii() and text.isdigit()]
    return max([int(run.row["ranks"]), int(run.row["world_size"] or 1), *counts]) > 1


def _column(
    place: int,
    key: _Key,
    values: Sequence[_Value],
    versions: Sequence[str],
    baseline: str | None,
    verdicts: Mapping[JudgedNumber, StoredVerdict],
) -> Iterator[dict[str, Any]]:
    """Yield the cells of one column, in the order of versions.

    `values`: those of its key. `verdicts`: of the numbers of runs.
    """
    of_version: dict[str, list[_Value]] = {}
    for value in values:
        of_version.setdefault(value.version, []).append(value)
    for name, own in of_version.items():
        # a number rests on the runs that its verdict rests on
        of_version[name] = [value for value in own if value.is_judged] or own
    of_versions = {
        name: float(over_runs(np.array([[value.number for value in own]]))[0]) for name, own in of_version.items()
    }
    higher = _MEASURES[key.measure].higher_is_better
    present = [name for name in versions if name in of_version]
    signs = {name: {value.sign for value in own} for name, own in of_version.items()}
    first = baseline if baseline is not None else present[0]
    for at, name in enumerate(present):
        # what was recorded with other settings is another number
        start = of_versions[first] if first in signs and signs[first] & signs[name] else None
        before = _last_alike(present, at, signs)
        numbers = [value.number for value in of_version[name]]
        expected = " | ".join(dict.fromkeys(value.expected for value in of_version[name] if value.expected))
        previous = None if before is None else of_versions[before]
        judged = verdict_of_runs(verdicts, (value.series for value in of_version[name]))
        yield {
            "version": name,
            "column": place,
            "value": of_versions[name],
            "runs": len(numbers),
            "minimum": min(numbers),
            "maximum": max(numbers),
            "baseline_diff": _diff(start, of_versions[name]),
            "previous_diff": _diff(previous, of_versions[name]),
            "previous_version": before,
            "gain": _diff(previous, of_versions[name]) if higher else _diff(of_versions[name], previous),
            "expected": expected or None,
            "expected_gain": expected_gain(expected),
            "verdict": judged.verdict,
            "judged_diff": judged.diff,
            "reason": judged.reason,
        }


def _last_alike(versions: Sequence[str], at: int, signs: Mapping[str, set[tuple[str, ...]]]) -> str | None:
    """Return the last version before the one at a place that was recorded like it; None where there is none."""
    for place in range(at - 1, -1, -1):
        if signs[versions[place]] & signs[versions[at]]:
            return versions[place]
    return None


def _diff(baseline: float | None, candidate: float | None) -> float | None:
    return None if not baseline or candidate is None else candidate / baseline - 1


def expected_gain(text: str) -> float | None:
    """Return the gain in speed that a tag `expected` names, per cent or a factor; None where it is neither.

    >>> expected_gain("+10 %"), expected_gain("-5%"), expected_gain("1.5x"), expected_gain("much")
    (0.1, -0.05, 0.5, None)
    """
    text = text.strip()
    if match := _PER_CENT.fullmatch(text):
        number = float(match["number"]) / 100
        return -number if match["sign"] == "-" else number
    if match := _TIMES.fullmatch(text):
        return float(match["before"] or match["behind"]) - 1
    return None


def _list_versions(
    versions: Sequence[str],
    runs: Sequence[_Run],
    cells: Sequence[Mapping[str, Any]],
    advice: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return a row for each version, in order: what its runs say of it, and how many of them have cells."""
    runs_of: dict[str, list[_Run]] = {}
    for run in runs:
        runs_of.setdefault(str(run.row["version"]), []).append(run)
    shown_runs = Counter[str]()
    for cell in cells:
        shown_runs[cell["version"]] += cell["runs"]
    families_of: dict[str, list[str]] = {}
    for row in advice:
        if row["status"] == TAKEN:
            families_of.setdefault(row["version"], []).append(row["family"])
    rows = []
    for version in versions:
        own = runs_of[version]
        first = own[0].row
        notes = [first["version_note"], *(run.row["note"] for run in own)]
        directions = _texts([run.tags.get(DIRECTION) for run in own])
        rows.append(
            {
                "version": version,
                "ordinal": first["ordinal"],
                "commit": first["commit"],
                "direction": directions or _texts(families_of.get(version, ())),
                "note": _texts(notes, "; "),
                "machine": marks_of_machines(run.facts for run in own) or None,
                "pinned": first["pinned"],
                "runs": shown_runs[version],
            }
        )
    return rows


def _texts(texts: Sequence[str | None], separator: str = ", ") -> str | None:
    return separator.join(dict.fromkeys(text for text in texts if text)) or None


def _described(place: int, key: _Key) -> dict[str, Any]:
    return {
        "column": place,
        "title": key.title,
        "measure": key.measure,
        "unit": key.unit,
        "scope": key.scope,
        "profiler": key.profiler,
        "device": key.device,
        "configuration": key.words,
        "higher_is_better": _MEASURES[key.measure].higher_is_better,
    }


def _directions(cells: Sequence[Mapping[str, Any]], direction_of: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield what the versions of each direction gained together: speeds multiply. Nothing where no version has one."""
    factors: dict[tuple[str, int], list[float]] = {}
    for cell in cells:
        direction = direction_of[cell["version"]]
        if direction and cell["gain"] is not None:
            factors.setdefault((direction, cell["column"]), []).append(1 + cell["gain"])
    for (direction, column), found in factors.items():
        gain = 1.0
        for factor in found:
            gain *= factor
        yield {"direction": direction, "column": column, "versions": len(found), "gain": gain - 1}
