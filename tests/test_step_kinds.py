"""A step has a kind: what an engine decodes is never compared with what it extends, nor a mix of both with another."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.readers import traces
from tracker import compare
from tracker.errors import UsageError
from tracker.intake import ingest
from tracker.reports import render
from tracker.results import DiffOptions, HistoryOptions
from tracker.results.verdicts import word_of_step
from tracker.store import Store, open_store, queries

EXTEND, DECODE = "step[EXTEND bs=4 toks=8192]", "step[DECODE bs=32]"


def write_run(folder: Path, number: int, steps: Sequence[tuple[str, int]], **more: str) -> Path:
    """Write a run of these steps, each with its name and how long its one operator takes on the host, in us."""
    folder.mkdir(parents=True, exist_ok=True)
    events, at = [], 0
    for name, took in steps:
        lasts = took + number % 3  # no two runs of a version are the same
        events.append(traces.op(name, at, lasts, cat="user_annotation"))
        events.append(traces.op("aten::mm", at + 1, lasts - 2))
        at += lasts + 5
    return traces.write(folder, events, name=f"run{number}.json", baseTimeNanoseconds=number * 10**12, **more)


def fill(store: Store, folder: Path, **versions: Sequence[tuple[str, int]]) -> None:
    """Ingest three runs of each version, which have these steps."""
    for place, (version, steps) in enumerate(versions.items()):
        for number in range(3):
            write_run(folder / version, 3 * place + number, steps)
        ingest(store, [folder / version], version=version, workload="engine")


def mix(extend: int, decode: int, *, decode_us: int = 5_000) -> list[tuple[str, int]]:
    return [(EXTEND, 40_000)] * extend + [(DECODE, decode_us)] * decode


def test_one_kind_is_slower_while_the_mix_has_more_of_it(memory_store: Store, tmp_path: Path):
    """The mean step falls from 24 to 9 ms, for most steps of v2 are short; each of these takes 15 % longer."""
    fill(memory_store, tmp_path, v1=mix(9, 8), v2=mix(2, 15, decode_us=5_750))
    found = compare.diff(memory_store, "v1", "v2")
    assert found.headline.startswith("v2 is 15.0 % slower than v1 in DECODE steps: 5.00 -> 5.75 ms per step")
    assert found.headline.endswith("; EXTEND steps unchanged")
    assert found.explanation.verdict == "REGRESSED"
    assert found.gates["new"].code == 1
    assert [(row.kind, row.baseline_steps, row.candidate_steps, row.verdict) for row in found.step_kinds] == [
        ("DECODE", 8, 15, "REGRESSED"),
        ("EXTEND", 9, 2, "UNCHANGED"),
    ]
    # 9 x 40 and 8 x 5 of 17 steps, then 2 x 40 and 15 x 5.75; with 15 x 5 it would be 9.12
    assert (
        "The mix of steps differs: v1 has 9 of 17 EXTEND steps a run, v2 2 of 17; the kinds, weighted by their "
        "steps, take 23.53 -> 9.78 ms, -14.41 ms by the mix alone."
    ) in found.notes
    extend = compare.diff(memory_store, "v1", "v2", options=DiffOptions(step_kind="EXTEND"))
    assert extend.headline.startswith("v2 is as fast as v1 in EXTEND steps")


def test_each_kind_says_that_it_may_be_another_host(memory_store: Store, tmp_path: Path):
    slower = [(EXTEND, 46_000)] * 8 + [(DECODE, 5_750)] * 8
    for version, steps, host in (("v1", mix(8, 8), "a"), ("v2", slower, "b")):
        for number in range(3):
            write_run(tmp_path / version, number + 3 * (version == "v2"), steps, host_name=host)
        ingest(memory_store, [tmp_path / version], version=version, workload="engine")
    found = compare.diff(memory_store, "v1", "v2")
    words = [word_of_step(row.verdict, row.reason) for row in found.step_kinds]
    assert words == ["REGRESSED or another host"] * 2
    text = " ".join(render(found, "text", details=True).split())
    assert text.count("REGRESSED or another host") == text.count("REGRESSED")


def test_another_mix_of_equal_steps_is_no_change(memory_store: Store, tmp_path: Path):
    fill(memory_store, tmp_path, v1=mix(8, 8), v2=mix(7, 9))
    found = compare.diff(memory_store, "v1", "v2")
    assert {row.verdict for row in found.step_kinds} == {"UNCHANGED"}
    assert found.gates["new"].code == 0
    assert len(queries.findings(memory_store)) == 0


def test_history_log_and_board_have_the_kind_that_changed(memory_store: Store, tmp_path: Path):
    from tracker.regressions.board import board
    from tracker.regressions.history import history
    from tracker.results import LogOptions

    fill(memory_store, tmp_path, v1=mix(9, 8), v2=mix(2, 15, decode_us=5_750))
    series = history(memory_store, options=HistoryOptions(key="step")).tables["series"].records()
    assert {row["step_kind"] for row in series} == {"", "DECODE", "EXTEND"}
    (line,) = board(memory_store).tables["lines"].records()
    assert (line["step_kind"], line["step_verdict"]) == ("DECODE", "REGRESSED")
    assert line["previous_change"] == pytest.approx(0.15, abs=0.001)
    log = compare.log(memory_store, options=LogOptions(workload="engine", metric="step"))
    (column,) = log.tables["columns"].records()
    assert column["configuration"] == "steps=DECODE"
    assert [cell["verdict"] for cell in log.tables["cells"].records()][-1] == "REGRESSED"


def test_a_kind_that_one_side_has_is_named_and_not_judged(memory_store: Store, tmp_path: Path):
    fill(memory_store, tmp_path, v1=mix(0, 9), v2=mix(4, 5))
    found = compare.diff(memory_store, "v1", "v2")
    assert found.headline.startswith("v2 is as fast as v1 in DECODE steps")
    assert found.headline.endswith("; EXTEND steps in the candidate only")
    with pytest.raises(UsageError, match="v1 has no EXTEND steps: it has DECODE"):
        compare.diff(memory_store, "v1", "v2", options=DiffOptions(step_kind="EXTEND"))


def test_sides_without_a_kind_in_common_are_not_compared(memory_store: Store, tmp_path: Path):
    fill(memory_store, tmp_path, v1=mix(0, 9), v2=mix(9, 0))
    found = compare.diff(memory_store, "v1", "v2")
    assert "not comparable: no kind of steps comes twice on both sides (9 DECODE | 9 EXTEND)" in found.headline
    assert len(queries.findings(memory_store)) == 0


def test_steps_of_one_kind_are_steps(memory_store: Store, tmp_path: Path):
    fill(memory_store, tmp_path, v1=mix(0, 9), v2=mix(0, 9, decode_us=5_750))
    found = compare.diff(memory_store, "v1", "v2")
    assert found.headline.startswith("v2 is 15.0 % slower than v1: 5.00 -> 5.75 ms per step")
    assert found.step_kinds == ()


def train(count: int, *, every: int, first: int = 0) -> list[dict]:
    """A training of so many steps of 100 us, of which each `every`-th has an optimizer; `first`: their numbers."""
    events = []
    for number in range(count):
        at = 200 * number
        events += [traces.step(first + number + 1, at, 100), traces.op("aten::mm", at + 1, 50)]
        if (number + 1) % every == 0:
            events.append(traces.op("Optimizer.step#AdamW.step", at + 60, 30, cat="user_annotation"))
    return events


@pytest.mark.parametrize(
    ("events", "kinds"),
    [
        (train(8, every=4), [*["without optimizer"] * 3, "with optimizer"] * 2),
        (train(6, every=1), [""] * 6),
        # the capture ended within the last step
        ([one for one in train(6, every=1) if not (one["name"].startswith("Opt") and one["ts"] > 1000)], [""] * 6),
        (train(4, every=9), [""] * 4),
    ],
    ids=["accumulation", "each step", "cut in the last step", "no optimizer"],
)
def test_steps_with_and_without_an_optimizer_are_two_kinds(
    memory_store: Store, tmp_path: Path, events: list[dict], kinds: list[str]
):
    ingest(memory_store, [traces.write(tmp_path, events)], version="v1", workload="toy")
    assert queries.steps(memory_store, [1]).listed("kind") == kinds


def test_steps_within_an_evaluation_are_a_kind(memory_store: Store, tmp_path: Path):
    events = train(6, every=1)
    events += [traces.op("run_validation", 200 * number, 90, cat="user_annotation") for number in (2, 5)]
    ingest(memory_store, [traces.write(tmp_path, events)], version="v1", workload="toy")
    assert queries.steps(memory_store, [1]).listed("kind") == [*["training"] * 2, "evaluation"] * 2


def test_backward_pass_of_autograd_is_no_evaluation(memory_store: Store, tmp_path: Path):
    """In two of four training steps one function of the backward pass waits for most of the step."""
    events = []
    for number, backward_us in enumerate((80, 20, 80, 20)):
        at = 200 * number
        events.append(traces.step(number + 1, at, 100))
        events.append(traces.op("autograd::engine::evaluate_function: AddmmBackward0", at + 10, backward_us))
    ingest(memory_store, [traces.write(tmp_path, events)], version="v1", workload="ddp")
    assert queries.steps(memory_store, [1]).listed("kind") == [""] * 4


def test_more_evaluation_makes_no_training_slower(memory_store: Store, tmp_path: Path):
    """Training steps take 100 us and those of an evaluation 400; v2 has 6 of these among 9 steps, v1 3 of 9."""

    def work(evaluating: set[int]) -> list[dict]:
        events = []
        for number in range(9):
            at, is_evaluating = 500 * number, number in evaluating
            events.append(traces.step(number + 1, at, 400 if is_evaluating else 100))
            events.append(traces.op("aten::mm", at + 1, 50))
            name = "evaluate" if is_evaluating else "Optimizer.step#AdamW.step"
            events.append(traces.op(name, at + 60, 330 if is_evaluating else 30, cat="user_annotation"))
        return events

    for place, (version, evaluating) in enumerate({"v1": {2, 5, 8}, "v2": {1, 2, 4, 5, 7, 8}}.items()):
        (tmp_path / version).mkdir()
        for number in range(3):
            start_ns = (3 * place + number) * 10**12
            traces.write(tmp_path / version, work(evaluating), name=f"run{number}.json", baseTimeNanoseconds=start_ns)
        ingest(memory_store, [tmp_path / version], version=version, workload="toy")
    found = compare.diff(memory_store, "v1", "v2")
    assert [(row.kind, row.baseline_steps, row.candidate_steps, row.verdict) for row in found.step_kinds] == [
        ("evaluation", 3, 6, "UNCHANGED"),
        ("training", 6, 3, "UNCHANGED"),
    ]
    assert found.gates["new"].code == 0


def test_scaling_the_steps_of_one_kind_changes_no_verdict_of_another(memory_store: Store, tmp_path: Path):
    """A law: of v2 to v4 the decode steps take 0.5 to 3 times as long, and what extends stays as it was."""
    scaled = {f"v{number}": mix(5, 5, decode_us=took) for number, took in enumerate((5_000, 2_500, 7_500, 15_000), 1)}
    fill(memory_store, tmp_path, **scaled)
    for version in ("v2", "v3", "v4"):
        found = compare.diff(memory_store, "v1", version)
        assert {row.verdict for row in found.step_kinds if row.kind == "EXTEND"} == {"UNCHANGED"}


def test_steps_in_another_order_have_the_same_verdicts_and_numbers(tmp_path: Path):
    """A law: what comes behind the first step may come in any order."""
    said = []
    for seed in (None, 1, 2):
        store = open_store("sqlite://")
        versions = {}
        for version, decode_us in (("v1", 5_000), ("v2", 5_750)):
            first, *others = mix(4, 6, decode_us=decode_us)
            if seed is not None:
                random.Random(seed).shuffle(others)
            versions[version] = [first, *others]
        fill(store, tmp_path / str(seed), **versions)
        found = compare.diff(store, "v1", "v2")
        said.append((found.headline, found.step_kinds, found.gates["new"].code))
        store.close()
    assert said[0] == said[1] == said[2]


def test_steps_of_other_numbers_are_the_same_steps(memory_store: Store, tmp_path: Path):
    """A law: a capture that began 100 steps later has the same kinds, for its numbers are no part of them."""
    for version, first in (("v1", 0), ("v2", 100)):
        for number in range(3):
            (tmp_path / version).mkdir(exist_ok=True)
            events = train(8, every=4, first=first)
            start_ns = (first + number) * 10**12
            traces.write(tmp_path / version, events, name=f"run{number}.json", baseTimeNanoseconds=start_ns)
        ingest(memory_store, [tmp_path / version], version=version, workload="toy")
    found = compare.diff(memory_store, "v1", "v2")
    assert [(row.kind, row.diff) for row in found.step_kinds] == [("without optimizer", 0.0), ("with optimizer", 0.0)]


def test_history_goes_on_from_runs_that_were_read_before_kinds_were_known(memory_store: Store, tmp_path: Path):
    """v1 has no kinds: v2 is compared with it by all steps, and v3 with v2 by kinds."""
    fill(memory_store, tmp_path, v1=mix(5, 8))
    with memory_store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE step SET kind = ''")
        connection.exec_driver_sql("UPDATE run SET sample_rules = NULL")
    for version, decode_us in (("v2", 5_000), ("v3", 5_750)):
        for number in range(3):
            write_run(tmp_path / version, 30 + decode_us + number, mix(5, 8, decode_us=decode_us))
        ingest(memory_store, [tmp_path / version], version=version, workload="engine")
    found = compare.diff(memory_store, "v1", "v2")
    assert found.step_kinds == ()
    assert found.explanation.verdict == "UNCHANGED"
    found = compare.diff(memory_store, "v2", "v3")
    assert found.headline.startswith("v3 is 15.0 % slower than v2 in DECODE steps")


def test_one_prefill_among_many_decodes_is_no_change_of_the_step(memory_store: Store, tmp_path: Path):
    """The usual capture of an engine: how many decodes come behind the one prefill is no matter of speed."""
    fill(memory_store, tmp_path, v1=mix(1, 15), v2=mix(1, 4), v3=mix(1, 15, decode_us=5_750))
    assert compare.diff(memory_store, "v1", "v2").gates["new"].code == 0
    found = compare.diff(memory_store, "v2", "v3")
    assert found.headline.startswith("v3 is 15.0 % slower than v2 in DECODE steps")
    assert {row["version"] for row in queries.findings(memory_store)} == {"v3"}


def test_peak_memory_is_judged_beside_kinds(memory_store: Store, tmp_path: Path):
    """v2 holds 2 GB where v1 held 1 GB, and its steps are as fast."""
    for place, (version, size) in enumerate((("v1", 10**9), ("v2", 2 * 10**9))):
        for number in range(3):
            path = write_run(tmp_path / version, 3 * place + number, mix(4, 6))
            trace = json.loads(path.read_text())
            trace["traceEvents"].append(traces.memory(5, size, 0, **{"Total Allocated": size}))
            path.write_text(json.dumps(trace))
        ingest(memory_store, [tmp_path / version], version=version, workload="engine")
    found = compare.diff(memory_store, "v1", "v2")
    (peak,) = [row for row in found.tables["overall"].records() if row["metric"] == "peak_allocated_bytes"]
    assert (peak["diff"], peak["verdict"]) == (1.0, "REGRESSED")
    assert found.gates["new"].code == 1


def test_a_matrix_compares_the_kind_that_took_most_time(memory_store: Store, tmp_path: Path):
    fill(memory_store, tmp_path, v1=mix(4, 6), v2=mix(2, 9), v3=mix(3, 7))
    found = compare.matrix(memory_store, ["v1", "v2", "v3"])
    assert found.notes[0].endswith("(DECODE, EXTEND): compared are EXTEND steps; --step-kind chooses.")
    cells = [row["value"] for row in found.tables["cells"].records() if row["row"] == 0]
    assert cells == [pytest.approx(40_000_000, rel=1e-3)] * 3
