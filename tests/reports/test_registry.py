"""The door of the reports: names, wishes, and what it costs to import them."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.reports import builders
from tracker import reports
from tracker.errors import UsageError
from tracker.results import DIFF_COLUMNS, SECTIONS

SHOWING = reports.able("show")
WITHOUT_TREE = [format for format in reports.NAMES if format != "speedscope"]


@pytest.mark.parametrize("format", reports.NAMES)
def test_every_format_has_title_suffix_and_documents(format):
    kind = bytes if format == "xlsx" else str
    assert isinstance(reports.render(builders.diff_with_tree(), format), kind)
    if format in SHOWING:
        assert isinstance(reports.render(builders.shown_with_tree(), format), kind)
    assert reports.title(format) and reports.suffix(format).startswith(".")


def test_names_are_sorted_and_are_the_modules_of_the_folder():
    folder = Path(reports.__file__).parent
    modules = sorted(path.stem for path in folder.glob("*.py") if "\nSUFFIX = " in path.read_text(encoding="utf-8"))
    assert list(reports.NAMES) == modules


def test_unknown_format_names_the_known_ones():
    with pytest.raises(
        UsageError, match="choose one of csv, github, html, json, junit, markdown, prometheus, speedscope, text, xlsx"
    ):
        reports.render(builders.diff(), "pdf")


@pytest.mark.parametrize("format", sorted(set(reports.NAMES) - set(SHOWING)))
def test_a_format_of_build_systems_says_what_it_is_for(format):
    message = f"{format} is for diff and findings; choose another --format: csv, html, json, markdown, speedscope"
    with pytest.raises(UsageError, match=message):
        reports.render(builders.shown(), format)


def test_negative_limit_is_refused():
    with pytest.raises(UsageError, match="-1 rows per table; give a limit"):
        reports.render(builders.diff(), "text", limit=-1)


def test_importing_the_registry_loads_no_heavy_library():
    code = (
        "import sys, tracker.reports; "
        "assert not {'pandas', 'numpy', 'rich', 'openpyxl'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(reports.__file__).parents[2])


@pytest.mark.slow
@pytest.mark.parametrize("format", WITHOUT_TREE)
@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_can_be_chosen_alone_even_without_rows(format, section):
    empty = builders.diff()
    empty = builders.diff(**{name: getattr(empty, name).head(0) for name in DIFF_COLUMNS})
    nothing = builders.shown()
    nothing = builders.shown(**{name: getattr(nothing, name).head(0) for name in builders.SHOWN_TABLES})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reports.render(empty, format, only=[section])
        if format in SHOWING:
            assert reports.render(nothing, format, only=[section])
