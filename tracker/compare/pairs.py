"""Which runs of two sides are compared: those of each track with their own, never a mixture.

A version may have runs of several configurations and devices. One side alone is compared with runs of its track before
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.references import Configuration, NamedRuns, NamedSides, configurations, find_named, means, words_of
from tracker.errors import TooLittleDataError, UsageError
from tracker.profile.branches import branch_of, main_of
from tracker.regressions.bases import Bases, read_bases
from tracker.regressions.sides import judged_version_of
from tracker.regressions.track import TrackRuns, runs_of_track
from tracker.results import BASELINES
from tracker.results.options import check_words
from tracker.schema.column_names import DEVICE, RUN_ID, VENDOR, WORKLOAD
from tracker.store import Store, queries
from tracker.store import tracks as stored_tracks
from tracker.store.tracks import TrackRun
from tracker.units import format_numbers, natural

if TYPE_CHECKING:
    from tracker.results import DiffOptions


Track = tuple[str, Configuration]
"""A device and a configuration."""
Tracks = dict[Track, tuple[int, ...]]
"""The runs of each track."""


class _NamedRun(Struct, frozen=True):
    """A run as `queries.runs_by_id` names it."""

    workload: str
    version: str
    vendor: str | None
    device: str


def find_baseline(
    store: Store, candidate: str, run_ids: Sequence[int], against: str = "window", workload: str | None = None,
    *, names_branch: bool = False,
) -> tuple[str, tuple[int, ...], str]:  # fmt: skip
    """Return the side that `candidate`, which are these runs of one track, is compared with: as `diff` takes it, its
    runs, and a sentence that says which they are.

    `against`: `window`, the runs of the level that the step of this version was judged against, where it was judged,
    else those of the version before; `previous`, all runs of the version before; `pinned`, those of the pinned version.
    All of the workload, configuration and device of the candidate. `names_branch`: the candidate is the name of a
    branch, not that of a version. UsageError where there are none; for earlier ones it
    is a TooLittleDataError.
    """
    check_words("baseline", (against,), BASELINES)
    with store.connect() as connection:
        track_keys = stored_tracks.list_tracks(connection, run_ids)
        if len(track_keys) > 1:
            raise UsageError(
                f"{candidate} has runs of several workloads, devices or configurations",
                remedy="name some of them: VERSION@DEVICE or run:ID,run:ID",
            )
        track = runs_of_track(connection, track_keys[0])
        if track.main is not None:
            return _of_branch(store, track, candidate, run_ids, against, workload, names_branch=names_branch)
        row = judged_version_of(track, run_ids) if against == "window" else None
    named = list(queries.runs_by_id(store, run_ids).structs(_NamedRun))
    order = queries.order_of_versions(store, named[0].workload)
    first = min(order[run.version] for run in named)
    earlier = [run for run in track.runs if order[run.version] < first]
    level = set() if row is None else {*map(int, row.base_runs.split())}
    if against == "pinned":
        chosen = [run for run in track.runs if run.pinned and run.run_id not in run_ids]
    else:
        chosen = [run for run in earlier if run.run_id in level]
        chosen = chosen or [run for run in earlier if run.version_id == earlier[-1].version_id]
    if not chosen:
        what = "pinned" if against == "pinned" else "earlier"
        kind = UsageError if against == "pinned" else TooLittleDataError  # the first version has none, and no fault
        raise kind(
            f"{candidate} has no {what} runs on its device and configuration",
            remedy="name the baseline as well: BASELINE CANDIDATE",
        )
    words = (
        "the pinned version" if against == "pinned"
        else f"the level that {candidate} was judged against" if level
        else "the version before"
    )  # fmt: skip
    late = _late_words(track, run_ids) if against == "window" else ""
    numbers = sorted(run.run_id for run in chosen)
    side = ",".join(f"run:{number}" for number in numbers)
    if not level:
        device = f"{named[0].vendor} {named[0].device}".strip()
        names = (chosen[0].version, f"{chosen[0].version}@{device}")
        # where a name means the same runs, people know them by it
        side = next((name for name in names if means(store, name, numbers, workload)), side)
    return side, tuple(numbers), f"The baseline is {words}: {_by_version(chosen)}.{late}"


def _late_words(track: TrackRuns, run_ids: Sequence[int]) -> str:
    """Return a sentence, after a space, where the version of these runs was judged, from other runs or by other rules
    than now; else "".
    """
    chosen = set(run_ids)
    versions = {run.version_id: run.version for run in track.runs if run.run_id in chosen}
    late = [label for version, label in versions.items() if version in track.late and version in track.judged]
    return f" The judgement of {late[0]} is out of date; tracker versions judge brings it up to date." if late else ""


def _of_branch(
    store: Store, track: TrackRuns, candidate: str, run_ids: Sequence[int], against: str, workload: str | None,
    *, names_branch: bool,
) -> tuple[str, tuple[int, ...], str]:  # fmt: skip
    """Return `find_baseline` for runs of a branch: those of its main line, up to the version that it is judged from."""
    assert track.main is not None
    versions = [run.version_id for run in track.runs if run.run_id in run_ids]
    base = track.bases.get(versions[-1]) if versions else None
    earlier = track.runs_before(versions[-1]) if versions else []
    row = judged_version_of(track, run_ids) if against == "window" else None
    level = set() if row is None else {*map(int, row.base_runs.split())}
    if against == "pinned":
        chosen = [run for run in track.main.runs if run.pinned]
    else:
        chosen = [run for run in earlier if run.run_id in level]
        chosen = chosen or [run for run in earlier if run.version_id == earlier[-1].version_id]
    workload_of_run = queries.runs_by_id(store, run_ids).listed(WORKLOAD)[0]
    main, branch = main_of(workload_of_run), branch_of(workload_of_run)
    if not chosen and against == "pinned":
        raise UsageError(f"{main} has no pinned runs like {candidate}", remedy="name the baseline: BASELINE CANDIDATE")
    if not chosen or base is None:
        raise TooLittleDataError(
            f"the main line of {main} has no runs that {candidate} of branch {branch} could be compared with, on its "
            "device and configuration",
            remedy="profile the main line, too",
        )
    # a side that names the branch is its newest version
    version = track.labels[versions[-1]] if names_branch and versions else candidate
    words = (
        "the pinned version of the main line" if against == "pinned"
        else f"the level of the main line at {base.label} ({base.why}), which {version} of branch {branch} was "
        "judged against" if level
        else f"the main line at {base.label} ({base.why})"
    )  # fmt: skip
    numbers = sorted(run.run_id for run in chosen)
    side = ",".join(f"run:{number}" for number in numbers)
    if means(store, chosen[0].version, numbers, workload):
        side = chosen[0].version
    late = _late_words(track, run_ids) if against == "window" else ""
    return side, tuple(numbers), f"The baseline is {words}: {_by_version(chosen)}.{late}"


def _by_version(runs: Sequence[TrackRun]) -> str:
    """Return which runs of which versions, in order."""
    found: dict[str, list[int]] = {}
    for run in runs:
        found.setdefault(run.version, []).append(run.run_id)
    return ", ".join(f"{version} (run {format_numbers(sorted(numbers))})" for version, numbers in found.items())


class Pair(Struct, frozen=True):
    """Two sides to compare. `runs`: what those in the database name; `options`: with the configuration that tells this
    pair from others; `notes`: which runs the baseline is, and what is not compared; `bases`: where nobody named the
    baseline, which is the level that the step of the other side was judged against, what each series was; `branches`:
    the sides that name a branch or the main line.
    """

    sides: tuple[str, str]
    runs: Mapping[str, NamedRuns]
    options: DiffOptions
    notes: tuple[str, ...] = ()
    bases: Bases | None = None
    branches: frozenset[str] = frozenset()


def find_pairs(store: Store | None, sides: Sequence[str], options: DiffOptions, against: str = "window") -> list[Pair]:
    """Return what to compare with what, at least one pair, by devices and configurations in their order.

    One side alone is compared with what `against` says, see `find_baseline`. UsageError where a configuration is asked
    for that a side does not have, and where versions of several have none in common.
    """
    named = find_named(store, sides, options.workload, options.config)
    sides, runs = named.references, named.runs
    if len(sides) == 1:
        return _with_baselines(store, named, options, against)
    one, other = sides
    if store is None or len(runs) < len({*sides}) or not any(_is_several(store, *own) for own in runs.items()):
        return [_make_pair((one, other), named, runs, options)]
    tracks = {side: _tracks(store, own) for side, own in runs.items()}
    if any(side.startswith("run:") and len(own) > 1 for side, own in tracks.items()):
        return [_make_pair((one, other), named, runs, options)]  # a mixture that was asked for
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
        of_track = named.renamed(dict(zip(sides, names, strict=True)))
        own_options = replace(options, config=dict(track[1]))
        found.append(_make_pair((names[0], names[1]), of_track, own, own_options, notes))
    return found


def _make_pair(
    sides: tuple[str, str], named: NamedSides, runs: Mapping[str, NamedRuns],
    options: DiffOptions, notes: Sequence[str] = (), bases: Bases | None = None,
) -> Pair:  # fmt: skip
    """Return the pair of these sides, with what is said of those that name a branch.

    `runs`: those that are compared, which may be fewer than the names mean.
    """
    on_names = replace(named, runs={one: runs[one] for one in named.runs}).notes
    return Pair(sides, runs, options, (*on_names, *notes), bases, frozenset(named.newest))


def merge_base_of(store: Store, run_ids: Sequence[int]) -> str:
    """Return the version of the main line that is the merge base of runs of a branch; "" where that is not known, is no
    version, or differs among them.
    """
    bases = set()
    with store.connect() as connection:
        for track_key in stored_tracks.list_tracks(connection, run_ids):
            track = runs_of_track(connection, track_key)
            bases |= {track.bases.get(run.version_id) for run in track.runs if run.run_id in run_ids}
    found = bases.pop() if len(bases) == 1 else None
    return found.label if found is not None and found.is_merge_base else ""


def check_one_track(store: Store, runs: Mapping[str, NamedRuns], choose: str = "--config KEY=VALUE, ") -> None:
    """Raise UsageError for the first version with runs of several tracks: one number would be of a mixture."""
    for side, named_runs in runs.items():
        if _is_several(store, side, named_runs):
            raise UsageError(
                f"{side} has runs of several devices and configurations: {_listed(_tracks(store, named_runs))}",
                remedy=f"choose with {choose}VERSION@DEVICE or run:ID,run:ID",
            )


def _is_several(store: Store, side: str, of_side: NamedRuns) -> bool:
    """Return whether a side is a version with runs of several tracks; whoever names runs by their numbers wants just
    these.
    """
    run_ids, _ = of_side
    if side.startswith("run:") or len(run_ids) == 1:
        return False
    with store.connect() as connection:
        return len(stored_tracks.list_tracks(connection, run_ids)) > 1


def _tracks(store: Store, of_side: NamedRuns) -> Tracks:
    run_ids, _ = of_side
    known = configurations(store, run_ids)
    found: Tracks = {}
    for run_id, vendor, device in sorted(queries.runs_by_id(store, run_ids).rows(RUN_ID, VENDOR, DEVICE)):
        track = (f"{vendor} {device}".strip(), known[run_id])
        found[track] = (*found.get(track, ()), run_id)
    return found


def _with_baselines(store: Store | None, named: NamedSides, options: DiffOptions, against: str) -> list[Pair]:
    """Return one side with the runs before it, for each of its tracks that has any."""
    (side,), runs = named.references, named.runs
    if store is None or side not in runs:
        raise UsageError(f"{side} has no earlier versions", remedy="name the baseline as well: BASELINE CANDIDATE")
    names_branch = side in named.newest
    if not _is_several(store, side, runs[side]):
        run_ids, _ = runs[side]
        baseline, own, note = find_baseline(
            store, side, run_ids, against, options.workload, names_branch=names_branch
        )  # fmt: skip
        bases = _find_bases(store, run_ids, own, against)
        chosen = {**runs, baseline: (own, None)}
        return [_make_pair((baseline, side), named, chosen, options, (note,), bases)]
    tracks = _tracks(store, runs[side])
    found: list[Pair] = []
    first: dict[Track, TooLittleDataError] = {}
    for track in sorted(tracks, key=_order):
        name = _name(side, track, tracks)
        try:
            baseline, own, note = find_baseline(
                store, name, tracks[track], against, options.workload, names_branch=names_branch
            )
        except TooLittleDataError as error:
            first[track] = error
            continue
        chosen = {name: (tracks[track], None), baseline: (own, None)}
        own_options = replace(options, config=dict(track[1]))
        bases = _find_bases(store, tracks[track], own, against)
        of_track = named.renamed({side: name})
        found.append(_make_pair((baseline, name), of_track, chosen, own_options, (note,), bases))
    if not found:
        raise next(iter(first.values()))
    left_out = (f"Not compared: {_listed(first)}, of which {side} has the first runs.",) if first else ()
    return [replace(pair, notes=(*pair.notes, *left_out)) for pair in found]


def _find_bases(store: Store, run_ids: Sequence[int], baseline: Sequence[int], against: str) -> Bases | None:
    """Return what each series of a version was judged against, where `baseline` is the level of its step; else None."""
    if against != "window":
        return None
    with store.connect() as connection:
        track_keys = stored_tracks.list_tracks(connection, run_ids)
        track = runs_of_track(connection, track_keys[0])
        row = judged_version_of(track, run_ids)
        if row is None or {*map(int, row.base_runs.split())} != {*baseline}:
            return None
        return read_bases(connection, track, row.version_id)


def _name(side: str, track: Track, tracks: Tracks) -> str:
    """Return a side of one track: with its device where it has several."""
    return side if len({device for device, _ in tracks}) == 1 else f"{side}@{track[0]}"


def _order(track: Track) -> tuple[object, ...]:
    return track[0], natural(words_of(track[1]))


def _listed(tracks: Iterable[Track]) -> str:
    return "; ".join(f"{device} {words_of(own)}".strip() for device, own in sorted(tracks, key=_order))
