"""One cell, value or number of a profile that is not what it should be: a run or one clear error, wherever it stands.

NULL, text where a number is due, a number below zero or beyond all dates, what is no number: profiles of each format
with one place wrong at a time. A little of what can be wrong in the hand-written ones is tried here. The slow tests try
every kind of cell of their databases with every value, much of the rest, and some cells of shared captures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.load.places import ends_of
from tests.real import data
from tracker import readers

DATA = Path(__file__).parents[1] / "data"
FORMATS = [name for name in readers.NAMES if name != "pack"]  # a pack has a digest of its own
PROFILES = [(found.path, name) for name in FORMATS for found in readers.find(DATA / name, name)]
MOST_CELLS = 1500
"""More than can be wrong in the hand-written databases, whose cells are a few columns each."""
MOST_PLACES = 400
"""Of texts, in which one column has the same reader from its first row to its last."""

CAPTURES = [
    ("ascend/run_2024-10/db/level0/rank0_ascend_pt", "ascend_db"),
    ("ascend/run_2025-01/db/level1/rank0_ascend_pt", "ascend_db"),
    ("nsys/a100_transformer/result_2_7B_compile_ro.1c3e0073.sqlite", "nsys_sqlite"),
    ("nsys/no_kernel_table/nvtx_only.sqlite", "nsys_sqlite"),
]


@pytest.mark.parametrize(("profile", "name"), PROFILES, ids=lambda value: getattr(value, "name", value))
def test_a_wrong_place_is_a_run_or_an_error(tmp_path, profile, name):
    assert "rows" in ends_of(profile, name, tmp_path / "copy", 20)


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "name"), PROFILES, ids=lambda value: getattr(value, "name", value))
def test_much_that_can_be_wrong_at_a_place_is_a_run_or_an_error(tmp_path, profile, name):
    ends = ends_of(
        profile, name, tmp_path / "copy", MOST_CELLS if name in ("ascend_db", "nsys_sqlite") else MOST_PLACES
    )
    # the stacks are one line
    assert len(ends) > (50 if name == "torch_stacks" else 100)
    assert set(ends) == ({"rows"} if name == "training_log" else {"rows", "refused"})


@pytest.mark.slow
@pytest.mark.parametrize(("capture", "name"), CAPTURES)
def test_a_wrong_cell_of_a_shared_capture_is_a_run_or_an_error(tmp_path, capture, name):
    assert set(ends_of(data.path(capture), name, tmp_path / "copy", 100)) == {"rows", "refused"}
