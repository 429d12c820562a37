"""The programs that ask a device for its state: which of them is for which device, how each is called, what it prints.

Only questions that change nothing: nvidia-smi, amd-smi or rocm-smi, and npu-smi. Each prints for one device, as its
driver of the last years does; what is missing in an answer, or reads otherwise, is not known.
"""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any, Callable, Mapping, NamedTuple


class Sample(NamedTuple):
    """The state of a device at one moment; None where the program does not say.

    `held_by`: why its clock was held down, () where it was not. `is_idle`: nothing ran, so its clock says nothing.
    `processes`: those that compute on it.
    """

    clock_mhz: float | None = None
    max_clock_mhz: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    held_by: tuple[str, ...] | None = None
    is_idle: bool = False
    processes: tuple[int, ...] | None = None


class Question(NamedTuple):
    """A program with its arguments, and how its answer is read: None where that says nothing of the device."""

    words: list[str]
    read: Callable[[str], Sample | None]


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_REASONS = (
    ("SW Power Cap", "power"),
    ("HW Power Brake Slowdown", "power brake"),
    ("SW Thermal Slowdown", "temperature"),
    ("HW Thermal Slowdown", "temperature"),
)
"""Reasons of nvidia-smi for a clock that is held down, and their words. Clocks that a user has set are none."""

UNNAMED = "a limit that is not named"
"""Why a clock was held, where the program says only that it was."""

_NODE = re.compile(r"/dev/(nvidia|davinci|kfd)(\d*)")


def questions(
    environ: Mapping[str, str], modules: Mapping[str, Any], *, proc: str = "/proc", most_files: int = 4096
) -> list[Question]:
    """Return what to ask of the device on which this process computes: none where that is not known for sure.

    A rank asks for its own device alone. `most_files`: so many open files are looked through for the device.
    """
    nodes = _open_devices(proc, most_files)
    found = []
    if "nvidia" in nodes:
        device = _nvidia_device(environ, modules, proc)
        if device:
            words = ["nvidia-smi", "-q", "-i", device, "-d", "CLOCK,PERFORMANCE,TEMPERATURE,POWER,PIDS"]
            found.append(Question(words, read_nvidia_smi))
    if "kfd" in nodes:
        address = _pci_address(modules)
        if address:
            amd = ["amd-smi", "metric", "-g", address, "-p", "-c", "-t", "--json"]
            found.append(Question(amd, read_amd_smi))
            rocm = ["rocm-smi", "--showbus", "--showclocks", "--showtemp", "--showpower", "--showmaxpower", "--json"]
            found.append(Question(rocm, lambda text: read_rocm_smi(text, address)))
    if len(nodes.get("davinci", ())) == 1:
        (number,) = nodes["davinci"]
        found.append(Question(["npu-smi", "info", "-t", "common", "-i", number], read_npu_smi))
    return found


def _open_devices(proc: str, most_files: int) -> dict[str, set[str]]:
    """Return the devices that this process has open, by kind: what it does not use has another one's state."""
    nodes: dict[str, set[str]] = {}
    folder = os.path.join(proc, "self", "fd")
    for name in os.listdir(folder)[:most_files]:
        try:
            node = _NODE.fullmatch(os.readlink(os.path.join(folder, name)))
        except OSError:  # closed meanwhile
            continue
        if node and (node.group(2) or node.group(1) == "kfd"):
            nodes.setdefault(node.group(1), set()).add(node.group(2))
    return nodes


def _nvidia_device(environ: Mapping[str, str], modules: Mapping[str, Any], proc: str) -> str:
    """Return the device as nvidia-smi takes it, "" where it is not known or is a part of one.

    By its UUID or PCI address, as the framework or the job states them; by a number where this means the same to both.
    """
    properties = _torch_properties(modules)
    uuid = str(getattr(properties, "uuid", "") or "")
    visible = [text.strip() for text in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if text.strip()]
    if any(text.startswith("MIG-") for text in visible):
        return ""
    if uuid:
        return uuid if uuid.startswith("GPU-") else "GPU-" + uuid
    address = _pci_address(modules)
    if address:
        return address
    ordinal = _torch_ordinal(modules)
    if ordinal is None:
        # of several devices it is not known which one
        ordinal = 0 if len(visible) == 1 else None
    if ordinal is None or (visible and ordinal >= len(visible)):
        return ""
    device = visible[ordinal] if visible else str(ordinal)
    if device.startswith("GPU-"):
        return device
    # CUDA counts the fastest device first, nvidia-smi by the bus: of equal ones that is the same
    is_same_order = environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or _are_alike(proc)
    return device if device.isdecimal() and is_same_order else ""


def _are_alike(proc: str) -> bool:
    models = set()
    for path in glob.glob(os.path.join(glob.escape(proc), "driver", "nvidia", "gpus", "*", "information")):
        with open(path, encoding="utf-8", errors="replace") as file:
            model = re.search(r"^Model:\s*(.+)$", file.read(4096), re.MULTILINE)
        models.add(model.group(1) if model else "")
    return len(models) == 1


def _torch_ordinal(modules: Mapping[str, Any]) -> int | None:
    """Return the device that PyTorch computes on; None where it has not begun to, which a question would change."""
    torch = modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return int(torch.cuda.current_device())


def _torch_properties(modules: Mapping[str, Any]) -> Any:
    ordinal = _torch_ordinal(modules)
    return None if ordinal is None else modules["torch"].cuda.get_device_properties(ordinal)


def _pci_address(modules: Mapping[str, Any]) -> str:
    """Return the PCI address of the device that PyTorch computes on, "" where it does not say."""
    properties = _torch_properties(modules)
    if not hasattr(properties, "pci_bus_id"):
        return ""
    parts = (int(getattr(properties, name)) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id"))
    return "{:04x}:{:02x}:{:02x}.0".format(*parts)


def read_nvidia_smi(text: str) -> Sample | None:
    """Read `nvidia-smi -q` of one device: indented sections of `KEY : VALUE`."""
    found: dict[tuple[str, str], str] = {}
    numbers: list[int] = []
    kinds: dict[int, str] = {}
    section, margin = "", 0
    for line in text.splitlines():
        key, separator, value = (part.strip() for part in line.partition(" : "))
        indent = len(line) - len(line.lstrip())
        if not separator:
            section, margin = line.strip(), indent
            continue
        if indent <= margin:
            section = ""
        if key == "Process ID" and value.isdecimal():
            numbers.append(int(value))
        elif key == "Type" and numbers:
            kinds[numbers[-1]] = value
        found.setdefault((section, key), value)
    reasons = {}
    for name in ("Clocks Event Reasons", "Clocks Throttle Reasons"):
        # HW Slowdown is a value with two further ones below it
        reasons.update({key: value for (part, key), value in found.items() if part == name})
    if reasons.get("SW Power Cap") not in ("Active", "Not Active"):
        reasons = {}
    clock, most = _first_number(found, "SM", ("Clocks",)), _first_number(found, "SM", ("Max Clocks",))
    if clock is None and not reasons:
        return None
    held = [word for name, word in _REASONS if reasons.get(name) == "Active"]
    if reasons.get("HW Slowdown") == "Active" and not held:
        held.append(UNNAMED)
    power = ("GPU Power Readings", "Power Readings")
    drawn = [_first_number(found, name, power) for name in ("Instantaneous Power Draw", "Power Draw")]
    drawn.append(_first_number(found, "Average Power Draw", power))
    limits = [_first_number(found, name, power) for name in ("Current Power Limit", "Power Limit")]
    return Sample(
        clock_mhz=clock,
        max_clock_mhz=most,
        temperature_celsius=_first_number(found, "GPU Current Temp", ("Temperature",)),
        power_watts=next((number for number in drawn if number is not None), None),
        power_limit_watts=next((number for number in limits if number is not None), None),
        held_by=tuple(dict.fromkeys(held)) if reasons else None,
        is_idle=reasons.get("Idle") == "Active",
        # graphics of the screen compute nothing
        processes=tuple(pid for pid in numbers if "C" in kinds.get(pid, "")) if "Processes" in text else None,
    )


def _first_number(found: Mapping[tuple[str, str], str], key: str, sections: tuple[str, ...]) -> float | None:
    texts = [found[section, key] for section in sections if (section, key) in found]
    return next((number for number in map(_number, texts) if number is not None), None)


def _number(value: object) -> float | None:
    """Return the number of `70.1 W`, `(1700Mhz)` or {"value": 70, "unit": "W"}; None for N/A and all else."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    match = _NUMBER.search(value) if isinstance(value, str) else None
    return float(match.group()) if match else None


def read_amd_smi(text: str) -> Sample | None:
    """Read `amd-smi metric --json` of one device: a list of it, since ROCm 7 below `gpu_data`."""
    answer = json.loads(text)
    devices = answer.get("gpu_data") if isinstance(answer, dict) else answer
    if not isinstance(devices, list) or len(devices) != 1 or not isinstance(devices[0], dict):
        return None
    power, clocks, heat = (_table(devices[0].get(name)) for name in ("power", "clock", "temperature"))
    graphics = _table(clocks.get("gfx_0"))
    throttled = {"UNTHROTTLED": (), "THROTTLED": (UNNAMED,)}.get(str(power.get("throttle_status")))
    clock = _number(graphics.get("clk"))
    if clock is None and throttled is None:
        return None
    return Sample(
        clock_mhz=clock,
        max_clock_mhz=_number(graphics.get("max_clk")),
        temperature_celsius=_number(heat.get("hotspot")),
        power_watts=_number(power.get("socket_power")),
        held_by=throttled,
    )


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def read_rocm_smi(text: str, address: str) -> Sample | None:
    """Read `rocm-smi --json` of all devices: the one at this PCI address. It does not say whether a clock is held."""
    cards = json.loads(text)
    for card in cards.values() if isinstance(cards, dict) else ():
        if not isinstance(card, dict) or str(card.get("PCI Bus")).lower() != address.lower():
            continue
        drawn = (card.get(f"{name} Graphics Package Power (W)") for name in ("Current Socket", "Average"))
        return Sample(
            clock_mhz=_number(card.get("sclk clock speed:")),
            temperature_celsius=_number(card.get("Temperature (Sensor junction) (C)")),
            power_watts=next((number for number in map(_number, drawn) if number is not None), None),
            power_limit_watts=_number(card.get("Max Graphics Package Power (W)")),
        )
    return None


def read_npu_smi(text: str) -> Sample | None:
    """Read `npu-smi info -t common` of a card with one chip. It does not say whether a clock is held."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = (part.strip() for part in line.partition(" : "))
        if separator:
            found.setdefault(key, value)  # behind the chip comes its controller, with a temperature of its own
    # the chips of a card of two are counted through, the cards are not: another one's state
    clock = _number(found.get("Aicore curFreq(MHZ)"))
    if clock is None or found.get("Chip Count", "1") != "1":
        return None
    is_idle = _number(found.get("Aicore Usage Rate(%)")) == 0
    return Sample(
        clock_mhz=clock,
        max_clock_mhz=_number(found.get("Aicore Freq(MHZ)")),
        temperature_celsius=_number(found.get("Temperature(C)")),
        power_watts=_number(found.get("NPU Real-time Power(W)")),
        is_idle=is_idle,
    )
