"""Compares two sides: loads them, matches their rows, says what explains the change. Rounds nothing; knows no
format.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
