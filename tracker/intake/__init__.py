"""From files to a run in the database: reader -> timeline -> store, the only place where the three meet."""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
