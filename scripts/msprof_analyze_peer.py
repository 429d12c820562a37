"""msprof-analyze itself: an environment of its own for it, one run of its `compare`, and what it wrote."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import openpyxl
from platformdirs import user_cache_path

PEER: Final = "msprof-analyze==26.2.0"
NS_PER_MS: Final = 1e6
GIB: Final = 1 << 30
RESERVED: Final = "Mem Usage"
_KERNEL: Final = re.compile(r"(?P<name>[^\n]+?), (?P<task>\d+), \w+(?:, \[input shapes: .*?\])? \[duration: [\d.]+\]\n")
"""A kernel of an NPU in Kernel Details."""
ListedKernel = tuple[str, str, int]
"""Operator, kernel and task id."""
_GROUPED: Final = ("Wait", "Transmit", "Computing", "Communication")


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of the tool: ns, and how many kernels, None where it does not count them."""

    ns: float
    number: int | None = None


def peer_python(given: Path | None) -> Path:
    """The Python that has msprof-analyze: `given`, or that of an environment made once for it."""
    if given is not None:
        return given
    folder = user_cache_path("tracker") / PEER
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        print(f"--- making {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", "import msprof_analyze"], capture_output=True, check=False).returncode:
        print(f"--- pip install {PEER}", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PEER], check=True)
    return python


def run_peer(python: Path, baseline: Path, candidate: Path) -> tuple[list[tuple[Any, ...]], str]:
    """Rows of the sheet OverallMetrics, and the table it prints; RuntimeError where it made no such sheet."""
    return _compare(python, baseline, candidate, "OverallMetrics")


def list_kernels(python: Path, baseline: Path, candidate: Path) -> tuple[set[ListedKernel], set[ListedKernel]]:
    """The kernels of each side in Kernel Details of the sheet OperatorCompare; RuntimeError where it made none."""
    rows, _ = _compare(python, baseline, candidate, "OperatorCompare", "--disable_module")
    sides: tuple[set[ListedKernel], set[ListedKernel]] = set(), set()
    for row in rows:
        for kernels, (op, details) in zip(sides, ((row[1], row[4]), (row[6], row[9])), strict=True):
            for found in _KERNEL.finditer(details or ""):
                kernels.add((op, found["name"], int(found["task"])))
    return sides


def _compare(
    python: Path, baseline: Path, candidate: Path, sheet: str, *options: str
) -> tuple[list[tuple[Any, ...]], str]:
    """Rows of a sheet of its workbook, and what it prints; RuntimeError where it made no such sheet."""
    with tempfile.TemporaryDirectory() as folder:
        sides = ["-d", candidate.resolve(), "-bp", baseline.resolve()]
        command = [python.with_name("msprof-analyze"), "compare", *sides, "-o", folder, "--force", *options]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        # it ends with 0 whatever happened; only the workbook tells
        books = sorted(Path(folder).glob("*.xlsx"))
        book = openpyxl.load_workbook(books[0], read_only=True) if books else None
        if book is None or sheet not in book.sheetnames:
            raise RuntimeError(f"msprof-analyze wrote no {sheet}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        rows = [tuple(row) for row in book[sheet].iter_rows(values_only=True)]
        book.close()
    return rows, done.stdout


def sheet(rows: Iterable[Sequence[Any]]) -> tuple[dict[str, Cell], dict[str, Cell]]:
    """Rows of OverallMetrics -> per side title and cell, in the order of the sheet.

    A row below a process group or an MC2 kernel is called `group: Wait`. A row that it left out is 0 on both sides.
    """
    sides: tuple[dict[str, Cell], dict[str, Cell]] = {}, {}
    above = ""
    for row in rows:
        if not isinstance(row[0], str) or not isinstance(row[1], int | float):
            continue
        depth, title = len(row[0]) - len(row[0].lstrip("\t")), row[0].strip()
        if depth == 1:
            above = title
        name = f"{above}: {title}" if depth == 2 and title in _GROUPED else title
        for side, (ns, number) in zip(sides, ((row[1], row[3]), (row[4], row[6])), strict=True):
            side[name] = Cell(float(ns) * NS_PER_MS, number if isinstance(number, int) else None)
    return sides


def printed_gib(text: str) -> list[float]:
    """Mem Usage of both sides in GiB, from the table it prints; empty where it prints none."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line]
    header = next((cells for cells in lines if RESERVED in cells), None)
    if header is None:
        return []
    found = [re.fullmatch(r"([\d.]+)G", cells[header.index(RESERVED)]) for cells in lines if len(cells) == len(header)]
    return [float(match.group(1)) for match in found if match]
