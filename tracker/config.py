"""Settings: which database, and how large an input may be.

cli, migrations and `tracker.open_store` read them, and `store.open_store` where its caller names no database. intake
and readers take no more than the default MAX_BYTES.

The first that names a database wins: the option `--db`, the variable TRACKER_DB, the settings file, the default
(a SQLite file in the user's data folder). The settings file is TOML:

    database = "postgresql://tracker@db.example/tracker"   # a URL, or a path; a relative one starts at this file
    [limits]
    max_bytes = 68719476736                                # largest decompressed size of one input file
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracker.errors import SourceError

DATABASE_VARIABLE: Final = "TRACKER_DB"
FILE_VARIABLE: Final = "TRACKER_CONFIG"
MAX_BYTES: Final = 64 * 1024**3
"""Default of `limits.max_bytes`: above every trace we have met, below what fills a disk by accident."""

_KEYS: Mapping[str, tuple[type, str]] = {
    "database": (str, "a URL or a path"),
    "limits": (dict, "a table"),
    "limits.max_bytes": (int, "a whole number of bytes, 1 or more"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for one call of the program.

    `database`: a URL, or the absolute path of a SQLite file. `origin`: who named it: `--db`, `TRACKER_DB`, the path of
    the settings file, or `default`. `max_bytes`: largest decompressed size of one input file.
    """

    database: str
    origin: str
    max_bytes: int = MAX_BYTES


def load(database: str | None = None, *, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this call; `database` is what `--db` says.

    Raises SourceError for a settings file that cannot be read or has a wrong entry. Creates nothing.
    """
    path, asked_for = _file_path(environ)
    entries = _entries(path) if asked_for or path.is_file() else {}
    max_bytes = entries.get("limits.max_bytes", MAX_BYTES)
    if database:
        return Settings(_located(database, Path.cwd()), "--db", max_bytes)
    if environ.get(DATABASE_VARIABLE):
        return Settings(_located(environ[DATABASE_VARIABLE], Path.cwd()), DATABASE_VARIABLE, max_bytes)
    if "database" in entries:
        return Settings(_located(entries["database"], path.parent.absolute()), str(path), max_bytes)
    return Settings(str(_default_folder() / "tracker.db"), "default", max_bytes)


def make_default_folder() -> None:
    """Create the user's data folder, in which the default database lies, if it is not there yet."""
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


def _located(text: str, folder: Path) -> str:
    """A URL as it is; the path of a SQLite file made absolute, starting at `folder`."""
    return text if "://" in text else str(folder / Path(text).expanduser())


def _file_path(environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Where the settings file is, and whether the user asked for it by name (then it must exist)."""
    if environ.get(FILE_VARIABLE):
        return Path(environ[FILE_VARIABLE]).expanduser(), True
    from platformdirs import user_config_path

    return user_config_path("tracker", appauthor=False) / "tracker.toml", False


def _default_folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("tracker", appauthor=False)


def _entries(path: Path) -> dict[str, Any]:
    """The checked entries of the settings file, by dotted key."""
    import tomllib

    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        remedy = f"correct {FILE_VARIABLE}, or create the file"
        raise SourceError(path, "", f"the settings file cannot be read ({error.strerror})", remedy=remedy) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(
            path, "", f"the settings file is no valid TOML: {error}", remedy="correct that line"
        ) from error
    entries: dict[str, Any] = {}
    for key, value in tables.items():
        _check(path, key, value)
        if isinstance(value, dict):
            for inner, inner_value in value.items():
                _check(path, f"{key}.{inner}", inner_value)
                entries[f"{key}.{inner}"] = inner_value
        else:
            entries[key] = value
    return entries


def _check(path: Path, key: str, value: object) -> None:
    if key not in _KEYS:
        known = ", ".join(name for name, (kind, _) in _KEYS.items() if kind is not dict)
        raise SourceError(path, f"key {key}", "there is no such setting", remedy=f"known settings: {known}")
    kind, expected = _KEYS[key]
    if type(value) is not kind or (kind is int and isinstance(value, int) and value < 1) or value == "":
        raise SourceError(path, f"key {key}", f"is {value!r}, expected {expected}", remedy="correct the settings file")
