"""The single calls of a capture that its rows add up: of an operator, a kernel, a collective or an idle place.

They are made of the same joined events as the rows, and by the same keys, so that they add up to these to the ns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.columns import Column, Columns, Flags, objects
from tracker.profile import I64, MISSING, NO_STEP, IdleCause, label_idle
from tracker.schema.column_names import END_NS, START_NS
from tracker.table import group_rows, list_codes, sum_by_number
from tracker.timeline.breakdown import host_calls
from tracker.timeline.communication import list_tasks
from tracker.timeline.idle import find_windows, list_pieces, name_idle_place, take_steps
from tracker.timeline.idle_gaps import find_gaps
from tracker.timeline.joined import Joined
from tracker.timeline.kernels import name_canonically
from tracker.timeline.nesting import NONE
from tracker.timeline.tree import grow


class WantedCalls(Struct, frozen=True, kw_only=True):
    """Which calls of a capture are listed.

    `kind`: operator, kernel (copies are among them), collective or idle.
    `name`: of an operator its name; of a kernel its own name or the canonical one, None for all kernels; of a
    collective its kind; of idle time its cause, its place, or what `label_idle` makes of both.
    `shapes`: only calls with these input shapes, None: of all.
    `op`, `module`, `group`: patterns of the operator that launched a kernel, of the module of an operator, of the role
    of the group of a collective; None: all.
    `steps`: only what these did, None: all steps. `in_steps`: leave out what lies outside of all steps.
    """

    kind: str
    name: str | None
    shapes: str | None = None
    op: str | None = None
    module: str | None = None
    group: str | None = None
    steps: frozenset[int] | None = None
    in_steps: bool = True

    def keep_steps(self, step: I64) -> Flags:
        """Return which of these steps are wanted."""
        if self.steps is not None:
            return np.isin(step, list(self.steps))
        return step != NO_STEP if self.in_steps else np.ones(len(step), dtype=bool)


def list_calls(joined: Joined, wanted: WantedCalls, zero_ns: int) -> Columns:
    """Return the wanted calls, in order of their start, with the columns of `ListedCall` that their kind has.

    zero_ns: from when `start_ns` and `end_ns` count, on the clock of the events.
    """
    found = _LISTED[wanted.kind](joined, wanted)
    order = np.lexsort((found[END_NS], found[START_NS]))
    found = found.taken(order)
    start_ns, end_ns = found[START_NS], found[END_NS]
    return found.having(start_ns=start_ns - zero_ns, end_ns=end_ns - zero_ns, trace_ns=start_ns)


def _list_operators(joined: Joined, wanted: WantedCalls) -> Columns:
    """Return the calls of an operator.

    One that lies in another call of the same key has no total time, since that counts it already. One that begins
    outside of the wanted steps is listed where it launched work that counts in them, and has no time of the host.
    """
    keys, tree, events = joined.keys, joined.tree, joined.events
    is_wanted_key = np.fromiter(
        (
            name == wanted.name and _fits(shapes, wanted.shapes) and _matches(module, wanted.module)
            for name, shapes, module in zip(keys.name, keys.input_shapes, keys.module, strict=True)
        ),
        bool,
        len(keys),
    )
    has_name = is_wanted_key[keys.of_op]
    counts = wanted.keep_steps(joined.op_step) & events.host_is_primary
    device_self_ns, device_total_ns, below = _device_times(joined, wanted)
    rows = np.flatnonzero(has_name & (counts | (below > 0)))
    is_outermost = ~tree.lies_in_equal(keys.of_op)[rows]
    counts = counts[rows]
    duration_ns = (tree.end_ns - tree.start_ns)[rows]
    codes = keys.of_op[rows]
    return Columns(
        {
            "step": _known(joined.op_step[rows], wanted.keep_steps(joined.op_step[rows])),
            "name": _texts(keys.name, codes),
            "input_shapes": _texts(keys.input_shapes, codes),
            "start_ns": tree.start_ns[rows],
            "end_ns": tree.end_ns[rows],
            "duration_ns": duration_ns,
            "host_total_ns": _known(duration_ns, counts & is_outermost),
            "host_self_ns": _known(tree.self_ns()[rows], counts),
            "device_total_ns": _known(device_total_ns[rows], is_outermost & joined.on_device),
            "device_self_ns": _known(device_self_ns[rows], np.full(len(rows), joined.on_device)),
            "thread": _texts(events.threads, events.ops.thread[rows]),
            "module": _texts(keys.module, codes),
            "phase": _texts(keys.phase, codes),
            "counts": counts,
        }
    )


def _device_times(joined: Joined, wanted: WantedCalls) -> tuple[I64, I64, I64]:
    """Return per op the time of the device events that it launched in the wanted steps, that with all ops below it, and
    how many events these are.
    """
    device, count = joined.events.device, len(joined.tree)
    launched = np.flatnonzero((joined.op >= 0) & wanted.keep_steps(joined.step))
    own_ns = sum_by_number(joined.op[launched], (device.end_ns - device.start_ns)[launched], count)
    events = np.bincount(joined.op[launched], minlength=count).astype(np.int64)
    return own_ns, joined.tree.summed_up(own_ns), joined.tree.summed_up(events)


def _list_kernels(joined: Joined, wanted: WantedCalls) -> Columns:
    """Return the calls of a kernel, of a copy or a memset; of all of them also what kernels they are and which
    operators are around their launch.
    """
    device, keys, texts = joined.events.device, joined.keys, joined.events.strings.texts
    is_kernel = np.ones(len(device), dtype=bool) if wanted.name is None else _has_name(joined, wanted.name)
    fits_shapes = np.fromiter((_fits(text, wanted.shapes) for text in texts), bool, len(texts))
    has_op = np.fromiter((_matches(name, wanted.op) for name in keys.name), bool, len(keys))
    is_kernel &= fits_shapes[device.input_shapes] & has_op[joined.op_key] & wanted.keep_steps(joined.step)
    rows = np.flatnonzero(is_kernel)
    op_key = joined.op_key[rows]
    return Columns(
        {
            "step": _known(joined.step[rows], joined.step[rows] != NO_STEP),
            "name": _texts(texts, device.name[rows]),
            "input_shapes": _texts(texts, device.input_shapes[rows]),
            "start_ns": device.start_ns[rows],
            "end_ns": device.end_ns[rows],
            "duration_ns": device.end_ns[rows] - device.start_ns[rows],
            **_places(joined, rows),
            "op": _texts(keys.name, op_key),
            "bytes": _known(device.bytes[rows], device.bytes[rows] != MISSING),
            **(_kernels_and_callers(joined, rows) if wanted.name is None else {}),
        }
    )


def _has_name(joined: Joined, wanted: str) -> Flags:
    """Return which device events are of a kernel with this name of its own or this canonical one."""
    device, texts = joined.events.device, joined.events.strings.texts
    has_name = np.zeros(len(texts), dtype=bool)
    for code in list_codes(device.name):
        has_name[code] = texts[code] == wanted
    is_kernel = has_name[device.name]
    for (name, kernel_type), canonical in name_canonically(joined).items():
        if canonical == wanted:
            is_kernel |= (device.name == name) & (device.type == kernel_type)
    return is_kernel


def _kernels_and_callers(joined: Joined, rows: I64) -> dict[str, Any]:
    """Return of device events the canonical name, the core type, and `callers`: name and shapes of each operator around
    the launch, the outermost first; of what no operator launched those of the row that stands for it.
    """
    device, keys, texts = joined.events.device, joined.keys, joined.events.strings.texts
    names = name_canonically(joined)
    of_kernel = zip(device.name[rows].tolist(), device.type[rows].tolist(), strict=True)
    parent, key_of_op = joined.tree.parent, keys.of_op
    known: dict[int, tuple[tuple[str, str], ...]] = {-1: ()}

    def callers_of(op: int) -> tuple[tuple[str, str], ...]:
        inner: list[int] = []
        while op not in known:
            inner.append(op)
            op = int(parent[op])
        for one in reversed(inner):
            key = int(key_of_op[one])
            known[one] = (*known[op], (keys.name[key], keys.input_shapes[key]))
            op = one
        return known[op]

    callers = np.empty(len(rows), dtype=object)
    for at, (op, key) in enumerate(zip(joined.op[rows].tolist(), joined.op_key[rows].tolist(), strict=True)):
        callers[at] = callers_of(op) or ((keys.name[key], keys.input_shapes[key]),)
    return {
        "canonical_name": objects([names[kernel] for kernel in of_kernel]),
        "core_type": _texts(texts, device.core_type[rows]),
        "callers": callers,
    }


def _places(joined: Joined, rows: I64) -> dict[str, Any]:
    """Return stream, task and correlation of device events; of row -1 none."""
    device, task = joined.events.device, joined.events.extras.task
    is_event = rows >= 0
    tasks = np.append(task, MISSING)[rows] if len(task) else np.full(len(rows), MISSING)
    found = {
        "stream": np.append(device.stream, NONE)[rows],
        "task_id": tasks,
        "correlation": np.append(device.correlation, NONE)[rows],
    }
    return {name: _known(values, is_event & (values >= 0)) for name, values in found.items()}


def _list_collectives(joined: Joined, wanted: WantedCalls) -> Columns:
    """Return the calls of a kind of collective. The duration of one that consists of several kernels or copies is the
    sum of their times.
    """
    tasks = list_tasks(joined)
    is_wanted_kind = np.fromiter(
        (call.kind == wanted.name and _matches(call.group_role, wanted.group) for call in tasks.calls),
        bool,
        len(tasks.calls),
    )
    rows = np.flatnonzero(is_wanted_kind[tasks.of_kind] & wanted.keep_steps(tasks.step))
    of_kind = tasks.of_kind[rows]
    calls = group_rows(tasks.step[rows], of_kind, tasks.call[rows])
    first = calls.first
    kinds = [tasks.calls[kind] for kind in of_kind[first].tolist()]
    size_bytes = np.array([call.bytes for call in kinds], dtype=np.int64)
    peer = np.array([call.peer for call in kinds], dtype=np.int64)
    step = tasks.step[rows][first]
    return Columns(
        {
            "step": _known(step, step != NO_STEP),
            "name": objects([call.kind for call in kinds]),
            "start_ns": calls.smallest(tasks.start_ns[rows]),
            "end_ns": calls.largest(tasks.end_ns[rows]),
            "duration_ns": calls.sums(tasks.end_ns[rows] - tasks.start_ns[rows]),
            **_places(joined, tasks.event[rows][first]),
            "group_role": objects([call.group_role for call in kinds]),
            "bytes": _known(size_bytes, size_bytes != MISSING),
            "peer": _known(peer, peer >= 0),
        }
    )


def _list_idle(joined: Joined, wanted: WantedCalls) -> Columns:
    """Return the parts of gaps in the work of the device that have this cause or place."""
    events, texts = joined.events, joined.events.strings.texts
    parts: list[tuple[I64, ...]] = []
    gaps = find_gaps(joined, host_calls(joined))
    if gaps is not None:
        frames = None
        if len(events.frames):
            no_modules = np.flatnonzero(events.frames.is_module == 0)
            frames = grow(events.frames.thread, events.frames.start_ns, events.frames.end_ns, no_modules)
        windows = find_windows(joined, gaps)
        for every in list_pieces(joined, gaps, frames):
            pieces, step = take_steps(every, windows)
            kinds = group_rows(pieces.cause, pieces.place)
            fits = np.fromiter(
                (
                    _is_idle_place(IdleCause(int(pieces.cause[row])), texts[int(pieces.place[row])], wanted.name)
                    for row in kinds.first.tolist()
                ),
                bool,
                len(kinds),
            )
            is_wanted = fits[kinds.number] & wanted.keep_steps(step)
            pieces, step = pieces.taken(is_wanted), step[is_wanted]
            of_gap = group_rows(step, pieces.cause, pieces.place, pieces.gap)
            parts.append(
                (
                    step[of_gap.first],
                    pieces.cause[of_gap.first],
                    pieces.place[of_gap.first],
                    of_gap.smallest(pieces.start_ns),
                    of_gap.largest(pieces.end_ns),
                    of_gap.sums(pieces.end_ns - pieces.start_ns),
                    gaps.thread[pieces.gap[of_gap.first]],
                )
            )
    none = (np.zeros(0, dtype=np.int64),) * 7
    step, cause, place, start_ns, end_ns, ns, thread = (
        np.concatenate(column) for column in zip(none, *parts, strict=True)
    )
    causes = [IdleCause(number) for number in cause.tolist()]
    names = [name_idle_place(one, texts[code]) for one, code in zip(causes, place.tolist(), strict=True)]
    return Columns(
        {
            "step": step,
            "name": objects(names),
            "start_ns": start_ns,
            "end_ns": end_ns,
            "duration_ns": ns,
            "thread": _texts((*events.threads, ""), thread),
            "cause": objects([one.word for one in causes]),
        }
    )


def _is_idle_place(cause: IdleCause, text: str, name: str | None) -> bool:
    place = name_idle_place(cause, text)
    return name in (cause.word, place or cause.word, label_idle(cause.word, place))


_LISTED: Final[dict[str, Callable[[Joined, WantedCalls], Columns]]] = {
    "operator": _list_operators, "kernel": _list_kernels, "collective": _list_collectives, "idle": _list_idle,
}  # fmt: skip


def _fits(text: str, wanted: str | None) -> bool:
    return wanted is None or text == wanted


def _matches(text: str, pattern: str | None) -> bool:
    return not pattern or fnmatchcase(text, pattern)


def _texts(texts: Sequence[str], codes: NDArray[np.integer]) -> Any:
    """Return the text behind each code, None for an empty one."""
    return objects([text or None for text in texts])[codes]


def _known(values: I64, is_known: Flags) -> Column:
    return Column(values, ~is_known)
