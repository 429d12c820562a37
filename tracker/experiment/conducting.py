"""An experiment from its first run to its decision: the sides by turns, in pairs, until the pairs decide."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from tracker.config import Settings
from tracker.errors import SourceError, StoreError, UsageError
from tracker.experiment import measuring
from tracker.experiment.clones import make_side, remove_sides
from tracker.experiment.decide import (
    MOST_PAIRS,
    Decision,
    decide,
    expected_pairs,
    expected_pairs_left,
)
from tracker.experiment.jobs import JobEnd, Logs, run_job
from tracker.experiment.measuring import LOG, PROFILE, WALL, Labels, Measured
from tracker.experiment.own_code import MODULES_VARIABLE, check_own_code
from tracker.experiment.places import devices_of, folder_of, hold_devices
from tracker.experiment.results import describe, result_of
from tracker.experiment.setups import run_setup
from tracker.experiment.sides import PreparedSide, Side, environment_of, find_sides, working_folder
from tracker.hooks import environment
from tracker.hooks.job import joined
from tracker.results.experiments import SIDES, Experiment
from tracker.results.machine_state import marks_of_machine
from tracker.store import Store
from tracker.store import experiments as stored
from tracker.store import tracks as stored_tracks
from tracker.store.experiments import StoredExperiment
from tracker.store.run_record import ExperimentRun
from tracker.units import NS_PER_S, counted, format_ns

MOST_RUNS: Final = 2 * MOST_PAIRS
LIMIT_S: Final = 2 * 3600
"""How long an experiment may take, where its user says nothing."""
_WARM_UP_S: Final = 3600.0
"""The longest warm-up of a side: its first run may build, or download."""
_LEAST_RUN_S: Final = 600.0
_TIMES_LONGEST: Final = 3
"""A run may take so many times as long as the longest before it."""
_REPEATS: Final = 3
"""So often a pair is repeated whose sides the machine treated differently; then it counts."""
_SIDE: Final = "{side}"
_RUN: Final = "{run}"


class Request(Struct, frozen=True, kw_only=True):
    """What a user asks of an experiment.

    `command`: of both sides; in it `{side}` is the name of the side and `{run}` the number of the run. `profiles`: the
    folder into which it writes profiles, in the folder in which it runs; None: what it prints is read. `setup`: builds
    a side. `links`: what git ignores, and both sides share. `variables`: side -> its variables. `within`: the smallest
    change that counts, a ratio - 1; None: that of the workload. `limit_s`: of all runs together; `run_limit_s`: of one
    run, None: three times the longest before it. `is_dirty`: the working tree is the candidate.
    """

    command: tuple[str, ...]
    baseline: str
    candidate: str
    started_in: Path
    profiles: str | None = None
    setup: str | None = None
    links: tuple[str, ...] = ()
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_dirty: bool = False
    within: float | None = None
    most_runs: int = MOST_RUNS
    limit_s: float = LIMIT_S
    run_limit_s: float | None = None
    seed: int | None = None
    workload: str | None = None
    format: str | None = None
    device: str | None = None
    finding_id: int | None = None
    db: str | None = None

    @property
    def differs_otherwise(self) -> bool:
        """Whether something else than the files differs between the sides."""
        is_named = any(_SIDE in word for word in (*self.command, self.profiles or ""))
        return is_named or self.variables.get(SIDES[0], {}) != self.variables.get(SIDES[1], {})


class KeptSettings(Struct, frozen=True):
    """What is stored of a request, so that an experiment can go on: no command, and no variables, which may be secret.

    `measure`: how its steps are measured; `is_own_code_known`: whether it was seen that each side ran its own code.
    """

    started_in: str
    profiles: str | None
    links: tuple[str, ...]
    is_dirty: bool
    has_limit: bool
    workload: str | None
    format: str | None
    device: str | None
    measure: Measured | None = None
    is_own_code_known: bool = False


Tell = Callable[[str], None]
Progress = Callable[[str, int, int], None]


def conduct(
    store: Store, request: Request, settings: Settings, *, tell: Tell, on_progress: Progress | None = None
) -> Experiment:
    """Run an experiment to its decision, and return it with the diff of its runs.

    It ends undecided after as many runs, or as long, as was asked for, and where it is interrupted. `tell` gets a
    sentence after each pair; `on_progress`: (what, runs done, runs expected). UsageError where a command fails, hangs
    or leaves nothing to measure: what was measured stays, and `resume` goes on.
    """
    sides = find_sides_of(request)
    kept = KeptSettings(
        started_in=str(request.started_in),
        profiles=request.profiles,
        links=request.links,
        is_dirty=request.is_dirty,
        has_limit=request.within is not None,
        workload=request.workload,
        format=request.format,
        device=request.device,
    )
    experiment = stored.add_experiment(
        store,
        StoredExperiment(
            baseline=request.baseline,
            candidate=request.candidate,
            baseline_commit=_commit_of(sides[0]),
            candidate_commit=_commit_of(sides[1]),
            finding_id=request.finding_id,
            host=environment.host(),
            devices=devices_of(os.environ),
            settings=_write_settings(kept),
            seed=random.SystemRandom().randrange(1 << 31) if request.seed is None else request.seed,
            limit_ratio=request.within or 0.0,
        ),
    )
    tell(f"{experiment.name}: {sides[0].described} and {sides[1].described} by turns, seed {experiment.seed}")
    return _Conductor(store, request, settings, sides, experiment, kept, tell, on_progress).run()


def resume(
    store: Store,
    experiment_id: int,
    request: Request,
    settings: Settings,
    *,
    tell: Tell,
    on_progress: Progress | None = None,
) -> Experiment:
    """Go on with an experiment that was broken off, or not decided; see `conduct`.

    Sides, folders and the seed are those it was started with; the command and its variables are given again, since
    they are stored nowhere. UsageError for an experiment that is decided, or one of another machine.
    """
    experiment = stored.read_experiment(store, experiment_id)
    if experiment.state == stored.DECIDED:
        raise UsageError(
            f"{experiment.name} is decided", remedy=f"tracker experiments show {experiment.name} has its answer"
        )
    if experiment.host != environment.host():
        raise UsageError(
            f"{experiment.name} runs on {experiment.host}, not on {environment.host()}", remedy="go on with it there"
        )
    kept = _read_settings(experiment)
    request = replace(
        request,
        baseline=experiment.baseline_commit or experiment.baseline,
        candidate=experiment.candidate if kept.is_dirty else experiment.candidate_commit or experiment.candidate,
        started_in=Path(kept.started_in),
        profiles=kept.profiles,
        links=kept.links,
        is_dirty=kept.is_dirty,
        within=request.within or (experiment.limit_ratio or None),
        workload=kept.workload,
        format=kept.format,
        device=kept.device,
        seed=experiment.seed,
        finding_id=experiment.finding_id,
    )
    sides = find_sides_of(request)
    experiment = replace(experiment, state=stored.RUNNING, ended_at_ns=None)
    stored.change_experiment(store, experiment)
    return _Conductor(store, request, settings, sides, experiment, kept, tell, on_progress).run()


def show(store: Store, experiment_id: int) -> Experiment:
    """Return an experiment as it stands, with the diff of its runs. UsageError for a number that none has."""
    experiment = stored.read_experiment(store, experiment_id)
    kept = _read_settings(experiment)
    return result_of(store, experiment, kept.measure, is_own_code_known=kept.is_own_code_known)


def delete(store: Store, experiment_id: int) -> int:
    """Remove an experiment with its runs, clones and logs for good; return how many runs it had."""
    experiment = stored.read_experiment(store, experiment_id)
    count = stored.delete_experiment(store, experiment_id)
    remove_sides(folder_of(experiment))
    return count


def find_sides_of(request: Request) -> tuple[Side, Side]:
    """Return the sides of a request; UsageError where they are none, or the same."""
    return find_sides(
        request.baseline,
        request.candidate,
        started_in=request.started_in,
        dirty=request.is_dirty,
        differs_otherwise=request.differs_otherwise,
    )


def _commit_of(side: Side) -> str | None:
    """Return the commit that a side is; None where it is more than that, or none."""
    return None if side.is_working_tree else side.commit


def _write_settings(kept: KeptSettings) -> str:
    return msgspec.json.encode(kept).decode()


def _read_settings(experiment: StoredExperiment) -> KeptSettings:
    return msgspec.json.decode(experiment.settings, type=KeptSettings)


class _Conductor:
    """Runs the sides of one experiment by turns."""

    def __init__(
        self,
        store: Store,
        request: Request,
        settings: Settings,
        sides: tuple[Side, Side],
        experiment: StoredExperiment,
        kept: KeptSettings,
        tell: Tell,
        on_progress: Progress | None,
    ) -> None:
        self._store = store
        self._request = request
        self._settings = settings
        self._sides = sides
        self._experiment = experiment
        self._kept = kept
        self._tell = tell
        self._on_progress = on_progress
        self._folder = folder_of(experiment)
        self._prepared: dict[str, PreparedSide] = {}
        self._lock_files: list[int] = []
        self._ends_at = time.monotonic() + request.limit_s
        self._longest_ns = 0

    def run(self) -> Experiment:
        """Run pairs until they decide, or no further one is allowed."""
        try:
            with self._ended_in_order(), hold_devices(self._experiment, self._tell) as files:
                self._lock_files = files
                self._prepare()
                self._warm_up()
                self._leave_out_half_pairs()
                self._run_pairs()
        except KeyboardInterrupt:
            self._tell(f"interrupted; tracker ab --resume {self._experiment.name} -- COMMAND goes on")
        if self._experiment.state == stored.DECIDED:
            remove_sides(self._folder)
        return show(self._store, self._experiment.experiment_id)

    @contextmanager
    def _ended_in_order(self) -> Iterator[None]:
        """Write how the experiment ended, however that is."""
        try:
            yield
        except (UsageError, SourceError, StoreError):
            self._leave_out_half_pairs()
            self._change(state=stored.FAILED, ended_at_ns=time.time_ns())
            raise
        except BaseException:
            self._leave_out_half_pairs()
            self._change(state=stored.NOT_DECIDED, ended_at_ns=time.time_ns())
            raise

    def _change(self, **values: object) -> None:
        self._experiment = replace(self._experiment, **values)
        stored.change_experiment(self._store, self._experiment)

    def _prepare(self) -> None:
        """Make both sides ready to run, unless they are so since an earlier start."""
        for side in self._sides:
            is_made = side.folder is not None or (self._folder / side.name).is_dir()
            prepared = make_side(side, self._folder, links=self._request.links)
            self._prepared[side.name] = prepared
            working_folder(prepared)
            is_built = self._folder / f"{side.name}.built"
            if self._request.setup and not (is_made and is_built.exists()):
                self._tell(f"setup of {side.name}")
                run_setup(prepared, self._request.setup, self._folder / f"setup-{side.name}.log", _WARM_UP_S)
                is_built.touch()

    def _warm_up(self) -> None:
        """Run each side once, look whether it ran its own code, and find out how its steps are measured."""
        runs = {run.side: run for run in self._list_runs() if run.pair == 0}
        are_known = []
        for name in SIDES:
            if name in runs:
                continue
            self._run_side(name, 0)
            modules = self._modules_file(name)
            other = next(self._prepared[one] for one in SIDES if one != name)
            are_known.append(check_own_code(self._prepared[name], other, modules))
        if are_known:
            self._keep(is_own_code_known=all(are_known))
        warm_ups = [run.run_id for run in self._list_runs() if run.pair == 0]
        if self._kept.measure is None:
            measure = measuring.choose_measure(self._store, warm_ups)
            if measure is None:
                raise UsageError(
                    "what the sides wrote has no step in common",
                    remedy="mark the steps (docs/record.md), or let the command print them",
                )
            self._keep(measure=measure)
        history = measuring.read_history(self._store, warm_ups[0], self._measure)
        limit_ratio = self._request.within or history.limit_ratio
        self._change(noise_sd=history.noise_sd, limit_ratio=limit_ratio)
        if history.noise_sd is not None:
            expected = counted(2 * expected_pairs(history.noise_sd, limit_ratio), "run")
            self._tell(f"warmed up; about {expected} to expect, by the noise of the runs before")

    def _keep(self, **values: object) -> None:
        self._kept = replace(self._kept, **values)
        self._change(settings=_write_settings(self._kept))

    @property
    def _measure(self) -> Measured:
        if self._kept.measure is None:
            raise AssertionError("the warm-up says how steps are measured")
        return self._kept.measure

    def _run_pairs(self) -> None:
        decision = self._decide()
        while not (decision and decision.word):
            pairs = 0 if decision is None else decision.pairs
            if 2 * (pairs + 1) > self._request.most_runs or time.monotonic() > self._ends_at:
                break
            self._report(decision)
            if self._run_pair(pairs + 1):
                decision = self._decide()
                self._tell(describe(decision) if decision else "")
        outcome = decision.word if decision else ""
        self._change(state=stored.DECIDED if outcome else stored.NOT_DECIDED, ended_at_ns=time.time_ns())

    def _run_pair(self, pair: int) -> bool:
        """Run both sides, in random order; return whether the pair counts."""
        attempts = sum(run.pair is None for run in self._list_runs())
        order = list(SIDES)
        # the same seed gives the same order, also where an experiment goes on
        random.Random(f"{self._experiment.seed} {pair} {attempts}").shuffle(order)
        run_ids = {name: self._run_side(name, pair) for name in order}
        steps_ns = measuring.read_steps(self._store, list(run_ids.values()), self._measure)
        for name, run_id in run_ids.items():
            if run_id not in steps_ns:
                raise UsageError(
                    f"run:{run_id} of the {name} has no step like those of its warm-up",
                    remedy=f"tracker show run:{run_id} shows what it has",
                )
        return not self._must_repeat(pair, run_ids)

    def _must_repeat(self, pair: int, run_ids: Mapping[str, int]) -> bool:
        """Leave a pair out whose sides the machine treated differently, unless that was done often enough."""
        with self._store.connect() as connection:
            machines = stored_tracks.read_machines(connection, list(run_ids.values()))
        marks = {name: marks_of_machine(machines.get(run_id, {})) for name, run_id in run_ids.items()}
        if marks[SIDES[0]] == marks[SIDES[1]]:
            return False
        words = "; ".join(f"{name}: {', '.join(own)}" for name, own in marks.items() if own)
        repeats = sum(run.pair is None for run in self._list_runs()) // 2
        if repeats >= _REPEATS:
            self._tell(f"pair {pair} counts, though the machine slowed down one side ({words})")
            return False
        self._tell(f"pair {pair} is repeated: the machine slowed down one side ({words})")
        stored.leave_out(self._store, list(run_ids.values()))
        return True

    def _run_side(self, name: str, pair: int) -> int:
        """Run a side once, and read what it left; return the number of the run."""
        number = 1 + sum(1 for _ in self._folder.glob("run-*.out"))
        place = ExperimentRun(self._experiment.experiment_id, name, pair)
        prepared = self._prepared[name]
        labels = self._labels_of(place, prepared.side)
        words = [self._fill_in(word, name, number) for word in self._request.command]
        folder = working_folder(prepared)
        stem = self._folder / f"run-{number}-{name}"
        logs = Logs(Path(f"{stem}.out"), Path(f"{stem}.err"))
        profiles = None
        if self._request.profiles is not None:
            profiles = folder / self._fill_in(self._request.profiles, name, number)
        before = measuring.list_files(profiles) if profiles is not None else {}
        ended = run_job(
            words,
            folder=folder,
            environ=self._environment_of(prepared, labels),
            logs=logs,
            limit_s=self._limit_of_run(pair),
            keep_open=self._lock_files,
        )
        self._check_end(ended, name, number, logs)
        self._longest_ns = max(self._longest_ns, ended.wall_ns)
        if profiles is not None:
            paths, format = measuring.list_written(profiles, before, self._request.format), self._request.format
            if not paths:
                raise UsageError(
                    f"run {number} of the {name} wrote no profile in {profiles}",
                    remedy=f"its output is in {logs.errors} and {logs.output}",
                )
            measured_by = PROFILE
        else:
            paths, format, measured_by = self._write_log(stem, logs, ended, labels)
        self._check_measure(measured_by, name, number, logs)
        return measuring.ingest_run(self._store, paths, labels, self._settings, format, self._request.device)

    def _write_log(self, stem: Path, logs: Logs, ended: JobEnd, labels: Labels) -> tuple[list[Path], str | None, str]:
        """Return the log of what a run printed, and the word for how it is measured."""
        log = Path(f"{stem}.log")
        if self._experiment.measured_by != WALL and measuring.has_steps(logs.output):
            measuring.write_log_of_run(logs.output, log, labels)
            return [log], self._request.format, LOG
        measuring.write_wall_time(log, ended.wall_ns, labels)
        return [log], "training_log", WALL

    def _check_end(self, ended: JobEnd, name: str, number: int, logs: Logs) -> None:
        where = f"its output is in {logs.errors} and {logs.output}"
        if ended.code is None:
            taken = format_ns(ended.wall_ns)
            raise UsageError(f"run {number} of the {name} was ended after {taken}: it took too long", remedy=where)
        if ended.code:
            raise UsageError(f"run {number} of the {name} ended with exit code {ended.code}", remedy=where)

    def _check_measure(self, measured_by: str, name: str, number: int, logs: Logs) -> None:
        known = self._experiment.measured_by
        if not known:
            self._change(measured_by=measured_by)
        elif known != measured_by:
            raise UsageError(
                f"run {number} of the {name} printed no steps, as the runs before it did",
                remedy=f"its output is in {logs.output}",
            )

    def _limit_of_run(self, pair: int) -> float:
        if self._request.run_limit_s is not None:
            return self._request.run_limit_s
        if pair == 0:
            return _WARM_UP_S
        return max(_TIMES_LONGEST * self._longest_ns / NS_PER_S, _LEAST_RUN_S)

    def _fill_in(self, text: str, name: str, number: int) -> str:
        return text.replace(_SIDE, name).replace(_RUN, str(number))

    def _labels_of(self, place: ExperimentRun, side: Side) -> Labels:
        facts = environment.facts(os.environ, None)
        if side.is_working_tree:
            facts |= {"git_dirty": "yes"}
        return Labels(place, self._request.workload, _commit_of(side), facts, environment.host() or None)

    def _environment_of(self, prepared: PreparedSide, labels: Labels) -> dict[str, str]:
        """Return the variables of a run: those of its side, and labels for its hooks, which deliver nothing."""
        name = prepared.side.name
        texts = {
            "version": name,
            "workload": labels.workload,
            "branch": labels.branch,
            "commit": labels.commit,
            "note": labels.note,
            "device": self._request.device,
            "tags": joined({}),
            "deliver": "0",
        }
        own = {f"TRACKER_{key.upper()}": text for key, text in texts.items() if text}
        if labels.place.pair == 0:
            own[MODULES_VARIABLE] = str(self._modules_file(name))
        return {**environment_of(prepared, os.environ), **self._request.variables.get(name, {}), **own}

    def _modules_file(self, name: str) -> Path:
        return self._folder / f"modules-{name}"

    def _list_runs(self) -> list[stored.PlacedRun]:
        return stored.list_runs(self._store, self._experiment.experiment_id)

    def _leave_out_half_pairs(self) -> None:
        """Let runs of a pair that was broken off count in none."""
        runs_of: dict[int, list[int]] = {}
        for run in self._list_runs():
            if run.pair:
                runs_of.setdefault(run.pair, []).append(run.run_id)
        stored.leave_out(self._store, [run_id for own in runs_of.values() if len(own) != len(SIDES) for run_id in own])

    def _decide(self) -> Decision | None:
        """Decide from the pairs so far, and write what they say; None before the first."""
        log_ratios = list_log_ratios(self._store, self._experiment.experiment_id, self._measure)
        if not log_ratios:
            return None
        decision = decide(log_ratios, limit=self._experiment.limit_ratio, noise_sd=self._experiment.noise_sd)
        self._change(
            outcome=decision.word,
            change_ratio=decision.change,
            low_ratio=decision.low,
            high_ratio=decision.high,
            counted_runs=2 * decision.pairs,
        )
        return decision

    def _report(self, decision: Decision | None) -> None:
        if self._on_progress is None:
            return
        done = 0 if decision is None else decision.pairs
        most = self._request.most_runs // 2
        left = most if decision is None else expected_pairs_left(decision, most=most)
        self._on_progress(f"pair {done + 1}", 2 * done, 2 * (done + max(left, 1)))


def list_log_ratios(store: Store, experiment_id: int, measure: Measured) -> list[float]:
    """Return log(candidate) - log(baseline) of the step of each pair that counts, in order."""
    pairs = measuring.list_pairs(store, experiment_id, measure)
    return [math.log(pair.candidate_ns) - math.log(pair.baseline_ns) for pair in pairs]
