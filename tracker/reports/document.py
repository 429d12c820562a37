"""What a report says, before any format: a headline, tables and lines by section, notes, and the next commands.

A view (`reports.views`) makes the document of a result; a renderer (`text`, `markdown`, ...) writes documents and knows
no result. Cells are text with their units; a renderer decides width, colour and what folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.results import ONE_BY_ONE, SECTIONS
from tracker.results.verdicts import Gate
from tracker.units import counted

WORDS: Final[dict[str, Any]] = {"left": True, "elastic": True}
SENTENCE: Final[dict[str, Any]] = WORDS | {"sentence": True}
NAME: Final[dict[str, Any]] = WORDS | {"code": True}
UNDER: Final[dict[str, Any]] = NAME | {"fold": True}
PLACE: Final[dict[str, Any]] = UNDER | {"place": True}
"""Kinds of columns that hold text: words, a sentence of several lines, a name from a profile, what may move under it, a
line of code."""
NARROW: Final = 3
"""Order in which columns are dropped from which on a narrow browser leaves one out of a table with courses."""
HERE: Final = ""
COMMITS: Final = "commits"
"""Pages of a target that depend on the server."""
CUT_CALL: Final = "cut"
"""The page of a target that is the step of a call, cut out of its trace."""
ICICLE: Final = "--icicle"
"""The option of the page of a diff that draws the tree of both sides, which takes a third of its time."""
REACH: Final = 0.25
"""Change up or down at which a course touches its edge: all rows of a table have one scale."""
COURSE: Final = f"step by version (±{REACH * 100:g} %)"
"""Title of the column of courses."""
_NOTES: Final = 250
"""Characters of the notes of a first screen."""


class Look(Struct, frozen=True):
    """How a reader wants a document; a format takes what it needs. `only`: words of SECTIONS, empty for the format's
    default; `details`: all of them. `limit`: rows per table, None for the format's default (text and markdown 10, html
    10,000, the others all), 0 for all. `width`: of the terminal; `color`: ANSI colours. `gate`: what fails a build, for
    the formats that build systems read; None for what regressed at all. `baseline`: the word of `--baseline` that
    chose the baseline of a diff, "" where it was named. `has_drawings`: the format draws charts; `has_links`: rows
    lead to other pages of a server. `tell` gets a sentence for everything that did not fit into the document.
    """

    only: tuple[str, ...] = ()
    details: bool = False
    limit: int | None = None
    width: int | None = None
    color: bool = False
    gate: Gate | None = None
    baseline: str = ""
    has_drawings: bool = False
    has_links: bool = False
    tell: Callable[[str], None] = print

    def sections(self) -> tuple[str, ...]:
        """Return the sections to show, in reading order."""
        return tuple(section for section in SECTIONS if section in (self.only or SECTIONS))

    def rows(self, default: int | None) -> int | None:
        """Return how many rows a table may have, None for all."""
        limit = default if self.limit is None else self.limit
        return limit or None


def empty(row: Any) -> str:
    """Return no cell."""
    return ""


class Column(Struct, frozen=True, repr_omit_defaults=True):
    """A column of a table. `cell`: what makes its cell of a row (`rows.table_of`). `left`: aligned left; `elastic`: may
    be shortened; `fold`: may move under the first elastic column of its row; `drop`: the column with the highest number
    is left out first where there is no room, one with 0 never; `code`: holds names from a profile; `place`: holds code
    lines, whose file names must stay; `tail`: is cut in front; `sentence`: continues in the next line where it is too
    long. `link`: where a server has more on its cell of a row. `header`: one line, or as many as all columns of the
    table have; `short`: it, if there is little room.
    """

    header: str
    cell: Callable[[Any], str] = empty
    left: bool = False
    elastic: bool = False
    fold: bool = False
    drop: int = 0
    code: bool = False
    place: bool = False
    tail: bool = False
    sentence: bool = False
    short: str = ""
    link: Callable[[Any], Target | None] | None = None

    @property
    def narrow(self) -> str:
        """The header of a terminal."""
        return self.short or self.header


class Group(Column, frozen=True, kw_only=True):
    """Stands for several columns whose cells are made together, such as numbers in one unit."""

    header: str = ""
    columns: tuple[Column, ...]
    cells: Callable[[Any], Sequence[str]]


def group(columns: Iterable[Column], cells: Callable[[Any], Sequence[str]]) -> Column:
    """Return columns whose `cells` of a row are made together."""
    return Group(columns=tuple(columns), cells=cells)


class Bars(Struct, frozen=True):
    """The parts of a whole, on one side or on several. `names`: of the parts, which are the first rows of the table;
    `sides`: label, the whole in words, and the value of each part.
    """

    names: tuple[str, ...]
    sides: tuple[tuple[str, str, tuple[float, ...]], ...]
    unit: str = "ns"


class Trend(Struct, frozen=True):
    """A series over versions: of each its label, its value, those of its runs, a word to read at it and its tone.
    `links`: per point where a server has more on it; empty for none. `middle`: the value that a small course is drawn
    around, as far as REACH up and down; None: as far as the values go.
    """

    unit: str
    points: tuple[tuple[str, float | None, tuple[float, ...], str, str], ...]
    links: tuple[Target | None, ...] = ()
    middle: float | None = None


class Curves(Struct, frozen=True):
    """Values over time: of each curve its label and its points (seconds, value)."""

    unit: str
    curves: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]


class Courses(Struct, frozen=True):
    """Several series over the same versions, on one axis: of each its label and its change per version against its own
    baseline, in `unit`; None where it has none. `marked`: the version that they are shown for.
    """

    versions: tuple[str, ...]
    series: tuple[tuple[str, tuple[float | None, ...]], ...]
    marked: str
    unit: str = "ns"


class Marker(Struct, frozen=True):
    """What came with a version, beside its value. `kind`: environment, note, level (one begins), or incident."""

    kind: str
    text: str


class PlotLevel(Struct, frozen=True):
    """A level of a series: its first and its last position, the smallest and the largest value of its runs, and the
    mean of its versions.
    """

    first: int
    last: int
    smallest: float
    largest: float
    mean: float


class Overview(Struct, frozen=True):
    """All positions of a series of which a plot shows a part: their names and values, the first and the last one that
    are shown, and words with links to other parts.
    """

    names: tuple[str, ...]
    values: tuple[float | None, ...]
    first: int
    last: int
    ways: tuple[tuple[str, Target], ...]


class PlotSeries(Struct, frozen=True):
    """A series of a plot, one value per position and None where it has none. `runs`: the values of the runs of each;
    `words`: to be read at a point, and `tones`: worse, better or nothing; `says`: what else is known of a point.
    `is_change`: the values are changes, which have a sign.
    """

    label: str
    unit: str
    values: tuple[float | None, ...]
    runs: tuple[tuple[float, ...], ...] = ()
    words: tuple[str, ...] = ()
    tones: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    is_change: bool = False
    levels: tuple[PlotLevel, ...] = ()


class Choices(Struct, frozen=True):
    """Other ways to see the same: a title, and words with where they lead and whether they are what is seen."""

    title: str
    choices: tuple[tuple[str, Target, bool], ...]


class Plot(Struct, frozen=True, kw_only=True):
    """Series over the same positions, on one axis, with a crosshair where scripts run.

    `names`: of the positions, such as versions; `heads`: what is known of each, "" for its name alone. `places`: where
    they stand, as seconds, where they are not evenly spaced; `is_dated`: since 1970. `axis`: fit (as much as the values
    need), zero (from 0), or change (of each series since its first value). `markers`: per position. `end`: the name of
    the position to read first, "" for the last one. `limits`: values that the first series should keep, a line across
    each, with words. `links`: where each position leads, which is called `leads_to`;
    `pair`: where two of them do, `zoom`: the page that shows a part; `choices`: other ways to see it; `overview`: where
    the part that is shown lies. Files have none of these.
    """

    names: tuple[str, ...]
    series: tuple[PlotSeries, ...]
    heads: tuple[str, ...] = ()
    places: tuple[float, ...] = ()
    is_dated: bool = False
    axis: str = "fit"
    markers: tuple[tuple[Marker, ...], ...] = ()
    end: str = ""
    limits: tuple[tuple[float, str], ...] = ()
    links: tuple[Target | None, ...] = ()
    leads_to: str = ""
    pair: Target | None = None
    zoom: Target | None = None
    choices: tuple[Choices, ...] = ()
    overview: Overview | None = None


class Flame(Struct, frozen=True):
    """A tree of two sides, parents before their children. `rows`: level, name, baseline and candidate in ns; one side
    only where `sides` has one label.
    """

    sides: tuple[str, ...]
    rows: tuple[tuple[int, str, float | None, float | None], ...]


class HeatCell(Struct, frozen=True):
    """A cell of a heat map: the words for it, a quotient to its peers (None where that is not known), and where it
    leads.
    """

    words: str
    ratio: float | None
    link: Target | None = None


class HeatMap(Struct, frozen=True):
    """Cells in rows that have a label each, under columns with a name each. `corner`: what the names of columns are."""

    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]


Chart = Bars | Trend | Curves | Courses | Plot | Flame | HeatMap
"""A drawing of a table, for formats that can show it; it says nothing that the table does not say."""
Strip = tuple[tuple[float, ...], tuple[float, ...]]
"""The values of the runs of both sides."""


class Target(Struct, frozen=True):
    """Where a server of pages has more on a row: the word of a page, and what it is asked, as options and values.

    The page HERE is the one that is shown, with these options instead of its own; "" takes one away. COMMITS are those
    from one version to another, wherever the settings of the server say that they are. `tab`: the word of a tab to show
    there. `otherwise`: where it leads if the server has nothing on that.
    """

    page: str
    query: tuple[tuple[str, str], ...] = ()
    tab: str = ""
    otherwise: Target | None = None


class Table(Struct, frozen=True):
    """Rows of cells. `section`: the word of `--only` that it answers, "" for none; `is_first`: on the first screen.

    `tones`: per row `worse`, `better`, `sum`, `strong` or nothing; `cell_tones`: per row the tone of each cell, where
    they differ (then no column may fold). `more`: rows that are not shown. `lead`: a line between title and
    rows; `note`: a line below; `below`: per row a sentence under it, or ""; empty for none. `bars`: per row a part of
    the longest bar, -1 to 1, None for none; empty for no bars. `chart`: a drawing above the table; `adds`: per row what
    it adds to the sum of those above it, None for that sum; `strips`: per row its runs; `sparks`: per row a small
    course under the title COURSE. `links`: per row where a server has more on it; empty for none, and files
    have no links. `main`: the column that leads there, with `below` under it; None: the first elastic one.
    `cell_links`: per row where each cell leads; empty where none does. `checks`: per row what a form of a server takes
    where a reader chooses it, "" for nothing. `acts`: per row what a server takes to be acknowledged in place, ""
    for nothing. `is_one_line`: a row is never higher than a line; `is_stacked`: on a narrow screen a row is its name,
    and all else below that; `has_shares`: its bars are parts of a whole, and no changes. `findings`: how many rows say
    that something changed, also of those that are not shown.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: tuple[str, ...]
    more: int = 0
    note: str = ""
    lead: str = ""
    below: tuple[str, ...] = ()
    cell_tones: tuple[tuple[str, ...], ...] = ()
    bars: tuple[float | None, ...] = ()
    chart: Chart | None = None
    adds: tuple[float | None, ...] = ()
    strips: tuple[Strip | None, ...] = ()
    sparks: tuple[Trend | None, ...] = ()
    cell_links: tuple[tuple[Target | None, ...], ...] = ()
    links: tuple[Target | None, ...] = ()
    main: int | None = None
    checks: tuple[str, ...] = ()
    acts: tuple[str, ...] = ()
    is_one_line: bool = False
    findings: int = 0
    is_stacked: bool = False
    has_shares: bool = False
    section: str = ""
    is_first: bool = False


class Lines(Struct, frozen=True):
    """Sentences under a title. `is_wrapped`: broken at the width; else each stays one line, since it may hold paths.
    `is_drawing`: characters that draw what a chart shows; `link`: where a server has more on it. Without lines it is an
    offer, whose title leads there.
    """

    title: str
    lines: tuple[str, ...]
    section: str = ""
    is_first: bool = True
    is_wrapped: bool = False
    is_drawing: bool = False
    link: Target | None = None


Block = Table | Lines


class Tab(Struct, frozen=True):
    """A part of a document that a page shows at a time. `word`: in addresses; `sections`: those of its blocks."""

    word: str
    title: str
    sections: tuple[str, ...] = ()


class Document(Struct, frozen=True, kw_only=True):
    """A report. `title`: of what, and on how much it rests; `headline`: the sentence that answers; `verdict`: its word,
    "" where nothing was judged; `tone`: worse, better or nothing. `remarks`: what limits the headline, read before the
    blocks; `notes`: what else to know, after them, each with a command line below it where it has a line break.
    `next_commands`: what to run next, whole command lines. `tabs`: of a page that shows it; the first one has all that
    is in no section of the others, and one without blocks is left out.
    """

    title: str
    headline: str
    verdict: str = ""
    tone: str = ""
    remarks: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    next_commands: tuple[str, ...] = ()
    tabs: tuple[Tab, ...] = ()

    def chosen(self, only: Sequence[str], *, details: bool) -> list[Block]:
        """Return the blocks to show: of the sections `only`, and a tree.

        Where no section was chosen, these are all blocks, or those of the first screen.
        """
        if only:
            return [block for block in self.blocks if block.section in (*only, "tree")]
        return [block for block in self.blocks if details or block.is_first]

    def tab_of(self, block: Block) -> Tab:
        """Return the tab with a block, of a document that has tabs."""
        return next((tab for tab in self.tabs if block.section in tab.sections), self.tabs[0])


class Check(Struct, frozen=True):
    """One thing that was judged. `section`: a word of SECTIONS, `finding` or `line` (a track); `outcome`: failed,
    suspect, known, unsure, passed, or error where it can never be judged; `sentence`: its numbers, verdict and why;
    `short`: its name and change; `time_ns`: what it takes now, None for what is no time. `group`: the same for what is
    counted once, such as the shapes of an op.
    """

    section: str
    name: str
    outcome: str
    verdict: str
    sentence: str
    short: str
    time_ns: float | None
    group: str


class Checks(Struct, frozen=True):
    """What build systems read. `title`: the command of the question. `failed` and `warned`: what fails and what may
    fail, once each, the most important first; `rows`: all that is worth a line, in the order of the result.
    """

    title: str
    headline: str
    gate: Gate
    rows: tuple[Check, ...]
    failed: tuple[Check, ...]
    warned: tuple[Check, ...]


def table(title: str, columns: Sequence[Column], rows: Sequence[tuple[str, Sequence[str]]], **parts: Any) -> Table:
    """Return a table from (tone, cells) pairs. `parts`: other fields of it."""
    return Table(
        title, tuple(columns), tuple(tuple(cells) for _, cells in rows), tuple(tone for tone, _ in rows), **parts
    )


def level(columns: Sequence[Column]) -> list[Column]:
    """Return `columns` with headers of equally many lines, empty ones on top."""
    height = max(column.header.count("\n") for column in columns)
    return [replace(column, header="\n" * (height - column.header.count("\n")) + column.header) for column in columns]


def few(notes: Sequence[str], look: Look) -> tuple[str, ...]:
    """Return the notes of a result, each once.

    A first screen has the first one, up to three as far as they are short, and how to see more; and none on blocks of
    memory unless their section was chosen.
    """
    is_asked = "memory_block" in look.only
    lines = tuple(f"Note: {note}" for note in dict.fromkeys(notes) if is_asked or ONE_BY_ONE not in note)
    kept = sum(at == 0 or (at < 3 and sum(map(len, lines[: at + 1])) <= _NOTES) for at in range(len(lines)))
    more = len(lines) - kept
    return lines if look.details or not more else (*lines[:kept], f"{counted(more, 'more note')}: --details")
