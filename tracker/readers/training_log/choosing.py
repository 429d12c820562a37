"""Which grammar a log is written in, by its start and its end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tracker.readers._source import GZIP_MAGIC, open_source, read_head
from tracker.readers._text import SNIFF_BYTES, looks_like_text, plain_text, searchable
from tracker.readers.training_log.documents import STATE, document_in
from tracker.readers.training_log.grammar import Grammar, StepLine
from tracker.readers.training_log.grammars import GRAMMARS
from tracker.readers.training_log.paddle import PERF_SUMMARY

_DOCUMENTS: Final = frozenset(
    (
        ".md", ".rst", ".tex", ".html", ".htm", ".ipynb", ".py", ".pyi", ".sh", ".bash", ".c", ".cc", ".cpp", ".cu",
        ".cuh", ".h", ".hpp", ".rs", ".go", ".js", ".ts", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".diff", ".patch",
    )
)  # fmt: skip
"""Ends of names of texts that people write; a log in one of them is an example."""

# known logs that state no times
_WITHOUT_TIMES: Final = (
    ("llm.c", re.compile(rb"^s:\d+ (?:trl|tel):[\d.]+", re.MULTILINE)),
    ("Hugging Face Trainer", STATE),
    ("Hugging Face Trainer", re.compile(rb"^[^\r\n]{0,120}\{'loss': [\d.]+, ", re.MULTILINE)),
)


class ChosenGrammar:
    """A grammar and which of its lines a file has."""

    def __init__(self, grammar: Grammar, line: StepLine, *, is_document: bool = False) -> None:
        self.grammar, self.line, self.is_document = grammar, line, is_document


def is_document_of_people(path: Path) -> bool:
    """Whether the name of a file says that it is a document or a program, in which a log is only quoted."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix in _DOCUMENTS


def choose(path: Path, head: bytes) -> ChosenGrammar | None:
    """Return the grammar of a log by its first MiB and its last; None where none fits."""
    if not looks_like_text(path, head):
        return None
    start = head if len(head) < 4096 else read_head(path, SNIFF_BYTES)
    end = _end_of(path) if len(start) >= SNIFF_BYTES else b""
    if (document := document_in(start, end or start)) is not None:
        return ChosenGrammar(document, document.lines[0], is_document=True)
    return choose_in(start, end)


def choose_in(start: bytes, end: bytes = b"") -> ChosenGrammar | None:
    """Return the grammar of a text by its start and its end."""
    for text in filter(None, (start, end)):
        plain = plain_text(text)
        outside = searchable(plain)
        for grammar in GRAMMARS:
            if grammar.requires is not None and not (
                grammar.requires.search(plain) or grammar.requires.search(plain_text(end))
            ):
                continue
            for line in grammar.lines:
                if line.occurs_in(outside):
                    return ChosenGrammar(grammar, line)
        if PERF_SUMMARY.search(outside):
            paddle = next(grammar for grammar in GRAMMARS if grammar.parse is not None)
            return ChosenGrammar(paddle, paddle.lines[0])
    return None


def why_not_read(path: Path, head: bytes) -> str:
    """Return why a text is not read although it has to do with a training log; "" where it has not."""
    if is_document_of_people(path):
        if choose(path, head) is None:
            return ""
        return "a document with lines of a training log; --input-format training_log reads them"
    framework = framework_without_times(path, head)
    return f"a training log of {framework} with no times in it" if framework else ""


def framework_without_times(path: Path, head: bytes) -> str:
    """Return the framework of a log that states no times; "" for any other file."""
    if not looks_like_text(path, head):
        return ""
    plain = plain_text(head if len(head) < 4096 else read_head(path, SNIFF_BYTES))
    return next((name for name, pattern in _WITHOUT_TIMES if pattern.search(plain)), "")


def _end_of(path: Path) -> bytes:
    """Return the last MiB of a file; nothing of one that is compressed."""
    with open_source(path) as file:
        if file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
            return b""
        size = file.seek(0, 2)
        file.seek(max(0, size - SNIFF_BYTES))
        text = file.read(SNIFF_BYTES)
    return text[text.find(b"\n") + 1 :]
