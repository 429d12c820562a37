"""What tests of readers ask of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tracker.readers.torch_profiler import native


def only(profile):
    """The one capture of a profile."""
    (capture,) = profile.captures
    return capture


def texts(events, codes):
    """The texts behind a column of codes."""
    return [events.strings[code] for code in codes.tolist()]


def frame(table):
    """The rows of a table of `Rows`, as dicts."""
    columns = {name: list(column) for name, column in table.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@contextmanager
def decoding(*, compiled: bool) -> Iterator[None]:
    """Kineto traces are decoded by compiled code, where it is built, or all by msgspec."""
    module = native.module
    native.module = module if compiled else None
    try:
        yield
    finally:
        native.module = module
