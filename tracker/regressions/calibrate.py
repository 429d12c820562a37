"""What repeats of one code show: how many verdicts are false, and how small a change so many runs can find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

import numpy as np
from msgspec import Struct
from sqlalchemy import Connection

from tracker.columns import I64
from tracker.detect import JudgedSeries, KindCode, Verdict, shared_factor
from tracker.detect.power import detectable_with, runs_to_decide
from tracker.detect.repeats import Repeats, false_verdicts, random_splits
from tracker.detect.thresholds import MIN_RATIO, limit_of
from tracker.detect.track import Track
from tracker.errors import UsageError
from tracker.regressions.step_kinds import judge_kinds
from tracker.regressions.track import TrackRuns, geometric_mean, places, read_track, recorded_runs
from tracker.regressions.track_reader import TrackReader
from tracker.results import SERIES_KINDS, CalibrateOptions, Calibration, HistoryOptions
from tracker.results.thresholds import (
    CalibrationRows,
    CalibrationSuspect,
    NoisySeries,
    ProposedRatio,
    SeriesPower,
    TriedRatio,
)
from tracker.schema.column_names import WORKLOAD
from tracker.schema.series import SeriesKey
from tracker.store import Store, queries
from tracker.store import tracks as stored_tracks
from tracker.units import unit_of_metric

MIN_RUNS: Final = 6
RATIOS: Final = (0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.15, 0.20, 0.30)
RUNS: Final = (2, 3, 5, 8)
"""Runs of a version for which it is shown what they can find."""
_CANDIDATE: Final = 3
_LONGEST: Final = 18
"""Characters of a run number with its prefix."""
_MOST_FALSE: Final = 1.0
_LARGEST: Final = 5
"""Operators for which it is shown what is found."""


def calibrate(store: Store, references: Sequence[str], *, options: CalibrateOptions | None = None) -> Calibration:
    """Return what repeats of one code show; `references`: the label of a version, or `run:N` for each of its runs.

    All of them must lie in one track, and be 6 or more: UsageError otherwise. Reads only.
    """
    options = options or CalibrateOptions()
    with store.reading():
        whole, own = _repeats_named(store, references, options)
        with store.connect() as connection:
            track = read_track(connection, own, own.runs, present=True)
            suspects = _suspects(connection, whole)
            on_device = all(one.timeline == "device" for one in recorded_runs(connection, own.runs))
    by_name = [limit_of(MIN_RATIO, key, own.limits) for key in track.keys]
    limited = [np.log1p(one.value) if one is not None and one.pattern else np.nan for one in by_name]
    repeats = Repeats(track, own.thresholds, np.array(limited, dtype=np.float64))
    count = len(own.runs)
    baseline = min(repeats.limits.window, count - _CANDIDATE)
    # all windows of neighbouring runs
    ends = [(start + baseline, start + baseline + _CANDIDATE) for start in range(count - baseline - _CANDIDATE + 1)]
    windows = [(tuple(range(middle - baseline, middle)), tuple(range(middle, end))) for middle, end in ends]
    splits = random_splits(count, baseline, _CANDIDATE, most=options.splits, seed=0)
    kinds = [kind for kind in SERIES_KINDS if kind in set(repeats.kinds)]
    ratios = sorted({*RATIOS, *map(repeats.used, kinds)})
    false = {split: false_verdicts(repeats, split, kinds, ratios) for split in dict.fromkeys([*windows, *splits])}
    of_windows, of_splits = (np.array([false[one] for one in each]) for each in (windows, splits))
    tried = _ratios(of_windows, of_splits, kinds, ratios)
    rows = CalibrationRows(
        ratios=tuple(tried),
        proposals=tuple(_propose(tried, repeats, kind, own.names.device) for kind in kinds),
        power=tuple(_power(repeats)),
        suspects=tuple(suspects),
        series=tuple(_noisiest(repeats, options.noisiest)),
    )
    return Calibration(
        rows=rows,
        workload=own.names.workload, configuration=own.names.configuration, device=own.names.device,
        versions=tuple(dict.fromkeys(run.version for run in own.runs)), run_ids=tuple(run.run_id for run in own.runs),
        baseline=baseline, candidate=_CANDIDATE, windows=len(windows), splits=len(splits), options=options,
        notes=_notes(baseline, repeats.limits.window, own, on_device=on_device),
    )  # fmt: skip


def _repeats_named(store: Store, references: Sequence[str], options: CalibrateOptions) -> tuple[TrackRuns, TrackRuns]:
    """Return the one track of these runs (of a version: all active ones), as a whole and with these runs alone."""
    numbers = [text.removeprefix("run:") for text in references]
    pairs = zip(references, numbers, strict=True)
    bad = [text for text, number in pairs if not number.isdecimal() or len(text) > _LONGEST]
    if len(references) == 1 and references[0] == numbers[0]:
        wanted = {*queries.run_ids_of_version(store, numbers[0], workload=options.workload, device=options.device)}
    elif bad or not references:
        named = repr(bad[0]) if bad else "nothing"
        raise UsageError(
            f"{named} is not a run number, and several versions are no repeats of one",
            remedy="name one version, or its runs: run:41 run:42 ...",
        )
    else:
        wanted = {*map(int, numbers)}
    for number in sorted(wanted):
        queries.require_run(store, number)
    workloads = list(dict.fromkeys(queries.runs_by_id(store, sorted(wanted)).listed(WORKLOAD)))
    if len(workloads) > 1:
        raise UsageError(
            f"these runs are of several workloads: {', '.join(workloads)}", remedy="name the runs of one of them"
        )
    if options.workload not in (None, *workloads):
        problem = f"run {min(wanted)} is of the workload {workloads[0]}, not {options.workload}"
        raise UsageError(problem, remedy="leave out --workload")
    with store.connect() as connection:
        track_keys = set(stored_tracks.list_tracks(connection, wanted))
    found = [one for one in places(store, HistoryOptions(workload=str(workloads[0]))) if one.key in track_keys]
    kept = [run for track in found for run in track.runs if run.run_id in wanted]
    if lost := wanted - {run.run_id for run in kept}:
        raise UsageError(f"run {min(lost)} is not active", remedy="tracker runs --state all shows why")
    if len(found) > 1:
        named = "; ".join(f"{one.names.device} {one.names.configuration}".strip() for one in found)
        raise UsageError(
            f"these runs are no repeats: they differ in device or configuration ({named})",
            remedy="choose with --device, or name the runs of one of them: run:41 run:42 ...",
        )
    if len(kept) < MIN_RUNS:
        raise UsageError(
            f"a calibration needs {MIN_RUNS} or more repeats of one version; these are {len(kept)}",
            remedy="run the same version again and ingest it under the same label",
        )
    with store.connect() as connection:
        stale = stored_tracks.list_stale_runs(connection, found[0].key)
    if wanted & {*stale}:
        raise UsageError("these runs were saved before they could be judged", remedy="tracker versions judge")
    return found[0], replace(found[0], runs=tuple(kept))


def _ratios(of_windows: I64, of_splits: I64, kinds: Sequence[str], ratios: Sequence[float]) -> list[TriedRatio]:
    """Return a row per kind of series and smallest change."""
    rows = []
    for kind_at, kind in enumerate(kinds):
        for at, ratio in enumerate(ratios):
            found, tested = of_splits[:, kind_at, at].T
            row = TriedRatio(
                kind=kind,
                min_ratio=ratio,
                splits=len(of_splits),
                tested=float(tested.mean()),
                false_share=float(found.sum() / tested.sum()) if tested.sum() else None,
                mean_false=float(found.mean()),
                worst_false=int(found.max()),
                splits_with_false=int((found > 0).sum()),
                windows_false=int(of_windows[:, kind_at, at, 0].sum()),
            )
            rows.append(row)
    return rows


def _propose(tried: Sequence[TriedRatio], repeats: Repeats, kind: str, device: str) -> ProposedRatio:
    """Return the smallest change from which on there is at most one false verdict in the mean."""
    own = [row for row in tried if row.kind == kind]
    used = next(row for row in own if row.min_ratio == repeats.used(kind))
    passing = [*takewhile(lambda row: row.mean_false <= _MOST_FALSE, reversed(own))]
    return ProposedRatio(
        device=device,
        kind=kind,
        series=int((repeats.kinds == kind).sum()),
        used_ratio=used.min_ratio,
        used_false=used.mean_false,
        used_share=used.false_share,
        proposed_ratio=passing[-1].min_ratio if passing else None,
    )


class _Named(Struct, frozen=True):
    """A series of a track: its number, its name, its mean value, and that as a share of the step, nan for no time."""

    series_id: int
    key: SeriesKey
    value: float
    share: float


def _name_series(track: Track, rows: I64) -> list[_Named]:
    """Return what names the series of these rows, and how large they are."""
    value = geometric_mean(track.values, slice(None))
    step = geometric_mean(track.step[None, :], slice(None))[0]
    is_part = track.series.is_time & ~track.series.of_step & (step > 0)
    share = np.where(is_part, value / max(step, 1e-300), np.nan)
    return [_Named(int(track.ids[row]), track.keys[row], float(value[row]), float(share[row])) for row in rows.tolist()]


def _noisiest(repeats: Repeats, most: int) -> list[NoisySeries]:
    """Return the series that vary most, of those that can be found to be changed at all."""
    track, series = repeats.track, repeats.track.series
    everything = np.ones(track.values.shape[1], dtype=bool)
    shift = shared_factor(track.logs[series.leaf], everything, everything, repeats.limits.least_leaves)
    centred = track.logs - np.where(series.shares_shift[:, None], shift, 0.0)
    rows = np.flatnonzero((~np.isnan(centred)).sum(axis=1) >= MIN_RUNS)
    spreads = np.nanstd(centred[rows], axis=1, ddof=1).tolist()
    noisy = []
    for one, spread, floor in zip(_name_series(track, rows), spreads, series.floor[rows].tolist(), strict=True):
        # what is below the floor is never found, however much it varies
        if spread * one.share < floor:
            continue
        row = NoisySeries(
            series_id=one.series_id,
            kind=one.key.kind,
            metric=one.key.metric,
            unit=unit_of_metric(one.key.metric),
            name=one.key.name,
            input_shapes=one.key.input_shapes,
            part=one.key.part,
            value=one.value,
            share=one.share,
            spread=spread,
        )
        noisy.append(row)
    return sorted(noisy, key=lambda row: -row.spread)[:most]


def _power(repeats: Repeats) -> list[SeriesPower]:
    """Return the smallest change of the step and of the largest operators that versions of so many runs show."""
    track, series, count = repeats.track, repeats.track.series, repeats.track.values.shape[1]
    halves = repeats.judge((tuple(range(count // 2)), tuple(range(count // 2, count))))
    names = series.kind == KindCode.NAME
    operators = np.flatnonzero(names if names.any() else series.leaf)
    size = geometric_mean(track.values[operators], slice(None))
    rows = np.array([*series.steps[:1], *operators[np.argsort(-size, kind="stable")[:_LARGEST]]], dtype=np.int64)
    power = []
    for runs in RUNS:
        least = np.expm1(detectable_with(halves, series.family, series.ratio, runs, repeats.limits)[rows]).tolist()
        for one, detectable in zip(_name_series(track, rows), least, strict=True):
            row = SeriesPower(
                series_id=one.series_id,
                kind=one.key.kind,
                metric=one.key.metric,
                name=one.key.name,
                input_shapes=one.key.input_shapes,
                part=one.key.part,
                share=one.share,
                runs=runs,
                detectable=detectable,
            )
            power.append(row)
    return power


def _suspects(connection: Connection, track: TrackRuns) -> list[CalibrationSuspect]:
    """Return the suspects of the newest version of a track, and how many more runs of it would decide.

    There are none where its judgement is out of date.
    """
    if track.late:
        return []
    reader, newest = TrackReader(track.key), len(track.order)
    state = reader.load(connection, track, newest).before(newest)
    data = reader.track(connection, track, state, newest)
    suspects = []
    for one in judge_kinds(data, state, newest, track.thresholds).kinds:
        suspects += _suspects_of_kind(one.track, one.result.judged, track)
    return sorted(suspects, key=lambda row: -abs(row.contribution))


def _suspects_of_kind(data: Track, found: JudgedSeries, track: TrackRuns) -> list[CalibrationSuspect]:
    """Return the suspects among the series of one kind of steps, the largest first."""
    rows = np.flatnonzero(found.verdict == Verdict.SUSPECT)
    rows = rows[np.argsort(-np.abs(found.contribution[rows]), kind="stable")]
    change = np.expm1(np.where(data.series.more_is_better, -1.0, 1.0) * found.raw_change)
    more = runs_to_decide(found, data.series.family, track.thresholds)
    suspects = []
    for one, row in zip(_name_series(data, rows), rows.tolist(), strict=True):
        suspect = CalibrationSuspect(
            series_id=one.series_id,
            kind=one.key.kind,
            metric=one.key.metric,
            name=one.key.name,
            input_shapes=one.key.input_shapes,
            part=one.key.part,
            version=track.labels[track.order[-1]],
            change=float(change[row]),
            contribution=float(found.contribution[row]),
            runs=int(found.new_runs[row]),
            more_runs=None if more[row] < 0 else int(more[row]),
        )
        suspects.append(suspect)
    return suspects


def _notes(baseline: int, window: int, track: TrackRuns, *, on_device: bool) -> tuple[str, ...]:
    few = f"{len(track.runs)} runs allow {baseline} against {_CANDIDATE}, not {window} against {_CANDIDATE}"
    said = {
        f"{few}: with fewer runs the proposals are rougher.": baseline < window,
        "The runs are of several versions: what changed between them counts as noise here.": (
            len({run.version for run in track.runs}) > 1
        ),
        "Timed on the host: the machine's other work is part of this noise.": not on_device,
        "The judgement is out of date, so that suspects are left out; tracker versions judge.": bool(track.late),
    }
    return tuple(note for note, holds in said.items() if holds)
