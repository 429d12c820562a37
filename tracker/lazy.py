"""pandas, imported when something of it is used: that costs a quarter of a second, and not every command needs it.

Use it as a module: `from tracker.lazy import pd`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["import_numpy", "import_numpy_without_threads", "pd"]

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
    with _no_threads_of_algebra():
        import numpy  # noqa: F401


@contextmanager
def _no_threads_of_algebra() -> Iterator[None]:
    """Within the block, a library of linear algebra that is loaded starts no threads, unless the user says how many."""
    if _THREADS_OF_ALGEBRA in os.environ:
        yield
        return
    os.environ[_THREADS_OF_ALGEBRA] = "1"
    try:
        yield
    finally:
        os.environ.pop(_THREADS_OF_ALGEBRA, None)


class _FinderOfNumpy:
    """Finds NumPy as Python does, and has it loaded without threads of algebra."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where NumPy is; None for any other module."""
        if fullname != "numpy":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = _loading_without_threads(spec.loader.exec_module)
            spec.loader.exec_module = load  # type: ignore[method-assign,assignment]
        return spec


def _loading_without_threads(load: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def load_without_threads(module: ModuleType) -> None:
        with _no_threads_of_algebra():
            load(module)

    return load_without_threads


def import_numpy_without_threads() -> None:
    """Have NumPy imported as by `import_numpy`, by whichever module of this process asks for it first.

    OpenBLAS starts a thread for each core, and all of them spin for a while: 100 ms of CPU in every command.
    For the command line alone: a program that uses the package may want these threads.
    """
    sys.meta_path.insert(0, _FinderOfNumpy())
