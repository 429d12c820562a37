"""What the machine did while a profile was recorded: clocks that were held down, heat, power, load, who else was there.

`begin` and `end` start the programs of `smi` and wait for none of them; `take` reads what they have printed. Files of
/proc and /sys are read beside them. Each of the three holds the job for at most HELD_S.

A program runs below `timeout`, which kills it after ANSWER_S, whatever becomes of the job: its end waits for nothing.
What has not answered when the profile is written is killed and left out. Nothing is written to the streams of the job.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import sys
import time
from typing import Any, Callable, Mapping, NamedTuple

from . import smi

STATES = (
    "device_throttled", "device_shared", "device_max_clock_mhz", "device_power_limit_watts", "cpu", "cpu_governor",
    "cpu_max_clock_mhz", "cpu_throttled",
)  # fmt: skip
"""Facts of the machine that are the same from run to run, unless something happened: where they differ, the environment
did. `device_throttled`: by what its clock was held down; `device_shared`: whether other processes computed on it;
`cpu_throttled`: whether the control group of the job had to wait for its share. Each is "no" where it was looked.
"""
NUMBERS = (
    "device_held", "device_clock_mhz", "device_temperature_celsius", "device_power_watts", "device_other_processes",
    "cpu_clock_mhz", "cpu_throttled_ms", "load", "cpu_pressure_percent", "memory_pressure_percent",
    "io_pressure_percent",
)  # fmt: skip
"""Facts that differ from run to run, and say nothing of a version. `device_held`: such as `1580 of 1965 MHz by power`;
`load`: processes that ran or waited to, over the last minute; pressure: the time of the last ten seconds in which some
waited.
"""

HELD_S = 0.05
"""Longest time that the job's thread is held at each end."""
ANSWER_S = 2
"""A program that has not answered by then is killed."""

_WAIT_S = 0.02
"""Of HELD_S, how long is waited for what a program is about to print."""
_LEAST_SHARE = 0.01
"""Share of the time that a job waits for its share of the CPUs, from which on that is worth a word."""
_MOST_BYTES = 1 << 16
_CPU_MODEL = re.compile(r"^(?:model name|Model|cpu model|Hardware)\s*:\s*(.+)$", re.MULTILINE)
_PRESSURE = re.compile(r"^some avg10=([\d.]+)", re.MULTILINE)
_ODD = re.compile(r"\((?:R|TM|C)\)|[^\w.,:;+/= -]+")
"""What is no part of a short word, as `environment.word` has it."""

_RECORDS = ("RECORD", "RECORD_AND_SAVE", "RECORD_AND_RETURN")


class _Running(NamedTuple):
    """A program that was started: its process, the end of the pipe that it prints to, and how its answer is read."""

    pid: int
    pipe: int
    read: Callable[[str], smi.Sample | None]


def _harmless(action: Callable[..., Any]) -> Callable[..., Any]:
    """Return `action` with its errors caught, silently: an unknown state is no reason to disturb a job."""

    def guarded(*args: Any, **options: Any) -> Any:
        try:
            return action(*args, **options)
        except Exception:  # noqa: BLE001 nothing here may end a training job
            return None

    return guarded


class Recording:
    """The state of the machine over one profile after the other. `proc`, `system`: where /proc and /sys are."""

    def __init__(self, environ: Mapping[str, str] | None = None, *, proc: str = "/proc", system: str = "/sys") -> None:
        self._given, self._proc, self._system = environ, proc, system
        self._started: list[_Running] = []
        self._waited_us: int | None = None
        self._since = 0.0
        self._has_ended = False

    @_harmless
    def begin(self) -> None:
        """Start to look: a profile begins."""
        self._drop()
        self._waited_us, self._since = self._throttled_us(), time.monotonic()
        self._has_ended = False
        self._ask()

    @_harmless
    def end(self) -> None:
        """Look once more: a profile ends. Where the schedule of the profiler has said so already, nothing is asked."""
        if not self._has_ended:
            self._has_ended = True
            self._ask()

    def take(self) -> dict[str, str]:
        """Return the facts of the profile that ended, those of STATES and NUMBERS that are known."""
        said = {**(self._facts_of_cpu() or {}), **(self._facts_of_device() or {})}
        self._has_ended = False
        facts = {name: " ".join(_ODD.sub(" ", text).split())[:120] for name, text in said.items()}
        return {name: text for name, text in facts.items() if text}

    def _ask(self) -> None:
        environ = dict(os.environ if self._given is None else self._given)
        limit = shutil.which("timeout", path=environ.get("PATH"))
        if limit is None:
            return  # what nothing ends is not started
        is_answered = False
        for question in smi.questions(environ, sys.modules, proc=self._proc):
            program = shutil.which(question.words[0], path=environ.get("PATH"))
            # rocm-smi is for where there is no amd-smi
            if program is not None and not is_answered:
                is_answered = True
                words = [limit, "-s", "KILL", str(ANSWER_S), program, *question.words[1:]]
                self._started.append(_start(words, environ, question.read))

    def _drop(self) -> None:
        """End what was started for a profile that nobody took."""
        while self._started:
            _finish(self._started.pop())

    @_harmless
    def _facts_of_device(self) -> dict[str, str]:
        until = time.monotonic() + _WAIT_S
        samples = []
        while self._started:
            running = self._started.pop(0)
            sample = _harmless(running.read)(_finish(running, until))
            if sample is not None:
                samples.append(sample)
        return facts_of(samples, self._is_other)

    def _is_other(self, pids: tuple[int, ...]) -> list[int] | None:
        """Return which of these processes are of another job; None where that cannot be said.

        Of the same job is what descends from the one that started this process, such as the launcher of the ranks.
        """
        # in a container the numbers may be those of its host, which mean other processes there
        if os.getpid() not in pids or not all(map(self._parent, pids)):
            return None
        launcher = self._parent(os.getpid())
        others = []
        for pid in pids:
            above = pid
            ancestors: list[int] = []
            while above > 1 and len(ancestors) < 64:
                ancestors.append(above)
                above = self._parent(above)
            if os.getpid() not in ancestors and launcher not in ancestors:
                others.append(pid)
        # what the first process started may be ranks of this job, and everything else
        return None if others and launcher <= 1 else others

    def _parent(self, pid: int) -> int:
        """Return the process above another one, 0 where it is gone."""
        status = _text(self._proc, str(pid), "stat")
        # the name in brackets may hold anything
        fields = status.rpartition(")")[2].split()
        return int(fields[1]) if len(fields) > 1 else 0

    @_harmless
    def _facts_of_cpu(self) -> dict[str, str]:
        core = min(os.sched_getaffinity(0))
        scaling = (self._system, "devices/system/cpu", f"cpu{core}", "cpufreq")
        model = _CPU_MODEL.search(_text(self._proc, "cpuinfo"))
        said = {
            "cpu": model.group(1).strip() if model else "",
            "cpu_governor": _text(*scaling, "scaling_governor").strip(),
            "cpu_clock_mhz": _megahertz(_text(*scaling, "scaling_cur_freq")),
            "cpu_max_clock_mhz": _megahertz(_text(*scaling, "scaling_max_freq")),
            "load": _text(self._proc, "loadavg").partition(" ")[0],
        }
        for what in ("cpu", "memory", "io"):
            pressure = _PRESSURE.search(_text(self._proc, "pressure", what))
            said[f"{what}_pressure_percent"] = pressure.group(1) if pressure else ""
        before, after = self._waited_us, self._throttled_us()
        now = time.monotonic()
        if before is not None and after is not None:
            waited_ms = (after - before) // 1000
            is_throttled = waited_ms > _LEAST_SHARE * 1000 * (now - self._since)
            said["cpu_throttled"] = "yes" if is_throttled else "no"
            said["cpu_throttled_ms"] = str(waited_ms)
        self._waited_us, self._since = after, now
        return said

    def _throttled_us(self) -> int | None:
        """Return how long the control group of this process has waited for its share of the CPUs; None for unknown."""
        for line in _text(self._proc, "self", "cgroup").splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0":
                stat = _text(self._system, "fs/cgroup", path.lstrip("/"), "cpu.stat")
                waited = re.search(r"^throttled_usec (\d+)$", stat, re.MULTILINE)
                divisor = 1
            elif "cpu" in controllers.split(","):
                stat = _text(self._system, "fs/cgroup/cpu", path.lstrip("/"), "cpu.stat")
                waited = re.search(r"^throttled_time (\d+)$", stat, re.MULTILINE)
                divisor = 1000  # the first version of control groups counts nanoseconds
            else:
                continue
            if waited:
                return int(waited.group(1)) // divisor
        return None


def facts_of(samples: list[smi.Sample], find_others: Callable[[tuple[int, ...]], list[int] | None]) -> dict[str, str]:
    """Return the facts of a device from its samples: of clocks the lowest under work, of all else the highest."""
    said: dict[str, float | None] = {
        "device_max_clock_mhz": _highest(sample.max_clock_mhz for sample in samples),
        "device_power_limit_watts": _highest(sample.power_limit_watts for sample in samples),
        "device_temperature_celsius": _highest(sample.temperature_celsius for sample in samples),
        "device_power_watts": _highest(sample.power_watts for sample in samples),
    }
    # a device that has nothing to do is neither fast nor held
    at_work = [sample for sample in samples if not sample.is_idle]
    clocks = [sample for sample in at_work if sample.clock_mhz is not None]
    clocks.sort(key=lambda sample: sample.clock_mhz or 0.0)
    said["device_clock_mhz"] = clocks[0].clock_mhz if clocks else None
    facts = {name: f"{number:.0f}" for name, number in said.items() if number is not None}
    known = [sample.held_by for sample in at_work if sample.held_by is not None]
    if known:
        reasons = sorted({reason for held_by in known for reason in held_by})
        facts["device_throttled"] = ", ".join(reasons) or "no"
    held = next((sample for sample in clocks if sample.held_by and sample.max_clock_mhz), None)
    if held is not None:
        by = ", ".join(held.held_by or ())
        facts["device_held"] = f"{held.clock_mhz:.0f} of {held.max_clock_mhz:.0f} MHz by {by}"
    others = [find_others(sample.processes) for sample in samples if sample.processes is not None]
    counts = [len(pids) for pids in others if pids is not None]
    if counts:
        facts["device_shared"] = "yes" if max(counts) else "no"
        facts["device_other_processes"] = str(max(counts))
    return facts


def _highest(numbers: Any) -> float | None:
    return max((number for number in numbers if number is not None), default=None)


def _start(words: list[str], environ: Mapping[str, str], read: Callable[[str], smi.Sample | None]) -> _Running:
    """Start a program whose output waits in a pipe; the pipe is bounded, so that nothing it prints fills a disk."""
    # readers know the names of facts by this module, on systems without the file locks of a spool, too
    from . import spool

    ours, theirs = os.pipe()
    try:
        os.set_blocking(ours, False)
        # as `spool.cleaned`: what instruments the job must not instrument this; a fork of a large job would hold it
        pid = os.posix_spawn(
            words[0],
            words,
            dict(spool.cleaned(environ), LC_ALL="C"),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, theirs, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return _Running(pid, ours, read)


def _finish(running: _Running, until: float = 0.0) -> str:
    """Return what a program has printed, "" where it is not done by `until` or has failed; it is over then."""
    text, is_done = b"", False
    try:
        while not is_done and len(text) < _MOST_BYTES:
            ready, _, _ = select.select([running.pipe], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                break
            part = os.read(running.pipe, _MOST_BYTES)
            text, is_done = text + part, not part
    finally:
        os.close(running.pipe)
    if not is_done:
        os.killpg(running.pid, signal.SIGKILL)
    pid, status = 0, 0
    # the pipe is closed a moment before the process has ended
    while is_done and pid == 0 and time.monotonic() < until:
        pid, status = _wait(running.pid)
        time.sleep(0 if pid else 0.001)
    if pid == 0:
        _ended.append(running.pid)
    for other in _ended[:]:
        if _wait(other)[0]:
            _ended.remove(other)
    return text.decode("utf-8", "replace") if is_done and status == 0 else ""


_ended: list[int] = []
"""Processes that were killed: who starts the next one lets the system forget them."""


def _wait(pid: int) -> tuple[int, int]:
    """Return the process and its status where it has ended, 0 and 0 where it has not."""
    try:
        return os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # the job has waited for all of its children
        return pid, 0


def _text(*parts: str) -> str:
    """Return the first 4 KiB of a file of the system, "" where there is none."""
    try:
        with open(os.path.join(*parts), "rb", buffering=0) as file:
            return file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""


def _megahertz(kilohertz: str) -> str:
    return str(int(kilohertz) // 1000) if kilohertz.strip().isdecimal() else ""


recording = Recording()
"""That of this process: a job profiles once at a time."""


def watched(schedule: Callable[[int], Any]) -> Callable[[int], Any]:
    """Return a schedule of a profiler that looks at the machine while its steps are recorded, the first and the last.

    Without it the machine is looked at when the handler is made and when it is called: the device may idle by then.
    """
    was_recording = [False]

    def watching(step: int) -> Any:
        action = schedule(step)
        name = str(getattr(action, "name", ""))
        is_last = name in ("RECORD_AND_SAVE", "RECORD_AND_RETURN")
        if name in _RECORDS and not was_recording[0]:
            recording.begin()
        elif is_last:
            recording.end()
        was_recording[0] = name in _RECORDS and not is_last
        return action

    return watching
