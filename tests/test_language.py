"""What the program prints, its help, its docs and its names are in the words of the field, not in a private dialect."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tracker.cli import program

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tracker"
TEXTS = re.compile(
    r"\b(told|tells? of|said of|asked for|anew|whoever|nobody|somebody|goes before|is none of|borne|yardstick"
    r"|deaths)\b",
    re.IGNORECASE,
)
NAMES = {"told", "anew", "whoever", "nobody", "somebody", "borne", "yardstick", "apart", "deaths"}
"""Words that no part of a name is."""
COLUMNS = {"told_by"}
"""Columns of results, whose names scripts of users know."""
NAMES_OF_ROOM = "names of the code, changed when the room is rewritten"
SENTENCE = "a sentence that users know, changed when the room is rewritten"
STORED = "columns of the database, which a migration has to rename"
EXCEPTIONS = {
    "columns.md": STORED,
    "doctor/rules.py": SENTENCE,
    "doctor/runs.py": NAMES_OF_ROOM,
    "doctor/sidecars.py": SENTENCE,
    "hooks/job.py": NAMES_OF_ROOM,
    "intake/at_once.py": NAMES_OF_ROOM,
    "intake/documents.py": NAMES_OF_ROOM,
    "intake/forming.py": NAMES_OF_ROOM,
    "intake/ingesting.py": NAMES_OF_ROOM,
    "intake/job_hosts.py": NAMES_OF_ROOM,
    "intake/packing.py": NAMES_OF_ROOM,
    "intake/pieces.py": NAMES_OF_ROOM,
    "intake/sidecar.py": SENTENCE,
    "notify/composing.py": NAMES_OF_ROOM,
    "notify/enqueueing.py": NAMES_OF_ROOM,
    "notify/life.py": NAMES_OF_ROOM,
    "profile/arrays.py": NAMES_OF_ROOM,
    "profile/documents.py": NAMES_OF_ROOM,
    "profile/operator_names.py": NAMES_OF_ROOM,
    "profile/same_job.py": NAMES_OF_ROOM,
    "readers/__init__.py": SENTENCE,
    "readers/_ascend/clocks.py": NAMES_OF_ROOM,
    "readers/_ascend/trace/assembly.py": NAMES_OF_ROOM,
    "readers/_ascend/trace/collectives.py": NAMES_OF_ROOM,
    "readers/_facts.py": NAMES_OF_ROOM,
    "readers/ascend_db/communication.py": NAMES_OF_ROOM,
    "readers/ascend_db/device.py": NAMES_OF_ROOM,
    "readers/ascend_db/standins.py": NAMES_OF_ROOM,
    "readers/ascend_text/reading.py": NAMES_OF_ROOM,
    "readers/nsys_sqlite/host.py": NAMES_OF_ROOM,
    "readers/pack/checks.py": SENTENCE,
    "readers/paddle_trace/clock.py": NAMES_OF_ROOM,
    "readers/paddle_trace/collector.py": NAMES_OF_ROOM,
    "readers/paddle_trace/reading.py": NAMES_OF_ROOM,
    "readers/training_log/trainer_sessions.py": NAMES_OF_ROOM,
    "reports/plot.py": NAMES_OF_ROOM,
    "reports/views/cluster.py": "the header of told_by, a column whose name scripts of users know",
    "results/findings.py": "ToldFinding, ToldIncident: stored in the outbox, renamed with notify",
    "store/dimensions.py": NAMES_OF_ROOM,
    "store/documents.py": NAMES_OF_ROOM,
    "store/inbox.py": STORED,
    "store/notifications.py": STORED,
    "store/tables/meanings.py": STORED,
    "store/tables/watch.py": STORED,
    "store/views/__init__.py": SENTENCE,
    "store/views/levels.py": SENTENCE,
    "store/watchers.py": STORED,
    "timeline/collective_parts.py": NAMES_OF_ROOM,
    "timeline/communication.py": NAMES_OF_ROOM,
    "timeline/exposure.py": NAMES_OF_ROOM,
    "timeline/wait_tasks.py": NAMES_OF_ROOM,
    "watch/service.py": NAMES_OF_ROOM,
    "watch/take.py": NAMES_OF_ROOM,
    "watch/work.py": NAMES_OF_ROOM,
}
"""File or page -> why it may have such words, as of today. A file that would pass leaves the list."""


SPOKEN = re.compile(r"\b(said|asked)\b")
"""Also not in help and docs: reported, chosen, stated."""


def strings_and_names(path: Path) -> tuple[list[str], set[str]]:
    """The texts of a module that are no docstrings, and the names that it defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts, names = [], set(path.with_suffix("").parts[-1:])
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | documented:
            texts.append(node.value)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return texts, names


def wrong_in(path: Path) -> list[str]:
    texts, names = strings_and_names(path)
    parts = {name: set(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")) for name in names}
    return [text for text in texts if TEXTS.search(text)] + [
        name for name, own in parts.items() if own & NAMES and name not in COLUMNS
    ]


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).as_posix() not in EXCEPTIONS]


def test_modules_use_the_words_of_the_field():
    wrong = {path.relative_to(PACKAGE).as_posix(): found for path in MODULES if (found := wrong_in(path))}
    assert not wrong


def test_no_file_is_excepted_that_would_pass():
    modules = [name for name in EXCEPTIONS if name.endswith(".py")]
    assert [name for name in modules if not wrong_in(PACKAGE / name)] == []
    pages = [name for name in EXCEPTIONS if name.endswith(".md")]
    assert [name for name in pages if not TEXTS.search((ROOT / "docs" / name).read_text(encoding="utf-8"))] == []


def test_help_uses_the_words_of_the_field():
    def texts(command):
        yield command.help or ""
        yield command.short_help or ""
        yield from (each.help or "" for each in command.params)
        for below in getattr(command, "commands", {}).values():
            yield from texts(below)

    assert not [text for text in texts(program()) if TEXTS.search(text) or SPOKEN.search(text)]


@pytest.mark.parametrize("page", ["README.md", *sorted(path.name for path in (ROOT / "docs").glob("*.md"))])
def test_docs_use_the_words_of_the_field(page):
    text = (ROOT / page if page == "README.md" else ROOT / "docs" / page).read_text(encoding="utf-8")
    assert page in EXCEPTIONS or not TEXTS.findall(text) + SPOKEN.findall(text)
