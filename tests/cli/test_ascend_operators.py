"""Operators of Ascend NPUs on the screens and in workbooks, from files to cells."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.readers.ascend_operators import KERNELS, write

SLOWER = (*KERNELS[:2], replace(KERNELS[2], us=150))
"""Gelu, on vector cores, takes 150 us in place of 100."""


@pytest.fixture
def both(tmp_path) -> tuple[Path, Path]:
    """Folders of two captures, the second one with the slower Gelu."""
    write(tmp_path / "a")
    write(tmp_path / "b", SLOWER, first_task=101)
    return tmp_path / "a", tmp_path / "b"


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the cells of each line by its first words."""
    found = {}
    for line in text.splitlines():
        cells = [cell for cell in line.split("  ") if cell.strip()]
        if cells:
            found.setdefault(cells[0].strip(), [cell.strip() for cell in cells[1:]])
    return found


def test_show_parts_cube_from_vector_work(tracker, both):
    """MatMulV3 for 300 us on cube cores, Add 50 and Gelu 100 us on vector cores, of a step of 1 ms."""
    rows = rows_of(tracker("show", both[0]).out)
    assert rows["compute"][:2] == ["450.00 us", "45.0 %"]
    assert rows["cube operators"] == ["300.00 us", "30.0 %"]
    assert rows["vector operators"] == ["150.00 us", "15.0 %"]
    assert rows["idle"][:2] == ["550.00 us", "55.0 %"]


def test_diff_has_the_share_of_scheduling_beside_cube_and_vector(tracker, both):
    rows = rows_of(tracker("diff", *both).out)
    assert rows["cube operators"] == ["0.30 ms", "0.30 ms", "0.00 ms", "0.0 %"]
    assert rows["vector operators"] == ["0.15 ms", "0.20 ms", "+0.05 ms", "+33.3 %"]
    assert rows["share of the step"] == ["55.0 %", "50.0 %", "-5.0 pp", "-9.1 %"]


def test_cores_that_are_not_told_apart_have_no_rows(tracker, tmp_path):
    """A chip with one kind of core calls each AI_CORE, and how long its cube works was not measured."""
    write(tmp_path / "a", [replace(kernel, core="AI_CORE") for kernel in KERNELS])
    text = tracker("show", tmp_path / "a").out
    assert "450.00 us" in text and "cube" not in text
