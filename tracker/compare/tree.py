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
    _number_of: dict[tuple[int, Name], int] = field(default_factory=dict)

    def number_child(self, parent: int, name: Name) -> int:
        """Return the number of the row `name` below `parent` (-1: at the top), made on first use."""
        node = self._number_of.get((parent, name))
        if node is not None:
            return node
        node = self._number_of[parent, name] = len(self.names)
        self.names.append(name)
        self.parents.append(parent)
        self.children.append([])
        siblings = self.roots if parent < 0 else self.children[parent]
        siblings.append(node)
        return node

    def number_path(self, path: Iterable[Name]) -> int:
        """Return the number of the row at the end of `path`, whose rows are made on first use; -1 for no path."""
        node = -1
        for name in path:
            node = self.number_child(node, name)
        return node

    def find(self, path: Iterable[Name]) -> int:
        """Return the number of the row at the end of `path`, -1 where there is none."""
        node = -1
        for name in path:
            # below -2, which is no row, there is none either
            node = self._number_of.get((node, name), -2)
        return max(node, -1)

    def growing_numbers(self, group: Group, node: int) -> Numbers:
        """Return the numbers of a row, which are added up in place."""
        return self.values.setdefault(group, {}).setdefault(node, [None] * len(NUMBERS))

    def spell_path(self, node: int) -> str:
        """Return the names down to a row: `GPT_0/Block_0 > aten::mm [[2, 3], [3, 4]]`."""
        parts: list[str] = []
        while node >= 0:
            kind, name, shapes = self.names[node]
            parts.append(f"{name} {shapes}" if shapes else name)
            node = self.parents[node]
            if node >= 0:
                is_module_in_module = kind == "module" and self.names[node][0] == "module"
                parts.append("/" if is_module_in_module else " > ")
        return "".join(reversed(parts))


def add_leaves(
    tree: Tree, leaves: Iterable[Leaf], calls_of_rows: Mapping[tuple[Group, tuple[Name, ...]], Value]
) -> None:
    """Add leaves to a growing tree: each to its own row, its self time to the row that holds it, too, and its total to
    all rows above.

    `calls_of_rows`: how often a module or a phase was called, by its path.
    """
    for leaf in leaves:
        node = tree.number_path(leaf.path)
        _add_self_time(tree, leaf, node)
        _add_totals(tree, leaf, node)
    for (group, path), calls in calls_of_rows.items():
        node = tree.find(path)
        if node in tree.values.get(group, {}):
            tree.growing_numbers(group, node)[CALLS] = calls


def _add_self_time(tree: Tree, leaf: Leaf, node: int) -> None:
    numbers = tree.growing_numbers(leaf.group, node)
    kind, parent = tree.names[node][0], tree.parents[node]
    if kind in ("op", "kernel"):
        numbers[CALLS] = plus(numbers[CALLS], leaf.calls)
    # what holds an op spends its time itself
    holders = [node, parent] if kind == "op" and parent >= 0 else [node]
    for holder in holders:
        numbers = tree.growing_numbers(leaf.group, holder)
        numbers[HOST_SELF] = plus(numbers[HOST_SELF], leaf.host_ns)
        numbers[DEVICE_SELF] = plus(numbers[DEVICE_SELF], leaf.device_ns)


def _add_totals(tree: Tree, leaf: Leaf, node: int) -> None:
    if leaf.host_ns is None and leaf.device_ns is None:
        # only what is known with the ops inside, which may have rows of their own: no row above counts it
        numbers = tree.growing_numbers(leaf.group, node)
        numbers[HOST_TOTAL] = plus(numbers[HOST_TOTAL], leaf.host_total_ns)
        numbers[DEVICE_TOTAL] = plus(numbers[DEVICE_TOTAL], leaf.device_total_ns)
    above = node
    while above >= 0:
        numbers = tree.growing_numbers(leaf.group, above)
        numbers[OP_CALLS] = plus(numbers[OP_CALLS], leaf.calls)
        numbers[HOST_TOTAL] = plus(numbers[HOST_TOTAL], leaf.host_ns)
        numbers[DEVICE_TOTAL] = plus(numbers[DEVICE_TOTAL], leaf.device_ns)
        if tree.names[above][0] == "kernel" and above != node:
            # a kernel above its ops is called as often as they launch it
            numbers[CALLS] = plus(numbers[CALLS], leaf.calls)
        above = tree.parents[above]


def plus(first: Value, second: Value) -> Value:
    """Return the sum of what is known; None where nothing is.

    >>> plus(1.0, None), plus(None, None), plus(1.0, 2.0)
    (1.0, None, 3.0)
    """
    if first is None:
        return second
    return first if second is None else first + second


def list_largest_first(tree: Tree, size: Mapping[int, tuple[float, ...]], depth: int | None) -> list[tuple[int, int]]:
    """Return the rows in `size` with their levels, below each row those in it, the largest first; at most `depth`
    levels, and never more than MAX_DEPTH.
    """
    deepest = MAX_DEPTH if depth is None else min(depth, MAX_DEPTH)

    def sort_smallest_first(nodes: Sequence[int]) -> list[int]:
        """Return the rows in `size`; those of one size against the order of their names."""
        sized = [node for node in nodes if node in size]
        sized.sort(key=lambda node: tree.names[node], reverse=True)
        sized.sort(key=lambda node: size[node])
        return sized

    rows: list[tuple[int, int]] = []
    # a stack: the last row, the largest, is taken first
    waiting = [(node, 0) for node in sort_smallest_first(tree.roots)]
    while waiting:
        node, level = waiting.pop()
        rows.append((node, level))
        if level + 1 < deepest:
            waiting += [(child, level + 1) for child in sort_smallest_first(tree.children[node])]
    return rows
