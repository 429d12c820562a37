"""What a device can do at most: the table of devices.toml, and what an NPU states of itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct, convert

_TABLE: Final = Path(__file__).with_name("devices.toml")
_MOBILE: Final = re.compile(r"Laptop|Max-Q|Mobile", re.IGNORECASE)
"""Cards of notebooks have the names of others, and lower rates."""
_OTHER_CARD: Final = r"[ -]?(?:Ti|SUPER|XT|XTX|GRE)\b"
"""Words behind the name of a card that make it another one."""
_SIZE: Final = re.compile(r"(?<![0-9.])(\d{1,3}) ?GB", re.IGNORECASE)
_LARGEST: Final = 400.0
_SAME_SIZE: Final = 8.0
"""GiB by which the memory that a name states may differ from that of an entry."""
_FLOPS_OF_A_CORE: Final = 8192
"""Floating point operations that an AI core of Ascend does in one cycle, of 16 bits: msprof-analyze, operator_mfu."""


class Peaks(Struct, frozen=True):
    """`half`, `tf32`, `fp32`, `byte`: dense TFLOP/s with numbers of 16 bits, of tf32, 32 bits and 8 bits; None: not
    known, or not offered. `is_without_bf16`: of 16 bits the matrix units take fp16 alone. `source`: where the numbers
    stand.
    """

    model: str
    source: str
    half: float | None = None
    tf32: float | None = None
    fp32: float | None = None
    byte: float | None = None
    memory_gb_per_s: float | None = None
    memory_gib: float | None = None
    is_without_bf16: bool = False

    def tflops(self, kind: str) -> float | None:
        """TFLOP/s with numbers of a kind: half, tf32, fp32 or byte; None of any other."""
        return getattr(self, kind, None) if kind in ("half", "tf32", "fp32", "byte") else None


class _Table(Struct):
    device: list[Peaks]


@lru_cache(1)
def devices() -> tuple[Peaks, ...]:
    """The devices of the table, in its order."""
    return tuple(convert(tomllib.loads(_TABLE.read_text("utf-8")), _Table).device)


def _is_named(entry: str, model: str) -> bool:
    """Whether the name of a device holds the model of an entry as words of their own: an A10 is no A100.

    >>> _is_named("A10", "NVIDIA A100-SXM4-80GB"), _is_named("A10", "NVIDIA A10"), _is_named("T4", "Tesla T4")
    (False, True, True)
    >>> _is_named("RTX 3080", "GeForce RTX 3080 Ti"), _is_named("RTX 3080", "GeForce RTX 3080")
    (False, True)
    """
    if _MOBILE.search(model) and not _MOBILE.search(entry):
        return False
    words = re.escape(entry.removesuffix("*")) + (r"\w*" if entry.endswith("*") else "")
    return re.search(rf"(?<![A-Za-z0-9]){words}(?![A-Za-z0-9]|{_OTHER_CARD})", model, re.IGNORECASE) is not None


def _has_memory(device: Peaks, model: str) -> bool:
    """Whether the size that a name states, if any, is that of the device."""
    stated = _SIZE.search(model)
    size = float(stated[1]) if stated else None
    # a larger number is the memory of the host beside it: GH200 480GB
    if size is None or device.memory_gib is None or size > _LARGEST:
        return True
    return abs(size - device.memory_gib) <= _SAME_SIZE


def device_of(model: str, facts: Mapping[str, str]) -> Peaks | None:
    """What a device of this name can do, by its name, else by the cores and the clock that the profile states."""
    found = next((one for one in devices() if _is_named(one.model, model) and _has_memory(one, model)), None)
    if found is not None:
        return found
    try:
        cores, mhz = float(facts.get("ai_core_num", "")), float(facts.get("aic_frequency", ""))
    except ValueError:
        return None
    source = f"{cores:g} AI cores x {mhz:g} MHz x {_FLOPS_OF_A_CORE} FLOP, as the profile states"
    half = cores * mhz * _FLOPS_OF_A_CORE / 1e6
    return Peaks(model=model, source=source, half=half, byte=2 * half)
