"""The class of a bottleneck in words; what is not known is named, and nothing is guessed."""

import pytest
from msgspec.structs import replace

from tests.reports.builders import bottleneck
from tracker.reports.views.bottleneck import sentence as words


@pytest.mark.parametrize(
    ("bound", "loading", "utilisation", "sentence"),
    [
        (
            "input", 0.396, 0.575,
            "input bound: data loading is 39.6 % of the step time (above 5 %), at most that much can be won; the "
            "device works 57.5 % of the step time (below 80 %).",
        ),
        (
            "device", 0.05, 0.91,
            "device bound: the device works 91.0 % of the step time (above 90 %); data loading is 5.0 % of the step "
            "time (not above 5 %).",
        ),
        (
            "mixed", None, 0.8,
            "neither host nor device bound (mixed): the device works 80.0 % of the step time (between 80 % and 90 %). "
            "Missing: data loading (not stated).",
        ),
        (
            None, 0.004, None,
            "not input bound: data loading is 0.4 % of the step time (not above 5 %). Missing: device utilisation "
            "(no device). Only the test for data loading applies.",
        ),
        (None, None, None, "not classified. Missing: data loading (not stated), device utilisation (no device)."),
    ],
)  # fmt: skip
def test_the_class_stands_with_its_numbers_and_thresholds(bound, loading, utilisation, sentence):
    assert words(bottleneck(bound, loading, utilisation)) == sentence


def test_exposed_communication_stands_between_loading_and_device():
    found = replace(bottleneck("communication", None, 0.823), communication_share=0.432, utilisation_of="e2e_ns")
    assert words(found).startswith(
        "communication bound: exposed communication is 43.2 % of E2E (above 10 %); the device works 82.3 % of E2E "
        "(between 80 % and 90 %)."
    )


def test_host_bound_step_names_the_share_of_the_host_first():
    found = replace(
        bottleneck("host", 0.1, 0.396), communication_share=0.172, host_idle_share=0.432, possible_gain_share=0.0
    )
    assert words(found) == (
        "host bound: the device waits for the host in 43.2 % of the step time, and works 39.6 % (below 80 %); data "
        "loading is 10.0 % of the step time, 0.0 % with the device idle (not above 5 %); exposed communication is "
        "17.2 % of the step time (above 10 %)."
    )
    with_data = replace(found, possible_gain_share=0.1)
    assert "waits for the host in 43.2 % of the step time (10.0 % in data loading), and works" in words(with_data)


def test_communication_is_left_out_where_there_is_none():
    assert "communication" not in words(replace(bottleneck("device", None, 0.99), communication_share=0.0))


@pytest.mark.parametrize(
    ("share", "sentence"),
    [
        (0.47, " This leaves out 47.0 % of the capture's E2E, which lies outside of the steps."),
        (0.05, " This leaves out 5.0 % of the capture's E2E, which lies outside of the steps."),
        (0.049, ""),
        (None, ""),
    ],
)
def test_time_outside_the_steps_is_stated_where_it_matters(share, sentence):
    found = replace(bottleneck("device", None, 0.99), outside_steps_share=share)
    assert f").{sentence} Missing: data loading" in words(found)


def test_time_outside_unclassified_steps_is_left_out():
    found = replace(bottleneck(None, None, None), outside_steps_share=0.47)
    assert words(found) == "not classified. Missing: data loading (not stated), device utilisation (no device)."
