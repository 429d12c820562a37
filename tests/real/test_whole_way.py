"""Real runs the whole way, as users are told of them: repeats as versions, and the labelled training night by night."""

from __future__ import annotations

import pytest

from tests.detectors.stories import changes
from tests.detectors.whole_rates import Found
from tests.real import data, whole_way
from tests.real.gates import INJECTED, LABELS, nightly_versions
from tests.real.nights import CODES, as_versions, made_story, nights

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def grown():
    return nights(nightly_versions(data.path("torch_cpu/nightly_gpt")))


@pytest.fixture(scope="module")
def days():
    data.path("torch_cpu/repeats_gpt")
    return whole_way.same_code(data.folder() / "torch_cpu")


@pytest.mark.parametrize("version", LABELS)
def test_each_labelled_change_is_told_in_its_version_and_ends_in_the_one_that_takes_it_back(grown, version):
    assert grown.missed(version) == []
    assert grown.not_recovered(version) == []


def test_labelled_changes_of_the_step_are_its_verdicts(grown):
    # +7 ms of v10: all operators of its runs are 5 % slower, and the copies explain a fifth: the machine, for all the
    # rule can tell
    assert grown.wrong_steps == ["v10 DRIFT"]


def test_nothing_is_told_of_versions_in_which_nothing_changed(grown):
    alarms = grown.alarms
    assert (alarms.operators, alarms.steps, alarms.verdicts, alarms.incidents) == (0, 0, 0, 0)
    assert grown.incidents_taken_back == []


def test_findings_of_each_night_end_as_it_is_labelled(grown):
    assert set(grown.gates) == {"v01", *CODES}
    assert grown.wrong_codes("findings") == []
    assert grown.blocked == []


def test_diffs_of_each_night_end_as_it_is_labelled(grown):
    assert grown.wrong_codes("diff") == []


def test_repeats_as_versions_of_five_runs_are_no_news(days):
    alarms = whole_way.false_alarms(days, 8, 5)
    assert (alarms.operators, alarms.steps, alarms.verdicts, alarms.incidents) == (0, 0, 0, 0)


@pytest.mark.parametrize(("versions", "runs"), [(40, 1), (20, 2)])
def test_repeats_as_versions_are_hardly_ever_news_and_never_of_the_step(days, versions, runs):
    alarms = whole_way.false_alarms(days, versions, runs, seeds=(None, 1, 2, 3))
    assert (alarms.steps, alarms.verdicts) == (0, 0)
    assert alarms.operators_per_20 <= 1, alarms


def test_large_slow_downs_of_real_operators_are_found_and_dated(days):
    found = whole_way.slow_downs(days, 0.5, runs=3, seeds=range(1))
    assert found.recall >= 0.9, found
    assert found.misdated == 0, found


def test_most_slow_downs_of_real_operators_are_found_and_little_else(days):
    found = {ratio: whole_way.slow_downs(days, ratio, runs=3, seeds=range(8)) for ratio in (0.1, 0.2, 0.5)}
    assert [found[ratio].recall >= least for ratio, least in ((0.1, 0.4), (0.2, 0.8), (0.5, 0.9))] == [True] * 3, found
    whole = sum(found.values(), Found())
    assert whole.fdr <= 0.08, whole  # .05 is borne; of some 150 findings
    assert whole.misdated <= 0.05 * whole.found, whole


def test_the_runs_of_a_made_series_are_told_apart_by_version():
    story = made_story()
    assert [version.runs for version in story] == [3, 3, 3, 3, 4, 4, 4, 4]
    assert changes(story)["v05"] == changes(story)["v07"] == dict.fromkeys(INJECTED, 1)
    assert as_versions(story, list(range(28)))["v08"] == [24, 25, 26, 27]
