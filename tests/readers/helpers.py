"""What tests of readers ask of a profile."""

from __future__ import annotations


def only(profile):
    """The one capture of a profile."""
    (capture,) = profile.captures
    return capture


def texts(events, codes):
    """The texts behind a column of codes."""
    return [events.strings[code] for code in codes.tolist()]
