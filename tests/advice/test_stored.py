"""Advice is stored at ingest, follows the rows of its run, and outlives them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from tests.advice.made import CPU, MS, kernel, only, save
from tests.factories import EPOCH_NS, capture, record
from tests.regressions.found import made_finding
from tracker.advice import evidence, stored
from tracker.advice.judging import of_run
from tracker.advice.versions import merged, on_findings
from tracker.intake import ingest
from tracker.regressions.found import FoundFinding
from tracker.store import open_store, pruning, queries, runs, save_run

FORMAT_CHANGE = [kernel("aten::convolution", 4, name="batched_transpose_32x32_half")]


def test_what_is_stored_is_what_the_rules_say(store):
    run = save(store, times={"compute": 60}, kernels=FORMAT_CHANGE)
    stored.keep(store, [run])
    found = stored.of_runs(store, [run])[run]
    assert only(found, "K11").gain_ns == 4 * MS
    assert only(found, "K11").remedies[0] == "memory_format=torch.channels_last on model and input"  # of the rules


def test_runs_of_a_track_that_lack_advice_get_it_with_the_next(store):
    made = {"times": {"compute": 60}, "kernels": FORMAT_CHANGE}
    first, second = (
        save(store, version, **made, started_at_ns=EPOCH_NS + at * 10**12) for at, version in enumerate(("v1", "v2"))
    )
    stored.keep(store, [second])
    assert sorted(stored.of_runs(store, [first, second])) == [first, second]
    with store.begin() as connection:
        connection.execute(text("UPDATE advice SET rule_version = 0, content = '{\"step_ns\": 1.0}'"))
    stored.keep(store, [second])
    assert {one.step_ns for one in stored.of_runs(store, [first, second]).values()} == {100.0 * MS}


def test_a_rank_that_joins_changes_the_advice(store):
    times = {"compute": 60, "exposed_communication": 0}
    run = save(store, times=times, kernels=FORMAT_CHANGE, world_size=2)
    stored.keep(store, [run])
    late = capture(1, world_size=2, kernels=[("transpose", 900, {"category": "vector"})], step_ns=1000)
    joined = save_run(store, record("v1"), [late], formats=["torch_profiler"])
    assert (joined.run_id, joined.joined) == (run, True)
    stored.keep(store, [run], again=[run])
    assert only(stored.of_runs(store, [run])[run], "K11").rank == 0  # the slowest rank; with one rank none is named


@pytest.fixture
def other_process(database_url):
    """The same database, opened by somebody else."""
    with open_store(database_url) as store:
        yield store


def join_rank_1(store):
    """Store a rank that communicates beside rank 0."""
    kernels = [("transpose", 900, {"category": "vector"})]
    late = capture(1, world_size=2, kernels=kernels, step_ns=1000, communication=[("all_reduce", 50)])
    assert save_run(store, record("v1"), [late], formats=["torch_profiler"]).joined


@pytest.mark.postgres
def test_rank_that_joins_meanwhile_is_no_part_of_the_advice(store, other_process, monkeypatch):
    """Rank 1 comes between the first question about the run, that for its ranks, and that for its communication."""
    run = save(store, times={"compute": 60}, kernels=FORMAT_CHANGE, world_size=2)
    read_captures = queries.captures

    def read_then_join(*asked):
        found = read_captures(*asked)
        join_rank_1(other_process)
        return found

    with store.reading(), monkeypatch.context() as patched:
        patched.setattr(evidence.queries, "captures", read_then_join)
        found = of_run(store, run)
    assert only(found, "K11").gain_ns == 4 * MS
    assert len(queries.captures(store, [run])) == 2


@pytest.mark.postgres
def test_advice_without_a_rank_that_joined_is_not_stored(store, other_process, monkeypatch):
    """Rank 1 comes, with the advice of both ranks, while that of rank 0 alone is made: its advice stays."""
    run = save(store, times={"compute": 60}, kernels=FORMAT_CHANGE, world_size=2)
    make_advice = stored.of_run

    def make_then_join(*asked):
        found = make_advice(*asked)
        monkeypatch.setattr(stored, "of_run", make_advice)
        join_rank_1(other_process)
        stored.keep(other_process, [run], again=[run])
        return found

    monkeypatch.setattr(stored, "of_run", make_then_join)
    stored.keep(store, [run], again=[run])
    assert only(stored.of_runs(store, [run])[run], "K11").rank == 0, "with one rank none is named"


@pytest.mark.postgres
def test_run_that_is_purged_meanwhile_gets_no_advice(store, other_process, monkeypatch):
    """Of two runs of a track, the second is gone when the advice of the first is made."""
    both = [save(store, times={"compute": 60}, started_at_ns=EPOCH_NS + at * 10**12) for at in range(2)]
    make_advice = stored.of_run

    def make_then_purge(*asked):
        monkeypatch.setattr(stored, "of_run", make_advice)
        runs.delete_all(other_process, both[1:], purge=True, reason="test")
        return make_advice(*asked)

    monkeypatch.setattr(stored, "of_run", make_then_purge)
    stored.keep(store, both)
    assert list(stored.of_runs(store, both)) == both[:1]


def test_a_pruned_run_keeps_its_advice_and_a_purged_one_does_not(store):
    run = save(store, times={"compute": 60}, kernels=FORMAT_CHANGE)
    stored.keep(store, [run])
    pruning.prune(store, run, None, now_ns=EPOCH_NS)
    stored.keep(store, [run])
    assert only(stored.of_runs(store, [run])[run], "K11").gain_ns == 4 * MS
    runs.delete_all(store, [run], purge=True, reason="test")
    assert stored.of_runs(store, [run]) == {}


def test_ingest_stores_the_advice(store, trace_of_v08):
    (result,) = ingest(store, [trace_of_v08], version="v08", workload="gpt")
    found = stored.of_runs(store, [result.run_id])[result.run_id]
    assert [item.rule for item in found.items if item.is_shown] == ["K6"]


@pytest.fixture
def trace_of_v08():
    from tracker.cli.start import samples

    return samples().folder / "v08" / "run1.pt.trace.json.gz"


def finding(kind: str, name: str) -> FoundFinding:
    return made_finding(1, name, kind=kind)


@pytest.fixture
def regression(store):
    """A run, and one in which a gelu was written out."""
    host = {"timeline": "host", "compute": 90}
    slow = [
        (f"aten::{name}", 5 * MS, {"input_shapes": "[[8,96,768]]", "input_types": "float"}) for name in ("tanh", "mul")
    ]
    found = [
        save(store, version, times=host, ops=ops, device=CPU, steps=5, started_at_ns=EPOCH_NS + place * 10**12)
        for place, (version, ops) in enumerate((("v1", []), ("v2", slow)))
    ]
    stored.keep(store, found)
    return found


@pytest.mark.parametrize(("kind", "name", "rules"), [
    ("run", "step", ["K6"]), ("op", "aten::mul", ["K6"]), ("op_name", "aten::gelu -> aten::mul, aten::tanh", ["K6"]),
    ("op", "aten::mm", []), ("run", "peak memory", []), ("communication", "all_reduce", []),
])  # fmt: skip
def test_a_regression_gets_the_advice_that_shares_its_rows(store, regression, kind, name, rules):
    before, after = ([run] for run in regression)
    assert [item.rule for item in on_findings(store, [finding(kind, name)], before, after)] == rules


def test_advice_that_was_there_before_explains_no_regression(store, regression):
    _, slow = regression
    assert on_findings(store, [finding("op", "aten::mul")], [slow], [slow]) == ()
    assert on_findings(store, [], *([run] for run in regression)) == ()


def test_what_one_run_of_three_has_is_no_news(store):
    """Noise lifts one run over the threshold of a rule; two of three are the version."""
    waits, busy = ({"data_loading": 30, "data_loading_idle": idle, "compute": 70, "idle": idle} for idle in (20, 0.5))
    found = {times: of_run(store, save(store, times=own)) for times, own in (("waits", waits), ("busy", busy))}
    once = merged([found["busy"], found["waits"], found["busy"]]).items
    twice = merged([found["waits"], found["waits"], found["busy"]]).items
    assert [(item.rule, item.runs, item.is_shown) for item in (*once, *twice)] == [("I1", 3, False), ("I1", 3, True)]


def test_what_to_do_is_one_sentence(store, regression):
    (item,) = on_findings(store, [finding("run", "step")], *([run] for run in regression))
    assert item.sentence == (
        "Activation written out with tanh (at most 20.00 ms a step): "
        "torch.nn.functional.gelu(x, approximate='tanh'). (K6)"
    )
    assert replace(item, gain_ns=None).sentence.startswith("Activation written out with tanh: ")
