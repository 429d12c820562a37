"""Loads the sides of a comparison, with their runs.

A path is read into a database in memory, so that files and stored runs go the same way through SQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare import coverage
from tracker.compare.coverage import leave_out_older_steps
from tracker.compare.own_runs import OwnRuns
from tracker.compare.references import FILES, SIDES, NamedRuns, exists, is_path, paths_of
from tracker.compare.side import LoadedSide, SharedAnswers, rows_of_captures
from tracker.config.places import user_path
from tracker.errors import UsageError
from tracker.results import Selection, Side
from tracker.schema.column_names import DEVICE, DURATION_NS, FORMAT, RANK, RUN_ID, STAGE, STEP, STEPS, TIMELINE, VENDOR
from tracker.store import Store, open_store, queries
from tracker.units import counted, format_numbers, steps_words

if TYPE_CHECKING:
    from tracker.intake import IngestOptions

_NO_STAGE: Final = -1
_SAY_LESS: Final = ("nsys_stats", "paddle_summary", "torch_stacks", "training_log")
"""Formats of which another one beside them says more; what says least comes last."""


def load(
    store: Store | None,
    reference: str,
    options: Selection,
    stack: ExitStack,
    *,
    steps: Sequence[int],
    or_pruned: bool,
    named: Mapping[str, NamedRuns],
    shared: SharedAnswers,
) -> LoadedSide:
    """Return the side that `reference` names.

    `steps`: only these, empty for all. `named`: what those in the database name, see `find_named`. `shared`:
    answers about all sides. Databases opened on the way are closed by `stack`. Runs whose details were deleted are no
    part of it, unless `or_pruned`; a warning names them.

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
        run_ids, left_out = _of_one_format(dict(queries.runs(memory).rows(RUN_ID, FORMAT)))
        side = _loaded(memory, reference, (run_ids, None), options, steps, SharedAnswers())
        warned = dict.fromkeys(warning for result in results for warning in result.warnings)
        beside = [left_out] if left_out else []
        return replace(side, warnings=(*beside, *(one for one in warned if not beside or BESIDE not in one)))
    if store is None:
        raise UsageError(f"{reference!r} is not a path on disk", remedy="check the path, or name a database with --db")
    run_ids, rank = named[reference]
    left, warnings = _with_details(store, run_ids, shared)
    if exists(reference):
        warnings = (*warnings, f"{reference} is of the database; ./{reference} is the folder of that name.")
    if not left and not or_pruned:
        raise UsageError(f"{reference}: {warnings[0]}", remedy="tracker findings has what it showed")
    loaded = _loaded(store, reference, (run_ids if or_pruned else left, rank), options, steps, shared)
    return replace(loaded, warnings=(*warnings, *loaded.warnings))


def _of_one_format(formats: Mapping[int, str]) -> tuple[tuple[int, ...], str]:
    """Of the runs of a path, each with its format, those of the format that says most, and a sentence on the others: of
    a log or a summary beside a trace, which is no document of it, it is not known whether it is of the same job.
    """
    best = min(formats.values(), key=lambda name: _SAY_LESS.index(name) if name in _SAY_LESS else -1, default="")
    others = sorted({name for name in formats.values() if name in _SAY_LESS and name != best})
    kept = tuple(sorted(run_id for run_id, name in formats.items() if name not in others))
    if not others:
        return kept, ""
    left = counted(len(formats) - len(kept), "run")
    return (
        kept,
        f"{left} of {' and '.join(others)} left out: whether they are of the job of {best} beside them is not known; "
        "--input-format chooses",
    )


def load_all(
    store: Store | None,
    references: Sequence[str],
    options: Selection,
    stack: ExitStack,
    *,
    runs: Mapping[str, NamedRuns],
    steps: Sequence[Sequence[int]] = (),
    or_pruned: bool = False,
    more_runs: Sequence[int] = (),
) -> list[LoadedSide]:
    """Return the sides that the `references` name, as `load` gives each.

    `runs`: what those in the database name, see `find_named`; `steps`: of each side, empty for all of all.
    Sides in one database and of the same ranks and steps ask it together. `more_runs`: what will be asked of these
    runs of `store`, too (`load_own_runs`).
    """
    named_runs = (run_id for run_ids, _ in runs.values() for run_id in run_ids)
    shared = SharedAnswers(frozenset([*named_runs, *more_runs]))
    sides = []
    for reference, own_steps in zip(references, steps or [()] * len(references), strict=True):
        sides.append(
            load(store, reference, options, stack, steps=own_steps, or_pruned=or_pruned, named=runs, shared=shared)
        )
    alike: dict[Hashable, list[LoadedSide]] = {}
    for side in sides:
        alike.setdefault(_filter_of(side), []).append(side)
    together = {}
    for key, of_filter in alike.items():
        run_ids = frozenset(run_id for side in of_filter for run_id in side.run_ids)
        is_here = of_filter[0].store is store
        known = dict(shared.answers) if is_here else {}
        together[key] = SharedAnswers(run_ids.union(more_runs if is_here else ()), known)
    return [replace(side, shared=together[_filter_of(side)]) for side in sides]


def load_own_runs(side: LoadedSide, options: Selection, own_runs: OwnRuns) -> LoadedSide:
    """Return a side with all runs that its rows are of; those whose details were deleted are left out.

    A series of which no run is left is of the runs of the step.
    """
    run_ids = sorted(own_runs.step.union(*own_runs.of_series.values()))
    left, _ = _with_details(side.store, tuple(run_ids), side.shared)
    found = _loaded(side.store, side.side.label, (left, None), options, side.chosen_steps or (), side.shared)
    there = set(found.run_ids)
    of_series = {key: runs & there for key, runs in own_runs.of_series.items() if runs & there}
    return replace(found, own_runs=replace(own_runs, of_series=of_series), shared=side.shared)


def _filter_of(side: LoadedSide) -> Hashable:
    """Return what is the same for sides that may ask together."""
    return id(side.store), side.ranks, side.chosen_steps


def _with_details(
    store: Store, run_ids: tuple[int, ...], shared: SharedAnswers
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the runs whose details are here, and a sentence on the others."""
    gone = shared.pruned_runs(store, run_ids)
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
        loaders=options.loaders,
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
    found: NamedRuns,
    options: Selection,
    chosen: Sequence[int],
    shared: SharedAnswers,
) -> LoadedSide:
    run_ids, rank = found

    def facts(every: Sequence[int]) -> Columns:
        return shared.query(every, (queries.facts,), partial(queries.facts, store))

    captures = shared.query(run_ids, "captures", partial(queries.captures, store))
    captures, ranks = _chosen(captures, label, (rank,) if rank is not None else options.ranks, options.stage)
    steps = shared.query(run_ids, "steps", partial(queries.steps, store))
    steps = rows_of_captures(steps, captures)
    steps, warnings = leave_out_older_steps(captures, steps)
    has_markers, is_part = _has_markers(captures, steps), False
    if chosen:
        _require_steps(label, captures, steps, chosen)
        steps = steps.taken(np.isin(steps.integers(STEP), list(chosen)))
        counted = coverage.with_step_counts(captures, steps)
        is_part, captures = bool((captures.integers(STEPS) > counted.integers(STEPS)).any()), counted
    left = set(captures.listed(RUN_ID))
    run_ids = tuple(run_id for run_id in run_ids if run_id in left)
    runs = shared.query(run_ids, "runs", lambda every: queries.runs_by_id(store, every, known=facts(every)))
    chosen_steps = tuple(sorted(set(chosen)))
    return LoadedSide(
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
    """Return the captures of the chosen `ranks` (empty: all) and `stage`, and the ranks that this leaves, None
    for all.
    """
    stages = captures.integers(STAGE, missing=_NO_STAGE)
    captures = captures.having(stage=stages)
    left = ranks or None
    kept = np.ones(len(captures), dtype=bool)
    if left is not None:
        kept &= np.isin(captures.integers(RANK), left)
    if stage is not None:
        kept &= stages == stage
        left = tuple(dict.fromkeys(captures.integers(RANK)[kept].tolist()))
    if not kept.any():
        raise UsageError(f"{label}: no rank is left after the filters", remedy="tracker show lists the ranks of a run")
    return captures.taken(kept), left


def _has_markers(captures: Columns, steps: Columns) -> bool:
    if len(steps) != len(captures) or (steps.integers(STEP) != 0).any():
        return True
    lasting = {(run_id, rank): ns for run_id, rank, ns in captures.rows(RUN_ID, RANK, DURATION_NS)}
    pairs = [(ns, lasting.get((run_id, rank))) for run_id, rank, ns in steps.rows(RUN_ID, RANK, DURATION_NS)]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _require_steps(label: str, captures: Columns, steps: Columns, chosen: Sequence[int]) -> None:
    """Raise UsageError unless every capture has every chosen step: a mean over others would be of something else."""
    known: dict[tuple[int, int], set[int]] = {}
    for run_id, rank, step in steps.rows(RUN_ID, RANK, STEP):
        known.setdefault((run_id, rank), set()).add(step)
    for run_id, rank in captures.rows(RUN_ID, RANK):
        there = known.get((run_id, rank), set())
        lacking = sorted(set(chosen) - there)
        if lacking:
            run = "" if label == f"run:{run_id}" or len(set(captures.listed(RUN_ID))) == 1 else f" of run:{run_id}"
            where = f"rank {rank}{run}" if len(captures) > 1 else "it"
            has = steps_words(sorted(there)) if there else "no step markers"
            raise UsageError(
                f"{label} has no step {format_numbers(lacking)}: {where} has {has}",
                remedy="choose among these, or leave the choice of steps out",
            )


def _side(label: str, run_ids: tuple[int, ...], runs: Columns, captures: Columns) -> Side:
    def words(column: str) -> str:
        return ", ".join(dict.fromkeys(value for value in runs.listed(column) if value is not None))

    devices = dict.fromkeys(f"{vendor} {device}".strip() for vendor, device in runs.rows(VENDOR, DEVICE))
    ranks = Counter(run_id for run_id, _ in set(captures.rows(RUN_ID, RANK)))
    steps = captures.integers(STEPS)
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
        timeline="device" if set(captures.listed(TIMELINE)) == {"device"} else "host",
    )
