"""Setting thresholds: where they shall hold, what they may be, and what is judged anew by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.errors import UsageError
from tracker.judgement.find import Place, places
from tracker.judgement.thresholds import ALPHA, CONFIRM, MIN_RATIO
from tracker.judgement.update import update
from tracker.results import THRESHOLDS, Calibration, HistoryOptions
from tracker.store import Store, judged, thresholds
from tracker.store.judged import Line
from tracker.store.labels import MAX_LABEL, configuration_title
from tracker.store.thresholds import EVERYWHERE, Threshold
from tracker.units import device_key


class Where(Struct, frozen=True):
    """Where a threshold holds. `workload`: None: the only one there is. `device`: vendor and model, or a part that no
    other device has; `config`: the values of the configuration, or some that no other has; {} of the one that states
    none. None: on all devices, in all configurations.
    """

    workload: str | None = None
    device: str | None = None
    config: Mapping[str, str] | None = None


def set_thresholds(store: Store, limits: Sequence[Threshold], where: Where) -> int:
    """Set these limits, and judge anew what they change; how many versions were judged.

    UsageError for a limit that cannot be, a reason that is missing, and a place that there is not, or that is several.
    """
    for limit in limits:
        check(limit)
    lines, own = _placed(store, limits, where)
    return _write(store, lines, own)


def unset_thresholds(store: Store, limits: Sequence[Threshold], where: Where) -> int:
    """Take back these limits, whatever their values, and judge anew; how many versions were judged.

    UsageError where one of them was not set for exactly this place and these series; then none is taken back.
    """
    lines, own = _placed(store, limits, where)
    store.transact(partial(_forget, workload_id=lines[0].workload_id, limits=own))
    return update(store, lines)


def overruled(store: Store, limits: Sequence[Threshold], where: Where) -> bool:
    """Whether in some line of this place limits hold that are set for its configuration, in place of these ones for
    the same series.
    """
    found, own = _placed(store, limits, where)
    with store.connect() as connection:
        held = {limit for line in found for limit in thresholds.of_line(connection, line)}

    def series(limit: Threshold) -> tuple[str, str, str]:
        return limit.name, limit.kind, limit.pattern

    of_configurations = {series(limit) for limit in held if limit.configuration_id != EVERYWHERE}
    return any(limit.configuration_id == EVERYWHERE and series(limit) in of_configurations for limit in own)


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


def _write(store: Store, lines: Sequence[Line], limits: Sequence[Threshold]) -> int:
    if any(not limit.reason.strip() for limit in limits):
        raise UsageError("a reason is missing", remedy="--reason TEXT")
    store.transact(lambda connection: thresholds.write(connection, lines[0].workload_id, limits))
    return update(store, lines)


def _forget(connection: Connection, *, workload_id: int, limits: Sequence[Threshold]) -> None:
    for limit in limits:
        if not thresholds.forget(connection, workload_id, limit):
            raise UsageError(
                f"no threshold {limit.name} is set for just these series and this place",
                remedy="tracker thresholds lists what is set; of none stated: --config ''",
            )


def _placed(store: Store, limits: Sequence[Threshold], where: Where) -> tuple[list[Line], list[Threshold]]:
    """The lines that `where` means, and the limits as they are kept for it."""
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
    own = [replace(limit, configuration_id=configuration, device_id=device) for limit in limits]
    return [place.line for place in found], own


def _only(places_by_number: Mapping[int, Place], what: str, option: str) -> int:
    if len(places_by_number) > 1:
        names = "; ".join(getattr(place, what) for place in places_by_number.values())
        raise UsageError(f"several {what}s match: {names}", remedy=f"name one of them with {option}")
    return next(iter(places_by_number))


def check(limit: Threshold) -> None:
    """UsageError where there is no such limit, or it cannot have this value or be for these series."""
    known = THRESHOLDS.get(limit.name)
    if known is None:
        raise UsageError(f"there is no threshold {limit.name!r}", remedy=f"choose from {', '.join(THRESHOLDS)}")
    low, high, _ = known
    whole = limit.name == CONFIRM
    if not low <= limit.value <= high or (whole and limit.value != int(limit.value)):
        kind = "a whole number" if whole else "a fraction (0.03, or 3%)"
        raise UsageError(f"{limit.name} cannot be {limit.value:g}", remedy=f"give {kind} between {low:g} and {high:g}")
    if len(limit.pattern) > MAX_LABEL:
        raise UsageError(f"the pattern has {len(limit.pattern)} characters, at most {MAX_LABEL} are allowed")
    if whole and (limit.kind or limit.pattern):
        raise UsageError("confirm is for a line as a whole", remedy="leave out --kind and --series")
    if limit.name == ALPHA and limit.pattern:
        raise UsageError("alpha is shared by all series of a kind", remedy="give --kind instead of --series")
