"""Which rows of a tree are what one series is, so that the verdict of the series is theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracker.compare.leaves import OTHER
from tracker.schema.series import KERNEL_TIME, KIND, SeriesKey

if TYPE_CHECKING:
    from tracker.compare.tree import Tree
    from tracker.compare.verdicts import Judged
    from tracker.results import DiffOptions

Found = Iterator[tuple[int, SeriesKey]]


def series_of(tree: Tree, options: DiffOptions, judged: Judged) -> dict[int, SeriesKey]:
    """Number of a row -> its series. A row that sums up several series, or is a part of one, has none.

    An op is its series where it stands in one place of the tree alone and no other ops are in its time; a kernel is at
    the top; a phase is; so is a module that holds no others and runs in one phase. What a filter takes a part of is
    not.
    """
    if judged.found is None or options.module:
        return {}
    found: dict[int, SeriesKey] = {}
    if options.tree != "kernel" and judged.of_ops:
        found |= _ops(tree, judged)
    if not options.op:
        found |= {"module": _modules, "phase": _phases, "kernel": _kernels, "op": _nothing}[options.tree](tree, judged)
    return found


def _ops(tree: Tree, judged: Judged) -> Found:
    places = Counter(name for name in tree.names if name[0] == "op")
    for node, (kind, name, shapes) in enumerate(tree.names):
        alone = kind == "op" and places[kind, name, shapes] == 1
        if alone and all(tree.names[child][0] == "kernel" for child in tree.children[node]):
            yield node, judged.op_key(name, shapes)


def _kernels(tree: Tree, judged: Judged) -> Found:
    for node in tree.roots:
        _, name, shapes = tree.names[node]
        yield node, KIND["kernel"].make_key(KERNEL_TIME.name, (name, shapes))


def _phases(tree: Tree, judged: Judged) -> Found:
    for node in tree.roots:
        phase = tree.names[node][1]
        if phase != OTHER:  # the ops of no phase, which are no series
            yield node, SeriesKey("phase", judged.metric, phase)


def _modules(tree: Tree, judged: Judged) -> Found:
    assert judged.found is not None
    phases: dict[str, list[SeriesKey]] = {}
    for key in judged.found.said:
        if key[:2] == ("module", judged.metric):
            phases.setdefault(key[2], []).append(key)
    for node, (kind, _, _) in enumerate(tree.names):
        holds_modules = any(tree.names[child][0] == "module" for child in tree.children[node])
        keys = phases.get(tree.path(node), []) if kind == "module" else []
        if len(keys) == 1 and not holds_modules:
            yield node, keys[0]


def _nothing(tree: Tree, judged: Judged) -> Found:
    yield from ()
