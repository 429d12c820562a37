"""What the captures of a run cannot tell about its ranks, and what to record so that they can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracker.detect.peers import FEWEST_STEPS
from tracker.store import queries
from tracker.units import counted, format_numbers

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded
    from tracker.regressions.hosts import Stage
    from tracker.store.calls.splitting import RunCalls

_COLLECTIVES: Final = {
    "torch_profiler": "record device activity (ProfilerActivity.CUDA) and, on a CPU, gloo through torch.distributed",
    "ascend_text": "profiler_level=Level1 or higher, and communication analysis",
    "ascend_db": "profiler_level=Level1 or higher",
    "nsys": "nsys profile --trace=cuda,nvtx,osrt with NCCL's NVTX ranges",
}
_NAMED: Final = 3


def sentences(
    side: Loaded,
    stages: Sequence[Stage],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    calls: RunCalls,
    *,
    has_microbatches: bool,
) -> tuple[str, ...]:
    """A sentence for each thing that is not known, the one that hides most first."""
    return tuple(_sentences(side, stages, tables, calls, has_microbatches))


def _sentences(
    side: Loaded,
    stages: Sequence[Stage],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    calls: RunCalls,
    has_microbatches: bool,
) -> Iterator[str]:
    captured = side.captures.listed("rank")
    (format,) = side.runs.listed("format")
    world = _world(side)
    if len(captured) < 2:
        yield "Slow ranks, groups and links: one rank is captured. Ingest the files of all ranks in one call."
    elif world and world > len(captured):
        yield f"{len(captured)} of {world} ranks are captured: a rank is compared with those alone."
    compared = {rank for stage in stages for rank in stage.ranks}
    unknown = sorted(set(captured) - compared)
    if unknown and len(captured) > 1:
        yield f"The own time of rank {format_numbers(unknown)}: no step has a time and its exposed communication."
    steps = max((len(stage.steps) for stage in stages), default=0)
    if stages and len(captured) > 1 and steps < FEWEST_STEPS:
        yield (
            f"Which rank is slow: {counted(steps, 'step')} in common, and chance needs {FEWEST_STEPS} or more. Record "
            "five (schedule(active=5))."
        )
    if len(captured) > 1 and not tables["roles"]:
        how = _COLLECTIVES.get(format, "record collectives")
        yield f"Communication: the captures hold no collectives. To have them: {how}."
    yield from _groups(calls)
    if tables["roles"] and not tables["links"] and len(captured) > 1:
        how = "a source of Ascend states them with profiler_level=Level1 (communication.json)"
        yield f"Links: the captures state no transfers from rank to rank; {how}."
    if len(stages) < 2 and any(row["role"] == "pp" for row in tables["roles"]):
        yield "Stages: nothing says which rank is in which stage; all ranks are compared with each other."
    if len(stages) > 1 and not has_microbatches:
        yield "The model of the pipeline: the number of microbatches is not known. Give --microbatches M."
    hosts = side.captures.listed("host")
    if len(captured) > 1 and not any(hosts):
        yield "Slow hosts: the captures name no hosts. Keep the names of folders as the profiler writes them."


def _world(side: Loaded) -> int | None:
    for _, key, value in queries.facts.columns(side.store, side.run_ids).rows("kind", "key", "value"):
        if key == "world_size" and str(value).isdecimal():
            return int(value)
    return None


def _groups(calls: RunCalls) -> Iterator[str]:
    """Groups of which not all members are captured, and calls that have no partner."""
    captured = set(calls.calls)
    partly = [
        f"{group.role or 'group'} {format_numbers(group.ranks)}: {len(captured & {*group.ranks})} of {len(group.ranks)}"
        for group in calls.groups.values()
        if len(group.ranks) > 1 and not captured.issuperset(group.ranks)
    ]
    if partly:
        more = f" and {counted(len(partly) - _NAMED, 'more group')}" if len(partly) > _NAMED else ""
        yield f"Waiting and transit of groups that are not captured whole ({'; '.join(partly[:_NAMED])}{more})."
    nameless = any((own.group < 0).any() for own in calls.calls.values() if len(own))
    if nameless and sum(len(group.ranks) != 1 for group in calls.groups.values()) > 1:
        yield "Waiting in calls that name no process group, where the run has several."
        return
    for matched in calls.matched:
        counts = {rank: int((calls.calls[rank].peer < 0).sum()) for rank in matched.ranks}
        if not matched.places.shape[1] and min(counts.values()):
            yield f"Waiting in the group of ranks {format_numbers(matched.ranks)}: no calls of theirs are one call."
