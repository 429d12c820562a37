"""One key across versions: judges every version of a line against those before it, keeps that true, and shows it.

A line is a workload in one configuration on one device. `update` follows ingests and edits, `history` answers,
`verdicts_of` judges chosen runs against others.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
