"""Small JSON files beside a capture: one object each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tracker.errors import SourceError
from tracker.profile import Source
from tracker.readers._source import BOM, ReadOptions, SourceText


def read_object(
    path: Path, options: ReadOptions, remedy: str = "export the profile again"
) -> tuple[dict[str, Any], Source]:
    """The object in the file at `path`; a SourceError with this remedy where it holds none."""
    text = SourceText(path, options)
    content = b"".join(text).removeprefix(BOM)
    try:
        value = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise SourceError(path, "", f"malformed JSON: {error}", remedy=remedy) from error
    except RecursionError as error:
        raise SourceError(path, "", "JSON that is nested too deeply", remedy=remedy) from error
    return value, text.source()
