"""Steps, kernel metrics, links and counters on the command line."""

from __future__ import annotations

import json

import pytest

BOTH = ("--baseline-step", "4", "--candidate-step", "5-6")


def test_chosen_steps_stand_in_every_report(tracker, trace, tmp_path):
    words = ("diff", trace["v01"], trace["v01"], *BOTH)
    text = tracker(*words).out
    assert text.splitlines()[0] == "cpu, 1 run each, only step 4 -> steps 5,6"
    assert "--baseline-step 4 --candidate-step 5,6" in text.splitlines()[-1]
    document = json.loads(tracker(*words, "--format", "json").out)
    assert (document["options"]["baseline_steps"], document["options"]["candidate_steps"]) == ([4], [5, 6])
    assert (document["baseline"]["steps"], document["candidate"]["chosen_steps"]) == (1, [5, 6])
    for format in ("markdown", "csv"):
        done = tracker(*words, "--format", format)
        assert "Chosen: step 4 of the baseline and steps 5,6 of the candidate." in done.out


def test_two_steps_of_a_run_mirror_each_other(tracker, db):
    def delta(*words):
        return json.loads(tracker("diff", *words, "--format", "json", "--db", db).out)["explanation"]["delta_ns"]

    one = delta("run:1", "run:1", "--baseline-step", "4", "--candidate-step", "5")
    assert one == -delta("run:1", "run:1", "--baseline-step", "5", "--candidate-step", "4") != 0
    assert delta("v01", "v01", "--baseline-step", "4", "--candidate-step", "4") == 0


def test_show_of_one_step_is_that_of_its_row(tracker, trace):
    whole = json.loads(tracker("show", trace["v01"], "--format", "json", "--by", "step").out)
    part = json.loads(tracker("show", trace["v01"], "--format", "json", "--by", "step", "--step", "5").out)
    assert [row | {"share": None} for row in part["ops"]] == [
        row | {"share": None} for row in whole["ops"] if row["step"] == 5
    ]
    assert part["steps"] == [row for row in whole["steps"] if row["step"] == 5]
    assert part["overall"][0]["e2e_ns"] == part["steps"][0]["e2e_ns"] == part["run"]["e2e_ns"]
    assert (part["options"]["steps"], part["notes"][0]) == ([5], "Chosen: step 5.")
    text = tracker("show", trace["v01"], "--step", "5").out
    assert text.splitlines()[0].endswith("cpu, rank 0, step 5") and "--step 5 --details" in text


@pytest.mark.parametrize("steps", ["", "4x", "5-4", "-1", "1-99999", "4,,5", "٤"])
def test_what_names_no_steps_is_refused(tracker, trace, steps):
    done = tracker("show", trace["v01"], f"--step={steps}")
    assert (done.code, done.out) == (2, "")
    assert "names no steps; write a number, a range or several: --step 12,14-16" in done.err


@pytest.mark.parametrize("words", [("diff", *BOTH[:3], "8"), ("show", "--step", "8")])
def test_a_step_that_is_not_there_lists_those_that_are(tracker, db, words):
    sides = ("v01", "v08") if words[0] == "diff" else ("run:1",)
    done = tracker(words[0], *sides, *words[1:], "--db", db)
    assert (done.code, done.out) == (2, "")
    assert "has no step 8: " in done.err and "steps 3-7" in done.err


def test_show_takes_only_sections(tracker, trace):
    document = json.loads(tracker("show", trace["v01"], "--format", "json", "--only", "link,counter").out)
    assert set(document) == {"schema", "run", "options", "notes", "bottleneck", "communication_links", "link_totals",
                             "counters", "counter_summary"}  # fmt: skip
    assert tracker("show", trace["v01"], "--only", "everything").code == 2
