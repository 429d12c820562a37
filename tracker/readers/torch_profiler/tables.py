"""The tables that the events of a trace are collected in: growing columns, and what their numbers stand for."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracker.profile import Strings
from tracker.readers._growing import INTEGER, Growing
from tracker.readers.torch_profiler.convolutions import Convolutions
from tracker.readers.torch_profiler.kinds import KERNEL_METRICS
from tracker.readers.torch_profiler.op_texts import OpNames, Texts
from tracker.readers.torch_profiler.schema import AnyEvent, Args

MODULE_PREFIX: Final = "nn.Module: "


class EventTables:
    """All events of a trace as columns. Threads are `(pid, tid)`, numbered in order of first sight."""

    def __init__(self) -> None:
        self.strings = Strings()
        self.threads: dict[tuple[int | str | None, int | str | None], int] = {}
        self.thread_names: dict[int, str] = {}
        self.skipped = 0
        self.flow_codes: dict[str, int] = {}  # categories of the flow events -> code
        self.op_calls: list[tuple[int, str, Args]] = []  # row of ops, name, args: ops that may carry a collective
        self.kernel_calls: list[tuple[int, Args]] = []
        spans = {"start_ns": np.int64, "end_ns": np.int64, "thread": np.int32, "name": np.int32}
        texts = dict.fromkeys(("input_shapes", "input_types", "module", "call_stack"), np.int32)
        flags = {"is_backward": np.int8, "is_annotation": np.int8}
        self.convolutions = Convolutions()
        self.ops = Growing(**spans, **texts, sequence=np.int64, external=np.int64, **flags)
        self.frames = Growing(**spans, is_module=np.int8)
        self.launches = Growing(**spans, level=np.int8, correlation=np.int64)
        numbers = dict.fromkeys(("stream", "ordinal", "correlation", "bytes", "external"), np.int64)
        self.device = Growing(**spans, **numbers, **dict.fromkeys(KERNEL_METRICS, np.float64), kind=np.int8)
        memory = ("bytes", "address", "device_type", "device_id", "total_allocated", "total_reserved")
        self.memory = Growing(time_ns=np.int64, thread=np.int32, **dict.fromkeys(memory, np.int64))
        self.flows = Growing(time_ns=np.int64, thread=np.int32, id=np.int64, category=np.int32, is_end=np.int8)
        self.markers = Growing(start_ns=np.int64, end_ns=np.int64, thread=np.int32, step=np.int64)
        self.texts = Texts(self.strings)
        self.op_names = OpNames(self.strings)
        self._frame_names: dict[str | None, int] = {}  # name -> 2 * code + 1 for modules
        self._lanes: dict[tuple[int | str | None, int | str | None], int] = {}  # (pid, tid) as written -> thread
        self.flow_ids: dict[object, int] = {}  # those that are no numbers a column holds -> negative numbers

    def thread(self, pid: int | str | None, tid: int | str | None) -> int:
        """The number of a thread, given out on first sight."""
        known = self._lanes.get((pid, tid))
        if known is not None:
            return known
        thread = self.threads.setdefault((_id(pid), _id(tid)), len(self.threads))
        self._lanes[pid, tid] = thread
        return thread

    def name_thread(self, event: AnyEvent) -> None:
        """Takes the name of a thread, if that is what this event of phase M tells."""
        if event.name == "thread_name" and event.args is not None and isinstance(event.args.name, str):
            self.thread_names[self.thread(event.pid, event.tid)] = event.args.name

    def frame_name(self, name: str | None) -> int:
        """2 * code of the name of a Python frame, + 1 for a module."""
        text = name or ""
        code = self.strings.code(text.removeprefix(MODULE_PREFIX))
        self._frame_names[name] = 2 * code + text.startswith(MODULE_PREFIX)
        return self._frame_names[name]


def _id(value: int | str | None) -> int | str | None:
    """One thread may be 5555 in one event and "5555" in another; the rest of absurdly long numbers is cut."""
    if isinstance(value, str):
        return int(value) if INTEGER.fullmatch(value) else value
    return value % (1 << 63) if isinstance(value, int) and abs(value) >= 1 << 63 else value
