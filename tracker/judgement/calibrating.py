"""What the rule would say of a user's own repeats, and the smallest changes that their noise allows to be told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.calibrate import MIN_RUNS, RATIOS, Split, consecutive_splits, random_splits, smallest_ratio
from tracker.detectors.power import recall
from tracker.detectors.spread import floored, moderate, pooled
from tracker.detectors.within import two_modes
from tracker.errors import UsageError
from tracker.judgement.families import RUN, family_of, leaf_of, unit_of
from tracker.judgement.find import Place, places
from tracker.judgement.judging import Values, compare, judge_runs, step_of
from tracker.judgement.keep import watched_line
from tracker.judgement.thresholds import MIN_CONTRIBUTION, MIN_RATIO, NONE, Thresholds, usual_ratio
from tracker.lazy import pd
from tracker.results import CALIBRATION_COLUMNS, SERIES_KINDS, CalibrateOptions, Calibration, HistoryOptions
from tracker.store import Store, judged, queries

F64 = NDArray[np.float64]

_BASELINE: Final = 5
_CANDIDATE: Final = 3
_SEED: Final = 0
_MOST_FALSE: Final = 1.0
_FOUND: Final = (rule.REGRESSED, rule.IMPROVED)
_CHANGES: Final = (0.05, 0.10, 0.20)
_RUNS: Final = (2, 3, 5, 8)
_LARGEST: Final = 5
"""Operators of which it is said what would be found."""
_NAMING: Final = ("series_id", "kind", "metric", "name", "input_shapes", "part")


def calibrate(store: Store, references: Sequence[str], *, options: CalibrateOptions | None = None) -> Calibration:
    """The false findings of repeats: `references` is the label of a version, or `run:N` for each of its runs.

    All of them must lie in one line, and be 6 or more: UsageError otherwise. Reads only.
    """
    options = options or CalibrateOptions()
    place = _place(store, _run_ids(store, references, options), options)
    values, rows = _values(store, place)
    device_timed = all(run.timeline == "device" for run in place.runs)
    count = len(place.runs)
    baseline = min(_BASELINE, count - _CANDIDATE)
    windows = consecutive_splits(count, baseline, _CANDIDATE)
    splits = random_splits(count, baseline, _CANDIDATE, most=options.splits, seed=_SEED)
    limits = place.limits
    ratios_tried = sorted({*RATIOS, *(used_ratio(kind, device_timed, limits) for kind in _kinds(values))})
    judge = partial(false_findings, values, device_timed=device_timed, ratios=ratios_tried, thresholds=limits)
    false = {split: judge(split) for split in dict.fromkeys([*windows, *splits])}
    ratios = _ratios(false, windows, splits)
    return Calibration(
        ratios=ratios,
        proposals=_proposals(ratios, values, place, device_timed),
        series=_series(values, rows, place.limits, options.noisiest),
        recall=_recall(values, rows, place.limits, device_timed),
        workload=place.workload,
        configuration=place.configuration,
        device=place.device,
        versions=tuple(dict.fromkeys(run.version for run in place.runs)),
        run_ids=tuple(run.run_id for run in place.runs),
        baseline=baseline,
        candidate=_CANDIDATE,
        windows=len(windows),
        splits=len(splits),
        options=options,
        notes=_notes(baseline, place, device_timed),
    )


def _run_ids(store: Store, references: Sequence[str], options: CalibrateOptions) -> set[int]:
    """The runs that are meant: a version is all of its active ones."""
    runs = [text for text in references if text.startswith("run:")]
    if len(references) == 1 and not runs:
        found = queries.run_ids_of_version(store, references[0], workload=options.workload, device=options.device)
        return set(found)
    bad = [text for text in references if not text.removeprefix("run:").isdecimal() or len(text) > 18]
    if bad or not references:
        named = repr(bad[0]) if bad else "nothing"
        raise UsageError(
            f"{named} is not a run number, and several versions are no repeats of one",
            remedy="name one version, or its runs: run:41 run:42 ...",
        )
    return {int(text.removeprefix("run:")) for text in references}


def _place(store: Store, wanted: set[int], options: CalibrateOptions) -> Place:
    """The one line that the runs lie in, with these runs alone."""
    for number in sorted(wanted):
        queries.require_run(store, number)
    with store.connect() as connection:
        lines = set(judged.lines(connection, wanted))
    known = places(store, HistoryOptions(workload=options.workload or _workload(store, wanted)))
    found = [place for place in known if place.line in lines]
    kept = [run for place in found for run in place.runs if run.run_id in wanted]
    if lost := wanted - {run.run_id for run in kept}:
        raise UsageError(f"run {min(lost)} is not active", remedy="tracker runs --state all shows why")
    if len(found) > 1:
        named = "; ".join(f"{place.device} {place.configuration}".strip() for place in found)
        raise UsageError(
            f"these runs are no repeats: they differ in device or configuration ({named})",
            remedy="choose with --device, or name the runs of one of them: run:41 run:42 ...",
        )
    if len(kept) < MIN_RUNS:
        raise UsageError(
            f"a calibration needs {MIN_RUNS} or more repeats of one version; these are {len(kept)}",
            remedy="run the same version again and ingest it under the same label",
        )
    if any(run.stale for run in kept):
        raise UsageError("these runs were saved before they could be judged", remedy="tracker versions judge")
    place = found[0]
    return replace(place, basis=replace(place.basis, runs=tuple(kept)))


def _workload(store: Store, wanted: set[int]) -> str:
    workloads = list(dict.fromkeys(queries.runs_by_id(store, sorted(wanted))["workload"]))
    if len(workloads) > 1:
        raise UsageError(
            f"these runs are of several workloads: {', '.join(workloads)}", remedy="name the runs of one of them"
        )
    return str(workloads[0])


def _values(store: Store, place: Place) -> tuple[Values, pd.DataFrame]:
    """What the runs say, and the series of its rows; without modules and phases, which are sums of the others."""
    with store.connect() as connection:
        watched, ids = watched_line(connection, place.line, place.runs, recordings=False)
    frame = queries.line_series(store, place.line).set_index("series_id").loc[ids].reset_index()
    kept = ~frame["kind"].isin(["module", "phase"]).to_numpy()
    frame = frame[kept].reset_index(drop=True)
    return Values(
        [family_of(*key) for key in zip(frame["kind"], frame["metric"], frame["part"], strict=True)],
        frame["name"].tolist(),
        watched.raw[kept],
        watched.calls[kept],
    ), frame.assign(centred=list(watched.centred[kept]))


def false_findings(
    values: Values,
    split: Split,
    *,
    device_timed: bool,
    ratios: Sequence[float] = RATIOS,
    thresholds: Thresholds = NONE,
) -> dict[tuple[str, float], int]:
    """The false findings of one split, by kind and smallest change that counts.

    Whether a change passes its test does not depend on how small a change counts, so that one judgement says it for all
    of them; only the series of whole runs are judged anew, since what explains them depends on it. A series with a
    threshold of its own is judged by that one throughout.
    """
    one, other = split
    timed = dict.fromkeys(other, device_timed)
    compared = compare(
        values, one, other, device_timed=list(timed.values()), thresholds=thresholds.with_ratio(0.0)
    )  # fmt: skip
    table = compared.columns
    kinds = np.array([family[0] for family in values.families], dtype=object)
    effect = np.where(np.isin(table["verdict"], _FOUND), np.abs(np.log1p(table["diff"])), -1.0)
    leaf = leaf_of(values.families)
    leaves = np.array([family == leaf for family in values.families], dtype=bool)
    step = step_of(values, one, other)
    alpha = thresholds.limits((RUN, ""), []).alpha
    testing = bool((table["q"][kinds == RUN] <= alpha).any())
    found = {}
    for ratio in ratios:
        tried = thresholds.with_ratio(ratio)
        passing = np.zeros(len(kinds), dtype=bool)
        for kind in _kinds(values):
            own = np.flatnonzero(kinds == kind)
            limits = tried.limits((kind, ""), [values.names[row] for row in own.tolist()])
            passing[own] = effect[own] >= limits.effect - rule.ROUNDING
            found[kind, ratio] = int(passing[own].sum())
        if testing:
            explained = float(np.nansum(table["contribution"][passing & leaves])) * step
            judged_runs = judge_runs(values, one, timed, compared.factors, explained, tried)
            found[RUN, ratio] = sum(int(np.isin(totals["verdict"], _FOUND).sum()) for _, totals in judged_runs)
    return found


def _kinds(values: Values) -> list[str]:
    known = {family[0] for family in values.families}
    return [kind for kind in SERIES_KINDS if kind in known]


def _ratios(
    false: dict[Split, dict[tuple[str, float], int]], windows: Sequence[Split], splits: Sequence[Split]
) -> pd.DataFrame:
    """A row per kind of series and smallest change."""
    rows = []
    for kind, ratio in next(iter(false.values())):
        numbers = [false[split][kind, ratio] for split in splits]
        rows.append(
            (
                kind, ratio, len(numbers), float(np.mean(numbers)), max(numbers), sum(number > 0 for number in numbers),
                sum(false[window][kind, ratio] for window in windows),
            )
        )  # fmt: skip
    frame = pd.DataFrame(rows, columns=list(CALIBRATION_COLUMNS["ratios"]))
    order = frame["kind"].map(SERIES_KINDS.index)
    return frame.assign(order=order).sort_values(["order", "min_ratio"])[list(frame.columns)].reset_index(drop=True)


def used_ratio(kind: str, device_timed: bool, limits: Thresholds) -> float:
    """The smallest change of a kind of series that counts, but of those that have a threshold of their own."""
    own = limits.of(MIN_RATIO, kind)
    return usual_ratio(kind, device_timed=device_timed) if own is None else own.value


def _proposals(ratios: pd.DataFrame, values: Values, place: Place, device_timed: bool) -> pd.DataFrame:
    rows = []
    for kind, own in ratios.groupby("kind", sort=False):
        used = used_ratio(str(kind), device_timed, place.limits)
        at = own.loc[own["min_ratio"] == used, "mean_false"]
        count = sum(family[0] == kind for family in values.families)
        rows.append(
            (place.device, kind, count, used, float(at.iloc[0]), smallest_ratio(own, _MOST_FALSE, "mean_false"))
        )
    frame = pd.DataFrame(rows, columns=list(CALIBRATION_COLUMNS["proposals"]))
    return frame.astype({"proposed_ratio": "float64"})


def _series(values: Values, rows: pd.DataFrame, limits: Thresholds, most: int) -> pd.DataFrame:
    """The noisiest series that can be findings at all, and those with two levels."""
    everything = list(range(values.values.shape[1]))
    step = step_of(values, everything, everything)
    frame = rows.drop(columns="centred")
    value = np.array([np.nanmedian(own) for own in values.values])
    timed = frame["metric"].str.endswith("_ns").to_numpy()
    share = np.where(timed & (frame["kind"] != RUN).to_numpy(), value / step, np.nan)
    centred = [own[~np.isnan(own)] for own in rows["centred"]]
    spread = np.array([np.log(own).std(ddof=1) if len(own) >= MIN_RUNS else np.nan for own in centred])
    modes = [two_modes(own) if len(own) >= MIN_RUNS else None for own in centred]
    # below the contribution floor nothing is told, however much it varies
    least = [_least(limits, *pair) for pair in zip(frame["kind"], frame["name"], strict=True)]
    matters = ~np.isnan(spread) & ~(spread * share < np.array(least))
    bistable = np.array([each is not None for each in modes], dtype=bool) & matters
    more_is_better = frame["metric"].str.endswith("_per_second").to_numpy()
    frame = frame.assign(
        unit=[unit_of(metric) for metric in frame["metric"]],
        value=np.where(more_is_better, 1.0 / value, value),
        share=share,
        spread=spread,
        low=[each.low if each else np.nan for each in modes],
        high=[each.high if each else np.nan for each in modes],
        upper_share=[each.upper_share if each else np.nan for each in modes],
    )
    frame = frame[matters].assign(bistable=bistable[matters]).sort_values("spread", ascending=False, kind="stable")
    kept = frame["bistable"].to_numpy() | (np.arange(len(frame)) < most)
    return frame.loc[kept, list(CALIBRATION_COLUMNS["series"])].reset_index(drop=True)


def _recall(values: Values, rows: pd.DataFrame, limits: Thresholds, device_timed: bool) -> pd.DataFrame:
    """What would be found of the step and of the largest operators, by how large it is and by so many runs."""
    runs = values.values.shape[1]
    everything = list(range(runs))
    step = step_of(values, everything, everything)
    leaf = leaf_of(values.families)
    metrics = {family[1] for family in values.families if family[0] == RUN}
    whole = "duration_ns" if "duration_ns" in metrics else "e2e_ns"
    found = []
    for family, own in values.by_family().items():
        of_step = family[0] == RUN and family[1] == whole
        if not of_step and (leaf is None or family[0] != ("op_name" if leaf[0] == "op" else leaf[0])):
            continue
        logs = np.log(np.vstack(rows["centred"].iloc[own.tolist()].to_list()))
        level = np.log([np.nanmedian(values.values[row]) for row in own.tolist()])
        within = moderate(floored(pooled(logs)), level) if not of_step else floored(pooled(logs))
        names = [values.names[row] for row in own.tolist()]
        of_kind = limits.limits(family, names, device_timed=device_timed)
        share = np.exp(level) / step
        largest = np.argsort(-share, kind="stable")[: 1 if of_step else _LARGEST].tolist()
        for change in _CHANGES:
            for number in _RUNS:
                chances = recall(within, runs, change, number, len(own), of_kind)
                found += [
                    (*rows.iloc[own[at]][list(_NAMING)], 1.0 if of_step else share[at], change, number, chances[at])
                    for at in largest
                ]
    frame = pd.DataFrame(found, columns=list(CALIBRATION_COLUMNS["recall"]))
    order = frame["kind"].map({RUN: 0}).fillna(1)
    frame = frame.assign(order=order).sort_values(
        ["order", "share", "name", "change", "runs"], ascending=[True, False, True, True, True], kind="stable"
    )
    return frame.drop(columns="order").reset_index(drop=True)


def _least(limits: Thresholds, kind: str, name: str) -> float:
    """The smallest contribution of a series that counts."""
    own = limits.of(MIN_CONTRIBUTION, kind, name)
    return rule.MIN_CONTRIBUTION if own is None else own.value


def _notes(baseline: int, place: Place, device_timed: bool) -> tuple[str, ...]:
    notes = []
    if baseline < _BASELINE:
        notes.append(
            f"{len(place.runs)} runs allow {baseline} against {_CANDIDATE}, not {_BASELINE} against {_CANDIDATE}: with "
            "fewer runs the proposals are rougher."
        )
    if len({run.version for run in place.runs}) > 1:
        notes.append("The runs are of several versions: what changed between them counts as noise here.")
    if not device_timed:
        notes.append("Timed on the host: the machine's other work is part of this noise.")
    return tuple(notes)
