"""What a user chooses: which rows, how two sides are compared, what of a run is shown. Each option is declared beside
the field that holds it, for the command line, its completion and its help.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from msgspec import Struct, field

from tracker.errors import SourceError, UsageError
from tracker.limits.touch import touch
from tracker.results.columns import GRAINS, LOG_METRICS, TREES
from tracker.results.sections import SECTIONS
from tracker.units import NS_PER_US, is_plain, us_to_ns

__all__ = ["CallsOptions", "DiffOptions", "LogOptions", "Selection", "ShowOptions"]

_STEPS: Final = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?\d{1,18}", re.ASCII)
_MOST_STEPS: Final = 10_000  # each is a parameter of a database query
_LARGEST_US: Final = 2**63 / NS_PER_US
_LARGEST: Final = 2**63 - 1  # what fits into 8 bytes, in which the database holds numbers
_MAPPING: Final = get_origin(Mapping[str, str])

LABELS: Final = "Labels"
SIDES: Final = "Sides"
ROWS: Final = "Rows"
OUTPUT: Final = "Output"
READING: Final = "Reading files"
"""Groups of options in the help, in this order; options without a group come first."""


Offers = Literal["", "side", "version", "workload", "branch", "run", "series", "finding", "device"]


class Option(NamedTuple):
    """An option of the command line. Its name is that of the field, `--candidate-steps`, unless `name` gives another.

    `words`: the values to choose from, `what`: what errors call one. `least`, `most`: limits of a number. `read`: text
    and option name -> value, for a field that is written in another way, `values`: to choose from then. `variable`: the
    environment variable with the default. `offers`: what a shell completes it with, out of the database.
    """

    help: str
    metavar: str = ""
    name: str = ""
    short: str = ""
    group: str = ""
    words: Sequence[str] = ()
    what: str = ""
    values: Sequence[str] = ()
    least: int = -_LARGEST
    most: int = _LARGEST
    read: Callable[[str, str], Any] | None = None
    variable: str = ""
    positional: bool = False
    offers: Offers = ""


NO_OPTION: Final = Option("")
"""Of a field that is none."""


def steps(text: str, option: str) -> tuple[int, ...]:
    """Return the step numbers in `text`, in order; UsageError for anything but numbers and ranges.

    >>> steps("12,14-16", "--step")
    (12, 14, 15, 16)
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _STEPS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not 0 <= last - first < _MOST_STEPS or len(found) > _MOST_STEPS:
            raise UsageError(
                f"{option} {text!r} names no steps", remedy=f"write a number, a range or several: {option} 12,14-16"
            )
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def microseconds(text: str, option: str) -> int:
    """Return a time in microseconds as nanoseconds; UsageError for what is no time, or beyond the database's range.

    >>> microseconds("2.5", "--min-us")
    2500
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < _LARGEST_US:
        raise UsageError(f"{option} {text!r} is not a number of microseconds", remedy=f"give 0 or more: {option} 10")
    return us_to_ns(value)


def words(text: str, option: str) -> tuple[str, ...]:
    """Return words that commas separate, each once; UsageError where there is none.

    >>> words("overall, operator", "--only")
    ('overall', 'operator')
    """
    found = dict.fromkeys(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise UsageError(f"{option} names nothing", remedy=f"give a word, or leave out {option}")
    return tuple(found)


def pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """Return `KEY=VALUE` arguments of `option` as a mapping.

    >>> pairs(["batch=32", "precision=bf16"], "--config")
    {'batch': '32', 'precision': 'bf16'}
    """
    found: dict[str, str] = {}
    for text in values:
        key, separator, value = one_line(option, text).partition("=")
        if not separator or not key.strip():
            raise UsageError(f"{option} {text!r} is not KEY=VALUE", remedy=f"write it like {option} batch=32")
        if key.strip() in found:
            raise UsageError(f"{option} names {key.strip()!r} twice", remedy="give each key once")
        found[key.strip()] = value.strip()
    return found


def one_line(option: str, text: str) -> str:
    """Return `text`; UsageError for control characters, which would act on the terminals that show it."""
    if not is_plain(text):
        raise UsageError(f"{option} {text!r} holds control characters", remedy="write it on one line, as plain text")
    return text


def check_path(path: Path) -> Path:
    """Return `path`; SourceError for a name that the system cannot look up, such as one that is too long."""
    try:
        with touch(path):
            path.exists()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(path, "", f"cannot be read ({reason})", remedy="check the path") from error
    return path


class Declared(NamedTuple):
    """A field or parameter `field`: its type without `| None`, whether it had that, and its option, if it is one."""

    field: str
    kind: Any
    is_optional: bool
    option: Option

    @property
    def name(self) -> str:
        """How it is written on the command line, also in errors."""
        if self.option.positional:
            return self.option.metavar
        return self.option.name or f"--{self.field.replace('_', '-')}"

    @property
    def words(self) -> Sequence[str]:
        """The values to choose from."""
        return self.option.words or (get_args(self.kind) if get_origin(self.kind) is Literal else ())

    @property
    def repeats(self) -> bool:
        """Whether it may be given more than once."""
        return get_origin(self.kind) in (list, tuple, _MAPPING)

    def value(self, given: Any, help: str) -> Any:
        """The value of the text, texts or flag that is given; UsageError with `help` for what is none."""
        texts, origin = given if self.repeats else [given], get_origin(self.kind)
        if self.kind is bool:
            return given
        if origin is _MAPPING and self.option.read is None:
            return pairs(texts, self.name)
        values = [self._one(text, help) for text in texts]
        if not self.repeats:
            return values[0]
        if origin is _MAPPING:
            return {key: value for found in values for key, value in found.items()}
        if self.option.read is not None:
            values = [item for found in values for item in found]
        return values if origin is list else tuple(dict.fromkeys(values))

    def _one(self, text: str, help: str) -> Any:
        option, kind = self.option, get_args(self.kind)[0] if self.repeats else self.kind
        for word in text.split(",") if option.read is not None else [text]:
            if self.words and word.strip() not in self.words and (word.strip() or option.read is None):
                problem = f"{self.name} {word.strip()!r} must be one of: {', '.join(self.words)}"
                raise UsageError(problem, remedy=help)
        if kind is Path:
            return check_path(Path(text))
        if not text.isprintable() and any("\ud800" <= char <= "\udfff" for char in text):
            raise UsageError(f"{self.name} {text!r} is not UTF-8 text", remedy=help)
        if option.read is not None:
            return option.read(text, self.name)
        if kind is not int:
            return text if option.positional else one_line(self.name, text)
        number = int(text) if _NUMBER.fullmatch(text) else _LARGEST + 1
        if not option.least <= number <= option.most:
            raise UsageError(f"{self.name} {text!r} is not {self._number}", remedy=help)
        return number

    @property
    def _number(self) -> str:
        least, most = self.option.least, self.option.most
        limits = "" if least < 0 else f" of {least} or more" if most == _LARGEST else f" from {least} to {most}"
        return f"a whole number{limits}"

    def check(self, value: Any) -> None:
        """UsageError for a value of the field, or one of several, that the words or limits of the option exclude."""
        if self.words:
            check_words(self.option.what or self.name.lstrip("-"), [value], self.option.values or self.words)
        elif isinstance(value, int) and not self.option.least <= value <= self.option.most:
            raise UsageError(f"option {self.field} is {value}", remedy=f"give {self._number}")


@cache
def declared(kind: type) -> dict[str, Declared]:
    """Return what the fields of a struct are declared as."""
    found: dict[str, Declared] = {}
    for base in reversed(kind.__mro__):
        names = vars(sys.modules[base.__module__])
        for name, text in inspect.get_annotations(base).items():
            try:
                found[name] = split(name, eval(text, names) if isinstance(text, str) else text)
            except NameError:  # a name for the type checker only
                found[name] = Declared(name, object, True, NO_OPTION)
    return found


def split(name: str, hint: Any) -> Declared:
    """Return what a type hint declares.

    >>> split("depth", int | None)[1:3]
    (<class 'int'>, True)
    """
    option = next((each for each in get_args(hint)[1:] if isinstance(each, Option)), NO_OPTION)
    kind = hint if option is NO_OPTION else get_args(hint)[0]
    is_union = get_origin(kind) in (Union, UnionType)
    choices = [each for each in get_args(kind) if is_union and each is not NoneType]
    return Declared(name, choices[0] if choices else kind, bool(choices), option)


WORKLOAD: Final = Option(
    "Only this workload. Default: TRACKER_WORKLOAD, else the settings file, else any.",
    "NAME",
    group=SIDES,
    variable="TRACKER_WORKLOAD",
    offers="workload",
)
BRANCH: Final = Option(
    "Only this branch of the workload; main for the main line. Default: TRACKER_BRANCH, else the main line.",
    "NAME",
    group=SIDES,
    variable="TRACKER_BRANCH",
    offers="branch",
)
"""Stands beside each option WORKLOAD of the command line, and is a part of what that one names."""
CONFIG: Final = Option(
    "Only configurations with this value, such as batch=32; repeatable. Default: all.", "KEY=VALUE", group=SIDES
)
DEVICE: Final = Option("Only runs on this hardware model. Default: any.", "MODEL", group=SIDES, offers="device")


SEARCH_RUNS: Final = Option(
    "Only runs with all of these words, in any case, in their version, workload, device, configuration, commit, note, "
    "tags or files. Default: any.",
    "WORDS",
)


class Options(Struct, frozen=True):
    """Options of a command and a function; UsageError for a word or number that the option of its field excludes."""

    def __post_init__(self) -> None:
        for how in declared(type(self)).values():
            value = getattr(self, how.field)
            for one in value or () if how.repeats else () if value is None else (value,):
                how.check(one)


def only_sections(sections: Sequence[str]) -> Option:
    """The option `--only` of a report with these sections."""
    return Option(
        f"Only these sections, separated by commas: {', '.join(sections)}. Default: a first screen of text and "
        "Markdown, else all.",
        "SECTION,...",
        group=OUTPUT,
        words=sections,
        what="section",
        read=words,
    )


Only = Annotated[tuple[str, ...], only_sections(SECTIONS)]
TREE: Final = Option(
    "A tree instead of the tables: modules, phases of a step, ops, or kernels. With three or more sides, the rows of "
    "the matrix: op, kernel, communication or module. Default: no tree; op.",
    group=ROWS,
    words=TREES,
    what="tree",
)
ShowBy = Annotated[
    tuple[str, ...],
    Option(
        "step, rank: split all tables by it. module, phase, op, kernel: a tree instead of the tables, most "
        "expensive first. Repeatable: --by module --by rank. Default: sums over steps and ranks.",
        group=ROWS,
        words=(*GRAINS, *TREES),
        what="grain",
    ),
]
Depth = Annotated[int | None, Option("Levels of the tree of --by. Default: all.", "N", group=ROWS, least=1)]
_CHOSEN: Final = "Only these steps of the {}, by number: 12, 12-15 or 12,14-16. Default: all."
STEP_KIND: Final = Option(
    "Only steps of this kind: DECODE. Default: the worst kind.",
    "KIND",
    group=SIDES,
)
Ranks = Annotated[
    tuple[int, ...], Option("Only this rank; repeatable. Default: all.", "N", name="--rank", group=ROWS, least=0)
]
Stage = Annotated[int | None, Option("Only this pipeline stage. Default: all.", "N", group=ROWS, least=0)]
Steps = Annotated[
    tuple[int, ...], Option(_CHOSEN.replace(" of the {}", ""), "STEPS", name="--step", group=ROWS, read=steps)
]
Microbatches = Annotated[
    int | None,
    Option(
        "Microbatches of a step, for the pipeline. Default: what the configuration states.", "M", group=ROWS, least=1
    ),
]
InputFormat = Annotated[
    str | None,
    Option("The profiler's format, if it is not recognised. Default: recognise it.", "NAME", name="--input-format",
           group=READING),
]  # fmt: skip


def check_words(what: str, chosen: Iterable[str], choices: Sequence[str]) -> None:
    """UsageError with the choices for a word that is not among them; `what` says what the words are."""
    for word in chosen:
        if word not in choices:
            raise UsageError(f"no {what} {word!r}", remedy=f"choose from {', '.join(choices)}")


def _check_tree(chosen: Sequence[str], depth: int | None) -> None:
    if len(chosen) > 1:
        raise UsageError(f"--by {' and '.join(chosen)}: two trees at a time", remedy="show one after the other")
    if depth is not None and not chosen:
        raise UsageError("a depth without a tree", remedy=f"choose the tree as well: --by {', '.join(TREES)}")


def _op_map(text: str, option: str) -> dict[str, str]:
    """The op map in `text`, which is JSON or the path of a JSON file: baseline name -> candidate name."""
    inline = text.lstrip().startswith(("{", "["))
    place = option if inline else text
    remedy = """write a JSON object of names, such as {"aten::mul": "npu::mul"}"""
    try:
        found = json.loads(text if inline else Path(text).read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(place, "", f"the op map cannot be read ({error.strerror})", remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise SourceError(place, f"byte {error.start}", "the op map is not text", remedy=remedy) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise SourceError(place, where, f"the op map is not JSON ({error.msg})", remedy=remedy) from error
    if not isinstance(found, dict):
        raise SourceError(place, "", f"the op map is a JSON {type(found).__name__}, not an object", remedy=remedy)
    for name, other in found.items():
        if not isinstance(other, str):
            raise SourceError(place, f"key {name!r}", f"the op map has {other!r} instead of a name", remedy=remedy)
    return found


class Reading(Options, frozen=True, kw_only=True):
    """How profiles on disk are read. `loaders`: what ranges of a team's own data loaders hold in their names.
    `on_progress(label, done, total)`: bytes read of the file `label`.
    """

    format: InputFormat = None
    flow_category: Annotated[
        str | None,
        Option(
            "Category of the flow arrows from ops to kernels, such as async_gpu, in traces without correlation ids. "
            "Default: recognise it.",
            "NAME",
            group=READING,
        ),
    ] = None
    allow_partial: Annotated[
        bool,
        Option(
            "Accept a truncated trace up to where it ends; its totals are too low. Default: refuse it.", group=READING
        ),
    ] = False
    skip_bad_rows: Annotated[
        bool, Option("Leave out unreadable rows and report how many. Default: an error.", group=READING)
    ] = False
    max_bytes: int | None = None
    loaders: tuple[str, ...] = ()
    on_progress: Callable[[str, int, int], None] | None = None


class Selection(Reading, frozen=True, kw_only=True):
    """Which rows to show, and how profiles on disk are read. None or empty is no limit. Patterns are case-sensitive."""

    workload: Annotated[str | None, WORKLOAD] = None
    module: Annotated[
        str | None, Option("Only ops in modules with this path, such as '*/Attention_0*'.", "PATTERN", group=ROWS)
    ] = None
    op: Annotated[
        str | None,
        Option("Only ops with this name, such as 'aten::*norm*', and their kernels.", "PATTERN", group=ROWS),
    ] = None
    kind: Annotated[
        str | None, Option("Only communication of this kind, such as all_reduce.", "PATTERN", group=ROWS)
    ] = None
    group: Annotated[
        str | None,
        Option("Only communication in process groups with this role, such as dp or 'tp*'.", "PATTERN", group=ROWS),
    ] = None
    ranks: Ranks = ()
    stage: Stage = None
    minimum_ns: Annotated[
        int | None,
        Option(
            "Leave out rows below this many microseconds per step. Default: 0.",
            "US",
            name="--min-us",
            group=ROWS,
            least=0,
            read=microseconds,
        ),
    ] = None


class DiffOptions(Selection, frozen=True, kw_only=True):
    """How two sides are compared; the defaults are those of `tracker diff`.

    `op_map`: baseline name -> candidate name. `with_flame`: also what a drawing of the tree needs. UsageError for a
    word that is not among the choices.
    """

    baseline_steps: Annotated[
        tuple[int, ...], Option(_CHOSEN.format("baseline"), "STEPS", name="--baseline-step", group=SIDES, read=steps)
    ] = ()
    candidate_steps: Annotated[
        tuple[int, ...], Option(_CHOSEN.format("candidate"), "STEPS", name="--candidate-step", group=SIDES, read=steps)
    ] = ()
    step_kind: Annotated[str | None, STEP_KIND] = None
    match: Annotated[
        Literal["shape", "name"],
        Option("Match ops by name and input shapes, or by name only (for another batch size).", group=ROWS),
    ] = "shape"
    max_kernels: Annotated[
        int | None,
        Option(
            "Compare the children of ops that launch more kernels than this per call. Default: never.",
            "N",
            group=ROWS,
            least=1,
        ),
    ] = None
    single_kernels: Annotated[
        bool,
        Option(
            "In a workbook, list each kernel of an op with its task id.",
            group=ROWS,
        ),
    ] = False
    op_map: Annotated[
        Mapping[str, str],
        Option(
            'Ops that changed their name, baseline to candidate, as JSON or a JSON file: \'{"SGD.step": '
            '"NpuFusedSGD.step"}\'. Default: none.',
            "FILE|JSON",
            group=ROWS,
            read=_op_map,
        ),
    ] = field(default_factory=dict)
    only: Only = ()
    by: Annotated[tuple[str, ...], TREE] = ()
    depth: Depth = None
    force: Annotated[
        bool,
        Option(
            "Also compare sides that do different work (workload, model, step, or under half of the operators shared). "
            "Default: print only the reason.",
            group=SIDES,
        ),
    ] = False
    config: Annotated[Mapping[str, str], CONFIG] = field(default_factory=dict)
    with_flame: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if "efficiency" in self.only:
            raise UsageError("efficiency is of one run", remedy="tracker show RUN --only efficiency")
        _check_tree(self.by, self.depth)

    @property
    def tree(self) -> str:
        """What the rows of the tree are, "" without one."""
        return next(iter(self.by), "")


class ShowOptions(Selection, frozen=True, kw_only=True):
    """What of a run is shown. `by`: `rank` and `step` split all tables, and one word of TREES makes a tree.
    `with_advice`: also what could make it faster, and how near operators come to what the device can do.
    """

    steps: Steps = ()
    step_kind: Annotated[str | None, STEP_KIND] = None
    by: ShowBy = ()
    depth: Depth = None
    with_advice: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_tree([word for word in self.by if word in TREES], self.depth)

    @property
    def grains(self) -> tuple[str, ...]:
        """The grain columns of the tables."""
        return tuple(word for word in self.by if word in GRAINS)

    @property
    def tree(self) -> str:
        """What the rows of the tree are, "" without one."""
        return next((word for word in self.by if word in TREES), "")


KindOfCalls = Literal["operator", "kernel", "collective", "idle"]
KINDS_OF_CALLS: Final[tuple[KindOfCalls, ...]] = get_args(KindOfCalls)
"""The kinds of what calls can be listed of."""

_APPLIES_TO: Final = {"module": "operator", "op": "kernel", "group": "collective", "kind": "", "minimum_ns": ""}
"""Filters -> the kind of calls that they choose from; "" for none."""
_SPELLED: Final = {"minimum_ns": "--min-us"}

CALLS: Final = Option(
    "The single calls of this operator, kernel, kind of collective, or cause or place of idle time, the slowest first.",
    "NAME",
    group=ROWS,
)
CALLS_OF: Final = Option("Of what --calls has the name, where it names several.", group=ROWS, words=KINDS_OF_CALLS)
SHAPES: Final = Option("With --calls: only calls with these input shapes, as tracker show writes them.", "SHAPES",
                       group=ROWS)  # fmt: skip


class CallsOptions(Selection, frozen=True, kw_only=True):
    """Which calls of a run are listed: those of the name `calls`, which `calls_of` says the kind of.

    `module` chooses among operators, `op` among kernels, `group` among collectives; `shapes` among operators and
    kernels.
    """

    calls: Annotated[str | None, CALLS] = None
    calls_of: Annotated[KindOfCalls | None, CALLS_OF] = None
    shapes: Annotated[str | None, SHAPES] = None
    steps: Steps = ()
    step_kind: Annotated[str | None, STEP_KIND] = None

    def check_kind(self, kind: str) -> None:
        """UsageError for a filter that chooses nothing among the calls of this kind."""
        for name, of_kind in _APPLIES_TO.items():
            if getattr(self, name) is not None and kind != of_kind:
                option = _SPELLED.get(name, f"--{name}")
                remedy = f"it is for calls of {of_kind}s" if of_kind else "leave it out: --top N lists the slowest ones"
                raise UsageError(f"{option} chooses nothing among calls of {_named(kind)}", remedy=remedy)
        if self.shapes is not None and kind not in ("operator", "kernel"):
            raise UsageError(f"--shapes chooses nothing among calls of {_named(kind)}", remedy="leave it out")


def _named(kind: str) -> str:
    return {"operator": "an operator", "idle": "idle time"}.get(kind, f"a {kind}")


class LogOptions(Options, frozen=True, kw_only=True):
    """What an optimisation log shows; the defaults are those of `tracker log`."""

    workload: Annotated[
        str | None,
        Option(
            "The workload. Default: TRACKER_WORKLOAD, else the settings file, else the only one in the database.",
            "NAME",
            variable="TRACKER_WORKLOAD",
            offers="workload",
        ),
    ] = None
    baseline: Annotated[
        str | None,
        Option(
            "The version to compare with. Default: the pinned one, else the first of each column.",
            "LABEL",
            offers="version",
        ),
    ] = None
    metric: Annotated[
        str,
        Option(
            "What the cells hold: throughput, step time, E2E of a step, or peak memory; best: the throughput where a "
            "run states one, else the step time.",
            words=LOG_METRICS,
        ),
    ] = "best"
    config: Annotated[Mapping[str, str], CONFIG] = field(default_factory=dict)
    device: Annotated[str | None, DEVICE] = None
    by: Annotated[
        tuple[str, ...],
        Option("Also a column for each value of this run tag; repeatable. Default: columns are configurations.", "KEY"),
    ] = ()
    last: Annotated[int | None, Option("Only the newest N versions. Default: all.", "N", least=1)] = None
