"""Rows of ops as a tree: modules in modules, phases, ops in ops, kernels; every number summed up to the top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

Value = float | None
Numbers = list[Value]
Name = tuple[str, str, str]
"""Kind (module, phase, op, kernel, outside), name and input shapes of a row of a tree."""
Group = tuple[int, ...]
"""What a tree is of: a run and, where they are kept apart, a rank and a step."""

NUMBERS: Final = ("calls", "op_calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")
"""What `Numbers` holds, in order."""
CALLS, OP_CALLS, HOST_TOTAL, HOST_SELF, DEVICE_TOTAL, DEVICE_SELF = range(len(NUMBERS))
_JOINTS: Final = {"module": "/"}
MAX_DEPTH: Final = 200
"""Levels of a tree that are shown; what lies deeper is in the totals of the rows above."""


class Leaf(Struct, frozen=True):
    """An op (or what stands for it) under `path`, with its own numbers; the rows above get their sums from it.

    `host_ns`, `device_ns`: time that nothing else counts. `host_total_ns`, `device_total_ns`: where both are None, what
    is known with the ops inside; it stands in the row of the op alone, since the ops inside may have rows of their own.
    """

    group: Group
    path: tuple[Name, ...]
    calls: Value
    host_ns: Value
    device_ns: Value
    host_total_ns: Value = None
    device_total_ns: Value = None


class Tree(Struct):
    """All rows under any group: `names`, `parents` (-1: none) and `children` by number; parents come first.

    `values`: group -> number of the row -> its numbers; a row that is not in a group has none there.
    """

    names: list[Name] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    values: dict[Group, dict[int, Numbers]] = field(default_factory=dict)
    _known: dict[tuple[int, Name], int] = field(default_factory=dict)

    def at(self, parent: int, name: Name) -> int:
        """Return the number of the row `name` below `parent`, made on first use."""
        node = self._known.get((parent, name))
        if node is None:
            node = self._known[parent, name] = len(self.names)
            self.names.append(name)
            self.parents.append(parent)
            self.children.append([])
            (self.roots if parent < 0 else self.children[parent]).append(node)
        return node

    def below(self, path: Iterable[Name]) -> int:
        """Return the number of the row at the end of `path`."""
        node = -1
        for name in path:
            node = self.at(node, name)
        return node

    def find(self, path: Iterable[Name]) -> int:
        """Return the number of the row at the end of `path`, -1 where there is none."""
        node = -1
        for name in path:
            node = self._known.get((node, name), -2)
        return max(node, -1)

    def numbers(self, group: Group, node: int) -> Numbers:
        """Return the numbers of a row, to be filled."""
        return self.values.setdefault(group, {}).setdefault(node, [None] * len(NUMBERS))

    def path(self, node: int) -> str:
        """Return the names down to a row: `GPT_0/Block_0 > aten::mm [[2, 3], [3, 4]]`."""
        parts: list[str] = []
        while node >= 0:
            kind, name, shapes = self.names[node]
            parts.append(f"{name} {shapes}" if shapes else name)
            node = self.parents[node]
            if node >= 0:
                parts.append(_JOINTS.get(kind, " > ") if self.names[node][0] == kind else " > ")
        return "".join(reversed(parts))


def grown(leaves: Iterable[Leaf], counted: Mapping[tuple[Group, tuple[Name, ...]], Value], tree: Tree) -> None:
    """Adds `leaves` to `tree`: to itself, as self time also to the row that holds it, as total to all rows above.

    `counted`: how often a module was called, by its path.
    """
    for leaf in leaves:
        own = tree.below(leaf.path)
        numbers = tree.numbers(leaf.group, own)
        if tree.names[own][0] in ("op", "kernel"):
            numbers[CALLS] = plus(numbers[CALLS], leaf.calls)
        holder = tree.parents[own] if tree.names[own][0] == "op" else -1
        for node in (own, holder) if holder >= 0 else (own,):
            numbers = tree.numbers(leaf.group, node)
            numbers[HOST_SELF] = plus(numbers[HOST_SELF], leaf.host_ns)
            numbers[DEVICE_SELF] = plus(numbers[DEVICE_SELF], leaf.device_ns)
        if leaf.host_ns is None and leaf.device_ns is None:
            numbers = tree.numbers(leaf.group, own)
            numbers[HOST_TOTAL] = plus(numbers[HOST_TOTAL], leaf.host_total_ns)
            numbers[DEVICE_TOTAL] = plus(numbers[DEVICE_TOTAL], leaf.device_total_ns)
        node = own
        while node >= 0:
            numbers = tree.numbers(leaf.group, node)
            numbers[OP_CALLS] = plus(numbers[OP_CALLS], leaf.calls)
            numbers[HOST_TOTAL] = plus(numbers[HOST_TOTAL], leaf.host_ns)
            numbers[DEVICE_TOTAL] = plus(numbers[DEVICE_TOTAL], leaf.device_ns)
            if tree.names[node][0] == "kernel" and node != own:
                numbers[CALLS] = plus(numbers[CALLS], leaf.calls)
            node = tree.parents[node]
    for (group, path), calls in counted.items():
        node = tree.find(path)
        if node in tree.values.get(group, {}):
            tree.numbers(group, node)[CALLS] = calls


def plus(first: Value, second: Value) -> Value:
    """Return the sum of what is known; None where nothing is."""
    return second if first is None else first if second is None else first + second


def ordered(tree: Tree, size: Mapping[int, tuple[float, ...]], depth: int | None) -> list[tuple[int, int]]:
    """Return the rows in `size` with their levels, below each row those in it, the largest first; at most `depth`
    levels, and never more than MAX_DEPTH.
    """
    deepest = MAX_DEPTH if depth is None else min(depth, MAX_DEPTH)
    found: list[tuple[int, int]] = []

    def ranked(nodes: Sequence[int]) -> list[int]:
        """Return the largest last, since the last is taken first."""
        there = sorted((node for node in nodes if node in size), key=lambda node: tree.names[node], reverse=True)
        return sorted(there, key=lambda node: size[node])

    waiting = [(node, 0) for node in ranked(tree.roots)]
    while waiting:
        node, level = waiting.pop()
        found.append((node, level))
        if level + 1 < deepest:
            waiting += [(child, level + 1) for child in ranked(tree.children[node])]
    return found
