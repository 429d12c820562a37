"""Series, samples, verdicts of versions, what was found in them, and the marks that users gave to it.

All but the thresholds and words of users follows from the samples, and these from the rows of runs: it can be made
again at any time, and findings and incidents keep their numbers then.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Double, Index, Integer, UniqueConstraint
from sqlmodel import Field, SQLModel

from tracker.store.tables.base import (
    ID,
    Base,
    Binary,
    digest,
    key,
    later_text,
    packed,
    real,
    row_id,
    text_key,
    text_value,
    value,
)


class Series(Base, table=True):
    """One thing that is followed over versions: one metric of one key, in one workload, configuration and device."""

    __tablename__ = "series"
    __table_args__ = (
        UniqueConstraint("digest"),
        Index(None, "workload_id", "configuration_id", "device_id", "kind"),
    )
    id: int | None = row_id()
    digest: Binary = digest()
    workload_id: int = key(references="workload.id", primary=False)
    configuration_id: int = key(references="configuration.id", primary=False)
    device_id: int = key(references="device.id", primary=False)
    kind: str = text_key()
    metric: str = text_key()
    name: str = text_key()
    input_shapes: str = text_key()
    part: str = text_key()
    step_kind: str = later_text()


class Sample(Base, table=True):
    """What one run says of one series, per step: the number that is judged, and how it varies over the steps."""

    __tablename__ = "sample"
    __table_args__ = (Index(None, "series_id", "run_id"), {"sqlite_with_rowid": False})
    run_id: int = key()
    series_id: int = key()
    value: float = Field(sa_type=Double, nullable=False)
    mean: float = Field(sa_type=Double, nullable=False)
    sd: float | None = real()
    min: float | None = real()
    p10: float | None = real()
    p90: float | None = real()
    max: float | None = real()
    calls: float | None = real()
    share: float | None = real()
    rank_spread: float | None = real()
    steps: int = Field(sa_type=Integer, nullable=False)
    intermittent: bool = Field(sa_type=Boolean, nullable=False)
    by_quartile: float | None = real()
    by_median: float | None = real()


class SampleArray(Base, table=True):
    """All samples of one run in one row: the numbers that are judged, for who asks for whole runs."""

    __tablename__ = "sample_array"
    run_id: int = Field(sa_type=ID, primary_key=True, nullable=False, sa_column_kwargs={"autoincrement": False})
    numbers: Binary = packed()


class StoredAdvice(Base, table=True):
    """What rules say of one run: what could make it faster, at most by how much, and why. One JSON text per run."""

    __tablename__ = "advice"
    run_id: int = Field(sa_type=ID, primary_key=True, nullable=False, sa_column_kwargs={"autoincrement": False})
    rule_version: int = Field(sa_type=Integer, nullable=False)
    content: str = text_key()


class Threshold(Base, table=True):
    """One limit of the judgement that a user set in place of the usual one: where, of which series, and why."""

    __tablename__ = "threshold"
    __table_args__ = (
        UniqueConstraint(
            "workload_id", "configuration_id", "device_id", "kind", "pattern", "name", name="uq_threshold_place"
        ),
    )
    id: int | None = row_id()
    workload_id: int = key(primary=False)
    configuration_id: int = key(primary=False)
    device_id: int = key(primary=False)
    kind: str = text_key()
    pattern: str = text_key()
    name: str = text_key()
    value: float = Field(sa_type=Double, nullable=False)
    who: str = text_key()
    when_ns: int = key(primary=False)
    reason: str = text_key()


class TrackColumns(SQLModel):
    """A numbered row of a track: a workload in one configuration on one device."""

    id: int | None = row_id()
    workload_id: int = key(primary=False)
    configuration_id: int = key(primary=False)
    device_id: int = key(primary=False)


class VersionJudgement(Base, table=True):
    """A version of a track that was judged: from which runs, and what its gate says.

    `rests_on`: stands for its runs, those before it, and the limits; `basis`: the same in words. `levels`: packed, the
    level of every series.
    """

    __tablename__ = "judged_version"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 what SQLAlchemy wants
    workload_id: int = key()
    configuration_id: int = key()
    device_id: int = key()
    version_id: int = key()
    rests_on: Binary = digest()
    runs: str = text_key()
    base_runs: str = text_key()
    step_before_ns: float | None = real()
    step_after_ns: float | None = real()
    shared_factor: float | None = real()
    step_verdict: str | None = text_value()
    net: float = Field(sa_type=Double, nullable=False)
    peak: float = Field(sa_type=Double, nullable=False)
    levels: Binary = packed()
    basis: str | None = text_value()
    step_kind: str = later_text()
    coverage: str | None = text_value()


class SeriesVerdict(Base, table=True):
    """The verdict of one series in one version, where something is to be said.

    `level_version_id`: with which its level began, 0 for the first one; `decided`: what later runs made of a suspect.
    """

    __tablename__ = "verdict"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 what SQLAlchemy wants
    version_id: int = key()
    series_id: int = key()
    level_version_id: int = key(primary=False)
    verdict: str = text_key()
    decided: str | None = text_value()
    reason: str = text_key()
    change: float | None = real()
    judged_change: float | None = real()
    p: float | None = real()
    q: float | None = real()
    contribution: float | None = real()
    detectable: float | None = real()
    base_runs: int = key(primary=False)


class ExactFact(Base, table=True):
    """What changed for certain with a version, from constant to constant: calls per step, or bytes of peak memory."""

    __tablename__ = "fact"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 what SQLAlchemy wants
    version_id: int = key()
    series_id: int = key()
    what: str = text_key(primary=True)
    value_before: float = Field(sa_type=Double, nullable=False)
    value_after: float = Field(sa_type=Double, nullable=False)


class FoundChange(Base, TrackColumns, table=True):
    """A confirmed change of a series, with what decided it; `state`: withdrawn where its runs are gone."""

    __tablename__ = "finding"
    # people know findings by their numbers: none may ever mean another one
    __table_args__: Any = (
        UniqueConstraint("series_id", "direction", "how", "first_version_id"),
        Index(None, "workload_id", "configuration_id", "device_id", "state"),
        {"sqlite_autoincrement": True},
    )
    series_id: int = key(primary=False)
    direction: str = text_key()
    how: str = text_key()
    first_version_id: int = key(primary=False)
    decided_version_id: int = key(primary=False)
    reference_level_id: int = key(primary=False)
    reference_runs: str = text_key()
    new_runs: str = text_key()
    size: float = Field(sa_type=Double, nullable=False)
    q: float | None = real()
    contribution: float = Field(sa_type=Double, nullable=False)
    value_before: float | None = real()
    value_after: float | None = real()
    calls_before: float | None = real()
    calls_after: float | None = real()
    is_leaf: bool = Field(sa_type=Boolean, nullable=False)
    was_faster: bool = Field(sa_type=Boolean, nullable=False)
    state: str = text_key()
    ended_version_id: int | None = value()
    ended_by_version_id: int | None = value()


class FindingWord(Base, TrackColumns, table=True):
    """A mark that a user gave to a finding, which is named by what makes it, not by its number. Changes no verdict."""

    __tablename__ = "finding_action"
    __table_args__ = (
        Index(None, "workload_id", "configuration_id", "device_id"),
        Index(None, "undoes_id", unique=True),
    )
    series_id: int = key(primary=False)
    direction: str = text_key()
    how: str = text_key()
    first_version_id: int = key(primary=False)
    action: str = text_key()
    who: str = text_key()
    reason: str = text_key()
    when_ns: int = key(primary=False)
    until_ns: int | None = value()
    until_version: str | None = text_value()
    newest_version_id: int | None = value()
    undoes_id: int | None = value()


class VersionIncident(Base, TrackColumns, table=True):
    """The findings of one first version, and the change of its step in parts that add up (ns per step)."""

    __tablename__ = "incident"
    __table_args__: Any = (
        UniqueConstraint("workload_id", "configuration_id", "device_id", "first_version_id", name="uq_incident_first"),
        {"sqlite_autoincrement": True},
    )
    first_version_id: int = key(primary=False)
    before_ns: float | None = real()
    after_ns: float | None = real()
    operators_ns: float | None = real()
    new_ns: float | None = real()
    gone_ns: float | None = real()
    machine_ns: float | None = real()
    other_operators_ns: float | None = real()
    beside_ns: float | None = real()
    earlier_ns: float | None = real()
    step_kind: str = later_text()
