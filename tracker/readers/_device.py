"""Device events from the columns that a source has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import MISSING, DeviceEvents

_UNKNOWN: Final[Mapping[str, tuple[type, int]]] = {
    **dict.fromkeys(("bytes", "step", "wait_ns"), (np.int64, MISSING)),
    "correlation": (np.int64, -1),
    "collective": (np.int32, -1),
    **dict.fromkeys(("type", "core_type", "input_shapes", "input_types", "input_formats"), (np.int32, 0)),
}


def device_events(known: Mapping[str, NDArray[Any]]) -> DeviceEvents:
    """The events of one device; columns that `known` lacks say nothing.

    `start_ns`, `end_ns`, `stream`, `name` and `kind` must be there. What is no column of DeviceEvents is passed over,
    and so is `process`, which is 0: sources number the processes of all captures.
    """
    count = len(known["start_ns"])
    columns: dict[str, Any] = {name: known[name] for name in ("start_ns", "end_ns", "stream", "name", "kind")}
    for name, (dtype, nothing) in _UNKNOWN.items():
        columns[name] = known[name] if name in known else np.full(count, nothing, dtype=dtype)
    return DeviceEvents(**columns, process=np.zeros(count, dtype=np.int32))
