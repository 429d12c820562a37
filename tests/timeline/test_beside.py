"""What several threads make of a capture is what one makes of it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest

from tracker import readers, timeline
from tracker.profile import Capture
from tracker.timeline import beside
from tracker.timeline.beside import Beside

DATA = Path(__file__).parents[1] / "data"


def captures(*folders: str) -> list[Capture]:
    found = [one for folder in folders for one in readers.search(DATA / folder, None).found]
    return [capture for one in found for capture in readers.read(one).captures if capture.events is not None]


def test_rows_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(beside, "_LEAST_EVENTS", 0)
    compared = 0
    for capture in captures("torch_profiler", "ascend_text", "h200"):
        one, several = timeline.build(capture).rows, timeline.build(capture, 3).rows
        assert one is not None and several is not None
        assert (one.overall, one.steps) == (several.overall, several.steps)
        for name, table in one.tables.items():
            for column, values in table.items():
                np.testing.assert_array_equal(values, several.tables[name][column], f"{name}.{column}")
                compared += len(values)
    assert compared > 5000


@pytest.mark.parametrize(
    ("threads", "least", "most", "is_beside"),
    [(3, 0, 1 << 20, True), (1, 0, 1 << 20, False), (3, 0, 1, False), (3, 1 << 20, 2 << 20, False)],
)
def test_only_parts_of_a_middle_capture_are_done_at_once(monkeypatch, threads, least, most, is_beside):
    monkeypatch.setattr(beside, "_LEAST_EVENTS", least)
    monkeypatch.setattr(beside, "_MOST_EVENTS", most)
    events = captures("torch_profiler")[0].events
    assert events is not None
    with ExitStack() as stack:
        answer = Beside(events, threads, stack).begin(get_ident)
        assert (answer() != get_ident()) is is_beside
