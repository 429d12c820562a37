"""A training job with a profiler: what it says of its profiles, and how they are handed over."""

from __future__ import annotations

import atexit
import functools
import os
import re
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Mapping, TypeVar

from . import branch, environment, machine, modules, places, spool
from .sidecar import sidecar_of

_TEXTS = ("version", "workload", "branch", "commit", "note", "device")
_PAIRS = {"configuration": "TRACKER_CONFIGURATION", "tags": "TRACKER_TAGS"}
_PART = re.compile(r"(?:\\[,\\]|[^,])+")
_SPECIAL, _ESCAPED = re.compile(r"[,\\]"), re.compile(r"\\([,\\])")
"""A comma that parts no pairs, and a backslash, stand behind a backslash."""

_OFF = ("0", "no", "off", "false")
_GIT_S = 10.0
_LAST_WAIT_S = 0.1
_warned: set[str] = set()

Action = TypeVar("Action", bound=Callable[..., Any])


def warn(text: str) -> None:
    """Say something on stderr, once."""
    if text not in _warned:
        _warned.add(text)
        with suppress(Exception):  # a job without a stderr
            sys.stderr.write("tracker: " + text + "\n")


def harmless(action: Action) -> Action:
    """Return `action` with its errors caught: the job goes on without what failed, and one line on stderr says so."""

    @functools.wraps(action)
    def guarded(*args: Any, **options: Any) -> Any:
        try:
            return action(*args, **options)
        except Exception as error:  # noqa: BLE001 nothing here may end a training job
            warn(f"the profile is not handed over ({type(error).__name__}: {error})")
            return None

    return guarded  # type: ignore[return-value]


class Job:
    """What is said of all profiles of this process.

    Options, each before its variable of the environment: `version` (TRACKER_VERSION, default: `git describe --always
    --dirty` where the job was started, or where its script lies), `workload` (TRACKER_WORKLOAD), `branch`
    (TRACKER_BRANCH, default: that of git there), `commit` (TRACKER_COMMIT), `note` (TRACKER_NOTE), `device`
    (TRACKER_DEVICE), `expect_ranks` (TRACKER_EXPECT_RANKS), `configuration` and `tags` (mappings; TRACKER_CONFIGURATION
    and TRACKER_TAGS: `batch=32,precision=bf16`; a comma of a value is written `\\,`),
    `deliver` (TRACKER_DELIVER; False or 0: the profile is written, and whoever watches the folder takes it).
    Where `tracker ab` started the job, the files that it has imported are recorded too (TRACKER_MODULES).
    """

    def __init__(self, environ: Mapping[str, str] | None = None, **options: Any) -> None:
        given = dict(os.environ if environ is None else environ)
        self.environ: dict[str, str] = harmless(spool.settled)(given) or given  # the job may go to another folder
        known = (*_TEXTS, *_PAIRS, "expect_ranks", "deliver")
        for name in sorted(set(options) - set(known)):
            warn("there is no option {} of a hook; known: {}".format(name, ", ".join(known)))
        self.said: dict[str, Any] = harmless(_said)(options, self.environ) or {}
        deliver = options.get("deliver")
        self.delivers = self.environ.get("TRACKER_DELIVER", "").lower() not in _OFF if deliver is None else deliver
        self._git: dict[str, str] = {}
        self._branch: dict[str, Any] = {}
        # while the job trains: the working tree is still what was started, and nobody waits for git
        self._asking = threading.Thread(target=self._ask_git, name="tracker-git", daemon=True)
        harmless(self._asking.start)()  # a machine may have no thread left
        machine.recording.begin()
        modules.record(self.environ)
        if self.environ.get(modules.VARIABLE):
            atexit.register(modules.record, self.environ)

    @harmless
    def _ask_git(self) -> None:
        self._git = environment.capture_git(_places(), _GIT_S)
        self._branch = branch.capture_branch(_places(), self.environ, _GIT_S)

    def told(self) -> dict[str, Any]:
        """The content of the sidecar of a profile that is written now."""
        if self._asking.is_alive():
            self._asking.join(_LAST_WAIT_S)
        git = dict(self._git)
        described = git.pop("version", None)
        rank, world_size = environment.rank_and_world_size(self.environ)
        said = dict(self.said)
        if "version" not in said and described:
            said["version"] = described
            said.setdefault("commit", git["git_commit"])  # of a version that is named otherwise, it may be another one
        told = {
            "schema": 1,
            "host": environment.host(),
            "rank": rank,
            "world_size": world_size,
            "facts": {**machine.recording.take(), **environment.facts(self.environ), **git},
        }
        told.update(self._branch or branch.branch_without_git(self.environ))
        told.update(said)
        for name in ("version", "workload"):
            if name not in told:
                warn(f"no {name} is known of this job: set TRACKER_{name.upper()}, or give the hook {name}=")
        return {name: value for name, value in told.items() if value not in (None, "", {})}

    @harmless
    def hand_over(self, profile: str, *, wait_for: str | None = None) -> None:
        """Say beside `profile` what was run, queue it, and start a deliverer. `wait_for`: there once it is complete."""
        profile = os.path.abspath(profile)
        modules.record(self.environ)  # what it imported meanwhile; it may be killed later
        spool.replace(sidecar_of(profile), self.told(), mode=0o644)
        if not self.delivers:
            return
        queue = places.folder(self.environ)
        entry = {"profile": profile, **places.database(self.environ)}
        if wait_for is not None:
            entry["wait_for"] = os.path.abspath(wait_for)
        spool.add(queue, entry, now_ns=time.time_ns())
        spool.start(queue, self.environ)

    def worker_name(self) -> str:
        """`rank3_node7_4711`: rank, where it is known, host and process; of letters, digits and `_` alone."""
        rank, _ = environment.rank_and_world_size(self.environ)
        parts = ([] if rank is None else [f"rank{rank}"]) + [environment.host() or "host", str(os.getpid())]
        return re.sub(r"\W+", "_", "_".join(parts), flags=re.ASCII)


def _said(options: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """What options and environment state, without what neither does."""
    said: dict[str, Any] = {}
    for name in (*_TEXTS, "expect_ranks"):
        value = options.get(name)
        said[name] = environ.get("TRACKER_" + name.upper()) if value is None else value
    for name, variable in _PAIRS.items():
        said[name] = dict(_pairs(environ.get(variable, ""), variable))
        said[name].update((str(key), str(value)) for key, value in (options.get(name) or {}).items())
    ranks = said["expect_ranks"]
    said = {name: str(value) if name in _TEXTS and value else value for name, value in said.items()}
    said["expect_ranks"] = int(ranks) if str(ranks or "").isdecimal() and int(ranks) > 0 else None
    return {name: value for name, value in said.items() if value not in (None, "", {})}


def joined(pairs: Mapping[str, str]) -> str:
    """Pairs as TRACKER_CONFIGURATION and TRACKER_TAGS take them."""
    return ",".join(_SPECIAL.sub(r"\\\g<0>", f"{key}={value}") for key, value in pairs.items())


def _pairs(text: str, variable: str) -> list[tuple[str, str]]:
    pairs = []
    for part in _PART.findall(text):
        key, separator, value = _ESCAPED.sub(r"\1", part).partition("=")
        if separator and key.strip():
            pairs.append((key.strip(), value.strip()))
        elif part.strip():
            warn(f"{variable} holds {part!r}, expected KEY=VALUE,KEY=VALUE")
    return pairs


def _places() -> list[str]:
    """Where the code of the job may lie: where it was started, then where its script is."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return [os.getcwd()] + ([os.path.dirname(os.path.abspath(script))] if script else [])
