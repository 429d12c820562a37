"""Addresses that lead out of a report: of an incident on the pages of `tracker page`, and of commits."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

INCIDENT_PATH: Final = "/incident/{}"
"""Where the page of an incident is, on every server of pages; {} is I-4."""


def incident_address(pages: str | None, incident_id: int) -> str:
    """Return the address of an incident; "" where the settings do not say where the pages are.

    >>> incident_address("https://tracker.example/team/", 4), incident_address(None, 4)
    ('https://tracker.example/team/incident/I-4', '')
    """
    return f"{pages.rstrip('/')}{INCIDENT_PATH.format(f'I-{incident_id:d}')}" if pages else ""


def commits_address(template: str | None, good: str, bad: str) -> str:
    """Return the address of the commits between two, "" without a template, or where both are the same or missing.

    >>> commits_address("https://git.example/compare/{good}...{bad}", "4af1", "83fb")
    'https://git.example/compare/4af1...83fb'
    """
    if not template or not good or not bad or good == bad:
        return ""
    return template.replace("{good}", quote(good, safe="")).replace("{bad}", quote(bad, safe=""))
