"""PROF_* folders of CANN msprof: what in them is an export as text, and what is an export as a database."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

OUTPUT: Final = "mindstudio_profiler_output"
HOST: Final = "host"
DATABASE: Final = re.compile(r"msprof_\d+\.db")
_OLD_OUTPUTS: Final = ("timeline", "summary")
_PROF: Final = re.compile(r"PROF_.+")
_DEVICE: Final = re.compile(r"device_(\d{1,9})")
_WORK: Final = re.compile(r"(?:msprof|op_summary|task_time|hccl)_(?!tx_|statistic_).*\.(?:csv|json)(?:\.gz)?")
_EXPORTED: Final = (".csv", ".json", ".gz")


def is_prof_name(name: str) -> bool:
    """True for the names that CANN gives the folder of a capture."""
    return _PROF.fullmatch(name) is not None


def device_in_name(name: str) -> int | None:
    """The device whose folder has this name.

    >>> device_in_name("device_7"), device_in_name("host")
    (7, None)
    """
    match = _DEVICE.fullmatch(name)
    return int(match.group(1)) if match else None


def devices_of(folder: Path) -> dict[int, Path]:
    """The folders of single devices in the capture `folder`, by device, in order."""
    found = [(device_in_name(entry.name), entry) for entry in folder.iterdir() if entry.is_dir()]
    return dict(sorted((device, entry) for device, entry in found if device is not None))


def old_text_folders(part: Path) -> list[Path]:
    """Where CANN 7.0 and before put the export of one device, or of the host: `timeline` and `summary` inside."""
    return [part / name for name in _OLD_OUTPUTS if _has_export(part / name)]


def text_folders(folder: Path) -> list[Path]:
    """Where the text export of the capture `folder` lies: its output folder, else those of its devices and host."""
    if _has_export(folder / OUTPUT):
        return [folder / OUTPUT]
    return [place for part in (*devices_of(folder).values(), folder / HOST) for place in old_text_folders(part)]


def has_work(output: Path) -> bool:
    """True where a folder of exported files holds one that tells of the work of a device."""
    return any(_WORK.fullmatch(entry.name) for entry in output.iterdir())


def has_text(folder: Path) -> bool:
    """True where the capture `folder` was exported as text."""
    return any(has_work(output) for output in text_folders(folder))


def has_database(folder: Path) -> bool:
    """True where the capture `folder` was exported as a database."""
    return any(DATABASE.fullmatch(entry.name) for entry in folder.iterdir())


def is_raw(folder: Path) -> bool:
    """True where the capture `folder` holds what CANN collected on the host or on a device."""
    return (folder / HOST).is_dir() or bool(devices_of(folder))


def _has_export(folder: Path) -> bool:
    return folder.is_dir() and any(entry.suffix in _EXPORTED for entry in folder.iterdir())
