"""One run, as it is: the content of `tracker show`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.columns import Columns
from tracker.compare import counters, knowing, levels, links
from tracker.compare.bottleneck import bottleneck
from tracker.compare.call_splits import notes_of_groups
from tracker.compare.explain import code_line
from tracker.compare.filters import check_exchange, check_named, matching
from tracker.compare.metrics import kind_of
from tracker.compare.module_times import module_times
from tracker.compare.notes import left_out, warnings
from tracker.compare.operators import own_time
from tracker.compare.overall import step_numbers
from tracker.compare.per_step import of_rows, with_number
from tracker.compare.references import named, needs_store
from tracker.compare.sides import load_all
from tracker.compare.slow_steps import note_on_slow_steps
from tracker.config.places import user_path
from tracker.errors import UsageError
from tracker.lazy import pd
from tracker.profile import NO_OP, STEP_SPREAD, UNLINKED_OP
from tracker.readers import outside_ranges
from tracker.regressions.sides import open_findings
from tracker.results import GRAINS, Shown, ShowOptions
from tracker.store import queries
from tracker.store.samples.statistic import over_steps
from tracker.units import NS_PER_MS

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded
    from tracker.store import Store

_COPIES = ("copy", "memset")
_METRIC_KERNEL = ("name", "canonical_name", "type", "core_type", "input_shapes")
_NUMBERED = (queries.ops, queries.kernels, queries.communication, queries.api)
_NAMED = 10
_TYPE_NUMBERS = {"calls": "sum", "total_ns": "sum", "min_ns": "min", "max_ns": "max"}


def show(store: Store | None, reference: str, *, options: ShowOptions | None = None) -> Shown:
    """What the database (or the path) `reference` holds of one run; DESIGN section 5 names the references.

    Sums over steps and ranks, unless `options.by` asks for `rank` or `step`. Raises UsageError when the reference names
    several runs (the message lists them), or `options.steps` a step that is not there.
    """
    options = options or ShowOptions()
    with ExitStack() as stack:
        if store is not None and needs_store(reference):
            stack.enter_context(store.reading())
        (reference,), runs = named(store, (reference,), options.workload)
        (side,) = load_all(store, (reference,), options, stack, runs=runs, steps=(options.steps,), or_pruned=True)
        if len(side.run_ids) > 1:
            more = f" or {len(side.run_ids) - _NAMED} others" if len(side.run_ids) > _NAMED else ""
            names = ", ".join(f"run:{run_id}" for run_id in side.run_ids[:_NAMED]) + more
            remedy = f"show one of {names}" if needs_store(reference) else _one_of(reference)
            raise UsageError(f"{reference} is {len(side.run_ids)} runs", remedy=remedy)
        by = ("run", *options.grains)
        _check_filters(side, options)
        tables = _tables(side, options, by)
        captures = _captures(side)
        return Shown(
            run={"reference": reference, **_plain(side.runs.frame.iloc[0]), **_times(side, captures)},
            overall=_drop_run(captures),
            steps=_with_spread(side),
            **tables,
            modules=_modules(side, tables["ops"], options),
            memory_curve=_drop_run(_memory_curve(side)),
            facts=_drop_run(side.about(queries.facts).frame),
            sources=_drop_run(queries.sources(side.store, side.run_ids)),
            kernel_metrics=_kernel_metrics(side, options, tables["kernels"]),
            communication_links=_drop_run(links.of_side(side, options, by, in_steps=False)),
            counters=_drop_run(counters.of_side(side, by).frame),
            kernel_types=_kernel_types(tables["kernels"], options),
            memory_peak=_memory_peak(side, options),
            memory_blocks=_memory_blocks(side, options),
            options=options,
            is_pruned=bool(side.asked.pruned(side.store, side.run_ids)),
            bottleneck=bottleneck(side),
            tree=levels.of_run(side, options).frame if options.tree else None,
            notes=(
                *_open_findings(store, side),
                *left_out((side,)),
                *warnings((side,)),
                *note_on_slow_steps(side),
                *notes_of_groups((side,)),
                *_without_range(side, tables["ops"], options),
            ),
        )


def _open_findings(store: Store | None, side: Loaded) -> list[str]:
    if store is None or side.store is not store:
        return []
    with store.connect() as connection:
        said = open_findings(connection, side.run_ids[0])
    return [said[:1].upper() + said[1:]] if said else []


def _modules(side: Loaded, ops: pd.DataFrame, options: ShowOptions) -> pd.DataFrame:
    """The modules and phases of `ops`, with their number per step."""
    table = Columns.of_frame(module_times(ops, options.grains))
    fine = side.ask(queries.ops)
    return of_rows(side, table, fine, ("module", "phase"), own_time(side)).frame


def _with_spread(side: Loaded) -> pd.DataFrame:
    """The steps with `shortest_ns` and `longest_ns`: of a row that is the mean of several steps NA, unless the source
    names the shortest and the longest of them.
    """
    steps = _drop_run(side.steps.frame)
    alone = steps["steps"] == 1
    steps = steps.assign(shortest_ns=steps["duration_ns"].where(alone), longest_ns=steps["duration_ns"].where(alone))
    if alone.all():
        return steps
    counted = counters.of_side(side, ("run", "rank")).frame
    spread = counted[(counted["source"] == STEP_SPREAD[0]) & (counted["name"] == STEP_SPREAD[1])]
    for row in spread.itertuples():
        at = ~alone & (steps["rank"] == row.rank)
        steps.loc[at, ["shortest_ns", "longest_ns"]] = [round(row.min * NS_PER_MS), round(row.max * NS_PER_MS)]
    return steps


def _without_range(side: Loaded, ops: pd.DataFrame, options: ShowOptions) -> list[str]:
    """How much device time of a capture lies in no range of the program, where other work does."""
    own = ops["device_self_ns"].fillna(0)
    outside, whole = int(own[ops["name"] == NO_OP].sum()), int(own[ops["name"] != UNLINKED_OP].sum())
    (format,) = side.runs.listed("format")
    is_filtered = options.op or options.module or options.minimum_ns is not None
    return [] if is_filtered else [text for text in (outside_ranges(format, outside, whole),) if text]


def _one_of(path: str) -> str:
    """How to show one run of a `path` of several: what a path holds has no number in any database."""
    formats = "; one in several formats: --input-format chooses one" if user_path(path).is_dir() else ""
    return f"show one of its files, or ingest it first{formats}"


def _check_filters(side: Loaded, options: ShowOptions) -> None:
    """UsageError where a filter names what the run does not have; nothing is known of one without details."""
    if side.asked.pruned(side.store, side.run_ids):
        return
    if options.op:
        asked = ((queries.ops, "name"), (queries.kernels, "op"), (queries.memory, "op"))
        names = (name for question, column in asked for name in side.ask(question, in_steps=False).listed(column))
        check_named("operator", options.op, names, (side,))
    if options.module:
        check_named("module", options.module, side.ask(queries.ops, in_steps=False).listed("module"), (side,))
    check_exchange(options, (side,))


def _tables(side: Loaded, options: ShowOptions, by: Sequence[str]) -> dict[str, pd.DataFrame]:
    """What passes the filters: ops, kernels, copies, communication, memory, api; in step markers or not."""

    def asked(question: queries.Question[...], *patterns: tuple[str, str | None]) -> pd.DataFrame:
        table = side.ask(question, by=by, in_steps=False)
        if question in _NUMBERED:
            table = with_number(side, table, question)
        for column, pattern in patterns:
            table = matching(table, column, pattern)
        return _drop_run(table.frame)

    def of_op(column: str) -> tuple[tuple[str, str | None], ...]:
        return (column, options.op), ("module", options.module)

    least = options.minimum_ns
    kernels = _large(asked(queries.kernels, *of_op("op")), ["total_ns"], least)
    is_copy = kernels["category"].isin(_COPIES)
    communication = asked(queries.communication, ("kind", options.kind), ("group_role", options.group))
    return {
        "ops": _large(asked(queries.ops, *of_op("name")), ["host_self_ns", "device_self_ns"], least),
        "kernels": kernels[~is_copy].reset_index(drop=True),
        "copies": kernels[is_copy].reset_index(drop=True),
        "communication": _large(communication, ["total_ns"], least),
        "memory": _with_allocators(asked(queries.memory, *of_op("op")), asked(queries.memory_allocators, *of_op("op"))),
        "api": _large(asked(queries.api), ["total_ns"], least),
    }


def _captures(side: Loaded) -> pd.DataFrame:
    """The captures, NA for no stage, of the chosen steps."""
    captures = side.captures.frame
    captures = captures.assign(stage=captures["stage"].where(captures["stage"] >= 0))
    return captures if side.chosen_steps is None else _summed_steps(captures, side.steps)


def _kernel_metrics(side: Loaded, options: ShowOptions, kernels: pd.DataFrame) -> pd.DataFrame:
    """The metrics of the kernels, in the order of these, over the whole capture."""
    by = tuple(grain for grain in options.grains if grain == "rank")
    frame = _drop_run(side.about(queries.kernel_metrics, by=by, ranks=side.ranks).frame)
    key = [*by, *_METRIC_KERNEL]
    place: dict[tuple[Any, ...], int] = {}
    for kernel in zip(*(kernels[name] for name in key), strict=True):
        place.setdefault(kernel, len(place))
    if side.is_part:  # the profiler does not say in which step
        frame = frame.head(0)
    known = frame[key].drop_duplicates()
    order = sorted(zip(*(known[name] for name in key), strict=True), key=lambda kernel: place.get(kernel, len(place)))
    order = [kernel for kernel in order if kernel in place]
    number = {kernel: at for at, kernel in enumerate(order)}
    at = pd.Series([number.get(kernel, -1) for kernel in zip(*(frame[name] for name in key), strict=True)], dtype=int)
    frame = frame.assign(_at=at)[at >= 0].sort_values(["_at", "metric"], kind="stable").drop(columns="_at")
    frame.insert(frame.columns.get_loc("metric") + 1, "kind", [kind_of(name) for name in frame["metric"]])
    return frame.reset_index(drop=True)


def _kernel_types(kernels: pd.DataFrame, options: ShowOptions) -> pd.DataFrame:
    """Sums of the kernels whose type the profiler names, but for collectives, the longest first."""
    typed = kernels[(kernels["type"] != "") & (kernels["category"] != "communication")]
    key = [*(grain for grain in GRAINS if grain in options.grains), "type", "core_type"]
    numbers = {name: (name, how) for name, how in _TYPE_NUMBERS.items()}
    sums = typed.groupby(key, sort=False, dropna=False).agg(**numbers).reset_index()
    order = [False, *[True] * len(key)]
    return sums.sort_values(["total_ns", *key], ascending=order, kind="stable").reset_index(drop=True)


def _summed_steps(captures: pd.DataFrame, told: Columns) -> pd.DataFrame:
    """`captures` with the numbers of its chosen steps: sums, the largest peaks, the median rate.

    A row that is the mean of several steps counts as so many.
    """
    steps = told.frame
    how = {name: "sum" for name in steps.columns if name in captures and name.endswith(("_ns", "_count"))}
    how |= {name: "max" for name in steps.columns if name.startswith("peak_")}
    summed = [name for name, kind in how.items() if kind == "sum"]
    rates = {}
    for rank, own in steps.groupby(["run_id", "rank"]):
        values, weights = (own[name].to_numpy(float, na_value=np.nan) for name in ("samples_per_second", "steps"))
        (rates[rank],) = over_steps(values[None, :], weights)
    steps = steps.assign(**{name: steps[name] * steps["steps"] for name in summed})
    grouped = steps.groupby(["run_id", "rank"])
    at = pd.MultiIndex.from_frame(captures[["run_id", "rank"]])
    found = {"samples_per_second": np.array([rates.get(rank, np.nan) for rank in at])}
    for name, kind in how.items():
        values = grouped[name].sum(min_count=1) if kind == "sum" else grouped[name].agg(kind)
        found[name] = values.reindex(at).to_numpy()
    return captures.assign(**{name: pd.array(values, dtype=captures[name].dtype) for name, values in found.items()})


def _times(side: Loaded, captures: pd.DataFrame) -> dict[str, Any]:
    """The number of the step, and what the mean over all steps is; the E2E time of chosen steps."""
    numbers = step_numbers(side)
    times: dict[str, Any] = {name: numbers.get(name) for name in ("step_ns", "mean_step_ns")}
    times["per_step"] = dict(numbers)
    if side.chosen_steps is not None:
        e2e_ns = captures["e2e_ns"].mean()
        times["e2e_ns"] = None if pd.isna(e2e_ns) else int(e2e_ns)
    return times


def _memory_curve(side: Loaded) -> pd.DataFrame:
    """The points inside the chosen steps, which count their time alike: from the first event of the capture."""
    curve = side.about(queries.memory_curve).frame
    curve = curve[curve["rank"].isin(side.captures.listed("rank"))]
    if side.chosen_steps is None:
        return curve
    kept = pd.Series(False, index=curve.index)
    for step in side.steps.frame.itertuples():
        if not pd.isna(step.duration_ns):
            inside = curve["time_ns"].between(step.start_ns, step.start_ns + step.duration_ns)
            kept |= (curve["rank"] == step.rank) & inside.astype(bool)
    return curve[kept]


def _with_allocators(memory: pd.DataFrame, fine: pd.DataFrame) -> pd.DataFrame:
    """`memory` with the allocator of most bytes of each row, and how many others there are."""
    key = [name for name in fine.columns if name not in {"allocator", "calls", "bytes", "held_ns", "unreleased_bytes"}]
    ordered = fine.sort_values(["bytes", "allocator"], ascending=[False, True], kind="stable")
    first = ordered.drop_duplicates(key)[[*key, "allocator"]]
    counts = fine.groupby(key, sort=False, dropna=False).size().rename("more_allocators").reset_index()
    found = memory.merge(first.merge(counts, on=key), on=key, how="left")
    found["allocator"] = found["allocator"].where(found["allocator"] != "").astype("string")
    found["more_allocators"] = found["more_allocators"].astype("Int64") - 1
    return found


def _memory_peak(side: Loaded, options: ShowOptions) -> pd.DataFrame:
    """What was held at the peaks; nothing of chosen steps, since a peak is one of the whole capture."""
    frame = _of_memory(side, queries.memory_owners, options)
    return frame if side.chosen_steps is None else frame.head(0)


def _memory_blocks(side: Loaded, options: ShowOptions) -> pd.DataFrame:
    """The largest single allocations, of the chosen steps."""
    frame = _of_memory(side, queries.memory_blocks, options)
    if side.chosen_steps is None:
        return frame
    return frame[frame["step"].isin(side.chosen_steps)].reset_index(drop=True)


def _of_memory(side: Loaded, question: queries.Question[...], options: ShowOptions) -> pd.DataFrame:
    """The rows of the chosen ranks that pass the filters; the line of code last."""
    table = knowing.of_captures(side.about(question), side.captures)
    table = matching(matching(table, "op", options.op), "module", options.module)
    frame = _drop_run(table.frame)
    stacks = frame.pop("call_stack")
    lines = [code_line(stack) or None for stack in stacks.fillna("")]
    return frame.assign(code_line=pd.array(lines, dtype="string"), call_stack=stacks)


def _large(frame: pd.DataFrame, columns: list[str], minimum_ns: int | None) -> pd.DataFrame:
    """The rows in which one of `columns` is at least `minimum_ns`."""
    if minimum_ns is None:
        return frame
    return frame[(frame[columns].fillna(0) >= minimum_ns).any(axis=1).astype(bool)].reset_index(drop=True)


def _drop_run(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="run_id").reset_index(drop=True)


def _plain(row: pd.Series) -> dict[str, Any]:
    """A row with None for NA and plain Python numbers."""
    return {
        str(key): None
        if pd.api.types.is_scalar(value) and pd.isna(value)
        else getattr(value, "item", lambda v=value: v)()
        for key, value in row.items()
    }
