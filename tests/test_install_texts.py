"""On the package index the name tracker is another project's: no text tells a user to install it from there by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracker.errors import HOW_TO_INSTALL

ROOT = Path(__file__).parents[1]
KINDS = {".py", ".pyi", ".md", ".sh", ".yml", ".toml", ".sql", ".txt", ""}
BY_NAME = re.compile(
    r"\b(?:pipx?|pip3|uv|conda|mamba|poetry)\s+(?:tool\s+|pip\s+)?(?:install|add|run)(?:\s+-[\w-]+)*\s+['\"]?tracker\b"
    r"(?![-/.]\w)|\buvx\s+tracker\b"
)
SPLIT = re.compile(r"[\"']\s*\n\s*f?[\"']")  # of one text that the source has on two lines


def texts():
    places = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "pyproject.toml", *(ROOT / ".ci").glob("*")]
    places += [path for name in ("docs", "tracker", "scripts", "migrations") for path in (ROOT / name).rglob("*")]
    return [path for path in places if path.is_file() and path.suffix in KINDS]


def installs_by_name(text):
    return BY_NAME.findall(SPLIT.sub("", text))


@pytest.mark.parametrize(
    "text",
    ["pip install tracker", "pip install 'tracker[dask]'", "pip install --upgrade tracker", "uv tool install tracker",
     'remedy="pip install "\n    "tracker"', "uvx tracker demo"],
)  # fmt: skip
def test_install_by_name_is_found(text):
    assert installs_by_name(text)


@pytest.mark.parametrize("text", [HOW_TO_INSTALL, "pip install .", "pip install tracker-0.1.0-py3-none-any.whl"])
def test_install_from_clone_or_wheel_is_allowed(text):
    assert not installs_by_name(text)


def test_no_text_installs_tracker_by_name():
    found = texts()
    assert len(found) > 400
    assert [path.relative_to(ROOT) for path in found if installs_by_name(path.read_text(errors="replace"))] == []
