"""How many runs a candidate is judged against (JUDGEMENT 3)."""

from __future__ import annotations

from typing import Final

WINDOW: Final = 8
"""The last runs on the current level that were normal or accepted."""

ENOUGH: Final = 3
"""Runs on a level from which its own spread counts; with fewer, the spread of the level before is kept."""
