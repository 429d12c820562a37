"""The contract for scripts."""

import json

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tests.reports import builders
from tracker.reports import render
from tracker.results import DIFF_COLUMNS


def test_diff_has_the_documented_keys_in_order():
    document = json.loads(render(builders.diff(), "json"))
    assert list(document) == [
        "schema", "baseline", "candidate", "metric", "options", "notes", "environment", "bottleneck", "overall", "ops",
        "kernels", "kernel_types", "kernel_metrics", "communication", "communication_links", "memory", "memory_peak",
        "memory_peak_totals", "memory_blocks", "modules", "api", "idle", "input_operations", "input_queues",
        "operator_arguments", "counters", "explanation", "judgement", "budgets",
    ]  # fmt: skip
    assert document["schema"] == 1


def test_the_judgement_says_what_the_runs_can_tell_and_rows_carry_verdicts():
    assert json.loads(render(builders.diff(), "json"))["judgement"] is None
    document = json.loads(render(builders.judged(), "json"))
    assert (document["judgement"]["judged"], document["judgement"]["shared"]) == (True, 0.041)
    assert document["judgement"]["counts"]["REGRESSED"] == 1
    row = next(row for row in document["ops"] if row["name"] == "aten::mm")
    assert [row[name] for name in ("verdict", "judged_diff", "q", "detectable")] == ["REGRESSED", 0.25, 1e-5, 0.04]


def test_show_has_the_documented_keys_in_order():
    document = json.loads(render(builders.shown(), "json"))
    assert list(document) == [
        "schema", "run", "options", "notes", "bottleneck", "slow_steps", "overall", "steps", "rank_summary",
        "step_summary", "ops", "kernels",
        "copies", "kernel_types", "kernel_metrics", "kernel_pipes", "communication", "communication_links",
        "link_totals", "memory", "memory_peak", "memory_peak_totals", "memory_blocks", "modules", "api",
        "idle_causes", "idle", "queues", "input_operations", "input_queues", "operator_arguments", "counters",
        "counter_summary",
        "efficiency", "largest", "advice",
        "memory_curve",
    ]  # fmt: skip


def test_memory_comes_with_its_course_over_time_and_nothing_else_does():
    document = json.loads(render(builders.shown(), "json", only=["memory"], limit=1))
    assert document["memory_curve"] == [
        {"rank": 0, "component": "device", "time_ns": 0, "allocated_bytes": 1, "reserved_bytes": None}
    ]
    assert "memory_curve" not in json.loads(render(builders.shown(), "json", only=["kernel"]))


def test_the_bottleneck_is_an_object_with_its_numbers():
    document = json.loads(render(builders.shown(), "json"))
    assert document["bottleneck"] == {
        "class": "device",
        "data_loading_share": 0.0125,
        "device_utilisation": 0.95,
        "possible_gain_share": 0.0125,
        "utilisation_of": "step_ns",
        "outside_steps_share": None,
        "communication_share": None,
        "host_idle_share": None,
        "empty_queue_share": None,
        "collective": None,
        "waiting_share": None,
        "missing": [],
        "thresholds": {
            "input_bound_above": 0.05,
            "communication_bound_above": 0.1,
            "host_bound_below": 0.8,
            "device_bound_above": 0.9,
        },
    }
    both = json.loads(render(builders.diff(), "json"))["bottleneck"]
    assert (both["baseline"]["class"], both["candidate"]["class"], both["changed"]) == ("mixed", "input", True)


def test_a_tree_stands_alone_unless_sections_are_named():
    alone = json.loads(render(builders.shown_with_tree(), "json"))
    assert "tree" in alone and "ops" not in alone
    beside = json.loads(render(builders.diff_with_tree(), "json", only=["kernel"], limit=1))
    assert [row["name"] for row in beside["tree"]] == ["GPT_0", "Block_0", "aten::mm"]
    assert len(beside["kernels"]) == 1


def test_every_row_carries_the_columns_of_its_table():
    document = json.loads(render(builders.diff(), "json"))
    for table in set(document) & set(DIFF_COLUMNS):
        for row in document[table]:
            assert tuple(row) == DIFF_COLUMNS[table]


def test_integers_stay_exact_and_missing_is_null():
    document = json.loads(render(builders.shown(), "json"))
    first, second = document["ops"]
    assert first["device_self_ns"] == 1736413971558972913  # a double would end in ...972912 or ...973056
    assert second["host_self_ns"] is None
    assert document["run"]["started_at_ns"] == 1736413971558972912


def test_not_a_number_and_infinity_are_null():
    ops = builders.diff().ops.assign(diff=float("inf"), delta_ns=float("nan"), baseline_name=pd.NA)
    text = render(builders.diff(ops=ops), "json")
    assert "NaN" not in text and "Infinity" not in text
    row = json.loads(text)["ops"][0]
    assert (row["diff"], row["delta_ns"], row["baseline_name"]) == (None, None, None)


def test_document_is_ascii_and_ends_with_a_newline():
    ops = builders.frame("ops", [builders.op("核函数", "", 1, 2)])
    text = render(builders.diff(ops=ops), "json")
    assert text.isascii() and text.endswith("}\n")
    assert json.loads(text)["ops"][0]["name"] == "核函数"


def test_a_section_that_was_not_chosen_has_no_key():
    document = json.loads(render(builders.diff(), "json", only=["kernel"], limit=1))
    assert "ops" not in document
    assert len(document["kernels"]) == 1
    assert document["explanation"]["headline"].startswith("v42 ran 4.0 % slower")


@given(st.lists(st.text(), min_size=1, max_size=5), st.integers(min_value=0, max_value=2**63 - 1))
def test_names_and_integers_come_back_as_they_were(names, time_ns):
    ops = builders.shown().ops.head(1)
    ops = pd.concat([ops.assign(name=name, host_self_ns=pd.array([time_ns], dtype="Int64")) for name in names])
    document = json.loads(render(builders.shown(ops=ops), "json"))
    assert [(row["name"], row["host_self_ns"]) for row in document["ops"]] == [(name, time_ns) for name in names]


def test_a_lone_surrogate_does_not_break_the_document():
    ops = builders.frame("ops", [builders.op("a\ud800b", "", 1, 2)])
    assert json.loads(render(builders.diff(ops=ops), "json"))["ops"][0]["name"] == "a\ufffdb"
