"""How runs were recorded is kept with them, and says what their captures say, however these came in."""

from __future__ import annotations

import pytest
from alembic import command
from msgspec.structs import replace
from sqlalchemy import text

from tests.factories import EPOCH_NS, capture, record, save
from tracker.profile import CHECK_RULES, CHECK_SETTING, IDLE_RULES, IDLE_SETTING, STEP_RULES, STEP_SETTING
from tracker.regressions.inbox import found_rows
from tracker.regressions.judgement import tracks_of, update
from tracker.results import FindingsOptions
from tracker.store import connect, health, open_store, pruning, save_run, schema
from tracker.store.recordings import Recorded, recorded, refresh_recordings

RULES = {STEP_SETTING: STEP_RULES, CHECK_SETTING: CHECK_RULES, IDLE_SETTING: IDLE_RULES}
STACK = {"with_stack": "on"}
SHAPES = {"record_shapes": "on"}
KEPT = "SELECT r.id, k.content FROM run AS r LEFT JOIN recording AS k ON k.id = r.recording_id ORDER BY r.id"


def of_run(store, run_id):
    with store.connect() as connection:
        return recorded(connection, [run_id])[run_id]


def test_runs_that_say_the_same_share_a_recording(store):
    save(store, runs=3, settings=STACK)
    save(store, settings=SHAPES)
    with store.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM recording")).scalar_one() == 2
        found = recorded(connection, [1, 2, 3, 4, 99])
    assert found[1] == found[2] == found[3] != found[4]
    assert found[1] == Recorded(
        {"format": ("torch_profiler",), "steps": ("unmarked",), "timeline": ("device",)}, (STACK,)
    )
    assert found[99] == Recorded(), "no such run says nothing"


@pytest.mark.parametrize(("steps", "marks"), [(1, "unmarked"), (3, "marked")])
def test_several_steps_are_marks(store, steps, marks):
    save(store, steps=steps)
    assert of_run(store, 1).said["steps"] == (marks,)


def test_a_rank_that_joins_adds_what_it_says(store):
    """Rank 1 comes later, with stacks and three steps: the run is recorded in both ways, and has marks."""
    of_job = {"started_at_ns": EPOCH_NS, "world_size": 2}
    save_run(store, record(), [capture(0, **of_job)], formats=["torch_profiler"])
    assert (of_run(store, 1).said["steps"], of_run(store, 1).settings) == (("unmarked",), ({},))
    later = capture(1, **of_job, steps=3, settings=STACK)
    facts = {"trace_schema_version": "1.2"}
    saved = save_run(store, record(facts=facts), [replace(later, host="node1")], formats=["nsys_sqlite"])
    assert saved.joined
    found = of_run(store, 1)
    assert (found.said["steps"], found.said["format"]) == (("marked",), ("nsys_sqlite", "torch_profiler"))
    assert sorted(found.settings, key=len) == [{}, {**STACK, **RULES}]
    assert health.check(store) == []


def test_upgrade_names_the_reader_where_a_file_was_named(database_url):
    """Six exports of msprof, each under the name of a file of it: one takes 10 ms, and in v2 20 ms."""
    names = ("op_summary_20260605161701.csv", "OP_SUMMARY.CSV.gz", "end_info.0", "info.json.1", "start_info", "m.json")
    with open_store(database_url) as store:
        for number, name in enumerate(names):
            started_at_ns = EPOCH_NS + number * 10**12
            version, step_ns = ("v1", 10_000_000 + number) if number < 3 else ("v2", 20_000_000 + number)
            made = capture(0, step_ns=step_ns, started_at_ns=started_at_ns, settings=STACK)
            saved = save_run(store, record(version, started_at_ns=started_at_ns), [made], formats=["cann"])
            store_format(store, saved.run_id, name)
        (other,) = save(store, workload="other")
        update(store, tracks_of(store))
        assert findings_of(store) == []
        with store.begin() as connection:
            command.downgrade(schema.alembic_config(connection), "0008")
    assert connect.upgrade(database_url) == ("0008", schema.SCHEMA_HEAD)
    with open_store(database_url) as store:
        formats = [of_run(store, run_id).said["format"] for run_id in (1, 2, 3, 4, 5, 6, other)]
        assert formats == [("cann",)] * 6 + [("torch_profiler",)]
        assert health.check(store) == []
        update(store, tracks_of(store))
        assert ("step", "REGRESSED") in findings_of(store)


def store_format(store, run_id, name):
    """Store the run as it was before the name of its reader was kept."""
    with store.begin() as connection:
        values = {"format": name, "run_id": run_id}
        connection.execute(text("UPDATE source SET format = :format WHERE run_id = :run_id"), values)
        refresh_recordings(connection, [run_id])


def findings_of(store):
    """The names and verdicts of the findings of the workload."""
    return [(row.name, row.verdict) for row in found_rows(store, FindingsOptions(workload="gpt"))]


def test_a_run_whose_details_were_dropped_stays_recorded_as_it_was(store):
    save(store, steps=3, settings=STACK)
    before = of_run(store, 1)
    pruning.prune(store, 1, now_ns=EPOCH_NS)
    assert of_run(store, 1) == before
    assert health.check(store) == []
