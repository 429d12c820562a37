"""Where experiments keep their clones and logs, and who has the devices of this machine."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from tracker.errors import SourceError
from tracker.store.experiments import StoredExperiment

_VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
"""Variables that say which devices a command sees; the first that is set counts."""


def folder_of_experiments() -> Path:
    """Return the folder below which each experiment has its own: TRACKER_CACHE, else that of the system for caches."""
    from platformdirs import user_cache_path

    named = os.environ.get("TRACKER_CACHE")
    return (Path(named) if named else user_cache_path("tracker", appauthor=False)) / "experiments"


def folder_of(experiment: StoredExperiment) -> Path:
    """Return the folder of an experiment; two databases on one machine never share one."""
    return folder_of_experiments() / f"{experiment.name}-{experiment.started_at_ns}"


def devices_of(environ: Mapping[str, str]) -> str:
    """Return which devices a command sees, as its variable says it; "" for all.

    >>> devices_of({"CUDA_VISIBLE_DEVICES": "0, 1"}), devices_of({})
    ('0,1', '')
    """
    named = next((environ[name] for name in _VISIBLE if environ.get(name, "").strip()), "")
    return ",".join(filter(None, (part.strip() for part in named.split(","))))


@contextmanager
def hold_devices(experiment: StoredExperiment, tell: Callable[[str], None]) -> Iterator[list[int]]:
    """Have the devices of an experiment for the time of a block, alone among the experiments of this machine; yield the
    open files that hold them, which also hold them for as long as a command of it has them open.

    `tell` gets a sentence that says for which other experiment it waits. SourceError where nothing can be written.
    """
    named = [part for part in experiment.devices.split(",") if part]
    # one that sees every device is in the way of all
    wanted = [("all", fcntl.LOCK_SH if named else fcntl.LOCK_EX), *((name, fcntl.LOCK_EX) for name in sorted(named))]
    held: list[IO[str]] = []
    try:
        for name, how in wanted:
            held.append(_open_lock(name))
            _take(held[-1], how, tell)
        for file in held:
            _write_owner(file, experiment)
        yield [file.fileno() for file in held]
    finally:
        for file in held:
            # a file that is closed holds nothing, unless a command of this experiment still runs
            file.close()


def _open_lock(name: str) -> IO[str]:
    folder = folder_of_experiments()
    # the names of devices are of a variable, and may be any text
    path = folder / f"device-{''.join(sign if sign.isalnum() else '_' for sign in name)}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        raise SourceError(
            path, "", f"cannot be written ({error.strerror})", remedy="name another folder with TRACKER_CACHE"
        ) from error


def _take(file: IO[str], how: int, tell: Callable[[str], None]) -> None:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read(200).strip() or "another experiment"
        tell(f"waiting for {owner}, which has devices that this experiment needs")
        fcntl.flock(file, how)


def _write_owner(file: IO[str], experiment: StoredExperiment) -> None:
    # several may share the file of all devices: the last of them is named
    with suppress(OSError):
        file.seek(0)
        file.truncate()
        file.write(f"{experiment.name} (process {os.getpid()})\n")
        file.flush()
