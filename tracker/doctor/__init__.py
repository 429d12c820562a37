"""What a place on disk holds, before anything is ingested: profiles, runs, what stays empty, what cannot be read.

Reads as `tracker ingest` reads, but goes on behind every problem, and knows no database.
"""

from __future__ import annotations

from tracker.doctor.examine import examine
from tracker.doctor.findings import CaptureFound, Failure, Findings, Lack, RunFormed, Unclaimed

__all__ = ["CaptureFound", "Failure", "Findings", "Lack", "RunFormed", "Unclaimed", "examine"]
