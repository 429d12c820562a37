"""A side of a comparison: its runs, captures and steps, and what the database answers about them.

Answers are asked once for all sides that are compared (`SharedAnswers`). What follows from them for one side is made
once, too (`LoadedSide.remember`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from functools import partial
from itertools import compress
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tracker.columns import Columns, Flags, objects
from tracker.compare.own_runs import OwnRuns
from tracker.results import Side
from tracker.results.machine_state import KEYS
from tracker.results.partial import Partial, find_partial, keep_whole
from tracker.schema.column_names import (
    E2E_NS,
    HAS_MEMORY,
    INPUT_SHAPES,
    KEY,
    KIND,
    NAME,
    OP,
    OP_INPUT_SHAPES,
    QUALITY_REASON,
    RANK,
    RUN_ID,
    SETTINGS,
    STEP_NS,
    VALUE,
)
from tracker.store import Store, queries
from tracker.units import format_numbers

T = TypeVar("T")
Rank = tuple[int, int]
"""A run and one of its ranks."""

GRAIN: Final = ("rank", "step")
"""How fine a question about a side is asked, so that its rows can be reduced."""
_TABLES: Final[Mapping[queries.Question, str]] = {
    queries.communication: "has_communication",
    queries.communication_tasks: "has_communication",
    queries.communication_links: "has_communication",
    queries.memory: HAS_MEMORY,
    queries.memory_allocators: HAS_MEMORY,
    queries.memory_owners: HAS_MEMORY,
    queries.memory_blocks: HAS_MEMORY,
    queries.api: "has_api",
    queries.idle: "has_idle",
    queries.kernel_metrics: "has_metrics",
    queries.memory_curve: "has_curve",
    queries.memory_peaks: "has_curve",
    queries.counters: "has_counters",
}
"""Question -> the column of `queries.filled_tables` that says of which runs it can find anything."""


class SharedAnswers(Struct, frozen=True, eq=False):
    """Answers about `run_ids`, the runs of all sides that are compared: each is asked once.

    Every statement costs a server a message and a plan. About other runs each side asks alone.
    """

    run_ids: frozenset[int] = frozenset()
    answers: dict[Hashable, Columns] = field(default_factory=dict)

    def query(self, run_ids: Sequence[int], key: Hashable, ask: Callable[[Sequence[int]], Columns]) -> Columns:
        """Return the answer of `ask` about these runs.

        It has a column run_id, and its rows have an order whatever runs are among them. `key`: what tells the question
        from other ones.
        """
        if not self.run_ids.issuperset(run_ids):
            return ask(run_ids)
        if key not in self.answers:
            self.answers[key] = ask(sorted(self.run_ids))
        return _rows_of_runs(self.answers[key], run_ids)

    def pruned_runs(self, store: Store, run_ids: Sequence[int]) -> set[int]:
        """Return those of these runs that lost their details."""

        def ask(every: Sequence[int]) -> Columns:
            return Columns({RUN_ID: np.array(sorted(queries.pruned(store, every)), dtype=np.int64)})

        return set(self.query(run_ids, "pruned", ask).listed(RUN_ID))


def _rows_of_runs(table: Columns, run_ids: Sequence[int]) -> Columns:
    """Return the rows of these runs, in their order."""
    rows = np.flatnonzero(np.isin(table.integers(RUN_ID), list(run_ids)))
    if len(rows) == len(table):
        return table
    # most tables are by run, and what follows each other needs no copy
    follow = len(rows) > 0 and rows[-1] - rows[0] < len(rows)
    return table.taken(slice(rows[0], rows[-1] + 1) if follow else rows)


class LoadedSide(Struct, frozen=True, eq=False):
    """A side with its database: `runs`, `captures` and `steps` as `store.queries` gives them, `captures.stage` filled
    with -1 for none, only the chosen ranks and steps.

    `chosen_steps`: None for all. `is_part`: the captures hold more steps than the chosen ones. `has_markers`: whether
    the captures hold step markers; a capture without any is one step, 0, as long as the capture. `warnings`: what the
    readers of a path warned of. `is_selection`: only some ranks of some runs, which no list of ranks tells. `shared`:
    answers about all sides that are compared. `cache`: answers about this side, and what was made from them.
    `own_runs`: which of its runs each row is of, None: of all. `left_out`: sentences on runs that were left out of the
    side, since they lost records that the others have. `reshaped`: operator and shapes -> the shapes under which it
    stands beside those of another side, whose inputs have another size. `step_kind`: its steps are those of one kind,
    "": of all.
    """

    side: Side
    store: Store
    runs: Columns
    captures: Columns
    steps: Columns
    ranks: tuple[int, ...] | None
    chosen_steps: tuple[int, ...] | None = None
    is_part: bool = False
    has_markers: bool = False
    warnings: tuple[str, ...] = ()
    is_selection: bool = False
    shared: SharedAnswers = field(default_factory=SharedAnswers)
    cache: dict[Hashable, Any] = field(default_factory=dict)
    own_runs: OwnRuns | None = None
    left_out: tuple[str, ...] = ()
    reshaped: Mapping[tuple[str, str], str] = field(default_factory=dict)
    step_kind: str = ""

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The runs of this side."""
        return self.side.run_ids

    @property
    def asked_steps(self) -> queries.Steps:
        """Of which steps the database is asked."""
        return queries.OfKind(self.step_kind) if self.step_kind else self.chosen_steps

    @property
    def measured_by(self) -> str:
        """What is the time of this side: `step_ns`, or `e2e_ns` where no step markers say when a step begins."""
        return STEP_NS if self.has_markers or not self.steps.known(E2E_NS).any() else E2E_NS

    def query(
        self,
        question: queries.Question,
        *,
        by: Sequence[str] = GRAIN,
        in_steps: bool = True,
        numbers: tuple[str, ...] | None = None,
    ) -> Columns:
        """Return the answer to a `question` of `store.queries` about the runs, ranks and steps of this side.

        `by`: its grain, finer by the rank where this side is a selection of ranks.
        `in_steps`: leave out what lies outside all steps, as the numbers per step must.
        `numbers`: only these of a level, None for all that it has.
        """
        if self.is_selection and "rank" not in by:
            by = (*by, "rank")

        def ask() -> Columns:
            chosen: dict[str, Any] = {
                "by": tuple(by), "ranks": self.ranks, "steps": self.asked_steps, "in_steps": in_steps,
            }  # fmt: skip
            if numbers is not None:
                chosen["numbers"] = numbers
            if not self.is_selection:
                return self.query_with(question, **chosen)
            # finer than what other sides ask
            run_ids = self._runs_with_rows(question, self.run_ids)
            return self._select_ranks(question(self.store, run_ids, **chosen))

        return self.remember((question, tuple(by), in_steps, numbers), lambda: self._with_other_shapes(ask()))

    def forget(self, *questions: queries.Question) -> None:
        """Give up the answers to these questions, which nobody will ask again: those by rank and step are large."""
        for answers in (self.cache, self.shared.answers):
            for key in [key for key in answers if isinstance(key, tuple) and key[0] in questions]:
                del answers[key]

    def query_with(self, question: queries.Question, **chosen: Any) -> Columns:
        """Return the answer to a `question` of `store.queries` about the runs of this side, with `chosen` parameters.

        It is asked once for all sides that are compared.
        """
        return self.shared.query(
            self.run_ids,
            (question, *chosen.items()),
            lambda run_ids: question(self.store, self._runs_with_rows(question, run_ids), **chosen),
        )

    def is_empty(self, question: queries.Question) -> bool:
        """Return whether the answer to a question has no rows; nothing is asked where no run has rows in its table."""
        return not self.may_have_rows(question) or not len(self.query(question))

    def may_have_rows(self, question: queries.Question) -> bool:
        """Return whether some run has rows in the table that is asked, whatever its ranks and steps."""
        return question not in _TABLES or bool((self.filled_tables().integers(_TABLES[question]) == 1).any())

    def query_op_tree(self, *, by_step: bool = False) -> Columns:
        """Return the calling contexts of this side, inside its steps; see `queries.op_tree`."""
        chosen = {"ranks": self.ranks, "steps": self.asked_steps}
        tree = self.query_with(queries.op_tree, **chosen, in_steps=True, by_step=by_step)
        return self._with_other_shapes(self._select_ranks(tree))

    def query_kernel_metrics(self) -> Columns:
        """Return what was measured in kernels, of all chosen ranks, selection or not; see `queries.kernel_metrics`."""
        return self.query_with(queries.kernel_metrics, ranks=self.ranks)

    def filled_tables(self) -> Columns:
        """Return which ranks have rows in which tables; see `queries.filled_tables`."""
        return self.remember("filled tables", lambda: self.query_with(queries.filled_tables))

    @property
    def partial(self) -> Partial:
        """What the checks of its captures found."""
        return self.remember(
            "partial", lambda: find_partial(self.captures.rows(RUN_ID, RANK, QUALITY_REASON, SETTINGS))
        )

    def machines(self) -> dict[int, dict[str, str]]:
        """Return what is known of the machine of each run; see `store.tracks.read_machines`."""
        found: dict[int, dict[str, str]] = {run_id: {} for run_id in self.run_ids}
        for run_id, kind, key, value in self.query_with(queries.facts).rows(RUN_ID, KIND, KEY, VALUE):
            if kind == "fact" and key in KEYS:
                found[run_id][key] = value
        return found

    def keep_own(self, table: str, rows: Columns, *, by_name: bool = False) -> Columns:
        """Return those of the rows of this side that are of the runs of their series; see `OwnRuns.keep`."""
        return rows if self.own_runs is None else self.own_runs.keep(table, rows, by_name=by_name)

    def of_runs(self, run_ids: Sequence[int]) -> LoadedSide:
        """Return this side with these of its runs alone."""
        kept = tuple(run_id for run_id in self.run_ids if run_id in set(run_ids))
        parts = {name: _rows_of_runs(getattr(self, name), kept) for name in ("runs", "captures", "steps")}
        own = replace(self.side, run_ids=kept, runs=len(kept))
        return replace(self, side=own, own_runs=None, cache={}, **parts)

    def of_runs_of(self, number: str, own: OwnRows | None) -> LoadedSide:
        """Return this side with the runs that a number of whole runs is compared with; see `OwnRows`."""
        own_runs = None if own is None else own.side.own_runs
        of_number = None if own_runs is None else own_runs.of_number(number)
        return self if own is None or of_number is None else own.side.of_runs(sorted(of_number))

    def reshape(self, shapes: Mapping[tuple[str, str], str]) -> LoadedSide:
        """Return this side with the inputs of its operators under other shapes."""
        return replace(self, reshaped=shapes, cache={})

    def _with_other_shapes(self, table: Columns) -> Columns:
        if not self.reshaped:
            return table
        for name, shapes in ((OP, OP_INPUT_SHAPES), (NAME, INPUT_SHAPES)):
            # a kernel has a name and shapes of its own
            if name in table and shapes in table:
                texts = [self.reshaped.get((own, text), text) for own, text in table.rows(name, shapes)]
                return table.having(**{shapes: objects(texts)})
        return table

    def leave_out_partial(self) -> LoadedSide:
        """Return this side without runs of which steps are not judged, where others are whole: a number rests on the
        runs that its verdict rests on.
        """
        whole = keep_whole(self.run_ids, self.partial)
        if len(whole) == len(self.run_ids):
            return self
        rows = self.captures.rows(RUN_ID, RANK, QUALITY_REASON, SETTINGS)
        others = find_partial(row for row in rows if row[0] not in whole)
        numbers = format_numbers([run_id for run_id in self.run_ids if run_id not in whole])
        is_one = len(self.run_ids) == len(whole) + 1
        words = f"run {numbers} is" if is_one else f"runs {numbers} are"
        left_out = f"{words} left out of all numbers"
        return replace(self.of_runs(whole), left_out=tuple(f"{left_out}: {one}" for one in others.sentences))

    def pruned_runs(self) -> set[int]:
        """Return the runs of this side that lost their details."""
        return self.shared.pruned_runs(self.store, self.run_ids)

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` gives, made once for this side; who asks leaves it as it is."""
        if key not in self.cache:
            self.cache[key] = make()
        found: T = self.cache[key]
        return found

    def _runs_with_rows(self, question: queries.Question, run_ids: Sequence[int]) -> Sequence[int]:
        # most runs have no rows in most tables: they are not asked about
        if question not in _TABLES:
            return run_ids
        filled = self.shared.query(run_ids, (queries.filled_tables,), partial(queries.filled_tables, self.store))
        return sorted(set(compress(filled.listed(RUN_ID), filled.integers(_TABLES[question]) == 1)))

    def _select_ranks(self, table: Columns) -> Columns:
        return rows_of_captures(table, self.captures) if self.is_selection else table


class WorkTables(Struct, frozen=True, eq=False):
    """The tables of a Diff that say what carries a change: its operators, by shapes (`ops`) and a row per name
    (`names`), whatever the filters, and its kernels.
    """

    ops: Columns
    names: Columns
    kernels: Columns


class ExplainedTables(WorkTables, frozen=True, eq=False):
    """The same with what an explanation reads besides: the numbers of the step, and why the device was idle."""

    overall: Columns
    idle: Columns


class OwnRows(Struct, frozen=True, eq=False):
    """A baseline of which some rows are of other runs than the step.

    `side`: with all these runs, and `own_runs`. `in_step`: every row of the runs of the step. `versions`: of runs of
    the step in which rows had another level.
    """

    side: LoadedSide
    in_step: WorkTables
    versions: tuple[str, ...]


def rows_of_captures(table: Columns, captures: Columns) -> Columns:
    """Return the rows of `table` (columns run_id, rank) that are of one of `captures`."""
    own = keep_ranks(ranks_of(table), set(ranks_of(captures)))
    return table if own.all() else table.taken(own)


def keep_ranks(ranks: Sequence[Rank], known: Set[Rank]) -> Flags:
    """Return which of `ranks` are among the `known` ones."""
    return np.array([rank in known for rank in ranks], dtype=bool)


def ranks_of(table: Columns) -> list[Rank]:
    """Return the run and the rank of each row."""
    return list(table.rows(RUN_ID, RANK))
