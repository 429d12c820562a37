"""Against msprof-analyze itself: every number of its breakdown is ours, or differs by a rule that gives its number.

Runs where TRACKER_PEER names a Python that has msprof-analyze (see scripts/compare_with_msprof_analyze.py).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tracker
from tests.real import data

PAIRS = [
    ("run_2024-10/text/level1", "run_2025-01/text/level1"),
    ("run_2024-10/db/level1", "run_2025-01/db/level1"),
    ("run_2025-01/text/level1", "run_2025-01/db/level1"),
    ("run_2024-10/text/level0", "run_2024-10/db/level0"),
]


@pytest.mark.parametrize("pair", PAIRS, ids=[" against ".join(pair) for pair in PAIRS])
def test_every_difference_to_msprof_analyze_has_a_reason(pair, monkeypatch, capsys):
    if not os.environ.get("TRACKER_PEER"):
        pytest.skip("set TRACKER_PEER to a Python that has msprof-analyze")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    script = import_module("compare_with_msprof_analyze")
    paths = [str(data.path(f"ascend/{side}") / "rank0_ascend_pt") for side in pair]
    assert script.main(["--pair", *paths, "--peer-python", os.environ["TRACKER_PEER"]]) == 0
    assert "0 UNEXPLAINED" in capsys.readouterr().out
    assert sys.modules["compare_with_msprof_analyze"] is script


def test_kernels_stand_below_the_operators_that_msprof_analyze_lists_them_at(monkeypatch):
    """That tool compares the outermost operators, each with all kernels below it."""
    if not os.environ.get("TRACKER_PEER"):
        pytest.skip("set TRACKER_PEER to a Python that has msprof-analyze")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    peer = import_module("msprof_analyze_peer")
    paths = [data.path(f"ascend/{side}") / "rank0_ascend_pt" for side in PAIRS[0]]
    listed = peer.list_kernels(Path(os.environ["TRACKER_PEER"]), *paths)
    ours = tracker.diff(*paths, max_kernels=1_000_000, single_kernels=True).op_kernels
    for side, kernels in zip(("baseline", "candidate"), listed, strict=True):
        own = ours[ours[f"{side}_task_id"].notna()]
        found = set(zip(own["name"], own[f"{side}_kernel_name"], own[f"{side}_task_id"].astype(int), strict=True))
        assert len(kernels) > 200
        # copies have tasks, too, which that tool lists in part
        assert kernels <= found
