"""A fast pattern of step lines that all look alike, learned from one of them.

Most lines of a log differ in their numbers only. So the text between the numbers of one line is a pattern for the
others, which finds all their numbers at once.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from tracker.readers.training_log.grammar import WORDS, StepLine

_NUMBER: Final = re.compile(rb"[-+]?\d[\d,.]*(?:[eE][-+]?\d+)?|nan\b|inf\b")
_PIECES: Final = re.compile(
    rb"(?P<bar>\|[#=>. \d\x80-\xff-]*\|)|(?P<number>[-+]?\d[\d,.]*(?:[eE][-+]?\d+)?)|(?P<blanks> +)"
    rb"|(?P<text>[^ \d|]+|.)"
)
_ANY_NUMBER: Final = rb"[-+]?[\d.,]+(?:[eE][-+]?\d+)?"
_CLOCK: Final = rb"[\d:]+"
_LONG_CLOCK: Final = rb"[^'\"\r\n]+"
_BAR: Final = rb"\|[^|\r\n]*\|"
_LONGEST: Final = 2000


class Template(Struct, frozen=True):
    """`names`: the quantities of the groups of `pattern`. `others`: what a line has that states more than these."""

    pattern: re.Pattern[bytes]
    names: tuple[str, ...]
    others: tuple[bytes, ...]

    def fits(self, content: bytes) -> bool:
        """Whether no line of a text states a quantity that the template has no group for."""
        return not any(other in content for other in self.others)


def template_of(text: bytes, line: StepLine) -> Template | None:
    """Return the template of a step line; None where its numbers do not stand behind each other."""
    head = line.head.search(text)
    if head is None or len(text) > _LONGEST:
        return None
    spans: list[tuple[int, int, str]] = []
    lacks_groups = False
    for name in line.head.groupindex:
        start, end = head.span(name)
        if start >= 0:
            spans.append((start, end, name))
        else:
            lacks_groups = True
    seen = {name for _, _, name in spans}
    others = []
    for field in line.fields:
        match = field.pattern.search(text)
        if match is None:
            # without literal text nothing says quickly that no line has it
            if not field.literal:
                return None
            others.append(field.literal)
        elif field.name not in seen:
            spans.append((*match.span(1), field.name))
            seen.add(field.name)
    spans.sort()
    at = head.start()
    parts = [b"(?<!" + re.escape(line.not_behind) + b")"] if line.not_behind else []
    if b"(?<!" in line.head.pattern and not line.not_behind:
        # what may not stand in front of the head does not stand in front of this line
        at = 0
        parts.append(b"(?<![^\r\n])")
    for start, end, name in spans:
        group = _group_of(name, text[start:end])
        if start < at or group is None:
            return None
        parts.append(general_pattern(text[at:start]))
        parts.append(b"(" + group + b")")
        at = end
    if lacks_groups:
        # a line that states them has other text somewhere
        parts.append(general_pattern(text[at:]) + b"(?=[\r\n])")
    else:
        # what a field must have behind its number
        parts.append(general_pattern(text[at : at + 3]) if text[at : at + 3].isalpha() else b"(?![\\d.])")
    return Template(re.compile(b"".join(parts)), tuple(name for _, _, name in spans), tuple(others))


def _group_of(name: str, text: bytes) -> bytes | None:
    """Return the pattern of a quantity that one line writes as `text`; None for what is no number."""
    if name in WORDS:
        return re.escape(text)
    if name == "elapsed_clock":
        return _CLOCK if re.fullmatch(_CLOCK, text) else _LONG_CLOCK
    return _ANY_NUMBER if _NUMBER.fullmatch(text) else None


def general_pattern(text: bytes) -> bytes:
    """Return a pattern of text in which other numbers may stand."""
    parts = []
    for piece in _PIECES.finditer(text):
        if piece["bar"] is not None:
            parts.append(_BAR)
        elif piece["number"] is not None:
            parts.append(_ANY_NUMBER)
        elif piece["blanks"] is not None:
            parts.append(b" *")
        else:
            parts.append(re.escape(piece.group()))
    return b"".join(parts)
