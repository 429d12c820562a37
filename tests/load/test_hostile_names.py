"""Names from traces never act: not in SQL, not in a spreadsheet, not as HTML, not on a terminal."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from xml.etree import ElementTree

import openpyxl
import pytest
from sqlalchemy import inspect, text

from tests.cli.conftest import tracker  # noqa: F401 the fixture
from tests.readers import traces
from tracker.store import health, queries

FORMULAS = ("=cmd|' /C calc'!A0", "+1+cmd|' /C calc'!A0", "-1+cmd|' /C calc'!A0", "@SUM(1+1)*cmd|' /C calc'!A0")
SQL = "'; DROP TABLE run; --"
HTML = '<script>alert("x")</script><img src=x onerror=alert(1)>'
SHELL = "$(touch pwned) `touch pwned`"
TERMINAL = "\x1b[31mred\x1b]0;title\x07"
NAMES = (*FORMULAS, SQL, HTML, SHELL, TERMINAL)
VERSION, WORKLOAD, NOTE = "=v1'; DROP TABLE version; --", "<b>@gpt</b>", "=1+1<script>"


def profile(folder, factor):
    """Every name is an op, a kernel, a module and a thread."""
    events = []
    for number, name in enumerate(NAMES):
        at = 1000 * number
        module = f"nn.Module: {name}"
        events += [
            traces.op(module, at, 900, cat="python_function"),
            traces.op(name, at + 10, 500),
            traces.launch(number + 1, at + 20),
            traces.kernel(name, at + 100, 100 * factor, number + 1),
            {"ph": "M", "name": "thread_name", "pid": 100, "tid": number, "args": {"name": name}},
        ]
    folder.mkdir()
    return traces.write(folder, events)


@pytest.fixture
def filled(tracker, store, database_url, tmp_path):  # noqa: F811
    for version, factor in ((VERSION, 1), (f"{VERSION}2", 3)):
        path = profile(tmp_path / str(factor), factor)
        words = ("--version", version, "--workload", WORKLOAD, "--note", NOTE, "--db", database_url)
        assert tracker("ingest", path, *words).code == 0

    def diff(form):
        target = tmp_path / f"diff.{form}"
        words = ("--workload", WORKLOAD, "--format", form, "-o", target, "--db", database_url)
        done = tracker("diff", VERSION, f"{VERSION}2", *words)
        assert done.code == 0, done.err
        return target.read_bytes()

    return diff


def test_tables_are_unharmed_and_hold_the_names_as_they_are(filled, store, tmp_path):
    assert health.check(store) == []
    assert {"run", "version"} <= set(inspect(store.engine).get_table_names())
    with store.connect() as connection:
        known = set(connection.execute(text("SELECT name FROM kernel_key")).scalars())
    assert known == set(NAMES)
    assert sorted(queries.versions(store).frame["version"]) == [VERSION, f"{VERSION}2"]
    assert not list(tmp_path.rglob("pwned"))


def test_workbook_holds_no_formula_but_its_own_text(filled):
    book = openpyxl.load_workbook(io.BytesIO(filled("xlsx")))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} <= {"s", "n", "b"}
    assert any(FORMULAS[0] in str(cell.value) for cell in cells)


def test_csv_disarms_formulas(filled):
    rows = list(csv.reader(io.StringIO(filled("csv").decode())))
    cells = [cell for row in rows for cell in row]
    assert any(FORMULAS[0] in cell for cell in cells)
    assert [cell for cell in cells if re.match(r"[=+@\t\r]|-(?![\d.])", cell)] == []
    assert not any(cell in FORMULAS for cell in cells)


def test_markdown_shows_html_as_text(filled):
    document = filled("markdown").decode()
    outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", document)
    assert "<script" not in outside_code
    assert "<img" not in outside_code
    assert "<b>" not in outside_code
    assert "alert" in html.unescape(document)


def test_json_holds_the_names_as_they_are(filled):
    document = json.dumps(json.loads(filled("json")))
    assert all(json.dumps(name)[1:-1] in document for name in NAMES)


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "github", "junit", "prometheus", "json"])
def test_nothing_acts_on_a_terminal(filled, form):
    assert b"\x1b" not in filled(form)
    assert b"\x07" not in filled(form)


def test_junit_is_xml_without_elements_of_a_name(filled):
    names = {element.tag for element in ElementTree.fromstring(filled("junit")).iter()}
    assert names <= {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "skipped",
        "system-out",
        "properties",
        "property",
    }


def test_annotations_and_metrics_are_lines_of_their_kinds(filled):
    for line in filled("github").decode().splitlines():
        assert line.startswith("::") or "::" not in line[:2]
    for line in filled("prometheus").decode().splitlines():
        assert re.fullmatch(
            r'#.*|[a-zA-Z_:][\w:]*(\{([a-z_]+="([^"\\]|\\["\\n])*",?)*\})? [-+.\deEInfNa]+( \d+)?', line
        ), line
