"""Follows the series of a line run by run: suspicions, what the next runs say of them, and the life of each finding.

Pure functions on the values of a line: the same runs and the same actions of users always give the same findings, so
that findings can be made again at any time, by this rule or by another one.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
