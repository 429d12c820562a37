"""From the lines of stacks to the rows of a capture: frames as operators, in a tree of calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tracker.errors import SourceError
from tracker.limits.rows import check_rows
from tracker.profile import CPU, Capture, Rows, StepRow
from tracker.readers import _rows
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers._text import lines_of
from tracker.units import NS_PER_US, counted

ONLY_STEP: Final = 0
"""The file knows no steps: the whole capture is one."""
MOST_US: Final = 1 << 40
"""Of a line: twelve days."""
_LINE: Final = re.compile(r"(?P<stack>\S.*) (?P<us>\d{1,18})")
_FRAME: Final = re.compile(r"(?P<file>.*\.py)\((?P<line>\d{1,9})\):[ _](?P<function>.+)")
_ADDRESS: Final = re.compile(r"[ _]at[ _]0x[0-9a-fA-F]{1,16}")
"""Of an object in the name of a built-in function: another one in each process."""
_METRIC: Final = re.compile(r"(?<![a-z])(cpu|cuda|npu|xpu)(?![a-z])")
"""In the name of a file: of what its times are."""
_SHOWN: Final = 60
_UNKNOWN_METRIC: Final = (
    "neither the file nor its name says of what its times are, of the host or of the device: they stand as times of "
    "the host"
)
_TRUNCATED: Final = "operators of less than 1 us are not in the file, and times are whole us"


class Stacks(Struct, frozen=True):
    """The time at each stack, in us, by its frames as they are written, joined by `;`. `lines`: of the file. `skipped`:
    those that are no stacks.
    """

    times_us: Mapping[str, int]
    lines: int
    skipped: int = 0


def capture_of(path: Path, options: ReadOptions) -> tuple[Capture, tuple[str, ...]]:
    """Return the capture, and what limits its numbers."""
    text = SourceText(path, options)
    found = read_stacks(path, lines_of(text), skip_bad_rows=options.skip_bad_rows)
    if not found.times_us:
        raise SourceError(path, "", "has no stacks", remedy="export them with with_stack=True")
    metric = _METRIC.search(path.name.lower())
    total_ns = sum(found.times_us.values()) * NS_PER_US
    overall = _rows.breakdown("host", compute_ns=total_ns)
    capture = Capture(
        rank=None,
        world_size=None,
        host="",
        device=CPU,
        device_ordinal=None,
        started_at_ns=None,
        ended_at_ns=None,
        sources=(text.source(),),
        settings={"profiler": "summary"},
        facts={"framework": "pytorch"},
        configuration={"stacks": metric[1]} if metric else {},
        rows=Rows(overall, (StepRow(ONLY_STEP, 0, overall),), _tables(found)),
    )
    warnings = [_TRUNCATED] if metric else [_UNKNOWN_METRIC, _TRUNCATED]
    if found.skipped:
        warnings.append(f"left out: {counted(found.skipped, 'line')} that could not be read")
    return capture, tuple(warnings)


def read_stacks(path: Path, lines: Iterable[str], *, skip_bad_rows: bool) -> Stacks:
    """Return the time at each stack; a SourceError names the first line that is none."""
    times_us: Counter[str] = Counter()
    number = skipped = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        us = int(match["us"]) if match else MOST_US
        if match is None or us >= MOST_US:
            if skip_bad_rows:
                skipped += 1
                continue
            shown = line.strip()[-_SHOWN:]
            what = "is no stack with its time" if match is None else "has a time of more than twelve days"
            raise SourceError(
                path, f"line {number}", f"{shown!r} {what}", remedy="export the stacks again, or pass --skip-bad-rows"
            )
        times_us[match["stack"]] += us
    return Stacks(times_us, number, skipped)


def name_frames(frames: Iterable[str]) -> dict[str, str]:
    """Return the name of each frame: function and file, and its place among those of this name, by their lines.

    >>> name_frames(["net.py(30):_forward", "net.py(9): forward"])
    {'net.py(30):_forward': 'forward (net.py) #2', 'net.py(9): forward': 'forward (net.py)'}
    """
    names: dict[str, str] = {}
    lines_of_name: dict[str, set[int]] = {}
    placed: dict[str, tuple[str, int]] = {}
    for frame in frames:
        match = _FRAME.fullmatch(frame)
        if match is None:
            names[frame] = _ADDRESS.sub("", frame) or "(no name)"
            continue
        name, line = f"{match['function']} ({match['file']})", int(match["line"])
        lines_of_name.setdefault(name, set()).add(line)
        placed[frame] = name, line
    places = {name: {line: at for at, line in enumerate(sorted(lines), 1)} for name, lines in lines_of_name.items()}
    for frame, (name, line) in placed.items():
        place = places[name][line]
        names[frame] = name if place == 1 else f"{name} #{place}"
    return names


def _tables(found: Stacks) -> dict[str, Any]:
    """Return the frames as operators: one row per name, and one per path."""
    frames = [stack.split(";") for stack in found.times_us]
    names = name_frames(dict.fromkeys(frame for stack in frames for frame in stack))
    raw_names: dict[str, str] = {}
    for frame, name in names.items():
        raw_names.setdefault(name, frame)
    tree = _Tree()
    for stack, us in zip(frames, found.times_us.values(), strict=True):
        tree.add([names[frame] for frame in stack], us * NS_PER_US)
        check_rows(len(tree.parents), found.lines, "places in stacks")
    keys = _rows.Keys("op_key")
    totals_ns = tree.sum_up()
    tree_rows: list[_rows.Row] = []
    of_name: dict[str, list[int]] = {}
    inside = tree.list_recursive()
    for node, (name, parent) in enumerate(zip(tree.names, tree.parents, strict=True)):
        sums = of_name.setdefault(name, [0, 0])
        sums[0] += tree.own_ns[node]
        # a function that calls itself has its time in the outer call
        sums[1] += 0 if node in inside else totals_ns[node]
        tree_rows.append(
            {"step": ONLY_STEP, "node": node, "parent": parent, "op_key": keys.at(name=name),
             "host_total_ns": totals_ns[node]}
        )  # fmt: skip
    op_rows: list[_rows.Row] = [
        {"step": ONLY_STEP, "op_key": keys.at(name=name), "host_self_ns": own_ns, "host_total_ns": total_ns,
         "raw_name": raw_names[name]}
        for name, (own_ns, total_ns) in of_name.items()
    ]  # fmt: skip
    return _rows.tables([("op_key", keys.table())], {"op": op_rows, "op_tree": tree_rows})


class _Tree:
    """Collects paths of names: per node its name, the node around it (-1: none), and its own time in ns."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parents: list[int] = []
        self.own_ns: list[int] = []
        self._node_of: dict[tuple[int, str], int] = {}

    def add(self, path: Sequence[str], ns: int) -> None:
        """Add time at the end of a path."""
        node = -1
        for name in path:
            place = node, name
            if place not in self._node_of:
                self._node_of[place] = len(self.names)
                self.names.append(name)
                self.parents.append(node)
                self.own_ns.append(0)
            node = self._node_of[place]
        self.own_ns[node] += ns

    def sum_up(self) -> list[int]:
        """Return the time of each node with all nodes in it."""
        totals_ns = self.own_ns.copy()
        for node in range(len(totals_ns) - 1, -1, -1):
            parent = self.parents[node]
            if parent >= 0:
                totals_ns[parent] += totals_ns[node]
        return totals_ns

    def list_recursive(self) -> set[int]:
        """Return the nodes that lie in a node of their own name."""
        children: list[list[int]] = [[] for _ in self.names]
        waiting: list[int] = []
        for node, parent in enumerate(self.parents):
            (children[parent] if parent >= 0 else waiting).append(node)
        around: Counter[str] = Counter()
        found = set()
        while waiting:
            node = waiting.pop()
            if node < 0:
                # all below it is done
                around[self.names[~node]] -= 1
                continue
            if around[self.names[node]]:
                found.add(node)
            around[self.names[node]] += 1
            waiting.append(~node)
            waiting += children[node]
        return found
