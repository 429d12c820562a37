"""An experiment from its first run to its decision: the sides by turns, in pairs, until the pairs decide."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    PAIRS_WITHOUT_HISTORY,
    Decision,
    decide,
    expected_pairs,
    expected_pairs_left,
)
from tracker.experiment.jobs import JobEnd, Logs, run_job
from tracker.experiment.measuring import LOG, PROFILE, WALL, Labels, Measured, log_ratios_of
from tracker.experiment.own_code import MODULES_VARIABLE, check_own_code
from tracker.experiment.places import devices_of, folder_of, hold_devices, hold_experiment
from tracker.experiment.results import KnownOfRuns, describe, result_of
from tracker.experiment.setups import run_setup
from tracker.experiment.sides import PreparedSide, Side, environment_of, find_sides, working_folder
from tracker.hooks import environment
from tracker.intake.written import list_files, list_profiles, survey_written
from tracker.profile.branches import branch_of
from tracker.profile.experiments import BASELINE, CANDIDATE, LIMIT_S, MOST_RUNS, SIDES
from tracker.results.experiments import Experiment
from tracker.results.machine_state import marks_of_machine
from tracker.store import Store
from tracker.store import experiments as stored
from tracker.store import tracks as stored_tracks
from tracker.store.experiments import StoredExperiment
from tracker.store.run_record import ExperimentRun
from tracker.units import NS_PER_S, counted, format_ns

_WARM_UP_S: Final = 3600.0
"""The longest warm-up of a side: its first run may build, or download."""
_LEAST_RUN_S: Final = 600.0
_TIMES_LONGEST: Final = 3
"""A run may take so many times as long as the longest before it."""
_REPEATS: Final = 3
"""So often a pair is repeated whose sides the machine treated differently; then it counts."""
_SIDE: Final = "{side}"
_RUN: Final = "{run}"
_OF_THE_CALLER: Final = ("TRACKER_TAGS", "TRACKER_COMMIT", "TRACKER_NOTE", "TRACKER_DEVICE")
"""Labels of the caller that are none of the runs."""


class InterruptedExperiment(KeyboardInterrupt):
    """An interrupt of an experiment, which was put in order: what was measured stays."""

    def __init__(self, experiment: StoredExperiment) -> None:
        super().__init__()
        self.experiment = experiment


class Request(Struct, frozen=True, kw_only=True):
    """What a user asks of an experiment.

    `command`: of both sides; in it `{side}` is the name of the side and `{run}` the number of the run. `profiles`: the
    folder into which it writes profiles, in the folder in which it runs; None: what it prints is read. `setup`: builds
    a side, with its variables. `links`: what git ignores, and both sides share. `variables`: side -> its variables.
    `within`: the smallest change that counts, a ratio - 1; None: that of the workload. `limit_s`: after the warm-up, no
    pair is begun later; `run_limit_s`: of one run, None: three times the longest before it. `is_dirty`: the working
    tree is the candidate. `names`: what the sides are called where they are stored versions; None: as they are named.
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
    names: tuple[str, str] | None = None

    @property
    def differs_otherwise(self) -> bool:
        """Whether something else than the files differs between the sides."""
        is_named = any(_SIDE in word for word in (*self.command, self.profiles or ""))
        return is_named or self.variables_of(BASELINE) != self.variables_of(CANDIDATE)

    @property
    def differing_variables(self) -> tuple[str, ...]:
        """The names of the variables in which the sides differ."""
        before, after = self.variables_of(BASELINE), self.variables_of(CANDIDATE)
        return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))

    @property
    def check_number(self) -> int:
        """A number that another command, other variables or another setup have by 1 chance in 256: enough to notice a
        slip, and too little to guess a secret by.
        """
        own = {name: dict(self.variables_of(name)) for name in SIDES}
        words = msgspec.json.encode([self.command, self.setup, own], order="deterministic")
        return hashlib.blake2b(words, digest_size=1).digest()[0]

    def variables_of(self, side: str) -> Mapping[str, str]:
        """Return the variables of a side alone."""
        return self.variables.get(side, {})


class KeptSide(Struct, frozen=True):
    """A side as it is stored: the fields of `sides.Side`, with folders as texts."""

    name: str
    text: str
    commit: str | None
    tree: str | None
    described: str
    root: str
    started: str
    folder: str | None
    is_working_tree: bool

    @classmethod
    def of(cls, side: Side) -> KeptSide:
        """Return a side as it is stored."""
        folder = None if side.folder is None else str(side.folder)
        places = str(side.root), str(side.started), folder
        return cls(side.name, side.text, side.commit, side.tree, side.described, *places, side.is_working_tree)

    def side(self) -> Side:
        """Return the side."""
        folder = None if self.folder is None else Path(self.folder)
        places = Path(self.root), Path(self.started), folder
        return Side(self.name, self.text, self.commit, self.tree, self.described, *places, self.is_working_tree)


class KeptSettings(Struct, frozen=True):
    """What is stored of a request, so that an experiment can go on: no command, and no variables, which may be secret.

    `measure`: how its steps are measured; `own_code`: the sides that are known to have run their own code; `variables`:
    the names of those in which the sides differ.
    """

    sides: tuple[KeptSide, KeptSide]
    started_in: str
    profiles: str | None
    links: tuple[str, ...]
    workload: str | None
    format: str | None
    device: str | None
    differs_otherwise: bool
    check_number: int
    measure: Measured | None = None
    own_code: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


Tell = Callable[[str], None]
Progress = Callable[[str, int, int], None]


def conduct(
    store: Store, request: Request, settings: Settings, *, tell: Tell, on_progress: Progress | None = None
) -> Experiment:
    """Run an experiment to its decision, and return it with the diff of its runs.

    It ends undecided after as many runs, or as long, as was asked for. `tell` gets a sentence after each pair;
    `on_progress`: (what, runs done, runs expected). UsageError where a command fails, hangs or leaves nothing to
    measure: what was measured stays, and `resume` goes on; InterruptedExperiment at Ctrl-C, the same.
    """
    if branch_of(request.workload or ""):
        raise UsageError(f"{request.workload!r} is a branch", remedy="name its main line: --workload NAME")
    sides = find_sides_of(request)
    kept = KeptSettings(
        sides=(KeptSide.of(sides[0]), KeptSide.of(sides[1])),
        started_in=str(request.started_in),
        profiles=request.profiles,
        links=request.links,
        workload=request.workload,
        format=request.format,
        device=request.device,
        differs_otherwise=request.differs_otherwise,
        check_number=request.check_number,
        variables=request.differing_variables,
    )
    names = request.names or (request.baseline, request.candidate)
    experiment = stored.add_experiment(
        store,
        StoredExperiment(
            baseline=names[0],
            candidate=names[1],
            baseline_commit=_commit_of(sides[0]),
            candidate_commit=_commit_of(sides[1]),
            finding_id=request.finding_id,
            host=environment.host(),
            devices=_devices_of(request),
            settings=_write_settings(kept),
            seed=random.SystemRandom().randrange(1 << 31) if request.seed is None else request.seed,
            limit_ratio=request.within or 0.0,
        ),
    )
    tell(f"{experiment.name}: {sides[0].described} and {sides[1].described} by turns, seed {experiment.seed}")
    return _Conductor(store, request, settings, experiment, tell, on_progress).run()


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

    Sides, folders and the seed are those it was started with; the command, its variables and its setup are given
    again, since they are stored nowhere. UsageError for an experiment that is decided or of another machine, and where
    command or devices are not those of before.
    """
    experiment = stored.read_experiment(store, experiment_id)
    kept = _read_settings(experiment)
    if experiment.state == stored.DECIDED:
        raise UsageError(
            f"{experiment.name} is decided", remedy=f"tracker experiments show {experiment.name} has its answer"
        )
    if experiment.host != environment.host():
        raise UsageError(
            f"{experiment.name} runs on {experiment.host}, not on {environment.host()}", remedy="go on with it there"
        )
    if request.check_number != kept.check_number:
        raise UsageError(
            f"{experiment.name} was started with another command, --setup, --env-baseline or --env-candidate",
            remedy="give all of them as they were, for they are stored nowhere, or start a new experiment",
        )
    if _devices_of(request) != experiment.devices:
        problem = f"{experiment.name} runs on devices {experiment.devices or '(all)'}"
        raise UsageError(problem, remedy="set the variable that names them as it was")
    request = replace(
        request,
        baseline=kept.sides[0].text,
        candidate=kept.sides[1].text,
        started_in=Path(kept.started_in),
        profiles=kept.profiles,
        links=kept.links,
        is_dirty=kept.sides[1].is_working_tree,
        within=request.within or experiment.limit_ratio or None,
        workload=kept.workload or request.workload,
        format=kept.format,
        device=kept.device,
        seed=experiment.seed,
        finding_id=experiment.finding_id,
    )
    return _Conductor(store, request, settings, experiment, tell, on_progress).run()


def show(store: Store, experiment_id: int) -> Experiment:
    """Return an experiment as it stands, with the diff of its runs. UsageError for a number that none has."""
    experiment = stored.read_experiment(store, experiment_id)
    kept = _read_settings(experiment)
    is_own_code = set(kept.own_code) == set(SIDES)
    is_by_command = kept.differs_otherwise and not kept.variables
    return result_of(store, experiment, KnownOfRuns(kept.measure, is_own_code, kept.variables, is_by_command))


def delete(store: Store, experiment_id: int) -> int:
    """Remove an experiment with its runs, clones and logs for good; return how many runs it had. UsageError for one
    that is running on this machine.
    """
    experiment = stored.read_experiment(store, experiment_id)
    if experiment.host != environment.host():
        return stored.delete_experiment(store, experiment_id)
    with hold_experiment(experiment):
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


def _devices_of(request: Request) -> str:
    return devices_of(*({**os.environ, **request.variables_of(name)} for name in SIDES))


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
        experiment: StoredExperiment,
        tell: Tell,
        on_progress: Progress | None,
    ) -> None:
        self._store = store
        self._request = request
        self._settings = settings
        self._experiment = experiment
        self._kept = _read_settings(experiment)
        self._tell = tell
        self._on_progress = on_progress
        self._folder = folder_of(experiment)
        self._prepared: dict[str, PreparedSide] = {}
        self._lock_files: list[int] = []
        self._longest_ns = 0

    def run(self) -> Experiment:
        """Run pairs until they decide, or no further one is allowed."""
        with hold_experiment(self._experiment), self._ended_in_order():
            # another process may have gone on with it until now
            self._experiment = stored.read_experiment(self._store, self._experiment.experiment_id)
            self._change(state=stored.RUNNING, ended_at_ns=None)
            with hold_devices(self._experiment, self._tell) as files:
                self._lock_files = files
                self._leave_out_half_pairs()
                self._prepare()
                self._warm_up()
                self._run_pairs()
            found = show(self._store, self._experiment.experiment_id)
            if self._experiment.state == stored.DECIDED:
                self._remove_clones()
        return found

    @contextmanager
    def _ended_in_order(self) -> Iterator[None]:
        """Write how the experiment ended, however that is."""
        try:
            yield
        except (UsageError, SourceError, StoreError):
            self._leave_out_half_pairs()
            self._change(state=stored.FAILED, ended_at_ns=time.time_ns())
            raise
        except KeyboardInterrupt as error:
            self._leave_out_half_pairs()
            self._change(state=stored.NOT_DECIDED, ended_at_ns=time.time_ns())
            raise InterruptedExperiment(self._experiment) from error

    def _change(self, **values: object) -> None:
        self._experiment = replace(self._experiment, **values)
        stored.change_experiment(self._store, self._experiment)

    def _keep(self, **values: object) -> None:
        self._kept = replace(self._kept, **values)
        self._change(settings=_write_settings(self._kept))

    def _prepare(self) -> None:
        """Make both sides ready to run, unless they are so since an earlier start."""
        for kept in self._kept.sides:
            side = kept.side()
            if side.is_working_tree and not (self._folder / side.name).is_dir():
                self._check_working_tree(side)
            self._prepared[side.name] = make_side(side, self._folder, links=self._request.links)
            working_folder(self._prepared[side.name])
            self._set_up(side.name)

    def _check_working_tree(self, side: Side) -> None:
        """Raise UsageError where the working tree is not what the experiment was started with."""
        own = find_sides_of(self._request)[SIDES.index(side.name)]
        if own.tree != side.tree:
            raise UsageError(
                f"the working tree {side.root} has changed since {self._experiment.name} was started",
                remedy="start a new experiment",
            )

    def _set_up(self, name: str) -> None:
        is_built = self._folder / f"{name}.built"
        if self._request.setup is None or is_built.exists():
            return
        self._tell(f"setup of {name}")
        run_setup(
            self._prepared[name],
            self._request.setup.replace(_SIDE, name),
            self._folder / f"setup-{name}.log",
            _WARM_UP_S,
            environ={**os.environ, **self._request.variables_of(name)},
            keep_open=self._lock_files,
        )
        is_built.touch()

    def _remove_clones(self) -> None:
        for name in SIDES:
            try:
                remove_sides(self._folder / name)
            except OSError as error:
                # the answer is worth more than the room
                self._tell(f"{error.filename or self._folder / name} cannot be removed ({error.strerror})")

    def _warm_up(self) -> None:
        """Run each side once, unless that was done, and find out how steps are measured and how noisy they are."""
        is_done = {run.side for run in self._list_runs() if run.pair == 0}
        for name in SIDES:
            if name not in is_done:
                self._run_side(name, 0)
        if self._kept.measure is None:
            self._choose_measure([run.run_id for run in self._list_runs() if run.pair == 0])
        noise_sd = self._experiment.noise_sd
        has_pairs = any(run.pair for run in self._list_runs())
        if noise_sd is not None and not has_pairs:
            most = self._request.most_runs
            expected = 2 * expected_pairs(noise_sd, self._experiment.limit_ratio, most=most // 2)
            runs = (
                f"about {counted(expected, 'run')} to expect" if expected < most else f"{most} runs may not decide it"
            )
            self._tell(f"warmed up; {runs}, fewer for a large change, by the noise of runs before")
        elif self._request.most_runs < 2 * PAIRS_WITHOUT_HISTORY:
            runs = counted(2 * PAIRS_WITHOUT_HISTORY, "run")
            self._tell(f"no runs before say how noisy the step is: nothing is decided before {runs}")

    def _choose_measure(self, warm_ups: Sequence[int]) -> None:
        measure = measuring.choose_measure(self._store, warm_ups)
        if measure is None:
            raise UsageError(
                "what the sides wrote has no step in common",
                remedy="mark the steps (docs/record.md), or let the command print them",
            )
        history = measuring.read_history(self._store, warm_ups[0], measure)
        self._change(noise_sd=history.noise_sd, limit_ratio=self._request.within or history.limit_ratio)
        self._keep(measure=measure)

    @property
    def _measure(self) -> Measured:
        if self._kept.measure is None:
            raise AssertionError("the warm-up says how steps are measured")
        return self._kept.measure

    def _run_pairs(self) -> None:
        ends_at = time.monotonic() + self._request.limit_s
        decision = self._decide()
        while not (decision and decision.word):
            runs = [run for run in self._list_runs() if run.pair != 0]
            if len(runs) + 2 > self._request.most_runs or time.monotonic() > ends_at:
                break
            self._report(decision)
            self._run_counted_pair(1 + max((run.pair or 0 for run in runs), default=0))
            decision = self._decide()
            if decision is not None:
                self._tell(describe(decision))
        outcome = decision.word if decision else ""
        self._change(state=stored.DECIDED if outcome else stored.NOT_DECIDED, ended_at_ns=time.time_ns())

    def _run_counted_pair(self, pair: int) -> None:
        """Run both sides, again where the machine treated them differently."""
        for attempt in range(_REPEATS + 1):
            run_ids = self._run_pair(pair, attempt)
            words = self._describe_difference(run_ids)
            if not words:
                return
            if attempt == _REPEATS:
                self._tell(f"pair {pair} counts, though the machine slowed down one side ({words})")
                return
            stored.leave_out(self._store, list(run_ids.values()))
            self._tell(f"pair {pair} is repeated: the machine slowed down one side ({words})")

    def _run_pair(self, pair: int, attempt: int) -> dict[str, int]:
        """Run both sides once, in random order; return their runs."""
        order = list(SIDES)
        # the same seed gives the same order, also where an experiment goes on
        random.Random(f"{self._experiment.seed} {pair} {attempt}").shuffle(order)
        run_ids = {name: self._run_side(name, pair) for name in order}
        steps_ns = measuring.read_steps(self._store, list(run_ids.values()), self._measure)
        for name, run_id in run_ids.items():
            if run_id not in steps_ns:
                stored.leave_out(self._store, list(run_ids.values()))
                raise UsageError(
                    f"run:{run_id} of the {name} has no step like those of its warm-up",
                    remedy=f"tracker show run:{run_id} shows what it has",
                )
        return run_ids

    def _describe_difference(self, run_ids: Mapping[str, int]) -> str:
        """Return what slowed down one side of a pair and not the other, in words; "" for nothing known."""
        with self._store.connect() as connection:
            machines = stored_tracks.read_machines(connection, list(run_ids.values()))
        marks = {name: marks_of_machine(machines.get(run_id, {})) for name, run_id in run_ids.items()}
        if marks[BASELINE] == marks[CANDIDATE]:
            return ""
        return "; ".join(f"{name}: {', '.join(own)}" for name, own in marks.items() if own)

    def _run_side(self, name: str, pair: int) -> int:
        """Run a side once, and read what it left; return the number of the run."""
        number = self._next_number()
        stem = self._folder / f"run-{number}-{name}"
        logs = Logs(Path(f"{stem}.out"), Path(f"{stem}.err"))
        prepared = self._prepared[name]
        labels = self._labels_of(ExperimentRun(self._experiment.experiment_id, name, pair), prepared.side)
        folder = working_folder(prepared)
        profiles = None
        if self._request.profiles is not None:
            profiles = folder / self._fill_in(self._request.profiles, name, number)
        before = list_files(profiles) if profiles is not None else {}
        modules = self._folder / f"modules-{number}-{name}"
        ended = run_job(
            [self._fill_in(word, name, number) for word in self._request.command],
            folder=folder,
            environ=self._environment_of(prepared, labels, modules),
            logs=logs,
            limit_s=self._limit_of_run(pair),
            keep_open=self._lock_files,
        )
        self._check_end(ended, f"run {number} of the {name}", logs)
        if pair == 0:
            self._check_own_code(name, modules)
        if profiles is None:
            return self._ingest_log(Path(f"{stem}.log"), logs, ended, labels)
        written = list_profiles(survey_written(profiles, before, self._request.format))
        if not written:
            where = f"its output is in {logs.errors} and {logs.output}"
            raise UsageError(f"run {number} of the {name} wrote no profile in {profiles}", remedy=where)
        self._check_measure(PROFILE, logs)
        return self._ingest(written, labels, self._request.format)

    def _next_number(self) -> int:
        """Return the number of the next run, which none before it had, not even one that failed."""
        runs = stored.list_runs(self._store, self._experiment.experiment_id)
        started = [int(path.name.split("-")[1]) for path in self._folder.glob("run-*.out")]
        return 1 + max([len(runs), *started])

    def _check_own_code(self, name: str, modules: Path) -> None:
        """Raise UsageError where a side did not run its own code; keep that it did, where that is known."""
        other = self._prepared[CANDIDATE if name == BASELINE else BASELINE]
        if check_own_code(self._prepared[name], other, modules):
            self._keep(own_code=tuple(dict.fromkeys([*self._kept.own_code, name])))

    def _ingest_log(self, log: Path, logs: Logs, ended: JobEnd, labels: Labels) -> int:
        """Read what a run printed as a log, or its time where that is none; return the number of the run."""
        if self._experiment.measured_by != WALL and measuring.has_steps(logs.output):
            measuring.write_log_of_run(logs.output, log, labels)
            self._check_measure(LOG, logs)
            return self._ingest([log], labels, self._request.format)
        measuring.write_wall_time(log, ended.wall_ns, labels)
        self._check_measure(WALL, logs)
        return self._ingest([log], labels, "training_log")

    def _ingest(self, paths: Sequence[Path], labels: Labels, format: str | None) -> int:
        return measuring.ingest_run(self._store, paths, labels, self._settings, format, self._request.device)

    def _check_end(self, ended: JobEnd, run: str, logs: Logs) -> None:
        where = f"its output is in {logs.errors} and {logs.output}"
        if ended.code is None:
            raise UsageError(f"{run} was ended after {format_ns(ended.wall_ns)}: it took too long", remedy=where)
        if ended.code:
            raise UsageError(f"{run} ended with exit code {ended.code}", remedy=where)
        self._longest_ns = max(self._longest_ns, ended.wall_ns)

    def _check_measure(self, measured_by: str, logs: Logs) -> None:
        """Keep how runs are measured; UsageError where the runs before were measured otherwise."""
        known = self._experiment.measured_by
        if not known:
            self._change(measured_by=measured_by)
        elif known != measured_by:
            raise UsageError("a run printed no steps, as the runs before it did", remedy=f"see {logs.output}")

    def _limit_of_run(self, pair: int) -> float:
        if self._request.run_limit_s is not None:
            return self._request.run_limit_s
        if pair == 0 or not self._longest_ns:
            return _WARM_UP_S
        return max(_TIMES_LONGEST * self._longest_ns / NS_PER_S, _LEAST_RUN_S)

    def _fill_in(self, text: str, name: str, number: int) -> str:
        return text.replace(_SIDE, name).replace(_RUN, str(number))

    def _labels_of(self, place: ExperimentRun, side: Side) -> Labels:
        facts = environment.facts({**os.environ, **self._request.variables_of(side.name)}, None)
        if side.is_working_tree:
            facts["git_dirty"] = "yes"
        return Labels(place, self._request.workload, _commit_of(side), facts, environment.host() or None)

    def _environment_of(self, prepared: PreparedSide, labels: Labels, modules: Path) -> dict[str, str]:
        """Return the variables of a run: those of its side, and labels for its hooks, which deliver nothing."""
        name = prepared.side.name
        texts = {
            "version": name,
            "workload": labels.workload,
            "branch": labels.branch,
            "commit": labels.commit,
            "note": labels.note,
            "device": self._request.device,
            "deliver": "0",
        }
        own = {f"TRACKER_{key.upper()}": text for key, text in texts.items() if text}
        if labels.place.pair == 0:
            own[MODULES_VARIABLE] = str(modules)
        environ = {key: text for key, text in os.environ.items() if key not in _OF_THE_CALLER}
        return {**environment_of(prepared, environ), **self._request.variables_of(name), **own}

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
        log_ratios = log_ratios_of(measuring.list_pairs(self._store, self._experiment.experiment_id, self._measure))
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
