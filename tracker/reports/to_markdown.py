"""Markdown for a comment on a pull request: the answer as headline, small tables, the rest folded; bounded in
length."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from tracker.reports import (
    _empty,
    _human_bottleneck,
    _human_diff,
    _human_findings,
    _human_show,
    _human_show_summary,
    _human_tree,
    _human_verdicts,
)
from tracker.reports._human import Column, Table, side_lines
from tracker.reports._layout import shorten, shortened
from tracker.reports.shared import Style, chosen_sections, has_tree
from tracker.results import Diff, ExplainedFinding, Findings, Shown
from tracker.units import printable

TITLE = "a comment for a pull request"
SUFFIX = ".md"
BINARY = False

MAX_LENGTH = 60_000  # GitHub takes 65,536 characters in a comment; who posts it may add some
_ROWS = 10
_LONG = 15  # rows from which on a table is folded
_OPEN_INCIDENTS = 3
_FEWER_ROWS = (1000, 300, 100, 50, 30, 20, 10, 5, 3, 1)
_CELL = 100
_PARAGRAPH = 1_000


def diff(diff: Diff, style: Style) -> str:
    """The answer, both sides, what else changed, where the time went and why; the chosen tables folded below."""
    return _bounded(lambda rows: _diff_blocks(diff, style, rows), style)


def show(shown: Shown, style: Style) -> str:
    """The summary of one run as headline, where its time went, and the chosen tables folded below."""
    return _bounded(lambda rows: _show_blocks(shown, style, rows), style)


def findings(found: Findings, style: Style) -> str:
    """What matters as headline, and a table per incident; older incidents and suspicions folded."""
    return _bounded(lambda rows: _findings_blocks(found, rows), style)


def explained(found: ExplainedFinding, style: Style) -> str:
    """One finding: its tests, its runs, its life."""
    first, *lines = _human_findings.explained_header(found)
    blocks = [f"### {_paragraph(first)}", "\n".join(f"- {_paragraph(line)}" for line in lines)]
    blocks += [_titled(table) for table in _human_findings.explained_tables(found)]
    return _cut([*blocks, _paragraph(_human_findings.explained_hint(found))], style)


def _findings_blocks(found: Findings, rows: int | None) -> Iterator[str]:
    yield f"### {_paragraph(_human_findings.answer(found))}"
    yield _paragraph(_human_findings.summary(found))
    yield from (_paragraph(f"Note: {note}") for note in found.notes)
    incidents = len(found.tables["incidents"])
    for place, table in enumerate(_human_findings.tables(found, rows)):
        yield _titled(table) if place < min(_OPEN_INCIDENTS, incidents) else _folded(table)
    yield _paragraph(_human_findings.hint(found))


def _diff_blocks(diff: Diff, style: Style, rows: int | None) -> Iterator[str]:
    yield f"### {_paragraph(diff.explanation.headline)}"
    yield "\n".join(f"- {_paragraph(line)}" for line in (*side_lines(diff), *_human_bottleneck.of_diff(diff)))
    if _human_verdicts.line(diff):
        yield _paragraph(_human_verdicts.line(diff))
    for note in diff.notes:
        yield _paragraph(f"Note: {note}")
    sections = chosen_sections(diff, style)
    # cut only where the page grows too long: what else changed decides what the numbers mean
    environment = _human_diff.environment(diff, None if rows == style.rows(_ROWS) else rows)
    yield _titled(environment)
    if has_tree(diff):
        yield _titled(_human_tree.diff(diff, rows, hide_small=style.limit is None))
    if "overall" in sections:
        yield _titled(_human_diff.overall(diff, rows))
    for table in _human_diff.explanation(diff, rows, style.only) if not has_tree(diff) or style.only else ():
        yield _titled(table)
    for line in _human_diff.renames(diff.explanation)[:rows]:
        yield _paragraph(line)
    for section in sections:
        if section != "overall":
            for table in _human_diff.tables(diff, section, rows, style.only):
                yield _folded(table)
    yield _paragraph(f"{_human_diff.note(diff)} {_human_diff.hint(diff)}".strip())


def _show_blocks(shown: Shown, style: Style, rows: int | None) -> Iterator[str]:
    yield f"### {_paragraph(_human_show_summary.summary(shown))}"
    lines = (*_human_show.header(shown), *_human_bottleneck.of_run(shown))
    yield "\n".join(f"- {_paragraph(line)}" for line in lines)
    if shown.tree is not None:
        yield _titled(_human_tree.show(shown, rows, hide_small=style.limit is None))
    for section in chosen_sections(shown, style):
        for make in (_human_show.TABLES if section in style.only else _human_show.SHORT)[section]:
            table = _empty.explained(make(shown, rows), section, shown.options, is_pruned=shown.is_pruned)
            if table.rows or section in style.only:
                yield _titled(table) if section == "overall" else _folded(table)
    yield _paragraph(_human_show_summary.hint(shown))


def _bounded(blocks: Callable[[int | None], Iterable[str]], style: Style) -> str:
    """The page with as many rows per table as the limit asks for and the length allows."""
    wanted = style.rows(_ROWS)
    for rows in (wanted, *(fewer for fewer in _FEWER_ROWS if wanted is None or fewer < wanted)):
        found = list(blocks(rows))
        if rows != wanted:
            # before the last block, the command for more
            line = f"{rows} rows per table, to stay below {MAX_LENGTH:,} characters; --format csv has them all."
            found.insert(-1, line)
        if _length(found) <= MAX_LENGTH:
            break
    if rows != wanted:
        style.tell(f"markdown: {found[-2].rstrip('.')}")
    return _cut(found, style)


def _length(blocks: Iterable[str]) -> int:
    return sum(len(block) + 2 for block in blocks)


def _cut(blocks: Sequence[str], style: Style) -> str:
    """The page; where it is too long however few rows there are, the parts at its end are left out, and a line says so.
    The first block, the headline, and the last one, the command for more, stay.
    """
    kept = list(blocks)
    while _length(kept) > MAX_LENGTH - 200 and len(kept) > 2:
        kept.pop(-2)
    left_out = len(blocks) - len(kept)
    if left_out:
        line = f"{left_out} more parts are left out, to stay below {MAX_LENGTH:,} characters."
        style.tell(f"markdown: {line.rstrip('.')}")
        kept.insert(-1, line)
    return "\n\n".join(kept) + "\n"


def _titled(table: Table) -> str:
    """The table with its title; a long one folded."""
    if table.title and len(table.rows) > _LONG:
        return _folded(table)
    return f"**{escape(table.title)}**\n\n{_table(table)}" if table.title else _table(table)


def _folded(table: Table) -> str:
    return f"<details><summary>{escape(table.title)}</summary>\n\n{_table(table)}\n\n</details>"


def _table(table: Table) -> str:
    notes = [*([f"… and {table.more:,} more"] if table.more else []), *([table.note] if table.note else [])]
    lead = f"{_paragraph(table.lead)}\n\n" if table.lead else ""
    if not table.rows:
        return lead + _paragraph(table.note or "no rows")
    heads = ([line for line in column.header.split("\n") if line] for column in table.columns)
    lines = [_line("<br>".join(map(escape, head)) for head in heads)]
    lines.append(_line("---" if column.left else "---:" for column in table.columns))
    below = table.below or ("",) * len(table.rows)
    for tone, row, sentence in zip(table.tones, table.rows, below, strict=True):
        code = tone not in ("strong", "sum")
        cells = [_cell(text, column, column.code and code) for text, column in zip(row, table.columns, strict=True)]
        cells[0] += f"<br>{_paragraph(sentence)}" if sentence else ""
        lines.append(_line(f"**{cell}**" if tone == "strong" and cell else cell for cell in cells))
    return lead + "\n".join(lines) + "".join(f"\n\n{_paragraph(note)}" for note in notes)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str, column: Column, code: bool) -> str:
    if code and text not in ("", "-"):
        return f"<code>{escape(shortened(text, column, _CELL))}</code>"
    indent = len(text) - len(text.lstrip(" "))
    return "&nbsp;" * 2 * indent + escape(text.lstrip(" "))


def _paragraph(text: str) -> str:
    return escape(shorten(text, _PARAGRAPH))


def escape(text: str) -> str:
    """`text` as itself on one line, in any Markdown: no HTML, no table bar, no emphasis, link, mention or issue number.

    Entities, since a backslash before a bar means one thing in a table and another in a code span.

    >>> escape("a|b `c` <d> @e __init__ conv_2d [[2, 3]]")
    'a&#124;b &#96;c&#96; &lt;d&gt; &#64;e &#95;&#95;init&#95;&#95; conv_2d [[2, 3]]'
    """
    text = html.escape(printable(text), quote=False)
    text = re.sub(r"[|`*~\\@$]|\](?=\()|#(?=\d)", lambda match: f"&#{ord(match[0])};", text)
    # an underscore inside a word is plain text already
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", "&#95;", text)
