"""Which captures are one run, and which rank each of them is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.intake.identity import leave_out_copies
from tracker.intake.pieces import Piece
from tracker.intake.unranked import keep_one_cycle, rank_the_unranked
from tracker.profile import Capture
from tracker.units import NS_PER_S

CLOCKS_APART_NS: Final = 60 * NS_PER_S
"""So far apart the clocks of the hosts of one job may be."""


def form_runs(pieces: Sequence[Piece], *, as_run: bool = False) -> list[list[Piece]]:
    """Which captures are one run: distinct known ranks, equal world size, overlapping windows, one device model, and
    the same job, labels and configuration where files state these.

    Anything else (three models in a folder, two captures of one rank) is a run each. The captures of one file are never
    parted. `as_run` forces one run; then ranks must still be distinct, and files without a rank get the free ones in
    order. Order: by start, then path; within a run by rank.
    """
    files: dict[tuple[str, ...], list[Piece]] = {}
    for piece in pieces:
        # packs of two machines may hold files of one name
        files.setdefault((piece.path, *piece.paths), []).append(piece)
    distinct = leave_out_copies(list(files.values()))
    if not as_run:
        distinct = rank_the_unranked(keep_one_cycle(distinct))
    ordered = sorted(distinct, key=lambda file: (file[0].capture.started_at_ns or 0, file[0].paths))
    if as_run:
        return [_number_ranks(ordered)] if ordered else []
    groups: list[list[list[Piece]]] = []
    for file in ordered:
        homes = [group for group in groups if all(_belong_together(member, file) for member in group)]
        # what ran at the same time on one clock counts before what a clock may be wrong about
        homes.sort(key=lambda group: not all(_windows_overlap(member[0].capture, file[0].capture) for member in group))
        home = homes[0] if homes else None
        if home is None:
            groups.append([file])
        else:
            home.append(file)
    return [_with_clocks(_number_ranks(group)) for group in groups]


def _known_ranks(file: Sequence[Piece]) -> list[int]:
    return [piece.capture.rank for piece in file if piece.capture.rank is not None]


def _belong_together(one: Sequence[Piece], other: Sequence[Piece]) -> bool:
    return why_apart(one, other) is None


def why_apart(one: Sequence[Piece], other: Sequence[Piece]) -> str | None:
    """Why the captures of two files are not ranks of one run, in a few words; None where they are.

    The first capture of a file is the one that its rank stands for.
    """
    a, b = one[0].capture, other[0].capture
    ranks = _known_ranks(one), _known_ranks(other)
    jobs = a.facts.get("job_id"), b.facts.get("job_id")
    apart = {
        "a file names no rank": not ranks[0] or not ranks[1],
        "the same rank": bool(set(ranks[0]) & set(ranks[1])),
        "another job": None not in jobs and jobs[0] != jobs[1],
        "other labels": a.labels != b.labels or _contradict(a.configuration, b.configuration),
        "another world size": a.world_size != b.world_size,
        "another device": a.device != b.device,
        "not at the same time": not (_windows_overlap(a, b) or _are_on_other_clocks(one[0], other[0])),
    }
    return next((why for why, holds in apart.items() if holds), None)


def _contradict(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    """Whether two files state different values of one key; one that leaves it out contradicts nothing."""
    return any(b.get(key, value) != value for key, value in a.items())


def _windows_overlap(a: Capture, b: Capture, apart_ns: int = 0) -> bool:
    """Whether the captures ran at the same time, or at most `apart_ns` apart; a clock that is not absolute contradicts
    nothing.
    """
    starts, ends = (a.started_at_ns, b.started_at_ns), (a.ended_at_ns, b.ended_at_ns)
    if starts[0] is None or starts[1] is None or ends[0] is None or ends[1] is None:
        return True
    return starts[0] <= ends[1] + apart_ns and starts[1] <= ends[0] + apart_ns


def _are_on_other_clocks(one: Piece, other: Piece) -> bool:
    """Whether two captures that seem to follow each other are of one job, on hosts whose clocks differ.

    They are where they count the same steps, and exchanged the same as often.
    """
    a, b = one.capture, other.capture
    if not a.host or not b.host or a.host == b.host or not _windows_overlap(a, b, CLOCKS_APART_NS):
        return False
    steps = [tuple(number for number, _, _ in piece.fingerprint.steps) for piece in (one, other)]
    collectives = one.fingerprint.collectives
    return bool(collectives) and collectives == other.fingerprint.collectives and steps[0] == steps[1]


def _with_clocks(group: Sequence[Piece]) -> list[Piece]:
    """Return the captures of a run; the first one says where the clocks of their hosts differ."""
    first = group[0]
    for piece in group[1:]:
        a, b = first.capture, piece.capture
        if _windows_overlap(a, b):
            continue
        apart = abs((a.started_at_ns or 0) - (b.started_at_ns or 0))
        note = (
            f"the clocks of {a.host} and {b.host} are {apart / NS_PER_S:.1f} s apart: their ranks are one run, since "
            "they count the same steps and exchanged the same"
        )
        return [replace(first, warnings=(*first.warnings, note)), *group[1:]]
    return list(group)


def _number_ranks(files: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Every capture of a run with a rank: a file that names none gets the first free one.

    The i-th further device of a process of rank r becomes r + i x world size: no rank of the job, and the same whether
    the ranks come together or one after the other. Two captures of one rank are an error.
    """
    known = [rank for file in files for rank in _known_ranks(file)]
    _refuse_doubles(files, known)
    free = (number for number in range(len(files) + len(known)) if number not in known)
    sizes = [piece.capture.world_size or 0 for file in files for piece in file]
    leads = [(_known_ranks(file) or [next(free)])[0] for file in files]
    world = max([*sizes, *(rank + 1 for rank in [*known, *leads])])
    numbered = []
    for file, lead in zip(files, leads, strict=True):
        numbers = (lead + further * world for further in range(0 if not _known_ranks(file) else 1, len(file) + 1))
        numbered += [
            piece
            if piece.capture.rank is not None
            else replace(piece, capture=replace(piece.capture, rank=next(numbers)))
            for piece in file
        ]
    return sorted(numbered, key=lambda piece: piece.capture.rank or 0)


def _refuse_doubles(files: Sequence[Sequence[Piece]], known: Sequence[int]) -> None:
    for rank, count in Counter(known).items():
        if count > 1:
            twice = [path for file in files if rank in _known_ranks(file) for path in file[0].paths]
            raise SourceError(
                twice[0],
                f"rank {rank}",
                f"{count} captures of one rank cannot be one run (also {twice[-1]})",
                remedy="leave out --as-run, so that each capture becomes a run",
            )


BESIDE: Final = "lie beside each other"
"""In the warning of `formats_beside`."""


def formats_beside(pieces: Sequence[Piece]) -> str:
    """A warning where files of several formats lie in one folder: often they tell of one run; "" where none do."""
    formats: dict[Path, set[str]] = {}
    for piece in pieces:
        formats.setdefault(Path(piece.paths[0]).parent, set()).add(piece.format)
    several = {folder: sorted(names) for folder, names in formats.items() if len(names) > 1}
    if not several:
        return ""
    folder, names = next(iter(several.items()))
    more = f" and {len(several) - 1} more" if len(several) > 1 else ""
    return (
        f"{folder}{more}: files of {', '.join(names[:-1])} and {names[-1]} {BESIDE}, each becomes a run "
        f"of its own, and one job may count {len(names)} times: --input-format {names[-1]} chooses one of them"
    )
