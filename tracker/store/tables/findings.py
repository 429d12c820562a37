"""Findings with their life, what users did to them, and the incidents that they form.

All but what users did follows from the samples: it can be made again at any time, and keeps its numbers then.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Index, Integer, LargeBinary, UniqueConstraint
from sqlmodel import Field, SQLModel

from tracker.store.tables.base import Base, Binary, digest, key, real, row_id, text_key, text_value, value


def flag(*, nullable: bool = True) -> Any:
    """Yes or no; with `nullable`, it may be missing."""
    return Field(default=None, sa_type=Boolean, nullable=nullable)


def binary() -> Any:
    """Bytes that may be missing."""
    return Field(default=None, sa_type=LargeBinary, nullable=True)


def count() -> Any:
    """A small whole number that is always there."""
    return Field(sa_type=Integer, nullable=False)


class ChangeColumns(SQLModel):
    """A row about a change of a series of a line, in one direction: what all rows about findings begin with."""

    id: int | None = row_id()
    workload_id: int = key(primary=False)
    configuration_id: int = key(primary=False)
    device_id: int = key(primary=False)
    series_id: int = key(primary=False)
    direction: str = text_key()
    change: str = text_key()


class Finding(Base, ChangeColumns, table=True):
    """One lasting change of one series in one direction, suspected or confirmed; what decided is frozen here."""

    __tablename__ = "finding"
    __table_args__ = (
        UniqueConstraint("series_id", "direction", "change", "first_run_id"),
        Index(None, "workload_id", "configuration_id", "device_id", "state"),
    )
    first_run_id: int = key(primary=False)
    first_version_id: int = key(primary=False)
    good_version_id: int | None = value()
    incident_id: int | None = value()
    state: str = text_key()
    number: int = count()
    reopened: int = count()
    rule_version: int = count()
    effect: float | None = real()
    last_run_id: int = key(primary=False)
    ratio: float | None = real()
    low: float | None = real()
    high: float | None = real()
    p: float | None = real()
    q: float | None = real()
    contribution: float | None = real()
    detectable: float | None = real()
    effect_passes: bool | None = flag()
    q_passes: bool | None = flag()
    contribution_passes: bool | None = flag()
    verdict: str | None = text_value()
    reason: str | None = text_value()
    baseline_value: float | None = real()
    candidate_value: float | None = real()
    baseline_calls: float | None = real()
    candidate_calls: float | None = real()
    baseline_runs: str = text_key()
    candidate_runs: str = text_key()
    until_ns: int | None = value()
    until_version: str | None = text_value()
    step_runs: str | None = text_value()


class FindingNumber(Base, ChangeColumns, table=True):
    """The number of every finding that there ever was: one that is gone, because its runs are, gets it back with them.

    `version_id`: of the run that raised it first.
    """

    __tablename__ = "finding_number"
    # rows go with the last run of their configuration; a number that people know must never mean another finding
    __table_args__: Any = (
        Index(None, "workload_id", "configuration_id", "device_id"),
        {"sqlite_autoincrement": True},
    )
    version_id: int = key(primary=False)
    first_run_id: int = key(primary=False)


class FindingEvent(Base, table=True):
    """One transition of a finding: who or what made it, when, after which run, and why."""

    __tablename__ = "finding_event"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 what SQLAlchemy wants
    finding_id: int = key()
    position: int = key()
    source: str = text_key()
    target: str = text_key()
    kind: str = text_key()
    who: str = text_key()
    when_ns: int | None = value()
    run_id: int | None = value()
    rule_version: int = count()
    reason: str = text_key()
    notifies: bool = flag(nullable=False)


class FindingAction(Base, ChangeColumns, table=True):
    """What a user did to a finding, after which run of its line. Named by what makes the finding, not by its number."""

    __tablename__ = "finding_action"
    __table_args__ = (Index(None, "workload_id", "configuration_id", "device_id"),)
    first_run_id: int = key(primary=False)
    after_run_id: int | None = value()
    action: str = text_key()
    who: str = text_key()
    reason: str = text_key()
    when_ns: int = key(primary=False)
    until_ns: int | None = value()
    until_version: str | None = text_value()


class Incident(Base, table=True):
    """The findings that began with one version of a line: what got worse and what got better in it."""

    __tablename__ = "incident"
    # messages name it by its number, and what was told of one number is not told again
    __table_args__: Any = (
        UniqueConstraint("workload_id", "configuration_id", "device_id", "version_id", name="uq_incident_line_version"),
        {"sqlite_autoincrement": True},
    )
    id: int | None = row_id()
    workload_id: int = key(primary=False)
    configuration_id: int = key(primary=False)
    device_id: int = key(primary=False)
    version_id: int = key(primary=False)


class Followed(Base, table=True):
    """A line whose findings are made, what they were made from, and how far, so that the next run costs one step."""

    __tablename__ = "followed"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 what SQLAlchemy wants
    workload_id: int = key()
    configuration_id: int = key()
    device_id: int = key()
    fingerprint: Binary = digest()
    checkpoint_runs: int | None = value()
    checkpoint_key: Binary | None = binary()
    checkpoint: Binary | None = binary()
