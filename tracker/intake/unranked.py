"""Captures that name no rank, or the same one: which of them are ranks of one job, or cycles of one process.

Their names and times say it. What they leave open is refused, since four ranks that count as four repeats make a
verdict out of one run.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.intake.devices import unite_unnamed
from tracker.intake.pieces import Piece
from tracker.profile import RANK_BY_NAME, RANK_SETTING, Capture, Device
from tracker.profile.numbered_names import (
    Differing,
    differing_numbers,
    parallel_numbers,
    rank_in_path,
    skeleton_of,
    without_parallel_numbers,
)
from tracker.profile.same_job import PART, WITHOUT_PROFILER, are_repeats, cycle_keys, ran_at_once
from tracker.profile.step_windows import describe_windows, window_in_path
from tracker.profile.traits import Traits
from tracker.units import counted, ranges

_LARGEST_RANK: Final = 1 << 20
_LISTED: Final = 10
HOW_TO_PART: Final = (
    "--as-run makes them ranks of one run; where they are runs of their own, write "
    '{"facts": {"job_id": "1"}} with a number each into NAME.tracker.json beside them'
)
_RANK_OF_NAME: Final = "no rank stands in it: it is the one of its name"

File = list[Piece]


def rank_the_unranked(files: Sequence[File]) -> list[File]:
    """Return the files, with ranks where files that name none are ranks of one job.

    They are where they lie in one folder, ran at the same time on the same kind of device, and their names state ranks,
    or differ in one number, or each ran on another device of the host. A SourceError where their names differ only in
    numbers and it stays open.
    """
    # file -> the same with its rank
    ranked: dict[int, File] = {}
    for family in _families(files):
        for group in _at_one_time(family):
            ranks = _ranks_of(group)
            if ranks:
                ranked.update((id(file), with_rank) for file, with_rank in _with_ranks(group, ranks))
    return [_with_rank_of_name(ranked.get(id(file), file)) for file in files]


def _with_rank_of_name(file: File) -> File:
    """Return a file with the rank that its name states, if it states none itself."""
    first = file[0]
    rank = rank_in_path(first.place)
    if rank is None or any(piece.capture.rank is not None for piece in file):
        return file
    warnings = (*first.warnings, _RANK_OF_NAME)
    return [replace(first, capture=_ranked_by_name(first.capture, rank), warnings=warnings), *file[1:]]


def _ranked_by_name(capture: Capture, rank: int) -> Capture:
    return replace(capture, rank=rank, settings={**capture.settings, RANK_SETTING: RANK_BY_NAME})


def without_indices(files: Sequence[File]) -> list[File]:
    """Return the files, without sizes in their configuration that are indices of ranks in the names of their folders.

    They are where files of one time, which may be ranks of one job, lie in folders that differ in nothing else:
    `tp1_pp1/trace.json` and `tp2_pp1/trace.json`.
    """
    families: dict[Hashable, list[File]] = {}
    for file in files:
        path = Path(file[0].place)
        if _is_timed(file) and parallel_numbers(str(path.parent)):
            key = (without_parallel_numbers(str(path.parent)), skeleton_of(path.name), file[0].format)
            families.setdefault(key, []).append(file)
    # file -> the same without indices
    corrected: dict[int, File] = {}
    for family in families.values():
        for group in _at_one_time(family):
            ranks = {file[0].capture.rank for file in group}
            may_be_one_job = ranks == {None} or len(ranks) == len(group)
            if may_be_one_job and len({str(Path(file[0].place).parent) for file in group}) > 1:
                corrected.update((id(file), [_without_numbers_of_path(piece) for piece in file]) for file in group)
    return [corrected.get(id(file), file) for file in files]


def _without_numbers_of_path(piece: Piece) -> Piece:
    numbers = parallel_numbers(str(Path(piece.place).parent))
    configuration = piece.capture.configuration
    left = {key: value for key, value in configuration.items() if numbers.get(key) != value}
    return replace(piece, capture=replace(piece.capture, configuration=left))


def keep_one_cycle(files: Sequence[File]) -> list[File]:
    """Return the files, of the cycles of one process only the longest, or else the last of the longest.

    They are where they lie in one folder, are of one process, rank and job, their names differ in one number, they ran
    one after the other, and each counts its steps on from the one before. A schedule that repeats writes such files,
    and dynamic profiling of MindSpore such folders, named after their steps.
    """
    # file -> what counts of the cycles of its process, None where that is another cycle
    counting: dict[int, File | None] = {}
    for family in _families(files, ranked=True):
        for cycles in _chains_of_cycles(family):
            if len(cycles) < 2:
                continue
            kept = max(cycles, key=lambda file: file[0].traits.weight)
            counting.update((id(file), None) for file in cycles)
            counting[id(kept)] = _standing_for(kept, [file for file in cycles if file is not kept])
    left = (counting.get(id(file), file) for file in files)
    return [file for file in left if file is not None]


def _standing_for(kept: File, others: Sequence[File]) -> File:
    """Return the file that counts of several cycles; the files of the others are in with it, so that they are known."""
    first = kept[0]
    windows = [window_in_path(file[0].place) for file in (kept, *others)]
    known = [window for window in windows if window is not None]
    if len(known) == len(windows):
        names = [window.name for window in known]
        what = f"folders are windows of one run of rank {known[0].rank} ({describe_windows(known)})"
    else:
        names = [Path(file[0].place).name for file in (kept, *others)]
        what = "files are cycles of one process, so they are one run"
    note = f"{len(names)} {what}, of which {names[0]} counts ({', '.join(names[1:])} left out)"
    sources = (*first.capture.sources, *(source for file in others for source in file[0].capture.sources))
    capture = replace(first.capture, sources=tuple(dict.fromkeys(sources)))
    return [replace(first, capture=capture, warnings=(*first.warnings, note)), *kept[1:]]


def _families(files: Sequence[File], *, ranked: bool = False) -> Iterator[list[File]]:
    """Yield the files of each folder whose names differ in numbers only, and which state nothing else of each other.

    `ranked`: also those that name a rank, together with the others of that rank.
    """
    families: dict[Hashable, dict[Device | None, list[File]]] = {}
    for file in files:
        piece, capture = file[0], file[0].capture
        rank = next((one.capture.rank for one in file if one.capture.rank is not None), None)
        if rank is not None and not ranked:
            continue
        if not _is_timed(file):
            continue
        window = window_in_path(piece.place)
        path = Path(piece.place) if window is None else Path(window.place, window.name)
        key = (path.parent, skeleton_of(path.name), piece.format, capture.world_size, rank, *_labels_of(piece))
        device = None if piece.traits.names_no_device else capture.device
        families.setdefault(key, {}).setdefault(device, []).append(file)
    for by_device in families.values():
        for family in unite_unnamed(by_device):
            if len(family) > 1:
                yield sorted(family, key=lambda file: file[0].place)


def _is_timed(file: File) -> bool:
    """Return whether a file is of a profiler and says when it ran."""
    capture = file[0].capture
    if capture.settings.get("profiler") in WITHOUT_PROFILER:
        return False  # a log of one process names no device, and repeats may well run side by side
    return capture.started_at_ns is not None and capture.ended_at_ns is not None


def _labels_of(piece: Piece) -> tuple[object, ...]:
    """Return what two captures of one job have in common, beside their device."""
    capture = piece.capture
    labels, configuration = tuple(sorted(capture.labels.items())), tuple(sorted(capture.configuration.items()))
    return capture.facts.get("job_id"), labels, configuration, piece.told.configuration.get(PART)


def _window(file: File) -> tuple[int, int]:
    capture = file[0].capture
    return capture.started_at_ns or 0, capture.ended_at_ns or 0


def _at_one_time(family: Sequence[File]) -> Iterator[list[File]]:
    """Yield the files that ran at the same time as another one of them, group by group."""
    group: list[File] = []
    end = 0
    for file in sorted(family, key=_window):
        start, stop = _window(file)
        if group and start > end:
            if len(group) > 1:
                yield group
            group = []
        end = max(end, stop) if group else stop
        group.append(file)
    if len(group) > 1:
        yield group


def _names(files: Sequence[File]) -> Differing:
    return differing_numbers([Path(file[0].place).name for file in files])


def _ranks_of(group: Sequence[File]) -> list[int]:
    """Return the rank of each file of a group that ran at the same time; [] where they are repeats by their names.

    A SourceError where neither names nor devices say it.
    """
    names = _names(group)
    stated = [rank for file in group if (rank := rank_in_path(file[0].place)) is not None]
    together = max(_window(file)[0] for file in group) <= min(_window(file)[1] for file in group)
    if together and len(set(stated)) == len(group):
        return stated
    ordinals = [file[0].capture.device_ordinal for file in group]
    on_other_devices = None not in ordinals and len(set(ordinals)) == len(group)
    if names.is_of_repeats and not on_other_devices:
        return []
    numbers = [int(text) for text in names.columns[0]] if len(names.columns) == 1 else []
    is_one_column = bool(numbers) and len(set(numbers)) == len(group) and not names.is_of_repeats
    if not together or not (is_one_column or (on_other_devices and not names.is_of_repeats)):
        raise _open_question(group, names, together=together)
    if is_one_column and names.is_of_ranks and max(numbers) < _LARGEST_RANK:
        return numbers
    values = numbers if is_one_column else [ordinal for ordinal in ordinals if ordinal is not None]
    rank_of = {value: rank for rank, value in enumerate(sorted(values))}
    return [rank_of[value] for value in values]


def _open_question(group: Sequence[File], names: Differing, *, together: bool) -> SourceError:
    first, second = (Path(file[0].place) for file in group[:2])
    count = len(names.columns)
    how = f"and their names differ in {count} numbers" if count > 1 else "and their names differ in one number"
    when = "ran at the same time" if together else "ran in part at the same time"
    problem = f"{len(group)} files such as this and {second.name} name no rank, {when}, {how}: one job, or several?"
    return SourceError(first, "", problem, remedy=HOW_TO_PART)


def _with_ranks(group: Sequence[File], ranks: Sequence[int]) -> Iterator[tuple[File, File]]:
    """Yield each file as it was, and with its rank; that of the lowest rank says why."""
    order = sorted(range(len(group)), key=lambda place: ranks[place])
    names = [Path(group[place][0].place).name for place in order]
    note = (
        f"{len(group)} files such as {names[0]} and {names[1]} name no rank, ran at the same time, and differ in "
        f"number or device: ranks {ranges(sorted(ranks), _LISTED)} of one run"
    )
    for place in order:
        first, *others = group[place]
        warnings = (*first.warnings, note) if place == order[0] else first.warnings
        capture = _ranked_by_name(first.capture, ranks[place])
        yield group[place], [replace(first, capture=capture, warnings=warnings), *others]


def _chains_of_cycles(family: Sequence[File]) -> list[list[File]]:
    """Return the cycles of each process of a family, in order of time.

    A cycle goes on from the one that ended before it whose steps its own follow most closely.
    """
    chains: list[list[File]] = []
    ended = _EndedCycles()
    running: list[tuple[int, int, Traits]] = []
    for file in sorted(family, key=_window):
        here = file[0].traits
        start_ns, end_ns = _window(file)
        while running and running[0][0] < start_ns:
            _, chain, earlier = heappop(running)
            ended.add(chain, earlier)
        home = ended.take_before(here)
        if home is None:
            home = len(chains)
            chains.append([])
        chains[home].append(file)
        if here.work.steps:
            heappush(running, (end_ns, home, here))
    return chains


class _EndedCycles:
    """Chains of cycles whose last one ended, by what all cycles of a process have in common and by their last step."""

    def __init__(self) -> None:
        self._chains: list[int] = []
        self._by_key: dict[Hashable, list[tuple[int, int]]] = {}
        self._continued: set[int] = set()

    def add(self, chain: int, last: Traits) -> None:
        """Add a chain that ended with a capture."""
        for key in cycle_keys(last):
            insort(self._by_key.setdefault(key, []), (last.last_step, len(self._chains)))
        self._chains.append(chain)

    def take_before(self, here: Traits) -> int | None:
        """Take out the chain that a capture goes on from, and return it; None for none."""
        if not here.work.steps:
            return None
        nearest = max(filter(None, (self._nearest(key, here.first_step) for key in cycle_keys(here))), default=None)
        if nearest is None:
            return None
        # of those that end with the same step the first one
        number = -nearest[1]
        self._continued.add(number)
        return self._chains[number]

    def _nearest(self, key: Hashable, first_step: int) -> tuple[int, int] | None:
        """Return the last step before `first_step` that a chain ends with, and its number, negative."""
        ends = self._by_key.get(key, [])
        while place := bisect_left(ends, (first_step, -1)):
            first_of_step = bisect_left(ends, (ends[place - 1][0], -1))
            step, number = ends[first_of_step]
            if number not in self._continued:
                return step, -number
            ends.pop(first_of_step)
        return None


def note_on_unranked(runs: Sequence[Sequence[Piece]]) -> str:
    """Return what to know of files that name no rank and became runs of their own although they ran at the same time.

    '' where none did. runs: those of one file each, as they were before they were numbered.
    """
    alike: dict[tuple[object, ...], list[Piece]] = {}
    for run in runs:
        piece = run[0]
        capture = piece.capture
        is_timed = capture.started_at_ns is not None and capture.ended_at_ns is not None
        if capture.rank is None and is_timed and capture.settings.get("profiler") not in WITHOUT_PROFILER:
            alike.setdefault((capture.device, *_labels_of(piece)), []).append(piece)
    count = sum(_count_at_once(pieces) for pieces in alike.values())
    if not count:
        return ""
    return (
        f"{counted(count, 'file')} that ran at the same time name no rank, so each is a run of its own; where they are "
        "ranks of one job, ingest them with --as-run"
    )


def _count_at_once(pieces: Sequence[Piece]) -> int:
    """Return how many ran while another one did, but for repeats by their names."""
    together: set[str] = set()
    latest: Piece | None = None
    for piece in sorted(pieces, key=lambda piece: _window([piece])):
        is_at_once = latest is not None and ran_at_once(latest.capture, piece.capture)
        if latest is not None and is_at_once and not are_repeats(latest.place, piece.place):
            together |= {latest.place, piece.place}
        if latest is None or _window([piece])[1] > _window([latest])[1]:
            latest = piece
    return len(together)
