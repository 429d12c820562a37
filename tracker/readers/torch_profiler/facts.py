"""What stands beside the events of a trace: rank, device, settings and environment, by an allow-list.

Nothing else is read: other keys (`metadata`, environment dumps) can hold live access tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from tracker.profile import CPU, MISSING, UNKNOWN_DEVICE, UNKNOWN_VENDOR, Device, ranks_text
from tracker.readers._collectives import role_of
from tracker.readers._facts import RANK_IN_NAME, short_word, whole_number
from tracker.readers._stated import configuration_of_groups
from tracker.readers.torch_profiler.collectives import Group
from tracker.readers.torch_profiler.schema import Top

SETTINGS: Final = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_SHORT: Final = re.compile(r"[\w.,:+/ -]{1,80}")
_AMD: Final = re.compile(r"\b(?:AMD|Instinct|Radeon)\b", re.IGNORECASE)
_INTEL: Final = re.compile(r"\bIntel\b", re.IGNORECASE)
_NVIDIA: Final = re.compile(
    r"\b(?:NVIDIA|Tesla|GeForce|Quadro|RTX|GTX|TITAN|GRID|Orin|Xavier|Jetson|"
    r"[AHBVPLTK]\d{1,3}[A-Z]{0,2}|G[HB]\d{3}|MX\d{3})\b",
    re.IGNORECASE,
)
_UNIX_US: Final = 10**15
"""Times above this (2001-09-09) are taken for UTC where the trace has no base time."""


class TraceFacts(Struct, frozen=True):
    """The allow-listed facts of one trace. `base_ns`: UTC of time 0, None where times are absolute or unknown."""

    rank: int | None
    world_size: int | None
    host: str
    base_ns: int | None
    settings: Mapping[str, str]
    facts: Mapping[str, str]
    groups: Mapping[str, Group]
    configuration: Mapping[str, str]
    device_names: Mapping[int, str]
    is_amd: bool = field(default=False)
    is_nvidia: bool = field(default=False)

    def device(self, ordinal: int | None, *, in_use: bool) -> Device:
        """The device `ordinal`: cpu when none is in use, unknown when the trace does not name it.

        The ordinal may count all devices of the machine and the properties only the visible ones; then the name counts
        if all properties agree on it.
        """
        if not in_use:
            return CPU
        name = self.device_names.get(ordinal) if ordinal is not None else None
        names = set(self.device_names.values())
        if name is None and len(names) == 1:
            name = names.pop()
        if not name:
            return UNKNOWN_DEVICE
        vendor = self._vendor(name)
        return Device(vendor, name.removeprefix(f"{vendor} ").strip())

    def _vendor(self, name: str) -> str:
        """Return who makes a device, by its name or by the libraries of its maker; many makers write such traces."""
        if self.is_amd or _AMD.search(name):
            return "AMD"
        if _INTEL.search(name):
            return "Intel"
        return "NVIDIA" if self.is_nvidia or _NVIDIA.search(name) else UNKNOWN_VENDOR

    def utc_ns(self, time_ns: int) -> int | None:
        """UTC of an event time, None where the trace's clock is not absolute."""
        if self.base_ns is not None:
            return self.base_ns + time_ns
        return time_ns if time_ns > _UNIX_US * 1000 else None


def facts_of(top: Top, path: Path) -> TraceFacts:
    """The facts in `top`. A rank in the file's name (`rank0`, `rank-0`, `rank_0`) counts where the trace names none."""
    distributed = top.distributedInfo if isinstance(top.distributedInfo, dict) else {}
    rank = whole_number(distributed.get("rank"))
    named = RANK_IN_NAME.search(path.name)
    if rank is None and named:
        rank = int(named.group(1))
    groups = _groups(distributed)
    return TraceFacts(
        rank=rank,
        world_size=whole_number(distributed.get("world_size")) or None,
        host=top.host_name if isinstance(top.host_name, str) else "",
        base_ns=whole_number(top.baseTimeNanoseconds),
        settings=_settings(top),
        facts=_environment(top, distributed),
        groups=groups,
        configuration=configuration_of_groups((group.role, group.size) for group in groups.values()),
        device_names=_device_names(top.deviceProperties),
        is_amd=any(v is not None for v in (top.roctracer_version, top.hip_runtime_version, top.hip_driver_version)),
        is_nvidia=any(v is not None for v in (top.cupti_version, top.cuda_runtime_version, top.cuda_driver_version)),
    )


def _settings(top: Top) -> dict[str, str]:
    values = {name: getattr(top, name) for name in SETTINGS}
    return {name: "on" if value else "off" for name, value in values.items() if isinstance(value, bool | int)}


def _environment(top: Top, distributed: Mapping[str, Any]) -> dict[str, str]:
    facts = {
        "trace_schema_version": _word(top.schemaVersion),
        "cupti_version": _word(top.cupti_version),
        "cuda_runtime_version": _cuda(top.cuda_runtime_version),
        "cuda_driver_version": _cuda(top.cuda_driver_version),
        "roctracer_version": _word(top.roctracer_version),
        "hip_runtime_version": _hip(top.hip_runtime_version),
        "hip_driver_version": _hip(top.hip_driver_version),
        "distributed_backend": _word(distributed.get("backend")),
        "nccl_version": _word(distributed.get("nccl_version")),
        "process_groups": _groups_text(distributed),
    }
    return {name: text for name, text in facts.items() if text}


def _word(value: object) -> str:
    return short_word(value, _SHORT)


def _cuda(value: object) -> str:
    # cudaRuntimeGetVersion: 1000 * major + 10 * minor
    return f"{value // 1000}.{value % 1000 // 10}" if type(value) is int and value >= 1000 else _word(value)


def _hip(value: object) -> str:
    # hipRuntimeGetVersion: 10_000_000 * major + 100_000 * minor + patch
    if type(value) is not int or value < 10_000_000:
        return _word(value)
    return f"{value // 10_000_000}.{value // 100_000 % 100}.{value % 100_000}"


def _group_entries(distributed: Mapping[str, Any]) -> list[dict[str, Any]]:
    config = distributed.get("pg_config")
    return [entry for entry in config if isinstance(entry, dict)] if isinstance(config, list) else []


def _groups(distributed: Mapping[str, Any]) -> dict[str, Group]:
    groups = {}
    for entry in _group_entries(distributed):
        name = str(entry.get("pg_name", ""))
        ranks = entry.get("ranks")
        size = whole_number(entry.get("pg_size"))
        if size is None:
            size = len(ranks) if isinstance(ranks, list) and ranks else MISSING
        groups[name] = Group(name, role_of(str(entry.get("pg_desc", ""))), size, _members(ranks, size))
    return groups


def _members(ranks: object, size: int) -> str:
    """The members as `ranks_text` writes them, '' where the list is none or not whole."""
    if not isinstance(ranks, list) or len(ranks) != size or any(type(rank) is not int or rank < 0 for rank in ranks):
        return ""
    return ranks_text(ranks)


def _groups_text(distributed: Mapping[str, Any]) -> str:
    """`default_pg 8 cuda:nccl; 2 x mesh_dp 4 cuda:nccl`: description, size, backend; names differ in each run."""
    keys = ("pg_desc", "pg_size", "backend_config")
    counts = Counter(" ".join(filter(None, (_word(e.get(key)) for key in keys))) for e in _group_entries(distributed))
    return "; ".join(f"{count} x {text}" if count > 1 else text for text, count in counts.items() if text)


def _device_names(properties: object) -> dict[int, str]:
    entries = [entry for entry in properties if isinstance(entry, dict)] if isinstance(properties, list) else []
    names = {whole_number(entry.get("id")): entry.get("name") for entry in entries}
    return {ordinal: name for ordinal, name in names.items() if ordinal is not None and isinstance(name, str)}
