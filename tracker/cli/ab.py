"""`tracker ab`: two builds by turns on this machine, until their pairs decide."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tracker import config
from tracker.api.arguments import opened
from tracker.api.edits import age
from tracker.cli.options import Database, Top
from tracker.cli.output import aligned, emit, note, plan, progress
from tracker.cli.report_options import Page
from tracker.errors import EXIT_FINDINGS, EXIT_OK, EXIT_TOO_LITTLE_DATA, StoreError, UsageError
from tracker.experiment import conducting
from tracker.experiment.conducting import InterruptedExperiment, Request
from tracker.experiment.sources import expect_runs, of_finding, with_commits
from tracker.profile.experiments import BASELINE, CANDIDATE, LIMIT_S, MOST_RUNS
from tracker.reports.commands import command as command_line
from tracker.results.experiments import Experiment
from tracker.results.options import Option
from tracker.units import NS_PER_S, counted, format_age

if TYPE_CHECKING:
    from tracker.store import Store

_EXIT_CODES: Final = {"slower": EXIT_FINDINGS, "faster": EXIT_OK, "no difference": EXIT_OK}
_RUNS: Final = "Runs"
_SIDES: Final = "Sides"


def _read_ratio(text: str, option: str) -> float:
    """Return `5%` or `0.05` as a ratio; UsageError for what is none between 0 and 1."""
    number = text.strip()
    try:
        ratio = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        ratio = -1.0
    if not 0 < ratio < 1:
        raise UsageError(f"{option} {text!r} is no change", remedy=f"write it like {option} 5%")
    return ratio


def _read_seconds(text: str, option: str) -> float:
    """Return `2h` in seconds."""
    return age(text, option) / NS_PER_S


def read_experiment_number(text: str) -> int:
    """Return the number of an experiment that is named `E-3`, `e3` or `3`; UsageError for anything else."""
    number = text.strip().upper().removeprefix("E").removeprefix("-")
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise UsageError(f"{text!r} names no experiment", remedy="write it like E-3; tracker experiments lists them")
    return int(number)


def _read_variables(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return NAME=VALUE by name; UsageError for anything else, which may be a secret and is not shown."""
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"{option} is not NAME=VALUE", remedy=f"write it like {option} NCCL_ALGO=Tree")
        found[name.strip()] = value
    return found


def _read_resumed(text: str, option: str) -> int:
    return read_experiment_number(text)


def ab(
    words: Annotated[
        list[str],
        Option(
            "Two revisions of git, folders, or versions whose commits are stored; behind -- the command that trains. "
            "In it, {side} is baseline or candidate, and {run} the number of the run.",
            "[BASELINE CANDIDATE] -- COMMAND...",
            positional=True,
        ),
    ],
    *,
    profiles: Annotated[
        str | None,
        Option(
            "The folder into which the command writes its profiles, from where it runs. Default: what it prints is "
            "read as a log; without steps in it, the time of the command counts.",
            "FOLDER",
            group=_RUNS,
        ),
    ] = None,
    setup: Annotated[
        str | None,
        Option(
            "Builds a side, once, in its folder, such as 'pip install --no-deps --target . .'. Default: nothing.",
            "COMMAND",
            group=_SIDES,
        ),
    ] = None,
    links: Annotated[
        tuple[str, ...],
        Option(
            "What git ignores and both sides share, such as data; repeatable. Default: nothing.",
            "PATH",
            name="--link",
            group=_SIDES,
        ),
    ] = (),
    env_baseline: Annotated[
        tuple[str, ...],
        Option("A variable of the baseline alone; repeatable. Default: none.", "NAME=VALUE", group=_SIDES),
    ] = (),
    env_candidate: Annotated[
        tuple[str, ...],
        Option("A variable of the candidate alone; repeatable. Default: none.", "NAME=VALUE", group=_SIDES),
    ] = (),
    is_dirty: Annotated[
        bool,
        Option(
            "The candidate HEAD is the working tree, with what is not committed. Default: such a tree is refused.",
            name="--dirty",
            group=_SIDES,
        ),
    ] = False,
    finding: Annotated[
        int | None,
        Option(
            "Take both sides from this finding, by their commits. Default: they are named.", "N", group=_SIDES, least=1
        ),
    ] = None,
    within: Annotated[
        float | None,
        Option(
            "The smallest change of the step that matters. Default: that of the workload (tracker thresholds), "
            "else 5 % on the CPU and 2 % on a device.",
            "PERCENT",
            group=_RUNS,
            read=_read_ratio,
        ),
    ] = None,
    most_runs: Annotated[
        int,
        Option("At most N runs, both sides together, without the warm-ups.", "N", name="--most", group=_RUNS, least=4),
    ] = MOST_RUNS,
    limit_s: Annotated[
        float | None,
        Option(
            "No pair is begun after this time, such as 30m. Default: 2h.",
            "TIME",
            name="--time",
            group=_RUNS,
            read=_read_seconds,
        ),
    ] = None,
    run_limit_s: Annotated[
        float | None,
        Option(
            "A run that takes longer ends the experiment. Default: three times the longest before it, at least "
            "10m; 1h for a warm-up.",
            "TIME",
            name="--run-time",
            group=_RUNS,
            read=_read_seconds,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        Option(
            "Of the order of the sides in each pair. Default: a new one, which is printed.", "N", group=_RUNS, least=0
        ),
    ] = None,
    resume: Annotated[
        int | None,
        Option(
            "Go on with this experiment; the command is given again. Default: a new one.",
            "E-N",
            group=_RUNS,
            read=_read_resumed,
        ),
    ] = None,
    dry_run: Annotated[
        bool, Option("Only say what would be run, and how often. Default: run it.", group=_RUNS)
    ] = False,
    workload: Annotated[
        str | None,
        Option(
            "The training job, whose runs say how noisy it is. Default: what its profiles state, else "
            "TRACKER_WORKLOAD, else the settings file.",
            "NAME",
            group=_RUNS,
            offers="workload",
        ),
    ] = None,
    device: Annotated[
        str | None, Option("The hardware model. Default: from the profile.", "MODEL", group=_RUNS)
    ] = None,
    input_format: Annotated[
        str | None, Option("The format of the profiles. Default: recognised.", "NAME", group=_RUNS)
    ] = None,
    top: Top = None,
    page: Page,
    db: Database = None,
) -> None:
    """Run two builds by turns on this machine, and say whether the candidate is slower.

    Pairs of runs, each in random order, until they decide: slower (exit code 1), faster, or no difference that matters
    (0); 4 where they do not. A revision runs in a clone of its own, and nothing is written into the repository; a
    folder runs where it is. The runs are of no history, board or finding. What is run is stored nowhere, since a
    command line may hold secrets.

    \b
    Example:
      tracker ab main HEAD --profiles prof -- python train.py --steps 20
      tracker ab --finding 12 -- python train.py --steps 20
      tracker ab HEAD HEAD --env-candidate NCCL_ALGO=Tree -- torchrun --nproc-per-node 8 train.py
      tracker ab --resume E-3 -- python train.py --steps 20
    """
    delivery = plan(page, "ab", "experiment")
    settings = config.load(db)
    sides, command = _split_words(words, with_sides=finding is None and resume is None)
    request = Request(
        command=tuple(command),
        baseline=sides[0] if sides else "",
        candidate=sides[1] if sides else "",
        started_in=Path.cwd(),
        profiles=profiles,
        setup=setup,
        links=links,
        variables={
            BASELINE: _read_variables(env_baseline, "--env-baseline"),
            CANDIDATE: _read_variables(env_candidate, "--env-candidate"),
        },
        is_dirty=is_dirty,
        within=within,
        most_runs=most_runs,
        limit_s=LIMIT_S if limit_s is None else limit_s,
        run_limit_s=run_limit_s,
        seed=seed,
        workload=workload or os.environ.get("TRACKER_WORKLOAD") or settings.workload,
        format=input_format,
        device=device,
        finding_id=finding,
    )
    if dry_run and resume is not None:
        raise UsageError("--dry-run with --resume", remedy="tracker experiments show has what is known of it")
    if dry_run:
        _show_plan(request, settings)
        return
    with opened(settings, create=True, late=True) as store, _interruptible(), progress(of_bytes=False) as report:
        try:
            if resume is not None:
                found = conducting.resume(store, resume, request, settings, tell=note, on_progress=report)
            else:
                found = conducting.conduct(store, _named(store, request), settings, tell=note, on_progress=report)
        except InterruptedExperiment as interrupt:
            note(f"interrupted; tracker ab --resume {interrupt.experiment.name} -- COMMAND goes on")
            found = conducting.show(store, interrupt.experiment.experiment_id)
    delivery.deliver(found, limit=top)
    raise typer.Exit(_exit_code(found))


def _split_words(words: list[str], *, with_sides: bool) -> tuple[list[str], list[str]]:
    """Return the sides, and the command behind `--`. `with_sides`: whether there must be two, or none."""
    behind = len(sys.argv) - sys.argv.index("--") - 1 if "--" in sys.argv else 0
    sides, command = words[: len(words) - behind], words[len(words) - behind :]
    wanted = 2 if with_sides else 0
    if not command or len(sides) != wanted:
        needs = "two sides, and a command behind --" if with_sides else "a command behind --, and no sides"
        example = "main HEAD -- python train.py" if with_sides else "--finding 12 -- python train.py"
        raise UsageError(f"tracker ab needs {needs}", remedy=f"write it like tracker ab {example}")
    return sides, command


def _named(store: Store, request: Request) -> Request:
    """Return the request with sides that git knows."""
    if request.finding_id is not None:
        return of_finding(store, request, request.finding_id)
    return with_commits(store, request)


def _show_plan(request: Request, settings: config.Settings) -> None:
    """Print what would be run, and how often."""
    named = request
    try:
        with opened(settings, read_only=True) as store:
            named = _named(store, request)
    except StoreError:
        if request.finding_id is not None:
            raise
    lines = []
    for side in conducting.find_sides_of(named):
        own = named.variables_of(side.name)
        words = [word.replace("{side}", side.name) for word in named.command]
        lines.append((side.name, f"{side.described}  {side.folder or 'in a clone of its own'}"))
        lines.append(("  runs", command_line(*(f"{name}=..." for name in own), *words)))
    if named.setup:
        lines.append(("setup", f"{named.setup}, once a side"))
    read = f"profiles in {named.profiles}" if named.profiles else "what the command prints, else its time"
    lines.append(("read", read))
    limit = f"within {100 * named.within:g} %" if named.within else "within the limit of the workload"
    most = counted(named.most_runs, "run")
    lines.append(("pairs", f"{limit}, at most {most} and {format_age(int(named.limit_s * NS_PER_S))}"))
    lines.append(("expected", _describe_expected(named, settings)))
    emit("\n".join(aligned(lines)))


def _describe_expected(request: Request, settings: config.Settings) -> str:
    """Return how many runs are expected, where one track of the workload says how noisy they are."""
    expected = None
    try:
        with opened(settings, read_only=True) as store:
            expected = expect_runs(store, request)
    except StoreError:
        pass
    if expected is None:
        return "known after the warm-up, by the noise of the runs before"
    return f"about {counted(expected.runs, 'run')} and two warm-ups, by the noise of {expected.track}"


def _exit_code(found: Experiment) -> int:
    return _EXIT_CODES.get(found.experiment.outcome, EXIT_TOO_LITTLE_DATA)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let a signal that ends this process end the running command first, as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, stop) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
