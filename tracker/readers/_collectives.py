"""Collective calls as every reader names them: kinds, roles of process groups, and the table of calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct

from tracker.profile import MISSING, Collectives, ProcessGroups, Strings
from tracker.readers._growing import int_column

# longest words first: reduce_scatter is neither a reduce nor a scatter
_KINDS: Final = (
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("sendrecv", "send_recv"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("reduce", "reduce"),
    ("send", "send"),
    ("recv", "recv"),
    ("receive", "recv"),
)

_ROLES: Final[Mapping[str, str]] = {
    "data": "dp",
    "tensor": "tp",
    "pipeline": "pp",
    "expert": "ep",
    "context": "cp",
    "sequence": "sp",
    **{word: word for word in ("dp", "tp", "pp", "ep", "cp", "sp", "fsdp", "hsdp", "etp", "edp", "embd")},
}


class Call(Struct, frozen=True):
    """What one event says of a collective; '' and MISSING for what it leaves out. `group` is the raw group name,
    `group_ranks` its members as `ranks_text` writes them, `peer` the global rank at the other end (-1: none).
    """

    kind: str
    data_type: str = ""
    bytes: int = MISSING
    group: str = ""
    group_role: str = ""
    group_size: int = MISSING
    group_ranks: str = ""
    peer: int = -1


def kind_of(name: str) -> str:
    """The kind of a collective from any spelling of its name; an unknown name stays itself, `wait` is none.

    >>> kind_of("_allgather_base"), kind_of("all_to_allv"), kind_of("reduce_scatter_tensor_coalesced"), kind_of("wait")
    ('all_gather', 'all_to_all', 'reduce_scatter', '')
    """
    letters = re.sub(r"[^a-z]", "", name.lower())
    if letters in ("", "wait", "init"):
        return ""
    return next((kind for word, kind in _KINDS if word in letters), name.strip().strip("_").lower())


def role_of(description: str) -> str:
    """The role of a process group from its description, '' where it names none.

    >>> role_of("default_pg"), role_of("mesh_dp"), role_of("TENSOR_MODEL_PARALLEL_GROUP"), role_of("undefined")
    ('default', 'dp', 'tp', '')
    """
    words = re.findall(r"[a-z0-9]+", description.lower())
    if words[:1] == ["default"]:
        return "default"
    return "_".join(dict.fromkeys(_ROLES[word] for word in words if word in _ROLES))


class Listed(Protocol):
    """A process group that a source lists; `ranks` as `ranks_text` writes them."""

    @property
    def role(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def ranks(self) -> str: ...


def process_groups(groups: Iterable[Listed], strings: Strings) -> ProcessGroups:
    """The groups of a process as columns; texts go into `strings`."""
    listed = list(groups)
    return ProcessGroups(
        role=np.array([strings.code(group.role) for group in listed], dtype=np.int32),
        size=np.array([group.size for group in listed], dtype=np.int64),
        ranks=np.array([strings.code(group.ranks) for group in listed], dtype=np.int32),
    )


class CallTable:
    """Distinct calls -> rows of `Collectives`."""

    def __init__(self) -> None:
        self._index: dict[Call, int] = {}

    def index(self, call: Call) -> int:
        """The row of `call`."""
        return self._index.setdefault(call, len(self._index))

    def table(self, strings: Strings) -> Collectives:
        """All rows; texts go into `strings`."""
        calls = list(self._index)

        def texts(name: str) -> Any:
            return np.array([strings.code(getattr(call, name)) for call in calls], dtype=np.int32)

        return Collectives(
            kind=texts("kind"),
            group=texts("group"),
            group_role=texts("group_role"),
            group_size=int_column([call.group_size for call in calls], MISSING),
            group_ranks=texts("group_ranks"),
            data_type=texts("data_type"),
            bytes=int_column([call.bytes for call in calls], MISSING),
            peer=int_column([call.peer for call in calls], -1),
            source_index=np.full(len(calls), MISSING, dtype=np.int64),
        )
