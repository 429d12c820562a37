"""Who claims messages, named so that another process of the same machine sees when it is dead.

A name is HOST/PROCESSES/PID/START/TOKEN. PROCESSES: the boot and the process namespace, in which alone a PID means
something; START: when the process began, in ticks since the boot, since PIDs come again. Where the system tells neither
(no /proc), a claim lasts until it ends by itself.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from tracker.hooks import spool


def new_claimant() -> str:
    """A name that nobody else has."""
    token = uuid.uuid4().hex[:12]
    return "/".join((spool.host_name(), _processes(), str(os.getpid()), _start(os.getpid()), token))


def is_dead(claimant: str) -> bool:
    """Whether the process of this name has ended for sure; False for those of other machines, and where unknown."""
    host, processes, pid, start, _ = parts if len(parts := claimant.split("/")) == 5 else ("",) * 5
    if not (processes and start) or (host, processes) != (spool.host_name(), _processes()):
        return False
    now = _start(int(pid))
    if now:
        return now != start
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's, whose processes are hidden from us
        return False
    return _is_zombie(int(pid))


def _processes() -> str:
    """The boot and the namespace of our processes, '' where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _start(pid: int) -> str:
    """When a process began; '' where there is none that we see, or only its remains."""
    fields = _stat(pid)
    return fields[19] if fields and not _is_zombie(pid) else ""


def _is_zombie(pid: int) -> bool:
    return _stat(pid)[:1] in (["Z"], ["X"])


def _stat(pid: int) -> list[str]:
    """The fields from the state on; the name of the program before them, in brackets, may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
