"""What the judgement reads and writes: series, one sample per run and series, and how each version differs.

All but the thresholds that users set follows from the rows of runs: it can be made again at any time.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Double, Index, Integer, UniqueConstraint
from sqlmodel import Field

from tracker.store.tables.base import ID, Base, Binary, digest, key, packed, real, row_id, text_key, text_value
from tracker.store.tables.base import value as number


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


class Judged(Base, table=True):
    """A version that was judged in one configuration on one device: from what, by which rule."""

    __tablename__ = "judged"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 what SQLAlchemy wants
    workload_id: int = key()
    configuration_id: int = key()
    device_id: int = key()
    version_id: int = key()
    fingerprint: Binary = digest()
    rule_version: int = key(primary=False)
    previous_version_id: int | None = number()
    pinned_version_id: int | None = number()
    centre: float | None = real()
    judged_runs: str | None = text_value()
    baseline_runs: str | None = text_value()


class DiffHistory(Base, table=True):
    """How one series of one version differs from its baseline, from the pinned version, and from the best one."""

    __tablename__ = "diff_history"
    # none by series: a row of each would take a page for every version; the versions of a line are few, and known
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 as SQLModel takes it
    version_id: int = key()
    series_id: int = key()
    value: float | None = real()
    calls: float | None = real()
    runs: int = Field(sa_type=Integer, nullable=False)
    rule_version: int = Field(sa_type=Integer, nullable=False)
    baseline_diff: float | None = real()
    baseline_p: float | None = real()
    baseline_q: float | None = real()
    baseline_contribution: float | None = real()
    baseline_verdict: str | None = text_value()
    calls_verdict: str | None = text_value()
    pinned_diff: float | None = real()
    pinned_p: float | None = real()
    pinned_q: float | None = real()
    pinned_contribution: float | None = real()
    pinned_verdict: str | None = text_value()
    best_version_id: int | None = number()
    best_diff: float | None = real()
    best_p: float | None = real()
    best_q: float | None = real()
    best_verdict: str | None = text_value()
    detectable: float | None = real()
    reason: str | None = text_value()


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
