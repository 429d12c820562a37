"""From findings to messages that arrive: what is due to whom, the outbox, the delivery with apprise.

`enqueue` makes the messages that are due, `alarm` one that is about no incident, `deliver` tries what is due once,
`expire` forgets what was settled long ago. What decides is pure: `routes` (who hears of an incident) and `life` (what
they hear of it, and when). Messages are stored as what happened; `reports` writes them out when they are sent.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
