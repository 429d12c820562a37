"""The document of what `tracker doctor` found: what can be ingested, as which runs, and what will be missing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracker.reports.cells import number
from tracker.reports.commands import command
from tracker.reports.document import WORDS, Block, Column, Document, Lines, Look, Table, few, table
from tracker.reports.rows import plain
from tracker.reports.view import View
from tracker.units import MISSING_TEXT, NS_PER_S, counted, format_bytes, format_ns, ranges, some_of

if TYPE_CHECKING:
    from tracker.doctor import CaptureFound, Findings, RunFormed

_COUNTS: Final = ("ops", "kernels", "copies", "collectives", "allocations", "host API calls")
_DROP: Final = {"copies": 3, "host API calls": 4}
_TRAITS: Final[Mapping[str, Callable[[CaptureFound], str]]] = {
    "format": lambda one: one.format,
    "device": lambda one: one.device if one.device_ordinal is None else f"{one.device} #{one.device_ordinal}",
    "host": lambda one: f"host {one.host}" if one.host else "",
}
"""What captures of one place often share."""
_EXAMPLES: Final = 3
_FEW_COMMANDS: Final = 2
_CAPTURES: Final = 5
_LINES: Final = 3
"""Rows and lines of each block on a first screen."""
_RANGES: Final = 10


def document(findings: Findings, look: Look) -> Document:
    """Say whether this can be ingested, as what, and what would be missing; then the captures and runs, and why."""
    captures = findings.captures
    files = sum(kind.count for kind in findings.unclaimed)
    passed = findings.passed_over
    # a value that helps to know is one that can be had
    missing = dict.fromkeys(lack.what for one in captures for lack in one.lacks if lack.remedy)
    parts = [f"{counted(len(findings.failures), 'file')} unreadable"] if findings.failures else []
    unclaimed = (
        "looks like a profile, but no reader takes it" if files == 1 else "look like profiles, but no reader takes them"
    )
    parts += [f"{counted(files, 'file')} {unclaimed}"] if files else []
    if captures:
        of = some_of(list(dict.fromkeys((f"{one.format}, {one.device}") for one in captures)), "; ")
        parts.insert(0, f"{some_of(list(missing))} will be missing" if missing else "nothing will be missing")
        runs = counted(len(findings.runs), "run")
        answer = f"{counted(len(captures), 'readable capture')} ({of}) can be ingested as {runs}; {'; '.join(parts)}"
    else:
        answer = f"Nothing here can be ingested: {'; '.join(parts) or 'no profile found'}"
    following = [command(*words) for words in findings.commands or filter(None, [findings.command])]
    if len(following) > _FEW_COMMANDS and not look.details:
        following = [following[0], command("tracker", "doctor", *findings.paths, "--details")]
    incomplete: dict[str, list[str]] = {}
    for one in captures:
        if one.quality != "ok":
            incomplete.setdefault(f"{one.quality}: {one.quality_reason}", []).append(one.paths[0])
    partial = [f"{why} ({some_of(paths, most=1)})" for why, paths in incomplete.items()]
    warned = dict.fromkeys(text for one in captures for text in one.warnings)
    left = [f"{counted(passed, 'other file')} not read: no sign of a profile"] if passed else []
    return Document(
        title=some_of(findings.paths),
        headline=answer,
        tone="" if captures else "worse",
        blocks=tuple(_blocks(findings, look)),
        notes=few((*findings.notes, *partial, *warned, *left), look),
        next_commands=tuple(following),
    )


def _blocks(findings: Findings, look: Look) -> list[Block]:
    limit = None if look.details else _LINES

    def cut(title: str, lines: Sequence[str], *, is_wrapped: bool = False) -> Lines:
        more = len(lines) - len(lines[:limit])
        rest = [f"and {more:,} more: --details"] if more else []
        return Lines(title, (*lines[:limit], *rest), is_wrapped=is_wrapped)

    failures = []
    for one in findings.failures:
        claimed = f" [{' or '.join(one.formats)}]" if one.formats else ""
        failures.append(f"{one.path}{claimed}: {one.problem}{f'; {one.remedy}' if one.remedy else ''}")
    unclaimed = []
    for kind in findings.unclaimed:
        examples = ", ".join([*kind.examples, *(["..."] if kind.count > len(kind.examples) else [])])
        unclaimed.append(f"{kind.count:,} x {kind.kind}, {format_bytes(kind.bytes)} ({examples}): {kind.remedy}")
    return [
        *([_captures(findings.captures, None if look.details else _CAPTURES)] if findings.captures else []),
        cut("Runs that would form", _runs(findings.runs), is_wrapped=True),
        cut("Unreadable", failures),
        cut("Missing, and why", _lacks(findings.captures), is_wrapped=True),
        cut("No reader takes these, though they look like profiles", unclaimed),
    ]


def _captures(captures: Sequence[CaptureFound], limit: int | None) -> Table:
    """Return a row per capture; what all share stands above, and counts that no capture has get no column."""
    counts = [word for word in _COUNTS if any(word in one.counts for one in captures)]
    shared = [title for title, text in _TRAITS.items() if len(captures) > 1 and len(set(map(text, captures))) == 1]
    differing = [text for title, text in _TRAITS.items() if title not in shared]
    columns = [Column("capture", **WORDS, tail=True), Column("files", drop=3), Column("what", **WORDS), Column("rank")]
    columns += [Column("start (UTC)", left=True, drop=1), Column("span"), Column("steps")]
    columns += [Column(word, drop=_DROP.get(word, 2)) for word in counts]
    home = _home([path for one in captures for path in one.paths])
    rows = []
    for one in captures[:limit]:
        start, end = one.started_at_ns, one.ended_at_ns
        of = "" if one.world_size is None else f" of {one.world_size}"
        moment = "" if start is None else f"{datetime.fromtimestamp(start // NS_PER_S, UTC):%Y-%m-%d %H:%M:%S}"
        cells = [
            _name(one.paths, home).partition(" (")[0],
            number(len(one.paths)),
            ", ".join(filter(None, (text(one) for text in differing))),
        ]
        cells += [MISSING_TEXT if one.rank is None else f"{one.rank}{of}", moment or MISSING_TEXT]
        cells += [MISSING_TEXT if start is None or end is None else format_ns(end - start), number(one.steps or None)]
        rows.append(("", [*cells, *(number(one.counts.get(word)) for word in counts)]))
    more = len(captures) - len(rows)
    same = ", ".join(filter(None, (_TRAITS[title](captures[0]) for title in shared)))
    lead, note = f"all: {same}" if same else "", "--details lists all" if more else ""
    return table("Captures", columns, rows, more=more, note=note, is_first=True, lead=lead)


def _runs(runs: Sequence[RunFormed]) -> list[str]:
    """Return a line per run that an ingest would form; runs of one file that are alike are one line."""
    home = _home([path for run in runs for path in run.paths])
    alike: dict[tuple[object, ...], list[RunFormed]] = {}
    for place, run in enumerate(runs):
        alone = len(run.ranks) == 1
        key = (run.ranks, run.world_size, run.device, bool(run.steps), run.reason) if alone else (place,)
        alike.setdefault(key, []).append(run)
    lines = []
    for group in alike.values():
        run = group[0]
        ranks = f"rank{'s' * (len(run.ranks) > 1)} {ranges(run.ranks, _RANGES)}"
        ranks += "" if run.world_size is None else f" of {run.world_size}"
        least, most = min(one.steps for one in group), max(one.steps for one in group)
        span = counted(most, "step") if least == most else f"{number(least)} to {counted(most, 'step')}"
        steps = f"{span if run.steps else 'no step markers'}{' each' if len(group) > 1 else ''}"
        name = _name([path for one in group for path in one.paths], home, most=_EXAMPLES)
        lines.append(f"{counted(len(group), 'run')}: {ranks} on {run.device}, {steps} ({name}): {run.reason}")
    return lines


def _lacks(captures: Sequence[CaptureFound]) -> list[str]:
    """Return what stays empty, why, and what to do.

    Equal ones of several captures are one line; those without a remedy are last.
    """
    found = Counter(lack for one in captures for lack in one.lacks)
    alike: dict[tuple[str, str], dict[str, str]] = {}
    for lack, count in sorted(found.items(), key=lambda pair: not pair[0].remedy):
        where = "" if count == len(captures) else f" (in {count:,} of {len(captures):,} captures)"
        why = "" if lack.remedy else f": {lack.why}"
        alike.setdefault((where, f"; {lack.remedy}" if lack.remedy else why), {})[lack.what] = lack.why
    lines = []
    for (where, end), lacks in alike.items():
        # one remedy for several: the reason of the first one speaks for all
        why = f": {next(iter(lacks.values()))}" if end.startswith(";") else ""
        lines.append(f"{', '.join(lacks)}{where}{why}{end}")
    return lines


def _home(paths: Sequence[str]) -> Path:
    """Return the folder that all of `paths` lie in."""
    return Path(os.path.commonpath([str(Path(path).parent) for path in paths])) if paths else Path()


def _name(paths: Sequence[str], home: Path, most: int = 1) -> str:
    """Return the files of a capture in a few words, below `home`: up to `most` of them, else those of a folder."""
    if len(paths) <= most:
        return ", ".join(str(Path(path).relative_to(home)) for path in paths)
    folder = _home(paths)
    # the folder that profilers write into says nothing; the one above it names the capture
    place = folder.parent if folder.name == "ASCEND_PROFILER_OUTPUT" and folder != home else folder
    name = place.name if place == home else str(place.relative_to(home))
    return f"{name}/ ({counted(len(paths), 'file')})"


def list_json(findings: Findings, look: Look) -> dict[str, Any]:
    """Return all that was found.

    `command`: a line for a shell that ingests all, None where there is nothing to ingest. `commands`: those that are
    proposed, one for each folder that holds runs of a version of its own.
    """
    document: dict[str, Any] = plain(findings)
    words = document.pop("command")
    words_of_folders = document.pop("commands") or ([words] if words else [])
    document["command"] = command(*words) if words else None
    document["commands"] = [command(*each) for each in words_of_folders]
    return document


VIEW = View(document, json=list_json, hides=("csv", "markdown", "xlsx"))
