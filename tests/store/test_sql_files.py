"""House rules of store/sql: each file has its header, is asked by some function, and lints clean."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import event

from tests.factories import save
from tracker.profile import Breakdown
from tracker.schema.levels import LEVEL
from tracker.store import levels, queries, sql

FOLDER = Path(sql.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.sql"))
PACKAGE = FOLDER.parents[1]
ORDERED_BY_WHO_ASKS = {
    "op_keys", "kernel_keys", "detail_texts", "call_stacks",
}  # fmt: skip
"""Thousands of rows whose order is that of texts: `queries.ops_and_kernels` sorts them."""


def header(name: str) -> str:
    lines = (FOLDER / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines[: next(at for at, line in enumerate(lines) if not line.startswith("--"))])


# All files in one test each: of the parameters of a test, the default run takes a few.


def test_a_question_says_what_it_answers_takes_and_gives():
    for name in FILES:
        question, *rest = header(name).splitlines()
        assert "?" in header(name).split("-- Parameters:")[0], f"{name}: the first line asks the question"
        assert question.startswith("-- "), name
        assert any(line.startswith("-- Parameters: ") for line in rest), name
        assert any(line.startswith("-- Columns: ") for line in rest), name


def test_the_header_names_every_parameter_and_column():
    for name in FILES:
        statement = sql.statement(name)
        named = {*re.findall(r"\w+", header(name))}
        if "tracker.profile.Breakdown" in header(name):
            named |= {*Breakdown.__struct_fields__}
        columns = sql.columns_of(statement)
        assert columns, name
        assert {*statement.compile().params, *columns} <= named, name


def test_every_question_is_asked_and_has_a_total_order():
    code = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    for name in FILES:
        assert f'"{name}"' in code, name
        text = sql.statement(name).text
        assert "ORDER BY" in text or ":run_id\n" in text or name in ORDERED_BY_WHO_ASKS, name


@pytest.mark.slow  # as Postgres, scripts/test.sh does
def test_all_questions_lint_clean_as_sqlite():
    from sqlfluff.core import FluffConfig, Linter

    config = FluffConfig.from_path(str(FOLDER), overrides={"dialect": "sqlite"})
    found = Linter(config=config).lint_paths((str(FOLDER),), processes=1).get_violations()
    assert [f"{violation.rule_code()} {violation.desc()}" for violation in found] == []


def sample_of(literal: str) -> object:
    """The value that a placeholder for the linter stands for."""
    if literal.startswith("("):
        return ["text"] if "'" in literal else [1]
    return literal.strip("'") if "'" in literal else int(literal)


def test_the_columns_of_an_answer_are_those_that_the_database_gives(store):
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    samples = settings["tool"]["sqlfluff"]["templater"]["placeholder"]
    del samples["param_style"]
    known = {name: sample_of(literal) for name, literal in samples.items()} | {
        "digests": [b"1"],
        "ids": "{}",
        "words": "{}",
    }
    for name in FILES:
        statement = sql.statement(name)
        with store.connect() as connection:
            wanted = {parameter: known[parameter] for parameter in statement.compile().params}
            assert tuple(connection.execute(statement, wanted).keys()) == sql.columns_of(statement), name


def test_of_no_runs_nothing_is_asked(store):
    save(store)
    asked = []
    event.listen(store.engine, "before_cursor_execute", lambda *words: asked.append(words[2]))
    nothing = queries.memory(store, [], by=("rank",)).frame
    assert asked == []
    assert nothing.empty
    pd.testing.assert_series_equal(nothing.dtypes, queries.memory(store, [1], by=("rank",)).frame.dtypes)
    assert len(asked) == 1 + (store.dialect == "sqlite"), "BEGIN is a statement of SQLite"


LEVELS = {name: levels.query_of(name) for name, level in LEVEL.items() if not level.is_packed}


@pytest.mark.parametrize("name", LEVELS)
def test_a_level_has_the_columns_of_its_grain_its_keys_and_its_numbers(store, name):
    level = LEVELS[name]
    filters = {"ranks": [0], "steps": [1], "in_steps": True} if level.step else {"ranks": [0]}
    for by in ((), ("rank",), tuple(level.grain)[1:]):
        statement, parameters = levels.build_statement(level, [1], by=by, **filters)
        grain = [own for own in level.grain if own in ("run_id", *by)]
        wanted = (*grain, *level.keys, *level.numbers)
        with store.connect() as connection:
            assert tuple(connection.execute(statement, parameters).keys())[: len(wanted)] == wanted
        assert sql.columns_of(statement)[: len(wanted)] == wanted


def test_a_grain_that_a_level_does_not_have_is_refused():
    with pytest.raises(ValueError, match="no such grain: step"):
        levels.build_statement(LEVELS["kernel_metric"], [1], by=("step",))
