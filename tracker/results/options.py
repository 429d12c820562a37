"""What a user asks for: which rows, how two sides are compared, what of a run is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from tracker.errors import UsageError
from tracker.results.columns import LOG_METRICS
from tracker.results.words import GRAINS, MATCHES, SECTIONS, TREES


def check_sections(words: Iterable[str]) -> None:
    """UsageError for a word that is not in SECTIONS."""
    check_words("section", words, SECTIONS)


def check_words(what: str, words: Iterable[str], choices: Sequence[str]) -> None:
    """UsageError that names the choices for a word that is none of them; `what` says what the words are."""
    for word in words:
        if word not in choices:
            raise UsageError(f"no {what} {word!r}", remedy=f"choose from {', '.join(choices)}")


def _check_tree(words: Sequence[str], depth: int | None) -> None:
    if len(words) > 1:
        raise UsageError(f"--by {' and '.join(words)}: two trees at a time", remedy="ask for one after the other")
    if depth is not None and depth < 1:
        raise UsageError(f"a tree of {depth} levels", remedy="give a depth of 1 or more")
    if depth is not None and not words:
        raise UsageError("a depth without a tree", remedy=f"choose the tree as well: --by {', '.join(TREES)}")


class Selection(Struct, frozen=True, kw_only=True):
    """Which rows are looked at, and how paths on disk are read. None or empty lets everything through.

    `op`, `module`, `kind`, `group` (the role of a communication group): glob patterns, case matters. `minimum_ns` drops
    rows below it (in a diff: on both sides).
    `on_progress(label, done, total)`: bytes read of the file `label`.
    """

    workload: str | None = None
    module: str | None = None
    op: str | None = None
    kind: str | None = None
    group: str | None = None
    ranks: tuple[int, ...] = ()
    stage: int | None = None
    minimum_ns: int | None = None
    format: str | None = None
    flow_category: str | None = None
    allow_partial: bool = False
    skip_bad_rows: bool = False
    max_bytes: int | None = None
    on_progress: Callable[[str, int, int], None] | None = None


class DiffOptions(Selection, frozen=True, kw_only=True):
    """How two sides are compared; the defaults are those of `tracker diff`.

    `match`: ops are the same by name and shapes, or by name alone. `max_kernels`: an op that launches more kernels per
    call is replaced by its children; None never. `op_map`: baseline name -> candidate name of equivalent ops.
    `only`: words of SECTIONS, empty for all. `baseline_steps`, `candidate_steps`: only these steps of the profiler's
    markers, empty for all. `by`: at most one word of TREES, `depth`: how many levels of it, None for all. `force`: show
    the tables of sides that do different work, too. `config`: only runs whose configuration has these values. Raises
    UsageError for a word that is none of the choices.
    """

    baseline_steps: tuple[int, ...] = ()
    candidate_steps: tuple[int, ...] = ()
    match: Literal["shape", "name"] = "shape"
    max_kernels: int | None = None
    op_map: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    depth: int | None = None
    force: bool = False
    config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_words("match", (self.match,), MATCHES)
        check_sections(self.only)
        check_words("tree", self.by, TREES)
        _check_tree(self.by, self.depth)

    @property
    def tree(self) -> str:
        """What the rows of the tree are, "" where none is asked for."""
        return next(iter(self.by), "")


class ShowOptions(Selection, frozen=True, kw_only=True):
    """What of a run is shown: `by` adds the grain columns `rank` and / or `step`, and one word of TREES asks for a tree
    of `depth` levels (None: all); any other word is a UsageError.

    `steps`: only these steps of the profiler's markers, empty for all.
    """

    steps: tuple[int, ...] = ()
    by: tuple[str, ...] = ()
    depth: int | None = None

    def __post_init__(self) -> None:
        check_words("grain", self.by, (*GRAINS, *TREES))
        _check_tree([word for word in self.by if word in TREES], self.depth)

    @property
    def grains(self) -> tuple[str, ...]:
        """The grain columns that are asked for."""
        return tuple(word for word in self.by if word in GRAINS)

    @property
    def tree(self) -> str:
        """What the rows of the tree are, "" where none is asked for."""
        return next((word for word in self.by if word in TREES), "")


class LogOptions(Struct, frozen=True, kw_only=True):
    """What an optimisation log shows; the defaults are those of `tracker log`.

    `workload`: None for the only one there is. `baseline`: label of a version; None for the pinned one, else the first
    version of each column. `metric`: a word of LOG_METRICS; `best` is the throughput of runs that state one and the
    step time of the others. `config`: only columns with these values. `by`: keys of run tags that part columns as well.
    `last`: only the newest N versions, None for all.
    """

    workload: str | None = None
    baseline: str | None = None
    metric: str = "best"
    config: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    by: tuple[str, ...] = ()
    last: int | None = None

    def __post_init__(self) -> None:
        check_words("metric", (self.metric,), LOG_METRICS)
        if self.last is not None and self.last < 1:
            raise UsageError(f"the last {self.last} versions", remedy="give a number of 1 or more")
