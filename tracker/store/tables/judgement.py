"""What the judgement reads and writes: series, one sample per run and series, and how each version differs.

All but the thresholds that users set follows from the rows of runs: it can be made again at any time.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Double, Index, Integer, UniqueConstraint
from sqlmodel import Field

from tracker.store.tables.base import ID, Base, Binary, digest, key, packed, real, row_id, text_key


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
