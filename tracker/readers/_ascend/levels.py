"""The layers of CANN in the profiler's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tracker.profile import LaunchLevel

LEVELS: Final[Mapping[str, LaunchLevel]] = {
    "acl": LaunchLevel.ACL,
    "node": LaunchLevel.NODE,
    "model": LaunchLevel.MODEL,
    "hccl": LaunchLevel.HCCL,
    "communication": LaunchLevel.HCCL,
    "runtime": LaunchLevel.RUNTIME,
}
