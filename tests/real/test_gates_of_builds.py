"""What a pipeline would have said of the nightly training, version by version."""

from __future__ import annotations

import pytest

from tracker.compare import baseline_of, diff, gate_of_diff, known_before
from tracker.judgement import older_runs
from tracker.store import queries

pytestmark = pytest.mark.slow


def runs_of(store, *versions):
    """Numbers of the runs of versions, in order."""
    return [number for version in versions for number in queries.run_ids_of_version(store, version)]


def test_the_window_is_that_of_the_step(nightly):
    """Layer norm in float64 (v05, v06) left the step as it was, and so, for all one can tell, did the copies of v10."""
    chosen, note = baseline_of(nightly, "v08")
    window = [int(part.removeprefix("run:")) for part in chosen.split(",")]
    assert window == runs_of(nightly, "v03", "v04", "v05", "v06", "v07")[-8:]
    assert "Left out" not in note
    later = {int(part.removeprefix("run:")) for part in baseline_of(nightly, "v12")[0].split(",")}
    assert not later & set(runs_of(nightly, "v08", "v11"))


@pytest.mark.parametrize(
    ("version", "code"), [("v03", 0), ("v04", 0), ("v05", 1), ("v08", 1), ("v10", 1), ("v11", 1), ("v12", 0)]
)
def test_each_version_against_its_window_ends_as_it_is_labelled(nightly, version, code):
    found = diff(nightly, baseline_of(nightly, version)[0], version)
    gate = gate_of_diff(found, "new", known_before(nightly, found))
    assert gate.code == code, gate.because
    failed = {row.name for row in gate.of("failed")}
    expected = {"v05": "aten::native_layer_norm", "v08": "aten::mul", "v10": "aten::copy_", "v11": "Step time"}
    assert expected.get(version, "") in {*failed, ""}


def test_one_run_against_one_sees_what_older_runs_do_not_do_by_themselves(nightly):
    before, after = runs_of(nightly, "v06")[-1], runs_of(nightly, "v07")[-1]
    assert len(older_runs(nightly, [before, after])) == 6
    found = diff(nightly, f"run:{before}", f"run:{after}")
    named = {cause.name for cause in found.explanation.findings}
    assert {"aten::native_layer_norm", "aten::native_layer_norm_backward"} <= named
    assert {cause.verdict for cause in found.explanation.findings} == {"SUSPECT"}
    first, second = runs_of(nightly, "v03")[0], runs_of(nightly, "v04")[0]
    calm = diff(nightly, f"run:{first}", f"run:{second}")
    assert len(calm.explanation.findings) <= 2  # nothing changed between them
