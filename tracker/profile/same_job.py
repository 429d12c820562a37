"""What captures say of the job that they are of: whether two are ranks of one job, or cycles of one process."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from tracker.profile.captures import UNKNOWN_DEVICE
from tracker.profile.numbered_names import (
    Differing,
    differing_numbers,
    names_but_for_one_number,
    place_of,
    skeleton_of,
)
from tracker.profile.step_windows import are_windows_of_one_run, window_in_path
from tracker.profile.traits import Traits

CLOCKS_APART_NS: Final = 60 * 10**9
"""So far apart the clocks of the hosts of one job may be."""

WITHOUT_PROFILER: Final = ("off", "summary")
"""Values of the setting `profiler` of logs and summaries: repeats of these may well run side by side."""

PARTS_APART_NS: Final = 600 * 10**9
"""So long after each other the parts of one process are captured: a rollout takes minutes."""

FEW_IN_COMMON: Final = 0.5
"""Captures that share less than this of the kernels of the smaller one hold other work: cycles share nearly all."""

PART: Final = "part"
"""The key of the configuration that says which part of its process a capture is of."""

HOW_TO_NAME_PARTS: Final = (
    "put the captures of each part into a folder with its name and ingest them in one call, or give --config part=NAME "
    "in a call for each"
)


class Timed(Protocol):
    """What has a start and an end, in UTC; None where the clock is not absolute."""

    @property
    def started_at_ns(self) -> int | None:
        """When it began."""
        ...

    @property
    def ended_at_ns(self) -> int | None:
        """When it ended."""
        ...


def why_apart(files: Sequence[Traits], others: Sequence[Traits]) -> str | None:
    """Return why two lists of captures are not ranks of one run, in a few words; None where they are.

    They are where none contradicts one of the other list, and two of them ran at the same time. This is asked of the
    files of a call and of what is stored.
    """
    pairs = [(one, other) for one in files for other in others]
    never = next(filter(None, (_why_never_one_run(one, other) for one, other in pairs)), None)
    if never is not None:
        return never
    if any(ran_at_once(one, other) or are_on_other_clocks(one, other) for one, other in pairs):
        return None
    return "not at the same time"


def _why_never_one_run(one: Traits, other: Traits) -> str | None:
    """Return why two files are not ranks of one run, whenever they ran; None where they may be."""
    jobs = one.job_id, other.job_id
    apart = {
        "a file names no rank": not one.ranks or not other.ranks,
        "the same rank": not one.ranks.isdisjoint(other.ranks),
        "another job": None not in jobs and jobs[0] != jobs[1],
        "other labels": one.labels != other.labels or contradict(one.configuration, other.configuration),
        "another world size": one.world_size != other.world_size,
        "another device": not may_be_one_device(one, other),
    }
    return next((why for why, holds in apart.items() if holds), None)


def contradict(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether two files state different values of one key; one that leaves it out contradicts nothing."""
    return any(one.get(key, value) != value for key, value in other.items())


def may_be_one_device(one: Traits, other: Traits) -> bool:
    """Return whether two captures may be of one kind of device.

    Some files of a vendor do not name the chip, and a rank that lost the records of its device names none.
    """
    if one.device == other.device or one.names_no_device or other.names_no_device:
        return True
    is_unnamed = UNKNOWN_DEVICE.model in (one.device.model, other.device.model)
    return is_unnamed and bool(one.device.vendor) and one.device.vendor == other.device.vendor


def ran_at_once(one: Timed, other: Timed, apart_ns: int = 0) -> bool:
    """Return whether two captures ran at the same time, or at most `apart_ns` apart.

    A clock that is not absolute contradicts nothing.
    """
    starts, ends = (one.started_at_ns, other.started_at_ns), (one.ended_at_ns, other.ended_at_ns)
    if starts[0] is None or starts[1] is None or ends[0] is None or ends[1] is None:
        return True
    return starts[0] <= ends[1] + apart_ns and starts[1] <= ends[0] + apart_ns


def are_on_other_clocks(one: Traits, other: Traits) -> bool:
    """Return whether two captures that seem to follow each other are of one job, on hosts whose clocks differ.

    They are where they count the same steps, and exchanged the same as often.
    """
    if not one.host or not other.host or one.host == other.host:
        return False
    if not ran_at_once(one, other, CLOCKS_APART_NS):
        return False
    return (
        bool(one.work.collectives)
        and one.work.collectives == other.work.collectives
        and one.work.steps == other.work.steps
    )


def sibling_names(one: str, other: str) -> Differing | None:
    """Return how the names of two captures in one folder differ; None where they differ in more than numbers."""
    first, second = Path(place_of(one)), Path(place_of(other))
    if first.parent != second.parent or first.name == second.name:
        return None
    if skeleton_of(first.name) != skeleton_of(second.name):
        return None
    return differing_numbers([first.name, second.name])


def are_repeats(one: str, other: str) -> bool:
    """Return whether the paths of two captures count repeats: run0 and run1, as files or as folders."""
    if skeleton_of(one) != skeleton_of(other):
        return False
    return differing_numbers([one, other]).is_of_repeats


def is_later_cycle(later: Traits, earlier: Traits) -> bool:
    """Return whether `later` is a cycle of the schedule of the process that wrote `earlier`: its steps count on."""
    # another process would count from the start again
    if not later.work.steps or not earlier.work.steps or later.first_step <= earlier.last_step:
        return False
    if later.started_at_ns is None or earlier.ended_at_ns is None or later.started_at_ns <= earlier.ended_at_ns:
        return False
    return may_be_cycles(later, earlier)


def may_be_cycles(one: Traits, other: Traits) -> bool:
    """Return whether two captures may be of one process.

    Their names differ in one number that counts no repeats, or they lie in windows of one run.
    """
    if (one.rank, one.host, one.device_ordinal) != (other.rank, other.host, other.device_ordinal):
        return False
    if one.process and other.process and one.process != other.process:
        return False
    if are_windows_of_one_run(one.place, other.place):
        return True
    names = sibling_names(one.place, other.place)
    return names is not None and len(names.columns) == 1 and not names.is_of_repeats


def share_few_kernels(one: Traits, other: Traits) -> bool:
    """Return whether two captures hold other work, by the names of their kernels; a capture without says nothing."""
    smaller = min(len(one.work.kernels), len(other.work.kernels))
    return smaller > 0 and len(one.work.kernels & other.work.kernels) < FEW_IN_COMMON * smaller


def follows_within_minutes(later: Traits, earlier: Traits) -> bool:
    """Return whether a capture began behind the end of another one, and not long after it."""
    if later.started_at_ns is None or earlier.ended_at_ns is None:
        return False
    return 0 < later.started_at_ns - earlier.ended_at_ns <= PARTS_APART_NS


def may_be_parts(one: Traits, other: Traits) -> bool:
    """Return whether two captures are of one process, within minutes: parts of it where they share few kernels."""
    if not one.process or (one.process, one.host, one.rank) != (other.process, other.host, other.rank):
        return False
    if one.device_ordinal != other.device_ordinal:
        return False
    return follows_within_minutes(one, other) or follows_within_minutes(other, one)


def cycle_keys(traits: Traits) -> list[Hashable]:
    """Return keys of a capture: one of them is that of another one where both may be cycles of one process.

    That is what `may_be_cycles` says of each two, without asking it of each two; both state a process, or none does.
    """
    place = Path(place_of(traits.place))
    names = names_but_for_one_number(place.name)
    process = (traits.rank, traits.host, traits.device_ordinal, traits.process)
    keys: list[Hashable] = [(*process, str(place.parent), name) for name in names]
    window = window_in_path(traits.place)
    if window is not None:
        keys.append((*process, window.place, "windows"))
    return keys


def may_be_one_job(one: Traits, other: Traits) -> bool:
    """Return whether two captures that state no rank may be ranks of one job, by their names, devices and times."""
    names = sibling_names(one.place, other.place)
    if names is None or None in (one.started_at_ns, one.ended_at_ns, other.started_at_ns, other.ended_at_ns):
        return False
    if not ran_at_once(one, other):
        return False
    return not names.is_of_repeats or are_on_other_devices(one, other)


def are_on_other_devices(one: Traits, other: Traits) -> bool:
    """Return whether both name the device that they ran on, and not the same one."""
    return None not in (one.device_ordinal, other.device_ordinal) and one.device_ordinal != other.device_ordinal
