"""pandas, imported when something of it is used: that costs a quarter of a second, and not every command needs it.

Use it as a module: `from tracker.lazy import pd`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["pd"]

if TYPE_CHECKING:
    import pandas as pd
else:

    class _Module:
        """Stands for a module until something of it is asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            from importlib import import_module

            value = getattr(import_module(self._name), name)
            setattr(self, name, value)  # the next one who asks does not come here
            return value

    pd = _Module("pandas")
