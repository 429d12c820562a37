"""What `tracker diff` and `tracker history` ask is found by an index: nothing reads a table that grows from its start
to its end.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager

import pytest
from sqlalchemy import event

from tests.factories import save
from tracker import compare
from tracker.regressions.history import history
from tracker.regressions.judgement import tracks_of, update
from tracker.results import DiffOptions, HistoryOptions
from tracker.store.captures import DETAIL_TABLES

GROWING = {*DETAIL_TABLES, "sample", "sample_array", "verdict", "capture", "source", "run_fact", "detail_text"}
FROM = re.compile(r"\b(?:FROM|JOIN) (\w+)(?: AS (\w+))?")


@pytest.fixture
def filled(store):
    """Five versions with two runs each, the last one slower, all judged."""
    for version in range(1, 6):
        ops = [("mm", 100 + 50 * (version == 5)), ("relu", 10, {"input_shapes": "[2]"})]
        save(store, f"v{version}", runs=2, ops=ops, kernels=[("gemm", 90)])
    update(store, tracks_of(store))
    return store


@contextmanager
def questions(store):
    """Every (statement, parameters) that is asked, as the driver gets it."""
    asked = []

    def note(_connection, _cursor, statement, parameters, _context, _executemany):
        if statement.lstrip().startswith(("SELECT", "WITH")):
            asked.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", note)
    yield asked
    event.remove(store.engine, "before_cursor_execute", note)


def read_whole(store, statement, parameters):
    """The tables that a statement reads from their start to their end."""
    with store.connect() as connection:
        if store.dialect == "sqlite":
            plan = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            scanned = {line.split()[1] for line in plan if line.startswith("SCAN ")}
            return {table for table, alias in FROM.findall(statement) if (alias or table) in scanned}
        # a table of few rows is read whole though it has an index: what counts is whether there is one that serves
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
        return {name.partition("_p0")[0] for line in plan for name in re.findall(r"Seq Scan on (\w+)", line)}


ASKS = {
    "chosen runs": lambda store: compare.diff(store, "run:5,run:6", "run:9,run:10"),
    "two versions": lambda store: compare.diff(store, "v4", "v5"),
    "a tree": lambda store: compare.diff(store, "v4", "v5", options=DiffOptions(by=("op",))),
    "the history of an op": lambda store: history(store, options=HistoryOptions(key="mm")),
    "the history of the step": lambda store: history(store, options=HistoryOptions(key="step")),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=list(ASKS))
def test_no_question_reads_a_growing_table_whole(filled, ask):
    with questions(filled) as asked:
        ask(filled)
    words = ("FROM sample", "FROM verdict")
    assert any(word in statement for statement, _ in asked for word in words), "what runs say was asked for"
    whole = {
        (table, statement) for statement, parameters in asked for table in read_whole(filled, statement, parameters)
    }
    assert [pair for pair in whole if pair[0] in GROWING] == []


def test_a_question_without_an_index_would_be_told(filled):
    assert read_whole(filled, "SELECT d.run_id FROM sample AS d WHERE d.value > 5", ()) == {"sample"}


MEMORY = {"memory": [("mm", 512)], "curve": [("PTA", 1, 512)]}


def asked_again(asked):
    """Questions that were asked more than once, of whatever runs, and how often."""
    lists = re.compile(r"IN \([^()]*\)")
    often = Counter(lists.sub("IN (...)", statement) for statement, _ in asked)
    return {statement: count for statement, count in often.items() if count > 1}


@pytest.mark.parametrize("of_capture", [{}, MEMORY], ids=["ops and kernels", "memory as well"])
def test_both_sides_of_a_diff_are_asked_about_together(filled, of_capture):
    save(filled, "v6", runs=2, ops=[("mm", 300), ("relu", 10)], kernels=[("gemm", 90)], **of_capture)
    with questions(filled) as asked:
        diff = compare.diff(filled, "run:9,run:10", "run:11,run:12")
    assert diff.judgement.judged
    again = asked_again(asked)
    # who is meant, run by run; how they were recorded; the limits of the track, and whether it was judged with them;
    # the texts of ops, and of what kernels are; what the machine did, to judge and to say
    allowed = ("WHERE r.id =", "LEFT JOIN recording", "FROM threshold AS t", "FROM detail_text AS t")
    allowed += ("FROM run_fact AS f",)
    assert [statement for statement in again if not any(words in statement for words in allowed)] == []
    of_memory = [statement for statement, _ in asked if "FROM memory_allocator AS d\n    INNER JOIN" in statement]
    assert of_memory == [], "they have no memory in common: nothing is compared, so nothing is asked"
    assert len(asked) <= 34, [statement for statement, _ in asked]


@pytest.mark.parametrize("of_capture", [{}, MEMORY], ids=["ops and kernels", "memory as well"])
def test_what_was_asked_of_a_run_is_not_asked_again_to_show_it(store, of_capture):
    save(store, "v1", ops=[("mm", 300)], kernels=[("gemm", 90)], **of_capture)
    with questions(store) as asked:
        shown = compare.show(store, "run:1")
    assert shown.ops["name"].tolist() == ["mm"]
    again = asked_again(asked)
    allowed = ("FROM source AS s", "FROM detail_text AS t")  # with the run, and each file by itself; as above
    assert [statement for statement in again if not any(words in statement for words in allowed)] == []
    of_memory = [statement for statement, _ in asked if "FROM memory_curve AS" in statement and "has_" not in statement]
    assert bool(of_memory) == bool(of_capture), "a table without a row of this run is not asked"


def test_the_trees_of_both_sides_are_asked_for_together(filled):
    """Where ops went and others came, for a diff of trees as well, which asks for each step."""
    save(filled, "v6", runs=2, ops=[("mm", 150), ("gelu", 10, {"input_shapes": "[2]"})], kernels=[("gemm", 90)])
    for by in ((), ("op",)):
        with questions(filled) as asked:
            diff = compare.diff(filled, "v5", "v6", options=DiffOptions(by=by))
        assert [(one.removed, one.added) for one in diff.explanation.renames] == [("relu", "gelu")]
        assert len([statement for statement, _ in asked if "FROM op_tree AS t" in statement]) == 1 + len(by)


def test_a_matrix_asks_about_all_of_its_sides_together(filled):
    with questions(filled) as asked:
        compare.matrix(filled, ["v1", "v2", "v3", "v4", "v5"])
    assert len([statement for statement, _ in asked if "FROM op AS d" in statement]) == 1


def test_sides_of_other_steps_are_asked_each_by_itself(store):
    save(store, runs=2, steps=2, ops=[("mm", 100)], memory=[("mm", 512)])
    with questions(store) as asked:
        diff = compare.diff(store, "run:1", "run:2", options=DiffOptions(baseline_steps=(0,)))
    assert len([statement for statement, _ in asked if "FROM op AS d" in statement]) == 2
    assert diff.ops["baseline_total_calls"].tolist() == [1]
    assert diff.ops["candidate_total_calls"].tolist() == [2]
