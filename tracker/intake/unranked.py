"""Captures that name no rank, or the same one: which of them are ranks of one job, or cycles of one process.

Their names and times say it. What they leave open is refused, since four ranks that count as four repeats make a
verdict out of one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.intake.pieces import Piece
from tracker.profile.numbered_names import Differing, differing_numbers, rank_by_parallelism, skeleton_of
from tracker.units import ranges

_LARGEST_RANK: Final = 1 << 20
_LISTED: Final = 10
_WITHOUT_PROFILER: Final = ("off", "summary")
HOW_TO_PART: Final = (
    "--as-run makes them ranks of one run; where they are runs of their own, write "
    '{"facts": {"job_id": "1"}} with a number each into NAME.tracker.json beside them'
)

File = list[Piece]


def rank_the_unranked(files: Sequence[File]) -> list[File]:
    """Return the files, with ranks where files that name none are ranks of one job.

    They are where they lie in one folder, ran at the same time on the same kind of device, and their names differ in
    one number, or each ran on another device of the host. A SourceError where their names differ only in numbers and
    it stays open.
    """
    ranked = list(files)
    for family in _families(files):
        for group in _at_one_time(family):
            ranks = _ranks_of(group)
            if not ranks:
                continue
            for place, file in _with_ranks(group, ranks):
                ranked[files.index(place)] = file
    return [_with_rank_of_name(file) for file in ranked]


def _with_rank_of_name(file: File) -> File:
    """Return a file with the rank that its name states, if it states none itself."""
    first = file[0]
    rank = rank_by_parallelism(Path(first.place).name)
    if rank is None or any(piece.capture.rank is not None for piece in file):
        return file
    return [replace(first, capture=replace(first.capture, rank=rank)), *file[1:]]


def keep_one_cycle(files: Sequence[File]) -> list[File]:
    """Return the files, of the cycles of one process only the longest, or else the last of the longest.

    They are where they lie in one folder, are of one process, rank and job, their names differ in one number, they ran
    one after the other, and each counts its steps on from the one before. A schedule that repeats writes such files.
    """
    left = list(files)
    for family in _families(files, ranked=True):
        cycles = _cycles(family)
        if len(cycles) < 2:
            continue
        kept = max(cycles, key=lambda file: (len(file[0].fingerprint.steps), _window(file)))
        others = [file for file in cycles if file is not kept]
        note = (
            f"{len(cycles)} files are cycles of one process, so they are one run, of which {Path(kept[0].place).name} "
            f"counts ({', '.join(Path(file[0].place).name for file in others)} left out)"
        )
        first = kept[0]
        sources = (*first.capture.sources, *(source for file in others for source in file[0].capture.sources))
        capture = replace(first.capture, sources=tuple(dict.fromkeys(sources)))
        left[left.index(kept)] = [replace(first, capture=capture, warnings=(*first.warnings, note)), *kept[1:]]
        for file in others:
            left.remove(file)
    return left


def _families(files: Sequence[File], *, ranked: bool = False) -> Iterator[list[File]]:
    """Yield the files of each folder whose names differ in numbers only, and which state nothing else of each other.

    `ranked`: also those that name a rank, together with the others of that rank.
    """
    families: dict[tuple[object, ...], list[File]] = {}
    for file in files:
        piece, capture = file[0], file[0].capture
        rank = next((one.capture.rank for one in file if one.capture.rank is not None), None)
        if rank is not None and not ranked:
            continue
        if capture.started_at_ns is None or capture.ended_at_ns is None:
            continue
        if capture.settings.get("profiler") in _WITHOUT_PROFILER:
            continue  # a log of one process names no device, and repeats may well run side by side
        path = Path(piece.place)
        key = (
            path.parent,
            skeleton_of(path.name),
            piece.format,
            capture.device,
            capture.world_size,
            rank,
            capture.facts.get("job_id"),
            tuple(sorted(capture.labels.items())),
            tuple(sorted(capture.configuration.items())),
        )
        families.setdefault(key, []).append(file)
    for family in families.values():
        if len(family) > 1:
            yield sorted(family, key=lambda file: file[0].place)


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
    ordinals = [file[0].capture.device_ordinal for file in group]
    on_other_devices = None not in ordinals and len(set(ordinals)) == len(group)
    if names.is_of_repeats and not on_other_devices:
        return []
    numbers = [int(text) for text in names.columns[0]] if len(names.columns) == 1 else []
    is_one_column = bool(numbers) and len(set(numbers)) == len(group) and not names.is_of_repeats
    together = max(_window(file)[0] for file in group) <= min(_window(file)[1] for file in group)
    if not together or not (is_one_column or (on_other_devices and not names.is_of_repeats)):
        raise _open_question(group, names, together=together)
    if is_one_column and names.is_of_ranks and max(numbers) < _LARGEST_RANK:
        return numbers
    order = sorted(numbers) if is_one_column else sorted(ordinal for ordinal in ordinals if ordinal is not None)
    values = numbers if is_one_column else ordinals
    return [order.index(value) for value in values if value is not None]


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
        capture = replace(first.capture, rank=ranks[place])
        yield group[place], [replace(first, capture=capture, warnings=warnings), *others]


def _cycles(family: Sequence[File]) -> list[File]:
    """Return the files of a family that are cycles of one process, in order of time; [] where they are not."""
    names = _names(family)
    if len(names.columns) != 1 or names.is_of_repeats:
        return []
    processes = {file[0].capture.process for file in family if file[0].capture.process}
    hosts = {file[0].capture.host for file in family}
    if len(processes) > 1 or len(hosts) > 1:
        return []
    ordered = sorted(family, key=_window)
    for before, after in pairwise(ordered):
        if _window(after)[0] <= _window(before)[1]:
            return []
        last = max((step for step, _, _ in before[0].fingerprint.steps), default=0)
        first = min((step for step, _, _ in after[0].fingerprint.steps), default=0)
        # another process would count from the start again
        if first <= last:
            return []
    return ordered
