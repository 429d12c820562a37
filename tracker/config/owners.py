"""Who answers for an operator of a workload, by the owners of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from tracker.config.entries import Owner
from tracker.units import device_part


def matches(pattern: str, text: str) -> bool:
    """Return whether the glob `pattern` fits the whole of `text`, without regard to case.

    >>> matches("*Attention*", "flash_attention_fwd"), matches("aten::mm", "aten::mm_out")
    (True, False)
    """
    return fnmatchcase(text.lower(), pattern.lower())


def fits_device(pattern: str, device: str) -> bool:
    """Whether `pattern` fits the device, with its vendor or without, however both are spelled.

    >>> [fits_device(pattern, "NVIDIA H100 80GB") for pattern in ("H100*", "nvidia*", "H100", "A100*")]
    [True, True, False, False]
    >>> fits_device("Ascend 910B", "Huawei Ascend910B")
    True
    """
    names = (device, device.partition(" ")[2])
    return any(matches(pattern, name) or matches(device_part(pattern), device_part(name)) for name in names)


def owner_of(owners: Sequence[Owner], workload: str, name: str) -> str:
    """Return who answers for the operator `name`: the first owner whose patterns fit; "" where none does."""
    for owner in owners:
        if owner.who and matches(owner.op, name) and matches(owner.workload, workload):
            return owner.who
    return ""


def list_owners(owners: Sequence[Owner]) -> list[str]:
    """Return the names of all owners, each once, in order.

    >>> list_owners([Owner(op="*mm*", who="Li"), Owner(op="*norm*", who="Ann"), Owner(op="*", who="Li")])
    ['Ann', 'Li']
    """
    return sorted({owner.who for owner in owners if owner.who})
