"""A job that `tracker run` wraps: what lay in its folder, what is said of it, and the profiles that it leaves."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracker.errors import SourceError, UsageError

if TYPE_CHECKING:
    from tracker.intake import IngestResult, Sidecar
    from tracker.readers import Seen

_GIT_S: Final = 10.0


@dataclass(slots=True)
class Job:
    """A job from before its start: what lay in its folder, what is said of it, and what git says meanwhile."""

    profiles: Path
    said: Sidecar
    format: str | None
    db: str | None
    _before: dict[str, tuple[int, ...]] = field(init=False)
    _git: dict[str, str] = field(default_factory=dict)
    _asking: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._before = _files(self.profiles)
        self._asking = threading.Thread(target=self._ask_git, args=(os.getcwd(),), daemon=True)
        self._asking.start()

    def _ask_git(self, folder: str) -> None:
        from tracker.hooks import environment

        self._git.update(environment.capture_git([folder], _GIT_S))

    def variables(self) -> dict[str, str]:
        """What hooks inside of the job must know: to say the same of its profiles, and to leave delivering to this."""
        from tracker.hooks.job import joined

        texts = {name: getattr(self.said, name) for name in ("version", "workload", "commit", "note", "device")}
        if self.said.expect_ranks is not None:
            texts["expect_ranks"] = str(self.said.expect_ranks)
        for name in ("configuration", "tags"):
            texts[name] = joined(getattr(self.said, name)) or None
        if self.db:
            texts["db"] = self.db
        texts["deliver"] = os.environ.get("TRACKER_DELIVER", "0")
        return {f"TRACKER_{name.upper()}": text for name, text in texts.items() if text}

    def read_profiles(self) -> None:
        """Ingest what the job left: first it is queued, so that nothing is lost if this is killed meanwhile."""
        from tracker.cli._output import tell
        from tracker.readers import misnamed

        looks = self._new()
        found = list(dict.fromkeys(look.path for look in looks if look.claims or look.problem))
        for warning in filter(None, [misnamed(look.path, self.format) for look in looks if look.path not in found]):
            tell(f"warning: {warning}")
        if not found:
            tell(f"warning: the job left no new profile in {self.profiles}")
            return
        otherwise = self._environment()
        entries = self._queue(found, otherwise)
        try:
            left = self._ingest(found, otherwise)
        except Exception as error:  # noqa: BLE001 the database is away, say
            tell(f"tracker: {error}")
            left = found
        for path in entries.keys() - set(left):
            entries[path].unlink(missing_ok=True)
        if left and entries:
            spool = next(iter(entries.values())).parent
            tell(f"note: what is not read waits: {self._later(spool, otherwise)}")

    def _later(self, spool: Path, otherwise: Sidecar) -> str:
        """The command that takes what waits, with what neither the job nor git says of it."""
        from tracker.reports.commands import command

        said = {
            "--version VERSION": self.said.version or otherwise.version,
            "--workload WORKLOAD": self.said.workload or otherwise.workload,
        }
        unsaid = "".join(f" {words}" for words, value in said.items() if not value)
        to = ("--db", self.db) if self.db else ()
        return command("tracker", "ingest", "--spooled", str(spool), *to) + unsaid

    def _new(self) -> list[Seen]:
        """What is new in the folder or has changed, a profile or not: files, and folders with such files in them."""
        from tracker import readers

        if not self.profiles.exists():
            return []
        now = _files(self.profiles)
        changed = [Path(path) for path, state in now.items() if self._before.get(path) != state]
        around = {parent for path in changed for parent in (path, *path.parents)}
        return [look for look in readers.survey(self.profiles, self.format) if look.path in around]

    def _environment(self) -> Sidecar:
        """What is known of the job from outside: its commit, host, job id and variables."""
        from tracker.hooks import environment
        from tracker.intake import Sidecar

        self._asking.join(_GIT_S)
        git = dict(self._git)
        version = os.environ.get("TRACKER_VERSION") or git.get("version")
        workload = os.environ.get("TRACKER_WORKLOAD") or None
        git.pop("version", None)
        facts = {**environment.facts(os.environ, None), **git}
        return Sidecar(
            version=version,
            workload=workload,
            commit=git.get("git_commit"),
            host=environment.host() or None,
            facts=facts,
        )

    def _queue(self, found: Sequence[Path], otherwise: Sidecar) -> dict[Path, Path]:
        """An entry of the spool for each profile; without a spool that can be written, it goes on without."""
        import msgspec

        from tracker.cli._output import tell
        from tracker.hooks import places, spool

        environ: Mapping[str, str] = {**os.environ, "TRACKER_DB": self.db} if self.db else os.environ
        told = {"said": msgspec.to_builtins(self.said), "otherwise": msgspec.to_builtins(otherwise)}
        queued: dict[Path, Path] = {}
        try:
            for path in found:
                entry: dict[str, Any] = {"profile": str(path.absolute()), **places.database(environ), **told}
                queued[path] = Path(spool.add(places.folder(environ), entry, now_ns=time.time_ns()))
        except OSError as error:
            tell(f"warning: {places.folder(environ)} cannot be written ({error.strerror}): no profile is queued there")
        return queued

    def _ingest(self, found: list[Path], otherwise: Sidecar) -> list[Path]:
        """Ingest all profiles together, else one by one; those that could not be."""
        from tracker import config
        from tracker.cli import _store
        from tracker.cli._output import tell
        from tracker.intake import ingest_of_job

        settings = config.load(self.db)
        read = partial(
            ingest_of_job, said=self.said, otherwise=otherwise, format=self.format, max_bytes=settings.max_bytes
        )
        results: list[IngestResult] = []
        left: list[Path] = []
        with _store.writing(settings, create=True, late=True) as store:
            if len(found) > 1:
                with suppress(SourceError, UsageError):  # one by one it tells which
                    results = read(store, found)
                    found = []
            for path in found:
                try:
                    results += read(store, [path])
                except (SourceError, UsageError) as error:
                    tell(f"tracker: {error}")
                    left.append(path)
        _tell(results)
        return left


def _tell(results: Sequence[IngestResult]) -> None:
    """What `tracker ingest` says of runs; stdout is the job's."""
    from tracker.cli._ingested import names_of, warnings_of
    from tracker.cli._output import tell
    from tracker.cli.ingest import describe

    names = names_of(results)
    formats = {name for result in results for name in result.formats}
    for warning in warnings_of(results, names):
        tell(f"warning: {warning}")
    for result in results:
        tell(describe(result, names, formats))


def _files(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every file below `folder`, with what changes when it is written."""
    found: dict[str, tuple[int, ...]] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            try:
                state = os.stat(path)
            except OSError:  # gone meanwhile
                continue
            found[path] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found
