"""What one run of a side left behind: which files it wrote, the run that they become, and the step of that run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker import intake
from tracker.config import Settings
from tracker.detect.thresholds import DEFAULTS, MIN_RATIO, limit_of
from tracker.errors import SourceError, UsageError
from tracker.experiment.decide import noise_of_history
from tracker.intake import IngestOptions, Sidecar
from tracker.profile import CPU, UNKNOWN_DEVICE
from tracker.profile.experiments import SIDES, branch_of_experiment
from tracker.regressions.run_numbers import RunNumber, RunNumbers, number_of
from tracker.regressions.track import TrackRuns, runs_of_track
from tracker.schema.column_names import DEVICE
from tracker.schema.series import STEP_KEY, STEP_SERIES, STEP_WAYS
from tracker.store import Store, queries
from tracker.store import experiments as stored
from tracker.store import runs as stored_runs
from tracker.store import tracks as stored_tracks
from tracker.store.run_record import ExperimentRun
from tracker.units import NS_PER_MS

PROFILE: Final = "profile"
LOG: Final = "log"
WALL: Final = "wall"
_OF_HISTORY: Final = 20
"""Newest runs of a track that say how noisy it is."""


class Labels(Struct, frozen=True):
    """What a run of a side is filed under. `workload`: None for what its files or the settings say."""

    place: ExperimentRun
    workload: str | None
    commit: str | None
    facts: dict[str, str]
    host: str | None

    @property
    def branch(self) -> str:
        """A branch that no git repository can have."""
        return branch_of_experiment(self.place.experiment_id)

    @property
    def note(self) -> str:
        """Which run of its experiment it is, in words."""
        return f"pair {self.place.pair}" if self.place.pair else "warm-up"


def has_steps(path: Path) -> bool:
    """Return whether what a command printed is a training log with times."""
    from tracker.readers import survey

    try:
        return any("training_log" in look.claims for look in survey(path))
    except (SourceError, UsageError):
        return False


def write_log_of_run(printed: Path, log: Path, labels: Labels) -> None:
    """Write what a command printed as a log of its own, which tells it from that of any other run."""
    place = labels.place
    head = f"# {place.side}, {labels.note}, of {labels.branch}, {log.name}\n"
    with printed.open("rb") as source, log.open("wb") as target:
        target.write(head.encode())
        while piece := source.read(1 << 20):
            target.write(piece)


def write_wall_time(log: Path, wall_ns: int, labels: Labels) -> None:
    """Write the wall time of a command as a log of one step."""
    place = labels.place
    head = f"# wall time of {place.side}, {labels.note}, of {labels.branch}, {log.name}"
    log.write_text(f"{head}\niter 1: loss 0.0, time {wall_ns / NS_PER_MS:.6f}ms\n", encoding="utf-8")


def ingest_run(
    store: Store, paths: Sequence[Path], labels: Labels, settings: Settings, format: str | None, device: str | None
) -> int:
    """Read what a run wrote as one run of its experiment; return its number.

    UsageError, SourceError where it cannot be read, or forms several runs: none of them stays.
    """
    options = IngestOptions(
        branch=labels.branch,
        main_branch=settings.main_branch,
        commit=labels.commit,
        note=labels.note,
        device=device,
        format=format,
        max_bytes=settings.max_bytes,
        loaders=settings.loaders,
        judge=False,
        otherwise=Sidecar(host=labels.host, facts=labels.facts),
        experiment=labels.place,
    )
    results = intake.ingest(
        store, paths, version=labels.place.side, workload=labels.workload or settings.workload, options=options
    )
    # files of earlier runs that were moved, as a log that is rotated, are in already
    numbers = list(dict.fromkeys(result.run_id for result in results if not result.already))
    if len(numbers) > 1:
        stored_runs.delete_all(store, numbers, "one run of a side is one run", purge=True)
        raise UsageError(
            f"one run of the {labels.place.side} wrote the profiles of {len(numbers)} runs",
            remedy="name the folder of one of them with --profiles, or let the command write one profile a run",
        )
    if not numbers:
        raise SourceError(
            paths[0], "", "is the same file as that of an earlier run", remedy="let each run write a profile of its own"
        )
    return numbers[0]


class Measured(Struct, frozen=True):
    """How the steps of an experiment are measured: `step_kind`, "" for all steps; `way`: one of STEP_WAYS; `name`: the
    series of the step.
    """

    step_kind: str
    way: str
    name: str


def choose_measure(store: Store, run_ids: Sequence[int]) -> Measured | None:
    """Return how the steps of all these runs are measured, the best that they have in common; None for nothing."""
    shared = set(_list_measures(store, run_ids[0])) if run_ids else set()
    for run_id in run_ids[1:]:
        shared &= set(_list_measures(store, run_id))
    if not shared:
        return None

    def rank(one: Measured) -> tuple[int, bool, int, float, str]:
        """Return the place of a measure: the whole step first, then the kind whose steps are longest."""
        length_ns = _step_ns(store, run_ids[0], one) or 0.0
        return (
            STEP_SERIES.index(one.name),
            bool(one.step_kind),
            STEP_WAYS.index(one.way),
            -length_ns,
            one.step_kind,
        )

    return min(shared, key=rank)


def _list_measures(store: Store, run_id: int) -> list[Measured]:
    columns = ("name", "part", "step_kind")
    rows = queries.run_level(store, [run_id]).rows(*columns)
    return [Measured(kind, way, name) for name, way, kind in rows if name in STEP_SERIES and way in STEP_WAYS]


def _step_ns(store: Store, run_id: int, measure: Measured) -> float | None:
    return read_steps(store, [run_id], measure).get(run_id)


def read_steps(store: Store, run_ids: Sequence[int], measure: Measured) -> dict[int, float]:
    """Return run -> its step in ns, of those runs that have it."""
    numbers = RunNumbers(store, run_ids)
    found = {}
    for run_id in run_ids:
        own: list[RunNumber] = numbers.of([run_id], measure.step_kind)
        step_ns = number_of(own, [measure.name], [measure.way])
        if step_ns is not None:
            found[run_id] = step_ns
    return found


class History(Struct, frozen=True):
    """What the runs before say of an experiment: `noise_sd` of a pair, None for too few of them; `limit_ratio`: the
    smallest change of the step that counts.
    """

    noise_sd: float | None
    limit_ratio: float


def read_history(store: Store, run_id: int, measure: Measured) -> History:
    """Return what the track says that a run of an experiment would be in, if it were followed."""
    groups = list_groups_of_history(store, run_id)
    steps_ns = read_steps(store, [run_id for group in groups for run_id in group], measure)
    logs = [[math.log(steps_ns[run_id]) for run_id in group if run_id in steps_ns] for group in groups]
    with store.connect() as connection:
        track = runs_of_track(connection, stored.track_of_main_line(store, run_id))
    return History(noise_of_history(logs), _choose_limit(store, run_id, track))


def list_groups_of_history(store: Store, run_id: int) -> list[list[int]]:
    """Return the newest runs of the track that a run of an experiment would be in, those of one version and one machine
    together, in order.
    """
    with store.connect() as connection:
        track = runs_of_track(connection, stored.track_of_main_line(store, run_id))
        # what came later is not what the experiment was decided with
        newest = [run for run in track.runs if run.run_id < run_id][-_OF_HISTORY:]
        hosts = stored_tracks.read_hosts(connection, [run.run_id for run in newest])
    groups: dict[tuple[int, frozenset[str]], list[int]] = {}
    for run in newest:
        groups.setdefault((run.version_id, hosts[run.run_id]), []).append(run.run_id)
    return list(groups.values())


def _choose_limit(store: Store, run_id: int, track: TrackRuns) -> float:
    """Return the smallest change of the step that counts: as its user set it, else the usual one of its device."""
    limit = limit_of(MIN_RATIO, STEP_KEY, track.limits)
    if limit is not None:
        return limit.value
    (device,) = queries.runs_by_id(store, [run_id]).listed(DEVICE)
    is_on_device = device not in (CPU.model, UNKNOWN_DEVICE.model)
    return DEFAULTS.ratio_step_device if is_on_device else DEFAULTS.ratio_step_host


class MeasuredPair(Struct, frozen=True):
    """A pair of runs that counts, with the steps of both."""

    pair: int
    baseline_run: int
    candidate_run: int
    baseline_ns: float
    candidate_ns: float


def list_pairs(store: Store, experiment_id: int, measure: Measured) -> list[MeasuredPair]:
    """Return the whole pairs of an experiment, in order."""
    runs_of: dict[int, dict[str, int]] = {}
    for run in stored.list_runs(store, experiment_id):
        if run.pair:
            runs_of.setdefault(run.pair, {})[run.side] = run.run_id
    steps_ns = read_steps(store, [run_id for own in runs_of.values() for run_id in own.values()], measure)
    found = []
    for pair, own in sorted(runs_of.items()):
        sides = [own.get(name) for name in SIDES]
        if all(run_id in steps_ns for run_id in sides):
            baseline_run, candidate_run = (run_id for run_id in sides if run_id is not None)
            both_ns = steps_ns[baseline_run], steps_ns[candidate_run]
            found.append(MeasuredPair(pair, baseline_run, candidate_run, *both_ns))
    return found


def log_ratios_of(pairs: Sequence[MeasuredPair]) -> list[float]:
    """Return log(candidate) - log(baseline) of the step of each pair."""
    return [math.log(pair.candidate_ns) - math.log(pair.baseline_ns) for pair in pairs]
