"""Limits of users: setting them, taking them back, and trying out what they would change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.columns import Column, Columns, objects
from tracker.errors import UsageError, check_reason
from tracker.regressions.judgement import TrackReader, TrackRuns, update
from tracker.regressions.limits import COUNTS, MIN_RATIO, OF_SERIES, track_limits
from tracker.regressions.places import Place, places
from tracker.regressions.rows import DIRECTIONS, series_in_order
from tracker.regressions.state import TrackState
from tracker.regressions.walk import judge_next
from tracker.results import THRESHOLDS, Calibration, HistoryOptions, TriedThresholds
from tracker.results.thresholds import TRIED_COLUMNS
from tracker.store import Store, judged, regressions, thresholds
from tracker.store.judged import Line
from tracker.store.labels import MAX_LABEL, configuration_title
from tracker.store.thresholds import EVERYWHERE, Threshold
from tracker.units import device_key

_SERIES: Final = ("name", "kind", "pattern")
_PLACE: Final = (*_SERIES, "configuration_id", "device_id")


class Where(Struct, frozen=True):
    """Where a threshold holds. `workload`: None: the only one there is. `device`: vendor and model, or a part that no
    other device has; `config`: the values of the configuration, or some that no other has; {} of the one that states
    none. None: on all devices, in all configurations.
    """

    workload: str | None = None
    device: str | None = None
    config: Mapping[str, str] | None = None


def set_thresholds(store: Store, limits: Sequence[Threshold], where: Where) -> int:
    """Set these limits, and judge again what they change; how many versions were judged.

    UsageError for a limit that cannot be, a reason that is missing, and a place that does not exist, or is several.
    """
    found, own = _checked(store, limits, where)
    return _write(store, [place.line for place in found], own)


def unset_thresholds(store: Store, limits: Sequence[Threshold], where: Where) -> int:
    """Take back these limits, whatever their values, and judge again; how many versions were judged.

    UsageError where one of them was not set for exactly this place and these series; then none is taken back.
    """
    found, own = _placed(store, limits, where)

    def forget(connection: Connection) -> None:
        for limit in own:
            if not thresholds.forget(connection, found[0].line.workload_id, limit):
                raise UsageError(
                    f"no threshold {limit.name} is set for just these series and this place",
                    remedy="tracker thresholds lists what is set; of none stated: --config ''",
                )

    store.transact(forget)
    return update(store, [place.line for place in found])


def overruled(store: Store, limits: Sequence[Threshold], where: Where) -> bool:
    """Whether in some track of this place limits hold that are set for its configuration, in place of these ones for
    the same series.
    """
    found, own = _placed(store, limits, where)
    held = {limit for place in found for limit in place.track.limits if limit.configuration_id != EVERYWHERE}
    series = _key_of(_SERIES)
    return any(limit.configuration_id == EVERYWHERE and series(limit) in map(series, held) for limit in own)


def try_thresholds(store: Store, limits: Sequence[Threshold], where: Where) -> TriedThresholds:
    """Judge the stored runs again with these limits, in memory; the findings that would come and go.

    Reads only. UsageError as in `set_thresholds`, without a reason.
    """
    with store.reading():
        found, own = _checked(store, limits, where)
        notes = [
            f"The judgement of {place.labels[version]} is out of date; tracker versions judge brings it up to date."
            for place in found
            for version in place.late[:1]
        ]
        rows: list[dict[str, Any]] = []
        stay = 0
        for place in found:
            held = (*(row for row in place.track.limits if _place_of(row) not in map(_place_of, own)), *own)
            moved, kept = _moved(store, place, replace(place.track, limits=held))
            rows, stay = rows + moved, stay + kept
    columns: dict[str, Any] = {}
    for name in TRIED_COLUMNS:
        values = [row[name] for row in rows]
        is_number = name in ("ratio", "contribution")
        columns[name] = Column.of(values, np.float64) if is_number else objects(values)
    versions = sum(len(place.track.order) for place in found)
    return TriedThresholds(Columns(columns), stay, versions, tuple(notes))


def apply_calibration(store: Store, calibration: Calibration, *, who: str, when_ns: int, reason: str) -> list[str]:
    """Set the smallest changes that a calibration proposes, for its workload, configuration and device; the kinds of
    series that got one. A kind for which it proposes nothing keeps its limit.
    """
    with store.connect() as connection:
        (line,) = judged.lines(connection, calibration.run_ids)
    rows = calibration.proposals.dropna(subset=["proposed_ratio"])
    limits = [
        Threshold(
            MIN_RATIO, float(ratio), str(kind), configuration_id=line.configuration_id, device_id=line.device_id,
            who=who, when_ns=when_ns, reason=reason,
        )
        for kind, ratio in zip(rows["kind"], rows["proposed_ratio"], strict=True)
    ]  # fmt: skip
    _write(store, [line], limits)
    return [limit.kind for limit in limits]


def check(limit: Threshold) -> None:
    """UsageError where there is no such limit, or it cannot have this value or be for these series."""
    known = THRESHOLDS.get(limit.name)
    if known is None:
        raise UsageError(f"there is no threshold {limit.name!r}", remedy=f"choose from {', '.join(THRESHOLDS)}")
    low, high, _ = known
    is_count = limit.name in COUNTS
    if not low <= limit.value <= high or (is_count and limit.value != int(limit.value)):
        kind = "a whole number" if is_count else "a fraction (0.03, or 3%)"
        raise UsageError(f"{limit.name} cannot be {limit.value:g}", remedy=f"give {kind} between {low:g} and {high:g}")
    if len(limit.pattern) > MAX_LABEL:
        raise UsageError(f"the pattern has {len(limit.pattern)} characters, at most {MAX_LABEL} are allowed")
    if limit.name not in OF_SERIES and (limit.kind or limit.pattern):
        raise UsageError(
            f"{limit.name} is a limit of a whole track, not of some of its series",
            remedy="leave out --kind and --series",
        )


def _moved(store: Store, place: Place, track: TrackRuns) -> tuple[list[dict[str, Any]], int]:
    """The findings of a track that its limits would add or take away, and how many would stay."""
    with store.connect() as connection:
        stored = [one for one in regressions.findings_of(connection, place.line) if one.state != "withdrawn"]
        series = series_in_order(judged.series_of(connection, place.line))
        reader, limits = TrackReader(place.line, series=series), track_limits(track.limits)
        state = TrackState(len(series.ids))
        for at in range(1, len(track.order) + 1):
            data, _ = reader.track(connection, track, state, at, limits)
            judge_next(data, state, at, limits)
    key_of = dict(zip(series.ids.tolist(), series.keys, strict=True))
    rank, labels = track.place, place.labels

    def row(movement: str, key: tuple[int, str, str, int], size: float, contribution: float, state: str) -> Any:
        number, direction, how, version = key
        kind, metric, name, shapes, part = key_of[number]
        worse = direction == DIRECTIONS[1]
        return {
            "movement": movement, "version": labels.get(version, ""), "direction": direction, "how": how, "kind": kind,
            "metric": metric, "name": name, "input_shapes": shapes, "part": part,
            "ratio": None if how == "presence" else float(np.expm1(size if worse else -size)),
            "contribution": contribution, "state": state, "configuration": place.configuration, "device": place.device,
        }  # fmt: skip

    before = {(one.series_id, one.direction, one.how, one.first_version_id): one for one in stored}
    after = {
        (int(series.ids[one.series]), DIRECTIONS[one.sign], one.how, track.order[one.first_version - 1]): one
        for one in state.findings
        if one.state != "withdrawn"
    }
    moved = [
        (key, row(movement, key, one.size, one.contribution, one.state))
        for movement, own, other in (("comes", after, before), ("goes", before, after))
        for key, one in own.items()
        if key not in other
    ]
    moved.sort(key=lambda pair: (rank.get(pair[0][3], 0), -abs(pair[1]["contribution"]), pair[1]["name"]))
    return [one for _, one in moved], len(before.keys() & after.keys())


def _write(store: Store, lines: Sequence[Line], limits: Sequence[Threshold]) -> int:
    for limit in limits:
        check_reason(limit.reason)
    store.transact(partial(thresholds.write, workload_id=lines[0].workload_id, limits=limits))
    return update(store, lines)


def _checked(store: Store, limits: Sequence[Threshold], where: Where) -> tuple[list[Place], list[Threshold]]:
    """The same as `_placed`; UsageError for what cannot be set, by itself or beside what holds there."""
    for limit in limits:
        check(limit)
    found, own = _placed(store, limits, where)
    for place in found:
        whole = track_limits((*(row for row in place.track.limits if _place_of(row) not in map(_place_of, own)), *own))
        if not whole.least_base <= whole.window <= whole.look_back:
            raise UsageError(
                f"least_base {whole.least_base}, window {whole.window}, look_back {whole.look_back}: no run would be "
                "tested",
                remedy="least_base can be at most window, and window at most look_back",
            )
    return found, own


def _placed(store: Store, limits: Sequence[Threshold], where: Where) -> tuple[list[Place], list[Threshold]]:
    """The tracks that `where` means, and the limits as they are kept for it."""
    found = places(store, HistoryOptions(workload=where.workload, device=where.device, config=where.config or {}))
    configuration, device = EVERYWHERE, EVERYWHERE
    if where.config == {}:
        found = [place for place in found if not place.configuration]
        if not found:
            raise UsageError("all runs state a configuration", remedy="name one with --config KEY=VALUE")
    if where.config is not None:
        title = configuration_title(where.config)
        found = [place for place in found if place.configuration == title] or found
        configuration = _only({place.line.configuration_id: place for place in found}, "configuration", "--config")
    if where.device is not None:
        found = [place for place in found if device_key(place.device) == device_key(where.device)] or found
        device = _only({place.line.device_id: place for place in found}, "device", "--device")
    return found, [replace(limit, configuration_id=configuration, device_id=device) for limit in limits]


def _only(places_by_number: Mapping[int, Place], what: str, option: str) -> int:
    if len(places_by_number) > 1:
        names = "; ".join(getattr(place, what) for place in places_by_number.values())
        raise UsageError(f"several {what}s match: {names}", remedy=f"name one of them with {option}")
    return next(iter(places_by_number))


def _key_of(names: Sequence[str]) -> Callable[[Threshold], tuple[Any, ...]]:
    return lambda limit: tuple(getattr(limit, name) for name in names)


_place_of = _key_of(_PLACE)
