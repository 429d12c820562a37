"""The history of series: their numbers over versions, how they were judged, levels, what else changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.columns import I64, Flags
from tracker.detect import CHANGES, DEFAULTS, Thresholds, Verdict, judge_version
from tracker.errors import UsageError
from tracker.lazy import pd
from tracker.regressions.causes import Change, changes
from tracker.regressions.lifecycle import UNDECIDED
from tracker.regressions.track import (
    BEGINNING,
    Track,
    geometric_mean,
    like,
    newest,
    read_track,
    settings_note,
    words_of_limits,
)
from tracker.regressions.tracks import TrackRuns, places
from tracker.results import HISTORY_COLUMNS, SERIES_KINDS, History, HistoryOptions
from tracker.store import Store, judged, queries, regressions
from tracker.units import format_bytes, size_unit, unit_of_metric

_PIN: Final = "pin one: tracker versions pin LABEL --workload WORKLOAD"
_MOST: Final = 500
"""Series that one history may hold."""
_PATTERN: Final = "*?["
_COLUMNS: Final = {"shape": "input_shapes"}
"""Filter -> the column it looks at, where that is called otherwise."""
_NAMED: Final = 5
"""Values that an error names at most."""

Row = dict[str, Any]
Place = tuple[int, int]
"""Series and version."""


def history(store: Store, *, options: HistoryOptions) -> History:
    """The series that `options` name, over all versions of their workload.

    Reads only: versions whose judgement is out of date come without one, and the notes say so. UsageError where nothing
    is named, or too much.
    """
    with store.reading():
        found = places(store, options)
        if options.against == "pinned" and all(track.pinned is None for track in found):
            raise UsageError("no version is pinned", remedy=_PIN)
        chosen = _changed_most(store, found, options) if options.top is not None else named(store, found, options)
        pairs = [(track, frame) for track, frame in zip(found, chosen, strict=True) if not frame.empty]
        ids = [int(number) for _, frame in pairs for number in frame["series_id"]]
        if len(ids) > _MOST:
            raise UsageError(
                f"{len(ids)} series match", remedy="name fewer: --kind, --shape, --metric, or a longer name"
            )
        numbers = queries.series_runs(store, ids, [run for track, _ in pairs for run in track.runs])
        known = _Known.of(numbers, queries.series_verdicts(store, ids), queries.series_facts(store, ids))
        notes: list[str] = []
        points: list[Row] = []
        environment: list[tuple[Any, ...]] = []
        for track, frame in pairs:
            own = frame["series_id"].tolist()
            with store.connect() as connection:
                notes += notes_of(connection, track)
                if options.against == "pinned":
                    found_now, why = against_pinned(connection, track)
                    known.pinned.update(found_now)
                    notes += [why] if why else []
                known.add_levels(connection, track, own)
            changed = changes(store, track)
            environment += [(*track.names.values(), *change) for change in changed]
            said = queries.version_notes.columns(store, track.line.workload_id)
            about = {
                number: {"commit": commit, "note": note, "environment": _environment_words(version, changed)}
                for number, version, commit, note in said.rows("version_id", "version", "commit", "note")
            }
            points += [row for number in own for row in _points(track, number, known, about)]
    series = pd.concat([_series(track, frame, numbers) for track, frame in pairs], ignore_index=True)
    if options.top is None:
        largest = numbers.groupby("series_id")["per_step"].max().reindex(series["series_id"]).fillna(0)
        order = [series["part"], series["input_shapes"], series["name"], -largest.to_numpy(dtype=float)]
        series = series.iloc[np.lexsort(order)].reset_index(drop=True)
    runs = numbers.rename(columns={"per_step": "value", "calls_per_step": "calls"})
    return History(
        series=series[list(HISTORY_COLUMNS["series"])],
        points=pd.DataFrame(points, columns=list(HISTORY_COLUMNS["points"])),
        runs=runs.reindex(columns=list(HISTORY_COLUMNS["runs"])),
        environment=pd.DataFrame(environment, columns=list(HISTORY_COLUMNS["environment"]), dtype=object),
        pinned=next((track.pinned.version for track, _ in pairs if track.pinned), None),
        options=options,
        notes=tuple(dict.fromkeys(notes)),
    )


def notes_of(connection: Connection, track: TrackRuns) -> list[str]:
    """What a reader of the verdicts of a track must know: limits of users, what is out of date, other settings."""
    notes = []
    if track.limits:
        notes.append(f"Judged by thresholds of your own: {words_of_limits(track.limits)}.")
    if track.late:
        late = ", ".join(track.labels[version] for version in track.late)
        notes.append(
            f"The judgement of {late} is out of date and left out; tracker versions judge brings it up to date."
        )
    note = settings_note(connection, track.line, track.runs, track.thresholds.look_back)
    return [*notes, note] if note else notes


class _Known(Struct, frozen=True, eq=False):
    """What is known of series in versions. `runs`: value and calls of each; `facts`: in words; `levels`: with which
    version their level began; `gradual`: slowdowns found; `pinned`: the verdict against the pinned version.
    """

    runs: dict[Place, list[tuple[float, float]]]
    verdicts: dict[Place, Row]
    facts: dict[Place, list[str]]
    levels: dict[Place, int] = field(default_factory=dict)
    gradual: dict[Place, float] = field(default_factory=dict)
    pinned: dict[Place, str] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: pd.DataFrame, verdicts: pd.DataFrame, facts: pd.DataFrame) -> _Known:
        """From the tables of the database."""
        rows = verdicts.astype(object).to_dict("records")
        known = cls({}, {(row["series_id"], row["version_id"]): row for row in rows}, {})
        for at, *own in numbers[["series_id", "version_id", "per_step", "calls_per_step"]].itertuples(index=False):
            known.runs.setdefault((at, own[0]), []).append((own[1], own[2]))
        for row in facts.itertuples():
            words = _fact_words(row.what, row.value_before, row.value_after)
            known.facts.setdefault((row.series_id, row.version_id), []).append(words)
        return known

    def add_levels(self, connection: Connection, track: TrackRuns, series_ids: Sequence[int]) -> None:
        """Add the levels of these series in the versions that are judged, and the gradual slowdowns of the track."""
        order = [version for version in track.order if version not in track.late]
        wanted = np.array(series_ids, dtype=np.int64)
        for version, stored in regressions.levels_of(connection, track.line, order).items():
            levels = np.append(stored.levels, BEGINNING)[judged.places_in(wanted, stored.series_ids)]
            self.levels.update(zip([(number, version) for number in series_ids], levels.tolist(), strict=True))
        for row in regressions.findings_of(connection, track.line):
            if row.how == "gradual" and row.state != "withdrawn":
                self.gradual[row.series_id, row.first_version_id] = float(np.expm1(row.size))


def _points(track: TrackRuns, number: int, known: _Known, about: Mapping[int, Row]) -> list[Row]:
    """One row per version of the track. `about`: what is said of versions."""
    labels, pinned = track.labels, track.pinned
    label = {**labels, BEGINNING: ""}
    reference = _mean(value for value, _ in known.runs.get((number, pinned.version_id), ())) if pinned else None
    rows, before = [], BEGINNING
    of_level: dict[int, list[float]] = {}
    for version, name in labels.items():
        at = (number, version)
        runs = known.runs.get(at, [])
        values = [own for own, _ in runs]
        value = _mean(values)
        is_pinned = pinned is not None and pinned.version_id == version
        row = {
            "series_id": number, "version": name, "pinned": is_pinned, "runs": len(runs), "value": value,
            "minimum": min(values, default=None), "maximum": max(values, default=None),
            "calls": _mean(own for _, own in runs), "change_point": False, "facts": "",
            "pinned_change": None if is_pinned else _ratio(reference, value),
            "pinned_verdict": known.pinned.get(at), **about[version],
        }  # fmt: skip
        level = known.levels.get(at, UNDECIDED)
        verdict = known.verdicts.get(at)
        if at in known.levels:
            row["change_point"] = level == version
            row["facts"] = "; ".join(known.facts.get(at, ()))
            row["gradual_change"] = known.gradual.get(at)
        if at in known.levels and verdict is not None:
            against = int(verdict["level_version_id"])
            row |= {
                "level_version": label.get(against, ""), "verdict": verdict["verdict"], "reason": verdict["reason"],
                "change": verdict["raw_change"], "judged_change": verdict["judged_change"], "q": verdict["q"],
                "contribution": verdict["contribution"],
            }  # fmt: skip
            if not pd.isna(verdict["decided"]):
                row["verdict"] = verdict["decided"]
                if verdict["decided"] == "UNCHANGED" and level not in (UNDECIDED, against):
                    # later runs decided that it belongs to a level that began meanwhile
                    own = of_level.get(level, [])[-DEFAULTS.window :]
                    row |= {
                        "level_version": label.get(level, ""), "change": _ratio(_mean(own), value),
                        "judged_change": None, "q": None, "contribution": None,
                    }  # fmt: skip
        if level not in (UNDECIDED, before, version):
            row["back_to"] = labels.get(level, next(iter(labels.values())))
        before = before if level == UNDECIDED else level
        of_level.setdefault(level, []).extend(values)
        rows.append(row)
    return rows


def _mean(values: Iterable[Any]) -> float | None:
    """The geometric mean; of equal numbers exactly these, the smallest where one is not positive, None without any."""
    known = np.array([value for value in values if not pd.isna(value)], dtype=np.float64)
    if not len(known):
        return None
    if known.min() == known.max() or known.min() <= 0:
        return float(known.min())
    return float(np.exp(np.log(known).mean()))


def _ratio(before: float | None, after: float | None) -> float | None:
    return None if not before or after is None else after / before - 1


def _fact_words(what: str, before: float, after: float) -> str:
    """An exact fact in words: calls 129 -> 135; peak 45.8 MiB -> 66.1 MiB; new, 5 calls; gone."""
    if what == "bytes":
        unit = size_unit(before, after)
        return f"peak {format_bytes(before, unit)} -> {format_bytes(after, unit)}"
    if before == 0:
        return f"new, {after:g} calls"
    return "gone" if after == 0 else f"calls {before:g} -> {after:g}"


def _environment_words(version: str, changed: Sequence[Change]) -> str:
    own = [(key, before or "-", after or "-") for of, key, before, after in changed if of == version]
    return "; ".join(f"{key} {before} -> {after}" for key, before, after in own)


def against_pinned(connection: Connection, track: TrackRuns) -> tuple[dict[Place, str], str]:
    """The verdicts of a track against its pinned version, since small steps that no version decides add up; and why
    there are none, "" where there are.

    As in a diff of the two; where that is no change, by the test of a gradual slowdown: the runs of the version and the
    one before, at least 4, against those of the pinned version. Without it are the pinned version and those before it.
    """
    pinned, limits = track.pinned, track.thresholds
    where = f"{track.names['device']} {track.names['configuration']}".strip()
    if pinned is None:
        return {}, f"Not judged against the pinned version: it has no runs on {where}."
    own = len(track.runs_of(pinned.version_id))
    if own < limits.least_base:
        why = f"{pinned.version} has {own} of {limits.least_base} runs on {where}"
        return {}, f"Not judged against the pinned version: {why}."
    first = track.place[pinned.version_id]
    runs = [run for run in track.runs if track.place[run.version_id] >= first]
    data = read_track(connection, track.line, runs, track.place, track.limits, like=0)
    words = {}
    for at in range(first + 1, len(track.order) + 1):
        found = _against(data, first, np.flatnonzero(data.versions == at), at, limits)
        # the runs of the version and of the one before; where these are fewer, the last ones since the pinned version
        both = np.flatnonzero((data.versions > max(first, at - 2)) & (data.versions <= at))
        if len(both) < limits.least_gradual:
            both = np.flatnonzero((data.versions > first) & (data.versions <= at))[-limits.least_gradual :]
        if len(both) >= limits.least_gradual:
            gradual = replace(limits, alpha=limits.alpha_gradual)
            slow = _against(data, first, both, at, gradual, ratio=limits.gradual_ratio)
            found = np.where(np.isin(slow, CHANGES) & ~np.isin(found, CHANGES), slow, found)
        for number, code in zip(data.ids.tolist(), found.tolist(), strict=True):
            if code != Verdict.ABSENT:
                words[number, track.order[at - 1]] = Verdict(code).name
    return words, ""


def _against(track: Track, first: int, new: I64, at: int, limits: Thresholds, ratio: float | None = None) -> I64:
    """The verdicts of the runs `new` of the version at `at` against those of the version at `first`."""
    window, columns = track.window(at, np.flatnonzero(track.versions == first), new, limits)
    is_new = np.isin(columns, new)
    base = newest(window.recorded & ~is_new, limits.window)
    return judge_version(window, track.series, base, is_new, ratio=ratio, limits=limits).verdict


def named(store: Store, found: Sequence[TrackRuns], options: HistoryOptions) -> list[pd.DataFrame]:
    """The series that the options name, a frame per track; UsageError where no track has one."""
    key = options.key
    if options.module is not None and key is not None:
        raise UsageError(
            "an op is not followed module by module", remedy="give the name of an op, or --module PATTERN alone"
        )
    # one name is looked up; patterns, and names that are not there, take all
    is_pattern = key is not None and any(char in key for char in _PATTERN)
    name = None if key is None or key.isdigit() or is_pattern else key
    all_of = [_filtered(queries.line_series(store, track.line, name), options) for track in found]
    if name is not None and all(frame.empty for frame in all_of):
        all_of = [_filtered(queries.line_series(store, track.line), options) for track in found]
    if options.module is not None:
        matching = [frame[_like(frame["name"], options.module)] for frame in all_of]
    else:
        matching = [frame[_has_key(frame, key or "*")] for frame in all_of]
    if options.module is None and not _is_number(key):
        # the kind that is meant where several have the name; a pattern means ops, all names as well
        order = SERIES_KINDS if key is not None else SERIES_KINDS[1:]
        order = (*SERIES_KINDS[1:], SERIES_KINDS[0]) if is_pattern else order
        kinds = {kind for frame in matching for kind in frame["kind"]}
        kind = next((kind for kind in order if kind in kinds), None)
        matching = [frame[frame["kind"] == kind] for frame in matching]
    if all(frame.empty for frame in matching):
        raise _nothing_named(store, found, options, all_of)
    return matching


def _is_number(key: str | None) -> bool:
    return key is not None and key.isascii() and key.isdigit()


def _has_key(series: pd.DataFrame, key: str) -> Any:
    """Which series have this number, or a name like it."""
    return series["series_id"] == int(key) if _is_number(key) else _like(series["name"], key)


def _like(column: pd.Series, pattern: str) -> Flags:
    """Which texts are `pattern`, or match it."""
    return np.array([like(pattern)(text) for text in column], dtype=bool)


def _filtered(series: pd.DataFrame, options: HistoryOptions) -> pd.DataFrame:
    if options.kind is not None:
        series = series[series["kind"] == options.kind]
    if options.metric is not None:
        series = series[series["metric"] == options.metric]
    if options.module is not None:
        series = series[series["kind"] == "module"]
    if options.shape is not None:
        series = series[_like(series["input_shapes"], options.shape) & (series["input_shapes"] != "")]
    return series


def _nothing_named(
    store: Store, found: Sequence[TrackRuns], options: HistoryOptions, all_of: Sequence[pd.DataFrame]
) -> UsageError:
    """Where the key is known, the filter is named that leaves nothing of it, and not the key."""
    chosen = {name: getattr(options, name) for name in ("kind", "metric", "shape") if getattr(options, name)}
    if options.key is not None and chosen:
        known = pd.concat([queries.line_series(store, track.line) for track in found])
        known = known[_has_key(known, options.key)]
        for name, value in chosen.items():
            left = _filtered(known, HistoryOptions(**{name: value}))
            if left.empty and not known.empty:
                there = list(dict.fromkeys(str(word) for word in known[_COLUMNS.get(name, name)] if word))
                more = f", and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
                return UsageError(
                    f"no series {options.key!r} is left by --{name} {value}",
                    remedy=f"its {name}s are {', '.join(there[:_NAMED])}{more}" if there else f"leave out --{name}",
                )
            known = left
    names = sorted({str(name) for frame in all_of for name in frame["name"]})
    wanted = options.key or options.module or options.shape or "these options"
    close = get_close_matches(wanted, names, n=3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return UsageError(f"no series is called {wanted!r}", remedy=f"{meant}tracker history '*' lists them")


def _changed_most(store: Store, found: Sequence[TrackRuns], options: HistoryOptions) -> list[pd.DataFrame]:
    """The `top` series of each place that changed most since the pinned version, by their part of the step."""
    if options.key is not None:
        raise UsageError("--top takes no name", remedy="leave out the name, or --top")
    if all(track.pinned is None for track in found):
        raise UsageError("no version is pinned that series could have changed from", remedy=_PIN)
    frames = []
    for track in found:
        frame = queries.line_series(store, track.line)
        if track.pinned is None or track.pinned.version_id == track.runs[-1].version_id:
            frames.append(frame.iloc[:0])
            continue
        with store.connect() as connection:
            moved = _contributions(connection, track, track.pinned.version_id)
        frame = frame.assign(moved=[moved.get(int(number), np.nan) for number in frame["series_id"]])
        frame = frame[frame["moved"].notna()]
        kinds = set(frame["kind"])
        kind = options.kind or next((kind for kind in SERIES_KINDS[1:] if kind in kinds), None)
        frame = frame[frame["kind"] == kind]
        if options.metric is not None:
            frame = frame[frame["metric"] == options.metric]
        order = np.argsort(-frame["moved"].abs().to_numpy(dtype=float), kind="stable")
        frames.append(frame.iloc[order].head(options.top or len(frame)).drop(columns="moved"))
    if all(frame.empty for frame in frames):
        raise UsageError(
            "no series can be compared with the pinned version: it is the newest one, or has none of this kind",
            remedy="pin an older version: tracker versions pin LABEL",
        )
    return frames


def _contributions(connection: Connection, track: TrackRuns, pinned_id: int) -> dict[int, float]:
    """Series -> its change of the step from the pinned to the newest version, as a share of the larger step; of what
    is no time, of the larger sum of its family. Only of what was recorded alike.
    """
    sides = [*track.runs_of(pinned_id), *track.newest]
    data = read_track(connection, track.line, sides, {pinned_id: 1, track.order[-1]: 2})
    before, after = (geometric_mean(data.values, data.versions == at) for at in (1, 2))
    step = max(geometric_mean(data.step[None, :], data.versions == at)[0] for at in (1, 2))
    family, is_time = data.series.family, data.series.is_time
    families = [np.bincount(family, weights=side)[family] for side in (before, after)]
    whole = np.where(is_time & (step > 0), step, np.maximum(*families))
    rows = np.flatnonzero((before + after > 0) & data.alike.all(axis=1) & (whole > 0))
    return dict(zip(data.ids[rows].tolist(), ((after - before)[rows] / whole[rows]).tolist(), strict=True))


def _series(track: TrackRuns, frame: pd.DataFrame, numbers: pd.DataFrame) -> pd.DataFrame:
    counted = numbers.groupby("series_id").agg(versions=("version_id", "nunique"), runs=("run_id", "nunique"))
    return frame.assign(
        **track.names,
        unit=[unit_of_metric(metric) for metric in frame["metric"]],
        versions=counted["versions"].reindex(frame["series_id"]).fillna(0).to_numpy(dtype=int),
        runs=counted["runs"].reindex(frame["series_id"]).fillna(0).to_numpy(dtype=int),
    )
