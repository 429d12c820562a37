"""Which runs of two sides are compared: a version may have runs of several configurations and devices, and each is
compared with its own, never a mixture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.asked import Named
from tracker.compare.baselines import baseline_of
from tracker.compare.references import Configuration, configurations, named, words_of
from tracker.errors import TooLittleDataError, UsageError
from tracker.store import Store, queries
from tracker.store import tracks as stored_tracks
from tracker.units import natural

if TYPE_CHECKING:
    from tracker.results import DiffOptions

Track = tuple[str, Configuration]
"""A device and a configuration."""
Tracks = dict[Track, tuple[int, ...]]
"""The runs of each track."""


class Pair(Struct, frozen=True):
    """Two sides to compare. `runs`: what those in the database name; `options`: with the configuration that tells this
    pair from others; `notes`: which runs the baseline is, and what is not compared.
    """

    sides: tuple[str, str]
    runs: Mapping[str, Named]
    options: DiffOptions
    notes: tuple[str, ...] = ()


def pairs(store: Store | None, sides: Sequence[str], options: DiffOptions, against: str = "window") -> list[Pair]:
    """What to compare with what, at least one pair, by devices and configurations in their order.

    One side alone is compared with what `against` says, see `baseline_of`. UsageError where a configuration is asked
    for that a side does not have, and where versions of several have none in common.
    """
    sides, runs = named(store, sides, options.workload, options.config)
    if len(sides) == 1:
        return _with_baselines(store, sides[0], runs, options, against)
    one, other = sides
    if store is None or len(runs) < len({*sides}) or not any(_is_several(store, *own) for own in runs.items()):
        return [Pair((one, other), runs, options)]
    tracks = {side: _tracks(store, own) for side, own in runs.items()}
    if any(side.startswith("run:") and len(own) > 1 for side, own in tracks.items()):
        return [Pair((one, other), runs, options)]  # a mixture that was asked for
    both = tracks[one].keys() & tracks[other].keys()
    if not both:
        has = ", ".join(f"{side} has {_listed(own)}" for side, own in tracks.items())
        raise UsageError(
            f"no device and configuration is on both sides: {has}",
            remedy="choose with --config KEY=VALUE, VERSION@DEVICE or run:ID,run:ID",
        )
    left_out = {side: own.keys() - both for side, own in tracks.items()}
    notes = tuple(f"Not compared: {_listed(rest)}, only in {side}." for side, rest in left_out.items() if rest)
    found = []
    for track in sorted(both, key=_order):
        names = [_name(side, track, tracks[side]) for side in sides]
        own = {name: (tracks[side][track], runs[side][1]) for name, side in zip(names, sides, strict=True)}
        found.append(Pair((names[0], names[1]), own, replace(options, config=dict(track[1])), notes))
    return found


def check_one_track(store: Store, runs: Mapping[str, Named], choose: str = "--config KEY=VALUE, ") -> None:
    """UsageError for the first version with runs of several tracks: one number would be of a mixture."""
    for side, named_runs in runs.items():
        if _is_several(store, side, named_runs):
            raise UsageError(
                f"{side} has runs of several devices and configurations: {_listed(_tracks(store, named_runs))}",
                remedy=f"choose with {choose}VERSION@DEVICE or run:ID,run:ID",
            )


def _is_several(store: Store, side: str, of_side: Named) -> bool:
    """Whether a side is a version with runs of several tracks; whoever names runs by their numbers wants just these."""
    run_ids, _ = of_side
    if side.startswith("run:") or len(run_ids) == 1:
        return False
    with store.connect() as connection:
        return len(stored_tracks.list_tracks(connection, run_ids)) > 1


def _tracks(store: Store, of_side: Named) -> Tracks:
    run_ids, _ = of_side
    known = configurations(store, run_ids)
    found: Tracks = {}
    for run_id, vendor, device in sorted(queries.runs_by_id(store, run_ids).rows("run_id", "vendor", "device")):
        track = (f"{vendor} {device}".strip(), known[run_id])
        found[track] = (*found.get(track, ()), run_id)
    return found


def _with_baselines(
    store: Store | None, side: str, runs: Mapping[str, Named], options: DiffOptions, against: str
) -> list[Pair]:
    """One side with the runs before it, for each of its tracks that has any."""
    if store is None or side not in runs:
        raise UsageError(f"{side} has no earlier versions", remedy="name the baseline as well: BASELINE CANDIDATE")
    if not _is_several(store, side, runs[side]):
        baseline, own, note = baseline_of(store, side, runs[side][0], against, options.workload)
        return [Pair((baseline, side), {**runs, baseline: (own, None)}, options, (note,))]
    tracks = _tracks(store, runs[side])
    found: list[Pair] = []
    first: dict[Track, TooLittleDataError] = {}
    for track in sorted(tracks, key=_order):
        name = _name(side, track, tracks)
        try:
            baseline, own, note = baseline_of(store, name, tracks[track], against, options.workload)
        except TooLittleDataError as error:
            first[track] = error
            continue
        chosen = {name: (tracks[track], None), baseline: (own, None)}
        found.append(Pair((baseline, name), chosen, replace(options, config=dict(track[1])), (note,)))
    if not found:
        raise next(iter(first.values()))
    left_out = (f"Not compared: {_listed(first)}, of which {side} has the first runs.",) if first else ()
    return [replace(pair, notes=(*pair.notes, *left_out)) for pair in found]


def _name(side: str, track: Track, tracks: Tracks) -> str:
    """A side of one track: with its device where it has several."""
    return side if len({device for device, _ in tracks}) == 1 else f"{side}@{track[0]}"


def _order(track: Track) -> tuple[object, ...]:
    return track[0], natural(words_of(track[1]))


def _listed(tracks: Iterable[Track]) -> str:
    return "; ".join(f"{device} {words_of(own)}".strip() for device, own in sorted(tracks, key=_order))
