"""The model level and the trees on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tracker.results import TREES


def test_every_show_and_diff_says_what_the_steps_wait_for(tracker, db):
    assert "Bottleneck: " in tracker("show", "run:1", "--db", db).out
    assert "  candidate: not classified." in tracker("diff", "v01", "v08", "--details", "--db", db).out
    found = json.loads(tracker("show", "run:1", "--format", "json", "--db", db).out)["bottleneck"]
    assert (found["class"], found["device_utilisation"]) == (None, None)  # measured without a device
    assert "no device activity" in " ".join(found["missing"])


@pytest.mark.parametrize("word", TREES)
def test_a_tree_of_a_run_adds_up_to_its_ops(tracker, db, word):
    whole = json.loads(tracker("show", "run:1", "--format", "json", "--db", db).out)
    tree = json.loads(tracker("show", "run:1", "--by", word, "--format", "json", "--db", db).out)["tree"]
    top = sum(row["host_total_ns"] for row in tree if row["level"] == 0)
    assert top == (0 if word == "kernel" else sum(row["host_self_ns"] for row in whole["ops"]))


def test_the_screen_shows_the_tree_and_the_command_that_shows_all(tracker, db):
    done = tracker("show", "run:1", "--by", "phase", "--depth", "1", "--db", db)
    assert "Phases of a step and the ops in them, most expensive first" in done.out
    assert "Largest operators" not in done.out
    assert "--by phase --depth 1 -o run1.xlsx" in done.out.splitlines()[-1]
    both = tracker("show", "run:1", "--by", "phase", "--only", "operator", "--db", db).out
    assert "Phases of a step" in both and "\nOperators, all 5 steps\n" in both


def test_rows_that_are_not_shown_are_summed_up(tracker, db):
    words = ("--by", "op", "--depth", "1", "--db", db)
    text = tracker("show", "run:1", *words, "--top", "2").out
    rows = json.loads(tracker("show", "run:1", *words, "--format", "json").out)["tree"]
    assert f"… and {len(rows) - 2:,} more" in text


@pytest.mark.parametrize("word", ["", "module", "op"])
def test_a_file_for_speedscope_has_the_time_of_its_tree_to_the_ns(tracker, db, tmp_path, word):
    chosen = ("--by", word) if word else ()
    target = tmp_path / "run.speedscope.json"
    done = tracker("show", "run:1", *chosen, "-o", target, "--db", db)
    assert (done.code, done.err) == (0, f"written: {target}\n")
    tree = json.loads(tracker("show", "run:1", "--by", word or "op", "--format", "json", "--db", db).out)["tree"]
    (profile,) = json.loads(target.read_text())["profiles"]
    assert sum(profile["weights"]) == sum(row["host_total_ns"] for row in tree if row["level"] == 0)


def test_both_sides_of_a_diff_are_profiles_of_one_file_for_speedscope(tracker, db):
    tree = json.loads(tracker("diff", "v01", "v08", "--by", "op", "--format", "json", "--db", db).out)["tree"]
    sides = json.loads(tracker("diff", "v01", "v08", "--format", "speedscope", "--db", db).out)["profiles"]
    for side, name in zip(sides, ("baseline", "candidate"), strict=True):
        assert side["name"].startswith(name)
        assert side["endValue"] == sum(round(row[f"{name}_ns"] or 0) for row in tree if row["level"] == 0)
    three = tracker("diff", "v01", "v08", "v01", "--format", "speedscope", "--db", db)
    assert "speedscope is for diff and show" in three.err


@pytest.mark.slow
def test_a_diff_shows_its_tree_in_every_format(tracker, db, tmp_path):
    words = ("diff", "v01", "v08", "--by", "op", "--depth", "2", "--db", db)
    assert "Ops by change of host time, per step" in tracker(*words).out
    assert "Ops by change of host time" in tracker(*words, "--format", "markdown").out
    rows = list(csv.DictReader(io.StringIO(tracker(*words, "--format", "csv").out)))
    assert {row["level"] for row in rows} == {"0", "1"}
    sizes = [abs(float(row["delta_ns"])) for row in rows if row["level"] == "0"]
    assert sizes == sorted(sizes, reverse=True)
    target = tmp_path / "diff.xlsx"
    assert tracker(*words, "--format", "xlsx", "-o", target).code == 0 and target.stat().st_size


def test_ranks_can_be_kept_apart_in_a_tree(tracker, db):
    rows = json.loads(tracker("show", "run:1", "--by", "phase", "--by", "step", "--format", "json", "--db", db).out)
    assert len({row["step"] for row in rows["tree"]}) > 1


def test_what_makes_no_tree_is_refused(tracker, db):
    two = tracker("show", "run:1", "--by", "op", "--by", "module", "--db", db)
    assert (two.code, "two trees at a time" in two.err) == (2, True)
    none = tracker("show", "run:1", "--depth", "2", "--db", db)
    assert (none.code, "a depth without a tree" in none.err) == (2, True)
