"""Which grammar a log is written in, by its start and its end."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Final

from tracker.readers._source import GZIP_MAGIC, open_source, read_head
from tracker.readers._text import SNIFF_BYTES, begins_json, looks_like_text, plain_text, searchable
from tracker.readers.training_log.documents import STATE, document_in, is_summary_alone
from tracker.readers.training_log.grammar import Grammar, StepLine
from tracker.readers.training_log.grammars import GRAMMARS
from tracker.readers.training_log.paddle import PERF_SUMMARY
from tracker.readers.training_log.text_lines import line_around
from tracker.readers.training_log.trainer_sessions import UNKNOWN_STEPS

NO_TIMES: Final = "with no times in it"
WITH_TIMES: Final = "give a log that prints the time or the throughput of its steps"
"""What is wrong with a log that no format can read, and what helps."""
_DOCUMENTS: Final = frozenset(
    (
        ".md", ".rst", ".tex", ".html", ".htm", ".ipynb", ".py", ".pyi", ".sh", ".bash", ".c", ".cc", ".cpp", ".cu",
        ".cuh", ".h", ".hpp", ".rs", ".go", ".js", ".ts", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".diff", ".patch",
    )
)  # fmt: skip
"""Ends of names of texts that people write; a log in one of them is an example."""

# known logs that state no times of single steps
_MEAN_RATE: Final = re.compile(rb"\{'loss': [^{}\r\n]*'throughput': '?\d")
_WITHOUT_TIMES: Final = (
    ("LLaMA-Factory", _MEAN_RATE),
    ("llm.c", re.compile(rb"^s:\d+ (?:trl|tel):[\d.]+", re.MULTILINE)),
    ("Hugging Face Trainer", STATE),
    ("Hugging Face Trainer", re.compile(rb"^[^\r\n]{0,120}\{'loss': '?[\d.]+'?, ", re.MULTILINE)),
    ("MindSpore", re.compile(rb"\bepoch: \d+ step: \d+, loss is [\d.]+")),
    ("DeepSpeed", re.compile(rb"\bstep=\d+, skipped=\d+, lr=\[")),
)
_HEAD_BYTES: Final = 4096
"""`read_head` gives so many bytes unless it is asked for more: a shorter head is the whole file."""
_LINES_PARSED: Final = 1000
_FEWEST_STEPS: Final = 3
"""So many lines with the number of a step, but without a time, are no sentence that happens to look like one."""
_LONG_LITERAL: Final = 6
"""A head that begins with a shorter text stands in other texts too, as `step:` does."""


class ChosenGrammar:
    """A grammar and which of its lines a file has. `guess`: what is read of them where no grammar fits the file."""

    def __init__(self, grammar: Grammar, line: StepLine, *, is_document: bool = False, guess: str = "") -> None:
        self.grammar, self.line, self.is_document, self.guess = grammar, line, is_document, guess


def is_document_of_people(path: Path) -> bool:
    """Whether the name of a file says that it is a document or a program, in which a log is only quoted."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix in _DOCUMENTS


def choose(path: Path, head: bytes) -> ChosenGrammar | None:
    """Return the grammar of a log by its first MiB and its last; None where none fits."""
    if not looks_like_text(path, head):
        return None
    start = head if len(head) < _HEAD_BYTES else read_head(path, SNIFF_BYTES)
    end = _end_of(path) if len(start) >= SNIFF_BYTES else b""
    if (document := document_in(start, end or start)) is not None:
        return ChosenGrammar(document, document.lines[0], is_document=True)
    return choose_in(start, end)


def choose_by_repetition(path: Path, head: bytes) -> ChosenGrammar | None:
    """Return a grammar for the lines that repeat at the start and the end of a log that no grammar fits."""
    from tracker.readers.training_log.guessing import guess_in

    if not looks_like_text(path, head) or begins_json(head):
        return None
    start = head if len(head) < _HEAD_BYTES else read_head(path, SNIFF_BYTES)
    end = _end_of(path) if len(start) >= SNIFF_BYTES else b""
    guess = guess_in(start, end)
    return None if guess is None else ChosenGrammar(guess.grammar, guess.grammar.lines[0], guess=guess.words)


def choose_in(start: bytes, end: bytes = b"") -> ChosenGrammar | None:
    """Return the grammar of a text by its start and its end."""
    for text in filter(None, (start, end)):
        plain = plain_text(text)
        outside = searchable(plain)
        for grammar in _possible_grammars(plain, plain_text(end)):
            for line in grammar.lines:
                if line.occurs_in(outside) and _says_something(grammar, line, outside):
                    return ChosenGrammar(grammar, line)
        if PERF_SUMMARY.search(outside):
            paddle = next(grammar for grammar in GRAMMARS if grammar.parse is not None)
            return ChosenGrammar(paddle, paddle.lines[0])
    return None


def _says_something(grammar: Grammar, line: StepLine, text: bytes) -> bool:
    """Whether one of the first lines that a pattern finds states a speed by the function of the grammar, if it has one:
    `speed: 5.02 it/s` is found as a line of Paddle, and is none.
    """
    if grammar.parse is None:
        return True
    for match in islice(line.head.finditer(text), _LINES_PARSED):
        start, end = line_around(text, match.start())
        if grammar.parse(text[start:end].decode("utf-8", "replace")) is not None:
            return True
    return False


def what_it_has(path: Path, head: bytes) -> str:
    """Return what a log without times has in place of them."""
    if looks_like_text(path, head) and _MEAN_RATE.search(plain_text(read_head(path, SNIFF_BYTES))):
        return "with losses and the mean throughput since the start, and without the numbers of the steps"
    return "with losses only"


def _possible_grammars(*texts: bytes) -> list[Grammar]:
    """Return the grammars that need no text beside their step lines, or find it."""
    return [
        grammar
        for grammar in GRAMMARS
        if grammar.requires is None or any(grammar.requires.search(text) for text in texts)
    ]


def notes_on_others(path: Path, choice: ChosenGrammar) -> tuple[str, ...]:
    """Return a sentence on the step lines of other frameworks at the start and the end of a log, which are not read."""
    start = plain_text(read_head(path, SNIFF_BYTES))
    end = plain_text(_end_of(path)) if len(start) >= SNIFF_BYTES // 2 else b""
    own_lines = [line.head for line in choice.grammar.lines]
    others: dict[str, None] = {}
    known = {choice.grammar.name, *choice.grammar.beside}
    others_possible = [grammar for grammar in _possible_grammars(start, end) if grammar.name not in known]
    for text in filter(None, (start, end)):
        outside = searchable(text)
        present = [one for one in others_possible if any(line.occurs_in(outside) for line in one.lines)]
        if not present:
            continue
        candidates = [line for line in text.split(b"\n") if not any(head.search(line) for head in own_lines)]
        rest = searchable(b"\n".join([*candidates, b""]))
        for grammar in present:
            if any(line.occurs_in(rest) for line in grammar.lines):
                others[grammar.title] = None
    if not others:
        return ()
    listed = " and ".join(others)
    return (f"the log also has step lines of {listed}; those of {choice.grammar.title} were read, the others left out",)


def why_not_read(path: Path, head: bytes) -> str:
    """Return why a text is not read although it has to do with a training log; "" where it has not."""
    if is_document_of_people(path):
        if choose(path, head) is None:
            return ""
        return "a document with lines of a training log; --input-format training_log reads them"
    if is_summary_alone(head):
        return f"a summary of the Hugging Face Trainer without a step time: {UNKNOWN_STEPS}"
    framework = framework_without_times(path, head)
    return f"a training log of {framework} {NO_TIMES}" if framework else ""


def framework_without_times(path: Path, head: bytes) -> str:
    """Return the framework of a log that states no times; "" for any other file."""
    if not looks_like_text(path, head):
        return ""
    plain = plain_text(head if len(head) < _HEAD_BYTES else read_head(path, SNIFF_BYTES))
    for name, pattern in _WITHOUT_TIMES:
        if pattern.search(plain):
            return name
    # step lines of a known framework in which no time stands
    outside = searchable(plain)
    for grammar in _possible_grammars(plain):
        for line in grammar.lines:
            if not line.needs or len(line.literal) < _LONG_LITERAL:
                continue
            if len(list(islice(line.head.finditer(outside), _FEWEST_STEPS))) == _FEWEST_STEPS:
                return grammar.title
    return ""


def _end_of(path: Path) -> bytes:
    """Return the last MiB of a file; nothing of one that is compressed."""
    with open_source(path) as file:
        if file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
            return b""
        size = file.seek(0, 2)
        file.seek(max(0, size - SNIFF_BYTES))
        text = file.read(SNIFF_BYTES)
    return text[text.find(b"\n") + 1 :]
