"""The judgement on real runs: a labelled nightly training, and repeats of one code."""

from __future__ import annotations

import pytest

import tracker
from tests.real import data
from tests.real.conftest import nightly_versions
from tracker.regressions.gates import gate_of_findings

LABELS = {
    "v05": {"+aten::native_layer_norm", "+aten::native_layer_norm_backward", "+aten::copy_"},
    "v08": {"+aten::mul", "+aten::pow", "+aten::tanh", "+aten::add", "-aten::gelu", "-aten::gelu_backward", "+step"},
    "v10": {"+aten::copy_", "+peak memory"},
    "v11": {"+step"},
}
"""What MANIFEST.md says of the captures: + for worse, - for better or gone."""


def found_in(store, **options):
    """Version -> what was found in it, of operators and of the whole run."""
    states = ("new", "persisting", "recovered", "taken back", "accepted", "vanished")
    rows = tracker.findings(store=store, every=True, states=states, **options).findings
    found = {}
    for row in rows.itertuples():
        if row.kind in ("op", "op_name", "run"):
            sign = "+" if row.direction == "regression" else "-"
            found.setdefault(row.version, set()).add(f"{sign}{row.name}")
    return found


def test_every_labelled_change_is_found_in_its_version(nightly):
    found = found_in(nightly)
    assert {version: names - found.get(version, set()) for version, names in LABELS.items()} == {
        version: set() for version in LABELS
    }


def test_quiet_versions_have_no_finding(nightly):
    assert set(found_in(nightly, direction="regression")) == set(LABELS)


def test_exit_codes_are_those_of_the_labels(nights):
    _, codes = nights
    assert codes.pop("v01") == 4, "nothing to compare with"
    assert {version for version, code in codes.items() if code == 1} == set(LABELS)
    assert {code for version, code in codes.items() if version not in LABELS} == {0}


def test_everything_of_the_nights_is_over_in_the_end(nightly):
    assert len(tracker.findings(store=nightly).findings) == 0


@pytest.mark.slow
def test_repeats_of_one_code_change_nothing(tmp_path):
    """20 runs of one code as 10 versions: at most one false finding of an operator, none of the step."""
    with tracker.open_store("sqlite://") as store:
        for at, path in enumerate(sorted(data.path("torch_cpu/repeats_gpt").glob("*.gz"))):
            tracker.ingest([path], version=f"v{at // 2:02}", workload="gpt", store=store)
        found = found_in(store)
        assert sum(map(len, found.values())) <= 2
        assert not any("+step" in names for names in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("third_run", ["v08b", "v08", None])
def test_rewrite_that_is_taken_back_fails_no_gate(third_run):
    """GELU is written out in v08 and back in v09. `third_run`: the version of the third run of v08, None: left out."""
    runs = {
        (version, number): path
        for version, paths in nightly_versions().items()
        for number, path in enumerate(paths, 1)
        if "v05" <= version <= "v09"
    }
    with tracker.open_store("sqlite://") as store:
        for (version, number), path in runs.items():
            label = third_run if (version, number) == ("v08", 3) else version
            if label is not None:
                tracker.ingest([path], version=label, workload="gpt", store=store)
        assert "v09" not in found_in(store)
        assert gate_of_findings(tracker.findings(store=store), "new").code == 0
        recovered = tracker.findings(store=store, states=("recovered",)).findings
        assert {"step", "peak memory", "compute"} <= {*recovered["name"]}
        assert {*recovered["ended_version"]} == {"v09"}
