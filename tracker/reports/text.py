"""Documents for a terminal, as wide as it is: the headline on the second line, numbers never cut, colour only where
the reader wants it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from rich.cells import cell_len, chop_cells, set_cell_size

from tracker.reports.document import Column, Document, Lines, Look, Table
from tracker.units import MISSING_TEXT, counted, printable

TITLE = "tables for the terminal"
SUFFIX = ".txt"
ROWS: Final = 10
"""Rows per table unless the reader says otherwise."""

GAP: Final = 2
_INDENT: Final = 2
_WIDTH: Final = 120  # of a pipe or a file
_LEAST_WIDTH: Final = 40
_WORD: Final = re.compile(r"\s*+\S+\s*")
_WIDE: Final = 24  # an elastic column keeps at least this, before columns fold
_NARROW: Final = 26  # and this, before columns are left out
_LEAST: Final = 8
_SENTENCE: Final = 3  # lines of a cell
_GLUE: Final = "\ue000"
_GLUED: Final = re.compile(r"(?<=->) (?=\S)|(?<=\d) (?=(?:[num]?s|[KMGT]?i?B|%)(?!\w))")
_PAIR: Final = re.compile(r"(?<=\d) (?=->)")
"""Where a line does not break: behind an arrow, between a number and its unit; before an arrow where there is room."""
_BAR: Final = 20
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_CODES: Final = {"strong": "1", "dim": "2", "worse": "31", "better": "32", "waits": "33"}
"""ANSI codes of bold, dim, red, green, yellow."""
_NEXT_FACT: Final = "; "
"""Between the facts of a headline, the answer first."""


def render(document: Document, look: Look) -> str:
    """Write the document as lines of at most `look.width` characters, where no number would be cut.

    Below it stand what there was no room for, and the next commands, a line each, unwrapped.
    """
    page = _Page(look.color, max(look.width or _WIDTH, _LEAST_WIDTH))
    page.text(document.title)
    sentence, verdict, style = printable(document.headline), document.verdict, f"strong {document.tone}"
    answer, _, more = sentence.partition(_NEXT_FACT)
    if not verdict or page.width - cell_len(sentence) - len(verdict) >= GAP:
        answer, more = sentence, ""
    room = page.width - cell_len(answer) - len(verdict)
    if verdict and room >= GAP:
        # what explains the answer stands below it, where both have no room in a line
        page.lines.append((" " * room).join((page.styled(answer, "strong"), page.styled(verdict, style))))
        if more:
            page.text(more, "strong")
    else:
        page.text(f"{sentence} {verdict}".strip(), style)
    for remark in document.remarks:
        page.text(remark)
    for block in document.chosen(look.only, details=look.details):
        if isinstance(block, Lines) and not block.lines:
            continue
        page.lines.append("")
        if block.title:
            page.text(block.title, "strong")
        if isinstance(block, Table):
            page.table(block)
            continue
        for line in block.lines:
            if block.is_wrapped:
                page.indented(line, style="")
            else:
                page.lines.append(" " * _INDENT + printable(line))
    page.lines += [""] if document.notes else []
    for note in document.notes:
        sentence, *commands = note.split("\n")
        page.text(sentence)
        page.lines += (f"{' ' * _INDENT}{printable(line)}" for line in commands)
    if page.left_out:
        page.lines.append("")
        columns = f"{counted(len(page.left_out), 'column')} left out: {', '.join(page.left_out)}"
        page.text(f"{columns}; use a wider terminal or another --format", "dim")
    if document.next_commands:
        page.lines += ["", "Next:", *(f"{' ' * _INDENT}{printable(line)}" for line in document.next_commands)]
    return "".join(f"{line if look.color else line.rstrip()}\n" for line in page.lines)


class _Page:
    """Lines of a terminal, with ANSI colours where it `has_color`; `left_out`: headers for which there was no room."""

    def __init__(self, has_color: bool, width: int) -> None:
        self._has_color = has_color
        self.width = width
        self.lines: list[str] = []
        self.left_out: dict[str, None] = {}

    def text(self, line: str, style: str = "") -> None:
        """Write a paragraph, wrapped at the width."""
        self.lines += (self.styled(part, style) for part in wrapped(printable(line), self.width))

    def table(self, table: Table) -> None:
        """Write the table below its title, fitted into the width."""
        if table.lead:
            self.indented(table.lead)
        if table.rows:
            self._rows(table)
        elif not table.note:
            self.indented("no rows")
        if table.more:
            self.indented(f"… and {table.more:,} more")
        if table.note:
            self.indented(table.note)

    def indented(self, line: str, indent: int = _INDENT, style: str = "dim") -> None:
        """Write a paragraph below a title, or below a row."""
        for part in wrapped(printable(line), self.width - indent):
            self.lines.append(f"{' ' * indent}{self.styled(part.rstrip(), style)}")

    def _rows(self, table: Table) -> None:
        """Write the header and the rows, with the sentences under them.

        A number is never cut: it would read as another one; where the columns that stay need more than the width, lines
        are longer.
        """
        fitted = fit(table, self.width - _INDENT)
        self.left_out.update(dict.fromkeys(fitted.left_out))
        sizes = list(zip(fitted.columns, fitted.widths, strict=True))
        has_signs = any(part and part < 0 for part in table.bars)
        room = min(_BAR, self.width - _INDENT - sum(fitted.widths) - GAP * len(fitted.widths) - has_signs)
        if any(column.narrow for column in fitted.columns):
            for line in zip(*(column.narrow.split("\n") for column in fitted.columns), strict=True):
                named = (self._cell((text,), *size, "dim")[0] for text, size in zip(line, sizes, strict=True))
                self.lines.append((" " * GAP).join(["", *named]))
        whole_rows = [(tone,) * len(sizes) for tone in table.tones]
        own = [tuple(tones[at] for at in fitted.places) for tones in table.cell_tones]
        rows = zip_longest(fitted.rows, own or whole_rows, table.below, table.bars, fillvalue="")
        for place, (row, tones, sentence, part) in enumerate(rows):
            drawn = [self._cell(lines, *size, tone) for lines, size, tone in zip(row, sizes, tones, strict=True)]
            for number, cells in enumerate(zip_longest(*drawn)):
                whole = [cell or " " * width for cell, width in zip(cells, fitted.widths, strict=True)]
                if number == 0 and part and room >= _LEAST:
                    sign = ("-" if float(part) < 0 else " ") * has_signs
                    whole.append(self.styled(sign + bar(float(part), room), table.tones[place]))
                self.lines.append((" " * GAP).join(["", *whole]))
            if sentence:
                self.indented(str(sentence), 2 * _INDENT)

    def _cell(self, lines: Sequence[str], column: Column, width: int, tone: str) -> list[str]:
        """Return the lines of a cell, each as wide as its column; those behind the first are of columns that folded."""
        first, *folded = lines
        space = " " * (width - cell_len(first))
        drawn = [self.styled(set_cell_size(first, width) if column.left else space + first, tone)]
        for line in folded:
            drawn.append(self.styled(line, f"dim {tone}") + " " * (width - cell_len(line)))
        return drawn

    def styled(self, text: str, style: str) -> str:
        """Return `text` in this style, as far as the page has colours."""
        codes = ";".join(sorted(_CODES[word] for word in style.split() if word in _CODES))
        return f"\x1b[{codes}m{text}\x1b[0m" if self._has_color and codes and text else text


def bar(part: float, width: int) -> str:
    """Draw a bar whose length is the size of `part` of `width`, to an eighth of a character; none for nan, not known.

    >>> bar(0.5, 8), bar(-1.0, 4), bar(0.01, 8), bar(math.nan, 8), bar(1e5, 4)
    ('████', '████', '▏', '', '████')
    """
    if math.isnan(part):
        return ""
    # a part of a step may be longer than the step, a bar never than its column
    eighths = max(1, round(min(abs(part), 1.0) * width * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


class Fitted(Struct, frozen=True):
    """A table that fits: `rows` hold the lines of each cell, `widths` the cells that each column takes, `places` which
    columns of the table these are. `left_out`: the headers of columns for which there was no room.
    """

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[tuple[str, ...], ...], ...]
    places: tuple[int, ...]
    left_out: tuple[str, ...] = ()


def fit(table: Table, width: int) -> Fitted:
    """Fit `table` into at most `width` terminal cells, as far as its fixed columns allow: columns fold under the first
    elastic one, then they are left out.
    """
    columns, cells = table.columns, [[printable(cell) for cell in row] for row in table.rows]
    natural = [
        max([*map(cell_len, column.narrow.split("\n")), *(cell_len(row[index]) for row in cells)])
        for index, column in enumerate(columns)
    ]
    empty = {at for at, column in enumerate(columns) if column.fold and not any(row[at] for row in cells)}
    kept = tuple(at for at in range(len(columns)) if at not in empty)
    main = next((at for at in kept if columns[at].elastic), -1)
    folded = tuple(at for at in kept if columns[at].fold and at != main)
    # which columns stand beside each other, which fold, and the least width of an elastic one: the first that fits
    plans = [(kept, (), _WIDE), (tuple(at for at in kept if at not in folded), folded, _NARROW)]
    for drop in sorted({column.drop for column in columns if column.drop}, reverse=True):
        plans.append((tuple(at for at in plans[-1][0] if columns[at].drop < drop), folded, _NARROW))
    plans.append((*plans[-1][:2], 0))
    for beside, under, least in plans:
        widths = _widths(columns, natural, beside, {main: under}, least, width)
        if widths is not None:
            break
    else:
        raise AssertionError("the last plan always fits")
    differing = {
        at: _differing_parts([row[at] for row in cells], size)
        for at, size in zip(beside, widths, strict=True)
        if columns[at].elastic and not columns[at].sentence
    }
    rows = []
    for row in cells:
        line = []
        for at, size in zip(beside, widths, strict=True):
            text = differing.get(at, {}).get(row[at], row[at])
            below = [one for one in under if at == main and row[one] not in ("", MISSING_TEXT)]
            own = _sentence(text, size) if columns[at].sentence else [shortened(text, columns[at], size)]
            line.append((*own, *(" " * GAP + shortened(row[one], columns[one], size - GAP) for one in below)))
        rows.append(tuple(line))
    shown = {*beside, *under, *empty}
    left_out = tuple(" ".join(column.header.split()) for at, column in enumerate(columns) if at not in shown)
    return Fitted(tuple(columns[at] for at in beside), widths, tuple(rows), beside, left_out)


def fits(table: Table, width: int) -> bool:
    """Return whether `table`, which stands below a title, needs at most `width` terminal cells."""
    widths = fit(table, width - GAP).widths
    return sum(widths) + GAP * len(widths) <= width


def _widths(
    columns: Sequence[Column], natural: Sequence[int], beside: Sequence[int], folded: Mapping[int, Sequence[int]],
    least: int, width: int,
) -> tuple[int, ...] | None:  # fmt: skip
    """Return the width of each column that stands `beside` the others, None where an elastic one would get less than
    `least`; with 0 they always fit. `folded`: column -> those that stand under it.
    """
    wanted = {at: max([natural[at], *(natural[one] + GAP for one in folded.get(at, ()))]) for at in beside}
    elastic = [at for at in beside if columns[at].elastic]
    room = width - sum(size for at, size in wanted.items() if at not in elastic) - GAP * (len(beside) - 1)
    if least and room < sum(min(wanted[at], least) for at in elastic):
        return None
    # the narrowest first: what they do not need goes to the wider ones
    for position, at in enumerate(sorted(elastic, key=lambda at: wanted[at])):
        fair = room // (len(elastic) - position)
        wanted[at] = min(wanted[at], max(fair, _LEAST))
        room -= wanted[at]
    return tuple(wanted[at] for at in beside)


def shorten(text: str, width: int) -> str:
    """Shorten `text` to at most `width` terminal cells, cut in the middle: names differ at both ends.

    >>> shorten("void at::native::vectorized_kernel<4>", 16), shorten("relu", 16)
    ('void at:…rnel<4>', 'relu')
    """
    if cell_len(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    head = set_cell_size(text, width // 2)
    return f"{head}…{_end(text, width - 1 - cell_len(head))}"


def _differing_parts(texts: Sequence[str], width: int) -> dict[str, str]:
    """Return each text that would look like another one in `width` cells -> the part of it in which they differ."""
    alike: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        if cell_len(text) > width:
            alike.setdefault(shorten(text, width), []).append(text)
    found = {}
    for group in alike.values():
        if len(group) < 2:
            continue
        start = _shared_start(group)
        end = _shared_start([text[start:][::-1] for text in group])
        for text in group:
            found[text] = shorten_around(text, start, len(text) - end, width)
    return found


def _shared_start(texts: Sequence[str]) -> int:
    """Return how many characters at the start all texts share."""
    first, last = min(texts), max(texts)
    pairs = zip(first, last, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(first), len(last)))


def shorten_around(text: str, start: int, end: int, width: int) -> str:
    """Return what stands in `text` from `start` to `end`, in whole words, and as much around it as `width` cells allow.

    >>> shorten_around("network/layers/0-Decode/attention", 15, 16, 12)
    '…ers/0-Deco…'
    """
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end : end + 1].isalnum():
        end += 1
    room = max(0, width - 2 - (end - start))
    left = min(start, room // 2)
    right = min(len(text) - end, room - left)
    first, last = start - left, end + right
    shown = f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"
    return shorten(shown, width)


def _shorten_place(text: str, width: int) -> str:
    """Shorten `text` of code lines and modules to at most `width` terminal cells: folders go first, the longest first;
    file names, lines and functions stay as long as they can.

    >>> _shorten_place("/home/me/project/main.py(366): train", 24)
    '…/main.py(366): train'
    """
    parts = text.split(", ")
    while cell_len(", ".join(parts)) > width:
        longest = max(range(len(parts)), key=lambda at: len(parts[at].rpartition("/")[0]))
        folder, _, name = parts[longest].rpartition("/")
        if folder in ("", "…"):
            break
        parts[longest] = f"…/{name}"
    short = ", ".join(parts)
    return short if cell_len(short) <= width else f"…{_end(short, width - 1)}"


def _sentence(text: str, width: int) -> list[str]:
    """Return `text` in a few lines of at most `width` terminal cells; what is left out goes at its end, by whole words.

    >>> _sentence("slower: 6.29 -> 28.14 ms, at 12 calls more each", 12)
    ['slower: 6.29', '-> 28.14 ms,', 'at 12 …']
    """
    whole, pairs = _GLUED.sub(_GLUE, text), _PAIR.sub(_GLUE, _GLUED.sub(_GLUE, text))
    is_narrow = any(cell_len(word) > width for word in pairs.split(" "))
    lines = [line.rstrip().replace(_GLUE, " ") for line in wrapped(whole if is_narrow else pairs, width)]
    if len(lines) <= _SENTENCE:
        return lines
    last = lines[_SENTENCE - 1]
    while cell_len(last) > width - 2 and " " in last:
        last = last.rpartition(" ")[0]
    return [*lines[: _SENTENCE - 1], f"{last} …" if cell_len(last) <= width - 2 else "…"]


def _end(text: str, width: int) -> str:
    """Return as much of the end of `text` as takes at most `width` terminal cells."""
    end = ""
    for char in reversed(text):
        if cell_len(char + end) > width:
            break
        end = char + end
    return end


def shortened(text: str, column: Column, width: int) -> str:
    """Return `text` of a cell under `column` in at most `width` terminal cells."""
    if column.tail and cell_len(text) > width:
        return f"…{_end(text, width - 1)}"
    return _shorten_place(text, width) if column.place else shorten(text, width)


def _chop(word: str, width: int) -> list[str]:
    """Cut a word into lines. None begins with `::`, which a runner of GitHub would take for a command."""
    lines = []
    while cell_len(word) > width:
        end = max(1, len(chop_cells(word, width)[0]))
        while end > 1 and word.startswith("::", end):
            end -= 1
        lines.append(word[:end])
        word = word[end:]
    return [*lines, word]


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` terminal cells, broken before words.

    A word that is longer than a line is cut.

    >>> wrapped("all of it was wrapped", 8)
    ['all of ', 'it was ', 'wrapped']
    """
    lines = [""]
    for word in _WORD.findall(text) if text.strip() else []:
        size = cell_len(word.rstrip())
        if cell_len(lines[-1]) + size <= width:
            lines[-1] += word
        elif size <= width:
            lines.append(word)
        else:
            lines += _chop(word, width)
    whole = lines if lines[0] or len(lines) == 1 else lines[1:]
    return [line if cell_len(line) <= width else set_cell_size(line, width) for line in whole]
