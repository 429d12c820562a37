"""The fields of a Kineto trace that we read, as typed structs; everything else is skipped by the decoder.

Event times stay numbers in `Event` and raw text in `TextEvent`: a double cannot hold `1736413971558972.912`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder, decode

from tracker.readers._trace_event import NOTHING, TraceEvent
from tracker.readers.torch_profiler.kinds import KERNEL_METRICS


class Args(Struct, gc=False):
    """`args` of an event. Scalars are `Any`: old and edited traces write numbers as text."""

    correlation: Any = None
    stream: Any = None
    device: Any = None
    bytes: Any = None
    dims: Raw = field(default=NOTHING, name="Input Dims")
    old_dims: Raw = field(default=NOTHING, name="Input dims")
    types: Raw = field(default=NOTHING, name="Input type")
    concrete: Raw = field(default=NOTHING, name="Concrete Inputs")
    sequence: Any = field(default=None, name="Sequence number")
    forward_thread: Any = field(default=None, name="Fwd thread id")
    external: Any = field(default=None, name="External id")
    old_external: Any = field(default=None, name="external id")
    call_stack: Any = field(default=None, name="Call stack")
    module: Any = field(default=None, name="Module Hierarchy")
    allocated: Any = field(default=None, name="Bytes")
    address: Any = field(default=None, name="Addr")
    device_type: Any = field(default=None, name="Device Type")
    device_id: Any = field(default=None, name="Device Id")
    total_allocated: Any = field(default=None, name="Total Allocated")
    total_reserved: Any = field(default=None, name="Total Reserved")
    collective: Any = field(default=None, name="Collective name")
    elements_in: Any = field(default=None, name="In msg nelems")
    elements_out: Any = field(default=None, name="Out msg nelems")
    group_size: Any = field(default=None, name="Group size")
    data_type: Any = field(default=None, name="dtype")
    group: Any = field(default=None, name="Process Group Name")
    group_ranks: Any = field(default=None, name="Process Group Ranks")
    source: Any = field(default=None, name="Src Rank")
    target: Any = field(default=None, name="Dst Rank")
    group_description: Any = field(default=None, name="Process Group Description")
    name: Any = None
    occupancy: Any = field(default=None, name=KERNEL_METRICS["occupancy"])
    blocks_per_sm: Any = field(default=None, name=KERNEL_METRICS["blocks_per_sm"])
    warps_per_sm: Any = field(default=None, name=KERNEL_METRICS["warps_per_sm"])


class Event(TraceEvent, gc=False):
    """One entry of `traceEvents`, its times as JSON numbers."""

    ts: int | float | str | None = None
    dur: int | float | str | None = None
    id: int | float | str | None = None
    args: Args | None = None


class TextEvent(TraceEvent, gc=False):
    """One entry of `traceEvents`, its times as the text that stands in the file."""

    ts: Raw = NOTHING
    dur: Raw = NOTHING
    id: int | float | str | None = None
    args: Args | None = None


class Top(Struct):
    """The allow-listed keys beside `traceEvents`; all else (`metadata`) is never decoded: it can hold access tokens."""

    traceEvents: list[Raw] = []
    schemaVersion: Any = None
    deviceProperties: Any = None
    distributedInfo: Any = None
    baseTimeNanoseconds: Any = None
    host_name: Any = None
    record_shapes: Any = None
    profile_memory: Any = None
    with_stack: Any = None
    with_flops: Any = None
    with_modules: Any = None
    cupti_version: Any = None
    cuda_runtime_version: Any = None
    cuda_driver_version: Any = None
    roctracer_version: Any = None
    hip_runtime_version: Any = None
    hip_driver_version: Any = None


AnyEvent = Event | TextEvent


def plain(raw: Raw | bytes) -> Any:
    """The value of a raw field; None where it is absent or cannot be held (a number out of range)."""
    try:
        return decode(raw) if bytes(raw) else None
    except (DecodeError, ValueError):
        return None


def kept(args: Args) -> Args:
    """`args` fit to be kept: its raw fields no longer hold the text of the whole chunk in memory."""
    for name in ("dims", "old_dims", "types", "concrete"):
        setattr(args, name, Raw(bytes(getattr(args, name))))
    return args


NO_ARGS: Final = Args()
ARGS: Final = Decoder(Args)
EVENTS: Final = Decoder(list[Event])
TEXT_EVENTS: Final = Decoder(list[TextEvent])
TOP: Final = Decoder(Top)
