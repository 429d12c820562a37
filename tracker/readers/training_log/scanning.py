"""Find the step lines of a log, and what stands around them.

A log can be large, and its step lines rare: the patterns are searched in whole blocks of text, and only the lines that
match are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracker.readers._source import SourceText
from tracker.readers._text import ANSI, rank_of_prefix
from tracker.readers.training_log.clocks import clock_in, last_clock_in, seconds_of
from tracker.readers.training_log.grammar import Grammar

F64 = NDArray[np.float64]

MAX_LINE_BYTES: Final = 1 << 20
HEAD_BYTES: Final = 4 << 20
"""How much of a log is read for what its run was configured with, from its start and in front of each new start."""
_CONTEXT_BYTES: Final = 1 << 20
_LINE_ENDS: Final = (b"\n", b"\r")
_MISSING: Final = b"nan"
_PREFIX_BYTES: Final = 120
_WORDS: Final = ("mark", "unit", "scope")
_RANKED: Final = re.compile(rb"\[(?:rank|default) ?\d|\]<std(?:out|err)>|^\d{1,6}: ", re.IGNORECASE | re.MULTILINE)


class Scan(Struct):
    """What a log says, in the order of its lines.

    `numbers`: columns by quantity, nan where a line does not say it. `words`: columns of texts.
    `positions`: of the lines, in bytes that only order them. `interrupts`: of the lines that name an evaluation or a
    checkpoint; `starts`: of those that begin a training.
    `ranks`: that the prefixes of the lines name, -1 for none.
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
    ranks: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
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
        return len(self.positions)

    def column(self, name: str) -> F64:
        """The numbers of a quantity, all nan where no line says it."""
        found = self.numbers.get(name)
        return np.full(self.count, np.nan) if found is None else found

    def states(self, name: str) -> bool:
        """Whether a line says a quantity."""
        found = self.numbers.get(name)
        return found is not None and bool((~np.isnan(found)).any())


def scan(text: SourceText, grammar: Grammar, pattern: re.Pattern[bytes]) -> Scan:
    """Read a whole log. `pattern`: which of the lines of the grammar counts."""
    collector = _Collector(grammar, pattern)
    for content in whole_lines(text, collector):
        collector.take(content)
    return collector.finish()


class LineCounts:
    """A collector of what was passed over while lines were put together."""

    def __init__(self) -> None:
        self.skipped_lines = 0
        self.unfinished = b""


def whole_lines(text: SourceText, counts: LineCounts) -> Iterator[bytes]:
    """Yield the content in pieces that end with a line, without colours; a line that is too long is left out.

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
            yield without_colours(whole)
    counts.unfinished = without_colours(rest)


def without_colours(content: bytes) -> bytes:
    """Return text without what colours it on a terminal."""
    return ANSI.sub(b"", content) if b"\x1b" in content else content


def _first_end(content: bytes) -> int:
    found = [place for end in _LINE_ENDS if (place := content.find(end)) >= 0]
    return min(found) if found else -1


class _Collector(LineCounts):
    """Collect the matches of one pattern, block by block."""

    def __init__(self, grammar: Grammar, pattern: re.Pattern[bytes]) -> None:
        super().__init__()
        self.grammar, self.pattern = grammar, pattern
        self.names = [name for name, _ in sorted(pattern.groupindex.items(), key=lambda item: item[1])]
        self.offset = 0
        self.parts: dict[str, list[F64]] = {}
        self.words: dict[str, list[str]] = {}
        self.positions: list[NDArray[np.int64]] = []
        self.interrupts: list[int] = []
        self.starts: list[int] = []
        self.ranks: list[NDArray[np.int64]] = []
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
        if self.grammar.parse is not None:
            starts, rows = self._parsed(content)
        else:
            starts, rows = self._matched(content)
        if not self.counted and self.head_bytes < HEAD_BYTES:
            # up to the first step line
            self.head.append(content[: starts[0]] if starts else content)
            self.head_bytes += len(content)
        if starts:
            self._keep(content, starts, rows)
        for words, places in ((self.grammar.evaluations, self.interrupts), (self.grammar.starts, self.starts)):
            for word in words:
                at = content.find(word)
                while at >= 0:
                    places.append(self.offset + at)
                    at = content.find(word, at + 1)
        self.offset += len(content)
        self.before = content[-_CONTEXT_BYTES:]

    def _matched(self, content: bytes) -> tuple[list[int], dict[str, Sequence[float] | F64]]:
        starts: list[int] = []
        groups: list[tuple[bytes | None, ...]] = []
        for match in self.pattern.finditer(content):
            starts.append(match.start())
            groups.append(match.groups())
        if not groups:
            return starts, {}
        columns = zip(*groups, strict=True)
        return starts, {name: self._numbers(name, column) for name, column in zip(self.names, columns, strict=True)}

    def _numbers(self, name: str, column: Sequence[bytes | None]) -> F64:
        if name == "elapsed_clock":
            return np.array([seconds_of(text) for text in column], dtype=np.float64)
        if name in ("evaluation", "mark"):
            if name == "mark":
                self.words.setdefault(name, []).extend((text or b"").decode() for text in column)
            return np.array([1.0 if text else np.nan for text in column])
        texts = [_MISSING if text is None else text for text in column]
        try:
            return np.array(texts).astype(np.float64)
        except ValueError:
            return np.array([float(text.replace(b",", b"")) for text in texts])

    def _parsed(self, content: bytes) -> tuple[list[int], dict[str, Sequence[float] | F64]]:
        """Return what the grammar's own function says of the lines that the pattern finds."""
        parse = self.grammar.parse
        assert parse is not None
        starts: list[int] = []
        rows: list[Mapping[str, float | str]] = []
        end = -1
        for match in self.pattern.finditer(content):
            if match.start() < end:
                continue  # another number of the same line
            start, end = _line_around(content, match.start())
            said = parse(content[start:end].decode("utf-8", "replace"))
            if said is not None:
                starts.append(start)
                rows.append(said)
        names = {name for row in rows for name in row if name not in _WORDS}
        for name in _WORDS:
            self.words.setdefault(name, []).extend(str(row.get(name, "")) for row in rows)
        found: dict[str, Sequence[float] | F64] = {}
        for name in names:
            found[name] = np.array([float(row.get(name, np.nan)) for row in rows])
        return starts, found

    def _keep(self, content: bytes, starts: list[int], rows: Mapping[str, Sequence[float] | F64]) -> None:
        count = len(starts)
        for name, column in rows.items():
            parts = self.parts.setdefault(name, [np.full(self.counted, np.nan)])
            parts.append(np.asarray(column))
        for name, parts in self.parts.items():
            if name not in rows:
                parts.append(np.full(count, np.nan))
        self.counted += count
        self.positions.append(np.array(starts, dtype=np.int64) + self.offset)
        self._keep_restarts(content, starts, rows)
        self._keep_prefixes(content, starts)
        start, end = _line_around(content, starts[-1])
        self.last_line = content[start:end]

    def _keep_restarts(self, content: bytes, starts: list[int], rows: Mapping[str, Sequence[float] | F64]) -> None:
        """Keep the text in front of a step that goes back: what the new start was configured with."""
        steps = rows.get("step", rows.get("step_in_epoch"))
        if steps is None:
            return
        numbers = np.concatenate([[self.last_step], np.asarray(steps)])
        for at in np.flatnonzero(np.diff(numbers) < 0).tolist():
            end = starts[at]
            begin = starts[at - 1] if at else 0
            before = b"" if at else self.before
            if len(self.restarts) < 64:
                self.restarts.append((before + content[begin:end])[-_CONTEXT_BYTES:])
        known = numbers[~np.isnan(numbers)]
        self.last_step = float(known[-1])

    def _keep_prefixes(self, content: bytes, starts: list[int]) -> None:
        """Keep rank and clock of each line, as far as they are needed."""
        count = len(starts)
        if _RANKED.search(content, 0, min(len(content), starts[-1] + _PREFIX_BYTES)) is None:
            self.ranks.append(np.full(count, -1, dtype=np.int64))
        else:
            ranks = [rank_of_prefix(content[_line_start(content, at) :][:_PREFIX_BYTES]) for at in starts]
            self.ranks.append(np.array([-1 if rank is None else rank for rank in ranks], dtype=np.int64))
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
        numbers = {name: np.concatenate(parts) for name, parts in self.parts.items()}
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
            ranks=np.concatenate(self.ranks) if self.ranks else np.zeros(0, dtype=np.int64),
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
        line = self.unfinished.rstrip(b"\x00 ")
        if not line or self.pattern.search(line) is None:
            return
        if self.counted and not _ends_alike(line, self.last_line):
            self.is_cut = True
            return
        self.take(line + b"\n")


def _ends_alike(line: bytes, before: bytes) -> bool:
    ends = [re.search(rb"[^\d.]*$", text.rstrip()) for text in (line, before)]
    texts = [end.group() if end else b"" for end in ends]
    return bool(texts[0]) and texts[0] == texts[1]


def _line_start(content: bytes, at: int) -> int:
    start = content.rfind(b"\n", 0, at) + 1
    return max(start, content.rfind(b"\r", start, at) + 1)


def _line_around(content: bytes, at: int) -> tuple[int, int]:
    """Return where the line around a place begins and ends."""
    start = _line_start(content, at)
    ends = [place for end in _LINE_ENDS if (place := content.find(end, at, at + MAX_LINE_BYTES)) >= 0]
    return start, min(ends) if ends else len(content)
