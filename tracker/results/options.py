"""What a user chooses: which rows, how two sides are compared, what of a run is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Struct, field

from tracker.errors import SourceError, UsageError
from tracker.results.columns import LOG_METRICS
from tracker.results.option import OUTPUT, READING, ROWS, SIDES, Option, microseconds, steps, words
from tracker.results.words import GRAINS, MATCHES, SECTIONS, TREES

WORKLOAD: Final = Option(
    "Only this workload. Default: TRACKER_WORKLOAD, else the settings file, else any.",
    "NAME",
    group=SIDES,
    variable="TRACKER_WORKLOAD",
)
CONFIG: Final = Option(
    "Only configurations with this value, such as batch=32; repeatable. Default: all.", "KEY=VALUE", group=SIDES
)
DEVICE: Final = Option("Only runs on this hardware model. Default: any.", "MODEL", group=SIDES)
InputFormat = Annotated[
    str | None,
    Option(
        "The profiler's format, if it is not recognised. Default: recognise it.",
        "NAME",
        name="--input-format",
        group=READING,
    ),
]
FlowCategory = Annotated[
    str | None,
    Option(
        "Category of the flow arrows from ops to kernels, such as async_gpu, in traces without correlation ids. "
        "Default: recognise it.",
        "NAME",
        group=READING,
    ),
]
AllowPartial = Annotated[
    bool,
    Option("Accept a truncated trace up to where it ends; its totals are too low. Default: refuse it.", group=READING),
]
SkipBadRows = Annotated[
    bool, Option("Leave out unreadable rows and report how many. Default: an error.", group=READING)
]
ONLY: Final = Option(
    f"Only these sections, separated by commas: {', '.join(SECTIONS)}. Default: a first screen of text and Markdown, "
    "all sections in other formats.",
    "SECTION,...",
    group=OUTPUT,
    words=SECTIONS,
    read=words,
)
DEPTH: Final = Option("Levels of the tree of --by. Default: all.", "N", group=ROWS, least=1)
_STEPS: Final = "Only these steps of the {}, by number: 12, 12-15 or 12,14-16. Default: all."


def check_sections(chosen: Iterable[str]) -> None:
    """UsageError for a word that is not in SECTIONS."""
    check_words("section", chosen, SECTIONS)


def check_words(what: str, chosen: Iterable[str], choices: Sequence[str]) -> None:
    """UsageError with the choices for a word that is not among them; `what` says what the words are."""
    for word in chosen:
        if word not in choices:
            raise UsageError(f"no {what} {word!r}", remedy=f"choose from {', '.join(choices)}")


def _check_tree(chosen: Sequence[str], depth: int | None) -> None:
    if len(chosen) > 1:
        raise UsageError(f"--by {' and '.join(chosen)}: two trees at a time", remedy="show one after the other")
    if depth is not None and depth < 1:
        raise UsageError(f"a tree of {depth} levels", remedy="give a depth of 1 or more")
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


class Reading(Struct, frozen=True, kw_only=True):
    """How profiles on disk are read, where no rows are chosen."""

    format: InputFormat = None
    flow_category: FlowCategory = None
    allow_partial: AllowPartial = False
    skip_bad_rows: SkipBadRows = False


class Selection(Struct, frozen=True, kw_only=True):
    """Which rows to show, and how profiles on disk are read. None or empty is no limit. Patterns are case-sensitive.

    `on_progress(label, done, total)`: bytes read of the file `label`.
    """

    workload: Annotated[str | None, WORKLOAD] = None
    module: Annotated[
        str | None, Option("Only ops in modules with this path, such as '*/Attention_0*'.", "PATTERN", group=ROWS)
    ] = None
    op: Annotated[
        str | None,
        Option("Only ops with this name, such as 'aten::*norm*', and the kernels they launch.", "PATTERN", group=ROWS),
    ] = None
    kind: Annotated[
        str | None, Option("Only communication of this kind, such as all_reduce.", "PATTERN", group=ROWS)
    ] = None
    group: Annotated[
        str | None,
        Option("Only communication in process groups with this role, such as dp or 'tp*'.", "PATTERN", group=ROWS),
    ] = None
    ranks: Annotated[
        tuple[int, ...], Option("Only this rank; repeatable. Default: all.", "N", name="--rank", group=ROWS, least=0)
    ] = ()
    stage: Annotated[int | None, Option("Only this pipeline stage. Default: all.", "N", group=ROWS, least=0)] = None
    minimum_ns: Annotated[
        int | None,
        Option(
            "Leave out rows below this many microseconds per step. Default: 0.",
            "US",
            name="--min-us",
            group=ROWS,
            read=microseconds,
        ),
    ] = None
    format: InputFormat = None
    flow_category: FlowCategory = None
    allow_partial: AllowPartial = False
    skip_bad_rows: SkipBadRows = False
    max_bytes: int | None = None
    on_progress: Callable[[str, int, int], None] | None = None


class DiffOptions(Selection, frozen=True, kw_only=True):
    """How two sides are compared; the defaults are those of `tracker diff`.

    `op_map`: baseline name -> candidate name. UsageError for a word that is not among the choices.
    """

    baseline_steps: Annotated[
        tuple[int, ...], Option(_STEPS.format("baseline"), "STEPS", name="--baseline-step", group=SIDES, read=steps)
    ] = ()
    candidate_steps: Annotated[
        tuple[int, ...], Option(_STEPS.format("candidate"), "STEPS", name="--candidate-step", group=SIDES, read=steps)
    ] = ()
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
    only: Annotated[tuple[str, ...], ONLY] = ()
    by: Annotated[
        tuple[str, ...],
        Option(
            "A tree instead of the tables: modules, phases of a step, ops, or kernels. With three or more sides, the "
            "rows of the matrix: op, kernel, communication or module. Default: no tree; op.",
            group=ROWS,
            words=(*TREES, "communication"),
        ),
    ] = ()
    depth: Annotated[int | None, DEPTH] = None
    force: Annotated[
        bool,
        Option(
            "Also compare sides that do different work (workload, model, step, or under half of the operators shared). "
            "Default: print only the reason.",
            group=SIDES,
        ),
    ] = False
    config: Annotated[Mapping[str, str], CONFIG] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_words("match", (self.match,), MATCHES)
        check_sections(self.only)
        if "efficiency" in self.only:
            raise UsageError("efficiency is of one run", remedy="tracker show RUN --only efficiency")
        check_words("tree", self.by, TREES)
        _check_tree(self.by, self.depth)

    @property
    def tree(self) -> str:
        """What the rows of the tree are, "" without one."""
        return next(iter(self.by), "")


class ShowOptions(Selection, frozen=True, kw_only=True):
    """What of a run is shown. `by`: `rank` and `step` split all tables, and one word of TREES makes a tree.
    `with_advice`: also what could make it faster, and how near operators come to what the device can do.
    """

    steps: Annotated[
        tuple[int, ...],
        Option("Only these steps, by number: 12, 12-15 or 12,14-16. Default: all.", "STEPS", name="--step", group=ROWS,
               read=steps),
    ] = ()  # fmt: skip
    by: Annotated[
        tuple[str, ...],
        Option(
            "step, rank: split all tables by it. module, phase, op, kernel: a tree instead of the tables, most "
            "expensive first. Repeatable: --by module --by rank. Default: sums over steps and ranks.",
            group=ROWS,
            words=(*GRAINS, *TREES),
        ),
    ] = ()
    depth: Annotated[int | None, DEPTH] = None
    with_advice: bool = False

    def __post_init__(self) -> None:
        check_words("grain", self.by, (*GRAINS, *TREES))
        _check_tree([word for word in self.by if word in TREES], self.depth)

    @property
    def grains(self) -> tuple[str, ...]:
        """The grain columns of the tables."""
        return tuple(word for word in self.by if word in GRAINS)

    @property
    def tree(self) -> str:
        """What the rows of the tree are, "" without one."""
        return next((word for word in self.by if word in TREES), "")


class LogOptions(Struct, frozen=True, kw_only=True):
    """What an optimisation log shows; the defaults are those of `tracker log`."""

    workload: Annotated[
        str | None,
        Option(
            "The workload. Default: TRACKER_WORKLOAD, else the settings file, else the only one in the database.",
            "NAME",
            variable="TRACKER_WORKLOAD",
        ),
    ] = None
    baseline: Annotated[
        str | None,
        Option("The version to compare with. Default: the pinned one, else the first of each column.", "LABEL"),
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

    def __post_init__(self) -> None:
        check_words("metric", (self.metric,), LOG_METRICS)
        if self.last is not None and self.last < 1:
            raise UsageError(f"the last {self.last} versions", remedy="give a number of 1 or more")
