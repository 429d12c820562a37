"""The fields of a Paddle trace that we read, as typed structs; everything else is skipped by the decoder."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from tracker.readers._trace_event import NOTHING, TraceEvent


class Args(Struct, gc=False):
    """`args` of an event."""

    start_time: Any = None
    end_time: Any = None
    correlation: Any = field(default=None, name="correlation id")
    device: Any = None
    stream: Any = None
    bytes: Any = None
    input_shapes: Raw = NOTHING
    input_dtypes: Raw = NOTHING
    callstack: Any = None
    place: Any = None
    addr: Any = None
    increase_bytes: Any = None
    current_allocated: Any = None
    current_reserved: Any = None
    peak_reserved: Any = None
    name: Any = None


class Event(TraceEvent, gc=False):
    """One entry of `traceEvents`; times stay the text that stands in the file. One entry is an empty object."""

    ts: Raw = NOTHING
    dur: Raw = NOTHING
    args: Args | None = None


class Top(Struct):
    """The keys beside `traceEvents` that we know."""

    traceEvents: list[Raw] = []
    schemaVersion: Any = None
    deviceProperties: Any = None
    ExtraInfo: Any = None


EVENTS: Final = Decoder(list[Event])
TOP: Final = Decoder(Top)
