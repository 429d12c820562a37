"""Hardware models as people name them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from tracker.errors import UsageError
from tracker.profile import CPU, UNKNOWN_DEVICE, VENDORS, Device

_Item = TypeVar("_Item")
_VENDORS: Final = {vendor.lower(): vendor for vendor in VENDORS}
# Ascend910B, Ascend 910B, ascend-910b4, Ascend910_93
_ASCEND: Final = re.compile(r"(?:huawei[\s_-]+)?ascend[\s_-]*(?P<chip>\d{3}\w{0,12}(?:-\d)?)", re.IGNORECASE)


def parse_device(text: str, stated: Device = UNKNOWN_DEVICE) -> Device:
    """A hardware model as a user names it; a known vendor in front is told apart from the model.

    `stated`: what the profile says of it, whose vendor stands in where the user names none.

    >>> parse_device("NVIDIA H100"), parse_device("cpu")
    (Device(vendor='NVIDIA', model='H100'), Device(vendor='', model='cpu'))
    >>> parse_device("ascend 910b"), parse_device("H100", Device("NVIDIA", "unknown"))
    (Device(vendor='Huawei', model='Ascend910B'), Device(vendor='NVIDIA', model='H100'))
    """
    words = text.split()
    if not words:
        raise UsageError("the device is empty", remedy="give --device MODEL, for example --device 'NVIDIA H100'")
    vendors = {stated.vendor.lower(): stated.vendor} | _VENDORS
    vendor = vendors.get(words[0].lower(), "") if len(words) > 1 else ""
    named = spelled(Device(vendor, " ".join(words[1:] if vendor else words)))
    return named if named.vendor or named in (CPU, UNKNOWN_DEVICE) else replace(named, vendor=stated.vendor)


def spelled(device: Device) -> Device:
    """`device` in the spelling of the files, as far as that can be told: no vendor in front of the model, and the chips
    of Ascend as CANN writes them.

    >>> spelled(Device("", "ascend_910b")), spelled(Device("NVIDIA", "NVIDIA  A100-SXM4-40GB"))
    (Device(vendor='Huawei', model='Ascend910B'), Device(vendor='NVIDIA', model='A100-SXM4-40GB'))
    """
    if chip := _ASCEND.fullmatch(device.model):
        return Device("Huawei", f"Ascend{chip['chip'].upper()}")
    words = device.model.split()
    if len(words) > 1 and device.vendor and words[0].lower() == device.vendor.lower():
        words = words[1:]
    return Device(device.vendor, " ".join(words))


def unnamed(device: Device) -> str:
    """A warning where files state the vendor of a device and not its model; '' otherwise."""
    if not device.vendor or device.model != UNKNOWN_DEVICE.model:
        return ""
    return f"the files do not name the chip, which is one of {device.vendor}: --device MODEL does"


def unite_unnamed(by_device: Mapping[Device | None, Sequence[_Item]]) -> list[list[_Item]]:
    """Return what is of one device each: what does not name the chip is with the only chip of its vendor.

    None: what names no device at all, and may have been on any; it is with the only one.

    >>> unite_unnamed({Device("NVIDIA", "unknown"): ["a"], Device("NVIDIA", "H100"): ["b"], Device("", "cpu"): ["c"]})
    [['b', 'a'], ['c']]
    >>> unite_unnamed({None: ["a"], Device("NVIDIA", "H100"): ["b"]})
    [['b', 'a']]
    """
    chips = [device for device in by_device if device is not None and device.model != UNKNOWN_DEVICE.model]
    united: dict[Device | None, list[_Item]] = {}
    for device in sorted(by_device, key=lambda device: device not in chips):
        may_be = [chip for chip in chips if device is None or (device.vendor and chip.vendor == device.vendor)]
        is_open = device not in chips and len(may_be) == 1
        united.setdefault(may_be[0] if is_open else device, []).extend(by_device[device])
    return list(united.values())
