"""The trees of --by over the shared captures: what is below a row adds up to it, and the top rows to the whole."""

from __future__ import annotations

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


def whole(tree: pd.DataFrame, column: str) -> int | None:
    """The sum of the top rows; None where nothing is known."""
    known = tree.loc[tree["parent"] < 0, column].dropna()
    return int(known.sum()) if len(known) else None


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_tree_adds_up_to_the_whole(folder: str):
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
                    assert whole(trees["module"], total) == whole(trees["phase"], total) == int(ops[own].sum())
            if "kernel" in trees:
                frames = (shown["kernel"].kernels, shown["kernel"].copies)
                assert whole(trees["kernel"], "device_total_ns") == sum(int(one["total_ns"].sum()) for one in frames)
            seen += bool(trees)
    assert seen
