"""The tables of the database, as SQLModel classes; `metadata` holds them all.

Nothing here runs on the way of a query or an ingest: those are SQL. The classes are what the migrations are checked
against, and what a database in memory is made from.
"""

from tracker.store.tables import captures, experiments, notifications, runs, tracks, watch
from tracker.store.tables.base import metadata

__all__ = ["captures", "experiments", "metadata", "notifications", "runs", "tracks", "watch"]
