"""Every section that can be asked for says something: its rows, or why there are none."""

import pytest

from tests.reports import builders
from tracker.errors import UsageError
from tracker.reports import render
from tracker.results import SECTIONS, Diff, DiffOptions, Shown, ShowOptions


def empty(made: Shown | Diff) -> dict[str, object]:
    """The frames of a result without their rows, but for the breakdown, which is never empty."""
    return {name: getattr(made, name).head(0) for name in made.tables if name != "overall"}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("format", ["text", "markdown"])
def test_a_section_of_a_run_that_is_asked_for_has_rows(section, format):
    nothing = render(builders.shown(), format, only=[section]).replace(" ", "")
    less = render(builders.shown(**empty(builders.shown())), format, only=[section]).replace(" ", "")
    assert "norows" not in nothing
    assert len(less) < len(nothing)


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("format", ["text", "markdown"])
def test_a_section_of_a_run_without_rows_says_why(section, format):
    text = render(builders.shown(**empty(builders.shown())), format, only=[section], width=200)
    assert "no rows: " in text


@pytest.mark.parametrize("section", [section for section in SECTIONS if section != "overall"])
@pytest.mark.parametrize("format", ["text", "markdown"])
def test_a_section_of_a_diff_without_rows_says_why(section, format):
    text = render(builders.diff(**empty(builders.diff())), format, only=[section], width=200)
    assert "no rows: " in text


@pytest.mark.parametrize("section", ["operator", "kernel", "communication"])
def test_filters_are_named_as_a_possible_reason(section):
    of_run = builders.shown(**empty(builders.shown()) | {"options": ShowOptions(op="aten::nothing")})
    assert "the filters let nothing through" in render(of_run, "text", only=[section], width=200)
    of_diff = builders.diff(**empty(builders.diff()) | {"options": DiffOptions(op="aten::nothing")})
    assert "the filters let nothing through" in render(of_diff, "text", only=[section], width=200)
    without = builders.shown(**empty(builders.shown()))
    assert "the filters" not in render(without, "text", only=[section], width=200)


@pytest.mark.parametrize("render", [lambda words: render(builders.shown(), only=words),
                                    lambda words: render(builders.diff(), only=words)])  # fmt: skip
def test_an_unknown_section_names_all_known_ones(render):
    with pytest.raises(UsageError, match=f"no section 'kernels'; choose from {', '.join(SECTIONS)}"):
        render(["kernels"])


def test_kernel_types_of_a_run_have_calls_time_and_share():
    text = render(builders.shown(), "text", only=["kernel_type"], width=140)
    cast = next(line.strip() for line in text.splitlines() if line.strip().startswith("Cast"))
    # 6 of 6 + 2 ms; four calls of 1 to 2 ms
    assert cast.split("  ")[-1] == "2.00 ms" and " 4  6.00 ms  75.0 %  1.50 ms  1.00 ms" in cast
