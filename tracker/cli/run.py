"""`tracker run`: a job with its labels, and then the profiles that it wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec.structs import asdict, replace

from tracker import config, intake
from tracker.api.arguments import opened
from tracker.cli.options import Database, Labels
from tracker.cli.output import note
from tracker.errors import SourceError, UsageError
from tracker.hooks import branch, environment
from tracker.intake.written import list_files, list_profiles, survey_written
from tracker.limits.touch import guarded
from tracker.reports.commands import command
from tracker.results.options import InputFormat, Option

if TYPE_CHECKING:
    from tracker.intake import IngestResult, Sidecar

_NOT_FOUND: Final = 127
_NOT_STARTED: Final = 126
_SIGNALLED: Final = 128
_PASSED_ON: Final = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")
_GIT_S: Final = 10.0
_LOOK_S: Final = 0.05
"""Between two looks at the job. In a wait without end a signal that another thread receives would not be passed on."""
_FROM_KEYS: Final = (signal.SIGINT, signal.SIGQUIT)


def run(
    command: Annotated[list[str], Option("The job and its arguments.", "COMMAND...", positional=True)],
    profiles: Annotated[
        Path, Option("Folder of the profiles; what is new or changed there at the end is read.", "FOLDER")
    ],
    labels: Labels,
    format: InputFormat = None,
    db: Database = None,
) -> None:
    """Run a job, then ingest the profiles that it wrote to a folder.

    The job keeps its streams, signals and exit code, whatever happens to its profiles: what cannot be read is reported
    on stderr and waits for tracker ingest --spooled. Without --version, it is git describe --always --dirty in the
    current folder.

    \b
    Example:
      tracker run --profiles ./prof --workload gpt -- python train.py --epochs 1
    """
    job = Job(profiles, intake.Sidecar(**asdict(labels)), format, db)
    try:
        code = run_child(command, {**os.environ, **job.variables()})
    except FileNotFoundError as error:
        note(f"tracker: {command[0]}: {error.strerror}")
        raise typer.Exit(_NOT_FOUND) from error
    except (OSError, ValueError) as error:
        note(f"tracker: {command[0]}: cannot be started ({getattr(error, 'strerror', None) or error})")
        raise typer.Exit(_NOT_STARTED) from error
    if code:
        number = code - _SIGNALLED
        by = f": signal {number}, {signal.strsignal(number)}" if 0 < number < signal.NSIG else ""
        note(f"note: the job ended with exit code {code}{by}")
    try:
        with guarded():
            job.read_profiles()
    except Exception as error:  # noqa: BLE001 the job has its own end, whatever happens to its profiles
        note(f"tracker: the profiles in {profiles} are not read ({error})")
    raise typer.Exit(code)


def run_child(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command with the streams of this process and the signals sent to it; return its exit code.

    A command that a signal ended has 128 and its number, as in a shell. Raises OSError where it cannot be started.
    """
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def receive(number: int, frame: FrameType | None = None) -> None:
        if child is None:  # it is not started yet
            early.append(number)
        # what is typed at a terminal goes to all processes in its foreground; the child has it already
        elif not (number in _FROM_KEYS and _in_foreground()):
            child.send_signal(number)

    # those that the caller ignores, as under nohup, stay so
    numbers = [getattr(signal, name) for name in _PASSED_ON]
    before = {one: signal.signal(one, receive) for one in numbers if signal.getsignal(one) is not signal.SIG_IGN}
    try:
        child = subprocess.Popen(words, env=dict(environ))
        for number in early:
            receive(number)
        while (code := child.poll()) is None:
            time.sleep(_LOOK_S)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return _SIGNALLED - code if code < 0 else code


def _in_foreground() -> bool:
    """Whether this process is in the foreground of its terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


class Job:
    """A job from before its start: the files in its folder, its labels by options, and those by git, read meanwhile."""

    def __init__(self, profiles: Path, labels: Sidecar, format: str | None, db: str | None) -> None:
        self.profiles, self.labels, self.format, self.db = profiles, labels, format, db
        self._before = list_files(profiles)
        self._git: dict[str, str] = {}
        self._branch: dict[str, Any] = {}
        folder = os.getcwd()
        self._reading_git = threading.Thread(target=self._ask_git, args=[folder], daemon=True)
        self._reading_git.start()

    def _ask_git(self, folder: str) -> None:
        self._git = environment.capture_git([folder], _GIT_S)
        main = None
        with suppress(SourceError, UsageError):  # the profiles are queued even under wrong settings
            main = config.load(self.db).main_branch
        self._branch = branch.capture_branch([folder], os.environ, _GIT_S, main)

    def variables(self) -> dict[str, str]:
        """Environment variables for hooks inside of the job: the same labels, and no delivery of their own."""
        from tracker.hooks.job import joined

        texts = {
            name: getattr(self.labels, name) for name in ("version", "workload", "branch", "commit", "note", "device")
        }
        if self.labels.expect_ranks is not None:
            texts["expect_ranks"] = str(self.labels.expect_ranks)
        for name in ("configuration", "tags"):
            texts[name] = joined(getattr(self.labels, name)) or None
        if self.db:
            texts["db"] = self.db
        texts["deliver"] = os.environ.get("TRACKER_DELIVER", "0")
        return {f"TRACKER_{name.upper()}": text for name, text in texts.items() if text}

    def read_profiles(self) -> None:
        """Ingest what the job wrote. It is queued first, so that nothing is lost if this process is killed."""
        from tracker.readers import misnamed

        looks = survey_written(self.profiles, self._before, self.format)
        found = list_profiles(looks)
        for warning in filter(None, [misnamed(look.path, self.format) for look in looks if look.path not in found]):
            note(f"warning: {warning}")
        if not found:
            note(f"warning: the job wrote no new profile in {self.profiles}")
            return
        otherwise = self._environment()
        entries = self._queue(found, otherwise)
        try:
            left = self._ingest(found, otherwise)
        except Exception as error:  # noqa: BLE001 such as a database that does not answer
            note(f"tracker: {error}")
            left = found
        for path in entries.keys() - set(left):
            entries[path].unlink(missing_ok=True)
        if left and entries:
            spool = str(next(iter(entries.values())).parent)
            later = command("tracker", "ingest", "--spooled", spool, *(("--db", self.db) if self.db else ()))
            for name in ("version", "workload"):
                if not (getattr(self.labels, name) or getattr(otherwise, name)):
                    later += f" --{name} {name.upper()}"
            note(f"note: not ingested yet: {later}")

    def _environment(self) -> Sidecar:
        """Labels from outside of the job: commit, branch, host, job id and environment variables."""
        self._reading_git.join(_GIT_S)
        git = dict(self._git)
        version = os.environ.get("TRACKER_VERSION") or git.get("version")
        workload = os.environ.get("TRACKER_WORKLOAD") or None
        with suppress(SourceError, UsageError):  # the profiles are queued even under wrong settings
            workload = workload or config.load(self.db).workload
        git.pop("version", None)
        facts = {**environment.facts(os.environ, None), **git}
        return intake.Sidecar(
            version=version,
            workload=workload,
            branch=os.environ.get("TRACKER_BRANCH") or self._branch.get("branch"),
            main_branch=self._branch.get("main_branch"),
            main_commits=self._branch.get("main_commits", []),
            commit=git.get("git_commit"),
            host=environment.host() or None,
            facts=facts,
        )

    def _queue(self, found: Sequence[Path], otherwise: Sidecar) -> dict[Path, Path]:
        """Path -> its entry in the spool; none where the spool cannot be written."""
        import msgspec

        from tracker.hooks import places, spool

        environ: Mapping[str, str] = {**os.environ, "TRACKER_DB": self.db} if self.db else os.environ
        labels = {"said": msgspec.to_builtins(self.labels), "otherwise": msgspec.to_builtins(otherwise)}
        queued: dict[Path, Path] = {}
        try:
            for path in found:
                entry: dict[str, Any] = {"profile": str(path.absolute()), **places.database(environ), **labels}
                queued[path] = Path(spool.add(places.folder(environ), entry, now_ns=time.time_ns()))
        except OSError as error:
            note(f"warning: {places.folder(environ)} cannot be written ({error.strerror}): no profile is queued there")
        return queued

    def _ingest(self, found: list[Path], otherwise: Sidecar) -> list[Path]:
        """Ingest all profiles together, else one by one; return those that failed."""
        from tracker.cli.ingest import branch_hints, run_lines, warnings_of

        settings = config.load(self.db)
        read = partial(
            intake.ingest_of_job,
            said=replace(self.labels, main_branch=settings.main_branch),
            otherwise=otherwise,
            format=self.format,
            max_bytes=settings.max_bytes,
            loaders=settings.loaders,
        )
        results: list[IngestResult] = []
        left: list[Path] = []
        with opened(settings, create=True, late=True) as store:
            if len(found) > 1:
                with suppress(SourceError, UsageError):  # one by one shows which
                    results = read(store, found)
                    found = []
            for path in found:
                try:
                    results += read(store, [path])
                except (SourceError, UsageError) as error:
                    note(f"tracker: {error}")
                    left.append(path)
            lines = [*run_lines(store, results), *(f"note: {text}" for text in branch_hints(store, results))]
        for line in [*(f"warning: {text}" for text in warnings_of(results)), *lines]:
            note(line)  # stdout is the job's
        return left
