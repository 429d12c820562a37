"""Experiments: two builds that were run by turns. Their runs point to them (`run.experiment_id`)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Double
from sqlmodel import Field

from tracker.store.tables.base import Base, key, real, row_id, text_key, text_value, value


class Experiment(Base, table=True):
    """Two builds that one machine ran by turns, and what their pairs decided.

    What was run is nowhere: a command line may hold secrets.
    """

    __tablename__ = "experiment"
    # A number that once meant an experiment must never mean another one.
    __table_args__: Any = ({"sqlite_autoincrement": True},)
    id: int | None = row_id()
    state: str = text_key()
    baseline: str = text_key()
    candidate: str = text_key()
    baseline_commit: str | None = text_value()
    candidate_commit: str | None = text_value()
    finding_id: int | None = value()
    host: str = text_key()
    devices: str = text_key()
    settings: str = text_key()
    seed: int = key(primary=False)
    limit_ratio: float = Field(sa_type=Double, nullable=False)
    noise_sd: float | None = real()
    measured_by: str = text_key()
    started_at_ns: int = key(primary=False)
    ended_at_ns: int | None = value()
    outcome: str = text_key()
    change_ratio: float | None = real()
    low_ratio: float | None = real()
    high_ratio: float | None = real()
    counted_runs: int = key(primary=False)
