"""The runs that an ingest would form, why, and what is odd about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tracker.doctor.findings import CaptureFound, RunFormed
from tracker.intake import Piece, find_documents, why_apart
from tracker.units import counted, ranges

_RANGES: Final = 10  # of ranks that a sentence names

Files = dict[str, list[Piece]]


def formed(
    groups: Sequence[Sequence[Piece]], pieces: Sequence[Piece], captures: Sequence[CaptureFound]
) -> tuple[RunFormed, ...]:
    """`groups` as `form_runs` made them of `pieces`; `captures` are what was found in these."""
    files = _by_file(pieces)
    leads = [_by_file(group) for group in groups]
    steps = {capture.paths[0]: capture.steps for capture in captures}
    main_of = find_documents(groups)
    runs = [lead for place, lead in enumerate(leads) if place not in main_of]
    found = []
    for place, (group, lead) in enumerate(zip(groups, leads, strict=True)):
        if place in main_of:
            continue
        own = [groups[one] for one, main in main_of.items() if main == place]
        reason = "; ".join(filter(None, [_reason_for_documents(own), _reason(lead, runs, files)]))
        run = _run(group, reason, max(steps[path] for path in lead))
        found.append(replace(run, paths=(*run.paths, *(piece.paths[0] for one in own for piece in one))))
    return tuple(found)


def _reason_for_documents(documents: Sequence[Sequence[Piece]]) -> str:
    """Return which files are other sources of a run; "" for none."""
    names = sorted(Path(piece.paths[0]).name for one in documents for piece in one)
    if not names:
        return ""
    return f"{' and '.join(names)} beside it {'are' if len(names) > 1 else 'is'} of the same job"


def _by_file(pieces: Sequence[Piece]) -> Files:
    files: Files = {}
    for piece in pieces:
        # the first file is that of the capture itself; others may stand for it, as cycles of its process do
        files.setdefault(piece.paths[0], []).append(piece)
    return files


def _run(group: Sequence[Piece], reason: str, steps: int) -> RunFormed:
    captures = [piece.capture for piece in group]
    ranks = tuple(sorted(capture.rank for capture in captures if capture.rank is not None))
    starts = [capture.started_at_ns for capture in captures if capture.started_at_ns is not None]
    world_size = captures[0].world_size
    return RunFormed(
        ranks=ranks,
        world_size=world_size,
        missing_ranks=tuple(sorted(set(range(world_size or 0)) - set(ranks))),
        device=f"{captures[0].device.vendor} {captures[0].device.model}".strip(),
        steps=steps,
        started_at_ns=min(starts, default=None),
        paths=tuple(dict.fromkeys(path for piece in group for path in piece.paths)),
        reason=reason,
    )


def _reason(own: Files, groups: Sequence[Files], files: Files) -> str:
    """Why these files are a run, and why the others are not in it; `files` has the ranks that the files name."""
    first = files[next(iter(own))]
    parts = []
    if len(own) > 1:
        same_world = "equal world size, " if first[0].capture.world_size is not None else ""
        parts = [f"distinct ranks, {same_world}one device model, at the same time"]
    elif len(first) > 1:
        parts = ["one file"]
    if first[0].capture.rank is None and len(groups) > 1:
        if len(first) == 1:
            return "the file does not say which rank it is, so it is a run by itself"
        return (
            f"the file does not say which rank it is: its {len(first)} devices are the ranks of one run; where other "
            "files are of the same job, ingest them with --as-run"
        )
    others = [files[next(iter(other))] for other in groups if other is not own]
    others = [other for other in others if other[0].capture.rank is not None]  # the rest say so of themselves
    apart = Counter(why for other in others if (why := why_apart(first, other)) is not None)
    parts += [f"not with {counted(count, 'other run')}: {why}" for why, count in apart.items()]
    return "; ".join(parts) or "nothing else to form a run with"


def notes(runs: Sequence[RunFormed], groups: Sequence[Sequence[Piece]], pieces: Sequence[Piece]) -> Iterator[str]:
    """What a user should know before an ingest: ranks that are missing or there twice, files without a rank.

    `groups` as `form_runs` made them of `pieces`.
    """
    for run in runs:
        if run.missing_ranks:
            found = [rank for rank in run.ranks if rank < (run.world_size or 0)]
            yield (
                f"{_name(run.paths)}: world size {run.world_size}, found {counted(len(found), 'rank')} "
                f"({ranges(found, _RANGES)}), missing {ranges(run.missing_ranks, _RANGES)}. That is fine where "
                "only some ranks were profiled; where the others come later or from other machines, ingest with "
                "--expect-ranks"
            )
    files = list(_by_file(pieces).values())
    yield from _forming(groups, pieces)
    yield from _twice(files)
    yield from _labels(files)


def _forming(groups: Sequence[Sequence[Piece]], pieces: Sequence[Piece]) -> Iterator[str]:
    """Yield what `form_runs` says of the runs that it made, beside what the readers warn of."""
    of_readers = {warning for piece in pieces for warning in piece.warnings}
    for group in groups:
        for piece in group:
            yield from (warning for warning in piece.warnings if warning not in of_readers)


def _labels(files: Sequence[Sequence[Piece]]) -> Iterator[str]:
    """What the files call themselves, where all of them do."""
    versions: dict[str, set[str]] = {}
    for file in files:
        said = file[0].capture.labels
        if not said.get("workload") or not said.get("version"):
            return
        versions.setdefault(said["workload"], set()).add(said["version"])
    if versions:
        words = ", ".join(f"{workload} ({counted(len(found), 'version')})" for workload, found in versions.items())
        yield f"the files name their workload and version: {words}; --workload and --version would override them"


def _twice(files: Sequence[Sequence[Piece]]) -> Iterator[str]:
    """The same rank of one job captured twice at the same time."""
    seen: dict[tuple[object, ...], list[Piece]] = {}
    for file in files:
        piece = file[0]
        capture, name = piece.capture, piece.paths[0]
        if capture.rank is None or capture.started_at_ns is None or capture.ended_at_ns is None:
            continue
        place = (capture.rank, capture.world_size, capture.device)
        for other in seen.setdefault(place, []):
            start, end = other.capture.started_at_ns or 0, other.capture.ended_at_ns or 0
            if start <= capture.ended_at_ns and capture.started_at_ns <= end:
                yield (
                    f"rank {capture.rank} is there twice at the same time: {other.paths[0]} and {name}; "
                    "they become two runs"
                )
                break
        seen[place].append(piece)


def _name(paths: Sequence[str]) -> str:
    names = [Path(path).name for path in paths]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"
