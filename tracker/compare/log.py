"""The optimisation log: what each version of a workload reached, per configuration, and what it gained."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.compare.log_advice import TAKEN, Place, VersionAdvice, find_promises, list_advice
from tracker.compare.log_runs import LoggedRun, RunNumbers, list_runs
from tracker.compare.log_verdicts import JudgedNumber, StoredVerdict, read_verdicts, verdict_of_runs
from tracker.errors import FIRST_INGEST, UsageError
from tracker.profile import UNKNOWN_DEVICE
from tracker.profile.branches import main_of
from tracker.results import LOG_TITLES, PROFILERS, Log, LogOptions
from tracker.results.log import LogAdviceRow, LogCellRow, LogColumnRow, LogDirectionRow, LogRows, LogVersionRow
from tracker.results.machine_state import marks_of_machines
from tracker.results.recording import rests_on
from tracker.schema.column_names import WORKLOAD
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
    """What is measured of a run.

    `number`: what a run reached, None where it is not known.
    `unit`: None where the profile names it.
    `way`: how the number of a run was measured, a word of series.WAYS; None for as the whole run.
    """

    name: str
    number: Callable[[RunNumbers], float | None]
    unit: str | None
    higher_is_better: bool = False
    way: Callable[[RunNumbers], str | None] = lambda run: None


_MEASURES: Final = {
    "throughput": _Measure(
        "throughput",
        lambda run: run.samples_per_second,
        None,
        higher_is_better=True,
        way=lambda run: run.throughput_way,
    ),
    "step": _Measure("step", lambda run: run.run_step_ns, "ns", way=lambda run: run.step_way),
    "e2e": _Measure("e2e", lambda run: run.run_e2e_ns, "ns"),
    "memory": _Measure("memory", lambda run: run.run_peak_bytes, "bytes"),
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
    runs = list_runs(store, workload)
    versions = list(dict.fromkeys(run.numbers.version for run in runs))
    baseline = _baseline(runs, versions, options, workload)
    _check_keys(runs, options, workload)
    advice = list(list_advice(store, [run.numbers for run in runs]))
    values = list(_values(runs, options, find_promises(advice)))
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
    cells: list[LogCellRow] = []
    for place, key in enumerate(keys):
        cells += _column(place, key, values_of[key], versions, baseline, verdicts)
    rows = _list_versions(versions, runs, cells, advice)
    narrowed = bool(options.config or options.device or options.metric != "best")
    shown = [row for row in rows if row.runs or not narrowed]
    shown = shown[-options.last :] if options.last is not None else shown
    names = {row.version for row in shown}
    shown_cells = [cell for cell in cells if cell.version in names]
    filled = {cell.column for cell in shown_cells}
    direction_of = {row.version: row.direction or "" for row in rows}
    return Log(
        workload=workload,
        baseline=baseline,
        options=options,
        rows=LogRows(
            versions=tuple(shown),
            columns=tuple(_describe_column(place, key) for place, key in enumerate(keys) if place in filled),
            cells=tuple(shown_cells),
            directions=tuple(_directions(cells, direction_of)),
            advice=tuple(_list_advice([one for one in advice if one.version in names], runs)),
        ),
    )


def _workload(store: Store, name: str | None) -> str:
    known: list[str] = list(dict.fromkeys(map(main_of, queries.versions(store).listed(WORKLOAD))))
    if name is None:
        if len(known) == 1:
            return known[0]
        if not known:
            raise UsageError("there are no runs yet", remedy=FIRST_INGEST)
        raise UsageError(f"there are several workloads: {', '.join(known)}", remedy="choose one with --workload")
    return name


def _baseline(runs: Sequence[LoggedRun], versions: Sequence[str], options: LogOptions, workload: str) -> str | None:
    """Return the version that the user names, else the pinned one; None for the first of each column."""
    if options.baseline is None:
        return next((run.numbers.version for run in runs if run.numbers.pinned), None)
    if options.baseline not in versions:
        close = queries.similar_labels(options.baseline, versions)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        raise UsageError(
            f"there is no version {options.baseline!r} of workload {workload!r} with active runs",
            remedy=f"{meant}tracker versions lists them",
        )
    return options.baseline


def _check_keys(runs: Sequence[LoggedRun], options: LogOptions, workload: str) -> None:
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


def _parts(run: LoggedRun, options: LogOptions) -> dict[str, str]:
    """Return what tells the column of a run from others: its configuration, and the tags that are asked for."""
    return {**run.configuration, **{key: run.tags[key] for key in options.by if key in run.tags}}


def _values(runs: Sequence[LoggedRun], options: LogOptions, promises: Mapping[Place, str]) -> Iterator[_Value]:
    """Yield the numbers of each run that the options ask for. `promises`: what advice that was taken could win
    at most.
    """
    for run in runs:
        parts = _parts(run, options)
        device = run.numbers.device_name
        if any(parts.get(key) != value for key, value in options.config.items()):
            continue
        if options.device is not None and device_part(options.device) not in device_part(device):
            continue
        measure = _measure(run, options.metric)
        number = measure.number(run.numbers)
        if number is not None:
            key = _key(run, measure, device, parts)
            rests = rests_on(RUN, _METRICS[measure.name], run.recording.timeline)
            version, track = run.numbers.version, run.numbers.track
            promise = "" if measure.name == "memory" else promises.get((version, track), "")
            expected = run.tags.get(EXPECTED, "") or promise
            series = JudgedNumber(version, *track, _METRICS[measure.name], way_of(key.profiler))
            is_judged = not run.recording.lacks(SeriesKey(RUN, series.metric, measure.name, "", series.part))
            yield _Value(version, key, float(number), expected, series, run.recording.sign(rests), is_judged)


def _measure(run: LoggedRun, metric: str) -> _Measure:
    if metric != "best":
        return _MEASURES[metric]
    return _MEASURES["step" if run.numbers.samples_per_second is None else "throughput"]


def _key(run: LoggedRun, measure: _Measure, device: str, configuration: Mapping[str, str]) -> _Key:
    scope = ""
    if measure.name == "throughput":
        scope = run.settings.get("throughput_scope", UNSAID) if run.has_several_processes else ""
    return _Key(
        measure=measure.name,
        unit=measure.unit or run.numbers.throughput_unit or run.settings.get("throughput_unit", SAMPLES),
        scope=scope,
        profiler=_find_profiler(run, measure),
        device=device,
        configuration=(*sorted(configuration.items()), *_steps_of(run, measure)),
    )


def _steps_of(run: LoggedRun, measure: _Measure) -> list[tuple[str, str]]:
    """Return of which steps a number is, as a key of its configuration; nothing where steps are of one kind."""
    kind = run.numbers.step_kind if measure.name == "step" else None
    return [("steps", kind)] if kind else []


def _find_profiler(run: LoggedRun, measure: _Measure) -> str:
    """Return how a number came about, one of PROFILERS: a run may have a log beside its trace."""
    way = measure.way(run.numbers)
    if way is not None:
        return PROFILER_OF_WAY[way]
    profiler = run.settings.get("profiler", "")
    return profiler if profiler in PROFILERS else "on"


def _column(
    place: int,
    key: _Key,
    values: Sequence[_Value],
    versions: Sequence[str],
    baseline: str | None,
    verdicts: Mapping[JudgedNumber, StoredVerdict],
) -> Iterator[LogCellRow]:
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
        yield LogCellRow(
            version=name,
            column=place,
            value=of_versions[name],
            runs=len(numbers),
            minimum=min(numbers),
            maximum=max(numbers),
            baseline_diff=_diff(start, of_versions[name]),
            previous_diff=_diff(previous, of_versions[name]),
            previous_version=before,
            gain=_diff(previous, of_versions[name]) if higher else _diff(of_versions[name], previous),
            expected=expected or None,
            expected_gain=expected_gain(expected),
            verdict=judged.verdict,
            judged_diff=judged.diff,
            reason=judged.reason,
        )


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
        number = float(match.group("number")) / 100
        return -number if match.group("sign") == "-" else number
    if match := _TIMES.fullmatch(text):
        return float(match.group("before") or match.group("behind")) - 1
    return None


def _list_versions(
    versions: Sequence[str],
    runs: Sequence[LoggedRun],
    cells: Sequence[LogCellRow],
    advice: Sequence[VersionAdvice],
) -> list[LogVersionRow]:
    """Return a row for each version, in order: what its runs say of it, and how many of them have cells."""
    runs_of: dict[str, list[LoggedRun]] = {}
    for run in runs:
        runs_of.setdefault(run.numbers.version, []).append(run)
    shown_runs = Counter[str]()
    for cell in cells:
        shown_runs[cell.version] += cell.runs
    families_of: dict[str, list[str]] = {}
    for one in advice:
        if one.status == TAKEN:
            families_of.setdefault(one.version, []).append(one.item.family)
    rows = []
    for version in versions:
        own = runs_of[version]
        first = own[0].numbers
        notes = [first.version_note, *(run.numbers.note for run in own)]
        directions = _texts([run.tags.get(DIRECTION) for run in own])
        rows.append(
            LogVersionRow(
                version=version,
                ordinal=first.ordinal,
                commit=first.commit,
                direction=directions or _texts(families_of.get(version, ())),
                note=_texts(notes, "; "),
                machine=marks_of_machines(run.facts for run in own) or None,
                pinned=first.pinned,
                runs=shown_runs[version],
            )
        )
    return rows


def _texts(texts: Sequence[str | None], separator: str = ", ") -> str | None:
    return separator.join(dict.fromkeys(text for text in texts if text)) or None


def _describe_column(place: int, key: _Key) -> LogColumnRow:
    return LogColumnRow(
        column=place,
        title=key.title,
        measure=key.measure,
        unit=key.unit,
        scope=key.scope,
        profiler=key.profiler,
        device=key.device,
        configuration=key.words,
        higher_is_better=_MEASURES[key.measure].higher_is_better,
    )


def _directions(cells: Sequence[LogCellRow], direction_of: Mapping[str, str]) -> Iterator[LogDirectionRow]:
    """Yield what the versions of each direction gained together: speeds multiply. Nothing where no version has one."""
    factors: dict[tuple[str, int], list[float]] = {}
    for cell in cells:
        direction = direction_of[cell.version]
        if direction and cell.gain is not None:
            factors.setdefault((direction, cell.column), []).append(1 + cell.gain)
    for (direction, column), found in factors.items():
        gain = 1.0
        for factor in found:
            gain *= factor
        yield LogDirectionRow(direction=direction, column=column, versions=len(found), gain=gain - 1)


def _list_advice(advice: Sequence[VersionAdvice], runs: Sequence[LoggedRun]) -> Iterator[LogAdviceRow]:
    """Yield the rows of advice. `runs`: which name the device and the configuration of a track."""
    run_of_track = {run.numbers.track: run for run in runs}
    for one in advice:
        run = run_of_track[one.track]
        yield LogAdviceRow(
            version=one.version,
            device=run.numbers.device_name,
            configuration=" ".join(f"{key}={value}" for key, value in sorted(run.configuration.items())),
            status=one.status,
            rule=one.item.rule,
            family=one.item.family,
            title=one.item.title,
            expected_ns=one.item.gain_ns,
            realised_ns=one.won_ns,
        )
