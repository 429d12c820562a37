"""Pages that were made a moment ago, for whoever asks for the same before the database changes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from starlette.responses import Response

_MOST: Final = 64
_MOST_BYTES: Final = 32 * 2**20
_OLDEST_S: Final = 60
"""A page names ages, and a mute may end: it is made again after so long."""


class Cache:
    """The responses that were asked for last, as far as they fit into some megabytes."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._kept: OrderedDict[Hashable, tuple[float, Response]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Response | None:
        """The response that was kept under `key`; None for none, or one that is too old."""
        with self._lock:
            made, response = self._kept.get(key, (0.0, None))
            if response is None or self._now() - made > _OLDEST_S:
                return None
            self._kept.move_to_end(key)
            return response

    def keep(self, key: Hashable, response: Response) -> None:
        """Keep a response, and forget those that were not asked for longest where there are too many."""
        with self._lock:
            self._kept[key] = (self._now(), response)
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST or sum(len(one.body) for _, one in self._kept.values()) > _MOST_BYTES:
                self._kept.popitem(last=False)
