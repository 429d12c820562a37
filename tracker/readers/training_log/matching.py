"""Find the step lines in pieces of text, and the numbers that they state.

A log can be large, and its step lines rare: the patterns are searched in whole blocks of text, and only the lines that
match are looked at.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import chain
from sys import intern
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.readers.training_log.clocks import seconds_of
from tracker.readers.training_log.grammar import WORDS, Grammar, StepLine
from tracker.readers.training_log.learning import LearnedLine, learn_line
from tracker.readers.training_log.rounding import LOOKED_AT, ROUNDED, half_unit_of, half_units_in
from tracker.readers.training_log.templates import Template, template_of
from tracker.readers.training_log.text_lines import (
    line_around,
    line_end,
    line_start,
    without_backspaces,
    without_colours,
)

F64 = NDArray[np.float64]

TEXTS: Final = ("mark", "unit", "scope")
"""Quantities that are kept as texts."""
_LONG_LITERAL: Final = 4
"""A literal text of fewer letters stands in many lines that are no step lines, so that finding it saves nothing."""
_RARE_BYTES: Final = 1000
"""With fewer than one candidate in so many bytes it is quicker to take the candidates out of the text first."""
_LINE_FEED, _RETURN = 10, 13
_MOST_MISSES: Final = 8
"""So many pieces in a row whose lines do not look alike: trying further costs more than it saves."""
_FEWEST_TO_LEARN: Final = 16
"""So many lines that no pattern was learned for make it worth while to learn one."""
_FEW_BY_CHANCE: Final = 4
"""A last digit that less than one line of so many shows is that of another number."""
_MOST_LEARNED: Final = 12
"""A log has few kinds of lines; where a function says too much of them for a pattern, all are parsed."""


class FoundLines(Struct, frozen=True):
    """Step lines of a piece of text. `starts`: where their matches begin in the piece; `plain_starts`: in `text`, which
    is without colours. `numbers`: by quantity, nan where a line does not say it.
    """

    starts: list[int]
    plain_starts: list[int]
    text: bytes
    numbers: dict[str, F64]


class LineMatcher:
    """A collector of the texts that step lines state, which finds the step lines of one pattern piece by piece."""

    def __init__(self, grammar: Grammar, line: StepLine) -> None:
        self.grammar, self.line = grammar, line
        self.words: dict[str, list[str]] = {}
        self.half_units: dict[str, float] = {}
        groups = sorted(line.head.groupindex.items(), key=lambda item: item[1])
        self._names = [name for name, _ in groups]
        self._template: Template | None = None
        self._template_holds = False
        self._template_misses = 0
        needed = [one.literal for one in line.fields if one.name in line.needs and one.literal]
        self._required_literals = (line.literal, *needed)
        """A step line has each of these texts at least once."""
        self._has_long_literal = len(line.literal) >= _LONG_LITERAL and grammar.parse is None
        self._learned: list[LearnedLine] = []
        self._learned_tries = 0
        self._parsed_count = 0

    def find(self, content: bytes) -> FoundLines:
        """Return the step lines of a piece of text that ends with a line."""
        if not self._has_long_literal:
            content = without_colours(content)
        if self.grammar.parse is not None:
            content = without_backspaces(content)
        text, places = content, None
        # candidates are found by a fixed text; without one the colours are gone already, and all lines are matched
        if self._has_long_literal and (b"\x1b" in content or self._are_rare(content)):
            text, places = self._take_candidates(content)
        plain_starts, numbers = self._parsed(text) if self.grammar.parse is not None else self._matched(text)
        starts = plain_starts if places is None else [places.raw_of(start) for start in plain_starts]
        return FoundLines(starts, plain_starts, text, numbers)

    def learn(self, last_line: bytes) -> None:
        """Expect the lines behind a step line to look like it."""
        if not self.line.literal or self.grammar.parse is not None or self._template_holds:
            return
        if self._template_misses < _MOST_MISSES:
            self._template = template_of(last_line, self.line)

    def _are_rare(self, content: bytes) -> bool:
        """Whether so few lines may be step lines that these are better taken out of the text."""
        return self._has_long_literal and content.count(self.line.literal) * _RARE_BYTES < len(content)

    def _take_candidates(self, content: bytes) -> tuple[bytes, _Places]:
        """Return the lines that may be step lines, without colours, and where they stand in the content."""
        literal = self.line.literal
        lines: list[bytes] = []
        places = _Places([], [])
        length = 0
        at = content.find(literal)
        while at >= 0:
            start, end = line_around(content, at)
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
        rows = {name: self._numbers(name, column) for name, column in zip(self._names, columns, strict=True)}
        if not self.line.fields:
            return starts, rows
        rows |= self._fields(content, starts)
        if not self.line.needs:
            return starts, rows
        is_line = np.ones(len(starts), dtype=bool)
        for name in self.line.needs:
            is_line &= ~np.isnan(rows[name]) if name in rows else False
        if is_line.all():
            return starts, rows
        places = np.flatnonzero(is_line)
        return [starts[place] for place in places.tolist()], {name: column[places] for name, column in rows.items()}

    def _by_template(self, content: bytes) -> tuple[list[int], dict[str, F64]] | None:
        """Return the same where all step lines of a text look like the last one before; None where they do not."""
        template = self._template
        self._template_holds = False
        if template is None or self._template_misses >= _MOST_MISSES or not template.fits(content):
            return None
        expected = min(content.count(literal) for literal in self._required_literals)
        if expected == content.count(b"\n") and b"\r" not in content:
            # step lines alone: that they begin where the lines do need not be asked of each match
            texts = template.pattern.findall(content)
            starts = _starts_of_lines(content)
        else:
            matches = list(template.pattern.finditer(content))
            texts = [match.groups() for match in matches]
            starts = [match.start() for match in matches]
        if not texts or len(texts) != expected or len(template.names) < 2:
            self._template_misses += 1
            return None
        self._template_holds = True
        self._template_misses = 0
        columns = zip(*texts, strict=True)
        rows = {name: self._numbers(name, column) for name, column in zip(template.names, columns, strict=True)}
        return starts, rows

    def _heads(self, content: bytes) -> Iterator[re.Match[bytes]]:
        """Yield the matches of the head of a step line; one that is rare is searched by its literal text."""
        literal, head = self.line.literal, self.line.head
        if not self._are_rare(content):
            yield from head.finditer(content)
            return
        at = content.find(literal)
        while at >= 0:
            match = head.match(content, at)
            if match is None:
                at = content.find(literal, at + 1)
            else:
                yield match
                at = content.find(literal, match.end())

    def _fields(self, content: bytes, starts: list[int]) -> dict[str, F64]:
        """Return the fields of step lines, each searched in the whole text and put to the line that it stands in.

        Of two fields of one name, and of one that stands twice in a line, the first one counts.
        """
        first_line = line_start(content, starts[0])
        _, last_end = line_around(content, starts[-1])
        piece = content[first_line:last_end]
        letters = np.frombuffer(piece, dtype=np.uint8)
        ends = np.flatnonzero((letters == _LINE_FEED) | (letters == _RETURN))
        begins = np.concatenate([[0], ends + 1])
        # which of the lines of the piece each step line is
        step_lines = np.searchsorted(begins, np.array(starts) - first_line, side="right") - 1
        columns: dict[str, F64] = {}
        for one in self.line.fields:
            if one.literal not in piece:
                continue
            matches = [(match.start(), match[1]) for match in one.pattern.finditer(piece)]
            if not matches:
                continue
            places, texts = zip(*matches, strict=True)
            field_lines = np.searchsorted(begins, np.array(places), side="right") - 1
            at = np.minimum(np.searchsorted(step_lines, field_lines), len(step_lines) - 1)
            inside = np.flatnonzero(step_lines[at] == field_lines)[::-1]  # the first one is written last
            of_line = np.full(len(starts), np.nan)
            of_line[at[inside]] = self._numbers(one.name, texts)[inside]
            before = columns.get(one.name)
            columns[one.name] = of_line if before is None else np.where(np.isnan(before), of_line, before)
        return columns

    def _numbers(self, name: str, column: tuple[bytes | None, ...]) -> F64:
        """Return the numbers of some texts of a quantity; of a word whether it is there: 1, or nan."""
        if name in ROUNDED:
            self._learn_half_unit(name, half_unit_of(column[:LOOKED_AT]))
        if name == "elapsed_clock":
            # several bars are drawn in a second
            seconds = {text: seconds_of(text) for text in set(column)}
            return np.array([seconds[text] for text in column], dtype=np.float64)
        if name in WORDS:
            if name == "mark":
                self.words.setdefault(name, []).extend((text or b"").decode() for text in column)
            return np.array([1.0 if text else np.nan for text in column])
        if column[0] is not None and column.count(column[0]) == len(column):
            return np.full(len(column), _number_in(column[0]))
        try:
            numbers = np.array([*map(float, column)])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            numbers = np.array([_number_in(text) for text in column])
        numbers[~np.isfinite(numbers)] = np.nan
        return numbers

    def _learn_half_unit(self, name: str, half_unit: float) -> None:
        self.half_units[name] = min(half_unit, self.half_units.get(name, np.inf))

    def _parsed(self, content: bytes) -> tuple[list[int], dict[str, F64]]:
        """Return what the grammar's own function says of the lines that the pattern finds, those that look like one
        before at once.
        """
        parts: list[_ParsedLines] = []
        rest, places = content, _Places([0], [0])
        for learned in self._learned:
            part, rest, places = self._take_learned(learned, rest, places)
            parts.append(part)
        slow, last_line = self._parse_lines(rest, places)
        parts += [slow, self._epoch_lines(content)]
        if self.grammar.numbers_stand_alone and len(slow.starts) >= _FEWEST_TO_LEARN:
            self._learn_line(last_line)
        return self._merged([part for part in parts if part.starts])

    def _take_learned(
        self, learned: LearnedLine, content: bytes, places: _Places
    ) -> tuple[_ParsedLines, bytes, _Places]:
        """Take the lines out of a text that look like one before: return what they state, and what is left."""
        matches = list(learned.pattern.finditer(content))
        parse = self.grammar.parse
        assert parse is not None
        # a number may be one that the function takes otherwise: the first and the last line are asked
        if not matches or not all(learned.agrees(match.group(), parse) for match in (matches[0], matches[-1])):
            return _ParsedLines([], {}, {}), content, places
        columns = zip(*(match.groups() for match in matches), strict=True)
        numbers = {
            number.quantity: number.values(column) for number, column in zip(learned.numbers, columns, strict=True)
        }
        words = {}
        for name, value in learned.others.items():
            if isinstance(value, str):
                words[name] = [value] * len(matches)
            else:
                numbers[name] = np.full(len(matches), value)
        left, raw, plain = [], [], []
        end = length = 0
        for match in matches:
            if match.start() > end:
                plain.append(length)
                raw.append(places.raw_place(end))
                left.append(content[end : match.start()])
                length += match.start() - end
            end = min(match.end() + 1, len(content))
        plain.append(length)
        raw.append(places.raw_place(end))
        left.append(content[end:])
        starts = [places.raw_place(match.start()) for match in matches]
        return _ParsedLines(starts, numbers, words), b"".join(left), _Places(plain, raw)

    def _parse_lines(self, content: bytes, places: _Places) -> tuple[_ParsedLines, bytes]:
        """Return what the grammar's own function says of each line that the pattern finds, and the last such line."""
        parse = self.grammar.parse
        assert parse is not None
        starts: list[int] = []
        rows: list[Mapping[str, float | str]] = []
        half_units: dict[str, list[float]] = {}
        last_line = b""
        end = -1
        for match in self.line.head.finditer(content):
            at = match.start()
            if at < end:
                continue  # another number of the same line
            # most step lines begin with the match, behind another one
            start = at if at == end + 1 else line_start(content, at)
            end = line_end(content, at)
            line = content[start:end].decode("utf-8", "replace")
            row = parse(line)
            if row is None:
                continue
            if len(rows) < LOOKED_AT:
                for name, half_unit in half_units_in(line, row).items():
                    half_units.setdefault(name, []).append(half_unit)
            starts.append(start)
            rows.append(row)
            last_line = content[start:end]
        for name, of_lines in half_units.items():
            # in a single line another number, such as a loss, may be the same by chance
            self._learn_half_unit(name, sorted(of_lines)[len(of_lines) // _FEW_BY_CHANCE])
        if len(places.plain) > 1:
            starts = [places.raw_place(start) for start in starts]
        numbers: dict[str, F64] = {}
        words: dict[str, list[str]] = {}
        for name in dict.fromkeys(chain.from_iterable(rows)):
            if name in TEXTS:
                # a log has few words, and many lines
                words[name] = [intern(str(row.get(name, ""))) for row in rows]
            else:
                numbers[name] = np.array([row.get(name, np.nan) for row in rows], dtype=np.float64)
        return _ParsedLines(starts, numbers, words), last_line

    def _epoch_lines(self, content: bytes) -> _ParsedLines:
        """Return the lines that name an epoch."""
        if self.grammar.epoch_lines is None:
            return _ParsedLines([], {}, {})
        matches = list(self.grammar.epoch_lines.finditer(content))
        epochs = np.array([match["epoch"] for match in matches], dtype=np.float64)
        return _ParsedLines([match.start() for match in matches], {"epoch": epochs}, {})

    def _learn_line(self, line: bytes) -> None:
        """Expect lines that look like one."""
        parse = self.grammar.parse
        assert parse is not None
        if self._learned_tries >= _MOST_LEARNED:
            return
        self._learned_tries += 1
        learned = learn_line(line, parse)
        if learned is not None:
            self._learned.append(learned)

    def _merged(self, parts: list[_ParsedLines]) -> tuple[list[int], dict[str, F64]]:
        """Return the lines of several parts in their order, and keep their words."""
        starts = np.concatenate([np.array(part.starts, dtype=np.int64) for part in parts] or [np.zeros(0, np.int64)])
        order = np.argsort(starts, kind="stable")
        numbers = {}
        for name in dict.fromkeys(chain.from_iterable(part.numbers for part in parts)):
            column = np.concatenate([part.numbers.get(name, np.full(len(part.starts), np.nan)) for part in parts])
            numbers[name] = column[order]
        stated = {*self.words, *chain.from_iterable(part.words for part in parts)}
        for name in stated:
            texts = [*chain.from_iterable(part.words.get(name, [""] * len(part.starts)) for part in parts)]
            # the lines before the first one with such a word state none
            words = self.words.setdefault(name, [""] * self._parsed_count)
            words.extend([texts[place] for place in order.tolist()])
        self._parsed_count += len(order)
        return starts[order].tolist(), numbers


class _ParsedLines(Struct, frozen=True):
    """Where some lines begin, and what they state."""

    starts: list[int]
    numbers: dict[str, F64]
    words: dict[str, list[str]]


class _Places(Struct):
    """Where lines stand that were taken out of a text: their starts in what was taken, and in the text."""

    plain: list[int]
    raw: list[int]

    def raw_of(self, place: int) -> int:
        """Return where the line of a place begins in the text."""
        return self.raw[bisect_right(self.plain, place) - 1]

    def raw_place(self, place: int) -> int:
        """Return where a place is in the text, where the lines that were taken out of it are whole pieces."""
        at = bisect_right(self.plain, place) - 1
        return self.raw[at] + place - self.plain[at]


def _starts_of_lines(content: bytes) -> list[int]:
    """Return where the lines of a text begin that ends with a line feed."""
    ends = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == _LINE_FEED)
    return [0, *(ends[:-1] + 1).tolist()]


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
