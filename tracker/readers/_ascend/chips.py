"""info.json of CANN (PROF_*/device_N/info.json.N) or NPU_INFO of a database -> which chip a capture ran on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tracker.errors import SourceError
from tracker.readers._facts import told_number

CHIPS: Final[Mapping[str, str]] = {
    "0": "Ascend310",
    "1": "Ascend910A",
    "4": "Ascend310P",
    "5": "Ascend910B",
    "7": "Ascend310B",
}
"""`platform_version` -> the name that CANN's own exporter writes into NPU_INFO of a database."""

UNKNOWN: Final = "unknown"
_DATABASE: Final = re.compile(r"(?:ascend_(?:pytorch|mindspore)_profiler(?:_\d+)?|msprof_\d+)\.db")
_FILE: Final = re.compile(r"info\.json(?:\.\d{1,9})?")


def chip_of(info: Mapping[str, Any]) -> str:
    """The chip that `info` names, `unknown` for a platform that is not in the list.

    >>> chip_of({"platform_version": "5"}), chip_of({"platform_version": "99"}), chip_of({})
    ('Ascend910B', 'unknown', 'unknown')
    """
    return CHIPS.get(str(info.get("platform_version", "")), UNKNOWN)


def rated_clock(info: Mapping[str, Any], device: int | None = None) -> int | None:
    """Return for how many MHz the driver rates the cores of a device, the first where it is not listed; None where
    `info` does not say.

    >>> rated_clock({"DeviceInfo": [{"id": 0, "aic_frequency": "1650"}]}), rated_clock({"DeviceInfo": "none"})
    (1650, None)
    """
    # a clock of 0 MHz is none
    return told_number(device_entry(info, device).get("aic_frequency")) or None


def device_entry(info: Mapping[str, Any], device: int | None) -> Mapping[str, Any]:
    """Return what an info.json says of a device, of the first where it is not listed; empty where it lists none.

    >>> device_entry({"DeviceInfo": [{"id": 0}, {"id": 3, "ai_cpu_num": 4}]}, 3)
    {'id': 3, 'ai_cpu_num': 4}
    """
    listed = info.get("DeviceInfo")
    if not isinstance(listed, list):
        return {}
    devices = [entry for entry in listed if isinstance(entry, dict)]
    first = devices[0] if devices else {}
    return next((entry for entry in devices if entry.get("id") == device), first)


def chip_beside(folders: Iterable[Path]) -> str:
    """The chip that NPU_INFO of the databases in these folders names, `unknown` where they name none or several.

    A database that cannot be read says nothing here.
    """
    files = dict.fromkeys(
        file
        for folder in folders
        if folder.is_dir()
        for file in sorted(folder.iterdir())
        if _DATABASE.fullmatch(file.name)
    )
    names = {name for file in files for name in _chips_in(file)}
    return names.pop() if len(names) == 1 else UNKNOWN


def _chips_in(database: Path) -> list[str]:
    from tracker.readers._sqlite import opened

    try:
        with opened(database) as db:
            return [str(name) for (name,) in db.rows("NPU_INFO", "name") if name]
    except SourceError:
        return []


def info_files(folder: Path) -> list[Path]:
    """The info.json of the devices (else of the host) in the PROF_* folders of a capture, in order of path."""
    raw = [entry for entry in sorted(folder.iterdir()) if entry.name.startswith("PROF_") and entry.is_dir()]
    places = [place for prof in raw for place in sorted(prof.iterdir()) if place.is_dir()]
    devices = [place for place in places if place.name.startswith("device_")]
    chosen = devices or [place for place in places if place.name == "host"]
    return [file for place in chosen for file in sorted(place.iterdir()) if _FILE.fullmatch(file.name)]
