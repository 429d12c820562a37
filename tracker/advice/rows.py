"""The rows of a run that evidence reads from the database, each with the columns that rules look at.

None is not known. Numbers of kernels and operators are those of a usual step, 0 where they are not known.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

UNKNOWN: Final = "unknown"
"""Role of a group, or kind of a collective, that nothing says."""


class RunRow(Struct, frozen=True):
    """The run itself."""

    format: str
    device: str | None
    vendor: str | None


class CaptureRow(Struct, frozen=True):
    """A rank over all of its capture. `settings`: those of the profiler, as JSON."""

    run_id: int
    rank: int
    stage: int | None
    host: str
    timeline: str
    duration_ns: int | None
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    quality_reason: str
    settings: str


class StepRow(Struct, frozen=True):
    """A step of a rank. `steps`: of how many steps it is the mean."""

    rank: int
    step: int
    steps: int
    duration_ns: int | None
    e2e_ns: int | None
    whole_ns: int | None
    compute_ns: int | None
    exposed_communication_ns: int | None
    exposed_copy_ns: int | None
    idle_ns: int | None
    host_idle_ns: int | None
    data_loading_ns: int | None
    data_loading_idle_ns: int | None
    peak_allocated_bytes: int | None


class KernelRow(Struct, frozen=True):
    """A kernel of a rank, with the operator that launched it. `sequence`: "" of what stands in none."""

    rank: int
    name: str
    canonical_name: str
    type: str
    core_type: str
    category: str
    input_shapes: str
    input_types: str
    input_formats: str
    op: str
    op_input_shapes: str
    op_input_types: str
    module: str
    phase: str
    calls: float
    total_ns: float
    bytes: float
    sequence_saved_ns: float
    sequence: str


class OpRow(Struct, frozen=True):
    """An operator of a rank."""

    rank: int
    name: str
    input_shapes: str
    input_types: str
    module: str
    phase: str
    calls: float
    host_self_ns: float
    device_self_ns: float
    kernel_count: float


class CollectiveRow(Struct, frozen=True):
    """Collectives inside the steps of a rank, over all of them: what they are, not how long they take."""

    rank: int
    kind: str
    group_role: str
    calls: int
    bytes: int | None
    max_ns: int | None

    @property
    def place(self) -> tuple[str, str]:
        """The role of the group and the kind of the collective, `unknown` where nothing says it."""
        return self.group_role or UNKNOWN, self.kind or UNKNOWN


class LinkRow(Struct, frozen=True):
    """What a rank moved over links. `source_rank`: None of all links together; `packet_bytes`: None of all sizes."""

    rank: int
    kind: str
    group_role: str
    transport: str
    source_rank: int | None
    packet_bytes: int | None
    bytes: int | None

    @property
    def place(self) -> tuple[str, str]:
        """The role of the group and the kind of the collective, `unknown` where nothing says it."""
        return self.group_role or UNKNOWN, self.kind or UNKNOWN


class GroupRow(Struct, frozen=True):
    """A process group. `members`: None where it is not known which ranks are in it; `captured`: how many of them are
    captured.
    """

    group_role: str
    members: int | None
    captured: int | None
