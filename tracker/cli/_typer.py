"""The one place where versions of typer differ: from 0.26 on it has click inside, before it stands on the package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer


def _exception() -> Any:
    found = getattr(typer, "TyperException", None)
    return import_module("click").ClickException if found is None else found


Misuse: Any = _exception()
"""What typer raises for a command line that it cannot read: with `format_message()`, `exit_code`, and mostly `ctx`."""
