"""The trees of --by over the shared captures: what is below a row adds up to it, and the top rows to the whole."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from tests.conftest import slow
from tests.real import data
from tracker.compare import show
from tracker.intake import ingest
from tracker.results import ShowOptions
from tracker.store import open_store

pytestmark = pytest.mark.slow

BY = ("module", "phase", "op", "kernel")
TIMES = ("host_total_ns", "device_total_ns")
SELF = ("host_self_ns", "device_self_ns")
FOLDERS = [
    "nsys/a100_transformer", "paddle/summary_text", "paddle/cpu_captures/baseline_run1", "cann",
    "ascend/run_2025-01/db/level1", "ascend/transformer_4ranks_pp2_dp2", "pytorch/two_ranks_nccl",
    *map(slow, ("nsys", "paddle", "ascend", "pytorch")),
]  # fmt: skip


def below(tree: pd.DataFrame, column: str, kinds: tuple[str, ...] = ()) -> pd.Series:
    """Node -> sum of the rows directly below it; nothing where none of them is known."""
    rows = tree[tree["parent"] >= 0]
    rows = rows[rows["kind"].isin(kinds)] if kinds else rows
    return rows.groupby("parent")[column].sum(min_count=1).dropna()


def same(one: pd.Series, other: pd.Series) -> None:
    """Equal wherever both are known."""
    both = pd.DataFrame({"one": one, "other": other}).astype("Float64").dropna()
    assert both["one"].tolist() == both["other"].tolist()


def check(tree: pd.DataFrame, by: str) -> None:
    """What holds in any tree: a row is the sum of what is below it, an op itself and the ops that it calls."""
    at = tree.set_index("node")
    for total, own in zip(TIMES, SELF, strict=True):
        sums = below(tree, total)
        itself = at[own].reindex(sums.index) if by == "op" else 0
        same(sums + itself, at[total].reindex(sums.index))
        if by == "module":  # the self time of a module is that of the ops right below it
            ops = below(tree, total, ("op",))
            same(ops, at[own].reindex(ops.index))
    shares = tree.loc[tree["parent"] < 0, "share"].dropna()
    assert not len(shares) or shares.sum() == pytest.approx(1.0)
    for _, rows in tree.groupby("parent"):
        known = rows["share"].dropna().tolist()
        assert known == sorted(known, reverse=True)


def whole(tree: pd.DataFrame, column: str, kind: str = "") -> int | None:
    """The sum of the top rows, or of those of one kind; None where nothing is known."""
    top = tree[(tree["parent"] < 0) & (tree["kind"] == kind if kind else True)]
    known = top[column].dropna()
    return int(known.sum()) if len(known) else None


def in_steps(tree: pd.DataFrame, column: str) -> int | None:
    """The sum of the top rows without what lies outside all steps, which no table of a step has."""
    return whole(tree[tree["kind"] != "outside"], column)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_tree_adds_up_to_the_whole(folder: str):
    """Tables are of the steps; a tree has what lies outside of all as a row of its own, equal in each tree."""
    seen = 0
    with open_store("sqlite://") as store:
        done = ingest(store, [data.path(folder)], version="v1", workload="w")
        for result in done:
            shown = {by: show(store, f"run:{result.run_id}", options=ShowOptions(by=(by,))) for by in BY}
            trees = {by: found.tree for by, found in shown.items() if found.tree is not None and len(found.tree)}
            for by, tree in trees.items():
                check(tree, by)
            ops = shown["op"].ops
            for total, own in zip(TIMES, SELF, strict=True):
                if ops[own].notna().all() and {"module", "phase"} <= set(trees):
                    both = (trees["module"], trees["phase"])
                    assert [in_steps(tree, total) for tree in both] == [int(ops[own].sum())] * 2
                    assert whole(both[0], total, "outside") == whole(both[1], total, "outside")
            if "kernel" in trees:
                frames = (shown["kernel"].kernels, shown["kernel"].copies)
                inside_ns = sum(int(one["total_ns"].sum()) for one in frames)
                assert in_steps(trees["kernel"], "device_total_ns") == inside_ns
            seen += bool(trees)
    assert seen


def test_tree_has_the_kernels_of_steps_and_the_copies_before_them():
    """By the tables of the export: 57.69 ms of kernels and memsets, all in its 4 iterations, and 79.58 ms of copies
    before them, which load the parameters. Modules and operators are the same 57.69 ms.
    """
    path = data.path("nsys/a100_transformer/result.39d90997.sqlite")
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        sums = "SELECT SUM(end - start) FROM CUPTI_ACTIVITY_KIND_{}"
        of_kind = {kind: connection.execute(sums.format(kind)).fetchone()[0] for kind in ("KERNEL", "MEMSET", "MEMCPY")}
    assert of_kind == {"KERNEL": 57_630_704, "MEMSET": 63_488, "MEMCPY": 79_577_977}
    for by in BY:
        tree = show(None, str(path), options=ShowOptions(by=(by,))).tree
        assert in_steps(tree, "device_total_ns") == of_kind["KERNEL"] + of_kind["MEMSET"], by
        assert whole(tree, "device_total_ns", "outside") == of_kind["MEMCPY"], by
