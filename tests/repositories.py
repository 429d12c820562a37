"""Git repositories made for a test: who committed what, one after the other."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_NOW = "1700000000 +0000"


class MadeRepository:
    """A repository in a folder of its own, which is made unless it `is_new` no more."""

    def __init__(self, folder: Path, *, is_new: bool = True) -> None:
        self.folder = folder
        if not is_new:
            return
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, author: str = "Ann Lee") -> str:
        """Return what git prints."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        by = {"GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": "a@b", "GIT_AUTHOR_DATE": _NOW}
        committer = {"GIT_COMMITTER_NAME": "bot", "GIT_COMMITTER_EMAIL": "c@d", "GIT_COMMITTER_DATE": _NOW}
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            env={**own, **by, **committer}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, subject: str, author: str = "Ann Lee") -> str:
        """Commit nothing under a subject; its hash."""
        self.git("commit", "-q", "--allow-empty", "-m", subject, author=author)
        return self.git("rev-parse", "HEAD")
