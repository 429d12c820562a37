"""What `tracker doctor` found, for people: tables of captures, runs and failures, and why something stays empty."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.reports._human import UNDER, WORDS, Column, Table, make, number
from tracker.reports.shared import command
from tracker.units import MISSING_TEXT, NS_PER_S, counted, format_bytes, format_ns, ranges

if TYPE_CHECKING:
    from tracker.doctor import CaptureFound, Findings, Lack, RunFormed

_COUNTS: Final = ("ops", "kernels", "copies", "collectives", "allocations", "host API calls")
_DROP: Final = {"copies": 2, "host API calls": 3}
_EXAMPLES: Final = 3
_RANGES: Final = 10
_ROWS: Final = 40  # of a table; JSON has them all


def summary(findings: Findings) -> str:
    """What there is, in a sentence."""
    formats = ", ".join(dict.fromkeys(capture.format for capture in findings.captures))
    readable = counted(len(findings.captures), "readable capture") + (f" ({formats})" if formats else "")
    files = sum(kind.count for kind in findings.unclaimed)
    parts = [
        f"{readable}, {counted(len(findings.runs), 'run')}",
        f"{number(len(findings.failures))} unreadable" if findings.failures else "",
        f"{counted(files, 'other file')} that may be profiles" if files else "",
        f"{counted(findings.passed_over, 'other file')} passed over" if findings.passed_over else "",
    ]
    return f"{', '.join(findings.paths)}: {'; '.join(part for part in parts if part)}"


def next_step(findings: Findings) -> str:
    """The command that comes next."""
    if findings.commands:
        return f"Next: {' && '.join(command(*words) for words in findings.commands)}"
    if findings.command:
        return f"Next: {command(*findings.command)}"
    return "Nothing here can be ingested."


def captures(findings: Findings) -> Table:
    """A row per capture; what all captures share stands above, counts that no capture has get no column."""
    known = [word for word in _COUNTS if any(word in capture.counts for capture in findings.captures)]
    found = findings.captures
    shared = [title for title, text in _TRAITS.items() if len(found) > 1 and len({text(each) for each in found}) == 1]
    differing = [text for title, text in _TRAITS.items() if title not in shared]
    columns = [
        Column("profile", **WORDS),
        Column("what", **UNDER),
        Column("rank"),
        Column("start (UTC)", left=True, drop=1),
        Column("span"),
        Column("steps"),
        *(Column(word, drop=_DROP.get(word, 0)) for word in known),
    ]
    home = _home([path for capture in found for path in capture.paths])
    rows = []
    for capture in found[:_ROWS]:
        start, end = capture.started_at_ns, capture.ended_at_ns
        cells = [
            name_of(capture.paths, home),
            ", ".join(filter(None, (text(capture) for text in differing))),
            _rank(capture),
            _moment(start),
            MISSING_TEXT if start is None or end is None else format_ns(end - start),
            number(capture.steps) if capture.steps else MISSING_TEXT,
            *(number(capture.counts[word]) if word in capture.counts else MISSING_TEXT for word in known),
        ]
        rows.append(("", cells))
    table = make("Profiles", columns, rows, more=len(found) - len(rows))
    same = ", ".join(filter(None, (_TRAITS[title](found[0]) for title in shared)))
    return replace(table, lead=f"all: {same}") if same else table


def _device(capture: CaptureFound) -> str:
    return capture.device if capture.device_ordinal is None else f"{capture.device} #{capture.device_ordinal}"


_TRAITS: Final[Mapping[str, Callable[[CaptureFound], str]]] = {
    "format": lambda capture: capture.format,
    "device": _device,
    "host": lambda capture: f"host {capture.host}" if capture.host else "",
}
"""What captures of one place often share."""


def _rank(capture: CaptureFound) -> str:
    if capture.rank is None:
        return MISSING_TEXT
    return str(capture.rank) if capture.world_size is None else f"{capture.rank} of {capture.world_size}"


def _moment(time_ns: int | None) -> str:
    if time_ns is None:
        return MISSING_TEXT
    return f"{datetime.fromtimestamp(time_ns // NS_PER_S, UTC):%Y-%m-%d %H:%M:%S}"


def _home(paths: Sequence[str]) -> Path:
    """The folder that all of `paths` lie in."""
    return Path(os.path.commonpath([str(Path(path).parent) for path in paths])) if paths else Path()


def name_of(paths: Sequence[str], home: Path, names: int = 1) -> str:
    """The files of a capture in a few words, below `home`: up to `names` of them, else those of a folder."""
    if len(paths) <= names:
        return ", ".join(str(Path(path).relative_to(home)) for path in paths)
    folder = _home(paths)
    # the folder that profilers write into says nothing; the one above it names the capture
    place = folder.parent if folder.name == "ASCEND_PROFILER_OUTPUT" and folder != home else folder
    name = place.name if place == home else str(place.relative_to(home))
    return f"{name}/ ({counted(len(paths), 'file')})"


def runs(findings: Findings) -> list[str]:
    """A line per run that an ingest would form; runs of one file that are alike are one line."""
    home = _home([path for run in findings.runs for path in run.paths])
    alike: dict[tuple[object, ...], list[RunFormed]] = {}
    for place, run in enumerate(findings.runs):
        alone = len(run.ranks) == 1
        key = (run.ranks, run.world_size, run.device, bool(run.steps), run.reason) if alone else (place,)
        alike.setdefault(key, []).append(run)
    return [_run_line(group, home) for group in alike.values()]


def _run_line(group: Sequence[RunFormed], home: Path) -> str:
    run = group[0]
    ranks = f"rank{'s' * (len(run.ranks) > 1)} {ranges(run.ranks, _RANGES)}"
    size = "" if run.world_size is None else f" of {run.world_size}"
    least, most = min(member.steps for member in group), max(member.steps for member in group)
    span = counted(most, "step") if least == most else f"{number(least)} to {counted(most, 'step')}"
    steps = f", {span}" if run.steps else ", no step markers"
    each = "" if len(group) == 1 else " each"
    paths = [path for member in group for path in member.paths]
    what = f"{counted(len(group), 'run')}: {ranks}{size} on {run.device}{steps}{each}"
    return f"{what} ({name_of(tuple(paths), home, names=_EXAMPLES)}): {run.reason}"


def failures(findings: Findings) -> list[str]:
    """A sentence per file that cannot be read: where, what, what to do."""
    lines = []
    for failure in findings.failures:
        claimed = f" [{' or '.join(failure.formats)}]" if failure.formats else ""
        remedy = f"; {failure.remedy}" if failure.remedy else ""
        lines.append(f"{failure.path}{claimed}: {failure.problem}{remedy}")
    return lines


def lacks(findings: Findings) -> list[str]:
    """What stays empty, why, and what to do; equal ones of several captures are one line, the helpless ones last."""
    found: dict[Lack, int] = {}
    for capture in findings.captures:
        for lack in capture.lacks:
            found[lack] = found.get(lack, 0) + 1
    total = len(findings.captures)
    lines = [
        f"{lack.what}{_where(count, total)}: {lack.why}; {lack.remedy}" for lack, count in found.items() if lack.remedy
    ]
    helpless: dict[tuple[str, int], list[str]] = {}
    for lack, count in found.items():
        if not lack.remedy:
            helpless.setdefault((lack.why, count), []).append(lack.what)
    return lines + [f"{', '.join(names)}{_where(count, total)}: {why}" for (why, count), names in helpless.items()]


def _where(count: int, total: int) -> str:
    return "" if count == total else f" (in {count:,} of {total:,} captures)"


def remarks(findings: Findings) -> list[str]:
    """What a user should know: the notes, captures that are partial, what the readers warn of, each sentence once."""
    partial = [
        f"{capture.paths[0]} is {capture.quality}: {capture.quality_reason}"
        for capture in findings.captures
        if capture.quality != "ok"
    ]
    warned = dict.fromkeys(text for capture in findings.captures for text in capture.warnings)
    return [*findings.notes, *partial, *warned]


def unclaimed(findings: Findings) -> list[str]:
    """A sentence per kind of file that no reader takes."""
    lines = []
    for kind in findings.unclaimed:
        more = ", ..." if kind.count > len(kind.examples) else ""
        size = format_bytes(kind.bytes)
        lines.append(f"{kind.count:,} x {kind.kind}, {size} ({', '.join(kind.examples)}{more}): {kind.remedy}")
    return lines
