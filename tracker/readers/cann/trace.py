"""msprof_*.json, or the older files that each hold a part of it -> growing columns.

Beside what traces of the frameworks have: iterations (step_trace), calls and collectives without arguments, and times
of the AI core.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from typing import Any, Final

import numpy as np
from msgspec import field
from msgspec.json import Decoder

from tracker.profile import MISSING, LaunchLevel, Strings
from tracker.readers._ascend.counters import CounterRows
from tracker.readers._ascend.levels import LEVELS
from tracker.readers._ascend.trace.events import Trace
from tracker.readers._ascend.trace.schema import Args, Event
from tracker.readers._event_texts import Chunk
from tracker.readers._growing import Growing, as_int
from tracker.readers._source import ReadOptions

STEP_CATEGORY: Final = "Iteration Time"
GAP_CATEGORY: Final = "Data_aug Bound"
_STEP_CATEGORIES: Final = frozenset((STEP_CATEGORY, "FP_BP Time", "Iteration Refresh", "Reduce", "GetNext Time"))
_MODEL: Final = re.compile(r"Model ID:(\d{1,18})")
_LAYER: Final = re.compile(r"(?P<layer>[A-Za-z]+)@(?P<call>.+)")
# layers in front of a call's name, and processes that show one layer
_LAYERS: Final[Mapping[str, LaunchLevel]] = {
    **LEVELS,
    "ascendcl": LaunchLevel.ACL,
    "ge": LaunchLevel.MODEL,
    "modelexecute": LaunchLevel.MODEL,
    "cann": LaunchLevel.RUNTIME,
}
_COLLECTIVE_PROCESSES: Final = frozenset(("hccl", "communication"))
_GAP_NUMBER: Final = re.compile(r"(\d{1,18})$")
_HOST: Final = 31
_SHORTEST_PID: Final = 10_000

Pid = int | str | None


class MsprofArgs(Args, gc=False):
    """`args` of an event of msprof; titles are those of the files."""

    iteration: Any = field(default=None, name="Iteration ID")
    gap_us: Any = field(default=None, name="Data_aug Bound(us)")
    core_time: Any = field(default=None, name="Aicore Time(ms)")
    cycles: Any = field(default=None, name="Total Cycle")


class MsprofEvent(Event, gc=False):
    """One entry of the list; `args` as msprof writes them."""

    args: MsprofArgs | None = None


_EVENTS: Final = Decoder(list[MsprofEvent])


class MsprofTrace(Trace):
    """All events of the timeline of one device.

    `skip`: processes that are left out, those of other devices. `core_times`: row by row beside `tasks`, time in the
    unit of the file, NaN where not said. `spans`: iterations and their parts, by lane, iteration, category and name.
    `gaps_us`: what Data_aug Bound says, by lane and iteration.
    """

    decode: Callable[[bytes], list[Any]] = staticmethod(_EVENTS.decode)
    no_args = MsprofArgs()

    def __init__(
        self, options: ReadOptions, strings: Strings, counters: CounterRows, skip: frozenset[Pid] = frozenset()
    ) -> None:
        super().__init__(options, strings, counters)
        self.core_times = Growing(core_time=np.float64, cycles=np.float64)
        self.spans: dict[tuple[int, int, str, str], tuple[int, int]] = {}
        self.gaps_us: dict[tuple[int, int], float] = {}
        self.others = Growing(start_ns=np.int64, end_ns=np.int64, lane=np.int32, name=np.int32)
        self._process_order: dict[Pid, int] = {}
        self._skip = skip

    def model_of(self, lane: int) -> int:
        """The model whose iterations `lane` shows, -1 where its name says none."""
        match = _MODEL.search(self.lane_names.get(lane, ""))
        return int(match.group(1)) if match else -1

    def device_of_process(self) -> dict[Pid, int]:
        """The device of each process whose number tells it; the host has none."""
        found = {}
        for pid, order in self._process_order.items():
            device = device_in_pid(pid, order)
            if device is not None:
                found[pid] = device
        return found

    def add(self, chunk: Chunk[list[Any]]) -> None:
        """Takes the events of one chunk."""
        super().add(chunk)
        for event in chunk.events:
            if event.cat == GAP_CATEGORY and event.ph == "t" and event.pid not in self._skip:
                self._add_gap(event)

    def finish(self, counted: Set[Pid] | None = None) -> None:
        """Hands the counters of the processes `counted` over (None: of all that are not left out), and sorts what has
        neither category nor telling arguments by its process.
        """
        for key in list(self._counted):
            if key[0] in self._skip or (counted is not None and key[0] not in counted):
                del self._counted[key]
        for place in list(self.core_clocks):
            if place[1] in self._skip:
                del self.core_clocks[place]
        super().finish()
        others = self.others.done()
        process = {lane: self.process_names.get(pid, "").lower() for (pid, _), lane in self.lanes.items()}
        for start, end, lane, name in zip(*(column.tolist() for column in others.values()), strict=True):
            if process[lane] in _COLLECTIVE_PROCESSES:
                self.collectives.add(
                    start_ns=[start], end_ns=[end], lane=[lane], name=[name], connection=[-1], data_type=[0],
                    count=[MISSING],
                )  # fmt: skip
            elif (call := _call(self.strings[name], process[lane])) is not None:
                level, bare = call
                self.calls.add(
                    start_ns=[start], end_ns=[end], lane=[lane], name=[self.strings.code(bare)], level=[level],
                    connection=[-1],
                )  # fmt: skip

    def _kind(self, event: Event) -> Callable[..., None] | None:
        if event.pid in self._skip:
            return None
        if event.cat in _STEP_CATEGORIES:
            return self._add_part
        take = super()._kind(event)
        return self._add_other if take is None and event.cat is None else take

    def _add_arrow(self, event: Event, index: int, chunk: Chunk[list[Event]], rows: dict[str, list[Any]]) -> None:
        if event.pid not in self._skip:
            super()._add_arrow(event, index, chunk, rows)

    def _add_task(self, span: tuple[int, ...], args: Any, event: Event, rows: dict[str, list[Any]]) -> None:
        super()._add_task(span, args, event, rows)
        rows.setdefault("core_times", []).append((_number(args.core_time), _number(args.cycles)))

    def _add_part(self, span: tuple[int, ...], args: Any, event: Event, rows: dict[str, list[Any]]) -> None:
        # the files of all iterations, and both kinds of files, repeat the same spans
        iteration = _whole(args.iteration)
        if iteration >= 0:
            self.spans[span[2], iteration, event.cat or "", event.name or ""] = span[0], span[1]

    def _add_gap(self, event: MsprofEvent) -> None:
        number = _GAP_NUMBER.search(event.name or "")
        value = _number(event.args.gap_us if event.args else None)
        if number and np.isfinite(value):
            self.gaps_us[self._lane(event), int(number.group(1))] = value

    def _add_other(self, span: tuple[int, ...], args: Any, event: Event, rows: dict[str, list[Any]]) -> None:
        rows.setdefault("others", []).append(span)

    def _name(self, event: Event) -> None:
        super()._name(event)
        if event.name == "process_sort_index" and event.args is not None:
            self._process_order[event.pid] = _whole(event.args.sort_index)


def device_in_pid(pid: Pid, order: int) -> int | None:
    """The device whose process has this number; `order` is the sort index that the file gives it, its layer.

    >>> device_in_pid(1059056 << 10 | 13 << 5 | 3, 13), device_in_pid(4376751103, 11), device_in_pid(1003611, 11)
    (3, 3, None)
    """
    if not isinstance(pid, int) or order < 0:
        return None
    # msprof's analysis, JsonAssembler::GetFormatPid: pid << 10 | layer << 5 | device, where 31 is the host
    if pid >> 5 & 31 == order:
        return pid & 31 if pid & 31 < _HOST else None
    # CANN 7 wrote two decimal digits each
    return pid % 100 if pid // 100 % 100 == order and pid >= _SHORTEST_PID else None


def _call(name: str, process: str) -> tuple[LaunchLevel, str] | None:
    """Layer and bare name of a call of CANN, None for spans of processes that show no calls.

    >>> _call("GE@Infer", "cann"), _call("aclrtMalloc", "ascendcl"), _call("Computing", "overlap analysis")
    ((<LaunchLevel.MODEL: 5>, 'Infer'), (<LaunchLevel.ACL: 3>, 'aclrtMalloc'), None)
    """
    if process not in _LAYERS:
        return None
    match = _LAYER.fullmatch(name)
    layer = match.group("layer").lower() if match else process
    return _LAYERS.get(layer, _LAYERS[process]), match.group("call") if match else name


def _whole(value: object) -> int:
    return as_int(value, -1)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
