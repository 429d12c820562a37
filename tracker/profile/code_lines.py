"""The lines of code that a call stack names, without those of the framework."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_FRAMEWORK: Final = re.compile(r"(^|/)(torch|torch_npu|site-packages|dist-packages|lib/python3?[.\d]*)/")


def user_frames(call_stack: str) -> tuple[str, ...]:
    """Return the frames of a call stack (`;` between) that are neither built in nor of the framework, the innermost
    first.

    >>> user_frames("<built-in function linear>;torch/nn/modules/linear.py(130): forward;net.py(9): f;train.py(89): g")
    ('net.py(9): f', 'train.py(89): g')
    """
    frames = [frame.strip() for frame in call_stack.split(";")]
    return tuple(frame for frame in frames if _is_of_user(frame))


def code_line(call_stack: str) -> str:
    """Return the innermost of the `user_frames` of a call stack, "" of none.

    >>> code_line("<built-in function linear>;torch/nn/modules/linear.py(130): forward;train.py(89): forward")
    'train.py(89): forward'
    """
    for frame in call_stack.split(";"):
        if _is_of_user(frame.strip()):
            return frame.strip()
    return ""


@lru_cache(maxsize=10_000)
def _is_of_user(frame: str) -> bool:
    """Return whether a frame is of Python and not of the framework. Stacks of a capture share most of their frames."""
    return ".py(" in frame and not _FRAMEWORK.search(frame)
