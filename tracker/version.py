"""The version of tracker, which packs and bills of materials name; pyproject.toml has it, too."""

from __future__ import annotations

VERSION = "0.1.0"
