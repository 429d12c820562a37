"""A version whose inputs have another size did other work: no finding, and a sentence of its own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.made import runs
from tracker.compare import diffs
from tracker.regressions.gates import gate_of_findings
from tracker.regressions.history import history
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.regressions.scaled_inputs import find_other_runs
from tracker.results import FindingsOptions, HistoryOptions
from tracker.schema.series import SeriesKey


def version(store, label, start, *, size=2048, ns=80_000_000, changed=None, **more):
    """Three runs: 40 operators of 1 ms without shapes, and mm, which takes most of the time."""
    mm = ("aten::mm", ns, {"input_shapes": f"[[{size},4096],[4096,4096]]", "calls": 8})
    runs(store, label, changed, start=start, more_ops=[mm], **more)


def judge(store):
    update(store, tracks_of(store))


def found_in(store, label):
    """Return the names of the findings of a version."""
    options = FindingsOptions(version=label, every=True)
    return findings(store, options=options).tables["findings"].listed("name")


def test_longer_inputs_are_no_finding_and_fail_no_gate(memory_store):
    version(memory_store, "v1", 0)
    version(memory_store, "v2", 3, size=3072, ns=120_000_000)
    judge(memory_store)
    found = findings(memory_store)
    assert len(found.tables["findings"]) == 0
    work = "v2 did other work than v1: 2048 -> 3072 in 1 operator, 1.5 x the elements"
    assert f"{work}. Its step is not judged, and neither are these operators." in found.notes
    gate = gate_of_findings(found)
    assert (gate.code, gate.because) == (
        4,
        "v2: the step has no verdict: the inputs have another size, which is other work",
    )
    last = history(memory_store, options=HistoryOptions(key="step")).tables["points"].records()[-1]
    assert (last["verdict"], last["reason"]) == (None, "OTHER_WORK")


def test_operator_that_has_the_same_inputs_is_a_finding(memory_store):
    version(memory_store, "v1", 0)
    version(memory_store, "v2", 3, size=3072, ns=120_000_000, changed={"op07": 5.0})
    judge(memory_store)
    assert set(found_in(memory_store, "v2")) == {"op07"}


def test_version_is_compared_with_older_ones_of_the_same_work(memory_store):
    """v3 has the inputs of v2 and takes 20 % longer for them; v4 has those of v1, and takes as long as it."""
    version(memory_store, "v1", 0)
    version(memory_store, "v2", 3, size=3072, ns=120_000_000)
    version(memory_store, "v3", 6, size=3072, ns=150_000_000)
    judge(memory_store)
    assert {"step", "aten::mm"} <= set(found_in(memory_store, "v3"))
    (against_level,) = diffs(memory_store, ["v3"])
    assert against_level.headline.startswith("v3 is 18.8 % slower than ")


def test_return_to_the_old_inputs_is_compared_with_them(memory_store):
    version(memory_store, "v1", 0)
    version(memory_store, "v2", 3, size=3072, ns=120_000_000)
    version(memory_store, "v3", 6, ns=100_000_000)
    judge(memory_store)
    assert {"step", "aten::mm"} <= set(found_in(memory_store, "v3"))
    assert not found_in(memory_store, "v2")


def test_finding_stays_open_where_later_inputs_say_nothing(memory_store):
    """mm of v2 is 25 % slower; the longer sequences of v3 neither confirm nor end that."""
    version(memory_store, "v1", 0)
    version(memory_store, "v2", 3, ns=100_000_000)
    version(memory_store, "v3", 6, size=3072, ns=120_000_000)
    judge(memory_store)
    open_ones = findings(memory_store).tables["findings"].rows("name", "version", "state", "current_ratio")
    assert ("step", "v2", "persisting", None) in set(open_ones), "and its number of v3 is no number of it"
    (against_v2,) = diffs(memory_store, ["v2", "v3"])
    reasons = dict(against_v2.tables["overall"].rows("metric", "reason"))
    assert reasons["step_ns"] == "still open (I-1, open since v2)"


@pytest.mark.parametrize("sizes", [(2048, 2100), (2048, 2100, 1990)])
def test_inputs_that_differ_a_little_are_the_same_work(memory_store, sizes):
    for number, size in enumerate(sizes):
        version(memory_store, f"v{number}", 3 * number, size=size, ns=80_000_000)
    judge(memory_store)
    assert not any("other work" in note for note in findings(memory_store).notes)


def verdict_of(store, label):
    points = history(store, options=HistoryOptions(key="step")).tables["points"].rows("version", "verdict")
    return dict(points)[label]


def test_other_work_neither_confirms_nor_clears_a_suspect(memory_store):
    """One run of v2 is slower; the longer sequences of v3 say nothing of it, and two runs of v4 confirm it."""
    version(memory_store, "v1", 0)
    version(memory_store, "v2", 3, ns=100_000_000, count=1)
    version(memory_store, "v3", 4, size=3072, ns=120_000_000, count=1)
    judge(memory_store)
    assert verdict_of(memory_store, "v2") == "SUSPECT"
    version(memory_store, "v4", 5, ns=100_000_000, count=2)
    judge(memory_store)
    assert [verdict_of(memory_store, label) for label in ("v2", "v3", "v4")] == ["REGRESSED", None, "REGRESSED"]


def test_single_runs_confirm_over_a_version_of_other_work(memory_store):
    """v2, v4 and v5 have one run each and are as slow; v3 between them did other work. A third one decides."""
    version(memory_store, "v1", 0)
    version(memory_store, "v2", 3, ns=100_000_000, count=1)
    version(memory_store, "v3", 4, size=3072, ns=120_000_000, count=1)
    for number, label in enumerate(("v4", "v5"), 5):
        version(memory_store, label, number, ns=100_000_000, count=1)
    judge(memory_store)
    assert verdict_of(memory_store, "v5") == "SUSPECT"
    version(memory_store, "v6", 7, ns=100_000_000, count=1)
    judge(memory_store)
    assert [verdict_of(memory_store, label) for label in ("v2", "v6")] == ["REGRESSED", "REGRESSED"]


def test_each_kind_of_steps_has_inputs_of_its_own():
    """The prompts of run 2 are longer, what is decoded is not: of DECODE, and of all steps, nothing is other work."""
    own = "device_self_ns"
    numbers = {
        SeriesKey("op", own, "aten::mm", "[[2048,64]]", step_kind="EXTEND"): (4e6, np.nan),
        SeriesKey("op", own, "aten::mm", "[[3072,64]]", step_kind="EXTEND"): (np.nan, 6e6),
        SeriesKey("run", "duration_ns", "step", step_kind="EXTEND"): (4e6, 6e6),
        SeriesKey("op", own, "aten::mm", "[[1,64]]", step_kind="DECODE"): (9e6, 9e6),
        SeriesKey("run", "duration_ns", "step", step_kind="DECODE"): (9e6, 9e6),
    }
    values = np.array([*numbers.values()])
    found = find_other_runs([*numbers], values, np.ones((5, 2)), np.array([1, 2]))
    assert found.inputs[1].words == "2048 -> 3072 in 1 operator, 1.5 x the elements"
    assert found.cells.tolist() == [[True, True], [True, False], [True, False], [False, False], [False, False]]
