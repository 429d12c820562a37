"""What the captures of a run cannot tell about its ranks, and what to record so that they can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tracker.detect.peers import FEWEST_STEPS
from tracker.ranks.waiting import TASKS
from tracker.schema.column_names import FORMAT, HOST, RANK, SETTINGS
from tracker.store.calls.splitting import PIPELINE
from tracker.store.queries import settings_of
from tracker.units import counted, format_numbers

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.detect.stages import Stage
    from tracker.results import ClusterOptions
    from tracker.results.cluster import ClusterRows
    from tracker.store.calls.splitting import RunCalls

_COLLECTIVES: Final = {
    "torch_profiler": "record device activity (ProfilerActivity.CUDA) and, on a CPU, gloo through torch.distributed",
    "ascend_text": "profiler_level=Level1 or higher, and communication analysis",
    "ascend_db": "profiler_level=Level1 or higher",
    "nsys_sqlite": "nsys profile --trace=cuda,nvtx,osrt",
}
_STEPS: Final = {
    "torch_profiler": "schedule(active=5)", "ascend_text": "schedule(active=5)", "ascend_db": "schedule(active=5)",
    "nsys_sqlite": "mark them with NVTX ranges",
}  # fmt: skip
_LINKS: Final = {"ascend_text": "profiler_level=Level1 (communication.json)", "ascend_db": "profiler_level=Level1"}
"""Format -> the option of its profiler that records what is missing."""
_NAMED: Final = 3


def sentences(
    side: LoadedSide,
    stages: Sequence[Stage],
    rows: ClusterRows,
    calls: RunCalls,
    facts: Mapping[str, str],
    options: ClusterOptions,
) -> tuple[str, ...]:
    """Return a sentence for each thing that is not known, the one that hides most first. `facts`: of the run, by
    key.
    """
    return tuple(_sentences(side, stages, rows, calls, facts, options))


def _sentences(
    side: LoadedSide,
    stages: Sequence[Stage],
    rows: ClusterRows,
    calls: RunCalls,
    facts: Mapping[str, str],
    options: ClusterOptions,
) -> Iterator[str]:
    captured = side.captures.listed(RANK)
    (format,) = side.runs.listed(FORMAT)
    world_size = facts.get("world_size", "")
    world = int(world_size) if world_size.isdecimal() else 0
    is_chosen = bool(options.ranks) or options.stage is not None
    if len(captured) < 2 and is_chosen:
        yield "Slow ranks, groups and links: one rank is chosen. Leave out --rank and --stage."
    elif len(captured) < 2:
        yield "Slow ranks, groups and links: one rank is captured. Ingest the files of all ranks in one call."
    elif world > len(captured):
        how = "chosen" if is_chosen else "captured"
        yield f"{len(captured)} of {world} ranks are {how}: a rank is compared with those alone."
    if len(captured) > 1:
        yield from _of_several(side, stages, rows, format)
    if calls.matched and calls.without_clock:
        yield (
            f"Who came last: the captures of rank {format_numbers(sorted(calls.without_clock))} name no date, so that "
            "the ranks have no common clock. Record traces with baseTimeNanoseconds or epoch timestamps."
        )
    yield from _groups(calls, is_waiting_known=any(row.told_by == TASKS for row in rows.peers))
    if len(stages) < 2 and any(row.role == PIPELINE for row in rows.roles):
        yield "Stages: nothing says which rank is in which stage; all ranks are compared with each other."
    if len(stages) > 1 and not any(row.microbatches for row in rows.pipeline):
        yield "The model of the pipeline: the number of microbatches is not known. Give --microbatches M."


def _of_several(side: LoadedSide, stages: Sequence[Stage], rows: ClusterRows, format: str) -> Iterator[str]:
    compared = {rank for stage in stages for rank in stage.ranks}
    # of a partial rank the remark says why
    compared |= {rank for _, rank in side.partial.captures_of_partial_steps}
    unknown = sorted({*side.captures.listed(RANK)} - compared)
    if unknown:
        settings = [settings_of(text) for text in set(side.captures.listed(SETTINGS))]
        is_profiled = any(one.get("profiler") != "off" for one in settings)
        yield f"The own time of rank {format_numbers(unknown)}: " + (
            "no step has a time and its exposed communication."
            if is_profiled
            else "measured without a profiler, a step holds the waiting for other ranks too. Profile a few steps."
        )
    steps = max((len(stage.steps) for stage in stages), default=0)
    if stages and steps < FEWEST_STEPS:
        how = f": {_STEPS[format]}" if format in _STEPS else ""
        yield (
            f"Which rank is slow: the ranks have {counted(steps, 'step')} in common, {FEWEST_STEPS} are needed to tell "
            f"it from chance. Record five{how}."
        )
    if not rows.roles:
        how = _COLLECTIVES.get(format, "a profiler level that records collectives")
        yield f"Communication: the captures hold no collectives. To have them: {how}."
    elif not rows.links:
        how = f"; {_LINKS[format]} does" if format in _LINKS else "; profilers of this kind do not"
        yield f"Links: the captures record no transfers from rank to rank{how}."
    if not any(side.captures.listed(HOST)):
        yield "Slow hosts: the captures name no hosts. Keep the names of folders as the profiler writes them."


def _groups(calls: RunCalls, *, is_waiting_known: bool) -> Iterator[str]:
    """Yield groups of which not all members are captured, and calls that have no partner. `is_waiting_known`: by the
    tasks of collectives.
    """
    captured = set(calls.calls)
    partly = []
    for group in calls.groups.values():
        if len(group.ranks) > 1 and not captured.issuperset(group.ranks):
            count = f"({len(captured & {*group.ranks})} of {len(group.ranks)} captured)"
            partly.append(f"{group.role or 'group'} {format_numbers(group.ranks)} {count}")
    if partly:
        more = f" and {counted(len(partly) - _NAMED, 'more group')}" if len(partly) > _NAMED else ""
        what = "Transit" if is_waiting_known else "Waiting and transit"
        yield f"{what} in groups that were captured in part: {', '.join(partly[:_NAMED])}{more}."
    nameless = any((own.group < 0).any() for own in calls.calls.values() if len(own))
    if nameless and sum(len(group.ranks) != 1 for group in calls.groups.values()) > 1:
        yield "Waiting in calls that name no process group, where the run has several."
        return
    if not partly and not calls.matched and any(len(own) for own in calls.calls.values()):
        what = "Transit in collectives" if is_waiting_known else "Who waits for whom"
        yield f"{what}: the captures do not say which ranks a collective runs on."
    for matched in calls.matched:
        counts = {rank: int((calls.calls[rank].peer < 0).sum()) for rank in matched.ranks}
        of = f"the group of ranks {format_numbers(matched.ranks)}"
        if len(set(counts.values())) > 1:
            most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
            yield (
                f"Waiting of some calls in {of}: rank {most} has {counts[most]:,} of them, rank {least} has "
                f"{counts[least]:,}."
            )
        elif not matched.places.shape[1] and min(counts.values()):
            yield f"Waiting in {of}: no calls of theirs are one call."
