"""pandas, imported when something of it is used: that costs a quarter of a second, and not every command needs it.

Use it as a module: `from tracker.lazy import pd`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

__all__ = ["import_numpy", "pd"]

_THREADS_OF_ALGEBRA = "OPENBLAS_NUM_THREADS"

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


def import_numpy() -> None:
    """Import NumPy without the threads that it starts for linear algebra: nothing here does any, and a process without
    threads can be copied. Other processes that this one starts are left with theirs.
    """
    if _THREADS_OF_ALGEBRA in os.environ:
        import numpy

        return
    os.environ[_THREADS_OF_ALGEBRA] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS_OF_ALGEBRA]
