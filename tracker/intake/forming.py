"""Which captures are one run, and which rank each of them is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.intake.identity import leave_out_copies
from tracker.intake.job_hosts import DeviceTimes, leave_out_hosts, mark_lost_ranks
from tracker.intake.parts import name_parts
from tracker.intake.pieces import Piece
from tracker.intake.unranked import keep_one_cycle, note_on_unranked, rank_the_unranked, without_indices
from tracker.profile import RANK_BY_ORDER, RANK_SETTING, UNKNOWN_DEVICE, same_job
from tracker.profile.job_groups import group_files
from tracker.profile.same_job import are_on_other_clocks, ran_at_once
from tracker.profile.traits import Traits
from tracker.profile.words import TRAINING_LOG
from tracker.units import NS_PER_S, ranges

_LISTED: Final = 10


def form_runs(pieces: Sequence[Piece], *, as_run: bool = False) -> list[list[Piece]]:
    """Return which captures are one run: distinct known ranks, equal world size, one device model (a file that names
    no chip is of the one of its vendor), the same job, labels and configuration where files state these, and each ran
    at the same time as another one.

    Anything else (three models in a folder, two captures of one rank) is a run each. The captures of one file are never
    parted. `as_run` forces one run; then ranks must still be distinct, and files without a rank get the free ones in
    order. Order: by start, then path; within a run by rank.
    """
    files: dict[tuple[str, ...], list[Piece]] = {}
    for piece in pieces:
        # packs of two machines may hold files of one name
        files.setdefault((piece.path, *piece.paths), []).append(piece)
    distinct = without_indices(leave_out_copies(list(files.values())))
    times = DeviceTimes(distinct)
    without_hosts = leave_out_hosts(distinct, times)
    distinct = without_hosts.ranks
    if not as_run:
        distinct = rank_the_unranked(keep_one_cycle(name_parts(distinct)))
    ordered = sorted(distinct, key=lambda file: (file[0].capture.started_at_ns or 0, file[0].paths))
    traits = [_traits_of(file) for file in ordered]
    places = [list(range(len(ordered)))] if as_run and ordered else group_files(traits)
    groups = [[ordered[place] for place in group] for group in places]
    note = "" if as_run else note_on_unranked([group[0] for group in groups if len(group) == 1])
    runs = [_form_run(mark_lost_ranks(group, times)) for group in groups]
    notes = tuple(filter(None, [without_hosts.note, note]))
    if notes:
        runs[0][0] = replace(runs[0][0], warnings=(*runs[0][0].warnings, *notes))
    return runs


def _form_run(group: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Return the captures of the files of one run, each with a rank, on one device."""
    return _on_one_device(_with_clocks(_number_ranks(group)))


def _known_ranks(file: Sequence[Piece]) -> list[int]:
    return [piece.capture.rank for piece in file if piece.capture.rank is not None]


def _traits_of(file: Sequence[Piece]) -> Traits:
    """Return what a file says of its job: its first capture is the one that stands for it, with the ranks of all."""
    return replace(file[0].traits, ranks=frozenset(_known_ranks(file)))


def why_apart(one: Sequence[Piece], other: Sequence[Piece]) -> str | None:
    """Return why the captures of two files are not ranks of one run, in a few words; None where they are."""
    return same_job.why_apart([_traits_of(one)], [_traits_of(other)])


def _with_clocks(group: Sequence[Piece]) -> list[Piece]:
    """Return the captures of a run; the first one says where the clocks of their hosts differ."""
    first = group[0]
    traits = first.traits
    for piece in group[1:]:
        a, b = first.capture, piece.capture
        if ran_at_once(a, b) or not are_on_other_clocks(traits, piece.traits):
            continue
        apart = abs((a.started_at_ns or 0) - (b.started_at_ns or 0))
        note = (
            f"the clocks of {a.host} and {b.host} are {apart / NS_PER_S:.1f} s apart: their ranks are one run, since "
            "they count the same steps and exchanged the same"
        )
        return [replace(first, warnings=(*first.warnings, note)), *group[1:]]
    return list(group)


def _on_one_device(run: list[Piece]) -> list[Piece]:
    """Return the captures of a run with the device that some of them name, where the others do not name it."""
    devices = {piece.capture.device for piece in run}
    if len(devices) == 1:
        return run
    named = {piece.capture.device for piece in run if not piece.traits.names_no_device}
    chips = {device for device in named if device.model != UNKNOWN_DEVICE.model} or named or {UNKNOWN_DEVICE}
    (chip, *other_chips) = chips
    if other_chips or any(device.vendor != chip.vendor for device in named):
        return run
    unnamed = ranges([piece.capture.rank or 0 for piece in run if piece.capture.device != chip], _LISTED)
    first, *others = [replace(piece, capture=replace(piece.capture, device=chip)) for piece in run]
    if chip.model == UNKNOWN_DEVICE.model:
        return [first, *others]
    note = f"the files of rank {unnamed} do not name the chip: it is taken for that of the others, {chip.model}"
    return [replace(first, warnings=(*first.warnings, note)), *others]


def _number_ranks(files: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Every capture of a run with a rank: a file that names none gets the first free one.

    The i-th further device of a process of rank r becomes r + i x world size: no rank of the job, and the same whether
    the ranks come together or one after the other. Two captures of one rank are an error.
    """
    known = [rank for file in files for rank in _known_ranks(file)]
    _refuse_doubles(files, known)
    taken = set(known)
    free = (number for number in range(len(files) + len(known)) if number not in taken)
    sizes = [piece.capture.world_size or 0 for file in files for piece in file]
    leads = [(_known_ranks(file) or [next(free)])[0] for file in files]
    world = max([*sizes, *(rank + 1 for rank in [*known, *leads])])
    numbered = []
    for file, lead in zip(files, leads, strict=True):
        is_assumed = not _known_ranks(file)
        numbers = (lead + further * world for further in range(0 if is_assumed else 1, len(file) + 1))
        for piece in file:
            if piece.capture.rank is not None:
                numbered.append(piece)
                continue
            settings = dict(piece.capture.settings)
            if is_assumed:
                settings[RANK_SETTING] = RANK_BY_ORDER
            capture = replace(piece.capture, rank=next(numbers), settings=settings)
            numbered.append(replace(piece, capture=capture))
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
    # a log says least of a run
    most = max(names, key=lambda name: (name != TRAINING_LOG, name))
    return (
        f"{folder}{more}: files of {', '.join(names[:-1])} and {names[-1]} {BESIDE}, each becomes a run "
        f"of its own, and one job may count several times: --input-format {most} chooses one of them"
    )
