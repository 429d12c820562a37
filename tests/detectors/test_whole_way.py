"""What users are told of made lines, the whole way through a database: how much is found, dated, ended, and false."""

from __future__ import annotations

import pytest

from tests.detectors.made_lines import NOISES, false_alarms, slow_downs
from tests.detectors.stories import Version, changes, taken_back, unchanged
from tests.detectors.whole_rates import Alarms, Found, alarms_of, found_of
from tests.detectors.whole_way import Called, Told

pytestmark = pytest.mark.slow

STORY = [Version("v1", 3), Version("v2", 3, {"mm": 1.2}), Version("v3", 3, {"mm": 1.2}), Version("v4", 3)]


def told(*called, steps=(), incidents=()):
    return Told(list(called), dict(steps), list(incidents))


def test_a_story_says_what_changed_in_which_version():
    assert changes(STORY) == {"v1": {}, "v2": {"mm": 1}, "v3": {}, "v4": {"mm": -1}}
    assert changes(unchanged(2, 5)) == {"v01": {}, "v02": {}}


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_a_window_is_full_before_anything_changes(runs):
    import numpy as np

    story = taken_back(np.random.default_rng(0), [f"op{number}" for number in range(9)], 0.1, runs=runs)
    first = next(place for place, version in enumerate(story) if version.slower)
    assert sum(version.runs for version in story[:first]) >= 8
    assert sum(sign > 0 for own in changes(story).values() for sign in own.values()) == 8


def test_a_slow_down_is_found_dated_and_ended_by_its_operator_version_and_direction():
    right = Called("v2", "op", "mm", 1, recovered="v4")
    assert found_of(told(right), STORY) == Found(injected=1, found=1, dated=1, right=1, ended=1, recovered=1)
    late = Called("v3", "op", "mm", 1)
    assert found_of(told(late), STORY) == Found(injected=1, found=1)
    assert found_of(told(late), STORY).misdated == 1
    by_chance = Called("v4", "op", "mm", 1)
    assert found_of(told(by_chance), STORY) == Found(injected=1, wrong=1), "it was over"
    twice = (right, Called("v2", "op_name", "mm", 1, recovered="v4"))
    assert found_of(told(*twice), STORY).right == 1, "an operator and its shapes say one thing"
    assert found_of(told(Called("v2", "op", "add", 1), Called("v2", "run", "step", 1)), STORY).wrong == 1
    assert found_of(told(right), STORY, counted=()).injected == 0


def test_the_rates_of_nothing_are_no_rates():
    assert Found().fdr == 0
    assert Found().recall != Found().recall
    assert (Found(injected=4, found=1) + Found(injected=4, found=3)).recall == 0.5


def test_of_versions_in_which_nothing_changed_everything_is_false():
    said = told(
        Called("v2", "op", "mm", -1), Called("v2", "op_name", "mm", -1), Called("v3", "run", "step", 1),
        steps={"v1": None, "v2": "UNCHANGED", "v3": "REGRESSED"}, incidents=["v2", "v3"],
    )  # fmt: skip
    assert alarms_of(said) == Alarms(versions=3, operators=1, steps=1, verdicts=1, incidents=2)
    assert alarms_of(said, ["v1", "v2"]) == Alarms(versions=2, operators=1, incidents=1)
    assert alarms_of(said).operators_per_20 == pytest.approx(20 / 3)


def test_slow_downs_above_the_noise_are_found_dated_and_ended_and_nothing_else():
    found = slow_downs(NOISES["normal 1 %"], 0.2, runs=3, seeds=range(1))
    assert found == Found(injected=8, found=8, dated=8, right=8, wrong=0, ended=8, recovered=8)


def test_of_versions_of_one_run_they_are_dated_to_the_first_one():
    found = slow_downs(NOISES["normal 1 %"], 0.2, runs=1, seeds=range(1))
    assert (found.recall, found.misdated) == (1.0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("versions", "runs"), [(20, 1), (20, 2), (8, 5)])
def test_little_noise_alone_is_hardly_ever_news_and_never_of_the_step(versions, runs):
    alarms = false_alarms(NOISES["normal 1 %"], versions, runs, seeds=range(1))
    assert (alarms.versions, alarms.steps, alarms.verdicts) == (versions, 0, 0)
    assert alarms.operators_per_20 <= 1, alarms


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "recall"), [(0.1, 0.6), (0.2, 0.8), (0.5, 0.95)])
def test_most_slow_downs_are_found_in_all_kinds_of_noise_and_little_else(ratio, recall):
    found = sum((slow_downs(noise, ratio, runs=3, seeds=range(3)) for noise in NOISES.values()), Found())
    assert found.recall >= recall, found
    # as the judgement alone: of 120 findings one more or less is .008, so the rate of .06 is held by the script's 500
    assert found.fdr <= 0.08, found


@pytest.mark.slow
@pytest.mark.parametrize(("versions", "runs"), [(40, 1), (20, 2), (8, 5)])
def test_noise_alone_is_hardly_ever_news(versions, runs):
    alarms = sum((false_alarms(noise, versions, runs, seeds=range(2)) for noise in NOISES.values()), Alarms())
    assert (alarms.steps, alarms.verdicts) == (0, 0)
    assert alarms.operators_per_20 <= 1, alarms
