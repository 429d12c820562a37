"""What a capture states of the job that it is of, made in one place for what is read and for what is stored."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from tracker.profile.captures import CPU, UNKNOWN_DEVICE, Capture, Device
from tracker.profile.numbered_names import process_in_path
from tracker.profile.rows import Rows
from tracker.profile.runtime_names import launches_work
from tracker.profile.step_windows import Window, window_in_path
from tracker.profile.words import PROCESS_SETTING, RANK_BY_ORDER, RANK_SETTING

_COLLECTIVE: Final = re.compile(r"^(?:c10d::|record_param_comms|(?:nccl|rccl|gloo|hccl|xccl|mccl)[:_])", re.IGNORECASE)
"""What operators of collectives are called on the host."""
_IN_ALL_WORK: Final = ("communication", "copy", "memset")
"""Categories of kernels that do not tell one part of a job from another one."""

Collectives = tuple[tuple[str, int], ...]


class CaptureWork(Struct, frozen=True):
    """What the rows of a capture say of its job.

    steps: the numbers of its steps, in order.
    collectives: how often it exchanged what, which is equal in all ranks of one job.
    has_device: whether anything ran on a device.
    launched: whether it called what launches a kernel or a graph, or took part in a collective.
    saw_device: whether it did something with a device that the source does not name.
    kernels: the names of what computed on the device.
    """

    steps: tuple[int, ...] = ()
    collectives: Collectives = ()
    has_device: bool = True
    launched: bool = True
    saw_device: bool = False
    kernels: frozenset[str] = frozenset()


class Traits(Struct, frozen=True):
    """What a capture says of the job that it is of.

    place: the file or folder that holds it.
    rank: None where nothing states it.
    rank_by: '' where the source states the rank; else RANK_BY_NAME or RANK_BY_ORDER.
    started_at_ns, ended_at_ns: UTC; None where the clock is not absolute.
    process: its number on the host; '' where the source does not say it.
    work: what its rows say; of a stored capture it is looked up where it decides.
    ranks: all that the file of the capture states, which may hold several captures.
    world_size, job_id: None where nothing states them.
    """

    place: str
    rank: int | None
    host: str
    device_ordinal: int | None
    started_at_ns: int | None
    ended_at_ns: int | None
    process: str = ""
    work: CaptureWork = CaptureWork()
    rank_by: str = ""
    ranks: frozenset[int] = frozenset()
    world_size: int | None = None
    job_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)
    device: Device = UNKNOWN_DEVICE

    @property
    def names_no_device(self) -> bool:
        """Whether nothing ran on a device and no file names one: it may have been any, whose records were lost."""
        return not self.work.has_device and self.device in (CPU, UNKNOWN_DEVICE)

    @property
    def first_step(self) -> int:
        """The number of its first step, of a capture with steps."""
        window = self._nameless_window
        return min(self.work.steps) if window is None else window.first

    @property
    def last_step(self) -> int:
        """The number of its last step, of a capture with steps."""
        window = self._nameless_window
        return max(self.work.steps) if window is None else window.last

    @property
    def _nameless_window(self) -> Window | None:
        """The window of the run that the folder names, where no event names a step."""
        window = window_in_path(self.place)
        if window is None or any(window.first <= step <= window.last for step in self.work.steps):
            return None
        return window

    @property
    def weight(self) -> tuple[int, int, int]:
        """The order in which cycles of one process count: the longest, and of those the last."""
        window = self._nameless_window
        steps = len(self.work.steps) if window is None else window.steps
        return steps, self.started_at_ns or 0, self.ended_at_ns or 0


def traits_of(capture: Capture, place: str, work: CaptureWork) -> Traits:
    """Return what a capture that lies at a place says of its job; `work`: what its rows say."""
    rank_by = capture.settings.get(RANK_SETTING, "")
    rank = None if rank_by == RANK_BY_ORDER else capture.rank
    return Traits(
        place=place,
        rank=rank,
        host=capture.host,
        device_ordinal=capture.device_ordinal,
        started_at_ns=capture.started_at_ns,
        ended_at_ns=capture.ended_at_ns,
        process=capture.settings.get(PROCESS_SETTING) or process_in_path(place),
        work=work,
        rank_by=rank_by,
        ranks=frozenset() if rank is None else frozenset({rank}),
        world_size=capture.world_size,
        job_id=capture.facts.get("job_id"),
        labels=capture.labels,
        configuration=capture.configuration,
        device=capture.device,
    )


def work_of(capture: Capture) -> CaptureWork:
    """Return what the rows of a capture say of its job."""
    rows = capture.rows
    if rows is None:
        return CaptureWork()
    return CaptureWork(
        steps=tuple(step.step for step in rows.steps),
        collectives=_count_collectives(rows),
        has_device=rows.overall.timeline == "device",
        launched=_launched(rows),
        saw_device=capture.device == UNKNOWN_DEVICE,
        kernels=_computing_kernels(rows),
    )


def _launched(rows: Rows) -> bool:
    calls = rows.tables.get("api", {}).get("name", ())
    operators = rows.tables.get("op_key", {}).get("name", ())
    if any(launches_work(str(name)) for name in calls) or any(_COLLECTIVE.search(str(name)) for name in operators):
        return True
    return bool(_count_collectives(rows))


def _computing_kernels(rows: Rows) -> frozenset[str]:
    """Return the names of the kernels of a rank, but for communication, copies and memsets, which all work has.

    On Ascend names may count the calls of a type: there it is the type.
    """
    table, keys = rows.tables.get("kernel", {}), rows.tables.get("kernel_key", {})
    names, types = keys.get("canonical_name", ()), keys.get("type", ())
    kernels = set()
    for key, category in zip(table.get("kernel_key", ()), table.get("category", ()), strict=True):
        if category not in _IN_ALL_WORK:
            kernels.add(str(types[int(key)] or names[int(key)]))
    return frozenset(kernels)


def _count_collectives(rows: Rows) -> Collectives:
    """Return how often a rank exchanged what."""
    table = rows.tables.get("communication", {})
    calls: Counter[str] = Counter()
    for kind, count in zip(table.get("kind", ()), table.get("calls", ()), strict=True):
        calls[str(kind)] += int(count)
    return tuple(sorted(calls.items()))
