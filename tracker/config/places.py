"""Where something is, as users write it: a path, the name of a variable; or an address that landed in a wrong entry."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def user_path(text: str) -> Path:
    """A path with `~` as the shell has it; the home of somebody whom nobody knows stays a name.

    >>> user_path("~nobody-here/x").as_posix()
    '~nobody-here/x'
    """
    return Path(os.path.expanduser(text))


def is_variable(text: str) -> bool:
    """Whether a variable of the environment can be called so.

    >>> is_variable("TRACKER_SLACK_URL"), is_variable("slack://T1JJ3T3L2/A1BRTD4JD")
    (True, False)
    """
    return _VARIABLE.fullmatch(text) is not None


def is_address(text: str) -> bool:
    """Whether this is no path or name but an address, which is a secret: nobody may show it.

    >>> is_address("slack://T1JJ3T3L2/A1BRTD4JD"), is_address("~/slack")
    (True, False)
    """
    return "://" in text
