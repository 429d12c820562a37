"""Hardware models as people name them."""

from __future__ import annotations

from typing import Final

from tracker.errors import UsageError
from tracker.profile import Device

_VENDORS: Final = {"nvidia": "NVIDIA", "amd": "AMD", "huawei": "Huawei", "ascend": "Huawei", "intel": "Intel"}


def parse_device(text: str) -> Device:
    """A hardware model as a user names it; a known vendor in front is told apart from the model.

    >>> parse_device("NVIDIA H100"), parse_device("cpu")
    (Device(vendor='NVIDIA', model='H100'), Device(vendor='', model='cpu'))
    """
    words = text.split()
    if not words:
        raise UsageError("the device is empty", remedy="give --device MODEL, for example --device 'NVIDIA H100'")
    vendor = _VENDORS.get(words[0].lower(), "") if len(words) > 1 else ""
    return Device(vendor, " ".join(words[1:] if vendor else words))
