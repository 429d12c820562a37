"""Which tables of a diff or of a run a reader chose, and how many of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.results.columns import GRAINS
from tracker.results.sections import SECTION, SECTIONS

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.results.screens import Rows


def choose_sections(only: Sequence[str], *, has_tree: bool) -> tuple[str, ...]:
    """Return the sections to show, in reading order. `only`: words of sections, empty for all.

    A tree stands alone, unless words are named.
    """
    if has_tree and not only:
        return ()
    return tuple(word for word in SECTIONS if word in (only or SECTIONS))


def choose_tables(
    tables: Mapping[str, Columns], tree: Columns | None, sections: Sequence[str], limit: int | None
) -> dict[str, Rows]:
    """Return the tree, where there is one, and the tables of these sections, each cut to `limit` rows."""
    chosen: dict[str, Rows] = {}
    if tree is not None:
        chosen["tree"] = cut_tree(tree, limit)
    for word in sections:
        for name in SECTION[word].tables:
            if name in tables:
                chosen[name] = tables[name].head(limit)
    return chosen


def cut_tree(tree: Columns, limit: int | None) -> Columns:
    """Return a tree with at most `limit` rows below each row and on level 0, those that come first; None for all."""
    if limit is None:
        return tree
    grains = [name for name in GRAINS if name in tree]
    rows_below = Counter[tuple[Any, ...]]()
    kept_nodes = {-1}
    is_kept = []
    for node, place in zip(tree.listed("node"), tree.rows(*grains, "parent"), strict=True):
        parent = place[-1]
        is_kept.append(rows_below[place] < limit and parent in kept_nodes)
        rows_below[place] += 1
        if is_kept[-1]:
            kept_nodes.add(node)
    return tree.taken(np.array(is_kept, dtype=bool))
