"""Call stacks: innermost frame first, joined by `;`."""

from __future__ import annotations

import re
from typing import Final

_LINE_END: Final = re.compile(r";?\s*\r?\n\s*")
_GLUED: Final = re.compile(r"(?P<name>.+?)[\s;,|]+(?P<stack>(?:File \")?[^\s;,|]*\.py[\"(].*)", re.DOTALL)


def stack_text(text: str) -> str:
    """A call stack without the line ends that the profiler writes between its frames.

    >>> stack_text("a.py(1): f;\\r\\nb.py(2): g;\\n")
    'a.py(1): f;b.py(2): g'
    """
    return _LINE_END.sub(";", text.strip()).strip(";")


def split_stack(name: str) -> tuple[str, str]:
    """A name and the call stack that MindSpore glues to it, '' for a name without one.

    >>> split_stack("Add;/a/net.py(7): construct;\\r\\n/a/train.py(9): main"), split_stack("aten::add")
    (('Add', '/a/net.py(7): construct;/a/train.py(9): main'), ('aten::add', ''))
    """
    match = _GLUED.fullmatch(name) if ".py" in name else None
    return (match.group("name"), stack_text(match.group("stack"))) if match else (name, "")
