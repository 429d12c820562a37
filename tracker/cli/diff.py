"""`tracker diff` and `tracker show`: candidate against baseline, and one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec.structs import replace

from tracker import compare, config
from tracker.cli import database
from tracker.cli.clones import gate_of_lost_merge_base, is_merge_base_lost
from tracker.cli.options import Database, FailOn, Top
from tracker.cli.output import Delivery, finish, plan
from tracker.cli.report_options import Page
from tracker.errors import (
    EXIT_FINDINGS,
    EXIT_NOT_COMPARABLE,
    EXIT_OK,
    EXIT_TOO_LITTLE_DATA,
    TooLittleDataError,
    UsageError,
)
from tracker.results import TREES, CallsOptions, DiffOptions, Selection, ShowOptions
from tracker.results.options import CALLS, CALLS_OF, SHAPES, SIDES, TREE, Depth, KindOfCalls, Only, Option, ShowBy
from tracker.results.verdicts import BUDGET, COVERAGE

DiffBy = Annotated[tuple[str, ...], TREE._replace(words=(*TREES, "communication"))]
_SHORT: Final = {"text", "markdown", "speedscope"}
_WORST_FIRST: Final = (EXIT_FINDINGS, EXIT_TOO_LITTLE_DATA, EXIT_NOT_COMPARABLE, EXIT_OK)


def diff(
    sides: Annotated[
        list[str],
        Option(
            "Versions, VERSION@DEVICE, branches (main: the main line), run:41, run:41,run:42, run:41:rank3, latest, "
            "latest~1 (one run), pinned, paths. One side alone is compared with its --baseline; three make a matrix.",
            "[BASELINE] CANDIDATE...",
            positional=True,
            offers="side",
        ),
    ],
    *,
    baseline: Annotated[
        Literal["window", "previous", "pinned"] | None,
        Option(
            "What one side alone is compared with: the runs that it was judged against, or the version before where it "
            "was not judged (window), always the version before (previous), or the pinned version. Default: window.",
            group=SIDES,
        ),
    ] = None,
    chosen: DiffOptions,
    by: DiffBy = (),
    depth: Depth = None,
    top: Top = None,
    page: Page,
    fail_on: FailOn = None,
    db: Database = None,
) -> None:
    """Compare two sides: what became slower, by how much, and why.

    Numbers are per step: the median over steps and ranks, the geometric mean over runs. Paths need no database.

    \b
    Example:
      tracker diff v1 v2
      tracker diff a.pt.trace.json b.pt.trace.json.gz --only overall,operator
      tracker diff main my-branch --by module --depth 3
      tracker diff v1 v2 v3 v4 --by kernel
      tracker diff v2 --baseline pinned -o diff.xlsx
      tracker diff v1 v2 --by module -o v2.speedscope.json
      tracker diff v2 --fail-on new --format junit -o gate.xml
    """
    from tracker.results import check_matrix

    if baseline and len(sides) > 1:
        raise UsageError("--baseline with two sides", remedy="leave out --baseline, or name the candidate alone")
    several, rows = len(sides) > 2, next(iter(by), "op")
    delivery = plan(page, "_".join(["diff", *(Path(side).name for side in sides)]), "matrix" if several else "diff")
    if several and fail_on:
        raise UsageError("--fail-on with several candidates", remedy="name two sides: BASELINE CANDIDATE")
    if chosen.single_kernels and "xlsx" not in delivery.formats:
        raise UsageError("--single-kernels without the workbook that lists them", remedy="add it: -o diff.xlsx")
    if several and len(by) > 1:
        raise UsageError(f"--by {' and '.join(by)}: the rows of a matrix are of one kind", remedy="choose one")
    if "communication" in by and not several:
        raise UsageError("--by communication needs three sides or more", remedy="use --only communication")
    if several:
        check_matrix(chosen, rows, depth)
    else:
        with_flame = "html" in delivery.formats and not chosen.only
        chosen = replace(chosen, by=_tree(delivery, by), depth=depth, with_flame=with_flame)
    with database.compared(db, sides, chosen) as (store, options):
        if several:
            matrix = compare.matrix(store, sides, by=rows, options=options)
        else:
            try:
                found = compare.diffs(store, sides, options=options, against=baseline or "window")
            except TooLittleDataError as error:  # exit code 4 is for gates
                if fail_on:
                    raise
                raise UsageError(error.problem, remedy=error.remedy) from error
            # a baseline that the user names needs no merge base, and neither does a budget
            needs_merge_base = fail_on not in (None, BUDGET) and len(sides) == 1 and not baseline
            lost = [needs_merge_base and is_merge_base_lost(store, each.candidate.run_ids) for each in found]
    if several:
        delivery.deliver(matrix, limit=top)
        return
    ended = []
    for each, is_lost in zip(found, lost, strict=True):
        if fail_on:
            if fail_on == COVERAGE:
                from tracker.regressions.coverage import gate_of_coverage
                from tracker.results.coverage import CountedSeries

                coverage = None if each.judgement is None else each.judgement.coverage
                counted = coverage.counted if coverage else CountedSeries()
                gate = gate_of_coverage([counted], (), config.load(db).least_coverage)
            elif fail_on == BUDGET:
                from tracker.results.budgets import gate_of_budgets

                gate = gate_of_budgets(each.budgets, config.load(db).budgets)
            else:
                gate = compare.gate_of_diff(each, fail_on)
            ended.append((gate_of_lost_merge_base(gate) if is_lost else gate, each.candidate))
    looks = [{"gate": gate} for gate, _ in ended]
    chosen_by = baseline or "window" if len(sides) == 1 else ""
    delivery.deliver(*found, looks=looks, baseline=chosen_by, only=options.only, limit=top)
    if ended:
        gate, side = min(ended, key=lambda one: _WORST_FIRST.index(one[0].code))
        name = f"{side.label} {side.configuration}".strip()
        finish(gate, of=name if len(ended) > 1 else "")


def show(
    run: Annotated[
        str,
        Option(
            "41, run:41, run:41:rank3, latest, latest~1, a version (the run of its median step), or a path on disk.",
            "RUN",
            positional=True,
            offers="side",
        ),
    ],
    *,
    chosen: ShowOptions,
    by: ShowBy = (),
    depth: Depth = None,
    only: Only = (),
    calls: Annotated[str | None, CALLS] = None,
    calls_of: Annotated[KindOfCalls | None, CALLS_OF] = None,
    shapes: Annotated[str | None, SHAPES] = None,
    top: Top = None,
    page: Page,
    db: Database = None,
) -> None:
    """Show where the time of one run went: its steps, largest operators and kernels, communication and memory.

    \b
    Example:
      tracker show latest
      tracker show 41 --by rank --op aten::mm
      tracker show 41 --by module --depth 3
      tracker show trace.pt.trace.json.gz --format json
      tracker show latest --by op -o run.speedscope.json
      tracker show latest --calls aten::mm --calls-of operator
    """
    if calls is not None:
        _refuse_beside_calls(by=by, depth=depth, only=only)
        _show_calls(run, _choose_calls(chosen, calls, calls_of, shapes), top, page, db)
        return
    if calls_of is not None or shapes is not None:
        raise UsageError("--calls-of and --shapes choose among single calls", remedy="name them: --calls NAME")
    delivery = plan(page, f"show_{run}", "show")
    # a first screen has no room for it
    with_advice = page.details or "efficiency" in only or not _SHORT.issuperset(delivery.formats)
    chosen = replace(chosen, by=_tree(delivery, by), depth=depth, with_advice=with_advice)
    reference = database.run_reference(run)
    with database.compared(db, [reference], chosen) as (store, options):
        shown = compare.show(store, reference, options=options)
    delivery.deliver(shown, only=only, limit=top)


def _refuse_beside_calls(**given: object) -> None:
    """UsageError for an option that chooses among the tables of a run, which single calls have none of."""
    for name, value in given.items():
        if value:
            raise UsageError(f"--{name} with --calls: calls are one list", remedy=f"leave out --{name}")


def _choose_calls(chosen: ShowOptions, calls: str, calls_of: KindOfCalls | None, shapes: str | None) -> CallsOptions:
    """Return which calls are listed, by the options of a run that calls have as well."""
    shared = {name: getattr(chosen, name) for name in Selection.__struct_fields__}
    return CallsOptions(
        **shared, steps=chosen.steps, step_kind=chosen.step_kind, calls=calls, calls_of=calls_of, shapes=shapes
    )


def _show_calls(run: str, chosen: CallsOptions, top: int | None, page: Page, db: str | None) -> None:
    """Write the single calls of a run. SourceError, behind what is stored of them, where they cannot be listed."""
    delivery = plan(page, f"calls_{run}", "calls")
    reference = database.run_reference(run)
    with database.compared(db, [reference], chosen) as (store, options):
        found = compare.list_calls(store, reference, options=options)
    delivery.deliver(found, limit=top)
    if found.missing:
        raise UsageError(found.missing, remedy="what is stored of them stands above")


def _tree(delivery: Delivery, by: tuple[str, ...]) -> tuple[str, ...]:
    """Rows with those of a tree, for a format that shows nothing else, where none is chosen."""
    return (*by, "op") if "speedscope" in delivery.formats and not set(by) & set(TREES) else by
