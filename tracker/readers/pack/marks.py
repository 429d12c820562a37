"""What marks a pack: light, as every file that an ingest meets is looked at for it."""

from __future__ import annotations

from typing import Final

NAME: Final = "pack"
"""The format."""
MAGIC: Final = b"tracker-pack\n"
"""The line that a pack begins with."""
