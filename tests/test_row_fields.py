"""A misspelt field or column of a row is named by the type checker, before anybody sees it on a screen."""

from __future__ import annotations

import ast
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tracker.results import DIFF_COLUMNS, SHOWN_COLUMNS
from tracker.schema import column_names
from tracker.schema.levels import LEVELS

ROOT = Path(__file__).parents[1]
ROOMS = ("ranks", "regressions", "compare", "advice", "notify", "reports", "results", "page", "cli")
"""Rooms in which rows are read by fields and constants."""
CHECKED_ROOMS = ROOMS[:4]
"""Those in which the type checker knows every row: in reports, what colours or links a row takes any row."""
CONTAINER_FIELDS = {"rows", "tables", "options", "notes", "names", "words", "key", "values", "shape", "name", "kind"}
"""Fields that rows share with what is no row, such as columns and arrays."""
LOOK_UPS = {
    "matched": "the tables of a diff that are matched by a key, by name",
    "tables": "the tables of a result, by name",
    "HISTORY_COLUMNS": "the columns of a table, by its name",
    "KIND": "the kinds of series, by word",
    "PAGES": "the pages, by word",
    "SECTION": "the sections of a diff, by word",
    "found.run": "what tracker runs lists of the run of a result, as its JSON has it",
    "found.baseline": "the same, of the side that it is compared with",
    "found.use": "what an Advised uses of the device, as its JSON has it",
    "shown.run": "the same as found.run, of a Shown",
    "run": "the same as found.run",
    "counts": "how many profiles of a watcher are in a state, by word",
    "document": "what a file of JSON is made of",
    "environment.globals": "functions of a template, by name",
    "explained": "what a file of JSON is made of",
    "facts": "the first sheet of a workbook",
    "manifest": "the manifest of the bundled samples, a file",
    "match": "the groups of a regular expression",
    "message": "what ASGI sends",
    "parts": "parts of a sentence, by word",
    "row": "what a file of JSON is made of",
    "scope": "what ASGI says of a request",
    "version": "a version of the manifest",
}
"""What may be read by a quoted word that is the name of a column, too -> what the word is there. Also all `.tables`."""
ALIASES = {"Scope", "Receive", "Send"}
"""Names that stand for mappings of Any: those of ASGI are so."""
CONSTANTS = {name: value for name, value in vars(column_names).items() if name.isupper()}


def parse_room(package: Path, room: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the modules of a room."""
    for path in sorted((package / room).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def row_fields(package: Path) -> set[str]:
    """Return the fields of the rows of results, which have a line per field, and of the rows that advice reads."""
    fields = set()
    for room in ("results", "advice"):
        for path, tree in parse_room(package, room):
            for node in ast.walk(tree):
                if not isinstance(node, ast.ClassDef):
                    continue
                has_lines = "\n    - " in (ast.get_docstring(node, clean=False) or "")
                if has_lines or path.name == "rows.py":
                    fields.update(one.target.id for one in node.body if isinstance(one, ast.AnnAssign))
    return fields


def known_columns() -> set[str]:
    """Return the names of all columns of levels, of results, and of those that code reads one by one."""
    columns = row_fields(ROOT / "tracker") | set(CONSTANTS.values())
    for level in LEVELS:
        columns.update(column.answer or column.name for column in level.columns)
        columns.update(level.row_kinds)
    for table in (*DIFF_COLUMNS.values(), *SHOWN_COLUMNS.values()):
        columns.update(table)
    return columns


def find_fields(package: Path, fields: Collection[str]) -> Iterator[tuple[Path, int, int]]:
    """Yield where a row is read by one of these fields: file, line, and the column behind the last letter."""
    for room in CHECKED_ROOMS:
        for path, tree in parse_room(package, room):
            left_out = list_nodes_of_statements(tree) | list_nodes_of_texts(tree)
            for node in ast.walk(tree):
                if node in left_out:
                    continue
                is_read = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in fields
                if is_read and node.value.id == "row" and node.lineno == node.end_lineno:
                    yield path, node.lineno, node.end_col_offset


def list_nodes_of_statements(tree: ast.Module) -> set[ast.AST]:
    """Return what stands in functions that ask a statement of SQL, whose rows no type checker knows."""
    found: set[ast.AST] = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = list(ast.walk(function))
        if any(isinstance(node, ast.Name) and node.id == "statement" for node in nodes):
            found.update(nodes)
    return found


def list_nodes_of_texts(tree: ast.Module) -> set[ast.AST]:
    """Return what stands in f-strings: Python 3.11 counts the columns of these otherwise."""
    found: set[ast.AST] = set()
    for text in ast.walk(tree):
        if isinstance(text, ast.JoinedStr):
            found.update(ast.walk(text))
    return found


def find_constants(package: Path, names: Collection[str]) -> Iterator[tuple[Path, int, int]]:
    """Yield where a column is read by one of these constants: as of `find_fields`."""
    for room in CHECKED_ROOMS:
        for path, tree in parse_room(package, room):
            in_texts = list_nodes_of_texts(tree)
            for node in ast.walk(tree):
                is_read = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name)
                if is_read and node.slice.id in names and node not in in_texts:
                    yield path, node.slice.lineno, node.slice.end_col_offset


def leave_out_ambiguous(names: Collection[str]) -> set[str]:
    """Return the names that are a name without their last letter, too, and none of the others."""
    return {name for name in names if len(name) > 1 and name[:-1] not in names}


def test_constants_of_columns_are_named_like_their_columns():
    assert {name: value.upper() for name, value in CONSTANTS.items()} == {name: name for name in CONSTANTS}


@pytest.mark.parametrize("room", ROOMS)
def test_no_column_is_read_by_a_quoted_name(room):
    columns = known_columns()
    quoted = []
    for path, tree in parse_room(ROOT / "tracker", room):
        for node in ast.walk(tree):
            is_quoted = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
            if not is_quoted or node.slice.value not in columns:
                continue
            read = ast.unparse(node.value)
            if read not in LOOK_UPS and not read.endswith(".tables"):
                quoted.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert not quoted


@pytest.mark.parametrize("room", ROOMS)
def test_no_name_of_a_module_stands_for_rows_of_any(room):
    """An alias such as `Row = dict[str, Any]` tells the type checker nothing of a row, whatever its name."""
    of_any = []
    for path, tree in parse_room(ROOT / "tracker", room):
        for node in tree.body:
            if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) in ALIASES:
                continue
            if any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(node)):
                of_any.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert not of_any


@pytest.mark.slow
def test_type_checker_names_each_of_30_misspelt_names(tmp_path):
    """20 fields of rows, of which some are of advice, and 10 constants of columns."""
    package = tmp_path / "tracker"
    shutil.copytree(ROOT / "tracker", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    fields = leave_out_ambiguous(row_fields(package)) - CONTAINER_FIELDS
    of_fields = {site[:2]: site for site in find_fields(package, fields)}
    of_constants = {site[:2]: site for site in find_constants(package, leave_out_ambiguous(CONSTANTS))}
    in_advice = [site for (path, _), site in sorted(of_fields.items()) if "advice" in path.parts]
    elsewhere = [site for (path, _), site in sorted(of_fields.items()) if "advice" not in path.parts]
    alone = [site for place, site in sorted(of_constants.items()) if place not in of_fields]
    draw = random.Random(5)
    chosen = [*draw.sample(in_advice, 5), *draw.sample(elsewhere, 15), *draw.sample(alone, 10)]
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
