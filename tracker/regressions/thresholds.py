"""Limits of users: setting them, taking them back, and trying out what they would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace as changed
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.detect.thresholds import COUNTS, MIN_RATIO, OF_SERIES
from tracker.errors import UsageError, check_reason
from tracker.profile.branches import branch_of, main_of
from tracker.regressions.judged_rows import DIRECTIONS
from tracker.regressions.judgement import update, with_branches
from tracker.regressions.lifecycle import TrackState
from tracker.regressions.step_kinds import judge_kinds
from tracker.regressions.track import TrackRuns, places
from tracker.regressions.track_reader import TrackReader
from tracker.results import THRESHOLDS, Calibration, HistoryOptions, TriedThresholds
from tracker.results.thresholds import EVERYWHERE, MovedFinding, Threshold
from tracker.store import Store
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.labels import MAX_LABEL, configuration_title
from tracker.store.tracks import TrackKey
from tracker.units import device_key

_series_of: Final = attrgetter("name", "kind", "pattern")
_place_of: Final = attrgetter("name", "kind", "pattern", "configuration_id", "device_id")


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
    tracks, own = _checked(store, limits, where)
    return _write(store, [track.key for track in tracks], own)


def unset_thresholds(store: Store, limits: Sequence[Threshold], where: Where) -> int:
    """Take back these limits, whatever their values, and judge again; how many versions were judged.

    UsageError where one of them was not set for exactly this place and these series; then none is taken back.
    """
    tracks, own = _placed(store, limits, where)

    def forget(connection: Connection) -> None:
        for limit in own:
            if not stored_tracks.remove_limit(connection, tracks[0].key.workload_id, limit):
                raise UsageError(
                    f"no threshold {limit.name} is set for just these series and this place",
                    remedy="tracker thresholds lists what is set; of none stated: --config ''",
                )

    store.transact(forget)
    return update(store, with_branches(store, [track.key for track in tracks]))


def overruled(store: Store, limits: Sequence[Threshold], where: Where) -> bool:
    """Return whether in some track of this place limits hold that are set for its configuration, in place of these ones
    for the same series.
    """
    tracks, own = _placed(store, limits, where)
    held = {_series_of(one) for track in tracks for one in track.limits if one.configuration_id != EVERYWHERE}
    return any(limit.configuration_id == EVERYWHERE and _series_of(limit) in held for limit in own)


def try_thresholds(store: Store, limits: Sequence[Threshold], where: Where) -> TriedThresholds:
    """Judge the stored runs again with these limits, in memory; the findings that would come and go.

    Reads only. UsageError as in `set_thresholds`, without a reason.
    """
    with store.reading():
        tracks, _ = _checked(store, limits, where)
        notes = tuple(
            f"The judgement of {track.labels[version]} is out of date; tracker versions judge brings it up to date."
            for track in tracks
            for version in track.late[:1]
        )
        moved = [_moved(store, track) for track in tracks]
    rows = Columns.of_structs(MovedFinding, [row for of_track, _ in moved for row in of_track])
    versions = sum(len(track.order) for track in tracks)
    return TriedThresholds(rows, sum(stay for _, stay in moved), versions, notes)


def apply_calibration(store: Store, calibration: Calibration, *, who: str, when_ns: int, reason: str) -> list[str]:
    """Set the smallest changes that a calibration proposes, for its workload, configuration and device; the kinds of
    series that got one. A kind for which it proposes nothing keeps its limit.
    """
    with store.connect() as connection:
        (track_key,) = stored_tracks.list_tracks(connection, calibration.run_ids)
    limits = []
    for proposal in calibration.rows.proposals:
        if proposal.proposed_ratio is None:
            continue
        limit = Threshold(
            MIN_RATIO,
            proposal.proposed_ratio,
            proposal.kind,
            configuration_id=track_key.configuration_id,
            device_id=track_key.device_id,
            who=who,
            when_ns=when_ns,
            reason=reason,
        )
        limits.append(limit)
    _write(store, [track_key], limits)
    return [limit.kind for limit in limits]


def check(limit: Threshold) -> None:
    """Raise UsageError where there is no such limit, or it cannot have this value or be for these series."""
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


def _moved(store: Store, track: TrackRuns) -> tuple[list[MovedFinding], int]:
    """Return the findings of a track that its limits would add or take away, and how many would stay."""
    with store.connect() as connection:
        stored = [one for one in stored_findings.read_findings(connection, track.key) if one.state != "withdrawn"]
        reader = TrackReader(track.key)
        series = reader.before.series_of(connection, track.key)
        state = TrackState(len(series.ids))
        for at in range(1, len(track.order) + 1):
            judge_kinds(reader.track(connection, track, state, at), state, at, track.thresholds)
    key_of = dict(zip(series.ids.tolist(), series.keys, strict=True))
    before = {one.key: one for one in stored}
    after = {
        (int(series.ids[one.series]), DIRECTIONS[one.sign], one.how, track.order[one.first_version - 1]): one
        for one in state.findings
        if one.state != "withdrawn"
    }
    moved: list[tuple[int, MovedFinding]] = []
    for movement, own, other in (("comes", after, before), ("goes", before, after)):
        for found_key, one in own.items():
            if found_key in other:
                continue
            number, direction, how, version = found_key
            key, size = key_of[number], one.size if direction == DIRECTIONS[1] else -one.size
            finding = MovedFinding(
                movement=movement,
                version=track.labels.get(version, ""),
                direction=direction,
                how=how,
                kind=key.kind,
                metric=key.metric,
                name=key.name,
                input_shapes=key.input_shapes,
                part=key.part,
                step_kind=key.step_kind,
                ratio=None if how == "presence" else float(np.expm1(size)),
                contribution=one.contribution,
                state=one.state,
                configuration=track.names.configuration,
                device=track.names.device,
            )
            moved.append((track.place.get(version, 0), finding))
    moved.sort(key=lambda pair: (pair[0], -abs(pair[1].contribution), pair[1].name))
    return [finding for _, finding in moved], len(before.keys() & after.keys())


def _write(store: Store, track_keys: Sequence[TrackKey], limits: Sequence[Threshold]) -> int:
    for limit in limits:
        check_reason(limit.reason)
    store.transact(partial(stored_tracks.write_limits, workload_id=track_keys[0].workload_id, limits=limits))
    return update(store, with_branches(store, track_keys))


def _checked(store: Store, limits: Sequence[Threshold], where: Where) -> tuple[list[TrackRuns], list[Threshold]]:
    """Return, as `_placed`, the tracks as if the limits were set.

    UsageError for what cannot be set, by itself or beside what holds there.
    """
    for limit in limits:
        check(limit)
    tracks, own = _placed(store, limits, where)
    places_of = {_place_of(one) for one in own}
    tried = []
    for track in tracks:
        held = (one for one in track.limits if _place_of(one) not in places_of)
        tried.append(replace(track, limits=(*held, *own)))
        whole = tried[-1].thresholds
        if not whole.least_base <= whole.window <= whole.look_back:
            raise UsageError(
                f"least_base {whole.least_base}, window {whole.window}, look_back {whole.look_back}: no run would be "
                "tested",
                remedy="least_base can be at most window, and window at most look_back",
            )
    return tried, own


def _placed(store: Store, limits: Sequence[Threshold], where: Where) -> tuple[list[TrackRuns], list[Threshold]]:
    """Return the tracks that `where` means, and the limits as they are kept for it."""
    if branch_of(where.workload or ""):
        raise UsageError(
            f"{where.workload!r} is a branch, for which the thresholds of its main line hold",
            remedy=f"name its main line: --workload {main_of(where.workload or '')}",
        )
    found = places(store, HistoryOptions(workload=where.workload, device=where.device, config=where.config or {}))
    configuration, device = EVERYWHERE, EVERYWHERE
    if where.config == {}:
        found = [track for track in found if not track.names.configuration]
        if not found:
            raise UsageError("all runs state a configuration", remedy="name one with --config KEY=VALUE")
    if where.config is not None:
        title = configuration_title(where.config)
        found = [track for track in found if track.names.configuration == title] or found
        names = {track.key.configuration_id: track.names.configuration for track in found}
        configuration = _only(names, "configuration", "--config")
    if where.device is not None:
        found = [one for one in found if device_key(one.names.device) == device_key(where.device)] or found
        device = _only({track.key.device_id: track.names.device for track in found}, "device", "--device")
    return found, [changed(limit, configuration_id=configuration, device_id=device) for limit in limits]


def _only(names: Mapping[int, str], what: str, option: str) -> int:
    """Return the one of these numbers that there is; `names`: of the configurations or devices, by number."""
    if len(names) > 1:
        raise UsageError(
            f"several {what}s match: {'; '.join(names.values())}", remedy=f"name one of them with {option}"
        )
    return next(iter(names))
