"""The gates on real data: silent over repeats, labelled changes found, dated and attributed, made slow-downs found."""

from __future__ import annotations

import pytest

from tests.detectors.gates import change_point_rates
from tests.real import data, gates, noise

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    tool = data.folder().parent / "tools" / "make_series.py"
    base = data.path("pytorch/two_ranks_nccl/rank-0.pt.trace.json.gz")
    return gates.make_series(tool, base, tmp_path_factory.mktemp("made"), clean=10, slow=5)


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "recall"), [(1.1, 0.6), (1.2, 0.8)])
def test_slower_kernels_of_a_real_trace_are_found_and_little_else(made, factor, recall):
    scored = gates.score(made, factor)
    assert scored.false_per_500 <= 1
    assert scored.recall >= recall
    assert scored.fdr <= 0.08
    assert scored.operators > 100


@pytest.mark.slow
def test_repeats_of_one_version_give_at_most_one_finding_over_all_consecutive_windows(repeats):
    assert len(gates.found_in_windows(repeats)) <= 1


def test_random_splits_of_the_repeats_give_less_than_one_finding_each(repeats):
    assert gates.false_per_split(repeats, draws=40) <= 0.3


def test_the_repeats_followed_run_by_run_confirm_at_most_one_regression():
    runs = {"v1": sorted(data.path("torch_cpu/repeats_gpt").glob("*.gz"))}
    with gates.ingested(runs) as store:
        assert len(gates.regressions(gates.followed(store))) <= 1


@pytest.fixture(scope="module")
def confirmed(nightly):
    return gates.followed(nightly)


@pytest.mark.parametrize("version", gates.LABELS)
def test_labelled_changes_are_found_dated_and_attributed(confirmed, version):
    assert gates.missed(confirmed, version) == []


def test_late_batches_are_no_operators_fault(confirmed):
    assert gates.ops_blamed(confirmed, "v11") == []


def test_nothing_is_confirmed_to_be_worse_where_nothing_got_worse(confirmed):
    assert gates.regressions(confirmed, *gates.QUIET) == []


def test_changes_on_the_noise_of_real_operators_are_found_and_dated(repeats):
    """On the half of the operators that the detectors were not tuned on."""
    found = change_point_rates(noise.labelled(noise.residuals(repeats), "held out", 100))
    assert found.f1 >= 0.77, found
    assert found.precision >= 0.95, found
    assert found.false_series == 0
