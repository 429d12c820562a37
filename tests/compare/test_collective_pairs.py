"""Which collectives of two sides are the same; numbers are ns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.factories import H100, capture, record, save
from tracker.compare import diff
from tracker.compare.collectives import pair_collectives
from tracker.profile import Device
from tracker.results import DiffOptions
from tracker.store import Store, save_run

MIB = 1 << 20
ASCEND = Device("Huawei", "Ascend910B")
Row = tuple[str, int, dict[str, Any]]


def reduce(ns: int, mib: int | None = None, *, kind: str = "all_reduce", **more: Any) -> Row:
    """A collective; without a size its data type is not known either."""
    known = {"size_class_bytes": -1} if mib is None else {"size_class_bytes": mib * MIB, "data_type": "float32"}
    return kind, ns, {"group_role": "dp", "group_size": 8, **known, **more}


def rows(store: Store, before: list[Row], after: list[Row], **options: Any) -> list[tuple[Any, ...]]:
    for version, exchange in (("v1", before), ("v2", after)):
        save(store, version, communication=exchange)
    found = diff(store, "v1", "v2", options=DiffOptions(**options)).communication
    names = ["kind", "group_role", "size_class_bytes", "status", "baseline_ns", "candidate_ns"]
    return sorted(
        found[names].astype(object).where(found[names].notna(), None).itertuples(index=False, name=None), key=str
    )


def test_a_side_without_sizes_pairs_by_kind_and_group(memory_store: Store):
    sized = [reduce(40, 1), reduce(60, 4), reduce(7, kind="broadcast")]
    found = rows(memory_store, sized, [reduce(130), reduce(8, kind="broadcast")])
    assert found == [("all_reduce", "dp", None, "both", 100, 130), ("broadcast", "dp", None, "both", 7, 8)]
    result = diff(memory_store, "v1", "v2")
    assert result.communication["delta_ns"].sum() == 138 - 107
    row = result.communication.set_index("kind").loc["all_reduce"]
    assert (row["baseline_min_ns"], row["baseline_max_ns"], row["baseline_average_ns"]) == (40, 60, 50)
    assert "Collectives paired without their size and type, which the sides do not share: all_reduce." in result.notes


def test_sizes_that_both_sides_know_stay_apart(memory_store: Store):
    found = rows(memory_store, [reduce(40, 1), reduce(60, 4)], [reduce(45, 1), reduce(50, 4)])
    assert found == [("all_reduce", "dp", MIB, "both", 40, 45), ("all_reduce", "dp", 4 * MIB, "both", 60, 50)]


def test_as_many_calls_of_another_size_are_the_same_calls(memory_store: Store):
    found = rows(memory_store, [reduce(40, 1), reduce(60, 4)], [reduce(40, 1), reduce(30, 2)])
    assert found == [("all_reduce", "dp", MIB, "both", 40, 40), ("all_reduce", "dp", None, "both", 60, 30)]


def test_other_buckets_are_added_and_removed_unless_by_name(memory_store: Store):
    before, after = [reduce(40, 1), reduce(60, 4)], [reduce(90, 8)]
    assert {row[3] for row in rows(memory_store, before, after)} == {"ADDED", "REMOVED"}
    found = diff(memory_store, "v1", "v2", options=DiffOptions(match="name")).communication
    assert found[["status", "baseline_ns", "candidate_ns"]].to_numpy().tolist() == [["both", 100, 90]]


def test_a_side_without_groups_pairs_by_kind_alone(memory_store: Store):
    before = [reduce(40, 1, group_role="dp"), reduce(20, 1, group_role="tp", group_size=2)]
    found = rows(memory_store, before, [reduce(70, 1, group_role="", group_size=-1)])
    assert found == [("all_reduce", "", MIB, "both", 60, 70)]


def test_groups_that_both_sides_know_stay_apart(memory_store: Store):
    found = rows(memory_store, [reduce(40, 1, group_role="dp")], [reduce(70, 1, group_role="tp")])
    assert {row[3] for row in found} == {"ADDED", "REMOVED"}


def test_a_gpu_and_an_npu_pair_by_kind(store: Store):
    sides = (
        ("v1", H100, [reduce(40, 1), reduce(60, 4)]),
        ("v2", ASCEND, [reduce(70, 4, tasks=[("Memcpy", 30)]), reduce(30, 16), reduce(20, 64)]),
    )
    for version, device, exchange in sides:
        made = capture(0, path=version, digest=version.encode().ljust(16), device=device, communication=exchange)
        save_run(store, replace(record(version), device=device), [made], formats=["torch_profiler"])
    result = diff(store, "v1", "v2")
    (row,) = result.communication.to_dict("records")
    assert (row["kind"], row["status"], row["baseline_calls"], row["candidate_calls"]) == ("all_reduce", "both", 2, 3)
    assert (row["baseline_ns"], row["baseline_min_ns"], row["baseline_max_ns"]) == (100, 40, 60)
    assert (row["candidate_ns"], row["candidate_average_ns"], row["candidate_max_ns"]) == (120, 40, 70)
    assert result.communication_details["size_class_bytes"].isna().all()


KEYS = st.tuples(
    st.sampled_from(["all_reduce", "send"]), st.sampled_from(["", "dp", "tp"]), st.sampled_from([-1, 2, 4]),
    st.sampled_from(["", "float32", "bfloat16"]), st.sampled_from([-1, 1, 2, 4]),
)  # fmt: skip
SIDES = st.dictionaries(KEYS, st.integers(1, 3).map(float), max_size=6)


@given(SIDES, SIDES, st.booleans(), st.booleans())
def test_pairing_mirrors_and_keeps_each_kind(before, after, by_name, other_vendor):
    found = pair_collectives(before, after, by_name=by_name, other_vendor=other_vendor)
    mirrored = pair_collectives(after, before, by_name=by_name, other_vendor=other_vendor)
    assert found.names == tuple(reversed(mirrored.names))
    for own, names in zip((before, after), found.names, strict=True):
        assert set(names) <= set(own)
        for key, coarse in names.items():
            assert coarse[0] == key[0]
            assert all(
                new in (old, unknown) for new, old, unknown in zip(coarse, key, ("", "", -1, "", -1), strict=True)
            )


@given(SIDES)
def test_a_side_against_itself_keeps_its_keys(own):
    assert pair_collectives(own, own).names == ({}, {})


@pytest.mark.parametrize("other_vendor", [True, False])
def test_a_kind_of_one_side_stays_as_it_is(other_vendor):
    pairing = pair_collectives(
        {("all_reduce", "dp", 8, "float32", 4): 1.0}, {("send", "pp", 2, "", -1): 1.0}, other_vendor=other_vendor
    )
    assert pairing.names == ({}, {})
