"""Looks at paths as an ingest would, and goes on behind every problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tracker import readers
from tracker.doctor import command, rules, runs, sidecars, unclaimed
from tracker.doctor.findings import CaptureFound, Failure, Findings
from tracker.doctor.view import View
from tracker.errors import SourceError, without_place
from tracker.intake import IngestOptions, Piece, form_runs, formats_beside, leave_out_documents, read_pieces
from tracker.limits.files import identify_file
from tracker.profile import MISSING, NO_OP, UNLINKED_OP, Capture, Rows
from tracker.profile.words import COPIES
from tracker.readers import Found
from tracker.schema.column_names import CALLS, CATEGORY, DEVICE_SELF_NS, NAME, OP_KEY
from tracker.units import format_ns

_COUNTED: Final = {
    "op": "ops",
    "kernel": "kernels",
    "communication": "collectives",
    "memory": "allocations",
    "api": "host API calls",
    "kernel_metric": "kernel metrics",
    "counter": "counters",
    "memory_curve": "memory points",
}
_BY_ROWS: Final = ("kernel_metric", "counter", "memory_curve")


class _Notebook(Struct):
    """What was found so far. `pieces`: the captures without their rows, which would fill the memory."""

    pieces: list[Piece] = field(default_factory=list)
    captures: list[CaptureFound] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    readable: list[Path] = field(default_factory=list)
    broken: list[Path] = field(default_factory=list)
    passed: list[Path] = field(default_factory=list)
    misnamed: dict[Path, str] = field(default_factory=dict)
    sidecars: list[Path] = field(default_factory=list)
    contents: dict[tuple[bytes, ...], str] = field(default_factory=dict)
    copies: list[str] = field(default_factory=list)

    def fail(self, path: Path, formats: Sequence[str], error: SourceError) -> None:
        """Note a file or folder that cannot be read."""
        problem = without_place(" ".join(error.problem.split()), path)
        self.failures.append(Failure(str(path), tuple(formats), problem, " ".join(error.remedy.split())))
        self.broken.append(path)

    def keep(self, path: Path, pieces: Sequence[Piece]) -> None:
        """Note what was read of a file or folder; a copy of another one forms no run of its own, as in an ingest."""
        self.readable.append(path)
        self.captures += [_capture(piece) for piece in pieces]
        content = tuple(source.digest for piece in pieces for source in piece.capture.sources)
        first = self.contents.setdefault(content, str(path))
        if first != str(path):
            self.copies.append(f"{path} holds the same as {first}: ingest takes it once")
            return
        self.pieces += [replace(piece, capture=replace(piece.capture, rows=None)) for piece in pieces]


def examine(paths: Sequence[Path], options: IngestOptions | None = None) -> Findings:
    """What an ingest of `paths` with `options` would read and form, what it would refuse, and what to do next.

    Nothing is written. A file that cannot be read is a `Failure`, never an error; only a format that does not exist is
    a UsageError.
    """
    options = options or IngestOptions()
    book, seen = _Notebook(), set[tuple[int, int] | str]()
    for path in paths:
        for look in readers.survey(path, options.format):
            file = identify_file(look.path)
            if file not in seen:
                seen.add(file)
                _note(book, look, options)
    groups = _grouped(book)
    formed = runs.formed(groups, book.pieces, book.captures)
    examined = [*book.readable, *book.broken]
    passed = list(readers.of_no_profile(book.passed, examined))
    looks_like, others = unclaimed.gather(passed, paths, book.misnamed)
    labelled = [*map(sidecars.labelled, book.pieces)]
    commands = command.per_folder(paths, book.readable, book.broken, groups, labelled, options)
    left = [path for path in passed if path not in book.misnamed]
    return Findings(
        paths=tuple(str(path) for path in paths),
        captures=tuple(book.captures),
        runs=formed,
        failures=tuple(book.failures),
        unclaimed=looks_like,
        passed_over=others,
        notes=(
            *book.copies,
            *book.misnamed.values(),
            *filter(None, [formats_beside(leave_out_documents(groups))]),
            *runs.notes(formed, groups, book.pieces),
            *sidecars.notes(groups, book.sidecars, book.broken),
        ),
        command=command.words(paths, book.readable, book.broken, labelled, options),
        commands=commands,
        not_recognised=tuple(readers.to_name(left, examined)),
    )


def _note(book: _Notebook, look: readers.Seen, options: IngestOptions) -> None:
    if look.problem is not None:
        book.fail(look.path, look.claims, look.problem)
    elif readers.is_sidecar(look.path):
        book.sidecars.append(look.path)
    elif not look.claims:
        book.passed.append(look.path)
        if warning := readers.misnamed(look.path, options.format):
            book.misnamed[look.path] = warning
    elif len(look.claims) > 1:
        book.fail(look.path, look.claims, readers.ambiguous(look.path, look.claims))
    else:
        try:
            pieces = read_pieces(Found(look.path, look.claims[0]), options)
        except SourceError as error:
            book.fail(look.path, look.claims, error)
            return
        book.keep(look.path, pieces)


def _capture(piece: Piece) -> CaptureFound:
    capture, rows = sidecars.labelled(piece), piece.capture.rows
    if rows is None:
        raise ValueError("a capture that was read has rows")
    counts = counts_of(rows)
    has_markers = _has_markers(rows)
    view = View(capture, rows, piece.format, counts, has_markers)
    return CaptureFound(
        paths=piece.paths,
        format=piece.format,
        rank=capture.rank,
        world_size=capture.world_size,
        device=_device(capture),
        device_ordinal=capture.device_ordinal,
        host=capture.host,
        started_at_ns=capture.started_at_ns,
        ended_at_ns=capture.ended_at_ns,
        steps=sum(row.steps for row in rows.steps) if has_markers else 0,
        counts=counts,
        quality=capture.quality,
        quality_reason=capture.quality_reason,
        settings=dict(capture.settings),
        labels=dict(capture.labels),
        configuration=dict(capture.configuration),
        lacks=rules.lacks_of(view),
        warnings=(*piece.warnings, *_without_op(rows, piece.format)),
    )


def _without_op(rows: Rows, format: str) -> list[str]:
    """How much device time stays without an operator because it was launched in no range, and how much of it because
    another thread launched it.
    """
    names, table = rows.tables["op_key"][NAME], rows.tables["op"]
    times = [(names[key], int(ns)) for key, ns in zip(table[OP_KEY], table[DEVICE_SELF_NS], strict=True)]
    own = [(name, ns) for name, ns in times if ns != MISSING and name != UNLINKED_OP]
    text = readers.outside_ranges(format, sum(ns for name, ns in own if name == NO_OP), sum(ns for _, ns in own))
    if text and rows.other_threads_ns:
        text += f"; {format_ns(rows.other_threads_ns)} of it by threads without a range while others had one open"
    return [text] if text else []


def counts_of(rows: Rows) -> dict[str, int]:
    """How often things happened: ops, kernels, copies, ...; what did not happen has no key."""
    counts: dict[str, int] = {}
    for table, word in _COUNTED.items():
        columns = rows.tables.get(table, {})
        length = max((len(column) for column in columns.values()), default=0)
        if table in _BY_ROWS or "calls" not in columns:
            counts[word] = length
            continue
        calls = [0 if int(count) == MISSING else int(count) for count in columns[CALLS]]
        counts[word] = sum(calls)
        if table == "kernel":
            copies = sum(n for n, category in zip(calls, columns[CATEGORY], strict=True) if category in COPIES)
            counts |= {"kernels": counts["kernels"] - copies, "copies": copies}
    return {word: count for word, count in counts.items() if count}


def _has_markers(rows: Rows) -> bool:
    """A capture without markers is one step, 0, as long as the capture."""
    if len(rows.steps) != 1 or rows.steps[0].step != 0:
        return bool(rows.steps)
    return rows.steps[0].breakdown.duration_ns != rows.overall.duration_ns


def _device(capture: Capture) -> str:
    return f"{capture.device.vendor} {capture.device.model}".strip()


def _grouped(book: _Notebook) -> list[list[Piece]]:
    """The runs; files that contradict themselves (one rank twice) are failures, and the others form runs."""
    while True:
        try:
            return form_runs(book.pieces)
        except SourceError as error:
            book.fail(Path(error.path), (), error)
            # a capture of many files is named by its folder
            book.pieces = [piece for piece in book.pieces if error.path not in (*piece.paths, piece.place)]
