"""Events of a trace whose text is broken: a quote, a backslash or a byte in a name that the writer did not escape.

That is the writer's fault, and another export would have it again. So the text of the one event is mended where it can
only mean one thing, and otherwise that event is left out; all others are read.
"""

from __future__ import annotations

import re
from typing import Final

# a string, or a word that C prints for a number that is none
_STRING_OR_WORD: Final = re.compile(
    rb'"(?:[^"\\]|\\.)*"|[-+]?(?<![\w"])(?:nan|inf(?:inity)?)(?:\(ind\))?(?![\w"])', re.IGNORECASE | re.DOTALL
)
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")
_ESCAPE: Final = re.compile(rb'\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<short>["\\/bfnrt])|(?P<other>.?))', re.DOTALL)
_TIME_WITHOUT_NUMBER: Final = re.compile(rb'"(?:ts|dur)"\s*:\s*null')
_REPLACEMENT: Final = rb"\ufffd"
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)

BOUNDARY: Final = re.compile(rb'(?P<end>\})\s*,\s*(?=\{\s*")')
"""Between two events: behind the first, in front of the second. Also between two objects of a list in `args`."""

LIST_END: Final = re.compile(rb'(?P<end>\})\s*(?=\]\s*(?:,\s*"|\}|$))')
"""Behind the last event of a list."""


def mend_event(text: bytes) -> bytes | None:
    """Return the text of one event with valid strings and numbers; None where that changes nothing, or not enough.

    Control characters are blanks, a backslash that escapes nothing is one, half a surrogate is U+FFFD, and NaN and
    infinity are null. An event whose time is no number cannot be mended.

    >>> mend_event(b'{"name": "a\\\\b\\\\cuda", "v": -inf}')
    b'{"name": "a\\\\b\\\\\\\\cuda", "v": null}'
    >>> mend_event(b'{"name": "a", "ts": nan}') is None
    True
    """
    mended = _STRING_OR_WORD.sub(_mend_token, text)
    if mended == text or _TIME_WITHOUT_NUMBER.search(mended):
        return None
    return mended


def _mend_token(match: re.Match[bytes]) -> bytes:
    token = match.group()
    if not token.startswith(b'"'):
        return b"null"
    content = _CONTROL.sub(b" ", token[1:-1])
    return b'"' + _mend_escapes(content) + b'"' if b"\\" in content else b'"' + content + b'"'


def _mend_escapes(content: bytes) -> bytes:
    escapes = list(_ESCAPE.finditer(content))
    parts = []
    end = 0
    skip = False
    for place, escape in enumerate(escapes):
        parts.append(content[end : escape.start()])
        end = escape.end()
        if skip:  # the second half of a pair, which stands there with the first
            skip = False
            continue
        if escape["short"]:
            parts.append(escape.group())
        elif escape["code"]:
            code = int(escape["code"], 16)
            following = escapes[place + 1] if place + 1 < len(escapes) else None
            is_pair = (
                code in _HIGH
                and following is not None
                and following.start() == escape.end()
                and following["code"] is not None
                and int(following["code"], 16) in _LOW
            )
            if is_pair and following is not None:
                parts.append(escape.group() + following.group())
                skip = True
            else:
                parts.append(_REPLACEMENT if code in _HIGH or code in _LOW else escape.group())
        else:
            parts.append(b"\\\\" + escape["other"])
    parts.append(content[end:])
    return b"".join(parts)
