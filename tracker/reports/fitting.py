"""Messages for channels: texts from outside made harmless, and lines made to fit without cutting a number."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from tracker.units import printable

LONGEST_NAME: Final = 120
"""Characters of a name in a message; kernels of templates have thousands."""

_TAG: Final = re.compile(r"<(?=[!@#/\uff20]|at\b|users/)", re.IGNORECASE)
_MENTION: Final = re.compile(r"@(?=\w)")
_LINK: Final = re.compile(r"://")
_WEB: Final = re.compile(r"\b(www)\.", re.IGNORECASE)
_CALLS: Final = re.compile(r"<(?=[!@#/]|at\b|users/)|@(?=(?:all|channel|everyone|here|room)\b)", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[A-Za-z0-9 ,.:;%+/-]*")
_AHEAD: Final = 8
"""Characters behind a place that decide what becomes of it; what is made harmless never gets shorter."""

ELLIPSIS: Final = "..."


class Line(Struct, frozen=True):
    """A line of a message. `keep`: the lower, the earlier it goes where there is no room; 9 never goes."""

    text: str
    keep: float = 5.0


def harmless(text: str) -> str:
    r"""`text` from outside, on one line, such that no messenger takes a part of it for a mention, a tag or a link.

    >>> harmless("@here\nsee http://x <at user_id='all'> f<int>")
    "\uff20here\\nsee http\uff1a//x \u2039at user_id='all'> f<int>"
    """
    text = _TAG.sub("\u2039", printable(text))
    text = _LINK.sub("\uff1a//", _MENTION.sub("\uff20", text))
    return _WEB.sub("\\1\uff0e", text)


def said(text: str, *, markdown: bool, longest: int | None = LONGEST_NAME) -> str:
    """`text` from outside as a message can hold it: harmless, not too long; in Markdown as code, unless it is plain.

    >>> said("aten::mul_", markdown=True), said("a`b*", markdown=True), said("cpu", markdown=True)
    ('`aten::mul_`', '``a`b*``', 'cpu')
    """
    if longest is not None:
        text = text[: longest + _AHEAD]  # a name may have millions of characters
    text = harmless(text)
    if longest is not None and len(text) > longest:
        text = text[: longest - len(ELLIPSIS)] + ELLIPSIS
    return as_code(text) if markdown and not _PLAIN.fullmatch(text) else text


def as_code(text: str) -> str:
    """`text` in Markdown, taken as it stands: between more backticks than stand anywhere in it, as CommonMark has it.

    >>> as_code("cpu"), as_code("a`b"), as_code("`a``")
    ('`cpu`', '``a`b``', '``` `a`` ```')
    """
    if not text:
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    # a space at each end is taken off again
    pad = " " if "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def is_pasteable(command: str) -> bool:
    r"""Whether a command can be shown letter by letter: what a shell would get from what people see is the command.

    Not so with what no messenger shows as it is (control characters, several spaces), nor with what calls people even
    there where nothing is marked up. A command is never shown changed: it would do something else.

    >>> [is_pasteable(text) for text in ("tracker diff 'v`1'", "tracker diff 'a\nb'", "tracker diff '<!channel>'")]
    [True, False, False]
    """
    return printable(command) == command and "  " not in command and not _CALLS.search(command)


def fitted(lines: Sequence[Line], limit: int, size: Callable[[str], int] = len) -> str:
    """The lines as one text that is not larger than `limit`: the least important ones go, whole, the last ones first.

    Lines that must stay and are too long all together end at a word.

    >>> fitted([Line("head", 9), Line("+7.31 % slower", 1), Line("more", 2)], 10)
    'head\\nmore'
    """
    leaving = sorted((place for place, line in enumerate(lines) if line.keep < 9),
                     key=lambda place: (lines[place].keep, -place))  # fmt: skip

    def without(count: int) -> str:
        gone = set(leaving[:count])
        return _joined([line for place, line in enumerate(lines) if place not in gone])

    fewest = bisect_left(range(len(leaving)), True, key=lambda count: size(without(count)) <= limit)
    return cut(without(fewest), limit, size)


def cut(text: str, limit: int, size: Callable[[str], int] = len) -> str:
    """`text` if it is not larger than `limit`, else as many whole words of it as fit.

    >>> cut("412.00 ms -> 442.10 ms", 16), cut("412.00", 6), cut("412.00 ms", 5)
    ('412.00 ms ...', '412.00', '...')
    """
    if size(text) <= limit:
        return text
    words = re.split(r"(?<=\s)", text)
    while words and size("".join(words).rstrip() + f" {ELLIPSIS}") > limit:
        words.pop()
    start = "".join(words).rstrip()
    # an arrow leads nowhere without what comes behind it
    start = re.sub(r"\s*(->|[=+-])$", "", start)
    return f"{start} {ELLIPSIS}".strip()[: max(limit, 0)]


def _joined(lines: Sequence[Line]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.text for line in lines)).strip("\n")
