"""Which files the modules of a job were loaded from: `tracker ab` sees by them whether each side ran its own code."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import Any, Mapping

from . import spool

VARIABLE = "TRACKER_MODULES"
"""Variable that names where the files are recorded: each process writes a file of its own, which begins so."""

INSTALLED = ("site-packages", "dist-packages")
"""Folders of packages that are installed. A venv may lie in a checkout."""

_recorded: dict[str, list[str]] = {}
"""What this process has recorded: at its end, Python no longer says which script it ran."""


def record(environ: Mapping[str, str]) -> None:
    """Write what `loaded_files` returns, as JSON, where `environ` names a file for it; a later call adds to it.

    Without an error: no job ends because of it.
    """
    path = environ.get(VARIABLE)
    if path:
        with suppress(Exception):
            _recorded.update(loaded_files(sys.modules))
            host = re.sub(r"\W+", "_", spool.host_name())
            spool.replace(f"{path}.{host}.{os.getpid()}", _recorded, mode=0o644)


def loaded_files(modules: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the file of each top module or package, `__main__` too, that is not of the standard library.

    A namespace package has no file: its files are those of the modules loaded from it that are not installed.
    """
    loaded = {name: _attributes(module) for name, module in list(modules.items())}
    tops: dict[str, list[str]] = {}
    for name, attributes in loaded.items():
        top = name.partition(".")[0]
        if name != top and not _is_namespace(loaded.get(top, {})):
            continue
        path = _file(attributes)
        if path is None or _is_standard(path) or _is_command(path):
            continue
        if name == top:
            tops[top] = [path]
        elif not is_installed(path):
            tops.setdefault(top, []).append(path)
    return tops


def is_installed(path: str) -> bool:
    """Return whether a file lies in a folder of installed packages, and not in one that a package is developed in."""
    return any(part in INSTALLED for part in path.split(os.sep))


def _attributes(module: Any) -> Mapping[str, Any]:
    """Return the attributes that a module has. To ask a lazy module for one in the usual way would load it."""
    try:
        found = object.__getattribute__(module, "__dict__")
    except AttributeError:  # whatever else stands in sys.modules
        return {}
    return found if isinstance(found, dict) else {}


def _file(attributes: Mapping[str, Any]) -> str | None:
    path = attributes.get("__file__")
    if not isinstance(path, str):
        return None
    # Python 3.8 has the script as it was named, and the job may have gone to another folder
    path = os.path.abspath(path)
    return path if os.path.isfile(path) else None


def _is_namespace(attributes: Mapping[str, Any]) -> bool:
    return "__path__" in attributes and not attributes.get("__file__")


def _is_standard(path: str) -> bool:
    return path.startswith(os.path.dirname(os.__file__) + os.sep) and not is_installed(path)


def _is_command(path: str) -> bool:
    """Return whether a file is a command that an installer wrote beside this Python."""
    return os.path.dirname(path) == os.path.dirname(sys.executable)
