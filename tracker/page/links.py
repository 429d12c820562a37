"""Addresses of pages: one table of pages, and the query of an address as the options of a command and back.

The name of an option in a query is that of the command line without its dashes: `/findings?state=all&new=1`. What
reads a file of the server, such as an op map, is no option here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, urlencode

from msgspec import NODEFAULT, Struct, structs

from tracker.compare import references
from tracker.errors import UsageError
from tracker.reports.addresses import INCIDENT_PATH
from tracker.reports.commands import command_of
from tracker.reports.document import CUT_CALL, ICICLE, Target
from tracker.results import (
    MATRIX_ROWS,
    OPEN_STATES,
    STATES,
    AdviseOptions,
    BoardOptions,
    CallsOptions,
    ClusterOptions,
    DiffOptions,
    FindingsOptions,
    HistoryOptions,
    LogOptions,
    ShowOptions,
    check_matrix,
)
from tracker.results.options import DEVICE, NO_OPTION, SEARCH_RUNS, WORKLOAD, Declared, Option, declared, microseconds
from tracker.store import Store
from tracker.units import NS_PER_US, is_plain

_HELP: Final = "see the page without it"
MOST_SIDES: Final = 5
LONGEST_NAME: Final = 4_000
"""Characters of a value of an address: names of kernels have thousands."""
LONGEST: Final = 500
"""Characters of a value in a form."""
MOST_VALUES: Final = 100
FORMATS: Final = ("json", "csv", "xlsx", "html")
"""The files of a page, unless it says otherwise."""
NOT_HERE: Final = frozenset(
    (
        "format",
        "flow_category",
        "allow_partial",
        "skip_bad_rows",
        "max_bytes",
        "loaders",
        "on_progress",
        "op_map",
        "fail_on",
    )
)
"""Fields of options that are about files, or the exit code."""
OF_CHART: Final = frozenset(("--last", "--from", "--to", "--x-axis", "--y-axis"))
"""Options that a chart of a history has links for."""
PAGE: Final = "--page"
"""The option of a long list that no command has."""
Texts = list[tuple[str, str]]
"""Options as they are spelled on the command line, with their values; "" is the value of a switch."""


class NotFoundError(UsageError):
    """An address that names nothing."""


class NoOptions(Struct, frozen=True):
    """The options of a page that has none."""


class RunsOptions(Struct, frozen=True):
    """Which runs are listed."""

    search: Annotated[str | None, SEARCH_RUNS] = None
    version: Annotated[str | None, Option("Only this version.", "LABEL")] = None
    workload: Annotated[str | None, WORKLOAD] = None
    device: Annotated[str | None, DEVICE] = None
    tag: Annotated[str | None, Option("Only runs with this tag.", "KEY[=VALUE]")] = None
    state: Annotated[
        Literal["active", "excluded", "deleted", "all"],
        Option("Only runs in this state.", words=("active", "excluded", "deleted", "all")),
    ] = "active"
    limit: Annotated[int, Option("At most N runs.", "N", least=1, most=1_000)] = 50


class SearchOptions(Struct, frozen=True):
    """What is looked for."""

    q: Annotated[str | None, Option("A part of a name, with * and ? for any characters; run:41; I-4.", "TEXT")] = None


class CutOptions(Struct, frozen=True):
    """Which step of a run is cut out of its trace."""

    step: Annotated[int | None, Option("The step.", "N", least=0)] = None
    rank: Annotated[int | None, Option("The rank.", "R", least=0)] = None


class DiffPageOptions(DiffOptions, frozen=True, kw_only=True):
    """How two sides are compared, and whether their tree is drawn, which takes a third of the time of the page."""

    with_flame: Annotated[bool, Option("Draw the operators of both sides by their callers.", name=ICICLE)] = False


class MatrixOptions(DiffPageOptions, frozen=True, kw_only=True):
    """How three and more sides are compared: the rows are those of a matrix, not of a tree."""

    by: Annotated[tuple[str, ...], Option("The rows.", words=MATRIX_ROWS)] = ()

    def __post_init__(self) -> None:
        check_matrix(without_rows(self), next(iter(self.by), "op"), self.depth)


def without_rows(chosen: DiffOptions) -> DiffOptions:
    """The options of a diff that a matrix takes: its rows are named beside them."""
    return DiffOptions(**{name: value for name, value in structs.asdict(chosen).items() if name not in ("by", "depth")})


class BoardPageOptions(BoardOptions, frozen=True, kw_only=True):
    """Which workloads stand on the board, and which part of those that ask for a reader."""

    page: Annotated[int, Option("The part of a long list.", "N", least=1, most=1_000)] = 1


class Screen(Struct, frozen=True, kw_only=True):
    """A page. `path`: its address, `{}` for what it is about; `command`: the same in a terminal; `sides`: how many
    names the query has at most, `side=`; `choices`: options whose values are links, and `branch`, a part of the
    workload; `texts`: options with a field.
    """

    path: str
    title: str
    command: str
    options: type[Struct] = NoOptions
    sides: int = 0
    choices: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    formats: tuple[str, ...] = FORMATS
    is_on_top: bool = True


_ROWS: Final = ("op", "module", "kind")
PAGES: Final[Mapping[str, Screen]] = {
    "board": Screen(
        path="/", title="Board", command="board", options=BoardPageOptions,
        choices=("workload", "branch", "device", "owner"),
    ),
    "findings": Screen(
        path="/findings", title="Findings", command="findings", options=FindingsOptions, texts=("version",),
        choices=("workload", "device", "states", "direction", "kind", "only_new", "every"),
    ),
    "diff": Screen(
        path="/diff", title="Diff", command="diff", options=DiffPageOptions, sides=MOST_SIDES, texts=_ROWS,
        formats=(*FORMATS, "speedscope"),
        choices=("workload", "by", "match", "force"),
    ),
    "history": Screen(
        path="/history", title="History", command="history", options=HistoryOptions,
        choices=("workload", "device", "kind", "against"), texts=("key", "module", "shape", "top", "last"),
    ),
    "runs": Screen(
        path="/runs", title="Runs", command="runs", options=RunsOptions, choices=("workload", "device", "state"),
        texts=("search", "version", "tag", "limit"),
    ),
    "log": Screen(
        path="/log", title="Log", command="log", options=LogOptions, choices=("workload", "device", "metric"),
        texts=("baseline", "last"),
    ),
    "status": Screen(path="/status", title="Status", command="status"),
    "search": Screen(path="/search", title="Search", command="", options=SearchOptions, formats=(), is_on_top=False),
    "experiments": Screen(
        path="/experiments", title="Experiments", command="experiments", formats=(), is_on_top=False
    ),
    "experiment": Screen(path="/experiment/{}", title="Experiment", command="experiments show", is_on_top=False),
    "incident": Screen(path=INCIDENT_PATH, title="Incident", command="explain", is_on_top=False),
    "finding": Screen(path="/finding/{}", title="Finding", command="explain", is_on_top=False),
    "run": Screen(
        path="/run/{}", title="Run", command="show", options=ShowOptions, choices=("by",), texts=_ROWS, is_on_top=False,
        formats=(*FORMATS, "speedscope"),
    ),
    "cluster": Screen(
        path="/run/{}/ranks", title="Cluster", command="cluster", options=ClusterOptions, sides=1,
        texts=("stage", "microbatches"), is_on_top=False,
    ),
    "calls": Screen(
        path="/run/{}/calls", title="Calls", command="show", options=CallsOptions, choices=("calls_of",),
        texts=("calls", "shapes", "module", "op", "group"), is_on_top=False,
    ),
    "run_advice": Screen(
        path="/run/{}/advice", title="Advice", command="advise", options=AdviseOptions, choices=("everything",),
        texts=("microbatches",), is_on_top=False,
    ),
    "advice": Screen(
        path="/advise", title="Advice", command="advise", options=AdviseOptions, sides=2,
        choices=("workload", "everything"), texts=("microbatches",), is_on_top=False,
    ),
}  # fmt: skip
"""Word of a page -> the page, in the order of the navigation bar."""
_PATHS: Final = tuple(re.compile(re.escape(page.path).replace(r"\{\}", "[^/]+")) for page in PAGES.values())
"""How the path of each page is written."""
CUT: Final = Screen(path="/run/{}/cut.json.gz", title="Cut", command="cut", options=CutOptions, formats=())
"""A step of a run as a trace: a file only."""
HITS: Final = "/search.json"
"""What a reader may mean who writes into the search."""
CHECKED: Final = "/compare"
"""Where the checked runs of a list go: to their diff, the older side first, as `sort_oldest_first` has it."""


def suffix(format: str) -> str:
    """The end of the address of a page as a file."""
    return ".speedscope.json" if format == "speedscope" else f".{format}"


def spelled(kind: type[Struct]) -> dict[str, Declared]:
    """Field of an options struct -> how it is written, for those that a page has."""
    return {name: how for name, how in declared(kind).items() if how.option is not NO_OPTION and name not in NOT_HERE}


def find_page_of(path: str, query: str) -> str:
    """Return the address of a page of this server; "" for what is none, such as a file beside it, or is too long.

    It is made anew, so that it leads nowhere else.
    """
    address = quote(path) + (f"?{query}" if query else "")
    is_page = any(pattern.fullmatch(path) for pattern in _PATHS) and "." not in path.rpartition("/")[2]
    is_written = is_plain(address) and query.isascii() and len(address) <= LONGEST_NAME
    return address if is_page and is_written else ""


def read(page: Screen, query: Iterable[tuple[str, str]]) -> tuple[list[str], Any]:
    """The sides and the options that the query of an address names; UsageError for what is none, or too much."""
    pairs = [(name, value.strip()) for name, value in query]
    if len(pairs) > MOST_VALUES:
        raise UsageError(f"{len(pairs)} values in one address", remedy=f"a page takes {MOST_VALUES}")
    sides = [value for name, value in pairs if name == "side" and value] if page.sides else []
    kind = MatrixOptions if page.options is DiffPageOptions and len(sides) > 2 else page.options
    named = {_bare(how.name): (field, how) for field, how in spelled(kind).items()}
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        check_text(name, value, LONGEST_NAME)
        if not value:
            continue  # an empty field of a form
        if name in named:
            given.setdefault(name, []).append(value)
        elif name != "side" or not page.sides:
            raise UsageError(f"{page.title} has no option {name!r}", remedy=f"it has {', '.join(named) or 'none'}")
    if len(sides) > page.sides:
        raise UsageError(f"{len(sides)} sides", remedy=f"name {page.sides} at most")
    return sides, kind(**{named[name][0]: _value(named[name][1], given[name]) for name in given})


def _value(how: Declared, texts: list[str]) -> Any:
    if how.repeats:
        return how.value(texts, _HELP)
    if len(texts) > 1:
        raise UsageError(f"{_bare(how.name)} has {len(texts)} values", remedy="give one")
    if how.kind is bool:
        if texts[0] != "1":
            raise UsageError(f"{_bare(how.name)} is a switch", remedy=f"write {_bare(how.name)}=1, or leave it out")
        return True
    return how.value(texts[0], _HELP)


def check_text(name: str, value: str, longest: int = LONGEST) -> None:
    """UsageError for a text of an address or form that is too long, or holds control characters."""
    if len(name) > longest or len(value) > longest:
        raise UsageError(f"{name[:20]!r} has {len(value):,} characters", remedy=f"give {longest} at most")
    if not (is_plain(name) and is_plain(value)) or any("\ud800" <= char <= "\udfff" for char in name + value):
        raise UsageError(f"{name[:20]!r} holds control characters", remedy="write it on one line, as plain text")


def _bare(name: str) -> str:
    """The name of an option in a query: `--workload` is `workload`, `KEY` is `key`."""
    return name.removeprefix("--").lower()


def texts_of(options: Struct) -> Texts:
    """What differs from the defaults, as `read` takes it."""
    return [pair for name, how in spelled(type(options)).items() for pair in _texts(name, how, options)]


@cache
def defaults_of(kind: type[Struct]) -> Mapping[str, Any]:
    """Return the default of each field of an options struct: to look at all of them takes as long as a small page."""
    fields = structs.fields(kind)
    return {one.name: one.default if one.default is not NODEFAULT else one.default_factory() for one in fields}


def _texts(name: str, how: Declared, options: Struct) -> Iterator[tuple[str, str]]:
    value = getattr(options, name)
    if value == defaults_of(type(options))[name]:
        return
    if value is True:
        yield how.name, ""
    elif isinstance(value, Mapping):
        yield from ((how.name, f"{key}={one}") for key, one in value.items())
    elif how.name == "--state" and value in (STATES, OPEN_STATES):
        yield how.name, "all" if value == STATES else "open"
    elif isinstance(value, tuple):
        yield from ((how.name, str(one).replace(" ", "-") if how.name == "--state" else str(one)) for one in value)
    else:
        yield how.name, f"{value / NS_PER_US:.12g}" if how.option.read is microseconds else str(value)


def query_of(sides: Sequence[str], texts: Texts) -> Texts:
    """Names and values of the query of an address."""
    return [*(("side", side) for side in sides), *((_bare(name), value or "1") for name, value in texts)]


def address(page: Screen, about: str, sides: Sequence[str], texts: Texts, suffix: str = "") -> str:
    """The address of a page; `suffix`: of a file with the same, such as `.json`."""
    path = page.path.format(quote(about, safe="")) if page.path != "/" or not suffix else "/board"
    query = urlencode(query_of(sides, texts), errors="replace")
    return f"{path}{suffix}{'?' if query else ''}{query}"


def address_of(link: Target) -> str:
    """Where a row of a document leads."""
    if link.page == CUT_CALL:
        return _address_of_call(dict(link.query))
    page = PAGES[link.page]
    about = next((value for name, value in link.query if name in ("ID", "RUN")), "")
    sides = [value for name, value in link.query if name == "side"]
    return address(page, about, sides, [pair for pair in link.query if pair[0] not in ("ID", "RUN", "side")])


def _address_of_call(query: Mapping[str, str]) -> str:
    """Return the address of the step of a call; what is to be selected in it stands behind, for a script."""
    step = address(CUT, query["RUN"], (), [(name, query[name]) for name in ("--step", "--rank")])
    return f"{step}#ts={query['ts']}&dur={query['dur']}"


def command(page: Screen, names: Sequence[str], texts: Texts) -> str:
    """The command line for the same; `names`: its arguments."""
    keys = [value for name, value in texts if name == "KEY"]
    options = [part for name, value in texts if name not in ("KEY", PAGE, ICICLE) for part in (name, value) if part]
    return command_of(("tracker", *page.command.split()), [*names, *keys], options)


def number(text: str, what: str) -> int:
    """The number in an address; NotFoundError for what is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise NotFoundError(f"there is no {what} {text[:40]!r}", remedy=f"/{what}/12 is the address of one")
    return int(text)


def side(store: Store, text: str, workload: str | None) -> str:
    """A side of the database in the form in which no command takes it for a path; NotFoundError for what is none.

    What is found does not depend on which files there are, so that no answer gives that away.
    """
    looks_like_path = text.startswith((".", "/", "~", "\\")) or text.endswith((".json", ".json.gz"))
    if not looks_like_path and not references.exists(text):
        return text
    try:
        run_ids, rank = references.resolve(store, text, workload)
    except UsageError as error:
        if looks_like_path:
            raise NotFoundError(
                f"{text!r} is no version, branch or run, and a page reads no files",
                remedy="tracker versions lists versions",
            ) from error
        raise NotFoundError(error.problem, remedy=error.remedy) from error
    return ",".join(f"run:{run_id}{'' if rank is None else f':rank{rank}'}" for run_id in run_ids)
