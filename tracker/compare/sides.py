"""The sides of a diff, with their runs; a path is read into a database in memory, so that files and stored runs go the
same way through SQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare import knowing
from tracker.compare.asked import Asked, Named
from tracker.compare.reduction import GRAIN
from tracker.compare.references import FILES, SIDES, exists, is_path, paths_of
from tracker.compare.step_rules import leave_out_older_steps
from tracker.config.places import user_path
from tracker.errors import UsageError
from tracker.results import Selection, Side
from tracker.store import Store, open_store, queries
from tracker.units import format_numbers, steps_words

if TYPE_CHECKING:
    from tracker.intake import IngestOptions

T = TypeVar("T")

_NO_STAGE: Final = -1
_SAY_LESS: Final = ("nsys_stats", "paddle_summary", "training_log")
"""Formats of which another one beside them says more; what says least comes last."""
_TABLES: Final[Mapping[queries.Question, str]] = {
    queries.communication: "has_communication",
    queries.communication_tasks: "has_communication",
    queries.communication_links: "has_communication",
    queries.memory: "has_memory",
    queries.memory_allocators: "has_memory",
    queries.memory_owners: "has_memory",
    queries.memory_blocks: "has_memory",
    queries.api: "has_api",
    queries.idle: "has_idle",
    queries.kernel_metrics: "has_metrics",
    queries.memory_curve: "has_curve",
    queries.memory_peaks: "has_curve",
    queries.counters: "has_counters",
}
"""Question -> the column of `queries.filled_tables` that says of which runs it can find anything."""


class Loaded(Struct, frozen=True, eq=False):
    """A side with its database: `runs`, `captures` and `steps` as `store.queries` gives them, `captures.stage` filled
    with -1 for none, only the chosen ranks and steps.

    `chosen_steps`: None for all. `is_part`: the captures hold more steps than the chosen ones. `has_markers`: whether
    the captures hold step markers; a capture without any is one step, 0, as long as the capture. `warnings`: what the
    readers of a path warned of. `is_selection`: only some ranks of some runs, which no list of ranks tells. `asked`:
    what is asked together with other sides. `answers`: what was asked before.
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
    asked: Asked = field(default_factory=Asked)
    answers: dict[tuple[object, ...], Any] = field(default_factory=dict)

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The runs of this side."""
        return self.side.run_ids

    @property
    def measured_by(self) -> str:
        """What is the time of this side: `step_ns`, or `e2e_ns` where no step markers say when a step begins."""
        return "step_ns" if self.has_markers or not self.steps.known("e2e_ns").any() else "e2e_ns"

    def ask(self, question: queries.Question, *, by: Sequence[str] = GRAIN, in_steps: bool = True) -> Columns:
        """The answer to a `question` of `store.queries` about the runs, ranks and steps of this side; `by`: its grain,
        finer by the rank where this side is a selection of ranks.

        `in_steps`: leave out what lies outside all steps, as the numbers per step must.
        """
        if self.is_selection and "rank" not in by:
            by = (*by, "rank")
        asked = (question, tuple(by), in_steps)
        if asked not in self.answers:
            chosen = {"by": tuple(by), "ranks": self.ranks, "steps": self.chosen_steps, "in_steps": in_steps}
            if self.is_selection:  # finer than what others ask
                run_ids = self._with_rows(question, self.run_ids)
                self.answers[asked] = self._selected(question(self.store, run_ids, **chosen))
            else:
                self.answers[asked] = self.about(question, **chosen)
        found: Columns = self.answers[asked]
        return found

    def lacks(self, question: queries.Question) -> bool:
        """Whether the answer to a question is empty; nothing is asked where no run has rows in its table."""
        return not self.has_rows(question) or not len(self.ask(question))

    def has_rows(self, question: queries.Question) -> bool:
        """Whether some run has rows in the table that is asked, whatever its ranks and steps."""
        return question not in _TABLES or bool((self.filled().integers(_TABLES[question]) == 1).any())

    def about(self, question: queries.Question, **chosen: Any) -> Columns:
        """The answer to a `question` of `store.queries` about the runs of this side, with `chosen` parameters; asked
        once for all sides that are compared.
        """
        return self.asked.about(
            self.run_ids,
            (question, *chosen.items()),
            lambda run_ids: question(self.store, self._with_rows(question, run_ids), **chosen),
        )

    def _with_rows(self, question: queries.Question, run_ids: Sequence[int]) -> Sequence[int]:
        """Those of these runs that have rows in the table that is asked: most have none in most tables."""
        if question not in _TABLES:
            return run_ids
        filled = self.asked.about(run_ids, (queries.filled_tables,), partial(queries.filled_tables, self.store))
        return sorted(set(compress(filled.listed("run_id"), filled.integers(_TABLES[question]) == 1)))

    def op_tree(self, *, by_step: bool = False) -> Columns:
        """The calling contexts of this side, inside its steps; see `queries.op_tree`."""
        tree = self.about(queries.op_tree, ranks=self.ranks, steps=self.chosen_steps, in_steps=True, by_step=by_step)
        return self._selected(tree)

    def kernel_metrics(self) -> Columns:
        """What was measured in the kernels of all chosen ranks, selection or not; see `queries.kernel_metrics`."""
        return self.about(queries.kernel_metrics, ranks=self.ranks)

    def filled(self) -> Columns:
        """Which ranks have rows in which tables; see `queries.filled_tables`."""
        return self.once("filled", lambda: self.about(queries.filled_tables))

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` gives, made once for this side; who asks leaves it as it is."""
        if (name,) not in self.answers:
            self.answers[name,] = make()
        found: T = self.answers[name,]
        return found

    def _selected(self, table: Columns) -> Columns:
        return knowing.of_captures(table, self.captures) if self.is_selection else table


def load(
    store: Store | None,
    reference: str,
    options: Selection,
    stack: ExitStack,
    *,
    steps: Sequence[int],
    or_pruned: bool,
    asked: Asked,
) -> Loaded:
    """The side that `reference` names; `steps`: only these, empty for all. Databases opened on the way are closed by
    `stack`. Runs whose details were deleted are no part of it, unless `or_pruned`; a warning names them. `asked`: see
    `load_all`.

    Raises UsageError when nothing or too much is named, a step that some rank does not have, or only runs without
    details; the message lists what there is.
    """
    if not reference.strip():
        raise UsageError("a side is empty", remedy=f"a side is {SIDES}")
    if is_path(reference):
        from tracker.intake import ingest
        from tracker.intake.forming import BESIDE

        memory = stack.enter_context(open_store("sqlite://"))
        results = ingest(
            memory,
            [user_path(path) for path in paths_of(reference)],
            version=reference,
            workload=FILES,
            options=_ingest_options(options),
        )
        run_ids, left_out = _of_one_format(dict(queries.runs(memory).rows("run_id", "format")))
        side = _loaded(memory, reference, (run_ids, None), options, steps, Asked())
        warned = dict.fromkeys(warning for result in results for warning in result.warnings)
        beside = [left_out] if left_out else []
        return replace(side, warnings=(*beside, *(one for one in warned if not beside or BESIDE not in one)))
    if store is None:
        raise UsageError(f"{reference!r} is not a path on disk", remedy="check the path, or name a database with --db")
    run_ids, rank = asked.named[reference]
    left, warnings = _with_details(store, run_ids, asked)
    if exists(reference):
        warnings = (*warnings, f"{reference} is the version; ./{reference} is the folder of that name.")
    if not left and not or_pruned:
        raise UsageError(f"{reference}: {warnings[0]}", remedy="tracker findings has what it showed")
    loaded = _loaded(store, reference, (run_ids if or_pruned else left, rank), options, steps, asked)
    return replace(loaded, warnings=(*warnings, *loaded.warnings))


def _of_one_format(formats: Mapping[int, str]) -> tuple[tuple[int, ...], str]:
    """Of the runs of a path, each with its format, those of the format that says most, and a sentence on the others: a
    log and a summary beside a trace are of the same job, and no repeats of it.
    """
    best = min(formats.values(), key=lambda name: _SAY_LESS.index(name) if name in _SAY_LESS else -1, default="")
    others = sorted({name for name in formats.values() if name in _SAY_LESS and name != best})
    kept = tuple(sorted(run_id for run_id, name in formats.items() if name not in others))
    names = " and ".join(others)
    return (
        kept,
        f"{names} beside {best} stand for the same job and are left out: --input-format chooses" if others else "",
    )


def load_all(
    store: Store | None,
    references: Sequence[str],
    options: Selection,
    stack: ExitStack,
    *,
    runs: Mapping[str, Named],
    steps: Sequence[Sequence[int]] = (),
    or_pruned: bool = False,
) -> list[Loaded]:
    """The sides that the `references` name, as `load` gives each; `runs`: what those in the database name, see
    `references.named`; `steps`: of each side, empty for all of all. Those in one database and of the same ranks and
    steps ask it together; what one asks again it knows.
    """
    asked = Asked(frozenset(run_id for run_ids, _ in runs.values() for run_id in run_ids), named=dict(runs))
    sides = [
        load(store, reference, options, stack, steps=own, or_pruned=or_pruned, asked=asked)
        for reference, own in zip(references, steps or [()] * len(references), strict=True)
    ]
    alike: dict[Hashable, list[Loaded]] = {}
    for side in sides:
        alike.setdefault(_filter_of(side), []).append(side)
    together = {key: _together(own, asked if own[0].store is store else Asked()) for key, own in alike.items()}
    return [replace(side, asked=together[_filter_of(side)]) for side in sides]


def _together(sides: Sequence[Loaded], before: Asked) -> Asked:
    """How `sides` with the same filter ask; `before`: what was asked when they were loaded."""
    run_ids = frozenset(run_id for side in sides for run_id in side.run_ids)
    return Asked(run_ids, answers=dict(before.answers))


def _filter_of(side: Loaded) -> Hashable:
    """What is the same for sides that may ask together."""
    return id(side.store), side.ranks, side.chosen_steps


def _with_details(store: Store, run_ids: tuple[int, ...], asked: Asked) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The runs whose details are here, and a sentence on the others."""
    gone = asked.pruned(store, run_ids)
    if not gone:
        return run_ids, ()
    names = ", ".join(f"run:{run_id}" for run_id in sorted(gone))
    said = f"only totals are left of {names} (tracker prune); ingest its profile again to have all"
    return tuple(run_id for run_id in run_ids if run_id not in gone), (said,)


def _ingest_options(options: Selection) -> IngestOptions:
    from tracker.intake import IngestOptions

    chosen = IngestOptions(
        format=options.format,
        flow_category=options.flow_category,
        allow_partial=options.allow_partial,
        skip_bad_rows=options.skip_bad_rows,
        on_progress=options.on_progress,
        # the database of a path is gone after the command: nobody reads verdicts of it
        judge=False,
    )
    if options.max_bytes is None:
        return chosen
    return replace(chosen, max_bytes=options.max_bytes)


def _loaded(
    store: Store,
    label: str,
    found: Named,
    options: Selection,
    chosen: Sequence[int],
    asked: Asked,
) -> Loaded:
    run_ids, rank = found

    def facts(every: Sequence[int]) -> Columns:
        return asked.about(every, (queries.facts,), partial(queries.facts, store))

    captures = asked.about(run_ids, "captures", partial(queries.captures, store))
    captures, ranks = _chosen(captures, label, (rank,) if rank is not None else options.ranks, options.stage)
    steps = asked.about(run_ids, "steps", partial(queries.steps, store))
    steps = knowing.of_captures(steps, captures)
    steps, warnings = leave_out_older_steps(captures, steps)
    has_markers, is_part = _has_markers(captures, steps), False
    if chosen:
        _require_steps(label, captures, steps, chosen)
        steps = steps.taken(np.isin(steps.integers("step"), list(chosen)))
        counted = knowing.with_step_counts(captures, steps)
        is_part, captures = bool((captures.integers("steps") > counted.integers("steps")).any()), counted
    left = set(captures.listed("run_id"))
    run_ids = tuple(run_id for run_id in run_ids if run_id in left)
    runs = asked.about(run_ids, "runs", lambda every: queries.runs_by_id(store, every, known=facts(every)))
    chosen_steps = tuple(sorted(set(chosen)))
    return Loaded(
        side=replace(_side(label, run_ids, runs, captures), chosen_steps=chosen_steps),
        store=store,
        runs=runs,
        captures=captures,
        steps=steps,
        ranks=ranks,
        is_selection=options.stage is not None and len(run_ids) > 1,
        chosen_steps=chosen_steps or None,
        is_part=is_part,
        has_markers=has_markers,
        warnings=warnings,
    )


def _chosen(
    captures: Columns, label: str, ranks: tuple[int, ...], stage: int | None
) -> tuple[Columns, tuple[int, ...] | None]:
    """The captures of the chosen `ranks` (empty: all) and `stage`, and the ranks that this leaves, None for all."""
    stages = captures.integers("stage", missing=_NO_STAGE)
    captures = captures.having(stage=stages)
    left = ranks or None
    kept = np.ones(len(captures), dtype=bool)
    if left is not None:
        kept &= np.isin(captures.integers("rank"), left)
    if stage is not None:
        kept &= stages == stage
        left = tuple(dict.fromkeys(captures.integers("rank")[kept].tolist()))
    if not kept.any():
        raise UsageError(f"{label}: no rank is left after the filters", remedy="tracker show lists the ranks of a run")
    return captures.taken(kept), left


def _has_markers(captures: Columns, steps: Columns) -> bool:
    if len(steps) != len(captures) or (steps.integers("step") != 0).any():
        return True
    lasting = {(run_id, rank): ns for run_id, rank, ns in captures.rows("run_id", "rank", "duration_ns")}
    pairs = [(ns, lasting.get((run_id, rank))) for run_id, rank, ns in steps.rows("run_id", "rank", "duration_ns")]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _require_steps(label: str, captures: Columns, steps: Columns, chosen: Sequence[int]) -> None:
    """UsageError unless every capture has every chosen step: a mean over others would be one of something else."""
    known: dict[tuple[int, int], set[int]] = {}
    for run_id, rank, step in steps.rows("run_id", "rank", "step"):
        known.setdefault((run_id, rank), set()).add(step)
    for run_id, rank in captures.rows("run_id", "rank"):
        there = known.get((run_id, rank), set())
        lacking = sorted(set(chosen) - there)
        if lacking:
            run = "" if label == f"run:{run_id}" or len(set(captures.listed("run_id"))) == 1 else f" of run:{run_id}"
            where = f"rank {rank}{run}" if len(captures) > 1 else "it"
            has = steps_words(sorted(there)) if there else "no step markers"
            raise UsageError(
                f"{label} has no step {format_numbers(lacking)}: {where} has {has}",
                remedy="choose among these, or leave the choice of steps out",
            )


def _side(label: str, run_ids: tuple[int, ...], runs: Columns, captures: Columns) -> Side:
    def words(column: str) -> str:
        return ", ".join(dict.fromkeys(value for value in runs.listed(column) if value is not None))

    devices = dict.fromkeys(f"{vendor} {device}".strip() for vendor, device in runs.rows("vendor", "device"))
    ranks = Counter(run_id for run_id, _ in set(captures.rows("run_id", "rank")))
    steps = captures.integers("steps")
    return Side(
        label=label,
        run_ids=run_ids,
        workload=words("workload"),
        version=words("version"),
        device=", ".join(devices),
        configuration=words("configuration"),
        runs=len(run_ids),
        ranks=max(ranks.values()),
        steps=int(steps.max()),
        fewest_steps=int(steps[steps > 0].min()) if (steps > 0).any() else None,
        timeline="device" if set(captures.listed("timeline")) == {"device"} else "host",
    )
