"""What a stranger relies on: a README of one page, and pandas only where frames leave or enter the program."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = sorted((ROOT / "tracker").rglob("*.py"))

README_BYTES = 12_000
SHARED_CLASS_NAMES = 56
FILES_THAT_IMPORT_PANDAS = 7


def test_readme_stays_one_page():
    assert (ROOT / "README.md").stat().st_size <= README_BYTES


def test_no_more_classes_share_a_name():
    names = Counter(
        node.name
        for path in PRODUCT
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert sum(count > 1 for count in names.values()) <= SHARED_CLASS_NAMES


def test_no_more_files_import_pandas():
    importing = [path for path in PRODUCT if "import pandas" in path.read_text(encoding="utf-8")]
    assert len(importing) <= FILES_THAT_IMPORT_PANDAS
