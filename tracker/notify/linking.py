"""Links of a message, and who made its commits: filled in when it is sent, so that neither is ever stored."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.commits import HASH, Commits, Repository
from tracker.config import PageRoles
from tracker.reports.addresses import commits_address, incident_address
from tracker.results import Message, ToldIncident

_EXAMPLE: Final = 4
_EXAMPLE_COMMITS: Final = ("4af1c2d0", "83fb3812")


class Example(Struct, frozen=True):
    """What links of messages look like. `url`: the page of an incident, "" where none is linked; `lines`: what a test
    message says of it; `sentences`: what a terminal says of all links.
    """

    url: str
    lines: tuple[str, ...]
    sentences: tuple[str, ...]


class Linker:
    """Fills in links by [page] of the settings, and what git says of commits in the folder `repository`."""

    def __init__(self, page: PageRoles, repository: str | None) -> None:
        self._page = page
        self._repository = None if repository is None else Repository(repository)

    def link(self, message: Message) -> Message:
        """Return `message` with its links. What was stored in their place does not count."""
        return replace(message, url="", incidents=tuple(map(self._link_incident, message.incidents)))

    def _link_incident(self, incident: ToldIncident) -> ToldIncident:
        good, bad = incident.good_commit, incident.commit
        is_known = HASH.fullmatch(good) is not None and HASH.fullmatch(bad) is not None
        found = Commits(good, bad)
        if is_known and self._repository is not None:
            found = self._repository.between(good, bad)
        single = found.named[0] if found.count == 1 and found.named else None
        return replace(
            incident,
            url=incident_address(self._page.url, incident.incident_id),
            commits_url=commits_address(self._page.commit_url, good, bad) if is_known else "",
            good_commit=good if is_known else "",
            commit=bad if is_known else "",
            commits=found.count,
            author="" if single is None else single.author,
            subject="" if single is None else single.subject,
            named_commits=found.named,
        )


def example_of(page: PageRoles, repository: str | None) -> Example:
    """Return what the links of a message on incident I-4 would look like, and what is wrong with the repository."""
    name = f"I-{_EXAMPLE}"
    url = incident_address(page.url, _EXAMPLE)
    commits = commits_address(page.commit_url, *_EXAMPLE_COMMITS)
    sentences = []
    if url:
        sentences.append(f"Messages on {name} will link {url}")
    if commits:
        sentences.append(f"Messages on a change from {' to '.join(_EXAMPLE_COMMITS)} will link {commits}")
    if problem := Repository(repository).problem:
        sentences.append(problem)
    lines = (f"Messages on incidents lead to their pages, as this one does to that of {name}.",) if url else ()
    return Example(url, lines, tuple(sentences))
