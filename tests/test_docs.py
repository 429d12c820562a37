"""README.md is true: its tables come from the code, and its commands print what stands below them."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tracker.profile import ROW_COLUMNS
from tracker.store.tables import metadata
from tracker.store.tables.meanings import MEANINGS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def write_docs():
    specification = spec_from_file_location("write_docs", ROOT / "scripts" / "write_docs.py")
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["commands", "readers", "reports", "json", "dictionary"])
def test_generated_section_is_up_to_date(write_docs, name):
    section = re.search(rf"<!-- begin {name} -->\n(.*?)\n<!-- end {name} -->", README, re.DOTALL)
    assert section, f"README.md has no section {name}"
    assert section[1] == write_docs.SECTIONS[name](), "run scripts/write_docs.py"


def test_every_generated_section_is_in_the_readme(write_docs):
    assert re.findall(r"<!-- begin (\w+) -->", README) == re.findall(r"<!-- end (\w+) -->", README)
    assert sorted(re.findall(r"<!-- begin (\w+) -->", README)) == sorted(write_docs.SECTIONS)


def test_commands_print_what_the_readme_shows(write_docs, tmp_path):
    """The blocks build on each other, so they are played in order on one database."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        assert block == write_docs.played(block, tmp_path), "run scripts/write_docs.py"


def test_python_example_runs(write_docs, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "aten::mul" in out and "finding_id" in out


def test_every_column_has_a_meaning_and_every_meaning_a_column():
    used = set()
    for table in metadata.sorted_tables:
        for column in table.columns:
            name = f"{table.name}.{column.name}" if f"{table.name}.{column.name}" in MEANINGS else column.name
            assert name in MEANINGS, f"{table.name}.{column.name} has no meaning in tracker/store/tables/meanings.py"
            used.add(name)
    assert set(MEANINGS) == used


@pytest.mark.parametrize("table", [name for name in ROW_COLUMNS if name != "op_tree"])  # which is stored as one value
def test_every_column_of_the_contract_is_in_the_data_dictionary(table):
    columns = {column.name.removesuffix("_id") for column in metadata.tables[table].columns}
    assert set(ROW_COLUMNS[table]) - {"group_role", "group_size"} <= columns


def test_every_file_that_the_readme_names_exists():
    for path in re.findall(r"`((?:tracker|tests|scripts|migrations)/[\w./]+)`", README):
        assert (ROOT / path.rstrip("/")).exists() or "NAME" in path, path


def test_readme_names_no_private_place():
    assert not re.search(r"/work\b", README)
    assert sys.prefix not in README
