"""The functions of the package: what the commands answer, as Python objects whose tables are pandas frames.

Every option is a named argument, with the name, the default and the meaning of the field of the option struct that it
fills. Results display their first screen in a notebook.
"""

from __future__ import annotations

from tracker.api import by_turns, edits, profiles, results
from tracker.api.arguments import open_store as open_store
from tracker.api.by_turns import *  # noqa: F403
from tracker.api.edits import *  # noqa: F403 the names of its __all__
from tracker.api.profiles import *  # noqa: F403
from tracker.api.results import *  # noqa: F403

__all__: list[str] = ["open_store"]
__all__ += edits.__all__
__all__ += by_turns.__all__
__all__ += profiles.__all__
__all__ += results.__all__
__all__.sort()
