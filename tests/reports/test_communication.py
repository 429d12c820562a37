"""Collectives for people: how long they took, and which parts of that are known."""

from tests.reports import builders
from tests.reports.builders import ALL_REDUCE, BROADCAST, MS
from tracker.reports import render

TIMES = {"calls": 10, "bytes": None, "min_ns": MS, "max_ns": MS, "exposed_ns": 8 * MS}
UNKNOWN = {"transit_ns": None, "wait_ns": None, "synchronization_ns": None, "idle_ns": None, "split_by": None}
PARTED = {
    "transit_ns": 2 * MS, "wait_ns": 3 * MS, "synchronization_ns": 1 * MS, "idle_ns": 5 * MS, "split_by": "profiler"
}  # fmt: skip
"""2 ms moving data + 3 ms waiting (1 of them before the first transfer) + 5 ms standing still = 10 ms."""


def run_with(*rows):
    return builders.shown(communication=builders.nullable(rows))


def cells(text, start):
    line = next(line for line in text.splitlines() if line.strip().startswith(start))
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_parts_of_a_collective_stand_beside_its_total():
    shown = run_with({**ALL_REDUCE, "total_ns": 10 * MS, **TIMES, **PARTED})
    text = render(shown, "text", only=["communication"], width=200)
    row = dict(zip(cells(text, "communication  "), cells(text, "all_reduce"), strict=True))
    assert [row[name] for name in ("total", "transit", "wait", "sync", "idle")] == [
        "10.00 ms", "2.00 ms", "3.00 ms", "1.00 ms", "5.00 ms"
    ]  # fmt: skip
    page = render(shown, "markdown", only=["communication"])
    assert "| transit | wait | sync | idle | split by |" in page
    assert "| 2.00 ms | 3.00 ms | 1.00 ms | 5.00 ms | profiler |" in page


def test_a_part_that_is_known_of_one_collective_only_is_a_dash_for_the_other():
    known = {**ALL_REDUCE, "total_ns": 10 * MS, **TIMES, **PARTED}
    shown = run_with(known, {**BROADCAST, "total_ns": 9 * MS, **TIMES, **UNKNOWN})
    text = render(shown, "text", only=["communication"], width=200)
    names = cells(text, "communication  ")
    row = dict(zip(names, cells(text, "broadcast"), strict=True))
    assert [row[name] for name in ("transit", "wait", "sync", "idle")] == ["-", "-", "-", "-"]


def test_unknown_parts_have_no_columns():
    text = render(builders.shown(), "text", only=["communication"], width=200)
    assert cells(text, "communication  ") == [
        "communication", "group", "calls", "bytes", "per step", "total", "exposed", "average", "minimum", "maximum"
    ]  # fmt: skip


def test_on_a_narrow_terminal_waiting_and_standing_still_stay():
    shown = run_with({**ALL_REDUCE, "total_ns": 10 * MS, **TIMES, **PARTED})
    assert cells(render(shown, "text", only=["communication"], width=80), "communication  ")[-2:] == [
        "wait",
        "idle",
    ]


def test_a_diff_has_the_parts_of_both_sides_in_a_table_of_their_own():
    row = builders.communication()[0] | {f"baseline_{name}": value for name, value in PARTED.items()}
    row |= {f"candidate_{name}": value for name, value in PARTED.items()} | {"candidate_idle_ns": 7 * MS}
    diff = builders.diff(communication=builders.frame("communication", [row]))
    text = render(diff, "text", only=["communication"], width=120)
    parts = text[text.index("Communication: the parts of its time") :]
    assert cells(parts, "communication  ")[-5:] == ["transit", "wait", "sync", "idle", "split by"]
    assert cells(parts, "all_reduce")[-5:] == ["2.00 ms", "3.00 ms", "1.00 ms", "5.00 ms -> 7.00 ms", "profiler"]


def test_a_split_computed_from_all_ranks_says_so():
    """Two of three ranks waited for the last one: transit is the shortest call, wait the rest."""
    row = {**ALL_REDUCE, "total_ns": 10 * MS, **TIMES, **UNKNOWN, "transit_ns": 4 * MS, "wait_ns": 6 * MS}
    text = render(run_with({**row, "split_by": "ranks"}), "text", only=["communication"], width=200)
    assert dict(zip(cells(text, "communication  "), cells(text, "all_reduce"), strict=True))["split by"] == "ranks"


def test_a_diff_without_parts_has_no_table_of_them():
    rows = [{**row, "baseline_wait_ns": None} for row in builders.communication()]
    diff = builders.diff(communication=builders.frame("communication", rows))
    assert "parts of its time" not in render(diff, "text", only=["communication"])
