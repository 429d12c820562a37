"""README.md and docs/ are true: generated pages are up to date, and what the pages name exists."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tracker.cli import program
from tracker.config.entries import read as read_settings
from tracker.profile import ROW_COLUMNS
from tracker.store.tables import metadata
from tracker.store.tables.meanings import DECLARED_MEANINGS, MEANINGS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TRANSLATIONS = sorted((ROOT / "docs" / "zh").glob("*.md"))
MOST_BYTES_OF_README = 12_000
TO_READ = (
    "start", "compare", "every-morning", "cluster", "advice", "record", "team", "judging", "limits",
)  # fmt: skip
"""The pages of docs/ that are read from top to bottom; all others are for looking up."""
MOST_WORDS_OF_A_PAGE = 1_600
MOST_WORDS_TO_READ = 12_000
TRANSLATED = re.compile(r"\A<!-- Translated from (\S+) \((\w+)\) -->\n")
"""The first line of a translation: the page, and the digest of what was written by hand in it then."""
MOST_BYTES_OF_A_PICTURE = 200_000
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OF_OTHER_PROGRAMS = {"--seed"}
"""Options that stand in the text by themselves and are not those of a command of tracker."""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    return FENCE.sub("", text_of(page))


def blocks_of(page: Path, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(text_of(page)) if language in languages]


@cache
def script(name: str):
    specification = spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def write_docs():
    return script("write_docs")


def test_pages_are_up_to_date(write_docs):
    """One test for all: most pages start with the database that one of them fills."""
    stale = [page for page in write_docs.all_pages() if write_docs.written(page) != text_of(ROOT / page)]
    assert not stale, "run scripts/write_docs.py"


def test_every_generated_section_stands_on_one_page(write_docs):
    text = "\n".join(map(prose_of, PAGES))
    names = re.findall(r"^<!-- begin (\w+) -->$", text, re.MULTILINE)
    assert sorted(names) == sorted(write_docs.SECTIONS)
    assert re.findall(r"^<!-- end (\w+) -->$", text, re.MULTILINE) == names


@pytest.mark.parametrize("page", ["README.md", "docs/zh/README.md"])
def test_speed_in_a_sentence_is_that_of_the_table(write_docs, page):
    """Such as 1.3 s for 1.34 in docs/operate.md; the table of the README is written from there."""
    newest = write_docs.measurements()[0][0]
    assert newest["tool"].endswith(": ingest") and newest["trace"] == "501 MB"
    (sentence,) = (line for line in text_of(ROOT / page).splitlines() if "501 MB" in line and line.startswith("- **"))
    assert re.findall(r"([\d.]+) (s|MB)\b", sentence.partition("501 MB")[2]) == [
        (f"{float(newest['s']):.1f}", "s"),
        (newest["peak MB"], "MB"),
    ]


def test_multiples_of_the_readme_are_quotients_of_two_rows(write_docs):
    """HolisticTraceAnalysis: 27.89 s beside 1.34 s, and 1,996 MB beside 174 MB, of one table."""
    (row,) = (line for line in write_docs.speed().splitlines() if "HolisticTraceAnalysis" in line)
    assert [cell.strip() for cell in row.split("|")][3:5] == ["20.8 x", "11.5 x"]
    assert (round(27.89 / 1.34, 1), round(1996 / 174, 1)) == (20.8, 11.5)


def test_readme_stays_one_page():
    assert (ROOT / "README.md").stat().st_size <= MOST_BYTES_OF_README


def test_pages_to_read_stay_short():
    words = {name: len(text_of(ROOT / "docs" / f"{name}.md").split()) for name in TO_READ}
    assert {name: count for name, count in words.items() if count > MOST_WORDS_OF_A_PAGE} == {}
    assert sum(words.values()) <= MOST_WORDS_TO_READ


# ---- translations ----


def digest_by_hand(text: str) -> str:
    """The digest of a page without what scripts/write_docs.py writes into it: outputs of commands, sections; and
    without its line breaks.
    """
    commands = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    text = commands.sub(lambda block: "\n".join(re.findall(r"^\$ .*$", block[1], re.MULTILINE)), text)
    text = re.sub(r"^<!-- begin (\w+) -->$.*?^<!-- end \1 -->$", "", text, flags=re.DOTALL | re.MULTILINE)
    return sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def test_digest_is_of_what_is_written_by_hand():
    page = "Compare:\n```console\n$ tracker diff v1 v2\n{output}\n```\n"
    assert digest_by_hand(page.format(output="+2 %")) == digest_by_hand(page.format(output="+3 %"))
    assert digest_by_hand(page.replace("Compare", "Look")) != digest_by_hand(page)


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: page.name)
def test_translation_is_of_the_page_as_it_is(page):
    """Where the English page has changed, translate what changed, then put its digest into the first line."""
    original, digest = TRANSLATED.match(text_of(page)).groups()
    assert digest == digest_by_hand(text_of(ROOT / original)), f"{original} has changed since {page.name} was made"


# ---- pictures ----


def test_pictures_are_used_and_small():
    pattern = re.compile(r"!\[.+?\]\(([^)]+)\)")
    names = {(page.parent / name).resolve() for page in PAGES for name in pattern.findall(text_of(page))}
    assert names == set((ROOT / "docs" / "images").iterdir())
    assert max(path.stat().st_size for path in names) <= MOST_BYTES_OF_A_PICTURE


def test_drawings_are_up_to_date():
    pictures = script("write_pictures")
    assert all(text_of(pictures.IMAGES / name) == make() for name, make in pictures.DRAWINGS.items())


# ---- links ----


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_relative_link_resolves(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        place = (page.parent / name).resolve() if name else page
        assert place.is_file(), target
        assert place.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors_of(place), target


def test_every_page_is_linked_from_another_one():
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page))
        if target.partition("#")[0]
    }
    assert not set(PAGES) - linked - {ROOT / "README.md"}


# ---- commands, options, files ----


def command_tree(command, path=("tracker",)):
    yield path, {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for name, below in getattr(command, "commands", {}).items():
        yield from command_tree(below, (*path, name))


COMMANDS = dict(command_tree(program()))
OPTIONS = set().union(*COMMANDS.values()) | {"--help", "-h"}


def unknown_words(line: str) -> list[str]:
    """The commands and options of tracker in a line of code that do not exist."""
    unknown = []
    line = re.sub(r"\s# .*|\$\([^)]*\)", "", line)
    for call in re.findall(r"(?:^ *|[$;|&·({:-] *|\b(?:do|exec|see) )tracker ([a-z-].*)", line):
        words = [word.strip("\"'`,.()") for word in re.split(r" [|·] | -- |;|&&|\)|\bor\b", call)[0].split()]
        path = ("tracker",)
        while words and (*path, words[0]) in COMMANDS:
            path = (*path, words.pop(0))
        if path == ("tracker",) and not words[0].startswith("-"):
            unknown.append(f"tracker {words[0]}")
        names = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        unknown += [f"{' '.join(path)} {name}" for name in names - COMMANDS[path] - {"--help", "-h"}]
    return unknown


def test_unknown_commands_and_options_are_found():
    assert unknown_words("$ tracker diff v1 v2 --only overall | tail -n 1") == []
    assert unknown_words("for run in 1 2; do tracker run --profiles p -- python train.py --epochs 1; done") == []
    assert unknown_words("see tracker frobnicate") == ["tracker frobnicate"]
    assert unknown_words("tracker runs edit 4 --colour=red") == ["tracker runs edit --colour"]


@every_page
def test_every_command_and_option_exists(page):
    if page.name == "commands.md":
        return  # it is the help itself
    spans = re.findall(r"`([^`\n]+)`", prose_of(page))
    indented = re.findall(r"^    (.*)$", prose_of(page), re.MULTILINE)
    fenced = "\n".join(blocks_of(page, "console", "sh", "yaml", "ini")).splitlines()
    assert [word for line in (*spans, *indented, *fenced) for word in unknown_words(line)] == []
    alone = {name for span in spans if span.startswith("-") for name in re.findall(r"(?:^| )(--?[a-z][\w-]*)", span)}
    assert alone <= OPTIONS | OF_OTHER_PROGRAMS


@every_page
def test_every_file_that_is_named_exists(page):
    for path in re.findall(r"`((?:tracker|tests|scripts|migrations|docs)/[\w./]+)`", text_of(page)):
        assert (ROOT / path).exists() or "NAME" in path or path == "tracker/spool", path


@every_page
def test_no_private_place_is_named(page):
    assert not re.search(r"(?<![\w.}])/(?:work|root|home|tmp)\b", text_of(page))
    assert sys.prefix not in text_of(page)


# ---- examples ----


@every_page
def test_python_examples_are_python(page):
    for block in blocks_of(page, "python"):
        ast.parse(block)


@every_page
def test_settings_examples_are_settings(page, tmp_path):
    for block in blocks_of(page, "toml"):
        path = tmp_path / "tracker.toml"
        path.write_text(block)
        read_settings(path)


def test_python_example_runs(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (example,) = blocks_of(ROOT / "docs" / "python.md", "python")
    exec(compile(example, "python.md", "exec"), {})
    out = capsys.readouterr().out
    assert "aten::mul" in out
    assert "finding_id" in out


# ---- the data dictionary ----


def test_every_column_has_a_meaning_and_every_meaning_a_column():
    used = set()
    for table in metadata.sorted_tables:
        for column in table.columns:
            if (table.name, column.name) in DECLARED_MEANINGS:
                continue
            name = f"{table.name}.{column.name}" if f"{table.name}.{column.name}" in MEANINGS else column.name
            assert name in MEANINGS, f"{table.name}.{column.name} has no meaning in tracker/store/tables/meanings.py"
            used.add(name)
    assert set(MEANINGS) == used


@pytest.mark.parametrize("table", [name for name in ROW_COLUMNS if name != "op_tree"])  # which is stored as one value
def test_every_column_of_the_contract_is_in_the_data_dictionary(table):
    columns = {column.name.removesuffix("_id") for column in metadata.tables[table].columns}
    assert set(ROW_COLUMNS[table]) - {"group_role", "group_size"} <= columns
