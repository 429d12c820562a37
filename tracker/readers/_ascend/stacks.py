"""Call stacks: innermost frame first, joined by `;`."""

from __future__ import annotations

import re
from typing import Final

_STACK: Final = re.compile(r"[\s;,|](?P<stack>(?:File \")?[^\s;,|]*\.py[\"(])")
_SEPARATORS: Final = " \t\r\n;,|"


def stack_text(text: str) -> str:
    """A call stack without the line ends that the profiler writes between its frames.

    >>> stack_text("a.py(1): f;\\r\\nb.py(2): g;\\n")
    'a.py(1): f;b.py(2): g'
    """
    lines = (line.strip() for line in text.split("\n"))
    return ";".join(line.removesuffix(";") for line in lines if line).strip(";")


def split_stack(name: str) -> tuple[str, str]:
    """A name and the call stack that MindSpore glues to it, '' for a name without one.

    >>> split_stack("Add;/a/net.py(7): construct;\\r\\n/a/train.py(9): main"), split_stack("aten::add")
    (('Add', '/a/net.py(7): construct;/a/train.py(9): main'), ('aten::add', ''))
    """
    match = _STACK.search(name)
    alone = name[: match.start()].rstrip(_SEPARATORS) if match else ""
    return (alone, stack_text(name[match.start("stack") :])) if match and alone else (name, "")
