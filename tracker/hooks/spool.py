"""Profiles that wait for `tracker`, and the deliverer, a process of its own that hands them over.

A spool is a folder of entries, one small JSON file each, written whole or not at all. A job adds its entry once the
profile lies on disk and starts a deliverer: this file, run as a script, which calls `tracker ingest --spooled` in
tracker's own environment. That takes the entries, counts attempts, and removes what came in; what did not stays for
the next deliverer, `tracker ingest --spooled` or `tracker watch`.

ROOT/HOST/NAME/: the spool of the jobs of one machine that send to one database. ROOT: TRACKER_SPOOL, default
`tracker/spool` in the user's state folder. NAME: `default`, or a digest of TRACKER_DB and TRACKER_CONFIG where these
are set; so entries never end up in another database than the one that their job named.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import Any, Iterator, Mapping

SUFFIX = ".entry.json"
FAILED = "failed"
"""Sub-folder of entries that were tried too often."""

TAKING, DELIVERING = ".taking", ".delivering"
"""Lock files: of who reads entries, and of the deliverer."""

_LOG = "deliverer.log"
_LOG_BYTES = 1 << 20
_DEFAULT_TIMEOUT_S = 3600.0
_PATIENCE_S = 1800.0
"""How long a deliverer stays for profiles that are still being analysed."""

_LOOK_S = 1.0
_OF_THE_JOB = ("VIRTUAL_ENV", "LD_PRELOAD", "CONDA_PREFIX")
"""Variables of the job's environment, beside PYTHON*, that would break tracker's."""

_numbers = itertools.count()


def root(environ: Mapping[str, str]) -> str:
    """The folder that holds the spools of all machines."""
    if environ.get("TRACKER_SPOOL"):
        return os.path.abspath(os.path.expanduser(environ["TRACKER_SPOOL"]))
    state = environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "tracker", "spool")


def name(environ: Mapping[str, str]) -> str:
    """What the spools of this database are called."""
    named = [environ.get(variable, "") for variable in ("TRACKER_DB", "TRACKER_CONFIG")]
    named = [text if "://" in text or not text else os.path.abspath(os.path.expanduser(text)) for text in named]
    return hashlib.sha256("\n".join(named).encode()).hexdigest()[:12] if any(named) else "default"


def folder(environ: Mapping[str, str]) -> str:
    """The spool of this machine and database; there or not."""
    host = "".join(char if char.isalnum() or char in "-_." else "_" for char in host_name())
    return os.path.join(root(environ), host.lstrip(".") or "host", name(environ))


def host_name() -> str:
    """The name of this machine, '' where it has none."""
    try:
        return socket.gethostname()
    except OSError:
        return ""


def of_all_machines(environ: Mapping[str, str]) -> list[str]:
    """The spools of this database, of all machines that share the root."""
    try:
        hosts = sorted(os.listdir(root(environ)))
    except OSError:
        return []
    found = [os.path.join(root(environ), host, name(environ)) for host in hosts]
    return [path for path in found if os.path.isdir(path)]


def add(spool: str, entry: Mapping[str, Any], *, now_ns: int) -> str:
    """Write an entry, whole or not at all; its path. Only its owner can read it."""
    os.makedirs(spool, mode=0o700, exist_ok=True)
    made = {"schema": 1, "host": host_name(), "queued_at_ns": now_ns, "attempts": 0}
    made.update(entry)
    path = os.path.join(spool, f"{now_ns:020}-{os.getpid()}-{next(_numbers)}{SUFFIX}")
    replace(path, made)
    return path


def replace(path: str, content: Mapping[str, Any], mode: int = 0o600) -> None:
    """Write JSON to `path`: a reader, and whoever comes after a crash, sees all of it or what was there before."""
    draft = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def entries(spool: str) -> list[str]:
    """The entries of a spool, oldest first."""
    try:
        names = os.listdir(spool)
    except OSError:
        return []
    return [os.path.join(spool, name) for name in sorted(names) if name.endswith(SUFFIX) and name[0] != "."]


def spools(below: str) -> list[str]:
    """The folders at or below `below` that hold entries, but for what was given up."""
    found = []
    for parent, folders, _ in os.walk(below):
        folders[:] = sorted(name for name in folders if name != FAILED)
        if entries(parent):
            found.append(parent)
    return found


def is_ready(entry: Mapping[str, Any]) -> bool:
    """Whether the profile is complete: what its profiler leaves at the end is there."""
    return not entry.get("wait_for") or os.path.exists(str(entry["wait_for"]))


@contextmanager
def locked(spool: str, lock: str) -> Iterator[bool]:
    """True for one process at a time; the system lets go of the lock when that ends, however it does.

    A file system that knows no locks gives it to everybody: an entry that is taken twice is one run all the same.
    """
    handle = os.open(os.path.join(spool, lock), os.O_RDWR | os.O_CREAT, 0o600)
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
    with open(log, "ab") as out:
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
    """The environment without what belongs to the job's own Python."""
    return {name: value for name, value in environ.items() if not name.startswith("PYTHON") and name not in _OF_THE_JOB}


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
            fresh = [path for path in entries(spool) if path not in seen and is_ready(_read(path))]
            if fresh:
                seen.update(fresh)
                _call(spool, environ)
        # who added an entry while the lock was held found it held, and went: so look again
        left = [path for path in entries(spool) if path not in seen]
        if not left or (time.monotonic() > until and not any(is_ready(_read(path)) for path in left)):
            return
        if not any(is_ready(_read(path)) for path in left):
            time.sleep(_LOOK_S)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):  # taken meanwhile; or broken, which tracker will say
        return {}
    return content if isinstance(content, dict) else {}


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
