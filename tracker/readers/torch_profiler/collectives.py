"""What a trace says of collective calls: one vocabulary for the spellings of NCCL, RCCL, gloo and torch.distributed.

Three places say it: args of the kernel (in newer exports), args of the host op `record_param_comms`, and shape and
type of the annotation `nccl:all_reduce`, `gloo:all_reduce`, ... that lies inside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Final

from msgspec import Struct

from tracker.profile import MISSING, ranks_text
from tracker.readers._collectives import Call, kind_of, role_of
from tracker.readers.torch_profiler.schema import Args, plain

RECORD: Final = "record_param_comms"
# the libraries of all makers: nccl, rccl, xccl, hccl, mccl, cncl, ...
_ANNOTATION: Final = re.compile(r"(?:[a-z]{1,2}ccl|cncl|gloo|ucc|mpi):(.+)")

# at::ScalarType names (kernel args) and TypeMeta names (Input type) -> name, bytes of one element
_DATA_TYPES: Final[Mapping[str, tuple[str, int]]] = {
    "float": ("float32", 4),
    "double": ("float64", 8),
    "half": ("float16", 2),
    "bfloat16": ("bfloat16", 2),
    "long": ("int64", 8),
    "long int": ("int64", 8),
    "int": ("int32", 4),
    "short": ("int16", 2),
    "short int": ("int16", 2),
    "char": ("int8", 1),
    "signed char": ("int8", 1),
    "byte": ("uint8", 1),
    "unsigned char": ("uint8", 1),
    "bool": ("bool", 1),
    "complexfloat": ("complex64", 8),
    "complexdouble": ("complex128", 16),
    "float8_e4m3fn": ("float8_e4m3fn", 1),
    "float8_e5m2": ("float8_e5m2", 1),
    "float8_e4m3fnuz": ("float8_e4m3fnuz", 1),
    "float8_e5m2fnuz": ("float8_e5m2fnuz", 1),
}


class Group(Struct, frozen=True):
    """A process group of `distributedInfo.pg_config`; `size` may be MISSING. `ranks`: as `ranks_text` writes them."""

    name: str
    role: str
    size: int
    ranks: str = ""


def is_collective(name: str) -> bool:
    """True for host events that may carry a collective: `record_param_comms`, annotations like `nccl:all_reduce`."""
    return name == RECORD or _ANNOTATION.match(name) is not None


def call_of_args(args: Args, groups: Mapping[str, Group]) -> Call | None:
    """The collective named in `args` of a kernel or of `record_param_comms`; None where they name none.

    bytes = input elements x element size; output elements where the rank puts nothing in (recv).
    """
    kind = kind_of(args.collective) if isinstance(args.collective, str) else ""
    if not kind:
        return None
    data_type, size = _data_type(args.data_type)
    elements = next((n for n in (args.elements_in, args.elements_out) if type(n) is int and n > 0), None)
    name = str(args.group) if args.group is not None else ""
    group = groups.get(name) or Group(name, "", MISSING)
    group_size = args.group_size if type(args.group_size) is int else group.size
    described = role_of(args.group_description) if isinstance(args.group_description, str) else ""
    return Call(
        kind,
        data_type,
        elements * size if elements is not None and size else MISSING,
        name,
        described or group.role,
        group_size,
        group.ranks or _stated_ranks(args.group_ranks, group_size),
        _peer(kind, args),
    )


def call_of_annotation(name: str, args: Args, groups: Mapping[str, Group]) -> Call | None:
    """The collective that `nccl:all_reduce` with its `Input Dims` and `Input type` stands for; None for other names.

    Such an annotation names no group: it is the only group of the run, or unknown.
    """
    match = _ANNOTATION.match(name)
    kind = kind_of(match.group(1)) if match else ""
    if not kind:
        return None
    data_type, payload = _payload(plain(args.dims) or plain(args.old_dims), plain(args.types))
    only = next(iter(groups.values())) if len(groups) == 1 else Group("", "", MISSING)
    return Call(kind, data_type, payload, only.name, only.role, only.size, only.ranks)


def _stated_ranks(text: object, size: int) -> str:
    """The members of a group from `[0, 2]`; '' where the list is shortened, as Kineto does with more than 30."""
    if not isinstance(text, str):
        return ""
    ranks = [int(word) for word in re.findall(r"\d{1,9}", text)]
    return ranks_text(ranks) if len(ranks) == size else ""


def _peer(kind: str, args: Args) -> int:
    """The global rank at the other end of a send or receive; -1 where the trace does not say it."""
    rank = {"send": args.target, "recv": args.source}.get(kind)
    return rank if type(rank) is int and rank >= 0 else -1


def _data_type(text: object) -> tuple[str, int]:
    if not isinstance(text, str):
        return "", 0
    return _DATA_TYPES.get(text.removeprefix("c10::").lower(), (text, 0))


def _payload(shapes: object, types: object) -> tuple[str, int]:
    """Data type and bytes of the tensors among the inputs; bytes MISSING where one of them is not understood."""
    if not isinstance(shapes, list) or not isinstance(types, list):
        return "", MISSING
    total = 0
    names: dict[str, None] = {}
    for shape, text in zip(shapes, types, strict=False):
        name, size = _data_type(text)
        if not name or name.startswith("Scalar"):
            continue
        names[name] = None
        known = size and isinstance(shape, list) and all(type(n) is int for n in shape)
        total = total + prod(shape) * size if known and total != MISSING else MISSING
    return ",".join(names), total if names else MISSING
