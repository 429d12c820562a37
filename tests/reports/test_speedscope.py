"""A tree for speedscope: sampled stacks whose weights sum to the rows of the tree, to the ns."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.reports import builders
from tracker.columns import Columns
from tracker.errors import UsageError
from tracker.reports import render
from tracker.reports.rows import records
from tracker.results import TREE_DIFF_COLUMNS, Diff

KINDS = {
    "$schema": str, "name": str, "exporter": str, "activeProfileIndex": int, "shared": dict, "profiles": list,
    "type": str, "unit": str, "startValue": int, "endValue": int, "samples": list, "weights": list, "frames": list,
}  # fmt: skip
"""Key of the schema of speedscope -> its type, of the keys that are used."""


def file_of(result):
    """The file, which holds what the schema says and nothing else."""
    found = json.loads(render(result, "speedscope"))
    assert found["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = found["shared"]["frames"]
    assert all(list(frame) == ["name"] and isinstance(frame["name"], str) for frame in frames)
    for part in (found, found["shared"], *found["profiles"]):
        assert all(type(value) is KINDS[key] for key, value in part.items())
    for profile in found["profiles"]:
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "nanoseconds", 0)
        assert len(profile["samples"]) == len(profile["weights"]) and min(profile["weights"], default=1) > 0
        assert profile["endValue"] == sum(profile["weights"])
        assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
    assert 0 <= found["activeProfileIndex"] < len(found["profiles"])
    return found


def widths(found, number=0):
    """Path -> time of its box, as speedscope draws it."""
    wide: Counter[str] = Counter()
    profile = found["profiles"][number]
    names = [frame["name"] for frame in found["shared"]["frames"]]
    for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
        for depth in range(len(sample)):
            wide[" > ".join(names[frame] for frame in sample[: depth + 1])] += weight
    return wide


def totals(result, column):
    """Path -> time of its row."""
    found: Counter[str] = Counter()
    path: list[str] = []
    for row in records(result.tree_table):
        path = [*path[: row["level"]], " ".join(filter(None, (row["name"], row["input_shapes"])))]
        found[" > ".join(path)] += round(row[column] or 0)
    return found


def test_a_run_is_as_wide_as_its_tree():
    shown = builders.shown_with_tree()
    found = file_of(shown)
    assert +widths(found) == +totals(shown, "device_total_ns")
    assert found["profiles"][0]["name"] == "device time"


def test_a_diff_has_both_sides_in_one_file_and_shows_the_candidate():
    diff = builders.diff_with_tree()
    found = file_of(diff)
    assert [profile["name"].split()[0] for profile in found["profiles"]] == ["baseline", "candidate"]
    assert found["activeProfileIndex"] == 1 and found["name"] == diff.headline
    for number, side in enumerate(("baseline_ns", "candidate_ns")):
        rows = records(diff.tree_table)
        assert found["profiles"][number]["endValue"] == sum(round(row[side] or 0) for row in rows if not row["level"])


def diff_of(*rows):
    """A diff whose tree has these rows: level, name, time on both sides."""
    tree = [
        {"level": level, "name": name, "input_shapes": "", "baseline_ns": float(ns), "candidate_ns": float(ns)}
        for level, name, ns in rows
    ]
    return replace(builders.diff(), tree_table=Columns.of_rows(tree, TREE_DIFF_COLUMNS))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**12)), min_size=1, max_size=30))
def test_weights_sum_to_the_rows_of_level_0_whatever_medians_say(drawn):
    rows: list[tuple[int, str, int]] = []
    for level, ns in drawn:
        rows.append((min(level, rows[-1][0] + 1) if rows else 0, "row", ns))
    whole = sum(ns for level, _, ns in rows if level == 0)
    assert [profile["endValue"] for profile in file_of(diff_of(*rows))["profiles"]] == [whole, whole]


def test_rows_below_that_have_too_much_give_way_in_proportion():
    found = widths(file_of(diff_of((0, "step", 100), (1, "a", 90), (1, "b", 30))))
    assert found == {"step": 100, "step > a": 75, "step > b": 25}


def test_without_a_tree_it_says_what_to_add():
    with pytest.raises(UsageError, match="speedscope shows a tree, and there is none; add one: --by op"):
        render(builders.shown(), "speedscope")
    empty: Diff = builders.diff_with_tree(tree=builders.diff_with_tree().tree.head(0))
    with pytest.raises(UsageError, match="the sources state no modules; choose --by op"):
        render(empty, "speedscope")
