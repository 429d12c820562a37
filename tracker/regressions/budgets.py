"""Budgets of the settings: whether the usual run of a version keeps them. No single run decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from tracker.columns import F64
from tracker.config import Budget
from tracker.config.budgets import MFU
from tracker.config.owners import fits_device, matches
from tracker.profile import LOG_COUNTERS
from tracker.profile.branches import main_of
from tracker.profile.odd_runs import find_odd_runs
from tracker.regressions.track import TrackNames, TrackRuns, named_tracks, read_tracks, recorded_runs
from tracker.results.budgets import BudgetVerdict, JudgedBudget
from tracker.schema.column_names import MEAN, NAME, RUN_ID, SOURCE
from tracker.schema.series import OWN_TIMES, RUN, STEP_WAYS
from tracker.store import Store, queries
from tracker.store import tracks as stored_tracks
from tracker.store.queries.judgement import TrackSeries
from tracker.store.tracks import TrackRun
from tracker.units import SAMPLES

_OWN_TIMES: Final = [metric.name for metric in OWN_TIMES]
OF_OPERATOR: Final = "op_name"


def judge_newest(
    store: Store, tracks: Iterable[TrackRuns], names: Collection[str] | None = None
) -> tuple[JudgedBudget, ...]:
    """Return how the newest version of each track came out by each budget that is for it. `names`: only of these
    series; None: of all.
    """
    found = []
    for track in tracks:
        for budget in list_budgets(store, track.names):
            if names is None or budget.name in names:
                found.append(judge_version(store, track, budget, track.newest))
    return tuple(found)


def judge_side(
    store: Store, workload: str, configuration: str, device: str, run_ids: Sequence[int]
) -> tuple[JudgedBudget, ...]:
    """Return how these runs of a track came out by each budget that is for it; nothing where they are of no version."""
    if not store.budgets:
        return ()
    names = named_tracks(store, workload, branches=True)
    own = {}
    for key, of in names.items():
        if (of.configuration, of.device) == (configuration, device) and list_budgets(store, of):
            own[key] = of
    found = []
    for track in read_tracks(store, own):
        runs = [run for run in track.runs if run.run_id in run_ids]
        if runs:
            found += [judge_version(store, track, budget, runs) for budget in list_budgets(store, track.names)]
    return tuple(found)


def list_budgets(store: Store, names: TrackNames) -> list[Budget]:
    """Return the budgets that are for a track of these names; of a branch those of its main line."""
    workload, device = main_of(names.workload), names.device
    return [one for one in store.budgets if matches(one.workload, workload) and fits_device(one.device, device)]


def judge_version(store: Store, track: TrackRuns, budget: Budget, runs: Sequence[TrackRun]) -> JudgedBudget:
    """Return how `runs` of one version come out by a budget."""
    units: tuple[str, ...] = ()
    if budget.name == MFU:
        values = _read_mfu(store, runs)
    else:
        rows = _choose_series(store, track, budget, runs[0].version_id)
        found = _read_series(store, rows, runs)
        units = tuple(dict.fromkeys(unit for unit, _ in found))
        values = found[0][1] if found else np.full(len(runs), np.nan)
    usual = usual_values(values)
    limit = budget.limit
    verdict, reason = decide(usual, limit.value, is_least=budget.at_least is not None)
    if len(units) > 1:
        usual, verdict = usual[:0], "not judged"
        reason = f"it counts {' and '.join(units)}, and the limit must name one of them"
    value = float(np.median(usual)) if len(usual) else None
    return JudgedBudget(
        workload=track.names.workload,
        configuration=track.names.configuration,
        device=track.names.device,
        version=runs[0].version,
        series=budget.series,
        limit=budget.words,
        verdict=verdict,
        value=value,
        value_words="" if value is None else limit.words_of(value),
        runs=len(usual),
        reason=reason,
        name=budget.name,
        limit_value=limit.value,
        unit=limit.unit,
    )


def usual_values(values: F64) -> F64:
    """Return the values without that of a run that stands alone, and of runs that do not have it.

    >>> usual_values(np.array([100.0, 101.0, 102.0, 300.0, np.nan])).tolist()
    [100.0, 101.0, 102.0]
    """
    known = values[~np.isnan(values)]
    if (known <= 0).any():
        # no communication, or no idle time: there is no ratio to nothing
        return known
    is_odd = find_odd_runs(np.log(known)[None, :])[0]
    return np.asarray(known[~is_odd])


def decide(values: F64, limit: float, *, is_least: bool) -> tuple[BudgetVerdict, str]:
    """Return whether these runs keep a limit, and why that is not known.

    More than half of them must be on one side of it: there the median is, and stays where any one run is left out.

    >>> decide(np.array([118.0, 119.0, 300.0]), 120.0, is_least=False)
    ('met', '')
    >>> decide(np.array([118.0, 300.0]), 120.0, is_least=False)
    ('not judged', '1 of its 2 runs is within the limit, and more runs decide')
    >>> decide(np.array([300.0]), 120.0, is_least=False)
    ('not judged', 'it has 1 run, which never decides')
    """
    count = len(values)
    if count == 0:
        return "not judged", "none of its runs has this number"
    if count == 1:
        return "not judged", "it has 1 run, which never decides"
    within = int((values >= limit).sum() if is_least else (values <= limit).sum())
    if 2 * within == count:
        verb = "is" if within == 1 else "are"
        return "not judged", f"{within} of its {count} runs {verb} within the limit, and more runs decide"
    return ("met" if 2 * within > count else "not met"), ""


def _read_series(store: Store, rows: Sequence[TrackSeries], runs: Sequence[TrackRun]) -> list[tuple[str, F64]]:
    """Return of each of these series that any run has what it counts, as a throughput does, and the number of each run,
    nan for none. A run of which records were lost that the number rests on has none.
    """
    found = []
    # by ascending number, as samples are looked up
    numbers = sorted(row.series_id for row in rows)
    with store.connect() as connection:
        read = stored_tracks.read_values_of_series(connection, [run.run_id for run in runs], numbers)
        stated = recorded_runs(connection, runs)
    for row in rows:
        is_whole = np.array([not one.recording.lacks(row.key) for one in stated])
        values = np.where(is_whole, read[numbers.index(row.series_id)], np.nan)
        if not np.isnan(values).all():
            found.append((row.input_shapes or SAMPLES, np.asarray(values)))
    return found


def _choose_series(store: Store, track: TrackRuns, budget: Budget, version_id: int) -> list[TrackSeries]:
    """Return the series that a budget can mean, the best first: of whole runs, and of operators where there are none;
    of the kind of steps by which the version is judged before those of all steps; and by how it was measured.
    """
    judged = track.judged.get(version_id)
    step_kind = judged.step_kind if judged else ""
    unit = budget.limit.word if budget.limit.unit == "per_second" else ""
    of_runs, of_operators = [], []
    for row in queries.track_series(store, track.key, budget.name):
        if row.step_kind not in (step_kind, ""):
            continue
        is_other = row.step_kind != step_kind
        if row.kind == RUN and _is_of_unit(row.input_shapes or SAMPLES, unit):
            of_runs.append((is_other, STEP_WAYS.index(row.part), row.series_id, row))
        elif row.kind == OF_OPERATOR and row.metric in _OWN_TIMES:
            of_operators.append((is_other, _OWN_TIMES.index(row.metric), row.series_id, row))
    return [row for *_, row in sorted(of_runs or of_operators, key=lambda one: one[:-1])]


def _is_of_unit(counted_in: str, unit: str) -> bool:
    """Return whether a throughput counts what a limit names, such as tokens/s; any where it names nothing."""
    return not unit or counted_in == unit or counted_in.startswith(f"{unit} ")


def _read_mfu(store: Store, runs: Sequence[TrackRun]) -> F64:
    """Return the MFU of each run, nan for none: by its kernels, as `tracker advise` says it, else what its log says."""
    from tracker.advice.stored import of_runs

    run_ids = [run.run_id for run in runs]
    found: dict[int, float] = {}
    for run_id, advice in of_runs(store, run_ids).items():
        value = advice.use.get(MFU)
        if value:
            found[run_id] = float(value)
    if not found:
        found = _read_logged_mfu(store, run_ids)
    return np.array([found.get(run_id, np.nan) for run_id in run_ids], dtype=np.float64)


def _read_logged_mfu(store: Store, run_ids: Sequence[int]) -> dict[int, float]:
    """Return the median of the MFU that the log of a run states, which is in percent."""
    values: dict[int, list[float]] = {}
    counters = queries.counters(store, run_ids)
    for run_id, source, name, mean in counters.rows(RUN_ID, SOURCE, NAME, MEAN):
        if (source, name) == (LOG_COUNTERS, MFU) and mean is not None:
            values.setdefault(run_id, []).append(mean / 100)
    return {run_id: float(np.median(own)) for run_id, own in values.items()}
