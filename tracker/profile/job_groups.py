"""Files that are the ranks of one run, found by what they state: no file is compared with all others.

`why_apart` of `same_job` says of two lists of files whether they are ranks of one run; here the same is asked of a file
and a group, of which only what its files have in common is kept.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final

from tracker.profile.captures import UNKNOWN_DEVICE
from tracker.profile.same_job import CLOCKS_APART_NS, contradict, may_be_one_device
from tracker.profile.traits import Traits

_HOSTS_KEPT: Final = 2
"""Of those that exchanged the same, the two hosts that ended last: one of them is another one than any given host."""


class JobGroup:
    """The files that are ranks of one run so far, and what any further one must agree with."""

    def __init__(self, number: int, place: int, file: Traits) -> None:
        """Begin a group, the `number`-th one, with the file at `place`."""
        self.number = number
        self.places: list[int] = []
        self.ranks: set[int] = set()
        self.job_id = file.job_id
        self.of_device = file
        self.configuration: dict[str, str] = {}
        self.last_end_ns = 0
        self._ends_ns: list[int] = []
        self._untimed = 0
        self._ends_of_hosts: dict[Hashable, list[tuple[int, str]]] = {}
        self.add(place, file)

    @property
    def is_timed(self) -> bool:
        """Whether all files say when they ran."""
        return not self._untimed

    def add(self, place: int, file: Traits) -> None:
        """Take a file into the group."""
        self.places.append(place)
        self.ranks |= file.ranks
        self.job_id = self.job_id if file.job_id is None else file.job_id
        self.of_device = _more_specific(self.of_device, file)
        self.configuration.update(file.configuration)
        if file.started_at_ns is None or file.ended_at_ns is None:
            self._untimed += 1
            return
        insort(self._ends_ns, file.ended_at_ns)
        self.last_end_ns = max(self.last_end_ns, file.ended_at_ns)
        if file.host and file.work.collectives:
            self._note_host(file, file.ended_at_ns)

    def takes(self, file: Traits) -> bool:
        """Return whether a file is another rank of the group: of all of it, and at the same time as a part of it.

        Groups are asked in the order in which their files started, and only by files of the same labels and world size.
        """
        if not file.ranks or not self.ranks or not file.ranks.isdisjoint(self.ranks):
            return False
        if None not in (file.job_id, self.job_id) and file.job_id != self.job_id:
            return False
        if contradict(self.configuration, file.configuration) or not may_be_one_device(self.of_device, file):
            return False
        return self.count_at_once(file) > 0 or self._is_on_another_clock(file)

    def count_at_once(self, file: Traits) -> int:
        """Return with how many files of the group, all of which started before it, a file ran at the same time."""
        if file.started_at_ns is None or file.ended_at_ns is None:
            return len(self.places)
        return self._untimed + len(self._ends_ns) - bisect_left(self._ends_ns, file.started_at_ns)

    def _note_host(self, file: Traits, ended_at_ns: int) -> None:
        latest = dict.fromkeys([file.host], ended_at_ns)
        exchanged = (file.work.collectives, file.work.steps)
        for known_end_ns, host in self._ends_of_hosts.get(exchanged, ()):
            latest[host] = max(known_end_ns, latest.get(host, known_end_ns))
        ordered = sorted(((end_ns, host) for host, end_ns in latest.items()), reverse=True)
        self._ends_of_hosts[exchanged] = ordered[:_HOSTS_KEPT]

    def _is_on_another_clock(self, file: Traits) -> bool:
        """Return whether a file seems to follow the group only since the clocks of the hosts differ."""
        if not file.host or not file.work.collectives or file.started_at_ns is None:
            return False
        hosts = self._ends_of_hosts.get((file.work.collectives, file.work.steps), ())
        others = [end_ns for end_ns, host in hosts if host != file.host]
        return bool(others) and file.started_at_ns <= max(others) + CLOCKS_APART_NS


class _Shelf:
    """Groups that a file may belong to, and how many of them have which rank."""

    def __init__(self) -> None:
        self._groups: dict[int, JobGroup] = {}
        self._having: Counter[int] = Counter()

    def add(self, group: JobGroup) -> None:
        self._groups[group.number] = group
        self._having.update(group.ranks)

    def note_ranks(self, group: JobGroup, ranks: frozenset[int]) -> None:
        if group.number in self._groups:
            self._having.update(ranks)

    def drop(self, group: JobGroup) -> None:
        if self._groups.pop(group.number, None) is not None:
            self._having.subtract(group.ranks)

    def lacking(self, ranks: frozenset[int]) -> Iterator[JobGroup]:
        """Yield the groups that have none of these ranks, the newest first."""
        rarest = max(ranks, key=lambda rank: self._having[rank])
        left = len(self._groups) - self._having[rarest]
        # thousands of repeats of one rank have all of them, and end before the first look
        for group in reversed(self._groups.values()):
            if not left:
                return
            if rarest in group.ranks:
                continue
            left -= 1
            if ranks.isdisjoint(group.ranks):
                yield group


class _Job:
    """The groups of equal labels and world size that a file may still join."""

    def __init__(self, *, all_end: bool) -> None:
        """all_end: every file that states its start states its end."""
        self._all_end = all_end
        self._every = _Shelf()
        self._by_job_id: dict[str | None, _Shelf] = {}
        self._ends: list[tuple[int, int, JobGroup]] = []

    def homes_of(self, file: Traits) -> list[JobGroup]:
        """Return the groups that take a file, the oldest first."""
        if not file.ranks:
            return []
        self._drop_ended(file)
        shelves = [self._every]
        if file.job_id is not None:
            shelves = [self._by_job_id[name] for name in (file.job_id, None) if name in self._by_job_id]
        homes = [group for shelf in shelves for group in shelf.lacking(file.ranks) if group.takes(file)]
        return sorted(homes, key=lambda group: group.number)

    def add_group(self, group: JobGroup) -> None:
        if not group.ranks:
            return
        self._every.add(group)
        self._by_job_id.setdefault(group.job_id, _Shelf()).add(group)
        heappush(self._ends, (group.last_end_ns, group.number, group))

    def add_file(self, group: JobGroup, place: int, file: Traits) -> None:
        before = group.job_id
        of_job = self._by_job_id[before]
        if file.job_id not in (None, before):
            of_job.drop(group)
            of_job = self._by_job_id.setdefault(file.job_id, _Shelf())
            of_job.add(group)
        self._every.note_ranks(group, file.ranks)
        of_job.note_ranks(group, file.ranks)
        group.add(place, file)

    def _drop_ended(self, file: Traits) -> None:
        """Drop the groups that ended before all files that are still to come, whatever the clocks of their hosts."""
        if not self._all_end or file.started_at_ns is None:
            return
        while self._ends and self._ends[0][0] + CLOCKS_APART_NS < file.started_at_ns:
            end_ns, number, group = heappop(self._ends)
            if end_ns < group.last_end_ns:
                heappush(self._ends, (group.last_end_ns, number, group))
            elif group.is_timed:
                self._every.drop(group)
                self._by_job_id[group.job_id].drop(group)


def group_files(files: Sequence[Traits]) -> list[list[int]]:
    """Return which files are one run each, as places in `files`, which come in the order of their start.

    A file joins the group of which most ran at the same time on one clock, of equal ones the first.
    """
    groups: list[JobGroup] = []
    jobs: dict[Hashable, _Job] = {}
    for key, all_end in _jobs_of(files).items():
        jobs[key] = _Job(all_end=all_end)
    for place, file in enumerate(files):
        job = jobs[_job_of(file)]
        homes = job.homes_of(file)
        if not homes:
            groups.append(JobGroup(len(groups), place, file))
            job.add_group(groups[-1])
            continue
        # what ran at the same time on one clock counts before what a clock may be wrong about
        home = max(homes, key=lambda group: group.count_at_once(file))
        job.add_file(home, place, file)
    return [group.places for group in groups]


def _jobs_of(files: Sequence[Traits]) -> dict[Hashable, bool]:
    """Return what is equal in the files of one run -> whether each of them that states a start states an end."""
    all_end: dict[Hashable, bool] = {}
    for file in files:
        key = _job_of(file)
        ends = file.started_at_ns is None or file.ended_at_ns is not None
        all_end[key] = all_end.get(key, True) and ends
    return all_end


def _job_of(file: Traits) -> Hashable:
    return file.world_size, tuple(sorted(file.labels.items()))


def _more_specific(one: Traits, other: Traits) -> Traits:
    """Return that of two files, which may be of one device, that names it."""
    if one.names_no_device:
        return other
    return other if one.device.model == UNKNOWN_DEVICE.model and not other.names_no_device else one
