"""The statements that are made from levels: their text is kept, and lints clean on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracker.schema.levels import LEVEL
from tracker.store import levels
from tracker.store.queries import details
from tracker.store.samples.rows import SAMPLED_COLUMNS

GOLDEN = Path(__file__).parent / "golden" / "statements.sql"
LISTED = ("memory_peak", "memory_block", "memory_curve")
"""Levels of which no sums are asked."""
QUERIES = {name: levels.query_of(name) for name, own in LEVEL.items() if not own.is_packed and name not in LISTED}


def statements():
    """What is asked -> the statement, of each that is made from a level."""
    found = {}
    for name, query in QUERIES.items():
        filters = {"ranks": [0], "steps": [1] if query.step else None, "in_steps": bool(query.step)}
        grain = tuple(own for own in query.grain if own != "run_id")
        found[f"{name}: sums of a run"] = levels.build_statement(query, [1])[0]
        found[f"{name}: sums by {', '.join(grain)}"] = levels.build_statement(query, [1], by=grain, **filters)[0]
        if name in ("op", "kernel"):
            found[f"{name}: rows"] = levels.build_statement(query, [1], by=grain, summed=False, **filters)[0]
    for level, columns in SAMPLED_COLUMNS.items():
        found[f"{level}: rows of a run"] = levels.list_rows_of_run(level, columns)
    found["memory_peak: rows"] = details.OWNERS
    found["memory_block: rows"] = details.BLOCKS
    found["memory_curve: rows"] = levels.list_rows("memory_curve", details.CURVE_COLUMNS, details.CURVE_ORDER)
    found["memory_curve: rows of ranks"] = levels.list_rows(
        "memory_curve", details.CURVE_COLUMNS, details.CURVE_ORDER, ranks=True
    )
    found["kernel: what is known of ranks"] = levels.sum_known_of_ranks("kernel", ("calls", "total_ns", "bytes"))
    found["which levels have rows"] = levels.list_filled_levels()
    return found


def test_the_text_of_each_statement_is_as_it_was(request):
    made_now = "\n".join(f"-- {name}\n{statement.text};\n" for name, statement in statements().items())
    if request.config.getoption("--update-golden", default=False):
        GOLDEN.write_text(made_now, encoding="utf-8")
    assert made_now == GOLDEN.read_text(encoding="utf-8"), "pytest tests/store --update-golden writes it"


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_statements_lint_clean(dialect):
    from sqlfluff.core import FluffConfig, Linter

    # how long a line is depends on the names of columns
    rules = FluffConfig.from_path(str(GOLDEN)).get("exclude_rules") + ",LT05"
    config = FluffConfig.from_path(str(GOLDEN), overrides={"dialect": dialect, "exclude_rules": rules})
    found = Linter(config=config).lint_string(GOLDEN.read_text(encoding="utf-8")).get_violations()
    assert [f"{one.line_no} {one.rule_code()} {one.desc()}" for one in found] == []


@pytest.mark.parametrize("name", ["queue", "api", "idle", "memory", "communication"])
def test_sums_come_in_an_order_that_both_databases_share(name):
    statement, _ = levels.build_statement(levels.query_of(name), [1, 2], by=("rank", "step"))
    assert "\nORDER BY" in statement.text
