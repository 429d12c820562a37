"""Which files of a PROF_* folder are the export of which device, and what each of them is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.readers._ascend import prof_folders
from tracker.readers._source import suffix_of

_SLICE: Final = r"(?:_slice_(?P<slice{0}>\d{{1,9}}))?"
_NAME: Final = re.compile(
    rf"(?P<kind>[a-z]\w*?){_SLICE.format(1)}(?P<numbers>(?:_\d{{1,13}})*){_SLICE.format(2)}"
    r"(?:_(?P<time>\d{14}))?\.(?P<form>csv|json)(?:\.gz)?",
    re.IGNORECASE,
)
_INFO: Final = re.compile(r"(?P<kind>info\.json|start_info|end_info)(?:\.\d{1,9})?")
_ANALYZED: Final = ("communication.json", "communication_matrix.json")
_DEVICE_MODEL_ITERATION: Final = (2, 3)
_HEAD: Final = -1
"""Slice of a file that is not cut."""


class FileName(Struct, frozen=True):
    """What the name of an exported file says. `numbers`: device, model and iteration, as many as there are.

    `slice`: -1 for a file that is not cut. `time`: of the export, '' where the name has none.
    """

    kind: str
    form: str
    numbers: tuple[int, ...]
    slice: int
    time: str


class DeviceFiles(Struct, frozen=True):
    """The files of one device. `device`: None where only the files themselves can say it, or say that it is several.

    `files`: by kind and form (`op_summary.csv`), in order of iteration and slice. `infos`: info.json, start_info and
    end_info by these names. `left_out`: sentences about files that repeat others.
    """

    device: int | None
    files: Mapping[str, tuple[Path, ...]]
    infos: Mapping[str, Path]
    left_out: tuple[str, ...] = ()


def name_of(name: str) -> FileName | None:
    """What the name of an exported file says, None for other files.

    >>> name_of("op_summary_0_1_20240102030405.csv")
    FileName(kind='op_summary', form='csv', numbers=(0, 1), slice=-1, time='20240102030405')
    >>> name_of("msprof_slice_2_20240102030405.json").slice, name_of("l2_cache_0_2_1.csv").kind, name_of("README.txt")
    (2, 'l2_cache', None)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    numbers = tuple(int(number) for number in match.group("numbers").split("_") if number)
    part = match.group("slice1") or match.group("slice2")
    return FileName(
        match.group("kind").lower(),
        match.group("form").lower(),
        numbers,
        _HEAD if part is None else int(part),
        match.group("time") or "",
    )


def devices_in(path: Path) -> list[DeviceFiles]:
    """The exports at `path` (a capture, one of its devices, an output folder, or one file), one per device folder.

    An output folder of CANN 8 holds all devices in the same files: it is one entry per device that the capture has a
    folder of, each with all files.
    """
    if path.is_file():
        return [_of_file(path)]
    here = path.resolve()
    if prof_folders.device_in_name(here.name) is not None:
        return [_of_old_device(path, here.parent)]
    if here.name == prof_folders.OUTPUT:
        return _of_output(path, here.parent if prof_folders.is_raw(here.parent) else None)
    if prof_folders.text_folders(path) == [path / prof_folders.OUTPUT]:
        return _of_output(path / prof_folders.OUTPUT, path)
    return [_of_old_device(device, path) for device in prof_folders.devices_of(path).values()]


def _of_file(path: Path) -> DeviceFiles:
    name = name_of(path.name)
    form = "csv" if suffix_of(path) == ".csv" else "json"
    is_numbered = name is not None and len(name.numbers) in _DEVICE_MODEL_ITERATION
    device = name.numbers[0] if name is not None and is_numbered else None
    return DeviceFiles(device, {f"{'op_summary' if form == 'csv' else 'msprof'}.{form}": (path,)}, {})


def _of_old_device(device: Path, capture: Path) -> DeviceFiles:
    """One device of CANN 7.0 and before, with what its host tells of all devices."""
    places = [place for part in (device, capture / prof_folders.HOST) for place in prof_folders.old_text_folders(part)]
    files, left_out = _chosen(file for place in places for file in place.iterdir())
    return DeviceFiles(
        prof_folders.device_in_name(device.resolve().name),
        {**files, **_analyzed(capture)},
        {**_infos(capture / prof_folders.HOST), **_infos(device)},
        left_out,
    )


def _of_output(output: Path, capture: Path | None) -> list[DeviceFiles]:
    files, left_out = _chosen(output.iterdir())
    if capture is None:
        return [DeviceFiles(None, files, {}, left_out)]
    files |= _analyzed(capture)
    host = _infos(capture / prof_folders.HOST)
    devices = prof_folders.devices_of(capture)
    if not devices:
        return [DeviceFiles(None, files, host, left_out)]
    return [
        DeviceFiles(device, files, {**host, **_infos(folder)}, left_out if place == 0 else ())
        for place, (device, folder) in enumerate(devices.items())
    ]


def _infos(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    if folder.is_dir():
        for entry in sorted(folder.iterdir()):
            if match := _INFO.fullmatch(entry.name):
                found.setdefault(match.group("kind"), entry)
    return found


def _analyzed(capture: Path) -> dict[str, tuple[Path, ...]]:
    found = {name: capture / "analyze" / name for name in _ANALYZED}
    return {name: (path,) for name, path in found.items() if path.is_file()}


def _chosen(entries: Iterable[Path]) -> tuple[dict[str, tuple[Path, ...]], tuple[str, ...]]:
    """The newest export of each kind and iteration, all of its slices; and which files belong to older ones."""
    exports: dict[tuple[str, tuple[int, ...]], list[tuple[FileName, Path]]] = {}
    for entry in entries:
        name = name_of(entry.name)
        if name is not None and entry.is_file():
            exports.setdefault((f"{name.kind}.{name.form}", name.numbers), []).append((name, entry))
    files: dict[str, tuple[Path, ...]] = {}
    older: list[Path] = []
    for (kind, _), parts in sorted(exports.items(), key=lambda item: item[0]):
        ordered = sorted(parts, key=lambda part: (part[0].time, part[0].slice))
        # an export starts with its first slice; all slices of one may have been written a second apart
        newest = max(place for place, (name, _) in enumerate(ordered) if place == 0 or name.slice <= 0)
        older += [path for _, path in ordered[:newest]]
        files[kind] = (*files.get(kind, ()), *(path for _, path in ordered[newest:]))
    if not older:
        return files, ()
    names = ", ".join(path.name for path in older)
    return files, (f"exported more than once; only the newest export was read, left out: {names}",)
