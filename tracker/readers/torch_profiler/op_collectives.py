"""Which host events carry a collective: on each thread only the innermost of nested ones, so that none counts twice.

`c10d::allreduce_` contains `record_param_comms`, which contains `nccl:all_reduce`. The annotation carries the call;
what `record_param_comms` says around it (sizes, data type, group) is better and goes before. One that contains no
annotation carries the call itself, if it names one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from tracker.profile import MISSING
from tracker.readers._collectives import Call
from tracker.readers._growing import Array
from tracker.readers.torch_profiler.collectives import Group, call_of_annotation, call_of_args
from tracker.readers.torch_profiler.schema import Args


class _CandidateOp(Struct):
    row: int
    end_ns: int
    call: Call | None
    outer: Call | None
    is_innermost: bool = True


def calls_of_ops(
    noted: Sequence[tuple[int, str, Args]], ops: Mapping[str, Array], groups: Mapping[str, Group]
) -> Iterator[tuple[int, Call]]:
    """(row of `ops`, its collective) for the rows that carry one; `noted`: row, name and args of the candidates."""
    order = sorted(
        noted, key=lambda n: (int(ops["thread"][n[0]]), int(ops["start_ns"][n[0]]), -int(ops["end_ns"][n[0]]), n[0])
    )
    open_calls: list[_CandidateOp] = []
    thread = -1
    for row, name, args in order:
        if int(ops["thread"][row]) != thread:
            yield from _carriers(open_calls)
            open_calls, thread = [], int(ops["thread"][row])
        while open_calls and open_calls[-1].end_ns <= int(ops["start_ns"][row]):
            yield from _carriers([open_calls.pop()])
        named = call_of_args(args, groups)
        outer = next((c.call or c.outer for c in reversed(open_calls) if c.call or c.outer), None)
        candidate = _CandidateOp(row, int(ops["end_ns"][row]), named or call_of_annotation(name, args, groups), outer)
        if candidate.call is not None:
            for around in open_calls:
                around.is_innermost = False
        open_calls.append(candidate)
    yield from _carriers(open_calls)


def _carriers(candidates: Sequence[_CandidateOp]) -> Iterator[tuple[int, Call]]:
    for candidate in candidates:
        if candidate.is_innermost and candidate.call is not None:
            yield candidate.row, _merged(candidate.outer, candidate.call)


def _merged(better: Call | None, call: Call) -> Call:
    """What `better` says, completed by `call`."""
    if better is None or better.kind != call.kind:
        return call
    return Call(
        better.kind,
        better.data_type or call.data_type,
        better.bytes if better.bytes != MISSING else call.bytes,
        better.group or call.group,
        better.group_role or call.group_role,
        better.group_size if better.group_size != MISSING else call.group_size,
        better.group_ranks or call.group_ranks,
        better.peer if better.peer >= 0 else call.peer,
    )
