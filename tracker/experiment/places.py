"""Where experiments keep their clones and logs, and who has the devices of this machine."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from tracker import config
from tracker.errors import SourceError, UsageError
from tracker.store.experiments import StoredExperiment

_VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
"""Variables that say which devices a command sees; the first that is set counts."""

_LONGEST_OWNER: Final = 200


def folder_of_experiments() -> Path:
    """Return the folder below which each experiment has its own."""
    return config.cache_folder() / "experiments"


def folder_of(experiment: StoredExperiment) -> Path:
    """Return the folder of an experiment; two databases on one machine never share one."""
    return folder_of_experiments() / f"{experiment.name}-{experiment.started_at_ns}"


def devices_of(*environs: Mapping[str, str]) -> str:
    """Return which devices commands see, as the variables of each say it; "" for all.

    >>> devices_of({"CUDA_VISIBLE_DEVICES": "0, 1"}), devices_of({"CUDA_VISIBLE_DEVICES": "0"}, {}), devices_of({})
    ('0,1', '', '')
    """
    found: dict[str, None] = {}
    for environ in environs:
        named = next((environ[name] for name in _VISIBLE if environ.get(name, "").strip()), "")
        parts = [part.strip() for part in named.split(",") if part.strip()]
        if not parts:
            return ""
        found |= dict.fromkeys(parts)
    return ",".join(found)


@contextmanager
def hold_experiment(experiment: StoredExperiment) -> Iterator[None]:
    """Be the only process that runs an experiment, or removes it, for the time of a block. UsageError where another
    one runs it.
    """
    with _open_lock(folder_of(experiment) / "running.lock") as file:
        if not _has_taken(file, fcntl.LOCK_EX):
            raise UsageError(f"{experiment.name} is running", remedy="wait for its end, or interrupt it")
        yield


def is_running(experiment: StoredExperiment) -> bool:
    """Return whether a process of this machine runs an experiment."""
    path = folder_of(experiment) / "running.lock"
    if not path.exists():
        return False
    with _open_lock(path) as file:
        return not _has_taken(file, fcntl.LOCK_EX)


@contextmanager
def hold_devices(experiment: StoredExperiment, tell: Callable[[str], None]) -> Iterator[list[int]]:
    """Have the devices of an experiment for the time of a block, alone among the experiments of this machine; yield the
    open files that hold them, which also hold them for as long as a command of it has them open.

    `tell` gets a sentence that says for which other experiment it waits. SourceError where nothing can be written.
    """
    named = [part for part in experiment.devices.split(",") if part]
    # one that sees every device is in the way of all
    wanted = [("all", fcntl.LOCK_SH if named else fcntl.LOCK_EX), *((name, fcntl.LOCK_EX) for name in sorted(named))]
    with ExitStack() as stack:
        held = []
        for name, how in wanted:
            file = stack.enter_context(_open_lock(_device_lock(experiment, name)))
            if not _has_taken(file, how):
                file.seek(0)
                owner = file.read(_LONGEST_OWNER).strip() or "another experiment"
                tell(f"waiting for {owner}, or what its command left running, for the devices")
                fcntl.flock(file, how)
            held.append(file)
        for file in held:
            _write_owner(file, experiment)
        # a file that is closed holds nothing, unless a command of this experiment still runs
        yield [file.fileno() for file in held]


def _device_lock(experiment: StoredExperiment, name: str) -> Path:
    # the names of devices are of a variable, and may be any text; several hosts may share a folder
    words = f"{experiment.host}-{name}"
    return folder_of_experiments() / f"device-{''.join(sign if sign.isalnum() else '_' for sign in words)}.lock"


def _open_lock(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        raise _unusable(path, error) from error


def _has_taken(file: IO[str], how: int) -> bool:
    """Lock a file if nobody else has it; return whether it is locked now."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # a file system without locks
        raise _unusable(Path(file.name), error) from error
    return True


def _unusable(path: Path, error: OSError) -> SourceError:
    return SourceError(
        path, "", f"cannot be written or locked ({error.strerror})", remedy="name another folder with TRACKER_CACHE"
    )


def _write_owner(file: IO[str], experiment: StoredExperiment) -> None:
    # several may share the file of all devices: the last of them is named
    with suppress(OSError):
        file.seek(0)
        file.truncate()
        file.write(f"{experiment.name}\n")
        file.flush()
