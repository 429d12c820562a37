"""Documents as one HTML file that loads nothing from anywhere: the first screen open, all other tables folded below.

Every text passes through `printable` and is escaped; only drawings of `svg` and the two files of `page/` are markup.
The first rows of a table are HTML, the others travel packed and come out when a reader sorts, filters or asks for them.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from gzip import compress
from hashlib import sha256
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from tracker.reports import svg
from tracker.reports.document import (
    COURSE,
    HERE,
    NARROW,
    Bars,
    Block,
    Column,
    Curves,
    Document,
    Lines,
    Look,
    Tab,
    Table,
    Target,
    Trend,
)
from tracker.reports.text import shorten
from tracker.results.glossary import WORDS, word_of, words_in
from tracker.results.verdicts import VERDICTS
from tracker.units import printable

TITLE = "one page for a browser, to attach to a ticket"
SUFFIX = ".html"
PLAIN_ROWS: Final = 80
"""Rows of a table that are HTML: so many are readable without scripts, and a usual file stays below 130 kB."""
MOST_ROWS: Final = 10_000
"""Rows of a table unless the reader says otherwise."""

_NO_BREAK: Final = "\u00a0"
_PAGE: Final = Path(__file__).parent / "page"
_FIRST: Final = 12
_DETAIL: Final = 25
_FEW: Final = 5
"""Rows that a browser shows before somebody asks for more: on the first screen and under curves, and below; so few more
are not hidden, nor rows that add up.
"""
_TITLE: Final = 400
"""Characters of a title: that of many files names them all."""
_TONES: Final = {"worse": "w", "better": "b", "sum": "s", "strong": "g", "waits": "t"}
_START, _END = "<article>", "</article>"
_TAB: Final = re.compile(r'<div class="tab" id="[a-z]+')
_ENTRY: Final = re.compile(r"<dt id=.+?</dd>")
_WORDS: Final = '<dl class="words">'
_OF_SEVERAL_MEANINGS: Final = frozenset({"idle", "judged", "level", "part", "series", "step"})
"""Headers that mean one thing above one table and another above another: the level of an API, the part of a test."""


def render(make: Callable[[Look], Document], look: Look) -> str:
    """Write the page with all that the document has. `make`: the document with at most `look.limit` rows per table."""
    css, article = text_of("page.css"), _article(make, look, None)
    # the last parts are for pages of a server alone
    script = text_of("page.js").partition('for (const button of document.querySelectorAll("[data-perfetto')[0]
    charts = [block.chart for block in article.blocks]
    if not any("class=flame" in chart for chart in charts):
        script = script.partition("for (const flame of")[0]  # this part is for boxes only
    if article.tabs:
        css += text_of("tabs.css")
        script += f"\n{text_of('tabs.js')}"
    if any("class=frame" in chart for chart in charts):
        css += text_of("charts.css")
    if any("class=plot" in chart for chart in charts):
        script += f"\n{text_of('charts.js')}"
    return _template("page.html").render(
        article=article, words=_entries([article]),
        css=Markup(css), script=Markup(script), css_hash=_hash(css), script_hash=_hash(script),
    )  # fmt: skip


class Choice(Struct, frozen=True):
    """A link of a page: its words, its address, and whether it is what the page shows."""

    words: str
    address: str
    is_chosen: bool = False


class Form(Struct, frozen=True):
    """A form of a page: its title, where it goes, its buttons (value and words), and its fields: name, label, value,
    and a kind: text, needed (a text that must be given) or hidden. `asks`: it only asks, and changes nothing. `name`:
    by which rows of tables are chosen for it, "" for none; `takes`: the field that a chosen row fills. `offers`: values
    that a browser proposes for the fields with a text. `note`: what its buttons do; `needs_nothing`:
    buttons that take a form without the text that others need.
    """

    title: str
    action: str
    buttons: tuple[tuple[str, str], ...]
    fields: tuple[tuple[str, str, str, str], ...]
    asks: bool = False
    name: str = ""
    takes: str = "targets"
    offers: tuple[str, ...] = ()
    note: str = ""
    needs_nothing: tuple[str, ...] = ()


class StepTrace(Struct, frozen=True):
    """A step as a trace: its words and address; `perfetto`: where it can be shown under `title`, "" for nowhere;
    `missing`: the file with the step that is not there, and then there is no address.
    """

    words: str
    address: str
    title: str
    perfetto: str
    missing: str = ""


class Around(Struct, frozen=True, kw_only=True):
    """What a server puts around documents. `pages`: the navigation bar; `filters`: name, help, and the values to choose
    from; `forms`: below the first screen, those that ask above it; `formats`: the same as files; `command`: the same in
    a terminal; `link`: the address of a row; `css`, `script`: addresses; `who`: the reader; `logout`: where a form ends
    the login, "" for none; `beside`: other pages on the same; `search`:
    where the words of a search go, the name of their field and what is in it; `trace`: the step to look at elsewhere;
    `markdown`: the page as Markdown, to be copied, "" for none; `updated`: when it was made, of a page that is loaded
    again while it is open, else ""; `narrowed_to`: the filters that are on in words, and the address without them.
    `acting`: what takes a row of a table in place; `is_in_bar`: filters, files and the command are in the top bar;
    `is_dense`: the page is one list, which begins at once; `swap`: the same with its sides swapped; `newest_mark`: what
    was done last with what it is about, "" for nothing.
    """

    pages: tuple[Choice, ...]
    css: str
    script: str
    link: Callable[[Target], str]
    filters: tuple[tuple[str, str, tuple[Choice, ...]], ...] = ()
    forms: tuple[Form, ...] = ()
    formats: tuple[Choice, ...] = ()
    command: str = ""
    who: str = ""
    logout: str = ""
    beside: tuple[Choice, ...] = ()
    search: tuple[str, str, str] | None = None
    trace: StepTrace | None = None
    markdown: str = ""
    updated: str = ""
    narrowed_to: tuple[str, str] = ("", "")
    acting: Form | None = None
    is_in_bar: bool = False
    swap: Choice | None = None
    is_dense: bool = False
    newest_mark: str = ""

    @property
    def chooser(self) -> Form | None:
        """The form that takes the chosen rows of tables; None where there is none."""
        return next((form for form in self.forms if form.name), None)

    @property
    def markdown_lines(self) -> Markup:
        """The page as Markdown, with its line ends, which other texts of a page lose."""
        return escape(self.markdown)


def serve(makes: Sequence[Callable[[Look], Document]], look: Look, around: Around) -> str:
    """Write the page of a server with these documents, whose rows are links.

    It loads the files of `around`, nothing else.
    """
    articles = []
    for number, make in enumerate(makes, start=1):
        articles.append(_article(make, look, around.link, around.chooser, around.acting, number))
    commands: list[Markup] = []
    if around.is_in_bar:
        # the list is the page: what to run next stands with the command for it
        commands = [line for article in articles for line in article.commands]
        articles = [replace(article, commands=[]) for article in articles]
    return _template("server.html").render(
        articles=articles, around=around, commands=commands, words=_entries(articles)
    )  # fmt: skip


class _HtmlTab(Struct, frozen=True):
    """A tab as the template takes it. `name`: in addresses; `findings`: rows that changed; `is_open`: also of a page
    without scripts, where a tab is a box.
    """

    name: str
    title: str
    findings: int
    is_open: bool
    blocks: list[_HtmlBlock]


class _Article(Struct, frozen=True):
    """A document as the template takes it. `tabs`: empty for a document without, else the first one has `first` and
    `detail`, and no blocks of its own. `words`: of the glossary, that occur in it.
    """

    document: Document
    title: str
    first: list[_HtmlBlock]
    detail: list[_HtmlBlock]
    commands: list[Markup]
    tabs: list[_HtmlTab]
    words: list[str]

    @property
    def blocks(self) -> Iterator[_HtmlBlock]:
        """All blocks."""
        return chain(self.first, self.detail, *(tab.blocks for tab in self.tabs))


def _article(
    make: Callable[[Look], Document],
    look: Look,
    link: Callable[[Target], str] | None,
    chooser: Form | None = None,
    acting: Form | None = None,
    number: int = 1,
) -> _Article:
    """Make an article of a document.

    `link`: the address of a row, None for a file; `chooser`: the form that takes chosen rows; `acting`: the form that
    takes a row in place; `number`: of the article in its page.
    """
    document = make(
        replace(
            look, details=True, width=None, color=False, limit=look.rows(MOST_ROWS) or 0, has_drawings=True,
            has_links=link is not None,
        )
    )  # fmt: skip
    chosen = document.chosen(look.only, details=True)
    shown = [block for block in chosen if _says_something(block, link)]
    words = words_in(_texts_with_words(document, shown))
    found = _Article(document, shorten(document.title, _TITLE), [], [], [], [], words)
    for line in map(escape, map(printable, document.next_commands)):
        found.commands.append(line)
    of_tabs = _blocks_of_tabs(document, shown)
    names = {tab.word: _name_of_tab(tab, number) for tab, _ in of_tabs}
    if link is not None:
        link = partial(_lead, link, names)
    for block in of_tabs[0][1] if of_tabs else shown:
        (found.first if block.is_first or look.only else found.detail).append(_block(block, link, chooser, acting))
    for place, (tab, blocks) in enumerate(of_tabs):
        made = [_block(block, link, chooser, acting) for block in blocks] if place else []
        findings = sum(block.findings for block in blocks if isinstance(block, Table))
        is_open = any(block.is_first for block in blocks)
        found.tabs.append(_HtmlTab(names[tab.word], tab.title, findings, is_open, made))
    rows = chain.from_iterable(block.rows for block in chosen if isinstance(block, Table))
    # a verdict may stand before what else it may be, or what users said
    said = chain([document.verdict], chain.from_iterable(rows))
    verdicts = {text.partition(",")[0].partition(" or ")[0] for text in said}
    legend = tuple(f"{word}: {text}." for word, text in VERDICTS.items() if word in verdicts)
    found.detail.extend([_HtmlBlock("What the verdicts mean", legend)] if legend else [])
    return found


def _texts_with_words(document: Document, blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the texts of a document whose words the glossary may have: all but what stands in rows behind a name."""
    yield from (document.headline, *document.remarks, *document.notes)
    for block in blocks:
        yield block.title
        if isinstance(block, Lines):
            yield from block.lines
        else:
            yield from (block.lead, block.note, *(column.header for column in block.columns))
            yield from (str(row[0]) for row in block.rows[:PLAIN_ROWS])


def _entries(articles: Sequence[_Article]) -> list[tuple[str, str, str]]:
    """Return the words of the glossary in articles, in its order: the anchor, the word and what it means."""
    found = {word for article in articles for word in article.words}
    return [(_anchor(word), word, f"{meaning}.") for word, meaning in WORDS.items() if word in found]


def _anchor(word: str) -> str:
    return f"word-{word.lower().replace(' ', '-')}"


def _write_header(header: str) -> Markup:
    """Write the header of a column as a label, but for what is another thing above another table."""
    return escape(_shown(header)) if header.strip().lower() in _OF_SEVERAL_MEANINGS else _write_label(header)


def _write_label(label: str) -> Markup:
    """Write the label of a column or row, with a link to what it means where the glossary has it. The key Tab passes
    over these links: each word stands at the end of the page.
    """
    word = word_of(label)
    if not word:
        return escape(_shown(label))
    link = Markup('<a class="word" href="#{}" tabindex="-1">{}</a>')
    return link.format(_anchor(word), _shown(label))


def _says_something(block: Block, link: Callable[[Target], str] | None) -> bool:
    """Return whether a block is worth its place: an offer only where it leads somewhere."""
    if isinstance(block, Lines):
        return bool(block.lines and not block.is_drawing) or bool(not block.lines and block.link and link)
    return bool(block.rows or block.note or block.title)


def _blocks_of_tabs(document: Document, blocks: Sequence[Block]) -> list[tuple[Tab, list[Block]]]:
    """Return the tabs with the blocks of each; none for a document without, or where all are in one."""
    if not document.tabs:
        return []
    found: dict[Tab, list[Block]] = {tab: [] for tab in document.tabs}
    for block in blocks:
        found[document.tab_of(block)].append(block)
    first, *others = found.items()
    others = [(tab, own) for tab, own in others if own]
    return [first, *others] if others else []


def _name_of_tab(tab: Tab, number: int) -> str:
    """Return the name of a tab in addresses, which no other article of the page has."""
    return tab.word if number == 1 else f"{tab.word}-{number}"


def _lead(link: Callable[[Target], str], tabs: Mapping[str, str], target: Target) -> str:
    """Return where a target leads, or else its `otherwise`; "" for nowhere. `tabs`: word -> name, of those that are
    there.
    """
    if target.page == HERE and target.tab and not target.query:
        address = f"#{tabs[target.tab]}" if target.tab in tabs else ""
    else:
        address = link(target)
        if address and target.tab:
            address += f"#{tabs.get(target.tab, target.tab)}"
    if not address and target.otherwise is not None:
        return _lead(link, tabs, target.otherwise)
    return address


def joined(pages: Sequence[str]) -> str:
    """Join several pages to one: their articles, in the page whose style and script can show all of them."""
    articles = [page[page.index(_START) : page.rindex(_END) + len(_END)] for page in pages]
    frames = [_ENTRY.sub("", page.replace(article, "")) for page, article in zip(pages, articles, strict=True)]
    words = "".join(dict.fromkeys(entry for page in pages for entry in _ENTRY.findall(page)))
    # each article has tabs of its own; no text of a document has such a sign
    parts = [re.sub(_TAB, rf"\g<0>-{place}", article) for place, article in enumerate(articles[1:], start=2)]
    at = max(range(len(pages)), key=lambda place: len(frames[place]))
    start = pages[at].index(_START)
    end = frames[at][start:].replace(_WORDS, _WORDS + words)
    return frames[at][:start] + "\n".join([articles[0], *parts]) + end


class _HtmlRow(Struct, frozen=True):
    """A row of the page: a letter for its tone, its cells with the letter of each, the sentence under one of them, the
    drawings behind them, where the cell with that sentence leads, and where the others do ("" for nowhere; empty where
    none does). `check`: what its box in the first cell stands for, "" for no box; `act`: what is acknowledged in place.
    """

    tone: str
    cells: tuple[tuple[str, str], ...]
    below: str
    drawn: tuple[tuple[str, Markup], ...] = ()
    swatch: Markup = Markup("")
    address: str = ""
    addresses: tuple[str, ...] = ()
    check: str = ""
    act: str = ""


class _HtmlBlock(Struct, frozen=True):
    """A block as the template takes it. `is_offer`: its title is all of it. `classes`: which columns are aligned left,
    hold names, or change; `shown`: rows before a reader asks for more; `packed`: the rows that are no HTML, and `left`
    how many; `drawn`: headers of the columns with drawings; `below_at`: the column under which the sentence of a row
    stands; `address`: where the title leads; `chooser`: the form of the boxes in its rows; `acting`: the form that
    takes a row in place.
    """

    title: str
    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    classes: str = ""
    rows: tuple[_HtmlRow, ...] = ()
    count: int = 0
    shown: int = 0
    packed: str = ""
    left: int = 0
    more: int = 0
    lead: str = ""
    note: str = ""
    is_sortable: bool = False
    below_at: int = 0
    drawn: tuple[str, ...] = ()
    address: str = ""
    chart: Markup = Markup("")
    chooser: Form | None = None
    acting: Form | None = None
    is_offer: bool = False


def _block(block: Block, link: Callable[[Target], str] | None, chooser: Form | None, acting: Form | None) -> _HtmlBlock:
    if isinstance(block, Lines):
        address = link(block.link) if block.link and link else ""
        return _HtmlBlock(block.title, block.lines, address=address, is_offer=not block.lines)
    block = _without_empty_columns(block)
    rows, spans = tuple(_rows(block, link)), _spans(block)
    shown = _FIRST if block.is_first or isinstance(block.chart, Curves) else _DETAIL
    if isinstance(block.chart, Trend):
        rows = rows[::-1]  # the newest first: the chart above has the course
    drawings = (("runs", any(block.strips)), (COURSE, any(block.sparks)), ("", bool(spans)))
    drawn = [name for name, has in drawings if has]
    plain, left = rows[:PLAIN_ROWS], rows[PLAIN_ROWS:]
    return _HtmlBlock(
        block.title, columns=tuple(column.header.replace("\n", " ").strip() for column in block.columns),
        classes=" ".join(_classes(block)), rows=plain, count=len(rows),
        shown=len(rows) if block.adds or block.is_one_line or len(rows) <= shown + _FEW else shown,
        packed=_packed(left) if left else "", left=len(left),
        more=block.more, lead="" if isinstance(block.chart, Trend) else block.lead,
        note=block.note or ("" if rows else "no rows"),
        is_sortable=len(rows) > 8 and not any(map(_has_place, rows)),
        below_at=next((at for at, column in enumerate(block.columns) if column.elastic), 0)
        if block.main is None else block.main,
        drawn=tuple(drawn), chooser=chooser, acting=acting if any(block.acts) else None,
        chart=svg.chart(block.chart, link) if block.chart is not None else Markup(""),
    )  # fmt: skip


def _spans(table: Table) -> list[tuple[float, float] | None]:
    """Return where the bars of the rows begin and end; none where the chart above shows the same."""
    is_shown = isinstance(table.chart, Bars) and len(table.chart.sides) == 1
    return svg.spans(table.adds, table.bars) if table.adds or (any(table.bars) and not is_shown) else []


def _without_empty_columns(table: Table) -> Table:
    """Return `table` without the columns that say nothing in any row, such as verdicts where none was found."""
    kept = [at for at in range(len(table.columns)) if at == 0 or any(row[at] for row in table.rows)]
    if len(kept) == len(table.columns) or not table.rows:
        return table
    return replace(
        table,
        columns=tuple(table.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in table.rows),
        cell_tones=tuple(tuple(tones[at] for at in kept) for tones in table.cell_tones),
        cell_links=tuple(tuple(links[at] for at in kept) for links in table.cell_links),
    )


def _rows(table: Table, link: Callable[[Target], str] | None) -> Iterator[_HtmlRow]:
    """Yield the rows of a table. Those that the script of the page writes have no drawing, and no links in cells."""
    spans = _spans(table)
    axis = svg.axis_of_spans(spans)
    parts_of_bars = table.chart.names if isinstance(table.chart, Bars) else ()
    parts = zip_longest(table.rows, table.tones, table.cell_tones, table.below, fillvalue=())
    for place, (cells, tone, tones, below) in enumerate(parts):
        is_plain = place < PLAIN_ROWS
        letter = _TONES.get(str(tone), "")
        letters = [_TONES.get(str(one), "") for one in tones or [""] * len(cells)]
        targets = table.cell_links[place] if table.cell_links and link and is_plain else ()
        yield _HtmlRow(
            tone=letter,
            cells=tuple(zip(map(_with_indent, cells), letters, strict=True)),
            below=str(below or ""),
            drawn=tuple(_drawings(table, place, spans, axis, letter)) if is_plain else (),
            swatch=svg.swatch(parts_of_bars[place]) if place < len(parts_of_bars) else Markup(""),
            address=_address_of(table.links[place], link) if place < len(table.links) else "",
            addresses=tuple(_address_of(target, link) for target in targets),
            check=table.checks[place] if place < len(table.checks) else "",
            act=table.acts[place] if place < len(table.acts) and is_plain else "",
        )


def _drawings(
    table: Table,
    place: int,
    spans: Sequence[tuple[float, float] | None],
    axis: tuple[float, float],
    letter: str,
) -> Iterator[tuple[str, Markup]]:
    """Yield the drawings of a row, each with the class of its cell: runs, course, bar. `axis`: of the bars."""
    if table.strips and (spans or table.strips[place]):
        yield "r", svg.strip(table.strips[place])
    if table.sparks:
        yield "p", svg.spark(table.sparks[place])
    if spans:
        yield "x", svg.span(spans[place], axis, "n" if table.has_shares else letter)


def _address_of(target: Target | None, link: Callable[[Target], str] | None) -> str:
    return link(target) if target and link else ""


def _has_place(row: _HtmlRow) -> bool:
    """Return whether a row is a sum, or below another one, so that no other order would do."""
    return row.tone == "s" or row.cells[0][0][:1] in (_NO_BREAK, "=")


def _with_indent(cell: Any) -> str:
    """Return the text of a cell with its spaces in front, which a page would drop."""
    text = str(cell)
    words = text.lstrip(" ")
    return _NO_BREAK * (len(text) - len(words)) + words


def _classes(table: Table) -> Iterator[str]:
    """Yield the classes of a table, most with the number of a column.

    `l1`: the first column is aligned left; `c1`: it holds names; `e1`: it may be long; `k1`: it takes the tone;
    `n1`: a narrow screen leaves it out. `one`: a row is no higher than a line; `stack`: a narrow screen has all
    else of a row below its name.
    """
    if table.is_one_line:
        yield "one"
    if table.is_stacked:
        yield "stack"
    has_courses = bool(table.sparks)
    has_changes = any(column.header.strip() in ("change", "change %") for column in table.columns)
    for place, column in enumerate(table.columns, start=1):
        header = column.header
        letters = {"l": column.left, "c": column.code, "e": column.elastic}
        letters["k"] = "change" in header or "verdict" in header or header.startswith("vs ") or header in ("", "%")
        letters["n"] = column.drop >= NARROW if has_courses else has_changes and _gives_way(column, place)
        yield from (f"{letter}{place}" for letter, has in letters.items() if has)


def _gives_way(column: Column, place: int) -> bool:
    """Return whether a column of a comparison leaves its room to the change and the verdict on a narrow screen."""
    header = column.header.strip()
    says_change = ("change" in header and header != "of change") or header in ("verdict", "", "%")
    return place > 1 and not says_change and not column.elastic and not (column.left and not column.drop)


def _packed(rows: Sequence[_HtmlRow]) -> str:
    """Write rows for the script of the page, as gzip of JSON in base64: their tones, sentences, addresses, the tones of
    their cells (`-` for none), then each column. Like stands beside like, so that it is small.
    """
    found = [
        [row.tone for row in rows],
        [_shown(row.below) for row in rows],
        [row.address for row in rows],
        ["".join(mark or "-" for _, mark in row.cells) for row in rows],
        *zip(*([_shown(text) for text, _ in row.cells] for row in rows), strict=True),
    ]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return b64encode(compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode()  # 9: 1 % smaller, 35 ms later


def _write_row(row: _HtmlRow, block: _HtmlBlock) -> Markup:
    """Write a row of a table. Pages have thousands, and a template would take twice as long for them."""
    parts = [f"<tr class={row.tone}>" if row.tone else "<tr>"]
    for place, (text, mark) in enumerate(row.cells):
        parts.append(f"<td class={mark}>" if mark else "<td>")
        if place == 0:
            parts += [row.swatch, _write_box(row, block.chooser)]
        address = row.addresses[place] if row.addresses else ""
        if not address and place == block.below_at:
            address = row.address
        shown = _write_label(text) if place == 0 else escape(_shown(text))
        if address and text:
            words = text.lstrip()
            indent = escape(_shown(text[: len(text) - len(words)]))
            shown = Markup(f'{indent}<a href="{escape(address)}">{escape(_shown(words))}</a>')
        parts.append(shown)
        if row.below and place == block.below_at:
            parts.append(Markup("<small>{}</small>").format(_shown(row.below)))
    parts += [f"<td class={kind}>{drawing}" for kind, drawing in row.drawn]
    if block.acting is not None:
        parts += ["<td class=a>", _write_button(row, block.acting)]
    return Markup("".join(parts))


def _write_box(row: _HtmlRow, chooser: Form | None) -> Markup:
    """Write the box by which a row is chosen for a form; nothing where it cannot be."""
    if chooser is None or not row.check:
        return Markup("")
    box = '<input type="checkbox" name="{}" value="{}" form="{}" aria-label="choose {}"> '
    return Markup(box).format(chooser.takes, row.check, chooser.name, row.check)


def _write_button(row: _HtmlRow, acting: Form) -> Markup:
    """Write the form of a row that is acted on in place; nothing where it cannot be."""
    if not row.act:
        return Markup("")
    hidden = [(acting.takes, row.act), *((name, value) for name, _, value, _ in acting.fields)]
    field = Markup('<input type="hidden" name="{}" value="{}">')
    button = Markup('<button name="action" value="{}" title="{}" aria-label="{}">{}</button>')
    what = f"{acting.title} {row.act}"
    parts = [Markup('<form method="post" action="{}">').format(acting.action)]
    parts += [field.format(name, _shown(value)) for name, value in hidden]
    parts += [button.format(value, what, what, words) for value, words in acting.buttons]
    return Markup("").join([*parts, Markup("</form>")])


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def text_of(name: str) -> str:
    """Return a file of the page without its indents and comment lines, of a style sheet without spaces at signs too."""
    lines = map(str.strip, (_PAGE / name).read_text(encoding="utf-8").splitlines())
    text = "\n".join(line for line in lines if not line.startswith(("//", "/**")))
    return re.sub(r"\s*([{};,])\s*|(?<=\w:) ", r"\1", text) if name.endswith(".css") else text


def _shown(value: Any) -> Any:
    """Return a text as the page shows it; what is markup stays as it is. No line breaks inside of an arrow."""
    return printable(value).replace(" -> ", " → ") if type(value) is str else value


@cache
def _template(name: str) -> Template:
    environment = Environment(
        autoescape=True, finalize=_shown, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined,
        loader=FunctionLoader(text_of),
    )  # fmt: skip
    environment.globals["row"] = _write_row
    environment.globals["header"] = _write_header
    return environment.get_template(name)
