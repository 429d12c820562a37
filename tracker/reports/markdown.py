"""Markdown for a comment on a pull request: the headline, the first screen, all else folded; bounded in length."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from tracker.reports.document import Block, Column, Document, Lines, Look, Table
from tracker.reports.text import shorten, shortened
from tracker.units import printable

TITLE = "a comment for a pull request"
SUFFIX = ".md"
MAX_LENGTH = 60_000  # GitHub takes 65,536 characters in a comment; who posts it may add some
ROWS: Final = 10

_LONG: Final = 15  # rows from which on a table is folded
_FEWER_ROWS: Final = (1000, 300, 100, 50, 30, 20, 10, 5, 3, 1)
_CELL: Final = 100
_WORDS: Final = 300
_PARAGRAPH: Final = 1_000


def render(make: Callable[[Look], Document], look: Look) -> str:
    """Write the page with as many rows per table as the limit asks for and the length allows.

    `make`: the document with at most `look.limit` rows per table.
    """
    wanted = look.rows(ROWS)
    for rows in (wanted, *(fewer for fewer in _FEWER_ROWS if wanted is None or fewer < wanted)):
        parts = _parts(make(replace(look, limit=rows or 0)), look)
        if rows != wanted:
            # before the last part, the commands for more
            parts.insert(-1, f"{rows} rows per table, to stay below {MAX_LENGTH:,} characters; --format csv has all.")
        if _length(parts) <= MAX_LENGTH:
            break
    if rows != wanted:
        look.tell(f"markdown: {parts[-2].rstrip('.')}")
    # too long however few rows there are: the parts at its end go, but for the last one, the commands for more
    kept = list(parts)
    while _length(kept) > MAX_LENGTH - 200 and len(kept) > 2:
        kept.pop(-2)
    left_out = len(parts) - len(kept)
    if left_out:
        line = f"{left_out} more parts are left out, to stay below {MAX_LENGTH:,} characters."
        look.tell(f"markdown: {line.rstrip('.')}")
        kept.insert(-1, line)
    return "\n\n".join(kept) + "\n"


def _parts(document: Document, look: Look) -> list[str]:
    verdict = f" **{escape(document.verdict)}**" if document.verdict else ""
    parts = [f"### {_paragraph(document.headline)}{verdict}", _paragraph(document.title)]
    parts += map(_paragraph, document.remarks)
    first = [block for block in document.chosen(look.only, details=True) if block.is_first or look.only]
    detail = [block for block in document.chosen(look.only, details=True) if block not in first]
    parts += map(_open, first)
    for note in document.notes:
        # a command stands in a paragraph of its own
        parts += map(_paragraph, note.split("\n"))
    parts += [_folded(block) for block in detail if not isinstance(block, Lines) or block.lines]
    commands = "\n".join(f"- {_paragraph(line)}" for line in document.next_commands)
    return [*filter(None, parts), f"Next:\n\n{commands}" if commands else ""]


def _length(parts: Iterable[str]) -> int:
    return sum(len(part) + 2 for part in parts)


def _open(block: Block) -> str:
    if block.title and isinstance(block, Table) and len(block.rows) > _LONG:
        return _folded(block)
    return f"**{escape(block.title)}**\n\n{_body(block)}" if block.title else _body(block)


def _folded(block: Block) -> str:
    return f"<details><summary>{escape(block.title)}</summary>\n\n{_body(block)}\n\n</details>"


def _body(block: Block) -> str:
    if isinstance(block, Lines):
        return "\n".join(f"- {_paragraph(line)}" for line in block.lines)
    notes = [*([f"… and {block.more:,} more"] if block.more else []), *([block.note] if block.note else [])]
    lead = f"{_paragraph(block.lead)}\n\n" if block.lead else ""
    if not block.rows:
        return lead + _paragraph(block.note or "no rows")
    heads = ([line for line in column.header.split("\n") if line] for column in block.columns)
    lines = [_line("<br>".join(map(escape, head)) for head in heads)]
    lines.append(_line("---" if column.left else "---:" for column in block.columns))
    below = block.below or ("",) * len(block.rows)
    for tone, row, sentence in zip(block.tones, block.rows, below, strict=True):
        code = tone not in ("strong", "sum")
        cells = [_cell(text, column, column.code and code) for text, column in zip(row, block.columns, strict=True)]
        cells[0] += f"<br>{_paragraph(sentence)}" if sentence else ""
        lines.append(_line(f"**{cell}**" if tone == "strong" and cell else cell for cell in cells))
    return lead + "\n".join(lines) + "".join(f"\n\n{_paragraph(note)}" for note in notes)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str, column: Column, code: bool) -> str:
    if code and text not in ("", "-"):
        return f"<code>{escape(shortened(text, column, _CELL))}</code>"
    indent = len(text) - len(text.lstrip(" "))
    words = text.lstrip(" ")
    return "&nbsp;" * 2 * indent + escape(shorten(words, _WORDS) if column.elastic else words)


def _paragraph(text: str) -> str:
    return escape(shorten(text, _PARAGRAPH))


def escape(text: str) -> str:
    """Write `text` as itself on one line, in any Markdown: no HTML, no table bar, no emphasis, link, mention or issue
    number.

    Entities, since a backslash before a bar means one thing in a table and another in a code span; an empty comment
    where GitHub would make a link of a reference (`GH-1`) or an address.

    >>> escape("a|b `c` <d> @e __init__ conv_2d [[2, 3]]")
    'a&#124;b &#96;c&#96; &lt;d&gt; &#64;e &#95;&#95;init&#95;&#95; conv_2d [[2, 3]]'
    """
    text = html.escape(printable(text), quote=False)
    text = re.sub(r"[|`*~\\@$]|\](?=\()|#(?=\d)", lambda match: f"&#{ord(match[0])};", text)
    # what splits a word in two nodes is no reference and no address
    text = re.sub(r"GH(?=-\d)|:(?=//)|\bwww(?=\.)", lambda match: f"{match[0]}<!-- -->", text, flags=re.IGNORECASE)
    # an underscore inside a word is plain text already
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", "&#95;", text)
