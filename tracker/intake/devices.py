"""Hardware models as people name them."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tracker.errors import UsageError
from tracker.profile import CPU, UNKNOWN_DEVICE, Device

_VENDORS: Final = {"nvidia": "NVIDIA", "amd": "AMD", "huawei": "Huawei", "ascend": "Huawei", "intel": "Intel"}


def parse_device(text: str, stated: Device = UNKNOWN_DEVICE) -> Device:
    """A hardware model as a user names it; a known vendor in front is told apart from the model.

    `stated`: what the profile says of it, whose vendor stands in where the user names none.

    >>> parse_device("NVIDIA H100"), parse_device("cpu")
    (Device(vendor='NVIDIA', model='H100'), Device(vendor='', model='cpu'))
    >>> parse_device("Ascend910B", Device("Huawei", "unknown"))
    Device(vendor='Huawei', model='Ascend910B')
    """
    words = text.split()
    if not words:
        raise UsageError("the device is empty", remedy="give --device MODEL, for example --device 'NVIDIA H100'")
    vendors = {stated.vendor.lower(): stated.vendor} | _VENDORS
    if len(words) > 1 and vendors.get(words[0].lower()):
        return Device(vendors[words[0].lower()], " ".join(words[1:]))
    named = Device("", " ".join(words))
    return named if named in (CPU, UNKNOWN_DEVICE) else replace(named, vendor=stated.vendor)


def unnamed(device: Device) -> str:
    """A warning where files state the vendor of a device and not its model; '' otherwise."""
    if not device.vendor or device.model != UNKNOWN_DEVICE.model:
        return ""
    return f"the files do not name the chip, which is one of {device.vendor}: --device MODEL does"
