"""Rows -> tables, and every SQL statement. Knows the database; knows no input format.

`open_store` gives a `Store`; `store.save` writes runs, `store.queries` reads them, `store.runs` edits them.
"""

from __future__ import annotations

from tracker.store.connect import Store, open_engine, open_store
from tracker.store.save import RunRecord, SavedRun, save_run, save_runs

__all__ = ["RunRecord", "SavedRun", "Store", "open_engine", "open_store", "save_run", "save_runs"]
