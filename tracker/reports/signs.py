"""ASCII in place of the signs that reports use, for terminals whose encoding lacks them (LANG=C)."""

from __future__ import annotations

import re
from typing import Final

_ONE_FOR_ONE: Final = str.maketrans("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉·▲▼…×→", "_.-:=+*#...#### ^v~x>")
"""Of the same width, so that tables stay aligned; in a sparkline a gap is a space."""
_WORDS: Final = ((re.compile(r" ±"), "+-"), (re.compile(r"±"), "+-"), (re.compile(r"…(?= )"), "..."))
_ANY: Final = re.compile("[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉·▲▼…×→±]")


def encodable(text: str, encoding: str | None) -> str:
    """`text` with ASCII for the signs of reports where `encoding` lacks one of those in it; other texts stay.

    >>> encodable("▁▄█ ±2 %, a…b", "ascii"), encodable("▁▄█", "utf-8")
    ('_:#+-2 %, a~b', '▁▄█')
    >>> encodable("… and 3 more", "latin-1"), encodable("3, ±2 %", "latin-1")
    ('... and 3 more', '3, ±2 %')
    """
    signs = "".join(set(_ANY.findall(text)))
    try:
        signs.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        for sign, word in _WORDS:
            text = sign.sub(word, text)
        return text.translate(_ONE_FOR_ONE)
    except LookupError:
        return text
    return text
