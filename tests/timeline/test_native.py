"""Spans are nested in two ways, by compiled code and by NumPy: both find the same parents."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import build_native
from tracker.timeline import native
from tracker.timeline.nesting import ROUNDS
from tracker.timeline.tree import Tree, grow

compiled = pytest.mark.skipif(not native.is_built(), reason="the nesting of spans is not built here")
ROOT = Path(__file__).parents[2]
LARGEST = 2**62


@contextmanager
def nesting(*, is_compiled: bool) -> Iterator[None]:
    """Spans are nested by compiled code, where it is built, or all by NumPy."""
    module = native.module
    native.module = module if is_compiled else None
    try:
        yield
    finally:
        native.module = module


def numbers(*columns: list[int]) -> tuple[Any, ...]:
    return tuple(np.array(column, dtype=np.int64) for column in columns)


def both(spans: list[tuple[int, int, int]], asks: list[tuple[int, int]], rows: list[int] | None = None) -> list[Any]:
    """Parents, order, levels, and the innermost span at each thread and time, as both ways find them.

    spans: thread, start, end. rows: which of them are nested; None: all.
    """
    thread, start, end = numbers(*([span[at] for span in spans] for at in range(3)))
    lanes, times = numbers(*([ask[at] for ask in asks] for at in range(2)))
    some = None if rows is None else np.array(rows, dtype=np.int64)
    found = []
    for is_compiled in (True, False):
        with nesting(is_compiled=is_compiled):
            tree: Tree = grow(thread.astype(np.int32), start, end, some, block_rows=7)
            levels = [level.tolist() for level in tree.levels]
            found.append([tree.parent.tolist(), tree.order.tolist(), levels, tree.innermost(lanes, times).tolist()])
    return found


SPANS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 20)).map(lambda s: (s[0], s[1], s[1] + s[2])),
    max_size=60,
)
ASKS = st.lists(st.tuples(st.sampled_from((-1, 0, 1, 2, 3)), st.integers(-1, 62)), max_size=40)


@given(SPANS, ASKS, st.data())
def test_compiled_code_finds_the_same_parents(spans, asks, data):
    numpy_and_c = both(spans, asks)
    assert numpy_and_c[0] == numpy_and_c[1]
    some = data.draw(st.lists(st.integers(0, len(spans) - 1), unique=True)) if spans else []
    numpy_and_c = both(spans, asks, some)
    assert numpy_and_c[0] == numpy_and_c[1]


def test_deep_stacks_and_times_out_of_order_are_found_in_both_ways():
    """300 spans in each other, which is more than a look-up climbs at once; 64 bits are used to their ends."""
    count = 300
    assert count > 4 * ROUNDS
    spans = [(0, depth, 3 * count - depth) for depth in range(count)]
    spans += [(1, -LARGEST, LARGEST), (1, 0, 1)]
    asks = [(0, time) for time in range(-1, 3 * count + 1)]
    asks += [(1, time) for time in (-LARGEST - 1, -LARGEST, 0, 1, LARGEST - 1, LARGEST)]
    random.Random(7).shuffle(asks)
    by_c, by_numpy = both(spans, asks)
    assert by_c == by_numpy
    # what begins at 149 ends at 751, and what begins later has ended at 750
    assert by_c[3][asks.index((0, 750))] == 149
    assert by_c[3][asks.index((1, 1))] == count


@compiled
def test_columns_of_another_kind_are_refused():
    order, thread, parent, depth = (np.zeros(3, dtype=np.int32) for _ in range(4))
    start, end, lanes, times, found = (np.zeros(3, dtype=np.int64) for _ in range(5))
    nest, innermost = native.module.nest, native.module.innermost
    for wrong in (
        lambda: nest(order, thread, start.astype(np.int32), end, parent, depth),
        lambda: nest(order, thread, start[:2], end, parent, depth),
        lambda: nest(order, thread, start, end, parent, depth[:2]),
        lambda: nest(order + 3, thread, start, end, parent, depth),
        lambda: nest(order - 1, thread, start, end, parent, depth),
        lambda: innermost(order, thread, start, end, parent, lanes, times[:2], found, 1),
        lambda: innermost(order, thread, start, end, parent, lanes, times, found[:2], 1),
        lambda: innermost(order, thread, start, end, parent + 3, lanes, times, found, 1),
        lambda: innermost(order, thread, start, end, parent - 2, lanes, times, found, 1),
        lambda: nest(order, thread, np.zeros(6, dtype=np.int64)[::2], end, parent, depth),
    ):
        with pytest.raises((ValueError, BufferError)):
            wrong()
    with pytest.raises(TypeError):
        nest([0], thread, start, end, parent, depth)
    parent.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        nest(order, thread, start, end, parent, depth)


def test_where_it_can_be_compiled_the_nesting_is_built_from_these_sources(tmp_path):
    package = "tracker/timeline/native"
    assert package in build_native.PACKAGES
    try:
        build_native.compile_native(ROOT, tmp_path, package)
    except (Exception, SystemExit) as error:  # noqa: BLE001 no compiler, no headers, no linker
        pytest.skip(f"it cannot be compiled here: {error}")
    assert native.is_built(), "run: python scripts/build_native.py"


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here")
def test_rule_of_the_stack_knows_nothing_of_python(tmp_path):
    (tmp_path / "alone.c").write_text(f'#include "{Path(native.__file__).parent / "nesting.h"}"\nint x;\n')
    subprocess.run(["cc", "-std=c99", "-fsyntax-only", tmp_path / "alone.c"], check=True)


@compiled
def test_module_of_other_sources_does_not_count(monkeypatch):
    monkeypatch.setattr(native, "_digest", lambda: "of others")
    assert not native.is_built()
