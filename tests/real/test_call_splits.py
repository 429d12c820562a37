"""Waiting told by all ranks of real runs, against an independent computation and against msprof-analyze."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from tests.readers.traces import op, write
from tests.real import data
from tracker import readers, timeline
from tracker.intake import IngestOptions, ingest
from tracker.profile import MISSING
from tracker.readers import Found, ReadOptions
from tracker.store import open_store
from tracker.store.calls.pairing import RankCalls, pair

pytestmark = pytest.mark.slow

FOUR_RANKS = "ascend/transformer_4ranks_pp2_dp2"
SUMS = (
    "SELECT d.rank, k.text AS kind, g.role, SUM(d.ranks_wait_ns) AS wait_ns, SUM(d.ranks_transit_ns) AS transit_ns "
    "FROM communication AS d INNER JOIN process_group AS g ON d.process_group_id = g.id "
    "INNER JOIN detail_text AS k ON d.kind_id = k.id GROUP BY d.rank, k.text, g.role ORDER BY d.rank"
)
PER_RANK = (
    "SELECT rank, SUM(ranks_wait_ns), SUM(calls), SUM(paired_calls) FROM communication GROUP BY rank ORDER BY rank"
)


def asked(store, question):
    with store.connect() as connection:
        return [tuple(row) for row in connection.execute(text(question))]


@pytest.fixture(scope="module")
def four_ranks():
    with open_store("sqlite://") as store:
        ingest(store, [data.path(FOUR_RANKS)], version="v1", workload="transformer")
        yield store


def ms(ns):
    return round(ns / 1e6, 3)


def test_each_rank_waits_as_long_as_all_ranks_together_tell(four_ranks):
    """HCCL's own split says 164.1 and 12.3 ms of ranks 0 and 2: it gives half of the calls no transit at all."""
    waits = [ms(wait) for _, wait, _, _ in asked(four_ranks, PER_RANK)]
    assert waits == [318.340, 339.939, 175.782, 159.695]


REFERENCE = {
    ("send_recv", "pp"): ([312.203, 321.310, 70.989, 73.316], [1.675, 1.671, 1.675, 1.671]),
    ("all_reduce", "embd"): ([0.0, 0.0, 86.365, 86.379], [34.624, 34.563, 34.624, 34.563]),
    ("reduce_scatter", "dp_cp"): ([0.0, 9.443, 4.819, 0.0], [44.898, 44.898, 44.886, 44.886]),
    ("all_gather", "dp_cp"): ([0.0, 1.925, 1.746, 0.0], [20.514, 20.514, 20.512, 20.512]),
    ("all_reduce", "dp"): ([9.682, 0.0], [0.033, 0.033]),
    ("all_reduce", "default"): ([1.640, 2.300, 1.825, 0.0], [0.051, 0.051, 0.051, 0.051]),
}
"""Kind and role -> wait and transit of each rank, in ms: an independent program over communication.json."""


@pytest.mark.parametrize("group", REFERENCE)
def test_each_group_waits_and_transmits_as_an_independent_program_says(four_ranks, group):
    found = [(ms(wait), ms(transit)) for _, *own, wait, transit in asked(four_ranks, SUMS) if tuple(own) == group]
    assert [wait for wait, _ in found] == REFERENCE[group][0]
    assert [transit for _, transit in found] == REFERENCE[group][1]


def test_groups_of_one_rank_have_no_partners(four_ranks):
    """The all_reduce of tp x1 runs on ranks 2 and 3."""
    assert [(rank, wait) for rank, _, role, wait, _ in asked(four_ranks, SUMS) if role == "tp"] == [
        (2, None),
        (3, None),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_ranks_in_any_order_come_to_the_same(four_ranks, order):
    with open_store("sqlite://") as store:
        for rank in order:
            ingest(store, [data.path(f"{FOUR_RANKS}/rank_{rank}_ascend_pt")], version="v1", workload="transformer")
        assert asked(store, "SELECT COUNT(*) FROM run") == [(1,)]
        assert asked(store, SUMS) == asked(four_ranks, SUMS)


def calls_of(capture, rank):
    """All calls of a capture as those of a member of a group of its own ranks."""
    rows = timeline.build(capture).rows
    calls, table = rows.collective_calls, rows.tables["communication"]
    kinds = [(table["kind"][row], table["data_type"][row]) for row in calls["communication"].tolist()]
    sizes = [
        MISSING if kind == "all_to_all" else size
        for (kind, _), size in zip(kinds, calls["bytes"].tolist(), strict=True)
    ]
    key = [hash((*kind, size)) for kind, size in zip(kinds, sizes, strict=True)]
    start = calls["start_ns"] + capture.started_at_ns
    return RankCalls(rank, "", np.array(key), start, start + calls["elapse_ns"], calls["source_index"])


def read(name, format):
    return readers.read(Found(data.path(name), format), ReadOptions()).captures[0]


def test_arithmetic_of_two_ranks_is_that_of_msprof_analyze():
    """cluster_time_summary takes the two captured ranks for the group; of the eight that there are, that is wrong."""
    folder = "ascend/run_2024-10/db/level1/rank{}_ascend_pt"
    members = [calls_of(read(folder.format(rank), "ascend_db"), rank) for rank in (0, 1)]
    places = pair(members).places
    elapse = np.stack([(one.end_ns - one.start_ns)[own] for one, own in zip(members, places, strict=True)])
    transit = elapse.min(axis=0)
    assert ((elapse - transit).sum(axis=1) / 1e3).tolist() == [10_745.556, 883.099]
    assert transit.sum() / 1e3 == 21_782.769


def test_of_ten_calls_five_are_pairs():
    """The other five are different instances: all_reduce of 26,258,430 elements ends 612 ms apart."""
    names = ["pytorch/two_ranks_nccl/rank-0.pt.trace.json.gz", "pytorch/two_ranks_nccl/rank-1.pt.trace.json.gz"]
    members = [calls_of(read(name, "torch_profiler"), rank) for rank, name in enumerate(names)]
    places = pair(members).places
    assert [len(member.key) for member in members] == [10, 10]
    assert places.shape == (2, 5)
    ends = np.stack([member.end_ns[own] for member, own in zip(members, places, strict=True)])
    assert np.abs(np.diff(ends, axis=0)).max() < 330_000 * 1.01


@pytest.mark.parametrize(("level", "members"), [(1, 8), (0, None)])
def test_two_ranks_of_eight_are_not_split(level, members):
    """At level 1 links go to the ranks 0 to 7; at level 0 nothing says how many there are."""
    with open_store("sqlite://") as store:
        ingest(store, [data.path(f"ascend/run_2025-01/db/level{level}")], version="v1", workload="cnn")
        assert [row[1] for row in asked(store, PER_RANK)] == [None, None]
        assert asked(store, "SELECT members, captured FROM run_group") == [(members, 2 if members else None)]


def gloo(folder: Path, rank: int, group: list[int], calls: list[tuple[int, int]]) -> Path:
    """A trace of one of four ranks whose gloo calls name no group: it is in the group of all and in a small one."""
    everyone = {
        "pg_name": "0",
        "pg_desc": "default_pg",
        "backend_config": "cpu:gloo",
        "pg_size": 4,
        "ranks": [0, 1, 2, 3],
    }
    small = {"pg_name": "1", "pg_desc": "undefined", "backend_config": "cpu:gloo", "pg_size": 2, "ranks": group}
    events = [op("aten::mm", 0, 5)] + [
        {**op("gloo:all_reduce", start, end - start, cat="user_annotation", tid=101),
         "args": {"Input Dims": [[2, 2]], "Input type": ["float"]}} for start, end in calls
    ]  # fmt: skip
    told = {"backend": "gloo", "rank": rank, "world_size": 4, "pg_config": [everyone, small]}
    base = {"distributedInfo": told, "baseTimeNanoseconds": 1_700_000_000_000_000_000, "deviceProperties": []}
    return write(folder, events, name=f"rank{rank}.pt.trace.json", **base)


def test_two_small_groups_that_no_call_names_are_not_taken_for_one(tmp_path):
    """{0,1}: 20 and 10 us; {2,3}: 10 and 15 us. Taken for one call of four, rank 3 would wait for rank 1."""
    calls = {0: [(100, 120)], 1: [(110, 120)], 2: [(105, 115)], 3: [(100, 115)]}
    for rank, own in calls.items():
        gloo(tmp_path, rank, [0, 1] if rank < 2 else [2, 3], own)
    with open_store("sqlite://") as store:
        ingest(store, [tmp_path], version="v1", workload="toy", options=IngestOptions())
        assert asked(store, "SELECT COUNT(*) FROM run") == [(1,)]
        assert asked(store, PER_RANK) == [(rank, None, 1, None) for rank in range(4)]
        assert asked(store, "SELECT COUNT(*) FROM communication WHERE wait_ns IS NOT NULL") == [(0,)]


def test_data_loading_counts_only_where_it_keeps_the_device_waiting():
    """v100_resnet50_2021: 352.401 and 209.870 ms of idle time in six steps: all causes "data loading"."""
    folder = data.path("pytorch/v100_resnet50_2021/resnet50_num_workers_0")
    for name, idle in (("worker0.1623143089861", 352_401_000), ("worker0.1623143566756", 209_870_000)):
        found = readers.read(Found(folder / f"{name}.pt.trace.json.gz", "torch_profiler"), ReadOptions()).captures[0]
        rows = timeline.build(found).rows
        assert rows.overall.data_loading_idle_ns == idle
        assert sum(step.breakdown.data_loading_idle_ns for step in rows.steps) == idle
