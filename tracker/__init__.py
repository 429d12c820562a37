"""Reads profiles of AI training into a database, compares versions, and says what became slower and why.

import tracker

with tracker.open_store("sqlite:///profiles.db") as store:
    tracker.ingest("run1.pt.trace.json.gz", version="v1", workload="resnet50", store=store)
    tracker.ingest("run2.pt.trace.json.gz", version="v2", workload="resnet50", store=store)
    print(tracker.diff("v1", "v2", store=store).ops.head())
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import PathFinder

from tracker.version import VERSION

TYPE_CHECKING = False  # that of `typing` takes as long to import as Python takes to start
if TYPE_CHECKING:
    from typing import Any

    from tracker import api
    from tracker.api.arguments import open_store as open_store
    from tracker.api.by_turns import *  # noqa: F403

    # of each module by itself: a type checker cannot add up the names that api.__all__ puts together
    from tracker.api.edits import *  # noqa: F403 the names of its __all__
    from tracker.api.profiles import *  # noqa: F403
    from tracker.api.results import *  # noqa: F403
    from tracker.errors import TrackerError

    __all__ = ["TrackerError", "__version__"]
    __all__ += api.__all__

__version__ = VERSION


def __getattr__(name: str) -> Any:
    """Return a public name or a module of the package, imported at its first use.

    The command and the hooks inside of training import the package, and need none of its functions.
    """
    if name == "__all__":
        value: Any = ["TrackerError", "__version__", *import_module("tracker.api").__all__]
    elif name == "TrackerError":
        value = import_module("tracker.errors").TrackerError
    elif name.startswith("_"):
        raise _no_attribute(name)
    elif PathFinder.find_spec(f"tracker.{name}", __path__) is not None:  # noqa: F405
        value = import_module(f"tracker.{name}")
    elif name in import_module("tracker.api").__all__:
        value = getattr(import_module("tracker.api"), name)
    else:
        raise _no_attribute(name)
    globals()[name] = value
    return value


def _no_attribute(name: str) -> AttributeError:
    return AttributeError(f"module 'tracker' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__getattr__("__all__"))
