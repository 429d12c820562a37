"""Columns of OperatorCompare beside the judged time: the change of the host time, and what one call takes."""

from __future__ import annotations

from tracker.reports._workbook import Field, field

_SIDES = (("Baseline", "baseline"), ("Candidate", "candidate"))


def host_fields() -> list[Field]:
    """Host self time of both sides and its change, where ops are judged by their time on the device."""
    return [
        *_both("Host Self Time (us)", "host_self_ns"),
        field("Host Self Delta (us)", "us", "host_delta_ns"),
        field("Host Self DIFF", "percent", "host_diff", 10),
    ]


def call_fields() -> list[Field]:
    """Average, shortest and longest call, with what it calls."""
    return [
        *_both("Average of a Call (us)", "average_ns"),
        *_both("Shortest Call (us)", "min_ns"),
        *_both("Longest Call (us)", "max_ns"),
    ]


def _both(header: str, name: str) -> list[Field]:
    return [field(f"{side} {header}", "us", f"{prefix}_{name}") for side, prefix in _SIDES]
