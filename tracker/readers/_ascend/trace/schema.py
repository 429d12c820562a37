"""The fields of trace_view.json that we read, as typed structs; everything else is skipped by the decoder.

What an event is shows in its `cat` or, where Ascend writes none, in the names of its args.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw, Struct, field
from msgspec.json import Decoder, decode

from tracker.readers._trace_event import NOTHING, TraceEvent


class Args(Struct, gc=False):
    """`args` of an event. Scalars are `Any`: versions write numbers as text and text as numbers."""

    name: Any = None
    sort_index: Any = None
    dims: Any = field(default=None, name="Input Dims")
    types: Any = field(default=None, name="Input type")
    sequence: Any = field(default=None, name="Sequence number")
    forward_thread: Any = field(default=None, name="Fwd thread id")
    call_stack: Any = field(default=None, name="Call stack")
    old_call_stack: Any = field(default=None, name="Call Stack")
    module: Any = field(default=None, name="Module Hierarchy")
    correlation: Any = field(default=None, name="correlation_id")
    level: Any = None
    connection: Any = field(default=None, name="connection_id")
    task_type: Any = field(default=None, name="Task Type")
    stream: Any = field(default=None, name="Stream Id")
    physic_stream: Any = field(default=None, name="Physic Stream Id")
    task: Any = field(default=None, name="Task Id")
    plane_task_type: Any = field(default=None, name="task type")
    source: Any = field(default=None, name="src rank")
    target: Any = field(default=None, name="dst rank")
    size: Any = field(default=None, name="size(Byte)")
    link_type: Any = field(default=None, name="link type")
    data_type: Any = None
    count: Any = None
    megahertz: Any = field(default=None, name="MHz")


class Event(TraceEvent, gc=False):
    """One entry of the list. `ts` is text of us with three decimals; `dur` a number with up to 14 of them."""

    ts: str | int | float | None = None
    dur: str | int | float | None = None
    id: int | float | str | None = None
    args: Args | None = None


class CounterEvent(Struct, gc=False):
    """A counter (ph C): its args are the numbers it counts."""

    ph: str | None = None
    name: str | None = None
    pid: int | str | None = None
    args: Raw = NOTHING


def counted_by(event: CounterEvent) -> dict[str, Any]:
    """The args of a counter; empty where it has none."""
    value = decode(event.args) if bytes(event.args) else None
    return value if isinstance(value, dict) else {}


EVENTS: Final = Decoder(list[Event])
COUNTERS: Final = Decoder(list[CounterEvent])
