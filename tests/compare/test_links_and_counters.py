"""What collectives moved over which link, and what profilers count in tables of their own."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.factories import EPOCH_NS, capture, record, same_table, save
from tracker.compare import diff, show
from tracker.profile import MISSING
from tracker.results import DiffOptions, ShowOptions
from tracker.store import Store, save_run

PAIR = {"source": 0, "target": 1}


def link(transport: str, size: int, transit: int, **more: object):
    return transport, size, {"transit_ns": transit, **more}


def all_reduce(*links, **more):
    return "all_reduce", 1000, {"links": links, **more}


def test_links_have_a_bandwidth_and_a_share_of_large_packets(store: Store):
    links = [
        link("HCCS", 8000, 500, packets=4, large_packet_ratio=0.5),
        link("HCCS", 8000, 500, **PAIR),
        link("HCCS", 8000, 500, packet_bytes=2000, packets=4),
    ]
    save(store, communication=[all_reduce(*links)])
    same_table(
        show(store, "v1").communication_links,
        """
        transport  source_rank  target_rank  packet_bytes  bytes  transit_ns  bandwidth_gb_per_s  large_packet_ratio
        HCCS       -            -            -             8000   500         16                  0.5
        HCCS       0            1            -             8000   500         16                  -
        HCCS       -            -            2000          8000   500         16                  -
        """,
    )


def test_each_level_of_links_states_the_same_bytes_and_stands_together(store: Store):
    exchange = [
        link("HCCS", 5000, 400, source=0, target=1),
        link("HCCS", 3000, 200, source=0, target=2),
        link("HCCS", 8000, 600, packet_bytes=2000, packets=4),
        link("HCCS", 8000, 600, packets=4),
    ]
    save(store, communication=[all_reduce(*exchange)])
    for frame, size in (
        (show(store, "v1").communication_links, "bytes"),
        (diff(store, "v1", "v1").communication_links, "baseline_bytes"),
    ):
        levels = list(dict.fromkeys(frame["level"]))
        assert levels == ["transport", "link", "packet"][: len(levels)]
        assert frame["level"].tolist() == sorted(frame["level"], key=levels.index)
        assert set(frame.groupby("level")[size].sum()) == {8000}


def test_sdma_stands_for_links_that_are_not_told_apart_and_is_left_out_beside_them(store: Store):
    together = link("SDMA", 8000, 500, large_packet_ratio=0.0)
    save(store, "v1", communication=[all_reduce(together, link("HCCS", 8000, 500, **PAIR))])
    save(store, "v2", communication=[all_reduce(together)])
    assert set(show(store, "v1").communication_links["transport"]) == {"HCCS"}
    # it counts no packets, so its 0.0 says nothing
    same_table(
        show(store, "v2").communication_links,
        "transport bytes bandwidth_gb_per_s large_packet_ratio\n SDMA 8000 16 -",
    )
    rows = diff(store, "v1", "v2").communication_links
    assert set(zip(rows["transport"], rows["status"], strict=True)) == {("HCCS", "REMOVED"), ("SDMA", "ADDED")}


def test_small_links_count_in_the_sum_of_their_transport_whatever_is_shown(store: Store):
    for version, transit in (("v1", 6), ("v2", 11)):
        links = [link("HCCS", 100, transit, source=0, target=target) for target in (1, 2)]
        save(store, version, communication=[all_reduce(*links)])
    shown = show(store, "v1", options=ShowOptions(minimum_ns=10)).communication_links
    assert shown["transit_ns"].tolist() == [12]
    found = diff(store, "v1", "v2", options=DiffOptions(minimum_ns=10)).communication_links
    assert found[["baseline_transit_ns", "candidate_transit_ns"]].to_numpy().tolist() == [[12, 22], [6, 11], [6, 11]]


def test_the_number_of_a_link_is_of_the_runs_that_use_it(store: Store):
    for number, names in enumerate([("HCCS", "PCIE"), ("HCCS",), ("HCCS",)]):
        exchange = [all_reduce(*(link(name, 100, 10) for name in names))]
        save(store, "v1", started_at_ns=EPOCH_NS + number * 10**13, communication=exchange)
    rows = diff(store, "v1", "v1").communication_links.set_index("transport")
    assert rows["baseline_bytes"].to_dict() == {"HCCS": 100, "PCIE": 100}


def test_single_links_without_a_row_for_all_get_their_sum(store: Store):
    links = [link("HCCS", 100 * target, 10, source=0, target=target) for target in (1, 2)]
    save(store, communication=[all_reduce(*links)])
    frame = show(store, "v1").communication_links
    same_table(frame.head(1), "transport source_rank bytes transit_ns bandwidth_gb_per_s\n HCCS - 300 20 15")
    assert frame["target_rank"].tolist()[1:] == [2, 1]


def test_a_sum_of_which_a_part_is_not_known_is_not_known(store: Store):
    """The bytes of one size class are missing: a bandwidth of the others' bytes over all the time would be too low."""
    known, unknown = link("HCCS", 800, 100), ("HCCS", MISSING, {"transit_ns": 300})
    save(store, communication=[all_reduce(known), all_reduce(unknown, size_class_bytes=2048)])
    found = diff(store, "v1", "v1").communication_links
    same_table(found, "transport baseline_bytes baseline_transit_ns baseline_bandwidth_gb_per_s\n HCCS - 400 -")


def test_single_links_of_which_one_does_not_say_its_bytes_have_no_sum_of_them(store: Store):
    links = [link("HCCS", size, 10, source=0, target=target) for target, size in ((1, 100), (2, MISSING))]
    save(store, communication=[all_reduce(*links)])
    for frame in (show(store, "v1").communication_links, diff(store, "v1", "v1").communication_links):
        sums = frame.rename(columns=lambda name: name.removeprefix("baseline_"))
        whole = sums[sums["source_rank"].isna()]
        same_table(whole, "transport bytes transit_ns bandwidth_gb_per_s\n HCCS - 20 -")


def test_ranks_of_which_one_does_not_say_its_bytes_have_no_sum_of_them(store: Store):
    captures = [
        capture(rank, world_size=2, communication=[all_reduce(link("HCCS", size, 10))])
        for rank, size in enumerate((100, MISSING))
    ]
    save_run(store, record(), captures, formats=["ascend_text"])
    same_table(show(store, "v1").communication_links, "transport bytes transit_ns\n HCCS - 20")


def test_a_slower_link_is_found_with_its_ends(store: Store):
    def links(transit):
        return [
            link("HCCS", 8000, 500 + transit, packets=4, large_packet_ratio=1.0),
            link("HCCS", 4000, 250, source=0, target=1),
            link("HCCS", 4000, 250 + transit, source=0, target=2),
        ]

    save(store, "v1", steps=2, communication=[all_reduce(*links(0))])
    save(store, "v2", steps=4, communication=[all_reduce(*links(250))])
    same_table(
        diff(store, "v1", "v2").communication_links,
        """
        transport source_rank target_rank status baseline_bytes baseline_transit_ns candidate_transit_ns delta_ns diff
        HCCS      -           -           both   8000           500                 750                  250      0.5
        HCCS      0           2           both   4000           250                 500                  250      1
        HCCS      0           1           both   4000           250                 250                  0        0
        """,
    )
    row = diff(store, "v1", "v2").communication_links.iloc[0]
    assert (row["baseline_bandwidth_gb_per_s"], row["candidate_bandwidth_gb_per_s"]) == (16, pytest.approx(32 / 3))
    assert (row["baseline_large_packet_ratio"], row["baseline_packets"]) == (1.0, 4)


def test_a_link_counts_per_step_and_rank_that_uses_it(store: Store):
    captures = [
        capture(rank, world_size=2, steps=2, communication=[all_reduce(link("HCCS", 100, 10, source=rank, target=2))])
        for rank in (0, 1)
    ]
    save_run(store, record("v1"), captures, formats=["torch_profiler"])
    frame = diff(store, "v1", "v1").communication_links
    assert frame["baseline_bytes"].tolist() == [100, 100, 100]


def test_the_number_of_a_link_is_the_geometric_mean_of_runs(store: Store):
    for number, size in enumerate((100, 900)):
        started = EPOCH_NS + number * 10**13
        save(store, "v1", started_at_ns=started, communication=[all_reduce(link("HCCS", size, 10))])
    assert diff(store, "v1", "v1").communication_links["baseline_bytes"].tolist() == pytest.approx([300])


def test_links_are_filtered_by_kind_group_and_time(memory_store: Store):
    made = [all_reduce(link("HCCS", 100, 10), group_role="dp"), ("all_gather", 7, {"group_role": "tp"})]
    save(memory_store, communication=made)
    for options in ({"kind": "all_gather"}, {"group": "tp"}, {"minimum_ns": 11}):
        assert show(memory_store, "v1", options=ShowOptions(**options)).communication_links.empty
        assert diff(memory_store, "v1", "v1", options=DiffOptions(**options)).communication_links.empty
    assert len(show(memory_store, "v1", options=ShowOptions(kind="all_*", group="d?")).communication_links) == 1


def test_counters_of_both_sides_by_relative_change(store: Store):
    def counted(read, frequency):
        return [
            ("hbm", "HBM 0/Read", "MB/s", read),
            ("ai_core_freq", "AI Core Freq", "MHz", frequency),
            ("step_trace_time", "5", "Computing", read * 100),
            ("op_statistic", "Cast AI_CORE", "Count", read * 100),
        ]

    save(store, "v1", steps=[-1], counters=[*counted(10.0, 1800.0), ("llc", "LLC 0", "%", 1.0)])
    save(store, "v2", steps=[-1], counters=[*counted(11.0, 900.0), ("llc", "LLC 1", "%", 1.0)])
    same_table(
        diff(store, "v1", "v2").counters,
        """
        source        name          attribute  baseline_calls  baseline_mean  candidate_mean  delta  diff
        ai_core_freq  AI_Core_Freq  MHz        1               1800           900             -900   -0.5
        hbm           HBM_0/Read    MB/s       1               10             11              1      0.10000000000000009
        """,
    )
    assert set(show(store, "v1").counters["source"]) == {
        "hbm", "ai_core_freq", "step_trace_time", "op_statistic", "llc"
    }  # fmt: skip


def test_counters_keep_steps_and_ranks_apart_on_request(store: Store):
    save(store, ranks=2, steps=2, counters=[("dataset", "batch", "us", 3.0)])
    whole, apart = show(store, "v1"), show(store, "v1", options=ShowOptions(by=("rank", "step")))
    same_table(whole.counters, "source name attribute calls mean min max\n dataset batch us 4 3 3 3")
    assert list(zip(apart.counters["rank"], apart.counters["step"], strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_without_links_and_counters_the_frames_are_empty_with_their_columns(store: Store):
    save(store)
    shown, compared = show(store, "v1"), diff(store, "v1", "v1")
    frames = [shown.communication_links, shown.counters, shown.kernel_metrics]
    frames += [compared.communication_links, compared.counters, compared.kernel_metrics]
    assert all(isinstance(frame, pd.DataFrame) and frame.empty and len(frame.columns) > 6 for frame in frames)
