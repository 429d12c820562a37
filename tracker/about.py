"""What the program says about itself."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
HOW_TO_INSTALL: Final = "pip install . in a clone of it, or pip install FILE.whl"
"""What a remedy says: on the package index, the name tracker is another project's."""
