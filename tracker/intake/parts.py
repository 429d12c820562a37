"""Captures of one process that hold other work: the rollout and the update of reinforcement learning, for example.

They are no repeats of each other: each is a part of its job with the name of its folder, in the configuration.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.intake.pieces import Piece
from tracker.profile.numbered_names import place_of
from tracker.profile.same_job import HOW_TO_NAME_PARTS, PART, follows_within_minutes, share_few_kernels
from tracker.units import some_of

_DEEPEST: Final = 4
"""So many folders around a capture may name its part."""

File = list[Piece]


def name_parts(files: Sequence[File]) -> list[File]:
    """Return the files, those that are parts of one process with the name of their part in the configuration.

    A SourceError where their folders do not name them.
    """
    # file -> the same with the name of its part
    named: dict[int, File] = {}
    for session in _sessions(files):
        parts = _parts_of(session)
        if len(parts) < 2:
            continue
        names = _names_of(parts)
        first = min((file for part in parts for file in part), key=lambda file: file[0].place)
        for name, part in zip(names, parts, strict=True):
            named.update((id(file), _with_part(file, name)) for file in part)
        process = first[0].traits.process
        note = f"{some_of(names)} are parts of process {process}, which have few kernels in common: no repeats"
        of_first = named[id(first)]
        named[id(first)] = [replace(of_first[0], warnings=(*of_first[0].warnings, note)), *of_first[1:]]
    return [named.get(id(file), file) for file in files]


def _sessions(files: Sequence[File]) -> Iterator[list[File]]:
    """Yield the captures of one process, rank and device that follow each other within minutes, in their order."""
    of_process: dict[Hashable, list[File]] = {}
    for file in files:
        traits = file[0].traits
        is_named = PART in file[0].told.configuration or PART in traits.configuration
        if is_named or not traits.process or not traits.work.kernels:
            continue
        labels = tuple(sorted(traits.labels.items()))
        key = (traits.host, traits.process, traits.rank, traits.device_ordinal, traits.job_id, labels, file[0].format)
        of_process.setdefault(key, []).append(file)
    for captures in of_process.values():
        session: list[File] = []
        for file in sorted(captures, key=lambda file: file[0].traits.started_at_ns or 0):
            if session and not follows_within_minutes(file[0].traits, session[-1][0].traits):
                yield session
                session = []
            session.append(file)
        yield session


def _parts_of(session: Sequence[File]) -> list[list[File]]:
    """Return the captures by what they hold; each is compared with one of each part, of which a process has few."""
    parts: list[list[File]] = []
    for file in session:
        alike = (part for part in parts if not share_few_kernels(file[0].traits, part[-1][0].traits))
        part = next(alike, None)
        if part is None:
            parts.append([file])
        else:
            part.append(file)
    return parts


def _names_of(parts: Sequence[Sequence[File]]) -> list[str]:
    """Return the name of the folder of each part, the nearest one in which they differ; a SourceError for none."""
    for level in range(_DEEPEST):
        folders = [{_folder_of(file, level) for file in part} for part in parts]
        names = [next(iter(names)) for names in folders if len(names) == 1]
        if len(names) == len(set(names)) == len(parts) and all(names):
            return names
    first, second = (Path(part[0][0].place) for part in parts[:2])
    process = parts[0][0][0].traits.process
    raise SourceError(
        first,
        "",
        f"this and {second.name} are of process {process}, one after the other, and have few kernels in common: they "
        "are parts of one job, and no repeats",
        remedy=HOW_TO_NAME_PARTS,
    )


def _folder_of(file: File, level: int) -> str:
    """Return the name of a folder around a capture, the nearest one at level 0; "" where there is none."""
    folders = Path(place_of(file[0].place)).parents
    return folders[level].name if level < len(folders) else ""


def _with_part(file: File, name: str) -> File:
    named = []
    for piece in file:
        configuration = {**piece.capture.configuration, PART: name}
        named.append(replace(piece, capture=replace(piece.capture, configuration=configuration)))
    return named
