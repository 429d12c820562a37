"""A misspelt field of a row is named by the type checker, before anybody sees it on a screen."""

from __future__ import annotations

import ast
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("ranks", "regressions", "compare")
"""Rooms whose rows have types."""
READS_STATEMENTS = {"hosts.py"}
"""Modules whose rows come from a statement of SQL, which no type checker knows."""
CONTAINER_FIELDS = {"rows", "tables", "options", "notes", "names", "words", "key", "values", "shape", "name", "kind"}
"""Fields that rows share with what is no row, such as columns and arrays."""


def row_fields(package: Path) -> set[str]:
    """The fields of the rows of results: structs whose docstring has a line per field."""
    fields = set()
    for path in sorted((package / "results").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and "\n    - " in (ast.get_docstring(node, clean=False) or ""):
                own = [one.target.id for one in node.body if isinstance(one, ast.AnnAssign)]
                fields.update(own)
    return fields - CONTAINER_FIELDS


def sites(package: Path, fields: set[str]) -> Iterator[tuple[Path, int, int]]:
    """Where a row is read by one of these fields: file, line, and the column behind the last letter."""
    for room in ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            if path.name in READS_STATEMENTS:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                is_read = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in fields
                if is_read and node.value.id == "row" and node.lineno == node.end_lineno:
                    yield path, node.lineno, node.end_col_offset


@pytest.mark.slow
def test_type_checker_names_each_of_20_misspelt_fields(tmp_path):
    package = tmp_path / "tracker"
    shutil.copytree(ROOT / "tracker", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    one_of_each_line = {site[:2]: site for site in sites(package, row_fields(package))}
    chosen = random.Random(5).sample(sorted(one_of_each_line.values()), 20)
    for path, line, end in chosen:
        lines = path.read_text(encoding="utf-8").split("\n")
        # columns of ast are bytes
        raw = lines[line - 1].encode()
        lines[line - 1] = (raw[: end - 1] + raw[end:]).decode()
        path.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    named = {(match[1], int(match[2])) for match in re.finditer(r"^(\S+?):(\d+): error", done.stdout, re.MULTILINE)}
    misspelt = {(str(path.relative_to(tmp_path)), line) for path, line, _ in chosen}
    assert misspelt - named == set()
