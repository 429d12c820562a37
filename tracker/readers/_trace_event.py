"""What the events of every trace in Chrome's format have in common."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Raw, Struct

NOTHING: Final = Raw(b"")
"""A raw field that is not there."""

KINETO_HEADER: Final = re.compile(
    rb'"(?:deviceProperties|distributedInfo|baseTimeNanoseconds|(?:cupti|roctracer)_version|record_shapes)"\s*:'
)
"""A top-level key that only the PyTorch profiler writes beside the list of events."""


class TraceEvent(Struct, gc=False):
    """One entry of the list of events: its phase, category, name, and the lane it lies on."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
