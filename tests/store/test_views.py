"""The views: they say what the commands say, in names, and nothing that is out of date."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from alembic import command
from msgspec.structs import replace
from sqlalchemy import create_engine, text
from sqlalchemy.exc import ProgrammingError

from tests.factories import EPOCH_NS, capture, record, save
from tests.regressions import made
from tracker.errors import StoreError
from tracker.profile import Breakdown
from tracker.regressions import track as rules
from tracker.regressions.actions import act, undo
from tracker.regressions.inbox import found_rows
from tracker.regressions.judgement import tracks_of, update
from tracker.regressions.track import named_tracks, read_tracks
from tracker.results.thresholds import Threshold
from tracker.store import connect, health, open_store, pruning, queries, save_run, schema, versions, views
from tracker.store import runs as edits
from tracker.store.findings import Word

NAMES = [view.name for view in views.VIEWS]
SLOW = {"op07": 5.0}
"""op07 takes 5 ms instead of 1, so that a step takes 44 ms instead of 40."""


def ask(store, query, **parameters):
    """The rows of a query, by name."""
    with store.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(text(query), parameters)]


def judge(store):
    return update(store, tracks_of(store))


def is_judged(store):
    """Workload, version -> whether the views show its judgement."""
    rows = ask(store, "SELECT workload, version, is_judged FROM v_version ORDER BY workload, version_ordinal")
    return {(row["workload"], row["version"]): bool(row["is_judged"]) for row in rows}


def is_current(store):
    """The same as the commands decide it."""
    found = {}
    for track in read_tracks(store, named_tracks(store, branches=True)):
        for version, label in track.labels.items():
            found[track.names.workload, label] = version not in track.late
    return found


def check_currency(store, judged):
    """Assert that views and commands agree on what is current, and that these versions of gpt are."""
    assert is_judged(store) == is_current(store)
    found = [version for (workload, version), yes in is_judged(store).items() if yes and workload == "gpt"]
    assert found == judged
    shown = {row["version"] for row in ask(store, "SELECT DISTINCT version FROM v_verdict WHERE workload = 'gpt'")}
    assert shown <= set(judged)


def test_each_view_has_its_columns_on_an_empty_database(store):
    with store.connect() as connection:
        for view in views.VIEWS:
            answer = connection.execute(text(f"SELECT * FROM {view.name}"))
            assert list(answer.keys()) == [column.name for column in view.columns]
            assert answer.all() == []
    assert health.check(store) == []


def test_times_and_sizes_of_views_end_in_their_unit():
    plain = {"calls", "gaps", "kernel_count", "unlinked_kernel_count", "paired_calls", "block_num", "steps"}
    for view in views.VIEWS:
        names = [column.name for column in view.columns]
        assert len(set(names)) == len(names), view.name
        assert not {"ns", "bytes_", "min", "max"} & set(names)
        for column in view.columns:
            assert column.meaning, column.name
            if column.kind == "text" or column.name in plain:
                assert not column.name.endswith(("_ns", "_bytes")), column.name


OF_LEVELS = {
    "v_op": queries.ops,
    "v_kernel": queries.kernels,
    "v_communication": queries.communication,
    "v_idle": queries.idle,
    "v_memory": queries.memory,
}
SUMMED = (
    "calls", "total_ns", "bytes", "transit_ns", "wait_ns", "idle_ns", "held_ns", "device_self_ns",
    "host_total_ns", "gaps",
)  # fmt: skip
OTHER_NAMES = {"v_kernel": {"name": "kernel"}, "v_idle": {"ns": "idle_ns"}}


def rich(**more):
    """What a capture of a rank with rows of each level holds."""
    return {
        "steps": 2,
        "ops": [("aten::mm", 900, {"input_shapes": "[[2,2]]", "module": "GPT_0"}), ('it\'s\n"odd"', 100)],
        "kernels": [("gemm", 700, {"block_num": 8}), ("relu", 30, {"op": 'it\'s\n"odd"', "category": "vector"})],
        "communication": [("all_reduce", 60, {"group_role": "dp", "group_size": 2, "transit_ns": 40, "wait_ns": 20})],
        "memory": [("aten::mm", 512, {"held_ns": 9})],
        "idle": [("host", "aten::mm", 40)],
        **more,
    }


def save_rich(store):
    """A run of two stages, and one whose profiler states less."""
    captures = [capture(rank, world_size=2, stage=rank, **rich()) for rank in (0, 1)]
    first = save_run(store, record("v1"), captures, formats=["torch_profiler"]).run_id
    return [first, *save(store, "v2", **rich(communication=[("send", 5)], memory=[("aten::add", 8)]))]


def sums(frame, number, by):
    """Sum of a number of each run, of each of `by`, by these; -1 where it is missing."""
    return frame.groupby(["run_id", *by])[number].sum(min_count=1).fillna(-1).to_dict()


@pytest.mark.parametrize("view", OF_LEVELS)
def test_a_view_has_the_rows_of_its_level(store, view):
    runs = save_rich(store)
    for by in (("rank", "step"), ("rank",), ()):
        expected = OF_LEVELS[view](store, runs, by=by).frame.rename(columns=OTHER_NAMES.get(view, {}))
        rows = pd.DataFrame(ask(store, f"SELECT * FROM {view}"))
        numbers = [name for name in SUMMED if name in rows and name in expected]
        assert len(numbers) >= 2
        for number in numbers:
            assert sums(rows, number, by) == sums(expected, number, by), number
    assert set(rows["version"]) == {"v1", "v2"}


UNKNOWN = {"group_size": -1, "size_class_bytes": -1}


def test_missing_is_null_never_zero_or_minus_one(store):
    save_run(
        store,
        record("v1"),
        [capture(0, **rich(steps=[-1, 0], communication=[("send", 5, UNKNOWN)]))],
        formats=["torch_profiler"],
    )
    (row, _) = ask(store, "SELECT * FROM v_communication ORDER BY step IS NULL DESC")
    assert row["step"] is None
    assert [row[name] for name in ("stage", "group_size", "size_class_bytes", "wait_ns", "split_by")] == [None] * 5
    assert row["total_ns"] == 5
    (step,) = ask(store, "SELECT * FROM v_step")
    assert step["peak_allocated_bytes"] is None
    assert (step["steps"], step["step"]) == (1, 0)


def test_steps_are_those_of_the_commands(store):
    runs = save_rich(store)
    expected = queries.steps(store, runs).frame
    rows = pd.DataFrame(ask(store, "SELECT * FROM v_step ORDER BY run_id, rank, step"))
    assert rows["step_ns"].tolist() == expected["whole_ns"].tolist()
    for name in Breakdown.__struct_fields__:
        assert [None if pd.isna(value) else value for value in rows[name]] == [
            None if pd.isna(value) else value for value in expected[name]
        ], name


def test_a_run_has_the_numbers_of_the_commands_and_0_only_where_it_was_measured(store):
    runs = save_rich(store)
    edits.exclude_all(store, runs[1:], "a test")
    expected = queries.runs_by_id(store, runs).frame.set_index("run_id")
    rows = {row["run_id"]: row for row in ask(store, "SELECT * FROM v_run")}
    for run in runs:
        own = rows[run]
        assert own["step_ns"] == expected.loc[run, "step_ns"]
        assert (own["steps"], own["ranks"]) == (2, expected.loc[run, "ranks"])
        assert own["state"] == expected.loc[run, "state"]
        assert own["exposed_copy_ns"] == 0
        assert own["data_loading_ns"] is None
    assert rows[runs[1]]["is_judged"] is None
    assert ask(store, "SELECT DISTINCT run_id FROM v_op") == [{"run_id": runs[0]}], "excluded runs are in v_run alone"


def test_throughput_has_its_unit(store):
    one = capture(0, settings={"throughput_unit": "images/s"})
    overall = replace(one.rows.overall, samples_per_second=12.5)
    save_run(store, record("v1"), [replace(one, rows=replace(one.rows, overall=overall))], formats=["torch_profiler"])
    save(store, "v2")
    rows = ask(store, "SELECT throughput_per_second AS number, throughput_unit AS unit FROM v_run ORDER BY run_id")
    assert rows == [{"number": 12.5, "unit": "images/s"}, {"number": None, "unit": None}]


def test_a_judgement_is_shown_while_it_is_current(store):
    first = made.runs(store, "v1")
    made.runs(store, "v2", start=10)
    third = made.runs(store, "v3", SLOW, start=20)
    check_currency(store, [])
    judge(store)
    check_currency(store, ["v1", "v2", "v3"])
    assert {row["op"]: row["state"] for row in ask(store, "SELECT name AS op, state FROM v_finding WHERE kind = 'op'")}
    edits.exclude_all(store, third[:1], "a test")
    check_currency(store, ["v1", "v2"])
    assert ask(store, "SELECT * FROM v_finding") == []
    judge(store)
    check_currency(store, ["v1", "v2", "v3"])
    edits.exclude_all(store, first[:1], "a test")
    check_currency(store, [])
    judge(store)
    made.runs(store, "v4", start=30)
    check_currency(store, ["v1", "v2", "v3"])
    judge(store)
    versions.order_versions(store, ["v3"], after="v4")
    check_currency(store, ["v1", "v2"])
    judge(store)
    check_currency(store, ["v1", "v2", "v4", "v3"])


def test_limits_ranks_and_rules_end_a_judgement(store, monkeypatch):
    run = made.runs(store, "v1")[0]
    made.runs(store, "v2", start=10)
    judge(store)
    limit = Threshold("min_ratio", 0.07, "op", "op0?", who="ann", when_ns=1, reason="noisy")
    with store.begin() as connection:
        from tracker.store import tracks as stored_tracks

        stored_tracks.write_limits(connection, 1, [limit])
    check_currency(store, [])
    judge(store)
    check_currency(store, ["v1", "v2"])
    with store.begin() as connection:
        connection.execute(text("UPDATE run SET started_at_ns = started_at_ns + 1 WHERE id = :id"), {"id": run})
    check_currency(store, [])
    judge(store)
    monkeypatch.setattr(rules, "RULE_VERSION", rules.RULE_VERSION + 1)
    made.runs(store, "v2", start=20, count=1)
    judge(store)
    check_currency(store, ["v1", "v2"])
    now = f"rules {rules.RULE_VERSION:04}"
    with store.begin() as connection:
        change = "UPDATE judged_version SET basis = REPLACE(basis, :before, :after)"
        connection.execute(text(change), {"before": now, "after": "rules 0009"})
        newest = text(f"{change} WHERE version_id = (SELECT MAX(id) FROM version)")
        connection.execute(newest, {"before": "rules 0009", "after": f"rules {rules.RULE_VERSION + 1:04}"})
    assert not any(is_judged(store).values()), "a newer tracker judged one of them by other rules"


def test_a_branch_is_judged_while_its_main_line_is(store):
    first = made.runs(store, "v1")
    made.runs(store, "v2", start=10)
    made.runs(store, "pr1", SLOW, start=20, workload="gpt @ pr12")
    judge(store)
    assert is_judged(store) == is_current(store)
    assert is_judged(store)["gpt @ pr12", "pr1"]
    edits.exclude_all(store, first[:1], "a test")
    assert not is_judged(store)["gpt @ pr12", "pr1"]
    assert is_judged(store) == is_current(store)


def test_the_state_of_a_finding_is_that_of_the_commands(store):
    made.runs(store, "v1")
    made.runs(store, "v2", start=10)
    made.runs(store, "v3", {"op07": 5.0, "op08": 3.0, "op09": 3.0}, start=20)
    judge(store)
    rows = ask(store, "SELECT finding_id, name, kind FROM v_finding WHERE kind = 'op' ORDER BY name")
    by_name = {row["name"]: row["finding_id"] for row in rows}

    def states():
        shown = {row["finding_id"]: row["state"] for row in ask(store, "SELECT finding_id, state FROM v_finding")}
        assert shown == {row.finding_id: row.state for row in found_rows(store) if row.finding_id}
        return {name: shown[number] for name, number in by_name.items()}

    assert states() == {"op07": "new", "op08": "new", "op09": "new"}
    word = {"who": "ann", "when_ns": 1, "reason": "known"}
    act(store, Word("ack", **word), finding_ids=[by_name["op07"]])
    act(store, Word("mute", until_ns=2**62, until_version=None, **word), finding_ids=[by_name["op08"]])
    act(store, Word("invalid", **word), finding_ids=[by_name["op09"]])
    assert states() == {"op07": "acknowledged", "op08": "muted", "op09": "invalid"}
    act(store, Word("expect", **word), finding_ids=[by_name["op07"]])
    act(store, Word("unmute", **word), finding_ids=[by_name["op08"]])
    assert states() == {"op07": "expected", "op08": "new", "op09": "invalid"}
    taken = Word("undo", "ann", 2, "no")
    undo(store, taken, finding_ids=[by_name["op07"], by_name["op09"]])
    assert states() == {"op07": "acknowledged", "op08": "new", "op09": "new"}
    act(store, Word("mute", until_ns=None, until_version="v4", **word), finding_ids=[by_name["op08"]])
    assert states()["op08"] == "muted"
    made.runs(store, "v4", {"op07": 5.0, "op08": 3.0, "op09": 3.0}, start=30)
    judge(store)
    assert states()["op08"] == "persisting"


QUESTION = re.compile(r"^### (v_\w+)$.*?^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCS = Path(__file__).parents[2] / "docs"
QUESTIONS = dict(QUESTION.findall((DOCS / "columns.md").read_text(encoding="utf-8")))
"""View -> the question that docs/columns.md asks it."""


@pytest.fixture
def two_versions(store):
    """A store with two judged versions of gpt: op07 takes 1 ms, then 5 ms."""
    for version, changed, start in (("v1", None, 0), ("v2", SLOW, 10)):
        made.runs(store, version, changed, start=start, memory=[("op01", 512)], idle=[("host", "op01", 9)], idle_ns=9,
                  communication=[("all_reduce", 60, {"exposed_ns": 60})])  # fmt: skip
    judge(store)
    return store


def test_each_question_of_the_docs_has_an_answer(two_versions):
    assert list(QUESTIONS) == NAMES
    for view, question in QUESTIONS.items():
        assert ask(two_versions, question), view


def test_an_operator_that_became_slower_is_named_by_the_docs_alone(two_versions):
    rows = ask(two_versions, QUESTIONS["v_op"])
    assert rows[0]["op"] == "op07"
    assert float(rows[0]["before_ns"]) == pytest.approx(1e6, rel=0.02)
    assert float(rows[0]["after_ns"]) == pytest.approx(5e6, rel=0.02)
    assert "op07" in {row["name"] for row in ask(two_versions, QUESTIONS["v_verdict"])}
    assert "op07" in {row["name"] for row in ask(two_versions, QUESTIONS["v_finding"])}


def test_a_database_is_sound_beside_its_views_and_they_stay_when_details_go(two_versions):
    before = {view: len(ask(two_versions, question)) for view, question in QUESTIONS.items()}
    assert health.check(two_versions) == []
    for run in queries.runs(two_versions).listed("run_id"):
        pruning.prune(two_versions, run, now_ns=EPOCH_NS)
    after = {view: len(ask(two_versions, question)) for view, question in QUESTIONS.items()}
    gone = {"v_op", "v_kernel", "v_communication", "v_idle", "v_memory"}
    assert {view: count for view, count in after.items() if view not in gone} == {
        view: count for view, count in before.items() if view not in gone
    }
    assert {after[view] for view in gone} == {0}
    assert {row["pruned_at_ns"] for row in ask(two_versions, "SELECT pruned_at_ns FROM v_run")} == {EPOCH_NS}
    assert health.check(two_versions) == []


def test_other_programs_ask_the_same_questions(two_versions):
    """The standard library and pandas on a SQLite file, psql and pandas on Postgres."""
    url = two_versions.engine.url
    frames = create_engine(url)
    for view, question in QUESTIONS.items():
        expected = ask(two_versions, question)
        with frames.connect() as connection:
            assert len(pd.read_sql(text(question), connection)) == len(expected), view
        if two_versions.dialect == "sqlite":
            with closing(sqlite3.connect(f"file:{url.database}?mode=ro", uri=True)) as connection:
                assert connection.execute(question).fetchall() == [tuple(row.values()) for row in expected]
    frames.dispose()
    if two_versions.dialect == "postgresql" and (psql := shutil.which("psql")):
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        words = [psql, plain, "--no-psqlrc", "--csv", "--tuples-only", "--command", QUESTIONS["v_op"]]
        answer = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert answer.startswith("op07,")


DASHBOARD = json.loads((DOCS / "examples" / "grafana.json").read_text(encoding="utf-8"))


def filled_in(query):
    """A query as Grafana sends it."""
    query = re.sub(r"\$__unixEpochNanoFilter\(([\w.]+)\)", r"\1 >= 0 AND \1 <= 9223372036854775807", query)
    return query.replace("${workload:sqlstring}", "'gpt'").replace("${op:sqlstring}", "'op07'")


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_the_queries_of_the_dashboard_have_answers(two_versions):
    variables = [own["query"] for own in DASHBOARD["templating"]["list"] if own["type"] == "query"]
    assert [list(ask(two_versions, filled_in(query))[0].values()) for query in variables] == [["gpt"], ["op07"]]
    queries_of = {panel["title"]: panel["targets"][0]["rawSql"] for panel in DASHBOARD["panels"]}
    rows = {title: ask(two_versions, filled_in(query)) for title, query in queries_of.items()}
    board, step, found, history = rows.values()
    assert [(row["version"], row["verdict"], row["remark"]) for row in board] == [("v2", "REGRESSED", "")]
    assert board[0]["open_regressions"] > 0
    assert [round(float(row["step_ms"]) / 4) for row in step] == [10, 10, 10, 11, 11, 11]
    assert "op07" in {row["name"] for row in found}
    assert [round(float(row["device_self_ms"])) for row in history] == [1, 1, 1, 5, 5, 5]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_user_who_may_read_the_views_needs_no_right_on_tables(two_versions):
    with two_versions.begin() as connection:
        connection.execute(text(f"GRANT SELECT ON {', '.join(NAMES)} TO PUBLIC"))
        connection.execute(text("CREATE ROLE grafana_of_a_test"))
    try:
        with two_versions.connect() as connection:
            connection.execute(text("SET LOCAL ROLE grafana_of_a_test"))
            for question in QUESTIONS.values():
                assert connection.execute(text(question)).all()
            with pytest.raises(ProgrammingError, match="permission denied"):
                connection.execute(text("SELECT * FROM run"))
    finally:
        with two_versions.begin() as connection:
            connection.execute(text("DROP ROLE grafana_of_a_test"))


def test_questions_of_a_version_look_into_its_rows_alone(tmp_path):
    """By the plan of SQLite: a view that begins with all rows of all runs takes seconds on some hundred runs."""
    with open_store(str(tmp_path / "a.db")) as store:
        made.runs(store, "v1")
        for view in ("v_step", "v_op", "v_kernel", "v_communication", "v_idle", "v_memory"):
            plan = ask(store, f"EXPLAIN QUERY PLAN {QUESTIONS[view]}")
            scans = [row["detail"] for row in plan if row["detail"].startswith("SCAN")]
            # the answer of a common table expression is no table
            assert not [scan for scan in scans if re.match(r"SCAN (d|c|r|t_\w+|k|o)\b", scan)], (view, scans)


def test_views_that_are_gone_or_changed_are_said_and_made_again(database_url):
    with open_store(database_url) as store:
        save(store)
        with store.begin() as connection:
            connection.execute(text("DROP VIEW v_op"))
        (problem,) = health.check(store)
        assert problem == "v_op is missing or not as this tracker makes it; tracker db check --repair makes them again"
        assert len(queries.ops(store, [1])) == 1, "no command reads a view"
        assert health.repair(store) == ["v_op  made again"]
        assert health.check(store) == []
        with store.begin() as connection:
            views.drop_views(connection)
        assert health.check(store)[0].startswith("v_version, v_run, v_step, v_op, ")
    assert connect.upgrade(database_url) == (schema.SCHEMA_HEAD, schema.SCHEMA_HEAD)
    with open_store(database_url, read_only=True) as store:
        assert health.check(store) == []
        assert len(ask(store, "SELECT * FROM v_op")) == 1


def test_an_older_database_gets_its_views_when_it_is_upgraded(database_url):
    with open_store(database_url) as store:
        made.runs(store, "v1")
        judge(store)
        with store.begin() as connection:
            connection.execute(text("UPDATE judged_version SET rests_on = :other"), {"other": b"older rules"})
            command.downgrade(schema.alembic_config(connection), "0003")
    with pytest.raises(StoreError, match="is at schema 0003, older than"):
        open_store(database_url, read_only=True)
    assert connect.upgrade(database_url) == ("0003", schema.SCHEMA_HEAD)
    with open_store(database_url) as store:
        assert health.check(store) == []
        assert is_judged(store) == {("gpt", "v1"): False}, "an older tracker judged it"
        assert judge(store) == 1
        assert is_judged(store) == is_current(store) == {("gpt", "v1"): True}


def test_what_has_the_name_of_a_view_stays(empty_url):
    with open_store(empty_url) as store:
        with store.begin() as connection:
            views.drop_views(connection)
            connection.execute(text("CREATE TABLE v_run (mine BIGINT)"))
        with pytest.raises(StoreError, match=r"v_run is none of the views of tracker.*; rename v_run, then"):
            health.repair(store)
        assert ask(store, "SELECT * FROM v_run") == []


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_view_of_somebody_else_that_rests_on_one_is_named_and_stays(database_url):
    with open_store(database_url) as store:
        with store.begin() as connection:
            connection.execute(text("CREATE VIEW mine AS SELECT op FROM v_op"))
            connection.execute(text("GRANT SELECT ON v_op TO PUBLIC"))
            connection.execute(text("COMMENT ON VIEW v_op IS '-- made by tracker, of yesterday'"))
        assert health.repair(store) == ["v_op  made again"], "in its place, as it has the same columns"
        may = text("SELECT HAS_TABLE_PRIVILEGE('public', 'v_op', 'SELECT')")
        with store.connect() as connection:
            assert connection.execute(may).scalar() is True
        with store.begin() as connection:
            connection.execute(text("DROP VIEW mine"))
            connection.execute(text("DROP VIEW v_op"))
            connection.execute(text("CREATE VIEW v_op AS SELECT 1 AS old, '' AS op"))
            connection.execute(text("COMMENT ON VIEW v_op IS '-- made by tracker, of yesterday'"))
            connection.execute(text("CREATE VIEW mine AS SELECT op FROM v_op"))
        with pytest.raises(StoreError, match=r"a view of tracker cannot be changed .*mine.*; drop what rests on it"):
            health.repair(store)


TEXTS = Path(__file__).parent / "golden"


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_text_of_the_views_is_as_it_was(dialect, request):
    statements = views.definitions(dialect).values()
    made_now = "\n\n".join(f"{statement};" for statement in statements) + "\n"
    made_now = made_now.replace("-- made by tracker\n", "")
    path = TEXTS / f"views.{dialect}.sql"
    if request.config.getoption("--update-golden", default=False):
        path.write_text(made_now, encoding="utf-8")
    assert made_now == path.read_text(encoding="utf-8"), "pytest tests/store --update-golden writes it"


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "name"), [("sqlite", "sqlite"), ("postgresql", "postgres")])
def test_views_lint_clean(dialect, name):
    from sqlfluff.core import FluffConfig, Linter

    path = TEXTS / f"views.{dialect}.sql"
    config = FluffConfig.from_path(str(path), overrides={"dialect": name, "templater": "raw"})
    found = Linter(config=config).lint_string(path.read_text(encoding="utf-8")).get_violations()
    assert [f"{one.line_no} {one.rule_code()} {one.desc()}" for one in found] == []
