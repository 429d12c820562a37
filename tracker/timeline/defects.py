"""Every check of the events of one rank, declared: what it counts, its sentence, and what it forbids to judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tracker.schema.series import LOST_CALLS, LOST_DEVICE, LOST_HOST, LOST_OWNERS, LOST_STEPS, NO_DEVICE_DATA
from tracker.units import ranges

_MOST_NAMES: Final = 3


class Check(Struct, frozen=True):
    """One check. `counts`: what it counts; `sources`: which of them it can speak of; `sentence`: with the names of the
    numbers in it; `forbids`: what may not be judged where it finds something (words of `tracker.profile.words`);
    `remedy`: what to record instead, "" where nothing is wrong: what it says is a note on a whole capture.
    """

    counts: str
    sources: str
    sentence: str
    forbids: tuple[str, ...]
    remedy: str

    @property
    def is_note(self) -> bool:
        """Whether the capture is whole all the same."""
        return not self.remedy


CHECKS: Final[Mapping[str, Check]] = {
    "lost kernels": Check(
        "calls that launch a kernel and have none, graph launches, failed calls and stream captures aside",
        "PyTorch traces and Nsight exports, by their launch calls",
        "{lost} of {launches} launches have no kernel: the profiler lost them{operators}",
        (LOST_DEVICE,),
        "a shorter capture, or larger buffers of the profiler",
    ),
    "lost graph launches": Check(
        "launches of a graph without any device event, where others of the capture have some",
        "PyTorch traces and Nsight exports, by their launch calls",
        "{lost} of {launches} graph launches have no kernel: the profiler lost them{operators}",
        (LOST_DEVICE,),
        "a shorter capture, or larger buffers of the profiler",
    ),
    "unfinished steps": Check(
        "steps at the end of a thread whose last launches have no kernel",
        "PyTorch traces and Nsight exports, by their launch calls",
        "{steps} left out: {lost} of {launches} launches in it have no kernel, for the capture ended first",
        (),
        "one more step, with a synchronisation behind the last one",
    ),
    "launches behind the end": Check(
        "launches without a kernel of a capture without steps, all behind the launch of its last kernel, where they "
        "are more than 1 % of all",
        "Nsight exports, by their launch calls",
        "{lost} of {launches} launches lie behind that of the last kernel: the capture ended before their kernels did",
        (),
        "",
    ),
    "collected events": Check(
        "processes of which the report states more CUDA events than the export has calls, kernels, copies and memsets",
        "Nsight exports, by their table DIAGNOSTIC_EVENT",
        "the report collected {launches} CUDA events, {lost} are in the export",
        (LOST_DEVICE, LOST_CALLS),
        "the report, exported again, or a shorter capture",
    ),
    "steps without records": Check(
        "operators without device work at the edges of a capture, or in a step without any, of those that always have "
        "it elsewhere",
        "sources with operators and without launch calls (Ascend)",
        "{steps} left out: {lost} of {launches} operators that launch have no device work: the profiler lost its "
        "records",
        (LOST_DEVICE,),
        "more warm-up steps in the schedule of the profiler",
    ),
    "cut tables": Check(
        "steps of which the table of kernels holds less compute time than the profiler's table of steps states",
        "Ascend tables (kernel_details.csv beside step_trace_time.csv)",
        "{steps} left out: the kernels take {found} where the table of steps states {stated}: the table of kernels was "
        "cut",
        (LOST_DEVICE,),
        "the whole folder of the profiler, exported again",
    ),
    "no device data": Check(
        "captures of a device without any event of it",
        "Ascend and CANN exports",
        "no device data: the source has no event of the device, so that its compute, communication and idle time are "
        "not known",
        (NO_DEVICE_DATA,),
        "a profile with the device among its activities, or the whole folder of the profiler, exported again",
    ),
    "lost device records": Check(
        "ranks without any event of the device, where other ranks of their job have them",
        "all, as runs are formed",
        "no event of the device, which other processes of the job have: the profiler lost its records",
        (LOST_DEVICE, LOST_STEPS),
        "the rank, profiled again, with the device among its activities",
    ),
    "device events without a time": Check(
        "device events whose start and end are 0, or lie days away from all others",
        "all",
        "{lost} of {launches} device events have no time (0, or days away from all others) and are left out",
        (LOST_DEVICE,),
        "a shorter capture, or larger buffers of the profiler",
    ),
    "host events without a time": Check(
        "operators, calls, markers and allocations whose start and end are 0, or lie days away from all others",
        "all",
        "{lost} of {launches} events of the host have no time (0, or days away from all others) and are left out",
        (LOST_DEVICE, LOST_HOST),
        "another export of the profile",
    ),
    "impossible durations": Check(
        "device events that end more than 50 us behind the end of the next event of their stream",
        "all with streams",
        "{lost} of {launches} device events ({operators}) end behind the next one of their stream, which cannot be: "
        "they are cut at its start",
        (),
        "another version of the profiler",
    ),
    "events before their launch": Check(
        "device events that start more than 50 us before the call that launched them",
        "all with launch calls",
        "{lost} of {launches} device events start before the calls that launched them, which cannot be: the clocks of "
        "host and device may differ",
        (LOST_STEPS,),
        "another export of the profile, with the clocks of host and device matched",
    ),
    "waits without work": Check(
        "time of calls that wait for the device while nothing runs on it, each less the latency of a launch (20 to 200 "
        "us): more than 5 % of the steps, or of a capture without steps",
        "PyTorch traces and Nsight exports with calls of the runtime",
        "for {share} of {what} the host waits for the device and nothing runs there: records were lost, or the clocks "
        "of host and device differ",
        (LOST_DEVICE,),
        "a shorter capture, or larger buffers of the profiler",
    ),
    "time counted twice": Check(
        "time of kernels that overlap on one stream: more than 2 % of the time of all, graph launches and launches "
        "ahead (*LaunchKernelEx) aside",
        "all with streams",
        "kernels of one stream overlap by {share} of their time, which cannot be: their durations are wrong",
        (LOST_DEVICE,),
        "another version of the profiler",
    ),
    "early launches": Check(
        "time of kernels that overlap on one stream: more than 2 % of the time of all, where only those of graph "
        "launches and launches ahead (*LaunchKernelEx) do",
        "all with streams",
        "kernels of one stream overlap by {share} of their time: early launch, each counts to the start of the next",
        (),
        "",
    ),
    "work outside of the steps": Check(
        "time of device work that was launched (or began, where no launch is known) behind the start of the first step "
        "and in no step: more than half",
        "all with markers of steps",
        "{share} of the work of the device ({outside} of {work}) lies in no step",
        (LOST_STEPS,),
        "steps that wait for the device (a synchronisation at their end)",
    ),
    "repeated records": Check(
        "device events that stand twice: of one stream, name, launch, start and end",
        "all with streams",
        "{lost} of {launches} device events stand twice in the file: they count once",
        (),
        "another export of the profile",
    ),
    "shared launches": Check(
        "kernels with the launch of another kernel, while other launches have none",
        "PyTorch traces and Nsight exports, by their launch calls",
        "{lost} kernels share the launch of another kernel, and {launches} launches have none: which operator ran them "
        "is not known",
        (LOST_OWNERS,),
        "another version of the profiler",
    ),
}
"""Every check by its name, in the order in which they are said."""


class Defect(Struct, frozen=True):
    """What a check found: its name in CHECKS, the sentence, what of it is not judged, and the names (of operators,
    kernels and modules) whose times are not judged.
    """

    check: str
    sentence: str
    forbids: tuple[str, ...]
    names: tuple[str, ...] = ()


class Lost(Struct, frozen=True):
    """What a check of joined events found, and the steps that it leaves out. `is_whole`: the steps hold too little of
    the work, so that the capture is looked at as a whole, without steps. `has_markers`: records of the device were
    lost, and each step is as long as its marker.
    """

    defects: tuple[Defect, ...]
    steps: tuple[int, ...] = ()
    is_whole: bool = False
    has_markers: bool = False


def make_defect(check: str, forbids: tuple[str, ...] = (), names: Iterable[str] = (), **numbers: Any) -> Defect:
    """Return what a check found. `forbids`: beside what it always forbids; `numbers`: those of its sentence."""
    declared = CHECKS[check]
    words = {name: f"{number:,}" if isinstance(number, int) else number for name, number in numbers.items()}
    return Defect(check, declared.sentence.format(**words), declared.forbids + forbids, tuple(names))


def list_names(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return ", ".join([*names[:_MOST_NAMES], *more])


def words_of_steps(steps: Sequence[int]) -> str:
    """Return the steps in words.

    >>> words_of_steps([3]), words_of_steps([3, 4, 5, 9])
    ('step 3 is', 'steps 3-5, 9 are')
    """
    words = ranges(sorted(steps))
    return f"step {words} is" if len(steps) == 1 else f"steps {words} are"
