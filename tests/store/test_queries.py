"""What is said about runs: rows in, the expected table beside them, on both databases."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.factories import EPOCH_NS, capture, record, same_table, save, text_of
from tracker.profile import CPU, Device
from tracker.store import queries, save_run
from tracker.store import runs as edits
from tracker.store.versions import pin_version


def test_captures_say_where_the_time_of_each_rank_went(store):
    save(store, ranks=2, steps=2, e2e_ns=300, communication=[("all_reduce", 50)], settings={"record_shapes": "1"})
    found = queries.captures(store, [1]).frame
    same_table(
        found,
        """
        run_id  rank  stage  host   quality  steps  timeline  duration_ns  e2e_ns  compute_ns  communication_ns  idle_ns
        1       0     -      node0  ok       2      device    2000         600     200         100               300
        1       1     -      node0  ok       2      device    2000         600     200         100               300
        """,
    )
    assert queries.settings_of(found["settings"][0]) == {"record_shapes": "1"}


def test_steps_have_a_breakdown_each(store):
    save(store, steps=[-1, 7, 8], e2e_ns=300)
    same_table(
        queries.steps(store, [1]).frame,
        "run_id rank step start_ns duration_ns e2e_ns compute_ns\n 1 0 7 0 1000 300 100\n 1 0 8 1000 1000 300 100",
    )


def test_facts_tags_and_configuration_differ_in_kinds(store):
    of_run = {"facts": {"torch": "2.9"}, "tags": {"image": "a"}, "configuration": {"batch": "32", "amp": "bf16"}}
    save(store, of_run=of_run)
    same_table(
        queries.facts(store, [1]).frame,
        """
        run_id  kind           key    value
        1       configuration  amp    bf16
        1       configuration  batch  32
        1       fact           torch  2.9
        1       tag            image  a
        """,
    )


def test_sources_name_the_files_of_each_rank(store):
    captures = [capture(r, world_size=2, digest=bytes([r]) * 16, path=f"/data/{r}.json") for r in range(2)]
    save_run(store, record(), captures, formats=["torch_profiler", "nsys_stats"])
    same_table(
        queries.sources(store, [1]).frame,
        """
        run_id  rank  format          path          bytes  digest
        1       0     torch_profiler  /data/0.json  1000   00000000000000000000000000000000
        1       1     nsys_stats      /data/1.json  1000   01010101010101010101010101010101
        """,
    )


def test_runs_are_listed_newest_first_with_what_matters(store):
    of_run = {"configuration": {"batch": "32"}, "tags": {"image": "a", "night": ""}, "commit": "abc", "note": "warm"}
    save(store, ranks=2, steps=3, e2e_ns=100, of_run={**of_run, "ranks_expected": 4})
    save(store, "v2", device=CPU)
    frame = queries.runs(store).frame
    same_table(
        frame,
        f"""
        run_id  workload  version  device  vendor  configuration  state   started_at_ns
        2       gpt       v2       cpu     ''      ''             active  {EPOCH_NS}
        1       gpt       v1       H100    NVIDIA  batch=32       active  {EPOCH_NS}
        """,
    )
    same_table(
        frame,
        """
        run_id  ranks  ranks_expected  world_size  steps  format          e2e_ns  step_ns  tags            commit  note
        2       1      1               -           1      torch_profiler  100     1000     ''              -       -
        1       2      4               2           3      torch_profiler  300     1000     image=a,_night  abc     warm
        """,
    )
    assert frame["paths"].tolist() == ["rank0.pt.trace.json", "rank0.pt.trace.json, rank1.pt.trace.json"]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, [4, 3, 2]),
        ({"version": "v1"}, [2]),
        ({"workload": "bert"}, [4]),
        ({"device": "h100"}, [3, 2]),
        ({"device": "nvidia h"}, [3, 2]),
        ({"device": "%"}, []),
        ({"tag": "image"}, [3, 2]),
        ({"tag": "image=b"}, [3]),
        ({"tag": "image=c"}, []),
        ({"limit": 2}, [4, 3]),
        ({"limit": 0}, []),
        ({"state": "excluded"}, [1]),
        ({"state": "all"}, [4, 3, 2, 1]),
    ],
)
def test_runs_can_be_found(store, chosen, expected):
    save(store)
    save(store, of_run={"tags": {"image": "a"}})
    save(store, "v2", of_run={"tags": {"image": "b"}})
    save(store, "v3", "bert", device=Device("AMD", "MI300X"))
    edits.exclude_all(store, [1], "noisy node")
    assert queries.runs(store, **chosen).frame["run_id"].tolist() == expected


def test_runs_by_id_finds_runs_in_any_state(store):
    save(store, runs=3)
    edits.delete_all(store, [2], "wrong machine")
    found = queries.runs_by_id(store, [1, 2]).frame
    same_table(found, "run_id state state_reason\n 2 deleted wrong_machine\n 1 active ''")


def test_versions_keep_the_order_of_their_first_ingest(store):
    for version in ("v10", "v9", "v9"):
        save(store, version, of_run={"commit": f"c-{version}"})
    save(store, "v1", "bert")
    pin_version(store, "v10")
    edits.exclude_all(store, [3], "noisy")
    same_table(
        queries.versions(store).frame,
        f"""
        workload  version  ordinal  commit  pinned  note  runs  first_started_at_ns
        bert      v1       1        -       False   -     1     {EPOCH_NS}
        gpt       v10      1        c-v10   True    -     1     {EPOCH_NS}
        gpt       v9       2        c-v9    False   -     1     {EPOCH_NS}
        """,
    )
    assert queries.versions(store, "bert").frame["version"].tolist() == ["v1"]


def test_text_sorts_by_code_point_on_both_databases(store):
    names = ["b", "B", "a", "_", "Ä", "é", "aten::mm", "aten_mm", "(no op)", "漢"]
    save(store, ops=[(name, 1) for name in names])
    assert queries.ops(store, [1]).frame["name"].tolist() == sorted(names)


def test_numbers_of_numpy_name_runs_too(store):
    save(store)
    ids = queries.runs(store).frame["run_id"].to_numpy()
    assert len(queries.sources(store, ids).frame) == len(queries.ops(store, ids).frame) == 1


def test_text_of_shows_missing_as_a_dash():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": pd.array(["", "x"], dtype="string")})
    assert text_of(frame) == "a  b\n1  ''\n-  x"
