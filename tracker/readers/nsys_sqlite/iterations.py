"""The steps of an export in which no range counts them: what the ranges and the kernels themselves say.

| what is found | the step |
|---|---|
| ranges of one name with `step` or `iteration` in it, twice or more, with half of the kernel time | each |
| the same kernels in the same order, three times or more, and nothing else from the first kernel to the last | each |
| the same, of half of the kernel time, where each ends with the kernels of an optimizer | each |

No step is a range that comes once, as a loop or a benchmark does, a call of a method `step`, a marker that is a
dictionary, a part of another range that comes as often, or a warm-up where others repeat.

Repeated kernels alone prove no iteration: the layers of a network repeat, too, and a window of time that was cut out
of a job shows nothing else. A whole number of repetitions from the first kernel to the last, or an optimizer in each,
does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, DeviceKind, Events, Frames, Markers
from tracker.readers._nvtx import has_step_word, is_warm_up

_FEWEST: Final = 3
"""Two equal halves may be anything."""
_MOST: Final = 10_000
"""More repetitions than this are no iterations: each is a step with rows of its own."""
_MAIN: Final = 0.5
"""This share of the kernel time is inside of what is taken for the steps."""

_OPTIMIZER: Final = re.compile(
    r"multi_tensor_apply|Adam|LAMB|Lamb(?!da)|Lion|Adagrad|RMSprop|Adafactor|FusedS[gG][dD]"
    r"|(?<![a-z])(?:adamw?|lamb|lion|adagrad|rmsprop|adafactor|fused_sgd)(?![a-z])"
)
"""Kernels of an optimizer: one over many tensors, or one with a name of its own."""


class _Kernels(Struct, frozen=True):
    """The kernels of the busiest stream without communication, in the order in which they ran.

    `name`: codes of their names. `launch_ns`: when each was launched, never before the one before it; where no launch
    is known, when it began. `before_ns`: how long all kernels before each ran together, one number more than kernels.
    """

    name: Any
    launch_ns: I64
    before_ns: I64

    @property
    def whole_ns(self) -> int:
        """How long all of them ran together."""
        return int(self.before_ns[-1])

    def share_of(self, first: int, end: int) -> float:
        """Return the share of the kernel time that the kernels from `first` to before `end` have."""
        return float(self.before_ns[end] - self.before_ns[first]) / self.whole_ns


class FoundSteps(Struct, frozen=True):
    """The steps of an export: the markers of each capture, none where nothing is sure; `sentence`: what they stand for;
    `kind`: the same as a setting, which is equal in captures that can be compared.
    """

    markers: Sequence[Markers] = ()
    sentence: str = ""
    kind: str = ""


def find_steps(captures: Sequence[Events]) -> FoundSteps:
    """Return the steps of an export in which no range counts them.

    captures: all that one export has, none with markers. Where one of them has other steps than the rest, none has
    any: the steps of ranks are compared by their numbers.
    """
    kernels = [_kernels_of(events) for events in captures]
    if not captures or not all(one.whole_ns for one in kernels):
        return FoundSteps()
    ranges = [_step_ranges(events, own) for events, own in zip(captures, kernels, strict=True)]
    name, count = ranges[0].name, len(ranges[0].start_ns)
    if count and all((one.name, len(one.start_ns)) == (name, count) for one in ranges):
        said = f"each of the {count} ranges {name} is one"
        return FoundSteps([_markers(one.start_ns, one.end_ns) for one in ranges], said, f"range {name}")
    cuts = [_cut_iterations(events, own) for events, own in zip(captures, kernels, strict=True)]
    count = len(cuts[0]) - 1
    if count < _FEWEST or any(len(cut) - 1 != count for cut in cuts):
        return FoundSteps()
    markers = [_of_kernels(own, cut) for own, cut in zip(kernels, cuts, strict=True)]
    said = f"{count} iterations were found, each with the same kernels in the same order"
    return FoundSteps(markers, said, "repeated kernels")


def _kernels_of(events: Events) -> _Kernels:
    device = events.device
    names, place = np.unique(device.name, return_inverse=True)
    communicates = np.array(["nccl" in events.strings[int(code)].lower() for code in names], dtype=bool)
    computes = (device.kind == DeviceKind.KERNEL) & (device.collective < 0)
    rows = np.flatnonzero(computes & ~communicates[place]) if len(names) else np.flatnonzero(computes)
    length_ns = device.end_ns - device.start_ns
    if len(rows):
        _, stream = np.unique(device.stream[rows], return_inverse=True)
        busy_ns = np.bincount(stream, weights=length_ns[rows])
        rows = rows[stream == int(busy_ns.argmax())]
    rows = rows[np.lexsort((device.name[rows], device.start_ns[rows]))]
    launch_ns = _launch_times(events)[rows]
    before_ns = np.concatenate([[0], np.cumsum(length_ns[rows])]).astype(np.int64)
    return _Kernels(device.name[rows], np.maximum.accumulate(launch_ns), before_ns)


def _launch_times(events: Events) -> I64:
    """Return when each device event was launched; where no launch is known, when it began."""
    launches, device = events.launches, events.device
    known = np.flatnonzero(launches.correlation >= 0)
    if not len(known):
        return device.start_ns.copy()
    known = known[np.argsort(launches.correlation[known], kind="stable")]
    numbers = launches.correlation[known]
    place = np.minimum(np.searchsorted(numbers, device.correlation), len(numbers) - 1)
    is_linked = (device.correlation >= 0) & (numbers[place] == device.correlation)
    return np.where(is_linked, launches.start_ns[known[place]], device.start_ns)


class _Ranges(Struct, frozen=True):
    """Ranges of one name that are the steps, in order of time; none: ''."""

    name: str
    start_ns: I64
    end_ns: I64


def _step_ranges(events: Events, kernels: _Kernels) -> _Ranges:
    """Return the ranges of a capture that are its steps by a word in their name, and have half of the kernel time."""
    frames = events.frames
    rows_of = _repeated_ranges(events)
    work: dict[tuple[int, str], tuple[int, int]] = {}
    for key, rows in rows_of.items():
        if not has_step_word(key[1]) or _is_part_of_another(frames, key, rows_of):
            continue
        if is_warm_up(key[1]) and _others_repeat(frames, key, rows_of):
            continue
        length_ns = int((frames.end_ns[rows] - frames.start_ns[rows]).sum())
        work[key] = _launched_ns(frames.start_ns[rows], frames.end_ns[rows], kernels), length_ns
    # of two with the same kernels the longer one is around the other
    longest = max(work, key=lambda key: (work[key], key), default=None)
    if longest is None or work[longest][0] < _MAIN * kernels.whole_ns:
        return _Ranges("", frames.start_ns[:0], frames.end_ns[:0])
    rows = rows_of[longest]
    return _Ranges(longest[1], frames.start_ns[rows], frames.end_ns[rows])


def _repeated_ranges(events: Events) -> dict[tuple[int, str], list[int]]:
    """Return the rows of the ranges that come twice or more, by thread and name; of nested ones the outermost."""
    frames = events.frames
    rows_of: dict[tuple[int, str], list[int]] = {}
    open_until: dict[tuple[int, str], int] = {}
    for row in np.lexsort((-frames.end_ns, frames.start_ns)).tolist():
        key = int(frames.thread[row]), events.strings[int(frames.name[row])]
        if int(frames.start_ns[row]) >= open_until.get(key, int(frames.start_ns[row])):
            open_until[key] = int(frames.end_ns[row])
            rows_of.setdefault(key, []).append(row)
    return {key: rows for key, rows in rows_of.items() if len(rows) > 1}


def _is_part_of_another(frames: Frames, key: tuple[int, str], rows_of: Mapping[tuple[int, str], list[int]]) -> bool:
    """Return whether each range lies inside of one of another name, of which there are as many: that is a part of it.

    An epoch or a loop has several inside of each.
    """
    rows = rows_of[key]
    length_ns = int((frames.end_ns[rows] - frames.start_ns[rows]).sum())
    for other, around in rows_of.items():
        if other == key or other[0] != key[0] or len(around) < len(rows):
            continue
        is_longer = int((frames.end_ns[around] - frames.start_ns[around]).sum()) > length_ns
        if is_longer and _lie_inside(frames, rows, around).all():
            return True
    return False


def _others_repeat(frames: Frames, key: tuple[int, str], rows_of: Mapping[tuple[int, str], list[int]]) -> bool:
    """Return whether ranges of another name repeat on this thread outside of these warm-up ranges."""
    for other, rows in rows_of.items():
        if other[0] == key[0] and not is_warm_up(other[1]):
            is_outside = ~_lie_inside(frames, rows, rows_of[key])
            # a range around the warm-up is no other step
            is_around = _lie_inside(frames, rows_of[key], rows).any()
            if is_outside.sum() > 1 and not is_around:
                return True
    return False


def _lie_inside(frames: Frames, rows: Sequence[int], around: Sequence[int]) -> NDArray[np.bool_]:
    """Return which of these ranges lie inside of one of `around`, which do not overlap and are in order of time."""
    place = np.searchsorted(frames.start_ns[around], frames.start_ns[rows], side="right") - 1
    ends_ns = frames.end_ns[around][np.maximum(place, 0)]
    found: NDArray[np.bool_] = (place >= 0) & (ends_ns >= frames.end_ns[rows])
    return found


def _launched_ns(start_ns: I64, end_ns: I64, kernels: _Kernels) -> int:
    """Return the time of the kernels that were launched between these starts and ends."""
    first, last = np.searchsorted(kernels.launch_ns, start_ns), np.searchsorted(kernels.launch_ns, end_ns)
    return int((kernels.before_ns[last] - kernels.before_ns[first]).sum())


def _of_kernels(kernels: _Kernels, cut: I64) -> Markers:
    """Return a marker per iteration, from its first launch to that of the next one."""
    starts = kernels.launch_ns[cut[:-1]]
    last = kernels.launch_ns[int(cut[-1]) - 1] + 1
    return _markers(starts, np.append(starts[1:], last))


def _markers(start_ns: I64, end_ns: I64) -> Markers:
    count = len(start_ns)
    return Markers(start_ns, end_ns, np.arange(1, count + 1, dtype=np.int64), np.zeros(count, dtype=np.int32))


def _cut_iterations(events: Events, kernels: _Kernels) -> I64:
    """Return where in the kernels the iterations begin, and where the last one ends; empty for none."""
    cut = _cut_whole(kernels.name)
    return cut if len(cut) else _cut_by_optimizer(events, kernels)


def _cut_whole(names: Any) -> I64:
    """Return the cuts of the shortest sequence that makes up all the kernels by a whole number of repetitions."""
    count = len(names)
    if (names == names[0]).all():  # a benchmark of one kernel
        return np.zeros(0, dtype=np.int64)
    for repeats in range(min(_MOST, count), _FEWEST - 1, -1):
        if count % repeats:
            continue
        length = count // repeats
        if np.array_equal(names[length:], names[:-length]):
            shorter = (part for part in range(1, length) if length % part == 0)
            if any(np.array_equal(names[part:], names[:-part]) for part in shorter):
                break  # of more than _MOST repetitions
            return np.arange(0, count + 1, length, dtype=np.int64)
    return np.zeros(0, dtype=np.int64)


def _cut_by_optimizer(events: Events, kernels: _Kernels) -> I64:
    """Return the cuts of the shortest equal iterations that have half of the kernel time and end with an optimizer."""
    nothing = np.zeros(0, dtype=np.int64)
    codes = np.unique(kernels.name)
    of_optimizer = [int(code) for code in codes if _OPTIMIZER.search(events.strings[int(code)])]
    optimizes = np.isin(kernels.name, of_optimizer)
    # the kernel behind the last one of an optimizer begins the next part
    ends = np.flatnonzero(optimizes & ~np.append(optimizes[1:], False)) + 1
    if not _FEWEST <= len(ends) <= _MOST:
        return nothing
    bounds = np.concatenate([[0], ends])
    part_of: dict[bytes, int] = {}
    parts = np.array(
        [
            part_of.setdefault(kernels.name[first:end].tobytes(), len(part_of))
            for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]
    )
    # an optimizer of several groups of parameters ends several parts of one iteration
    for length in range(1, len(parts) // _FEWEST + 1):
        first, end = _longest_run(parts[length:] == parts[:-length])
        repeats = (end - first) // length + 1
        last = first + repeats * length
        if repeats >= _FEWEST and kernels.share_of(int(bounds[first]), int(bounds[last])) >= _MAIN:
            return bounds[first : last + 1 : length].astype(np.int64)
    return nothing


def _longest_run(is_equal: Any) -> tuple[int, int]:
    """Return where the longest run of True begins and where it ends; (0, 0) where nothing is True."""
    edges = np.diff(np.concatenate([[0], is_equal.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not len(starts):
        return 0, 0
    longest = int((ends - starts).argmax())
    return int(starts[longest]), int(ends[longest])
