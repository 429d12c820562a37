"""Filters that name nothing: the error names the culprit and what there is."""

from __future__ import annotations

import pytest

from tests.factories import save
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.store import queries


@pytest.fixture
def filled(store):
    save(store, "v1", workload="gpt", device=Device("NVIDIA", "H200"), of_run={"configuration": {"batch": "32"}})
    save(store, "v2", workload="gpt", device=Device("", "cpu"), of_run={"configuration": {"batch": "64"}})
    save(store, "w1", workload="bert", device=Device("", "cpu"))
    return store


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"device": "nope"}, "there is no device 'nope'; there are NVIDIA H200, cpu"),
        ({"workload": "gtp"}, "there is no workload 'gtp'; there are bert, gpt"),
        ({"version": "v3"}, "there is no version 'v3'; there are v1, v2, w1"),
        ({"config": {"batch": "1"}}, "there is no configuration 'batch=1'; there are batch=32, batch=64"),
        ({"config": {"bacth": "32"}}, "there is no configuration 'bacth=32'; there are batch=32, batch=64"),
        # of several filters the wrong one is named, whichever comes first
        ({"workload": "gpt", "device": "nope", "version": "v1"}, "no device 'nope'; there are NVIDIA H200, cpu"),
        ({"workload": "gpt", "device": "cpu", "version": "v3"}, "no version 'v3' of workload 'gpt'; there are v1, v2"),
        # each names something, but not together
        ({"workload": "bert", "device": "h200"}, "there is no device 'h200' of workload 'bert'; there is cpu"),
        ({"workload": "bert", "config": {"batch": "32"}}, "'batch=32' of workload 'bert'; no run has any"),
        ({"workload": "bert", "version": "v1"}, "there is no version 'v1' of workload 'bert'; there is w1"),
        ({"device": "cpu", "config": {"batch": "32"}}, "no configuration 'batch=32' on 'cpu'; there is batch=64"),
    ],
)  # fmt: skip
def test_the_culprit_is_named_with_what_there_is(filled, filters, message):
    with pytest.raises(UsageError) as error:
        queries.check_filters(filled, **filters)
    assert message in str(error.value)


def test_what_names_something_passes_and_an_empty_database_has_nothing_to_check(filled, store):
    queries.check_filters(filled, workload="gpt", device="h200", config={"batch": "32"}, version="v2")
    queries.check_filters(filled, device="NVIDIA")


def test_nothing_is_checked_without_runs(store):
    queries.check_filters(store, workload="gpt", device="cpu")


def test_values_with_blanks_in_them_are_asked_for_whole(store):
    """gpt ran with opt=adam w and batch=32; nobody set opt=adam."""
    save(store, of_run={"configuration": {"opt": "adam w", "batch": "32"}})
    save(store, of_run={"configuration": {"opt": "sgd", "note": "a opt=adam"}})
    lines = queries.tracks(store)
    whole = queries.with_values(store, lines, {"opt": "adam w"})
    assert whole["configuration"].tolist() == ["batch=32 opt=adam w"]
    queries.check_filters(store, workload="gpt", config={"opt": "adam w", "batch": "32"})
    assert not len(queries.with_values(store, lines, {"opt": "adam"}))
    with pytest.raises(UsageError, match="no configuration 'opt=adam'; there are opt=adam w, opt=sgd"):
        queries.check_filters(store, workload="gpt", config={"opt": "adam"})


@pytest.mark.parametrize(
    ("words", "versions"),
    [("", ["w1", "v2", "v1"]), ("GPT", ["v2", "v1"]), ("cpu gpt", ["v2"]), ("batch=?2", ["v1"]), ("bert h200", [])],
)
def test_a_search_of_runs_needs_all_words(filled, words, versions):
    assert queries.runs(filled, search=words).listed("version") == versions


def test_names_of_series_are_those_of_a_kind_or_all(filled):
    every = [*queries.series_names(filled, "bert").rows("kind", "name")]
    of_runs = [*queries.series_names(filled, "bert", "run").rows("kind", "name")]
    assert of_runs == [pair for pair in every if pair[0] == "run"]
    assert 0 < len(of_runs) < len(every)
