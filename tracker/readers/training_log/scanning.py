"""Read a whole log: its step lines, and what stands around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracker.readers._source import SourceText
from tracker.readers._text import rank_of_prefix
from tracker.readers.training_log.clocks import ClockFinder, last_clock_in
from tracker.readers.training_log.columns import PackedColumn
from tracker.readers.training_log.grammar import Grammar, StepLine
from tracker.readers.training_log.matching import FoundLines, LineMatcher
from tracker.readers.training_log.text_lines import LineCounts, line_around, prefix_of, whole_lines, without_colours
from tracker.readers.training_log.timers import Timer, TimerCollector

F64 = NDArray[np.float64]

HEAD_BYTES: Final = 4 << 20
"""How much of a log is read for what its run was configured with, from its start and in front of each new start."""
_CONTEXT_BYTES: Final = 1 << 20
"""Of the text in front of a new start, and behind the last step line, so much is kept: an argument dump has 20 KiB."""
_RESTARTS: Final = 64
"""Texts before a step that goes back are kept, of the last ones: the last start counts."""
_CLOCK_BYTES: Final = 300
"""A time of the day stands at the start of a line, behind prefixes."""
_FEW_PLACES: Final = 2
_LINE_FEED, _RETURN = 10, 13
_NO_NUMBER: Final = bytes({*range(256)} - {*b"0123456789."})
_UNUSED: Final = ("total",)
"""Quantities that only tell bars from each other."""
_COARSE: Final = frozenset(("mfu", "skipped", "overflow", "batch", "total", "evaluation", "mark", "allocated_mib"))
"""Quantities for which seven digits are enough."""


class Scan(Struct):
    """What a log says, in the order of its lines.

    `numbers`: columns by quantity, nan where a line does not say it. `words`: columns of texts.
    `positions`: of the lines, in bytes that only order them; empty where no other lines are put between them.
    `interrupts`: of the lines that name an evaluation or a checkpoint; `starts`: of those that begin a training;
    `beside_bar`: of those that stand behind the progress bar of a training.
    `ranks`: that the prefixes of the lines name, -1 for none; empty where no line has one.
    `clocks`: of each line in ns since 1970 as if the time zone were UTC, nan for none; empty where the grammar does not
    take the clock. `first_clock`: of the first step line, or the last one in front of it; `last_clock`: of the last.
    `clock_digits`: of their part of a second. `half_units`: of a quantity half a unit of the last digit it is printed
    with.
    `head`: the text in front of the first step line, as far as it is read. `before_restarts`: the text in front of
    each step line whose number goes back.
    `timers`: how long parts of a step took. `skipped_lines`: how many lines were too long. `is_cut`: whether the last
    line was left out as truncated.
    """

    numbers: dict[str, PackedColumn] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    positions: PackedColumn = field(default_factory=PackedColumn)
    interrupts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    beside_bar: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ranks: PackedColumn = field(default_factory=PackedColumn)
    clocks: PackedColumn = field(default_factory=PackedColumn)
    first_clock: float = float("nan")
    last_clock: float = float("nan")
    clock_digits: int = 0
    half_units: dict[str, float] = field(default_factory=dict)
    head: bytes = b""
    before_restarts: list[bytes] = field(default_factory=list)
    tail: bytes = b""
    timers: tuple[Timer, ...] = ()
    skipped_lines: int = 0
    is_cut: bool = False

    @property
    def count(self) -> int:
        """How many step lines there are."""
        return len(next(iter(self.numbers.values()))) if self.numbers else 0

    def column(self, name: str) -> F64:
        """Return the numbers of a quantity, all nan where no line says it."""
        return self.packed_column(name).values()

    def packed_column(self, name: str) -> PackedColumn:
        """Return the same as it is kept."""
        if name in self.numbers:
            return self.numbers[name]
        return PackedColumn.of(np.broadcast_to(np.float64(np.nan), (self.count,)))

    def states(self, name: str) -> bool:
        """Whether a line says a quantity."""
        return name in self.numbers and self.numbers[name].has_number()


def scan(text: SourceText, grammar: Grammar, line: StepLine) -> Scan:
    """Read a whole log. `line`: which of the lines of the grammar counts."""
    collector = _ScanCollector(grammar, line)
    for content in whole_lines(text, collector):
        collector.take(content)
    return collector.finish()


class _ScanCollector(LineCounts):
    """A collector of the step lines of a log and what stands around them, block by block."""

    def __init__(self, grammar: Grammar, line: StepLine) -> None:
        super().__init__()
        self.grammar, self.line = grammar, line
        self.matcher = LineMatcher(grammar, line)
        self.timers = TimerCollector() if grammar.has_timers else None
        self.offset = 0
        self.count = 0
        self.columns: dict[str, PackedColumn] = {}
        self.positions = PackedColumn(np.int64)
        # only bars are told from each other by what stands beside them, and a log has many lines with a loss
        self.beside_bar = grammar.beside_bar if grammar.parse is not None or line.has("total") else ()
        marked = (grammar.evaluations, grammar.starts, self.beside_bar)
        self.marked_lines = {words: PackedColumn(np.int64) for words in marked}
        self.ranks: PackedColumn | None = None
        self.clock_finder = ClockFinder()
        self.clocks = PackedColumn(np.float64)
        self.first_clock: float = np.nan
        self.last_clock: float = np.nan
        self.clock_digits = 0
        self.head: list[bytes] = []
        self.head_bytes = 0
        self.before = b""
        self.last_step = -np.inf
        self.before_restarts: list[bytes] = []
        self.last_line = b""
        self.is_cut = False

    def take(self, content: bytes) -> None:
        """Look for step lines in a piece of text that ends with a line."""
        lines = self.matcher.find(content)
        if not self.count and self.head_bytes < HEAD_BYTES:
            # up to the first step line
            self.head.append(content[: lines.starts[0]] if lines.starts else content)
            self.head_bytes += len(content)
        if lines.starts:
            self._keep(content, lines)
        for words, positions in self.marked_lines.items():
            places = [_places_of(word, content) for word in words]
            positions.extend(self.offset + np.array(sorted(chain.from_iterable(places)), dtype=np.int64))
        if self.timers is not None:
            self.timers.take(content, self.offset)
        self.offset += len(content)
        self.before = content[-_CONTEXT_BYTES:]

    def _keep(self, content: bytes, lines: FoundLines) -> None:
        """Keep the step lines of a piece of text."""
        count = len(lines.starts)
        unused = () if self.grammar.has_bars else _UNUSED
        numbers = {name: column for name, column in lines.numbers.items() if name not in unused}
        for name, column in numbers.items():
            if name not in self.columns:
                self.columns[name] = PackedColumn(_kind_of(name))
                self.columns[name].fill(self.count, np.nan)
            self.columns[name].extend(column)
        for name, growing in self.columns.items():
            if name not in numbers:
                growing.fill(count, np.nan)
        self.count += count
        if self._needs_positions:
            self.positions.extend(np.array(lines.starts, dtype=np.int64) + self.offset)
        self._keep_restarts(content, lines.starts, numbers)
        self._keep_ranks(lines)
        self._keep_clocks(lines)
        start, end = line_around(lines.text, lines.plain_starts[-1])
        self.last_line = lines.text[start:end]
        self.matcher.learn(self.last_line)

    @property
    def _needs_positions(self) -> bool:
        """Whether other lines of the log are put between its step lines."""
        grammar = self.grammar
        return bool(grammar.evaluations or grammar.starts or grammar.beside_bar or grammar.has_timers)

    def _keep_restarts(self, content: bytes, starts: list[int], numbers: Mapping[str, F64]) -> None:
        """Keep the text in front of a step that goes back: what the new start was configured with."""
        steps = numbers.get("step", numbers.get("step_in_epoch"))
        if steps is None:
            return
        with_last = np.concatenate([[self.last_step], np.asarray(steps)])
        for at in np.flatnonzero(np.diff(with_last) < 0).tolist():
            end = starts[at]
            begin = starts[at - 1] if at else 0
            before = b"" if at else self.before
            self.before_restarts.append((before + content[begin:end])[-_CONTEXT_BYTES:])
            del self.before_restarts[:-_RESTARTS]
        known = with_last[~np.isnan(with_last)]
        self.last_step = float(known[-1])

    def _keep_ranks(self, lines: FoundLines) -> None:
        """Keep the rank that the prefix of each line names."""
        starts = lines.plain_starts
        count = len(starts)
        prefixes = (prefix_of(lines.text, starts[0]), prefix_of(lines.text, starts[-1]))
        if any(rank_of_prefix(prefix) is not None for prefix in prefixes):
            ranks = [rank_of_prefix(prefix_of(lines.text, at)) for at in starts]
            if self.ranks is None:
                self.ranks = PackedColumn(np.int32)
                self.ranks.fill(self.count - count, -1)
            self.ranks.extend([-1 if rank is None else rank for rank in ranks])
        elif self.ranks is not None:
            self.ranks.fill(count, -1)

    def _keep_clocks(self, lines: FoundLines) -> None:
        """Keep the time of the day of each line where the grammar takes it, else of the first line and the last."""
        starts = lines.plain_starts
        places = starts if self.grammar.takes_clock else [starts[0], starts[-1]]
        clocks = [self._clock_of(lines.text[begin:end]) for begin, end in _starts_of_lines(lines.text, places)]
        if self.grammar.takes_clock:
            self.clocks.extend(clocks)
        known = [clock for clock in clocks if not np.isnan(clock)]
        if known:
            self.first_clock = known[0] if np.isnan(self.first_clock) else self.first_clock
            self.last_clock = known[-1]

    def _clock_of(self, line: bytes) -> float:
        clock = self.clock_finder.clock_in(line)
        if clock is None:
            return np.nan
        self.clock_digits = max(self.clock_digits, clock.digits)
        return float(clock.ns)

    def finish(self) -> Scan:
        """Return all that was collected; a last line without an end counts where it is whole."""
        self._take_unfinished()
        if np.isnan(self.first_clock):
            # the lines in front of the first step line have one
            before = last_clock_in(b"".join(self.head)[-_CONTEXT_BYTES:])
            self.first_clock = np.nan if before is None else float(before.ns)
        marked = {words: positions.values() for words, positions in self.marked_lines.items()}
        timers = self.timers.finish() if self.timers is not None else ()
        has_other_lines = bool(timers) or any(len(places) for places in marked.values())
        return Scan(
            numbers=self.columns,
            words=self.matcher.words,
            positions=self.positions if has_other_lines else PackedColumn(),
            interrupts=marked[self.grammar.evaluations],
            starts=marked[self.grammar.starts],
            beside_bar=marked[self.beside_bar],
            ranks=PackedColumn() if self.ranks is None else self.ranks,
            clocks=self.clocks,
            first_clock=self.first_clock,
            last_clock=self.last_clock,
            clock_digits=self.clock_digits,
            half_units=self.matcher.half_units,
            head=b"".join(self.head)[:HEAD_BYTES],
            before_restarts=self.before_restarts,
            tail=self.before,
            timers=timers,
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
            if not self.count:
                self.head.append(line)
            return
        if self.count and not _ends_alike(line, self.last_line):
            self.is_cut = True
            return
        self.take(line + b"\n")


def _starts_of_lines(text: bytes, places: Sequence[int]) -> list[tuple[int, int]]:
    """Return where the lines around some places begin, and where a clock in front of what they state ends at most."""
    if len(places) <= _FEW_PLACES:
        around = [line_around(text, place) for place in places]
        return [(start, min(end, place + _CLOCK_BYTES)) for (start, end), place in zip(around, places, strict=True)]
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero((letters == _LINE_FEED) | (letters == _RETURN))
    at = np.array(places, dtype=np.int64)
    line = np.searchsorted(ends, at)
    starts = np.concatenate([[0], ends + 1])[line]
    stops = np.minimum(np.append(ends, len(text))[line], at + _CLOCK_BYTES)
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def _places_of(word: bytes, content: bytes) -> list[int]:
    """Return where a word stands in a text."""
    places = []
    at = content.find(word)
    while at >= 0:
        places.append(at)
        at = content.find(word, at + 1)
    return places


def _kind_of(name: str) -> type[np.float64] | type[np.float32]:
    return np.float32 if name in _COARSE else np.float64


def _ends_alike(line: bytes, before: bytes) -> bool:
    """Whether two lines end with the same text behind their last number."""
    texts = [text.rstrip() for text in (line, before)]
    ends = [text[len(text.rstrip(_NO_NUMBER)) :] for text in texts]
    return bool(ends[0]) and ends[0] == ends[1]
