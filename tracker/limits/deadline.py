"""How long a touch of a foreign file may take: the table of limits.

What a touch does is done in a process of its own (`intake.touching`), which is killed when it is late: a disk that is
gone, or a pattern that does not end, cannot be broken off in any other way.
"""

from __future__ import annotations

from typing import Final

LOOK_S: Final = 60.0
"""To list a folder, or to look at one file: what it is, and who reads it."""

READ_S: Final = 3600.0
"""To read one profile, where no setting says otherwise: the largest, of 60 GB, take a quarter of that."""
