"""Settings: which database, how large an input may be, which folders are watched, and where alerts go.

cli, migrations and `tracker.open_store` read them, and `store.open_store` where its caller names no database. intake
and readers take no more than the default MAX_BYTES.

The first that names a database wins: the option `--db`, the variable TRACKER_DB, the settings file, the default
(a SQLite file in the user's data folder). The settings file is TOML; `entries` says what it may hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from tracker.config.budgets import Budget
from tracker.config.entries import Alerts, Channel, Entries, Folder, Owner, PageRoles, Prune, Rule, Watch, read
from tracker.config.places import is_database_path, user_path
from tracker.errors import SourceError, UsageError
from tracker.units import MAX_BYTES

__all__ = [
    "DATABASE_VARIABLE", "FILE_VARIABLE", "MAX_BYTES", "Alerts", "Budget", "Channel", "Folder", "Owner", "PageRoles",
    "Prune", "Rule", "Settings", "Watch", "cache_folder", "load", "make_default_folder", "settings_file",
]  # fmt: skip

DATABASE_VARIABLE: Final = "TRACKER_DB"
FILE_VARIABLE: Final = "TRACKER_CONFIG"


class Settings(Struct, frozen=True):
    """What holds for one call of the program.

    `database`: a URL, or the absolute path of a SQLite file. `origin`: who named it: `--db`, `TRACKER_DB`, the path of
    the settings file, or `default`. `max_bytes`: largest decompressed size of one input file. `watch`,
    `alerts`, `prune`, `workload`, `version` and `page`: as in the file; `loaders`: its `readers.loaders`;
    `main_branch`: its `versions.main`; `least_coverage`: its `coverage.least`; `budgets`: what each
    version must keep; `file`: where that is, there or not.
    """

    database: str
    origin: str
    max_bytes: int = MAX_BYTES
    loaders: tuple[str, ...] = ()
    watch: Watch = field(default_factory=Watch)
    alerts: Alerts = field(default_factory=Alerts)
    prune: Prune | None = None
    file: Path | None = None
    workload: str | None = None
    version: str | None = None
    page: PageRoles = field(default_factory=PageRoles)
    main_branch: str | None = None
    least_coverage: float | None = None
    budgets: tuple[Budget, ...] = ()

    @property
    def repository(self) -> str | None:
        """The folder of `page.repository`; a relative one starts at the settings file."""
        if self.page.repository is None:
            return None
        folder = self.file.parent if self.file else Path()
        return str(folder / user_path(self.page.repository))


def load(database: str | None = None, *, environ: Mapping[str, str] = os.environ, reads_file: bool = True) -> Settings:
    """Return the settings of this call; `database` is what `--db` says.

    `reads_file`: False for what works under a settings file that is missing or wrong: all else has its default.
    Raises SourceError for a settings file that cannot be read or has a wrong entry, UsageError where `--db` says
    nothing, as of a variable of a shell that is not set. Creates nothing.
    """
    if database is not None and not database.strip():
        raise UsageError("the name of the database is empty", remedy="name one, or leave --db out for the default")
    path, asked_for = _file_path(environ)
    is_there = reads_file and (asked_for or path.is_file())
    # the usual way to say that there is none
    is_none = str(path) == os.devnull
    entries = read(path) if is_there and not is_none else Entries()
    where, origin = _database(database, environ, entries, path)
    return Settings(
        where, origin, entries.limits.max_bytes, entries.readers.loaders, entries.watch, entries.alerts, entries.prune,
        path, entries.workload, entries.version, entries.page, entries.versions.main,
        entries.coverage.least, entries.budgets,
    )  # fmt: skip


def _database(asked: str | None, environ: Mapping[str, str], entries: Entries, path: Path) -> tuple[str, str]:
    """The database and who named it."""
    if asked:
        return _located(asked, Path.cwd()), "--db"
    if environ.get(DATABASE_VARIABLE):
        return _located(environ[DATABASE_VARIABLE], Path.cwd()), DATABASE_VARIABLE
    if entries.database is not None:
        return _located(entries.database, path.parent.absolute()), str(path)
    return str(_default_folder() / "tracker.db"), "default"


def settings_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The path of the settings file, there or not: TRACKER_CONFIG, else tracker.toml in the configuration folder."""
    return _file_path(environ)[0]


def make_default_folder() -> Path:
    """Create the user's data folder, in which the default database lies, if it is not there yet; its path."""
    folder = _default_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(
            folder,
            "",
            f"the folder of the default database cannot be created ({error.strerror})",
            remedy=f"name another database with --db PATH or {DATABASE_VARIABLE}=PATH",
        ) from error
    return folder


def _located(text: str, folder: Path) -> str:
    """A URL as it is, and what is refused when it is opened; the path of a SQLite file made absolute, from `folder`."""
    path = folder / user_path(text)
    return str(path) if is_database_path(text, path) else text


def _file_path(environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Where the settings file is, and whether the user asked for it by name (then it must exist)."""
    if environ.get(FILE_VARIABLE):
        return user_path(environ[FILE_VARIABLE]), True
    from platformdirs import user_config_path

    return user_config_path("tracker", appauthor=False) / "tracker.toml", False


def cache_folder() -> Path:
    """Return the folder for what may be lost: TRACKER_CACHE, else that of the system for caches."""
    from platformdirs import user_cache_path

    named = os.environ.get("TRACKER_CACHE")
    return Path(named) if named else user_cache_path("tracker", appauthor=False)


def _default_folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("tracker", appauthor=False)
