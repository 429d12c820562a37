"""What those must know of samples who only read them."""

from __future__ import annotations

from typing import Final

SAMPLE_RULES: Final = 6
"""Goes up with every change that can change a sample; stored with the run, so that older ones are made again."""

SUMMARY: Final = "summary"
UNPROFILED: Final = "unprofiled"
"""How the numbers of a whole run came about where it was not in a trace: see `families.way_of`."""
