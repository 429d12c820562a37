"""Trees that are as deep as they have spans: walked row by row, with the numbers of the walk level by level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.timeline import deep_trees
from tracker.timeline.tree import grow

SPANS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 12), st.integers(0, 2)), max_size=40)


@given(spans=SPANS)
def test_rows_and_levels_give_the_same(spans):
    thread, start, length, key = (np.array([span[at] for span in spans], dtype=np.int64) for at in range(4))
    tree = grow(thread.astype(np.int32), start, start + length)
    chosen, beyond = key == 1, key == 2
    found = []
    for is_narrow in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deep_trees, "are_narrow", lambda _levels, answer=is_narrow: answer)
            paths = tree.paths(key)
            found.append(
                [
                    tree.passed_down(key, unset=0).tolist(),
                    tree.outermost(chosen, beyond=beyond).tolist(),
                    tree.summed_up(length).tolist(),
                    *(getattr(paths, name).tolist() for name in paths.__struct_fields__),
                ]
            )
    assert found[0] == found[1]


def test_only_deep_and_narrow_trees_are_walked_row_by_row():
    one_each = [np.array([row]) for row in range(1000)]
    assert deep_trees.are_narrow(one_each)
    assert not deep_trees.are_narrow(one_each[:100])
    assert not deep_trees.are_narrow([np.arange(1000)] * 200)
