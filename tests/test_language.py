"""What the program prints, its help, its docs and its names are in the words of the field, not in a private dialect."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tracker.cli import program

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tracker"
TEXTS = re.compile(
    r"\b(told|tells? of|said of|asked for|anew|whoever|nobody|somebody|goes before|is none of|borne|yardstick"
    r"|deaths)\b",
    re.IGNORECASE,
)
NAMES = {"told", "anew", "whoever", "nobody", "somebody", "borne", "yardstick", "apart", "deaths"}
"""Words that no part of a name is."""
COLUMNS = {"told_by"}
"""Columns of results, whose names scripts of users know."""
OLD_ROOMS = {
    "readers": "not rewritten yet", "timeline": "not rewritten yet", "store": "not rewritten yet",
    "watch": "not rewritten yet", "intake": "not rewritten yet", "hooks": "not rewritten yet",
    "notify": "not rewritten yet", "reports": "rewritten with the documents",
    "doctor": "becomes the dry run of ingest", "profile": "becomes schema, with the levels",
}  # fmt: skip
EXCEPTIONS = {
    "results/findings.py": "ToldFinding, ToldIncident: stored in the outbox, renamed with notify",
    "columns.md": "columns of notify, renamed with it",
}
"""File or page -> why it may have such words."""


SPOKEN = re.compile(r"\b(said|asked)\b")
"""Also not in help and docs: reported, chosen, stated."""


def strings_and_names(path: Path) -> tuple[list[str], set[str]]:
    """The texts of a module that are no docstrings, and the names that it defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts, names = [], set(path.with_suffix("").parts[-1:])
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | documented:
            texts.append(node.value)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return texts, names


def wrong_in(path: Path) -> list[str]:
    texts, names = strings_and_names(path)
    parts = {name: set(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")) for name in names}
    return [text for text in texts if TEXTS.search(text)] + [
        name for name, own in parts.items() if own & NAMES and name not in COLUMNS
    ]


MODULES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in OLD_ROOMS and path.relative_to(PACKAGE).as_posix() not in EXCEPTIONS
]


def test_modules_use_the_words_of_the_field():
    wrong = {path.relative_to(PACKAGE).as_posix(): found for path in MODULES if (found := wrong_in(path))}
    assert not wrong


def test_exceptions_are_still_needed():
    assert all(wrong_in(PACKAGE / name) for name in EXCEPTIONS if name.endswith(".py"))
    assert all(any(wrong_in(path) for path in (PACKAGE / room).rglob("*.py")) for room in OLD_ROOMS)


def test_help_uses_the_words_of_the_field():
    def texts(command):
        yield command.help or ""
        yield command.short_help or ""
        yield from (each.help or "" for each in command.params)
        for below in getattr(command, "commands", {}).values():
            yield from texts(below)

    assert not [text for text in texts(program()) if TEXTS.search(text) or SPOKEN.search(text)]


@pytest.mark.parametrize("page", ["README.md", *sorted(path.name for path in (ROOT / "docs").glob("*.md"))])
def test_docs_use_the_words_of_the_field(page):
    text = (ROOT / page if page == "README.md" else ROOT / "docs" / page).read_text(encoding="utf-8")
    assert page in EXCEPTIONS or not TEXTS.findall(text) + SPOKEN.findall(text)
