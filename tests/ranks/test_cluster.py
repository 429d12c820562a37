"""What is said of the ranks of a job, with numbers that a reader checks in the head."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.compare.test_incomplete import incomplete
from tests.factories import EPOCH_NS, record, save
from tests.ranks.made import MS, job, rank
from tracker import reports
from tracker.compare import diff, gate_of_diff
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.ranks import cluster
from tracker.regressions.gates import gate_of_findings
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.results import ClusterOptions
from tracker.schema.series import LOST_DEVICE
from tracker.store import pruning, queries, save_run

EVEN = {0: [10] * 5, 1: [10.5, 10, 10, 10, 10.5], 2: [10, 10.5, 10, 10.5, 10], 3: [10, 10, 10.5, 10, 10]}
"""Four ranks, each now and then the slowest."""
SLOW = {**EVEN, 3: [20] * 5}


def row(found, table, **key):
    (one,) = (each for each in found.tables[table].records() if all(each[name] == key[name] for name in key))
    return one


def test_a_rank_that_takes_longer_in_all_steps_is_slow_and_its_cost_is_said(store):
    """20 ms instead of 10; without it most steps would take 10.5 ms: 9.5 less."""
    found = cluster(store, job(store, SLOW))
    three = row(found, "ranks", rank=3)
    assert (three["own_ns"], three["own_ratio"], three["cost_ns"], three["excess_ns"]) == (
        20 * MS,
        2.0,
        9.5 * MS,
        10 * MS,
    )
    assert (three["slowest_steps"], three["verdict"]) == (5, "SLOW")
    assert found.headline.startswith("rank 3 holds the job back by 9.50 ms a step")
    assert found.remarks == ("Own time 20.00 ms, x2.00 that of its peers; slowest in 5 of 5 steps, q < 0.001.",)
    assert [one["verdict"] for one in found.tables["ranks"].records()] == ["SLOW", None, None, None]


def test_even_ranks_accuse_nobody(store):
    found = cluster(store, job(store, EVEN))
    assert (found.headline, found.verdict) == ("no rank holds the others back", "")


MOVING = {number: [20 if step % 4 == number else 10 for step in range(8)] for number in range(4)}
"""Four ranks that take 20 ms instead of 10 in turn."""


def gemms(*sizes: int):
    """What else `rank` takes of ranks that each multiply a matrix of this size."""
    return {
        number: {"kernels": [("gemm", MS, {"input_shapes": f"[[{size},{size}]]"})]} for number, size in enumerate(sizes)
    }


def test_work_that_moves_around_is_uneven_and_nobody_is_slow(store):
    found = cluster(store, job(store, MOVING, gemms(16, 32, 48, 64)))
    assert (found.verdict, found.tables["stages"].records()[0]["spread"]) == ("UNEVEN", 2.0)
    assert found.headline.startswith("no rank is slow, and the work is uneven: the slowest of a step takes x2.00")


def test_stall_that_rotates_over_equal_work_has_a_cost(store):
    """Each step has another slow rank. Equal shapes prove that no work moves, not that nothing is wrong."""
    found = cluster(store, job(store, MOVING, gemms(16, 16, 16, 16)))
    assert (found.verdict, found.tables["stages"].records()[0]["verdict"]) == ("", None)
    assert found.headline == (
        "no rank is slow, but in each step one takes x2.00 the median rank, 10.00 ms longer, now one and now another: "
        "its calls take longer"
    )
    assert found.remarks == ("No work moves between the ranks from step to step.",)


def test_stall_that_rotates_has_the_cause_of_its_steps(store):
    """The slow rank of each step loads data for 10 ms."""
    loading = {number: [10 if step % 4 == number else 0 for step in range(8)] for number in range(4)}
    of = {number: {"idle_ms": own, "loading_ms": own} for number, own in loading.items()}
    assert cluster(store, job(store, MOVING, of)).headline.endswith("now one and now another: it waits for its data")


def test_uneven_steps_without_shapes_may_be_either(store):
    plain = {number: {"kernels": [("gemm", MS, {"op": ""})]} for number in range(4)}
    found = cluster(store, job(store, MOVING, plain))
    assert found.verdict == ""
    assert found.remarks[0].startswith("Whether their work differs is not known: the captures name no shapes.")


@pytest.mark.parametrize(
    ("slow", "cause"),
    [
        ({"idle_ms": 10, "loading_ms": 9}, "data loading"),
        ({"idle_ms": 10, "loading_ms": 0}, "host"),
        ({"kernels": [("gemm", 2 * MS)]}, "slow device"),
        ({"kernels": [("gemm", MS, {"calls": 2})]}, "more work"),
    ],
)
def test_the_cause_is_what_makes_up_half_of_the_difference(store, slow, cause):
    """Rank 3 takes 10 ms longer in each of 5 steps; the only kernel of all ranks takes 1 ms a step."""
    others = {number: {"loading_ms": 0, "kernels": [("gemm", MS)]} for number in range(4)}
    if "kernels" in slow:  # all of the difference is in the kernel
        slow = {"kernels": [(name, 11 * MS, *more) for name, _, *more in slow["kernels"]]}
        slow["kernels"] = [(name, ns, {"calls": 11} if more else {}) for name, ns, *more in slow["kernels"]]
    of = {**others, 3: {**others[3], **slow}}
    assert row(cluster(store, job(store, SLOW, of)), "ranks", rank=3)["cause"] == cause


def test_a_rank_is_compared_within_its_stage(store):
    """Stage 1 takes twice as long as stage 0, which is no rank's fault."""
    own = {0: [10] * 5, 1: [10] * 5, 2: [20] * 5, 3: [20] * 5}
    of = {number: {"stage": number // 2} for number in own}
    found = cluster(store, job(store, own, of), options=ClusterOptions(microbatches=2))
    assert found.verdict == ""
    assert [one["own_ns"] for one in found.tables["stages"].records()] == [10 * MS, 20 * MS]
    (pipeline,) = found.tables["pipeline"].records()
    # 5 + 10 ms and once more the longest; equal stages of 7.5 ms: 3 x 7.5
    assert (pipeline["model_ns"], pipeline["even_ns"], pipeline["flat_ns"]) == (25 * MS, 25 * MS, 22.5 * MS)
    assert pipeline["ideal_bubble_share"] == 1 / 3


def test_a_host_whose_ranks_take_longer_together_is_slow(store):
    """Ranks 2 and 3 on node1 take turns in being the slowest: neither is slow alone, their host is."""
    own = {0: [10] * 8, 1: [10] * 8, 2: [15, 16] * 4, 3: [16, 15] * 4}
    of = {number: {"host": f"node{number // 2}"} for number in own}
    found = cluster(store, job(store, own, of))
    assert [(one["host"], one["verdict"]) for one in found.tables["hosts"].records()] == [
        ("node1", "SLOW"),
        ("node0", None),
    ]
    assert found.headline.startswith("host node1 holds the job back: the own time of its 2 ranks is x1.55")


def test_host_of_one_slow_rank_is_not_slow(store):
    """Rank 2 of node1 takes 12 ms; rank 3 beside it takes 10, as all others do."""
    own = {0: [10.0] * 6, 1: [10.0] * 6, 2: [12.0] * 6, 3: [10.0] * 6}
    found = cluster(store, job(store, own, {number: {"host": f"node{number // 2}"} for number in own}))
    assert [one["verdict"] for one in found.tables["hosts"].records()] == [None, None]
    assert found.headline.startswith("rank 2 on node1 holds the job back by 2.00 ms a step")


def test_the_order_in_which_ranks_come_changes_nothing(store):
    first = cluster(store, job(store, SLOW))
    second = cluster(store, job(store, SLOW, shuffled=True, of_run={"version": "v2"}))
    for name in ("ranks", "steps", "stages", "operators", "balance"):
        assert first.tables[name].records() == second.tables[name].records()


def test_two_runs_are_compared_rank_by_rank(store):
    found = cluster(store, job(store, EVEN), job(store, SLOW, of_run={"version": "v2"}))
    three = row(found, "changes", section="ranks", name="rank 3", metric="own_ns")
    assert (three["baseline_value"], three["candidate_value"], three["delta"], three["diff"]) == (
        10 * MS,
        20 * MS,
        10 * MS,
        1.0,
    )
    assert found.headline.startswith("in the second run, rank 3")


def test_ranks_that_are_slow_alike_are_named_together(store):
    """Ranks 2 and 3 take turns: without both a step would take 10 ms instead of 21."""
    own = {0: [10] * 6, 1: [10] * 6, 2: [20, 21] * 3, 3: [21, 20] * 3, 4: [10] * 6, 5: [10] * 6}
    found = cluster(store, job(store, own))
    assert (found.verdict, found.headline) == ("SLOW", "ranks 2,3 hold the job back by 11.00 ms a step")


def test_a_chosen_rank_is_not_called_the_only_one(store):
    found = cluster(store, job(store, SLOW), options=ClusterOptions(ranks=(3,)))
    assert found.headline == "one rank is chosen: there is no other to compare it with"
    assert found.missing[0].endswith("Leave out --rank and --stage.")


def test_one_rank_has_no_other_to_be_compared_with(store):
    found = cluster(store, job(store, {0: [10, 10, 10]}))
    assert found.headline == "one rank is captured: there is no other to compare it with"
    assert found.missing[0].startswith("Slow ranks, groups and links: one rank is captured.")


def test_some_ranks_of_many_are_compared_among_themselves(store):
    found = cluster(store, job(store, SLOW, world_size=128, of_run={"configuration": {"world_size": "128"}}))
    assert found.verdict == "SLOW"
    assert found.missing[0] == "4 of 128 ranks are captured: a rank is compared with those alone."


def test_too_few_steps_convict_nobody(store):
    found = cluster(store, job(store, {number: times[:2] for number, times in EVEN.items()}))
    assert (found.headline, found.verdict) == ("2 steps are too few to call a rank slow: record 3 or more", "")
    assert any("2 steps in common" in one for one in found.missing)


def test_chosen_steps_alone_are_compared(store):
    found = cluster(store, job(store, SLOW), options=ClusterOptions(steps=(0, 1, 2, 3)))
    assert row(found, "ranks", rank=3)["slowest_steps"] == 4


def test_version_of_several_runs_is_the_run_of_its_median_step(store):
    """Steps of 100, 300 and 200 ns: the ranks of the third run are shown, as `tracker show v1` has them."""
    for step_ns in (100, 300, 200):
        save(store, "v1", steps=3, step_ns=step_ns, e2e_ns=step_ns)
    found = cluster(store, "v1")
    assert found.run["reference"] == "run:3"
    assert found.notes[0].startswith("v1 is 3 runs (run:1, run:2, run:3); this is run:3, the run of the median step.")


def test_several_devices_of_a_version_are_an_error_that_names_the_runs(store):
    save(store, "v1", steps=3)
    save(store, "v1", steps=3, device=Device("NVIDIA", "A100"))
    with pytest.raises(UsageError, match="v1 is 2 runs of several devices; name one of run:1, run:2"):
        cluster(store, "v1")


def test_a_slow_link_is_told_from_those_of_its_transport_and_never_from_others(store):
    """Five HCCS links of 20 GB/s, one of 10; PCIE at 5 GB/s is no slow HCCS."""
    links = [("HCCS", 20 * MS, {"source": 0, "target": to, "transit_ns": MS + 1000 * to}) for to in range(1, 6)]
    links.append(("HCCS", 20 * MS, {"source": 1, "target": 0, "transit_ns": 2 * MS}))
    links.append(("PCIE", 20 * MS, {"source": 2, "target": 0, "transit_ns": 4 * MS}))
    communication = [("all_reduce", 10 * MS, {"links": links})]
    found = cluster(store, job(store, EVEN, {0: {"communication": communication}}))
    slow = [one for one in found.tables["links"].records() if one["verdict"]]
    assert [(one["transport"], one["source_rank"], one["target_rank"], one["place"]) for one in slow] == [
        ("HCCS", 1, 0, "link")
    ]


def test_a_version_that_is_slower_by_a_slow_host_alone_does_not_fail(store):
    """Three runs of v1 on even hosts; three of v2 in which node1 takes 40 ms instead of 10."""
    hosts = {number: {"host": f"node{number // 2}"} for number in range(4)}
    even = {number: [10.0, 10.1, 10.0, 9.9, 10.0, 10.1, 10.0, 9.9] for number in range(4)}
    slow = {**even, 2: [40.0, 41.0] * 4, 3: [41.0, 40.0] * 4}
    for at, (version, own) in enumerate([("v1", even)] * 3 + [("v2", slow)] * 3):
        job(store, own, hosts, started_at_ns=EPOCH_NS + at * 10**13,
            of_run={"version": version, "started_at_ns": EPOCH_NS + at * 10**13})  # fmt: skip
    found = diff(store, "v1", "v2")
    words = "host node1 was slow (own time x4.05 that of the others) in 3 of 3 runs, 0 of 3 before"
    assert found.explanation.verdict == "REGRESSED"
    gate = gate_of_diff(found)
    assert (gate.code, gate.because) == (4, words)
    assert f"Host{words[4:]}: no fault of the version, runs without it decide." in found.judgement.sentences
    update(store, tracks_of(store))
    listed = findings(store)
    assert gate_of_findings(listed).code == 4
    assert any(note.startswith("Host node1 was slow") for note in listed.notes)
    assert diff(store, "v2", "v1").gates["new"].code == 0, "an improvement asks for no host"


def test_how_uneven_the_ranks_are_is_a_series_of_its_own(store):
    """10, 12 and 18 ms: the largest is 1.5 times the median, and 1.8 times the smallest."""
    run = job(store, {0: [10] * 3, 1: [12] * 3, 2: [18] * 3})
    values = queries.samples(store, [1]).frame.set_index("name")["per_step"]
    assert (run, round(values["imbalance"], 6), round(values["rank spread"], 6)) == ("run:1", 1.5, 1.8)


def test_ranks_of_other_steps_are_compared_in_those_that_all_have(store):
    """Rank 3 has five steps, rank 0 only the first four of them."""
    captures = [
        rank(number, times, [20.0] * len(times), world_size=4) for number, times in {**SLOW, 0: [10.0] * 4}.items()
    ]
    save_run(store, record(), captures, formats=["torch_profiler"])
    found = cluster(store, "run:1")
    assert (row(found, "ranks", rank=3)["slowest_steps"], found.verdict) == (4, "SLOW")
    assert {one["step"] for one in found.tables["steps"].records()} == {0, 1, 2, 3}


def test_rank_that_counts_its_steps_otherwise_is_matched_by_order(store):
    """Rank 3 is slow, and calls the steps 0 to 4 of the others 100 to 104."""
    captures = [rank(number, times, [20.0] * len(times), world_size=4) for number, times in SLOW.items()]
    renumbered = [replace(row, step=row.step + 100) for row in captures[3].rows.steps]
    captures[3] = replace(captures[3], rows=replace(captures[3].rows, steps=tuple(renumbered)))
    save_run(store, record(), captures, formats=["torch_profiler"])
    found = cluster(store, "run:1")
    assert (row(found, "ranks", rank=3)["slowest_steps"], found.verdict) == (5, "SLOW")
    assert found.notes == (
        "Rank 3 counts its steps 100 to 104 where the others count 0 to 4: they are matched by their order.",
    )


def test_captures_without_collectives_say_which_option_records_them(store):
    found = cluster(store, job(store, SLOW))
    assert any(
        one.startswith("Communication: the captures hold no collectives. To have them: ") for one in found.missing
    )


def test_a_run_without_details_is_judged_by_its_totals(store):
    """Prune keeps the times of each rank and step."""
    reference = job(store, SLOW)
    pruning.prune(store, 1, now_ns=EPOCH_NS)
    found = cluster(store, reference)
    assert (row(found, "ranks", rank=3)["verdict"], len(found.tables["operators"])) == ("SLOW", 0)
    assert any("only totals are left of run:1 (tracker prune)" in note for note in found.notes)


def test_a_rank_that_lost_records_is_marked_and_compared_with_none(store):
    """Rank 2 lost its kernels and seems to take 5 ms instead of 10: it is not known, and nobody is slow by it."""
    lost = {"settings": incomplete(LOST_DEVICE), "quality_reason": "24 of 54 launches have no kernel"}
    found = cluster(store, job(store, {**EVEN, 2: [5] * 5}, of={2: lost}))
    assert found.remarks[0] == "rank 2: 24 of 54 launches have no kernel; not judged: work of the device."
    assert found.headline == "no rank of those that are whole holds the others back; rank 2 is partial"
    two = row(found, "ranks", rank=2)
    assert two["partial"] == 1
    assert [two[name] for name in ("own_ns", "own_ratio", "compute_ns", "idle_ns", "verdict")] == [None] * 5
    assert row(found, "ranks", rank=0)["own_ratio"] == pytest.approx(1.0, abs=0.05)
    assert "partial: not judged" in reports.render(found, "text", width=200)
