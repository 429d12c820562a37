"""Find the step lines of a log, and what stands around them.

A log can be large, and its step lines rare: the patterns are searched in whole blocks of text, and only the lines that
match are looked at.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracker.readers._source import SourceText
from tracker.readers._text import ANSI, rank_of_prefix
from tracker.readers.training_log.clocks import clock_in, last_clock_in, seconds_of
from tracker.readers.training_log.grammar import WORDS, Grammar, StepLine
from tracker.readers.training_log.templates import Template, template_of

F64 = NDArray[np.float64]

MAX_LINE_BYTES: Final = 1 << 20
HEAD_BYTES: Final = 4 << 20
"""How much of a log is read for what its run was configured with, from its start and in front of each new start."""
_CONTEXT_BYTES: Final = 1 << 20
_RESTARTS: Final = 64
"""Texts before a step that goes back are kept, of the last ones."""
_NO_NUMBER: Final = bytes({*range(256)} - {*b"0123456789."})
_LINE_ENDS: Final = (b"\n", b"\r")
_PREFIX_BYTES: Final = 120
_TEXTS: Final = ("mark", "unit", "scope")
_LONG_LITERAL: Final = 4
_RARE_BYTES: Final = 1000
_LINE_FEED, _RETURN = 10, 13
_UNUSED: Final = ("total", "last")
_COARSE: Final = frozenset(("mfu", "skipped", "batch", "total", "evaluation", "mark", "last", "allocated_mib"))
"""Quantities for which seven digits are enough."""


class Scan(Struct):
    """What a log says, in the order of its lines.

    `numbers`: columns by quantity, nan where a line does not say it. `words`: columns of texts.
    `positions`: of the lines, in bytes that only order them; empty where the grammar names no other lines.
    `interrupts`: of the lines that name an evaluation or a checkpoint; `starts`: of those that begin a training.
    `ranks`: that the prefixes of the lines name, -1 for none; empty where no line has one.
    `clocks`: of each line in ns since 1970 as if the time zone were UTC, nan for none; empty where the grammar does not
    take the clock. `first_clock`: of the first step line, or the last one in front of it; `last_clock`: of the last.
    `clock_digits`: of their part of a second.
    `head`: the text in front of the first step line, as far as it is read. `restarts`: the text in front of each step
    line whose number goes back.
    `skipped_lines`: how many lines were too long. `is_cut`: whether the last line was left out as truncated.
    """

    numbers: dict[str, F64] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    positions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    interrupts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ranks: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    clocks: F64 = field(default_factory=lambda: np.zeros(0))
    first_clock: float = float("nan")
    last_clock: float = float("nan")
    clock_digits: int = 0
    head: bytes = b""
    restarts: list[bytes] = field(default_factory=list)
    tail: bytes = b""
    skipped_lines: int = 0
    is_cut: bool = False

    @property
    def count(self) -> int:
        """How many step lines there are."""
        return len(next(iter(self.numbers.values()))) if self.numbers else 0

    def column(self, name: str) -> F64:
        """The numbers of a quantity, all nan where no line says it."""
        found = self.numbers.get(name)
        # takes no memory
        return np.broadcast_to(np.float64(np.nan), (self.count,)) if found is None else found

    def states(self, name: str) -> bool:
        """Whether a line says a quantity."""
        found = self.numbers.get(name)
        return found is not None and bool((~np.isnan(found)).any())


def scan(text: SourceText, grammar: Grammar, line: StepLine) -> Scan:
    """Read a whole log. `line`: which of the lines of the grammar counts."""
    collector = _Collector(grammar, line)
    for content in whole_lines(text, collector):
        collector.take(content)
    return collector.finish()


class LineCounts:
    """A collector of what was passed over while lines were put together."""

    def __init__(self) -> None:
        self.skipped_lines = 0
        self.unfinished = b""


def whole_lines(text: SourceText, counts: LineCounts) -> Iterator[bytes]:
    """Yield the content in pieces that end with a line; a line that is too long is left out.

    A last line without an end is no whole line: `counts.unfinished`.
    """
    rest = b""
    is_skipping = False
    for block in text:
        content = block
        if is_skipping:
            end = _first_end(content)
            if end < 0:
                continue
            content, is_skipping = content[end:], False
        content = rest + content
        cut = max(content.rfind(end) for end in _LINE_ENDS) + 1
        whole, rest = content[:cut], content[cut:]
        if len(rest) > MAX_LINE_BYTES:
            counts.skipped_lines += 1
            rest, is_skipping = b"", True
        if whole:
            yield whole
    counts.unfinished = rest


def without_colours(content: bytes) -> bytes:
    """Return text without what colours it on a terminal."""
    return ANSI.sub(b"", content) if b"\x1b" in content else content


def _first_end(content: bytes) -> int:
    found = [place for end in _LINE_ENDS if (place := content.find(end)) >= 0]
    return min(found) if found else -1


class _Collector(LineCounts):
    """Collect the matches of one pattern, block by block."""

    def __init__(self, grammar: Grammar, line: StepLine) -> None:
        super().__init__()
        self.grammar, self.line = grammar, line
        self.names = [name for name, _ in sorted(line.head.groupindex.items(), key=lambda item: item[1])]
        self.template: Template | None = None
        needed = [one.literal for one in line.fields if one.name in line.needs and one.literal]
        self.required_literals = (line.literal, *needed)
        """A step line has each of these texts at least once."""
        self.offset = 0
        self.parts: dict[str, list[F64]] = {}
        self.words: dict[str, list[str]] = {}
        self.positions: list[NDArray[np.int64]] = []
        self.interrupts: list[int] = []
        self.starts: list[int] = []
        self.ranks: list[NDArray[np.int32]] = []
        self.clocks: list[F64] = []
        self.first_clock: float = np.nan
        self.last_clock: float = np.nan
        self.clock_digits = 0
        self.head: list[bytes] = []
        self.head_bytes = 0
        self.before = b""
        self.last_step = -np.inf
        self.restarts: list[bytes] = []
        self.last_line = b""
        self.is_cut = False
        self.counted = 0

    def take(self, content: bytes) -> None:
        """Look for step lines in a piece of text that ends with a line."""
        if not self._has_long_literal:
            content = without_colours(content)
        text, places = content, None
        if self._has_long_literal and (b"\x1b" in content or self._are_rare(content)):
            text, places = self._taken_out(content)
        if self.grammar.parse is not None:
            starts, rows = self._parsed(text)
        else:
            starts, rows = self._matched(text)
        raw_starts = starts if places is None else [places.raw_of(start) for start in starts]
        if not self.counted and self.head_bytes < HEAD_BYTES:
            # up to the first step line
            self.head.append(content[: raw_starts[0]] if starts else content)
            self.head_bytes += len(content)
        if starts:
            self._keep(content, text, (starts, raw_starts), rows)
        for words, found in ((self.grammar.evaluations, self.interrupts), (self.grammar.starts, self.starts)):
            for word in words:
                at = content.find(word)
                while at >= 0:
                    found.append(self.offset + at)
                    at = content.find(word, at + 1)
        self.offset += len(content)
        self.before = content[-_CONTEXT_BYTES:]

    def _are_rare(self, content: bytes) -> bool:
        """Whether so few lines may be step lines that these are better taken out of the text."""
        return content.count(self.line.literal) * _RARE_BYTES < len(content)

    @property
    def _has_long_literal(self) -> bool:
        """Whether step lines are found by a text that hardly any other line has."""
        return len(self.line.literal) >= _LONG_LITERAL and self.grammar.parse is None

    def _taken_out(self, content: bytes) -> tuple[bytes, _Places]:
        """Return the lines that may be step lines, without colours, and where they stand in the content."""
        literal = self.line.literal
        lines: list[bytes] = []
        places = _Places([], [])
        length = 0
        at = content.find(literal)
        while at >= 0:
            start, end = _line_around(content, at)
            plain = without_colours(content[start:end])
            places.plain.append(length)
            places.raw.append(start)
            lines.append(plain)
            length += len(plain) + 1
            at = content.find(literal, end)
        return b"\n".join([*lines, b""]), places

    def _matched(self, content: bytes) -> tuple[list[int], dict[str, F64]]:
        """Return where step lines stand in a text, and their numbers."""
        fast = self._by_template(content)
        if fast is not None:
            return fast
        heads = list(self._heads(content))
        if not heads:
            return [], {}
        starts = [match.start() for match in heads]
        columns = zip(*(match.groups() for match in heads), strict=True)
        rows = {name: self._numbers(name, column) for name, column in zip(self.names, columns, strict=True)}
        if not self.line.fields:
            return starts, rows
        rows |= self._fields(content, starts, rows)
        if not self.line.needs:
            return starts, rows
        is_line = np.ones(len(starts), dtype=bool)
        for name in self.line.needs:
            is_line &= ~np.isnan(rows[name]) if name in rows else False
        if is_line.all():
            return starts, rows
        kept = np.flatnonzero(is_line)
        return [starts[place] for place in kept.tolist()], {name: column[kept] for name, column in rows.items()}

    def _by_template(self, content: bytes) -> tuple[list[int], dict[str, F64]] | None:
        """Return the same where all step lines of a text look like the last one before; None where they do not."""
        template = self.template
        if template is None or not template.fits(content):
            return None
        matches = list(template.pattern.finditer(content))
        if not matches or len(matches) != min(content.count(literal) for literal in self.required_literals):
            return None
        columns = zip(*[match.groups() for match in matches], strict=True)
        rows = {name: self._numbers(name, column) for name, column in zip(template.names, columns, strict=True)}
        return [match.start() for match in matches], rows

    def _heads(self, content: bytes) -> Iterator[re.Match[bytes]]:
        """Yield the matches of the head of a step line; one that is rare is searched by its literal text."""
        literal, head = self.line.literal, self.line.head
        if not self._are_rare(content):
            yield from head.finditer(content)
            return
        find = content.find
        at = find(literal)
        while at >= 0:
            match = head.match(content, at)
            if match is None:
                at = find(literal, at + 1)
            else:
                yield match
                at = find(literal, match.end())

    def _fields(self, content: bytes, starts: list[int], rows: dict[str, F64]) -> dict[str, F64]:
        """Return the fields of step lines, each searched in the whole text and put to the line that it stands in.

        Of two fields of one name, and of one that stands twice in a line, the first one counts.
        """
        first_line = _line_start(content, starts[0])
        _, last_end = _line_around(content, starts[-1])
        piece = content[first_line:last_end]
        letters = np.frombuffer(piece, dtype=np.uint8)
        ends = np.flatnonzero((letters == _LINE_FEED) | (letters == _RETURN))
        begins = np.concatenate([[0], ends + 1])
        # the line that each step line is
        lines = np.searchsorted(begins, np.array(starts) - first_line, side="right") - 1
        found: dict[str, F64] = {}
        for one in self.line.fields:
            if one.literal not in piece:
                continue
            name = one.name
            matches = [(match.start(), match[1]) for match in one.pattern.finditer(piece)]
            if not matches:
                continue
            places, texts = zip(*matches, strict=True)
            own_lines = np.searchsorted(begins, np.array(places), side="right") - 1
            at = np.minimum(np.searchsorted(lines, own_lines), len(lines) - 1)
            inside = np.flatnonzero(lines[at] == own_lines)[::-1]  # the first one is written last
            column = found.get(name, np.full(len(starts), np.nan))
            of_line = np.full(len(starts), np.nan)
            of_line[at[inside]] = self._numbers(name, texts)[inside]
            found[name] = np.where(np.isnan(column), of_line, column)
        return found

    def _numbers(self, name: str, column: tuple[bytes | None, ...]) -> F64:
        if name == "elapsed_clock":
            return np.array([seconds_of(text) for text in column], dtype=np.float64)
        if name in WORDS:
            if name == "mark":
                self.words.setdefault(name, []).extend((text or b"").decode() for text in column)
            return np.array([1.0 if text else np.nan for text in column])
        if column[0] is not None and column.count(column[0]) == len(column):
            return np.full(len(column), _number_in(column[0]))
        try:
            found = np.array([*map(float, column)])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            found = np.array([_number_in(text) for text in column])
        found[~np.isfinite(found)] = np.nan
        return found

    def _parsed(self, content: bytes) -> tuple[list[int], dict[str, F64]]:
        """Return what the grammar's own function says of the lines that the pattern finds."""
        parse = self.grammar.parse
        assert parse is not None
        starts: list[int] = []
        rows: list[Mapping[str, float | str]] = []
        end = -1
        for match in self.line.head.finditer(content):
            if match.start() < end:
                continue  # another number of the same line
            start, end = _line_around(content, match.start())
            said = parse(content[start:end].decode("utf-8", "replace"))
            if said is not None:
                starts.append(start)
                rows.append(said)
        names = {name for row in rows for name in row if name not in _TEXTS}
        for name in _TEXTS:
            self.words.setdefault(name, []).extend(str(row.get(name, "")) for row in rows)
        return starts, {name: np.array([float(row.get(name, np.nan)) for row in rows]) for name in names}

    def _keep(self, content: bytes, text: bytes, starts: tuple[list[int], list[int]], rows: Mapping[str, F64]) -> None:
        """Keep some step lines. `starts`: in `text`, which is without colours, and in `content`."""
        plain_starts, raw_starts = starts
        count = len(plain_starts)
        unused = () if self.grammar.has_bars else _UNUSED
        rows = {name: column for name, column in rows.items() if name not in unused}
        for name, column in rows.items():
            parts = self.parts.setdefault(name, [np.full(self.counted, np.nan, dtype=_kind_of(name))])
            parts.append(column.astype(_kind_of(name)))
        for name, parts in self.parts.items():
            if name not in rows:
                parts.append(np.full(count, np.nan, dtype=_kind_of(name)))
        self.counted += count
        if self.grammar.evaluations or self.grammar.starts:
            self.positions.append(np.array(raw_starts, dtype=np.int64) + self.offset)
        self._keep_restarts(content, raw_starts, rows)
        self._keep_prefixes(text, plain_starts)
        start, end = _line_around(text, plain_starts[-1])
        self.last_line = text[start:end]
        if self._has_long_literal:
            self.template = template_of(self.last_line, self.line)

    def _keep_restarts(self, content: bytes, starts: list[int], rows: Mapping[str, F64]) -> None:
        """Keep the text in front of a step that goes back: what the new start was configured with."""
        steps = rows.get("step", rows.get("step_in_epoch"))
        if steps is None:
            return
        numbers = np.concatenate([[self.last_step], np.asarray(steps)])
        for at in np.flatnonzero(np.diff(numbers) < 0).tolist():
            end = starts[at]
            begin = starts[at - 1] if at else 0
            before = b"" if at else self.before
            self.restarts.append((before + content[begin:end])[-_CONTEXT_BYTES:])
            del self.restarts[:-_RESTARTS]  # the last start counts
        known = numbers[~np.isnan(numbers)]
        self.last_step = float(known[-1])

    def _keep_prefixes(self, content: bytes, starts: list[int]) -> None:
        """Keep rank and clock of each line, as far as they are needed."""
        count = len(starts)
        ends = (_prefix_of(content, starts[0]), _prefix_of(content, starts[-1]))
        if any(rank_of_prefix(prefix) is not None for prefix in ends):
            ranks = [rank_of_prefix(_prefix_of(content, at)) for at in starts]
            if not self.ranks:
                self.ranks.append(np.full(self.counted - count, -1, dtype=np.int32))
            self.ranks.append(np.array([-1 if rank is None else rank for rank in ranks], dtype=np.int32))
        elif self.ranks:
            self.ranks.append(np.full(count, -1, dtype=np.int32))
        if self.grammar.takes_clock:
            clocks = [self._clock(content, at) for at in starts]
            self.clocks.append(np.array(clocks))
            known = [clock for clock in clocks if not np.isnan(clock)]
        else:
            known = [clock for at in (starts[0], starts[-1]) if not np.isnan(clock := self._clock(content, at))]
        if known:
            self.first_clock = known[0] if np.isnan(self.first_clock) else self.first_clock
            self.last_clock = known[-1]

    def _clock(self, content: bytes, at: int) -> float:
        start, end = _line_around(content, at)
        found = clock_in(content[start : min(end, at + 300)])
        if found is None:
            return np.nan
        self.clock_digits = max(self.clock_digits, found.digits)
        return float(found.ns)

    def finish(self) -> Scan:
        """Return all that was collected; a last line without an end counts where it is whole."""
        self._take_unfinished()
        # one after the other, so that the pieces of one quantity go before the next is put together
        numbers = {name: np.concatenate(self.parts.pop(name)) for name in [*self.parts]}
        if np.isnan(self.first_clock):
            # the lines in front of the first step line have one
            before = last_clock_in(b"".join(self.head)[-_CONTEXT_BYTES:])
            self.first_clock = np.nan if before is None else float(before.ns)
        clocks = np.concatenate(self.clocks) if self.clocks else np.zeros(0)
        return Scan(
            numbers=numbers,
            words=self.words,
            positions=np.concatenate(self.positions) if self.positions else np.zeros(0, dtype=np.int64),
            interrupts=np.array(sorted(self.interrupts), dtype=np.int64),
            starts=np.array(sorted(self.starts), dtype=np.int64),
            ranks=np.concatenate(self.ranks) if self.ranks else np.zeros(0, dtype=np.int32),
            clocks=clocks,
            first_clock=self.first_clock,
            last_clock=self.last_clock,
            clock_digits=self.clock_digits,
            head=b"".join(self.head)[:HEAD_BYTES],
            restarts=self.restarts,
            tail=self.before,
            skipped_lines=self.skipped_lines,
            is_cut=self.is_cut,
        )

    def _take_unfinished(self) -> None:
        """Take the last line of a file that does not end with a line end, unless it was cut.

        It was where it says less than the step line before it, or ends otherwise: with another text, or within a
        number.
        """
        line = without_colours(self.unfinished).rstrip(b"\x00 ")
        if not line or not self.line.occurs_in(line):
            if not self.counted:
                self.head.append(line)
            return
        if self.counted and not _ends_alike(line, self.last_line):
            self.is_cut = True
            return
        self.take(line + b"\n")


def _kind_of(name: str) -> type[np.float64] | type[np.float32]:
    return np.float32 if name in _COARSE else np.float64


class _Places(Struct):
    """Where lines stand that were taken out of a text: their starts in what was taken, and in the text."""

    plain: list[int]
    raw: list[int]

    def raw_of(self, place: int) -> int:
        """Return where the line of a place begins in the text."""
        return self.raw[bisect_right(self.plain, place) - 1]


def _number_in(text: bytes | None) -> float:
    """Return the number that a text is, nan where it is none, or none that is finite.

    >>> _number_in(b"1,024.5"), _number_in(b"100.5.3"), _number_in(b"inf"), _number_in(None)
    (1024.5, nan, nan, nan)
    """
    try:
        number = float((text or b"").replace(b",", b""))
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _ends_alike(line: bytes, before: bytes) -> bool:
    texts = [text.rstrip() for text in (line, before)]
    ends = [text[len(text.rstrip(_NO_NUMBER)) :] for text in texts]
    return bool(ends[0]) and ends[0] == ends[1]


def _prefix_of(content: bytes, at: int) -> bytes:
    """Return the first of the line around a place."""
    start = _line_start(content, at)
    return content[start : start + _PREFIX_BYTES]


def _line_start(content: bytes, at: int) -> int:
    start = content.rfind(b"\n", 0, at) + 1
    return max(start, content.rfind(b"\r", start, at) + 1)


def _line_around(content: bytes, at: int) -> tuple[int, int]:
    """Return where the line around a place begins and ends."""
    start = _line_start(content, at)
    ends = [place for end in _LINE_ENDS if (place := content.find(end, at, at + MAX_LINE_BYTES)) >= 0]
    return start, min(ends) if ends else len(content)
