"""The tracks of a database: the runs of each in the order of versions, the limits that hold in it, the numbers of its
series, and which of them can be compared: those that were recorded alike (see `results.recording`).

Of two limits for one series the more specific one holds: a pattern of names goes before a kind, a kind before all
series; then a configuration before all, a device before all. The defaults hold where a user set no other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct
from sqlalchemy import Connection

from tracker.columns import F64
from tracker.detect import SeriesTraits, Thresholds, traits_of
from tracker.detect.known_hosts import Hosts, code_hosts
from tracker.detect.thresholds import specific, track_limits
from tracker.detect.track import Track
from tracker.errors import UsageError
from tracker.regressions.merge_base import BranchVersion, MainVersion, MergeBase, find_merge_base
from tracker.regressions.rounding import tabulate_roundings
from tracker.regressions.scaled_inputs import ScaledInputs, find_other_runs
from tracker.results import HistoryOptions
from tracker.results.machine_state import throttled_by
from tracker.results.recording import Recording, alike, differences, has_shapes, incomplete_cells, is_guess, remedies
from tracker.results.thresholds import Threshold
from tracker.results.waiting import WaitingRun
from tracker.schema.column_names import CONFIGURATION, DEVICE, IS_BRANCH, RUNS, VENDOR, WORKLOAD
from tracker.schema.series import STEP_KEY, SeriesKey
from tracker.store import Store, queries, samples
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.dimensions import digest_of
from tracker.store.findings import JudgedRow
from tracker.store.recordings import Recorded, recorded_by_id
from tracker.store.samples import SAMPLE_RULES
from tracker.store.samples.rows import SampleArray
from tracker.store.samples.statistics import over_runs
from tracker.store.tracks import SeriesTable, TrackKey, TrackRun
from tracker.units import format_numbers

RULE_VERSION: Final = 22
"""Changes with the rules, so that all versions are judged again."""

BEGINNING: Final = 0
"""The level of a series before the first version; versions are numbered from 1."""

_NAMED_RUNS: Final = 3
_LONGEST: Final = 18
"""Digits of the longest number that a database can have."""


class TrackNames(Struct, frozen=True):
    """The workload, configuration and device of a track, in words."""

    workload: str
    configuration: str
    device: str

    @property
    def place(self) -> tuple[str, str, str]:
        """All three."""
        return self.workload, self.configuration, self.device

    @property
    def words(self) -> tuple[str, ...]:
        """Those that there are, in order."""
        return tuple(filter(None, self.place))


NO_NAMES: Final = TrackNames("", "", "")
"""Where names were not read."""


@dataclass(frozen=True)
class TrackRuns:
    """A track with its active runs in the order of versions. `limits`: that users set; `rests_on`: per version what its
    own judgement rests on, and `basis`, the same in words; `judged`: how the versions came out that were judged, from
    whatever, where that was read; `names`: workload, configuration and device. Of a branch, `main`: the track of its
    main line, and `bases`: the version of it that each version of the branch is judged from, None where it has none.
    """

    key: TrackKey
    limits: tuple[Threshold, ...]
    runs: Sequence[TrackRun]
    rests_on: Mapping[int, bytes]
    judged: Mapping[int, JudgedRow]
    names: TrackNames
    main: TrackRuns | None = None
    bases: Mapping[int, MergeBase | None] = field(default_factory=dict)
    basis: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def order(self) -> list[int]:
        """Its versions in their order."""
        return list(self.rests_on)

    @cached_property
    def place(self) -> dict[int, int]:
        """Version -> its place in their order, from 1."""
        return {version: at for at, version in enumerate(self.order, 1)}

    @cached_property
    def thresholds(self) -> Thresholds:
        """The limits that are the same for all series."""
        return track_limits(self.limits)

    def first_difference(self, known: Mapping[int, bytes]) -> int | None:
        """Return the place of the first version that was judged from something else than is there now, which all after
        it rest on, too; None: all is judged. `known`: what was judged rests on.
        """
        for at, (version, own) in enumerate(self.rests_on.items(), 1):
            if known.get(version) != own:
                return at
        return len(self.order) + 1 if known.keys() - self.rests_on.keys() else None

    @cached_property
    def labels(self) -> dict[int, str]:
        """Version -> its label, in order."""
        return {run.version_id: run.version for run in self.runs}

    @property
    def label_of_run(self) -> dict[int, str]:
        """Run -> the label of its version, with those of the main line."""
        runs = self.runs if self.main is None else [*self.main.runs, *self.runs]
        return {run.run_id: run.version for run in runs}

    @property
    def newest(self) -> list[TrackRun]:
        """The runs of its newest version."""
        return self.runs_of(self.order[-1])

    @property
    def pinned(self) -> TrackRun | None:
        """A run of the pinned version, where it has any here."""
        return next((run for run in self.runs if run.pinned), None)

    def runs_of(self, version_id: int) -> list[TrackRun]:
        """Return the runs of a version."""
        return [run for run in self.runs if run.version_id == version_id]

    def runs_before(self, version_id: int) -> list[TrackRun]:
        """Return the runs of the versions before one; of a branch those of the main line up to where it left."""
        if self.main is not None:
            base = self.bases.get(version_id)
            return [run for run in self.main.runs if base and self.main.place[run.version_id] <= base.place]
        return [run for run in self.runs if self.place[run.version_id] < self.place.get(version_id, 1)]

    def before(self, version_id: int) -> str | None:
        """Return the label of the version before, of a branch that of the main line that it is judged from.

        None for the first one, and for one that is not there.
        """
        if self.main is not None:
            base = self.bases.get(version_id)
            return base.label if base else None
        at = self.place.get(version_id, 1)
        return self.labels[self.order[at - 2]] if at > 1 else None

    @cached_property
    def late(self) -> list[int]:
        """The versions whose judgement is missing or out of date, in order."""
        first = self.first_difference({version: row.rests_on for version, row in self.judged.items()})
        return [] if first is None else self.order[first - 1 :]


def unjudged_track(
    connection: Connection,
    track_key: TrackKey,
    mains: dict[TrackKey, MainTrack] | None = None,
    last: TrackRuns | None = None,
) -> TrackRuns:
    """Return a track, and what the judgement of each version rests on now: its runs, the version before, and the
    limits.

    `mains`: main lines of branches that were read before, to which those that are read are added. `last`: the same
    track as it was read before, which is returned where nothing has changed: to word thousands of versions takes longer
    than to judge one.
    """
    of_main = stored_tracks.main_track_of(connection, track_key)
    if of_main is not None:
        return _unjudged_branch(connection, track_key, _main_track(connection, of_main, mains))
    limits = stored_tracks.limits_of_track(connection, track_key)
    runs = stored_tracks.list_track_runs(connection, track_key)
    if last is not None and (last.runs, last.limits) == (runs, limits):
        return last
    of_limits = _words_of_limits(limits)
    before, basis = BEGINNING, {}
    for version, own in groupby(runs, attrgetter("version_id")):
        basis[version] = f"{rules_of_judgement()} {of_limits}; after {before}; {_words_of_runs(list(own))}"
        before = version
    rests_on = {version: digest_of((words,)) for version, words in basis.items()}
    return TrackRuns(track_key, limits, runs, rests_on, {}, NO_NAMES, basis=basis)


def rules_of_judgement() -> str:
    """Return how the basis of a judgement begins: the rules that it is made by; newer ones sort later."""
    return f"rules {RULE_VERSION:04}.{SAMPLE_RULES:04};"


def _words_of_limits(limits: Sequence[Threshold]) -> str:
    """Return the limits of a track as the view v_version compares them (`store.views`): values in billionths."""
    words = []
    for row in sorted(limits, key=specific):
        place = f"{row.configuration_id}|{row.device_id}"
        words.append(f"<{row.name}|{row.kind}|{row.pattern}|{round(row.value * 1e9)}|{place}>")
    return f"; limits {len(words)} {''.join(words)}"


def _words_of_runs(runs: Sequence[TrackRun]) -> str:
    """Return the runs of a version as the view v_version compares them: number, ranks, recording and start of each."""
    words = []
    for run in runs:
        recording = "" if run.recording_id is None else run.recording_id
        started = "" if run.started_at_ns is None else run.started_at_ns
        words.append(f"({run.run_id}:{run.ranks}:{recording}:{started})")
    return f"runs {len(runs)} {''.join(words)}"


class MainTrack(Struct, frozen=True):
    """The main line of branches. `versions`: those that a branch may have left it at; `up_to`: what stands for all that
    the main line up to each of its places rests on, from 0 on.
    """

    track: TrackRuns
    versions: Sequence[MainVersion]
    up_to: Sequence[str]


def _main_track(connection: Connection, track_key: TrackKey, known: dict[TrackKey, MainTrack] | None) -> MainTrack:
    if known is not None and track_key in known:
        return known[track_key]
    track = unjudged_track(connection, track_key)
    up_to = [digest_of((SAMPLE_RULES, RULE_VERSION)).hex()]
    for own in track.rests_on.values():
        up_to.append(digest_of((up_to[-1], own.hex())).hex())
    found = MainTrack(track, _main_versions(connection, track), up_to)
    if known is not None:
        known[track_key] = found
    return found


def _unjudged_branch(connection: Connection, track_key: TrackKey, main: MainTrack) -> TrackRuns:
    """Return the track of a branch, whose limits are those of its main line: each version rests on the main line up to
    where it left, and on its own runs.
    """
    runs = stored_tracks.list_track_runs(connection, track_key)
    commits = stored_tracks.commits_of_versions(connection, track_key.workload_id)
    bases, basis, rests_on = {}, {}, {}
    for version, group in groupby(runs, attrgetter("version_id")):
        own_runs = list(group)
        starts = [run.started_at_ns for run in own_runs if run.started_at_ns is not None]
        left = BranchVersion(
            commits[version][1] if version in commits else (),
            min(starts, default=None),
            min(run.run_id for run in own_runs),
        )
        bases[version] = base = find_merge_base(main.versions, left, now_ns=time.time_ns())
        place = base.place if base else 0
        left_at = f"{main.track.key.configuration_id}.{main.track.order[place - 1]}" if place else "0"
        basis[version] = f"{rules_of_judgement()} ; base {left_at}; {_words_of_runs(own_runs)}"
        rests_on[version] = digest_of((main.up_to[place], basis[version]))
    return TrackRuns(track_key, main.track.limits, runs, rests_on, {}, NO_NAMES, main.track, bases, basis)


def _main_versions(connection: Connection, main: TrackRuns) -> list[MainVersion]:
    """Return the versions of a main line, in their order, with what places a branch among them."""
    commits = stored_tracks.commits_of_versions(connection, main.key.workload_id)
    found = []
    for version, group in groupby(main.runs, attrgetter("version_id")):
        runs = list(group)
        starts = [run.started_at_ns for run in runs if run.started_at_ns is not None]
        commit = commits[version][0] if version in commits else None
        first = min(run.run_id for run in runs)
        found.append(MainVersion(version, runs[0].version, commit, min(starts, default=None), first))
    return found


def runs_of_track(
    connection: Connection,
    track_key: TrackKey,
    names: TrackNames | None = None,
    mains: dict[TrackKey, MainTrack] | None = None,
) -> TrackRuns:
    """Return a track with its runs, and how they were judged; `mains`: as in `unjudged_track`."""
    track = unjudged_track(connection, track_key, mains)
    return replace(track, judged=stored_findings.read_judged_versions(connection, track_key), names=names or NO_NAMES)


def named_tracks(
    store: Store, workload: str | None = None, device: str | None = None, config: Mapping[str, str] | None = None,
    *, branches: bool = False,
) -> dict[TrackKey, TrackNames]:  # fmt: skip
    """Return the tracks with active runs, each with its names.

    `device`: a part of its name; `config`: values that the configuration has. Those of branches only where `workload`
    names one, or with `branches`.
    """
    rows = queries.tracks(store, workload)
    kept = rows.integers(RUNS) > 0
    if workload is None and not branches:
        kept &= rows.integers(IS_BRANCH) == 0
    rows = rows.taken(kept)
    rows = rows if device is None else queries.on_device(rows, device)
    rows = queries.with_values(store, rows, config or {})
    words = rows.rows(WORKLOAD, CONFIGURATION, VENDOR, DEVICE)
    return {
        TrackKey(*track_key): TrackNames(of, own, f"{vendor} {model}".strip())
        for track_key, (of, own, vendor, model) in zip(rows.rows(*TrackKey.__struct_fields__), words, strict=True)
    }


def read_tracks(store: Store, track_keys: Mapping[TrackKey, TrackNames]) -> list[TrackRuns]:
    """Return these tracks of `named_tracks`."""
    mains: dict[TrackKey, MainTrack] = {}
    with store.connect() as connection:
        return [runs_of_track(connection, track_key, names, mains) for track_key, names in track_keys.items()]


def places(store: Store, options: HistoryOptions) -> list[TrackRuns]:
    """Return the tracks that the options leave; UsageError where there are none, or several workloads."""
    queries.check_filters(store, workload=options.workload, device=options.device, config=options.config)
    found = named_tracks(store, options.workload, options.device, options.config)
    key = options.key or ""
    if key.isascii() and key.isdigit() and len(key) <= _LONGEST and len(found) > 1:
        # the number of a series says which workload is meant; what is the number of none here may be a name
        rows = queries.series_tracks(store, [int(key)]).rows(*TrackKey.__struct_fields__)
        own = {TrackKey(*row) for row in rows}
        if not own:
            raise UsageError(f"there is no series {key}", remedy="tracker history '*' --workload WORKLOAD lists them")
        found = {track_key: names for track_key, names in found.items() if track_key in own} or found
    workloads = list(dict.fromkeys(names.workload for names in found.values()))
    if len(workloads) > 1:
        raise UsageError(f"there are several workloads: {', '.join(workloads)}", remedy="choose one with --workload")
    if not workloads:
        waiting = waiting_runs(store, options.workload, options.device)
        if waiting:
            ranks = ", ".join(f"run {run.run_id} has {run.ranks_words}" for run in waiting[:_NAMED_RUNS])
            more = ", ..." if len(waiting) > _NAMED_RUNS else ""
            raise UsageError(f"no run has all of its ranks: {ranks}{more}", remedy="tracker show RUN shows one so far")
        raise UsageError("no active runs are left to show", remedy="tracker runs --state all lists what there is")
    return read_tracks(store, found)


def waiting_runs(
    store: Store, workload: str | None = None, device: str | None = None, *, now_ns: int | None = None
) -> list[WaitingRun]:
    """Return the runs that are no runs of a track, for they have fewer ranks than they should, in order of their
    numbers. `device`: a part of its name; `now_ns`: None: the moment.
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    found = queries.waiting_runs(store, workload)
    found = found if device is None else queries.on_device(found, device)
    columns = (
        "run_id", "workload", "version", "vendor", "device", "ranks", "ranks_awaited", "last_rank_at_ns", "step_ns",
    )  # fmt: skip
    runs = []
    for run_id, of_workload, version, vendor, model, ranks, awaited, last_ns, step_ns in found.rows(*columns):
        waiting = WaitingRun(
            run_id=run_id,
            workload=of_workload,
            version=version,
            device=f"{vendor} {model}".strip(),
            ranks=ranks,
            ranks_awaited=awaited,
            is_over=last_ns is None or now_ns - last_ns >= store.settled_ns,
            step_ns=step_ns,
        )
        runs.append(waiting)
    return runs


class ReadBefore(Struct):
    """What was read of a track before: its series, samples by run, traits by whether it is timed on the device, and
    by kinds of steps; hosts by run, and whether a clock of it was held down.
    """

    series: SeriesTable | None = None
    arrays: dict[int, SampleArray] = msgspec.field(default_factory=dict)
    traits: dict[tuple[bool, str | None], SeriesTraits] = msgspec.field(default_factory=dict)
    hosts: dict[int, frozenset[str]] = msgspec.field(default_factory=dict)
    throttled: dict[int, bool] = msgspec.field(default_factory=dict)

    def series_of(self, connection: Connection, track_key: TrackKey) -> SeriesTable:
        """Return the series of the track by ascending ids."""
        self.series = self.series or stored_tracks.read_series(connection, track_key)
        return self.series

    def hosts_of(self, connection: Connection, run_ids: Sequence[int]) -> Hosts:
        """Return the hosts of these runs."""
        missing = [run_id for run_id in run_ids if run_id not in self.hosts]
        if missing:
            self.hosts |= stored_tracks.read_hosts(connection, missing)
            machines = stored_tracks.read_machines(connection, missing)
            self.throttled |= {run_id: bool(throttled_by(machines.get(run_id, {}))) for run_id in missing}
        return code_hosts([self.hosts[one] for one in run_ids], [self.throttled[one] for one in run_ids])


def join_main(connection: Connection, track: TrackRuns, version: int) -> tuple[TrackRuns, ReadBefore]:
    """Return a version of a branch as the one that follows in its main line, behind the one that it left it at: that
    track, in which nothing was judged yet, and its samples.
    """
    assert track.main is not None
    base = track.bases.get(version)
    order = [*track.main.order[: base.place if base else 0], version]
    runs = [*track.runs_before(version), *track.runs_of(version)]
    joined = TrackRuns(track.main.key, track.limits, runs, dict.fromkeys(order, b""), {}, track.names)
    return joined, read_beside_main(connection, track)


def read_beside_main(connection: Connection, track: TrackRuns) -> ReadBefore:
    """Return what the runs of a branch say, by the series of its main line.

    What that does not have stands behind it, by the series of the branch.
    """
    assert track.main is not None
    of_main, own = (
        stored_tracks.read_series(connection, track.main.key),
        stored_tracks.read_series(connection, track.key),
    )
    number_of = dict(zip(of_main.keys, of_main.ids.tolist(), strict=True))
    new = [at for at, key in enumerate(own.keys) if key not in number_of]
    numbers = np.array(
        [number_of.get(key, number) for key, number in zip(own.keys, own.ids.tolist(), strict=True)], dtype=np.int64
    )
    series = SeriesTable(np.append(of_main.ids, own.ids[new]), [*of_main.keys, *(own.keys[at] for at in new)])
    arrays = {}
    for run_id, array in samples.arrays_of(connection, [run.run_id for run in track.runs]).items():
        moved = numbers[np.searchsorted(own.ids, array.series_ids)]
        order = np.argsort(moved)
        arrays[run_id] = SampleArray(moved[order], array.values[order], array.calls[order], array.by_calls[:, order])
    return ReadBefore(series, arrays)


def read_track(
    connection: Connection, of: TrackRuns, runs: Sequence[TrackRun], *, like: int = -1,
    timed_by: Sequence[TrackRun] | None = None, known: ReadBefore | None = None, present: bool = False,
    step_kind: str | None = "",
) -> Track:  # fmt: skip
    """Return these runs of a track, by its limits. `like`: the place of the run that the others must be recorded like;
    `timed_by`: the runs whose clock sets the limits, None: all; `present`: only series that they have. `step_kind`:
    only the series of this kind of steps, "": of all steps, None: all series.
    """
    known = known or ReadBefore()
    series = known.series_of(connection, of.key)
    values, calls, by_calls = stored_tracks.read_values(connection, [run.run_id for run in runs], series, known.arrays)
    is_chosen = np.ones(len(series.keys), dtype=bool)
    if step_kind is not None:
        is_chosen = np.array([key.step_kind == step_kind for key in series.keys], dtype=bool)
    if present:
        is_chosen &= ~np.isnan(values).all(axis=1)
    if not is_chosen.all():
        rows = np.flatnonzero(is_chosen)
        series = SeriesTable(series.ids[rows], [series.keys[row] for row in rows.tolist()])
        values, calls, by_calls = values[rows], calls[rows], by_calls[:, rows]
    stated = dict(zip(runs, recorded_runs(connection, runs), strict=True))
    device_timed = all(stated[run].timeline == "device" for run in (runs if timed_by is None else timed_by))
    traits = known.traits.get((device_timed, step_kind))
    if traits is None:
        traits = traits_of(series.keys, of.limits, device_timed=device_timed)
        known.traits[device_timed, step_kind] = traits
    recordings = recordings_of(series.keys, values, [*stated.values()])
    same = alike(series.keys, recordings, like) if runs else None
    lost = incomplete_cells(series.keys, recordings, like) if runs else None
    versions = np.array([of.place[run.version_id] for run in runs], dtype=np.int64)
    other = find_other_runs(series.keys, values, calls, versions, like)
    return Track(
        values, versions, traits, calls=calls,
        run_ids=np.array([run.run_id for run in runs], dtype=np.int64), alike=same, incomplete=lost,
        ids=series.ids, keys=series.keys, by_calls=by_calls, other_work=None if other is None else other.cells,
        hosts=known.hosts_of(connection, [run.run_id for run in runs]),
        roundings=tabulate_roundings(series.keys, [*stated.values()]),
    )  # fmt: skip


def geometric_mean(values: F64, columns: Any) -> F64:
    """Return what `over_runs` does, of these columns; 0 where none of them has it.

    >>> geometric_mean(np.array([[49831688.0, 49831688.0], [1.0, 4.0], [np.nan, np.nan]]), slice(None)).tolist()
    [49831688.0, 2.0, 0.0]
    """
    return np.nan_to_num(over_runs(values[:, columns]))


def recordings_of(keys: Sequence[SeriesKey], values: F64, runs: Sequence[Recorded]) -> list[Recording]:
    """Return the recording of each run (a column of `values`), with what its series show."""
    kinds = np.array([key[0] for key in keys], dtype=object)
    shaped = np.array([bool(key[3]) for key in keys], dtype=bool)
    there = ~np.isnan(values)
    memory, modules = (there[kinds == kind].any(axis=0) for kind in ("memory", "module"))
    ops, with_shapes = (there[own].sum(axis=0) for own in (kinds == "op", (kinds == "op") & shaped))
    return [
        run.with_rows(
            shapes=has_shapes(int(with_shapes[at]), int(ops[at])), memory=bool(memory[at]), modules=bool(modules[at])
        )
        for at, run in enumerate(runs)
    ]


def recorded_runs(connection: Connection, runs: Sequence[TrackRun]) -> list[Recorded]:
    """Return what the captures of runs say of how they were recorded; runs that say the same have one object."""
    said = recorded_by_id(connection, [run.recording_id for run in runs if run.recording_id is not None])
    nothing = Recorded()
    return [nothing if run.recording_id is None else said[run.recording_id] for run in runs]


def lost_records(store: Store, runs: Sequence[TrackRun]) -> bool:
    """Return whether the step of none of these runs may be judged, since records of it were lost."""
    with store.connect() as connection:
        stated = recorded_runs(connection, runs)
    return all(run.recording.lacks(STEP_KEY) for run in stated)


def have_guessed_times(store: Store, runs: Sequence[TrackRun]) -> bool:
    """Return whether the times of all of these runs are a guess, which no number of runs makes sure."""
    with store.connect() as connection:
        stated = recorded_runs(connection, runs)
    return bool(stated) and all(run.settings and all(map(is_guess, run.settings)) for run in stated)


class OtherVersion(Struct, frozen=True):
    """A version that did other work than another one. `than`: the label of the other; `inputs`: how theirs differ."""

    version: str
    than: str
    inputs: ScaledInputs

    @property
    def sentence(self) -> str:
        """The whole of it."""
        return f"{self.version} did other work than {self.than}: {self.inputs.words}"


def find_other_version(connection: Connection, track: TrackRuns, version_id: int) -> OtherVersion | None:
    """Return the version before one whose inputs had another size, where its step has no verdict for that; else None.

    Of a judged version alone: to read the samples of all runs before it takes longer than the rest.
    """
    row = track.judged.get(version_id)
    if row is None or row.step_verdict is not None or row.base_runs:
        return None
    runs = [*track.runs_before(version_id)[-track.thresholds.look_back :], *track.runs_of(version_id)]
    known = ReadBefore() if track.main is None else read_beside_main(connection, track)
    series = known.series_of(connection, track.key)
    values, calls, _ = stored_tracks.read_values(connection, [run.run_id for run in runs], series, known.arrays)
    numbers = {run.version_id: number for number, run in enumerate(runs)}
    versions = np.array([numbers[run.version_id] for run in runs], dtype=np.int64)
    found = find_other_runs(series.keys, values, calls, versions)
    if found is None:
        return None
    newest = max(found.inputs)
    labels = {numbers[run.version_id]: run.version for run in runs}
    return OtherVersion(labels[numbers[version_id]], labels[newest], found.inputs[newest])


def settings_note(connection: Connection, track: TrackRuns) -> str:
    """Say why the newest version of a track is compared with none, or only with some, of the runs that it looks back
    on; "" where all were recorded alike. What captures say counts, and what series show, where these are not the same.
    """
    newest = track.newest
    before = track.runs_before(newest[0].version_id)[-track.thresholds.look_back :]
    if not before:
        return ""
    stated = recorded_runs(connection, [*before, *newest])
    ids = [array.series_ids for array in samples.arrays_of(connection, (before[-1].run_id, newest[-1].run_id)).values()]
    if all(one == stated[0] for one in stated) and np.array_equal(ids[0], ids[-1]):
        return ""  # the texts of all series take longer to read than the rest
    known = ReadBefore() if track.main is None else read_beside_main(connection, track)
    series = known.series_of(connection, track.key)
    values, *_ = stored_tracks.read_values(connection, [run.run_id for run in (*before, *newest)], series, known.arrays)
    found = recordings_of(series.keys, values, stated)
    earlier, own = found[: len(before)], found[len(before) :]
    differing = differences([one for one in earlier if one not in own][-1:], own)
    if not differing:
        return ""
    like = sorted(run.run_id for run, one in zip(before, earlier, strict=True) if one in own)
    alike = f"only with run {format_numbers(like)}, recorded alike" if like else "with no run before it"
    what = "; ".join(one.sentence for one in differing)
    return f"{newest[0].version} is compared {alike} where the settings matter: {what}. {remedies(differing)}"
