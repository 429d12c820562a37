"""Which tracks and series an option means; errors say what there is."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.columns import Columns
from tracker.errors import UsageError
from tracker.lazy import pd
from tracker.regressions.judgement import TrackRuns, runs_of_track
from tracker.regressions.limits import like
from tracker.results import SERIES_KINDS, HistoryOptions
from tracker.store import Store, queries, regressions
from tracker.store.judged import Line, LineRun

_LIST = "tracker history '*' lists them"
_LINE = ("workload_id", "configuration_id", "device_id")
_PATTERN = "*?["
_COLUMNS = {"shape": "input_shapes"}
"""Filter -> the column it looks at, where that is called otherwise."""
_NAMED = 5
"""Values that an error names at most."""
_LONGEST = 18
"""Digits of the longest number that a database can have."""


class Place(Struct, frozen=True):
    """A track with its names, its active runs and the limits that hold in it.

    `late`: its versions whose judgement is missing or out of date, in order.
    """

    line: Line
    workload: str
    configuration: str
    device: str
    track: TrackRuns
    late: tuple[int, ...]

    @property
    def runs(self) -> Sequence[LineRun]:
        """The active runs, in order."""
        return self.track.runs

    @property
    def labels(self) -> dict[int, str]:
        """Version -> its label, in order."""
        return {run.version_id: run.version for run in self.runs}

    @property
    def pinned(self) -> LineRun | None:
        """A run of the pinned version, where it has any here."""
        return next((run for run in self.runs if run.pinned), None)


def places(store: Store, options: HistoryOptions) -> list[Place]:
    """The tracks that the options leave; UsageError where there are none, or several workloads."""
    queries.check_filters(store, workload=options.workload, device=options.device, config=options.config)
    rows = queries.lines.columns(store, options.workload)
    rows = rows.taken(rows.integers("runs") > 0)
    if options.device is not None:
        rows = queries.on_device(rows, options.device)
    rows = queries.with_values(store, rows, options.config)
    rows = _of_number(store, rows, options.key)
    workloads = list(dict.fromkeys(rows.listed("workload")))
    if len(workloads) > 1:
        raise UsageError(f"there are several workloads: {', '.join(workloads)}", remedy="choose one with --workload")
    if not workloads:
        raise UsageError("no active runs are left to show", remedy="tracker runs --state all lists what there is")
    with store.connect() as connection:
        found = []
        texts = rows.rows("workload", "configuration", "vendor", "device")
        for ids, (workload, configuration, vendor, device) in zip(rows.rows(*_LINE), texts, strict=True):
            line = Line(*ids)
            name = f"{vendor} {device}".strip()
            track = runs_of_track(connection, line)
            first = track.first_difference(regressions.rests_on(connection, line))
            late = () if first is None else tuple(track.order[first - 1 :])
            found.append(Place(line, workload, configuration, name, track, late))
    return found


def _is_number(key: str | None) -> bool:
    return key is not None and key.isascii() and key.isdigit()


def _of_number(store: Store, rows: Columns, key: str | None) -> Columns:
    """Of several tracks the one of the series of this number: it says which workload is meant. All where `key` is
    none, or the number of none of theirs.
    """
    if not _is_number(key) or len(key or "") > _LONGEST or len(rows) < 2:
        return rows
    own = {tuple(line) for line in queries.series_lines(store, [int(key or "")])[list(_LINE)].to_numpy().tolist()}
    found = rows.taken(np.array([line in own for line in rows.rows(*_LINE)], dtype=bool))
    if not len(found) and not own:
        raise UsageError(f"there is no series {key}", remedy="tracker history '*' --workload WORKLOAD lists them")
    return found if len(found) else rows


def named(store: Store, found: Sequence[Place], options: HistoryOptions) -> list[pd.DataFrame]:
    """The series that the options name, a frame per place; UsageError where no place has one."""
    key = options.key
    if options.module is not None and key is not None:
        raise UsageError(
            "an op is not followed module by module", remedy="give the name of an op, or --module PATTERN alone"
        )
    # one name is looked up; patterns, and names that are not there, take all
    name = None if key is None or key.isdigit() or any(char in key for char in _PATTERN) else key
    all_of = _series(store, found, options, name)
    if name is not None and all(frame.empty for frame in all_of):
        all_of = _series(store, found, options)
    if _is_number(key):
        matching = [frame[frame["series_id"] == int(key or "")] for frame in all_of]
    elif options.module is not None:
        matching = [frame[_like(frame["name"], options.module)] for frame in all_of]
    else:
        matching = [frame[_like(frame["name"], key or "*")] for frame in all_of]
        kinds = {kind for frame in matching for kind in frame["kind"]}
        kind = _first_kind(kinds, options)
        matching = [frame[frame["kind"] == kind] for frame in matching]
    if all(frame.empty for frame in matching):
        _check_filters(store, found, options)
        raise _nothing(all_of, options)
    return matching


def _series(
    store: Store, found: Sequence[Place], options: HistoryOptions, name: str | None = None
) -> list[pd.DataFrame]:
    return [_filtered(queries.line_series(store, place.line, name), options) for place in found]


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


def _first_kind(kinds: set[str], options: HistoryOptions) -> str | None:
    """The kind that is meant where several have the name; a pattern of all names means ops."""
    order = SERIES_KINDS if options.key is not None else SERIES_KINDS[1:]
    if options.key is not None and any(char in options.key for char in _PATTERN):
        order = (*SERIES_KINDS[1:], SERIES_KINDS[0])
    return next((kind for kind in order if kind in kinds), None)


def _like(column: pd.Series, pattern: str) -> NDArray[np.bool_]:
    """Which texts are `pattern`, or match it."""
    return np.array([like(pattern)(text) for text in column], dtype=bool)


def _check_filters(store: Store, found: Sequence[Place], options: HistoryOptions) -> None:
    """UsageError where the key is known, and a filter leaves nothing of it: the filter is named, not the key."""
    chosen = {name: getattr(options, name) for name in ("kind", "metric", "shape") if getattr(options, name)}
    if options.key is None or not chosen:
        return
    known = pd.concat([queries.line_series(store, place.line) for place in found])
    own = known["series_id"] == int(options.key) if _is_number(options.key) else _like(known["name"], options.key)
    known = known[own]
    for name, value in chosen.items():
        left = _filtered(known, HistoryOptions(**{name: value}))
        if left.empty and not known.empty:
            there = list(dict.fromkeys(str(word) for word in known[_COLUMNS.get(name, name)] if word))
            more = f", and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
            raise UsageError(
                f"no series {options.key!r} is left by --{name} {value}",
                remedy=f"its {name}s are {', '.join(there[:_NAMED])}{more}" if there else f"leave out --{name}",
            )
        known = left


def _nothing(all_of: Sequence[pd.DataFrame], options: HistoryOptions) -> UsageError:
    names = sorted({str(name) for frame in all_of for name in frame["name"]})
    wanted = options.key or options.module or options.shape or "these options"
    close = get_close_matches(wanted, names, n=3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return UsageError(f"no series is called {wanted!r}", remedy=f"{meant}{_LIST}")
