"""What a log and its path say of the run: configuration, version, hardware, environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from tracker.profile import CPU, UNKNOWN_DEVICE, Device
from tracker.readers import _paddle
from tracker.readers._stated import Stated, configuration_in_names, merged

# 20230808_69edec3bb7: the day of the build and its commit
_VERSION: Final = re.compile(
    r"(?P<date>(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))_(?P<commit>[0-9a-f]{7,40})"
)
_RANK: Final = re.compile(r"(?:workerlog|rank|trainer)[._-]?(\d{1,9})", re.IGNORECASE)
_WORD: Final = r"(?<![A-Za-z0-9])"
_GPU: Final = re.compile(
    _WORD
    + r"((?:NVIDIA[ _-])?(?:[VAHBPT]\d{1,4}[A-Z]?|L\d{1,2}S?|GH?B?200)(?:-(?:SXM\d?|PCIE|\d{1,3}GB?))*)(?![A-Za-z0-9])"
)
_NAMED_GPU: Final = re.compile(r"\b((?:NVIDIA|Tesla) [A-Z]{0,3}\d{2,4}[A-Za-z0-9-]*)")

_SAID: Final[Mapping[str, re.Pattern[str]]] = {
    "model": re.compile(
        r"\bmodel_name_or_path(?:'?, '| |='?)([\w./-]{1,80}?)(?=['\" ,)]|$)|\.paddlenlp/models/([\w.-]{1,80})/"
    ),
    "cards": re.compile(r"\b(?:devices|gpus): (\d{1,3}(?:,\d{1,3})*)\s*$"),
    "nodes": re.compile(r"\bnnodes: (\d{1,6})\s*$"),
    "processor": re.compile(r"\bdevice(?: : |=')(cpu|gpu)\b"),
    "capability": re.compile(r"\bGPU Compute Capability: (\d{1,2}\.\d)"),
    "driver": re.compile(r"\bDriver API Version: (\d{1,3}\.\d{1,3})"),
    "runtime": re.compile(r"\bRuntime API Version: (\d{1,3}\.\d{1,3})"),
    "cudnn": re.compile(r"\bcuDNN Version: (\d{1,3}\.\d{1,3})"),
    "gpu": _NAMED_GPU,
}
# PaddleClas prints its settings indented: `INFO: Arch : `, `INFO:     class_num : 1000`, `INFO:     name : ResNet50`
_SECTION: Final = re.compile(r"\bINFO: (?P<name>[A-Za-z]\w*) ?: *$")
_ARCHITECTURES: Final = ("ARCHITECTURE", "Arch")
_NAME: Final = re.compile(r"\bINFO:     name ?: ?([\w./-]{1,80}) *$")
_FACTS: Final = {
    "gpu_compute_capability": "capability",
    "cuda_driver_version": "driver",
    "cuda_runtime_version": "runtime",
    "cudnn_version": "cudnn",
}


class Said(Struct):
    """What the lines of a log say beside the speed; the first line counts that says a thing."""

    values: dict[str, str] = field(default_factory=dict)
    stated: Stated = field(default_factory=Stated)
    _section: str = ""

    def take(self, line: str) -> None:
        """Looks at the next line."""
        self.stated.take(line)
        for key, pattern in _SAID.items():
            if key not in self.values and (match := pattern.search(line)):
                self.values[key] = next(group for group in match.groups() if group)
        if section := _SECTION.search(line):
            self._section = section["name"]
        elif self._section in _ARCHITECTURES and (name := _NAME.search(line)):
            self.values.setdefault("model", name[1])


def configuration_of(path: Path, said: Said) -> tuple[dict[str, str], tuple[str, ...]]:
    """What must be equal for runs to be compared, and a sentence on each contradiction between the log and its path.

    Keys: batch_size, precision, devices, sequence_length and others of `_stated`, as far as known. What the log says
    counts before the names of the path, but that these give the batch of one card where some releases print that of
    all.
    """
    stated = said.stated.configuration()
    cards = _cards(said.values)
    if "devices" not in stated and cards is not None:
        stated["devices"] = cards
    found, notes = merged(stated, configuration_in_names(path))
    several = [
        f"{key} is {value} and {said.stated.others[key]} by the text; the first counts, --config {key}=N decides"
        for key, value in found.items()
        if key in said.stated.others and value == said.stated.values.get(key)
    ]
    return found, (*notes, *several)


def labels_of(path: Path, said: Said) -> dict[str, str]:
    """Version, commit and date from a file name like `20230808_69edec3bb7`; the workload is the model."""
    labels = {}
    if match := _VERSION.fullmatch(path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".log")):
        day = match["date"]
        labels = {"version": match.group(), "commit": match["commit"], "date": f"{day[:4]}-{day[4:6]}-{day[6:]}"}
    if model := said.values.get("model"):
        labels["workload"] = model.rstrip("/").rpartition("/")[2] or model
    return labels


def device_of(path: Path, said: Said) -> Device:
    """The hardware that the log or a folder's name states (`V100_LOG`); else unknown, or cpu where the log says so."""
    if name := said.values.get("gpu"):
        return _paddle.gpu(name)
    if said.values.get("processor") == "cpu":
        return CPU
    named = _in_path(path, _GPU)
    return _paddle.gpu(named) if named else UNKNOWN_DEVICE


def rank_of(path: Path) -> int | None:
    """The rank in a file name like `workerlog.3`."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


def facts_of(said: Said) -> dict[str, str]:
    """The environment that Paddle prints at start."""
    return {"framework": "paddle"} | {fact: said.values[key] for fact, key in _FACTS.items() if key in said.values}


def _near(path: Path) -> list[str]:
    """The name of the file and of the three folders around it, nearest first."""
    return list(reversed(path.parts[-4:]))


def _in_path(path: Path, pattern: re.Pattern[str]) -> str | None:
    return next((match[1] for name in _near(path) if (match := pattern.search(name))), None)


def _cards(values: Mapping[str, str]) -> str | None:
    if "cards" in values:
        return str((values["cards"].count(",") + 1) * int(values.get("nodes", "1")))
    return None
