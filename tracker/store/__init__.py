"""Rows -> tables, and every SQL statement. Knows the database; knows no input format.

`open_store` gives a `Store`; `store.save` writes runs, `store.queries` reads them, `store.runs` edits them.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
