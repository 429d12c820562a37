"""Who ran: host, devices, versions, settings; by an allow-list, since an export holds the user's whole environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tracker.profile import MISSING, UNKNOWN_DEVICE, Device
from tracker.readers._facts import short_word
from tracker.readers._nvidia import device_of
from tracker.readers._sqlite import Database
from tracker.readers._times import MAX_NS
from tracker.readers.nsys_sqlite.tables import pid_of

_SYSTEM: Final = "TARGET_INFO_SYSTEM_ENV"
_EXPORT: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_SESSION: Final = "TARGET_INFO_SESSION_START_TIME"
_SHORT: Final = re.compile(r"[\w.,:+/ ()@-]{1,80}")
_SETTINGS: Final[Mapping[str, str]] = {
    "PROCESS_0:COLLECT_CUDA_TRACE": "cuda_trace",
    "PROCESS_0:COLLECT_NVTX_TRACE": "nvtx_trace",
    "PROCESS_0:COLLECT_GPU_MEMORY_USAGE": "cuda_memory_usage",
    "PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE": "cuda_graph_trace",
}
"""What is taken of META_DATA_CAPTURE, which holds the environment of the shell as well."""

_ABSOLUTE_NS: Final = 10**18
"""Times above this (2001-09-09) are UTC already: `nsys export --ts-normalize true`."""


class ExportFacts(Struct, frozen=True):
    """What the export says of the machine and of itself. `devices`: hardware by (process id or 0, CUDA ordinal)."""

    host: str
    utc_ns: int | None
    shift_ns: int
    devices: Mapping[tuple[int, int], Device]
    gpu_numbers: Mapping[tuple[int, int], int]
    facts: Mapping[str, str]
    settings: Mapping[str, str]

    def device(self, process: int, ordinal: int) -> Device:
        """The hardware of a device as the process numbers it; unknown where the export names none or several."""
        for key in ((pid_of(process), ordinal), (0, ordinal)):
            if key in self.devices:
                return self.devices[key]
        models = set(self.devices.values())
        return models.pop() if len(models) == 1 else UNKNOWN_DEVICE

    def gpu_number(self, process: int, ordinal: int) -> int:
        """The number of the device in TARGET_INFO_GPU."""
        return self.gpu_numbers.get((pid_of(process), ordinal), self.gpu_numbers.get((0, ordinal), ordinal))

    def utc(self, time_ns: int) -> int | None:
        """UTC of a time of the export; None where it does not say when the capture began."""
        if time_ns > _ABSOLUTE_NS:
            return time_ns
        return None if self.utc_ns is None else self.utc_ns + time_ns - self.shift_ns


def facts_of(db: Database) -> ExportFacts:
    """What the tables of the target and of the export say."""
    system = db.named(_SYSTEM, ("Hostname", "NvDriverVersion", "CudaDriverVersion", "OsDescription", "CpuDescription"))
    export: dict[str, str] = {}
    for table in _EXPORT:
        export |= db.named(table, ("EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION", "EXPORT_PARAM_TIME_SHIFT"))
    said = {
        "nsys_version": export.get("EXPORT_PRODUCT_VERSION", ""),
        "nsys_schema_version": export.get("EXPORT_SCHEMA_VERSION", ""),
        "driver_version": system.get("NvDriverVersion", ""),
        "cuda_driver_version": _cuda(system.get("CudaDriverVersion", "")),
        "os": system.get("OsDescription", ""),
        "cpu": system.get("CpuDescription", ""),
    }
    numbers = _gpu_numbers(db)
    names = {number: str(name) for number, name in db.rows("TARGET_INFO_GPU", "id", "name") if name}
    has_start = db.has_column(_SESSION, "utcEpochNs")
    starts = db.ints(_SESSION, ("utcEpochNs",))["utcEpochNs"].tolist() if has_start else []
    shift = export.get("EXPORT_PARAM_TIME_SHIFT", "0")
    return ExportFacts(
        host=_word(system.get("Hostname", "")),
        utc_ns=starts[0] if starts and _ABSOLUTE_NS < starts[0] <= MAX_NS else None,
        shift_ns=int(shift) if re.fullmatch(r"-?\d{1,18}", shift) else 0,
        devices={key: device_of(names[number]) for key, number in numbers.items() if number in names},
        gpu_numbers=numbers,
        facts={name: word for name, text in said.items() if (word := _word(text)) and word != "unknown"},
        settings=_settings(db),
    )


def _gpu_numbers(db: Database) -> dict[tuple[int, int], int]:
    """(process id or 0, CUDA ordinal) -> number of the GPU in TARGET_INFO_GPU."""
    column = "cuDevice" if db.has_column("TARGET_INFO_GPU", "cuDevice") else "id"
    gpus = db.ints("TARGET_INFO_GPU", ("id", column))
    rows = [(0, ordinal, gpu) for ordinal, gpu in zip(gpus[column].tolist(), gpus["id"].tolist(), strict=True)]
    names = ("pid", "cudaId", "gpuId")
    if all(db.has_column("TARGET_INFO_CUDA_DEVICE", name) for name in names):
        devices = db.ints("TARGET_INFO_CUDA_DEVICE", names)
        rows += zip(*(devices[name].tolist() for name in names), strict=True)
    return {(pid, ordinal): gpu for pid, ordinal, gpu in rows if MISSING not in (pid, ordinal, gpu)}


def _settings(db: Database) -> dict[str, str]:
    found = db.named("META_DATA_CAPTURE", tuple(_SETTINGS))
    spelled = {"true": "on", "false": "off"}
    return {_SETTINGS[name]: spelled.get(text, _word(text).lower()) for name, text in found.items() if _word(text)}


def _word(text: str) -> str:
    return short_word(text.strip(), _SHORT)


def _cuda(text: str) -> str:
    # cuDriverGetVersion: 1000 * major + 10 * minor
    return f"{int(text) // 1000}.{int(text) % 1000 // 10}" if re.fullmatch(r"\d{4,6}", text) else text
