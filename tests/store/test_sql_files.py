"""House rules of store/sql: each file has its header, is asked by some function, and lints clean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracker.store import sql

FOLDER = Path(sql.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.sql"))
STORE = FOLDER.parent
ORDERED_BY_WHO_ASKS = {"ops", "op_rows", "kernels", "kernel_rows", "op_keys", "op_texts", "kernel_keys", "call_stacks"}
"""Thousands of rows whose order is that of texts: `queries.ops_and_kernels` sorts them."""


def header(name: str) -> str:
    lines = (FOLDER / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines[: next(at for at, line in enumerate(lines) if not line.startswith("--"))])


@pytest.mark.parametrize("name", FILES)
def test_a_question_says_what_it_answers_takes_and_gives(name):
    question, *rest = header(name).splitlines()
    assert "?" in header(name).split("-- Parameters:")[0], "the first line asks the question"
    assert question.startswith("-- ")
    assert any(line.startswith("-- Parameters: ") for line in rest)
    assert any(line.startswith("-- Columns: ") for line in rest)


@pytest.mark.parametrize("name", FILES)
def test_the_header_names_every_parameter_and_column(name):
    statement = sql.statement(name)
    for parameter in statement.compile().params:
        assert re.search(rf"\b{parameter}\b", header(name)), parameter
    columns = re.findall(r"(?:AS |\.)(\w+),?\n", last_select(statement.text))
    assert columns
    breakdown = "tracker.profile.Breakdown" in header(name)
    from tracker.profile import Breakdown

    for column in columns:
        known = re.search(rf"\b{column}\b", header(name)) or (breakdown and column in Breakdown.__dataclass_fields__)
        assert known, column


@pytest.mark.parametrize("name", FILES)
def test_every_question_is_asked_and_has_a_total_order(name):
    code = "".join(path.read_text(encoding="utf-8") for path in STORE.rglob("*.py"))
    assert f'"{name}"' in code
    text = sql.statement(name).text
    assert "ORDER BY" in text or ":run_id\n" in text or name in ORDERED_BY_WHO_ASKS


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_all_questions_lint_clean(dialect):
    from sqlfluff.core import FluffConfig, Linter

    config = FluffConfig.from_path(str(FOLDER), overrides={"dialect": dialect})
    found = Linter(config=config).lint_paths((str(FOLDER),), processes=1).get_violations()
    assert [f"{violation.rule_code()} {violation.desc()}" for violation in found] == []


def last_select(text: str) -> str:
    """The outermost SELECT up to its FROM."""
    start = max(match.start() for match in re.finditer(r"^SELECT", text, re.MULTILINE))
    return text[start : text.index("\nFROM", start) + 1]
