"""How long a text of a file is kept: the table of limits, and what stands for the rest of a longer one."""

from __future__ import annotations

import hashlib
import re
from typing import Final

NAME_CHARACTERS: Final = 4096
"""Of a name of anything: operators, kernels, modules, threads, hosts. The longest real ones, of kernels that C++
templates made, have 3,000.
"""

TEXT_CHARACTERS: Final = 1 << 20
"""Of shapes, call stacks and members of process groups, which list many things."""

_DIGEST_BYTES: Final = 8
_MARK: Final = re.compile(r" \[\+\d+ characters ~[0-9a-f]{16}\]$")


def shorten_name(text: str) -> str:
    """Return a name of at most NAME_CHARACTERS; a longer one as its start and a digest of it all.

    The same name is the same at each ingest, so that its history goes on.

    >>> shorten_name("aten::mm"), len(shorten_name("x" * 10_000_000))
    ('aten::mm', 4095)
    """
    return text if len(text) <= NAME_CHARACTERS else _shorten(text, NAME_CHARACTERS)


def shorten_text(text: str) -> str:
    """Return a text that lists many things, as `shorten_name` does, of at most TEXT_CHARACTERS."""
    return text if len(text) <= TEXT_CHARACTERS else _shorten(text, TEXT_CHARACTERS)


def split_mark(name: str) -> tuple[str, str]:
    """Return a name without what stands for the rest of it, and that; "" where the name is whole.

    >>> split_mark(shorten_name("x" * 5000))[1]
    ' [+941 characters ~77831c42f099d1a1]'
    """
    if not name.endswith("]"):
        return name, ""
    mark = _MARK.search(name, max(0, len(name) - 64))
    return (name, "") if mark is None else (name[: mark.start()], mark.group())


def _shorten(text: str, limit: int) -> str:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    # the number of characters that are left out has as many digits as that of all, or fewer
    room = limit - len(f" [+{len(text)} characters ~{digest}]")
    mark = f" [+{len(text) - room} characters ~{digest}]"
    return text[:room] + mark
