"""Whole documents against golden files: a lost section, column or row fails here."""

import pytest

from tests.reports import builders, workbooks
from tracker import reports
from tracker.results import SECTIONS

SUFFIXES = {"json": "json", "csv": "csv", "markdown": "md"}


@pytest.mark.parametrize("width", [80, 140])
def test_text_of_a_diff_is_the_golden_one(golden, width):
    golden(f"diff_{width}.txt", reports.render(builders.diff(), "text", width=width))


@pytest.mark.parametrize("width", [80, 140])
def test_text_of_a_run_is_the_golden_one(golden, width):
    golden(f"show_{width}.txt", reports.render(builders.shown(), "text", width=width))


def test_text_of_all_sections_is_the_golden_one(golden):
    only = SECTIONS
    golden("diff_all_sections.txt", reports.render(builders.diff(), "text", only=only, width=120))


@pytest.mark.parametrize("format", sorted(SUFFIXES))
def test_document_of_a_diff_is_the_golden_one(golden, format):
    golden(f"diff.{SUFFIXES[format]}", reports.render(builders.diff(), format))


@pytest.mark.parametrize("format", sorted(SUFFIXES))
def test_document_of_a_run_is_the_golden_one(golden, format):
    golden(f"show.{SUFFIXES[format]}", reports.render(builders.shown(), format))


def test_workbook_of_a_diff_is_the_golden_one(golden):
    golden("diff.xlsx.txt", workbooks.dump(reports.render(builders.diff(), "xlsx")))


def test_workbook_of_a_run_is_the_golden_one(golden):
    golden("show.xlsx.txt", workbooks.dump(reports.render(builders.shown(), "xlsx")))


@pytest.mark.parametrize("format", ["text", *sorted(SUFFIXES)])
def test_document_of_the_tree_of_a_run_is_the_golden_one(golden, format):
    golden(f"show_tree.{SUFFIXES.get(format, 'txt')}", reports.render(builders.shown_with_tree(), format))


@pytest.mark.parametrize("format", ["text", *sorted(SUFFIXES)])
def test_document_of_the_tree_of_a_diff_is_the_golden_one(golden, format):
    golden(f"diff_tree.{SUFFIXES.get(format, 'txt')}", reports.render(builders.diff_with_tree(), format))


def test_workbooks_of_trees_are_the_golden_ones(golden):
    golden("show_tree.xlsx.txt", workbooks.dump(reports.render(builders.shown_with_tree(), "xlsx")))
    golden("diff_tree.xlsx.txt", workbooks.dump(reports.render(builders.diff_with_tree(), "xlsx")))


@pytest.mark.parametrize("format", ["text", *sorted(SUFFIXES)])
def test_document_of_a_diff_with_verdicts_is_the_golden_one(golden, format):
    golden(f"diff_judged.{SUFFIXES.get(format, 'txt')}", reports.render(builders.judged(), format))


@pytest.mark.parametrize("format", ["junit", "github", "prometheus"])
def test_document_for_a_build_system_is_the_golden_one(golden, format):
    golden(f"diff_judged{reports.suffix(format)}", reports.render(builders.judged(), format))
    golden(f"findings{reports.suffix(format)}", reports.render(builders.findings(), format))


@pytest.mark.parametrize("format", ["text", *sorted(SUFFIXES)])
def test_document_of_findings_is_the_golden_one(golden, format):
    golden(f"findings.{SUFFIXES.get(format, 'txt')}", reports.render(builders.findings(), format))


def test_workbook_of_a_diff_with_verdicts_is_the_golden_one(golden):
    golden("diff_judged.xlsx.txt", workbooks.dump(reports.render(builders.judged(), "xlsx")))
