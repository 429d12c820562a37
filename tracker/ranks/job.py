"""The ranks of one run beside each other, or those of two runs: the content of `tracker cluster`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare.references import named, needs_store
from tracker.compare.sides import load_all
from tracker.errors import UsageError
from tracker.ranks import exchange, missing, own_time
from tracker.ranks.work import Work, operator_rows
from tracker.regressions.hosts import TIMES, Stage, host_rows, stages_of
from tracker.results import CLUSTER_COLUMNS, SLOW, SUSPECT, UNEVEN, Cluster, ClusterOptions, ShowOptions
from tracker.units import counted, format_ns

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded
    from tracker.store import Store

_MICROBATCHES: Final = ("microbatches", "num_microbatches", "num_micro_batches", "micro_batches")
_NAMED: Final = 10
Row = dict[str, Any]
_CAUSES: Final = {
    "data loading": "it waits for its data", "host": "its host is slow", "copies": "its copies",
    "slow device": "its calls take longer, its device is slow", "more work": "it computes more than its peers",
    "compute": "its compute",
}  # fmt: skip
_COMPARED: Final[Mapping[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]] = {
    "ranks": (("rank",), (("own_ns", "ns"), ("step_ns", "ns"), ("wait_ns", "ns"))),
    "hosts": (("host",), (("own_ratio", "ratio"),)),
    "stages": (("stage",), (("own_ns", "ns"), ("own_max_ns", "ns"), ("bubble_ns", "ns"), ("idle_ns", "ns"))),
    "pipeline": ((), (("model_ns", "ns"), ("slowdown", "number"))),
    "roles": (("role", "rank"), (("exposed_ns", "ns"), ("wait_ns", "ns"))),
    "groups": (("role", "ranks", "kind"), (("transit_ns", "ns"), ("wait_ns", "ns"), ("bus_gb_per_s", "number"))),
    "links": (("transport", "source_rank", "target_rank"), (("bandwidth_gb_per_s", "number"),)),
    "balance": (("stage", "quantity"), (("imbalance", "number"),)),
}
"""Section -> what names its rows, and the numbers of two runs that are compared, with their units."""


def cluster(store: Store | None, *references: str, options: ClusterOptions | None = None) -> Cluster:
    """The ranks of the run that `references` name; of two runs those of the second, and `changes` from the first.

    References are those of `tracker show`: a run, a version with one run, a path. UsageError where one names several
    runs, or there are not one or two.
    """
    options = options or ClusterOptions()
    if len(references) not in (1, 2):
        raise UsageError(f"{len(references)} sides", remedy="name one run, or two to compare them")
    found = [_of_run(store, reference, options) for reference in references]
    if len(found) == 1:
        return found[0]
    before, after = found
    changes = Columns.of_rows(_changes(before, after), CLUSTER_COLUMNS["changes"])
    return replace(after, tables={**after.tables, "changes": changes}, baseline=before.run)


def _of_run(store: Store | None, reference: str, options: ClusterOptions) -> Cluster:
    reading = ShowOptions(
        workload=options.workload, ranks=options.ranks, stage=options.stage, steps=options.steps, format=options.format,
        flow_category=options.flow_category, allow_partial=options.allow_partial, skip_bad_rows=options.skip_bad_rows,
        max_bytes=options.max_bytes, on_progress=options.on_progress,
    )  # fmt: skip
    with ExitStack() as stack:
        if store is not None and needs_store(reference):
            stack.enter_context(store.reading())
        (reference,), runs = named(store, (reference,), options.workload)
        (side,) = load_all(store, (reference,), reading, stack, runs=runs, steps=(options.steps,))
        if len(side.run_ids) > 1:
            more = f" or {len(side.run_ids) - _NAMED} others" if len(side.run_ids) > _NAMED else ""
            names = ", ".join(f"run:{run_id}" for run_id in side.run_ids[:_NAMED]) + more
            remedy = f"name one of {names}" if needs_store(reference) else "name one of its files, or ingest it first"
            raise UsageError(f"{reference} is {len(side.run_ids)} runs", remedy=remedy)
        return _cluster(side, reference, options)


def _cluster(side: Loaded, reference: str, options: ClusterOptions) -> Cluster:
    stages = stages_of(side.captures.rows("rank", "stage"), side.steps.rows(*TIMES))
    work = Work(side)
    microbatches, source = _microbatches(side, options)
    steps = dict.fromkeys(side.captures.listed("rank"), 0)
    for rank, count in side.steps.rows("rank", "steps"):
        steps[rank] += count
    roles = exchange.role_rows(side, steps)
    calls = exchange.calls_of(side)
    longest, late = exchange.call_rows(calls)
    rows = own_time.rank_rows(side, stages, work, exchange.of_ranks(roles))
    for row in rows:
        row["late_calls"] = late.get(row["rank"], 0) if calls.matched else None
    pipeline = own_time.pipeline_row(stages, microbatches, source)
    tables = {
        "ranks": sorted(rows, key=lambda row: (row.get("verdict") is None, -(row.get("own_ratio") or 0), row["rank"])),
        "steps": own_time.step_rows(stages),
        "hosts": host_rows({rank: host for rank, host in side.captures.rows("rank", "host") if host}, stages),
        "stages": own_time.stage_rows(stages, rows, microbatches),
        "pipeline": [pipeline] if pipeline else [],
        "roles": roles,
        "groups": exchange.group_rows(calls, [*steps]),
        "calls": longest,
        "links": exchange.link_rows(side),
        "operators": operator_rows(work, stages),
        "balance": exchange.balance_rows(side, rows),
        "changes": [],
    }
    answer, verdict, remarks = _answer(tables, stages)
    record = side.runs.records()[0]
    run = {"reference": reference, "captured": len(steps), **record}
    return Cluster(
        run=run,
        tables={name: Columns.of_rows(tables[name], names) for name, names in CLUSTER_COLUMNS.items()},
        answer=answer,
        verdict=verdict,
        remarks=remarks,
        missing=missing.sentences(side, stages, tables, calls, has_microbatches=microbatches is not None),
        notes=side.warnings,
        options=options,
    )


def _microbatches(side: Loaded, options: ClusterOptions) -> tuple[int | None, str]:
    if options.microbatches is not None:
        return options.microbatches, "--microbatches"
    from tracker.store import queries

    for _, key, value in queries.facts.columns(side.store, side.run_ids).rows("kind", "key", "value"):
        if key in _MICROBATCHES and str(value).isdecimal() and int(value) > 0:
            return int(value), key
    return None, ""


def _answer(tables: Mapping[str, list[Row]], stages: Sequence[Stage]) -> tuple[str, str, tuple[str, ...]]:
    """The sentence that says who holds the job back, its verdict, and what limits it."""
    rows = tables["ranks"]
    if len(rows) < 2:
        return "One rank is captured: there is no other to compare it with", "", ()
    slow = [row for row in rows if row.get("verdict") == SLOW]
    hosts = [row for row in tables["hosts"] if row["verdict"] == SLOW]
    links = [row for row in tables["links"] if row.get("verdict") == SLOW]
    others = tuple(
        f"The {row['transport']} link from rank {row['source_rank']} to {row['target_rank']} is slow: "
        f"{row['bandwidth_gb_per_s']:.2f} GB/s ({row['place']})."
        for row in links[:2]
    )
    uneven = [f"stage {stage.number}" if stage.number is not None else "the ranks" for stage in stages
              if stage.is_uneven]  # fmt: skip
    if hosts and len(hosts[0]["host"]) and (not slow or hosts[0]["ranks"] > 1):
        worst = hosts[0]
        text = f"host {worst['host']} holds the job back: the own time of its {counted(worst['ranks'], 'rank')} is "
        return f"{text}x{worst['own_ratio']:.2f} that of the others", SLOW, (_sure(worst, stages), *others)
    if slow:
        first = slow[0]
        where = f" on {first['host']}" if first.get("host") else ""
        place = f" in {first['place']}" if first.get("place") else ""
        cause = f", {_CAUSES[first['cause']]}{place}" if first.get("cause") else ""
        text = f"rank {first['rank']}{where} holds the job back by {format_ns(first['cost_ns'])} a step{cause}"
        more = [f"Slow as well: rank {', '.join(str(row['rank']) for row in slow[1:4])}."] if len(slow) > 1 else []
        return text, SLOW, (_sure(first, stages), *more, *others)
    suspects = [row for row in rows if row.get("verdict") == SUSPECT]
    if suspects:
        first = suspects[0]
        text = f"rank {first['rank']} may hold the job back by {format_ns(first['cost_ns'])} a step"
        return text, SUSPECT, (_sure(first, stages), "Record more steps to be sure.", *others)
    if uneven:
        spread = max(stage.spread or 0.0 for stage in stages if stage.is_uneven)
        text = f"no rank is slow, and the work is uneven: the slowest of a step takes x{spread:.2f} its stage's median"
        return text, UNEVEN, (f"Another rank of {' and '.join(uneven)} is slowest from step to step.", *others)
    known = [stage for stage in stages if len(stage.ranks) > 1]
    if not known:
        return "no rank can be compared with another", "", others
    if max(len(stage.steps) for stage in known) < 3:
        count = counted(max(len(stage.steps) for stage in known), "step")
        return f"no rank can be called slow by {count}", "", others
    return "no rank holds the others back", "", others


def _sure(row: Mapping[str, Any], stages: Sequence[Stage]) -> str:
    steps = max((len(stage.steps) for stage in stages if "rank" not in row or row["rank"] in stage.ranks), default=0)
    own = f"own time {format_ns(row['own_ns'])}, " if row.get("own_ns") is not None else ""
    chance = f"chance does that to any of them with q = {row['q']:.3f}" if row["q"] >= 0.001 else "q < 0.001"
    return (
        f"{own}x{row['own_ratio']:.2f} of its peers; the slowest in {row['slowest_steps']} of {steps} steps, {chance}."
    )


def _changes(before: Cluster, after: Cluster) -> list[Row]:
    """Numbers of both runs by section and row, those of the candidate in its order; one side may lack a row."""
    rows = []
    for section, (keys, metrics) in _COMPARED.items():
        tables = [{tuple(row[key] for key in keys): row for row in found.tables[section].records()}
                  for found in (before, after)]  # fmt: skip
        for key in dict.fromkeys([*tables[1], *tables[0]]):
            name = " ".join(f"{word} {part}" for word, part in zip(keys, key, strict=True) if part is not None)
            for metric, unit in metrics:
                first, last = (table.get(key, {}).get(metric) for table in tables)
                if first is None and last is None:
                    continue
                delta = None if first is None or last is None else float(last - first)
                rows.append(
                    {
                        "section": section, "name": name or ("all ranks" if keys else section), "metric": metric, "unit": unit,
                        "baseline_value": None if first is None else float(first),
                        "candidate_value": None if last is None else float(last),
                        "delta": delta, "diff": delta / first if delta is not None and first else None,
                    }
                )  # fmt: skip
    return rows
