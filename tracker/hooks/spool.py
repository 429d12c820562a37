"""Profiles that wait for `tracker`, and the deliverer, a process of its own that hands them over.

A spool is a folder of entries, one small JSON file each, written whole or not at all. A job adds its entry once the
profile lies on disk and starts a deliverer: this file, run as a script, which calls `tracker ingest --spooled` in
tracker's own environment. That takes the entries, counts attempts, and removes what came in; what did not stays for
the next deliverer, `tracker ingest --spooled` or `tracker watch`.

`places` says where spools lie. Only their owner can read entries, unless the spool is shared: a folder whose group may
write into it and hands itself down.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import Any, Iterable, Iterator, Mapping

SUFFIX = ".entry.json"
FAILED = "failed"
"""Sub-folder of entries that were tried too often."""

TAKING, DELIVERING = ".taking", ".delivering"
"""Lock files: of who reads entries, and of the deliverer."""

WAITED_NS = 24 * 3600 * 10**9
"""A profile whose end did not come for so long is taken as it is."""

_SHARED = 0o2020
"""Of the mode of a folder: its group writes there, and what is made there is the group's."""

_LOG = "deliverer.log"
_LOG_BYTES = 1 << 20
_DEFAULT_TIMEOUT_S = 3600.0
_PATIENCE_S = 1800.0
"""How long a deliverer stays for profiles that are still being analysed."""

_LOOK_S = 1.0
_OF_THE_JOB = ("VIRTUAL_ENV", "LD_PRELOAD", "CONDA_PREFIX")
"""Variables of the job's environment, beside PYTHON*, that would break tracker's."""

_numbers = itertools.count()


def is_shared(place: str) -> bool:
    """Whether what is made in a folder belongs to its group as well, which may write there."""
    try:
        return os.stat(place).st_mode & _SHARED == _SHARED
    except OSError:
        return False


def settled(environ: Mapping[str, str]) -> dict[str, str]:
    """The same environment for a process that runs in another folder: no path starts at the current one."""
    found = dict(environ)
    for variable in ("TRACKER_DB", "TRACKER_CONFIG", "TRACKER_SPOOL"):
        text = found.get(variable, "")
        if text.startswith("sqlite:///") and text[10:11] not in ("", "/", ":"):
            found[variable] = "sqlite:///" + os.path.abspath(text[10:])
        elif text and "://" not in text:
            found[variable] = os.path.abspath(os.path.expanduser(text))
    return found


def host_name() -> str:
    """The name of this machine, '' where it has none."""
    try:
        return socket.gethostname()
    except OSError:
        return ""


def listed(place: str) -> list[str]:
    """The names in a folder; none where it cannot be read."""
    try:
        return os.listdir(place)
    except OSError:
        return []


def make(spool: str) -> None:
    """Make a folder of a spool, and those around it; what is made in a shared one is shared as that is.

    In those around it nobody can take away what is another one's, where that holds of the root.
    """
    missing = []
    while not os.path.isdir(spool):
        missing.append(spool)
        spool = os.path.dirname(spool)
    while missing:
        place = missing.pop()
        with suppress(FileExistsError):  # another job was faster
            os.mkdir(place, 0o700)
            around = os.stat(os.path.dirname(place)).st_mode
            if around & _SHARED == _SHARED:
                _share(place, 0o700 | around & (0o3070 if missing else 0o2070))


def _share(place: str, mode: int) -> None:
    """Give a folder its mode; OSError where a link stands in its place by now: the group may write around it."""
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _mode(spool: str) -> int:
    """Of the files in a spool."""
    return 0o660 if is_shared(spool) else 0o600


def add(spool: str, entry: Mapping[str, Any], *, now_ns: int) -> str:
    """Write an entry, whole or not at all; its path. Only its owner can read it, and the group of a shared spool."""
    make(spool)
    made = {"schema": 1, "host": host_name(), "queued_at_ns": now_ns, "attempts": 0}
    made.update(entry)
    # entries of one moment come in by their names: the tenth after the ninth
    path = os.path.join(spool, f"{now_ns:020}-{os.getpid()}-{next(_numbers):06}{SUFFIX}")
    replace(path, made)
    return path


def replace(path: str, content: Mapping[str, Any], mode: int | None = None) -> None:
    """Write JSON to `path`, as `write` does. `mode`: who may read it at most; default as suits the spool around it."""
    wanted = _mode(os.path.dirname(path)) if mode is None else mode
    write(path, json.dumps(content).encode("utf-8"), wanted, whatever_umask=mode is None)


def write(path: str, content: bytes | Iterable[bytes], mode: int, *, whatever_umask: bool) -> None:
    """Write a file: a reader, and whoever comes after a crash, sees all of it or what was there before.

    Others may write into the folder as well: nothing is written to, or changed, that they put there. A link at `path`
    is replaced, not followed.
    """
    draft = os.path.join(os.path.dirname(path), "." + os.urandom(8).hex())  # a longer name than `path` may be too long
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with open(handle, "wb") as file:
            if whatever_umask:
                with suppress(OSError):  # a file system without modes
                    os.fchmod(handle, mode)
            file.writelines((content,) if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(handle)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def entries(spool: str) -> list[str]:
    """The entries of a spool, oldest first."""
    names = sorted(listed(spool))
    return [os.path.join(spool, name) for name in names if name.endswith(SUFFIX) and name[0] != "."]


def content(entry: str) -> bytes:
    """What an entry holds. OSError where another one put a link, a pipe, which would be waited at, or a device; and
    for root where it is another user's, or may be: it could name what that user may not read.
    """
    with open(entry, "rb", opener=_as_it_is) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EPERM, "Not a file", entry)
        if os.geteuid() == 0 and (found.st_uid != 0 or not is_own(found)):
            raise OSError(errno.EPERM, f"root takes no entry of user {found.st_uid}: take it as that user", entry)
        return file.read()


def _as_it_is(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def spools(below: str) -> list[str]:
    """The folders at or below `below` that hold entries, but for what was given up."""
    found = []
    for parent, folders, _ in os.walk(below):
        folders[:] = sorted(name for name in folders if name != FAILED)
        if entries(parent):
            found.append(parent)
    return found


def is_ready(entry: Mapping[str, Any], now_ns: int) -> bool:
    """Whether the profile is complete: what its profiler leaves at the end is there, or will never be."""
    if not entry.get("wait_for") or os.path.exists(str(entry["wait_for"])):
        return True
    queued_ns = entry.get("queued_at_ns")
    return isinstance(queued_ns, int) and abs(now_ns - queued_ns) > WAITED_NS  # or the clock of the job was ahead


@contextmanager
def locked(spool: str, lock: str) -> Iterator[bool]:
    """True for one process at a time; the system lets go of the lock when that ends, however it does.

    A file system that knows no locks gives it to everybody: an entry that is taken twice is one run all the same.
    OSError where something that is no lock stands in its place.
    """
    handle = _opened(os.path.join(spool, lock), os.O_RDWR)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass
        yield True
    finally:
        os.close(handle)


def _opened(path: str, flags: int) -> int:
    """A file that stays in a spool, made where it is missing. OSError where another one put a link or a pipe there."""
    mode = _mode(os.path.dirname(path))
    # a pipe would be waited at for its other end
    handle = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, mode)
    found = os.fstat(handle)
    if not is_own(found):
        os.close(handle)
        raise OSError(errno.EPERM, "Not a file of this spool", path)
    if found.st_uid == os.geteuid():  # else another user's, who did this already
        with suppress(OSError):
            os.fchmod(handle, mode)  # whatever the umask
    return handle


def is_own(found: os.stat_result) -> bool:
    """Whether it is a file, and of no other name elsewhere."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1


def start(spool: str, environ: Mapping[str, str], *, wait_s: float = 0.2) -> None:
    """Start a deliverer of its own session, with nothing of the job but its user; it outlives the job.

    The shell between the two ends at once, so that the job gets no child that it has to wait for.
    """
    python = sys.executable if "python" in os.path.basename(sys.executable or "") else shutil.which("python3")
    if not python:
        raise OSError("no python3 to start the deliverer with")
    log = os.path.join(spool, _LOG)
    if os.path.exists(log) and os.path.getsize(log) > _LOG_BYTES:
        os.replace(log, log + ".1")
    with open(_opened(log, os.O_WRONLY | os.O_APPEND), "ab") as out:
        started = subprocess.Popen(
            ["/bin/sh", "-c", '"$@" &', "sh", python, "-E", "-s", os.path.abspath(__file__), spool],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            env=cleaned(environ),
            start_new_session=True,
        )
    with suppress(subprocess.TimeoutExpired):  # a machine under load; nobody waits for it
        started.wait(timeout=wait_s)


def cleaned(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what belongs to the job's own Python, and for any folder."""
    kept = settled(environ).items()
    return {name: value for name, value in kept if not name.startswith("PYTHON") and name not in _OF_THE_JOB}


def deliver(spool: str, environ: Mapping[str, str]) -> None:
    """Have tracker take the entries of `spool`: once each, and those that come meanwhile; one deliverer at a time.

    Stays for profiles that are still being analysed, up to half an hour.
    """
    seen: set[str] = set()
    until = time.monotonic() + _PATIENCE_S
    while True:
        with locked(spool, DELIVERING) as mine:
            if not mine:
                return
            fresh = [path for path in entries(spool) if path not in seen and _is_ready(path)]
            if fresh:
                seen.update(fresh)
                _call(spool, environ)
        # who added an entry while the lock was held found it held, and went: so look again
        left = [path for path in entries(spool) if path not in seen]
        if not left or (time.monotonic() > until and not any(map(_is_ready, left))):
            return
        if not any(map(_is_ready, left)):
            time.sleep(_LOOK_S)


def _is_ready(path: str) -> bool:
    try:
        entry = json.loads(content(path).decode("utf-8"))
    except (OSError, ValueError):  # taken meanwhile; or broken, which tracker will say
        return True
    return not isinstance(entry, dict) or is_ready(entry, time.time_ns())


def _call(spool: str, environ: Mapping[str, str]) -> None:
    """Run `tracker ingest --spooled`; a tracker that hangs is ended, with all that it started."""
    command = environ.get("TRACKER_COMMAND") or "tracker"
    try:
        words = [*shlex.split(command), "ingest", "--spooled", spool]
        timeout_s = float(environ.get("TRACKER_TIMEOUT") or _DEFAULT_TIMEOUT_S)
        called = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=dict(environ), start_new_session=True)
    except (OSError, ValueError) as error:
        _log(f"{command} could not be started ({error}); the profiles stay in {spool}")
        return
    try:
        code = called.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):  # it ended just now
                os.killpg(called.pid, number)
            try:
                called.wait(timeout=5)
                break
            except subprocess.TimeoutExpired:
                continue
        _log(f"{command} did not end within {timeout_s:g} s and was ended; what it had not read stays")
        return
    if code:
        _log(f"{command} ended with {code}; what it could not read stays in {spool}")


def _log(text: str) -> None:
    sys.stderr.write("{} {}\n".format(time.strftime("%Y-%m-%dT%H:%M:%S"), text))
    sys.stderr.flush()


if __name__ == "__main__":
    os.closerange(3, 4096)  # what a library of the job left open: a pipe of it must not stay open for hours
    os.nice(10)
    deliver(sys.argv[1], os.environ)
