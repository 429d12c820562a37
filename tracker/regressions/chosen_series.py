"""Which series a history follows: those that its options name, or those that changed most."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Final

import numpy as np

from tracker.detect.thresholds import like
from tracker.errors import UsageError
from tracker.regressions.track import TrackRuns, geometric_mean, read_track
from tracker.results import SERIES_KINDS, HistoryOptions
from tracker.schema.series import RUN
from tracker.store import Store, queries
from tracker.store.queries.judgement import TrackSeries

PIN: Final = "pin one: tracker versions pin LABEL --workload WORKLOAD"
"""The remedy where no version is pinned."""
_PATTERN: Final = "*?["
_NAMED: Final = 5
"""Values that an error names at most."""
_AS_THE_STEP: Final = ("e2e", "mean step")
"""Series of whole runs that say what the step says, where that is known."""


def find_named(store: Store, found: Sequence[TrackRuns], options: HistoryOptions) -> list[list[TrackSeries]]:
    """Return the series that the options name, those of each track; UsageError where no track has one."""
    key = options.key
    if options.module is not None and key is not None:
        raise UsageError(
            "an op is not followed module by module", remedy="give the name of an op, or --module PATTERN alone"
        )
    is_number = key is not None and key.isascii() and key.isdigit()
    is_pattern = key is not None and any(char in key for char in _PATTERN)
    is_named = like(options.module or key or "*")

    def series(track: TrackRuns, name: str | None = None) -> list[TrackSeries]:
        return queries.track_series(store, track.key, name)

    def is_meant(row: TrackSeries) -> bool:
        return row.series_id == int(key or 0) if is_number else is_named(row.name)

    # one name is looked up; patterns, and names that are not there, take all
    name = None if is_number or is_pattern else key
    all_of = [_filtered(series(track, name), options) for track in found]
    if name is not None and not any(all_of):
        all_of = [_filtered(series(track), options) for track in found]
    matching = [[row for row in rows if is_meant(row)] for rows in all_of]
    if options.module is None and not is_number:
        kinds = {row.kind for rows in matching for row in rows}
        if is_pattern:
            kinds_meant = _kinds_below_runs(kinds)
        else:
            # the kind that is meant where several have the name
            order = SERIES_KINDS if key is not None else SERIES_KINDS[1:]
            kinds_meant = _first_kind(kinds, order)
        matching = [[row for row in rows if row.kind in kinds_meant] for rows in matching]
    if any(matching):
        return matching
    # where the key is known, the filter is named that leaves nothing of it, and not the key
    known = [] if key is None else [row for track in found for row in series(track) if is_meant(row)]
    _refuse_filters(known, key or "", options)
    wanted = key or options.module or options.shape or "these options"
    close = get_close_matches(wanted, sorted({row.name for rows in all_of for row in rows}), n=3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    raise UsageError(f"no series is called {wanted!r}", remedy=f"{meant}tracker history '*' lists them")


def _refuse_filters(known: Sequence[TrackSeries], key: str, options: HistoryOptions) -> None:
    """Raise UsageError that names the filter of the options that leaves nothing of the series called `key`."""
    filters = (
        ("kind", options.kind, HistoryOptions(kind=options.kind)),
        ("metric", options.metric, HistoryOptions(metric=options.metric)),
        ("shape", options.shape, HistoryOptions(shape=options.shape)),
    )
    left = [*known]
    for name, value, alone in filters:
        fitting = _filtered(left, alone)
        if left and not fitting:
            values = _list_values(left, name)
            more = f", and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
            remedy = f"its {name}s are {', '.join(values[:_NAMED])}{more}" if values else f"leave out --{name}"
            raise UsageError(f"no series {key!r} is left by --{name} {value}", remedy=remedy)
        left = fitting


def _list_values(series: Iterable[TrackSeries], filter_name: str) -> list[str]:
    """Return what these series have that a filter looks at, each once."""
    values = []
    for row in series:
        value = {"kind": row.kind, "metric": row.metric, "shape": row.input_shapes}[filter_name]
        if value:
            values.append(value)
    return list(dict.fromkeys(values))


def _first_kind(kinds: Collection[str], order: Sequence[str]) -> set[str]:
    """Return the first of `order` that is in `kinds`, as a set; an empty one where none is."""
    return {*[kind for kind in order if kind in kinds][:1]}


def _kinds_below_runs(kinds: Collection[str]) -> set[str]:
    """Return the kinds of `kinds` that are listed together: the numbers of whole runs (the step, its parts, memory),
    and the first one of what happens in a run, such as operators.
    """
    return {RUN} & {*kinds} | _first_kind(kinds, SERIES_KINDS[1:])


def _filtered(series: Sequence[TrackSeries], options: HistoryOptions) -> list[TrackSeries]:
    return [
        row for row in series
        if options.kind in (None, row.kind)
        and (options.module is None or row.kind == "module")
        and options.metric in (None, row.metric)
        and (options.shape is None or (row.input_shapes and like(options.shape)(row.input_shapes)))
    ]  # fmt: skip


def find_most_changed(store: Store, found: Sequence[TrackRuns], options: HistoryOptions) -> list[list[TrackSeries]]:
    """Return the `top` series of each track that changed most from the pinned to the newest version, by their part of
    the step: of the larger one, and of what is no time, of the larger sum of its family, which of peak memory is its
    own. Of whole runs and of operators, unless a kind is named. Only of what was recorded alike.
    """
    if options.key is not None:
        raise UsageError("--top takes no name", remedy="leave out the name, or --top")
    if all(track.pinned is None for track in found):
        raise UsageError("no version is pinned that series could have changed from", remedy=PIN)
    chosen: list[list[TrackSeries]] = []
    for track in found:
        chosen.append([])
        if track.pinned is None or track.pinned.version_id == track.order[-1]:
            continue
        with store.connect() as connection:
            data = read_track(connection, track, [*track.runs_of(track.pinned.version_id), *track.newest])
        sides = [data.versions == place for place in (track.place[track.pinned.version_id], len(track.order))]
        before, after = (geometric_mean(data.values, side) for side in sides)
        step = max(geometric_mean(data.step[None, :], side)[0] for side in sides)
        families = [np.bincount(data.series.family, weights=side)[data.series.family] for side in (before, after)]
        whole = np.where(data.series.is_time & (step > 0), step, np.maximum(*families))
        known = np.flatnonzero((before + after > 0) & data.alike.all(axis=1) & (whole > 0))
        moved = dict(zip(data.ids[known].tolist(), (after - before)[known] / whole[known], strict=True))
        rows = [row for row in queries.track_series(store, track.key) if row.series_id in moved]
        has_step = any((row.kind, row.name) == (RUN, "step") for row in rows)
        kinds = {options.kind} if options.kind else _kinds_below_runs({row.kind for row in rows})
        rows = [row for row in rows if row.kind in kinds and options.metric in (None, row.metric)]
        if has_step and options.kind is None:
            rows = [row for row in rows if row.kind != RUN or row.name not in _AS_THE_STEP]
        rows.sort(key=lambda row: -abs(moved[row.series_id]))
        chosen[-1] = rows[: options.top or None]
    if not any(chosen):
        raise UsageError(
            "no series can be compared with the pinned version: it is the newest one, or has none of this kind",
            remedy="pin an older version: tracker versions pin LABEL",
        )
    return chosen
