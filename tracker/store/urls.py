"""Addresses of databases: read from what a user writes, named in messages, without what nobody may see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlencode

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tracker.config.places import LIBPQ_KEYS, is_database_path, user_path
from tracker.errors import StoreError

_HOW_TO_NAME_IT: Final = "write postgresql://USER@HOST/NAME, sqlite:///PATH, or the path of a SQLite file"

_POSTGRES: Final = "postgresql+psycopg"
_DRIVERS: Final = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": _POSTGRES,
    "postgresql": _POSTGRES,
    "postgresql+psycopg": _POSTGRES,
    "postgresql+psycopg2": _POSTGRES,
}
"""What stands before :// -> the driver that is used. Those who write psycopg2 mean Postgres, not a package."""

_SERVER: Final = ("host", "port")
"""Parts of a Postgres URL's query that say where the server is, the folder of its socket for example."""

_SECRETS: Final = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
"""Parts of a Postgres URL's query that nobody may see."""

_PASSWORD: Final = re.compile(r":[^@]*@")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_KIND: Final = re.compile(r"[a-z]+(?:\+[a-z0-9]+)?")
_PLAIN: Final = re.compile(r"[\w.-]*|[\da-fA-F:.]*:[\da-fA-F:.]*")
"""A name of a user, a host or a database, or an address of IPv6."""

_PLACE: Final = re.compile(r"[\w./@-]*(?::\d*)?|\[[\da-fA-F:.]*\](?::\d*)?")
"""A host with its port, or the folder of a socket."""

_SEARCH_PATH: Final = re.compile(r"-c ?search_path=[\w,-]+")
"""Which schema of a database is meant, as teams that share a server write it."""

_HIDDEN: Final = "..."
_KEY: Final = re.compile(r"[A-Za-z_]{1,40}")


def parse_url(text: str) -> URL:
    """Return `text` as a URL of one of the two drivers; StoreError for anything else, without showing what may be a
    password.

    >>> parse_url("postgres://tracker@db.example/tracker").drivername
    'postgresql+psycopg'
    >>> parse_url("/data/tracker.db").render_as_string()
    'sqlite:////data/tracker.db'
    """
    is_url = "://" in text
    if _CONTROL.search(unquote(text) if is_url else text):  # libpq would read an address up to a NUL
        problem = "the address of the database holds a control character, such as the end of a line or %00"
        raise StoreError(problem, remedy=_HOW_TO_NAME_IT)
    if not is_url:
        path = user_path(text).absolute()
        if not is_database_path(text, path):
            raise StoreError("the database URL has no '://'", remedy=_HOW_TO_NAME_IT)
        return URL.create("sqlite", database=str(path))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreError("the database URL cannot be read", remedy=_HOW_TO_NAME_IT) from None
    if "@" in (url.host or ""):
        raise StoreError("the database URL has more than one '@'", remedy="write that of a password as %40")
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        kind = url.drivername if _KIND.fullmatch(url.drivername) else "foreign"
        problem = f"a {kind} database is not taken: it is neither SQLite nor Postgres, or its driver is not used here"
        raise StoreError(problem, remedy=_HOW_TO_NAME_IT)
    if driver == _POSTGRES:
        _check_server(url)
    else:
        _check_file_url(url)
    return url.set(drivername=driver)


def _check_file_url(url: URL) -> None:
    """Raise StoreError where the URL of a SQLite file says more than where that is."""
    if url.host or url.port or url.username or url.password is not None:
        raise StoreError("the URL of a SQLite file names no host and no user", remedy="write sqlite:///PATH")
    _check_keys(url, frozenset())
    if (url.database or "").startswith("file:"):
        raise StoreError("the database URL is of the form file:, which is not taken", remedy="write sqlite:///PATH")


def _check_server(url: URL) -> None:
    """Raise StoreError where a part of a Postgres URL is none, or holds what is a password in another one."""
    _check_keys(url, LIBPQ_KEYS)
    shown = [url.host or "", url.database or ""]
    shown += [value for key in _SERVER for value in words(url.query.get(key, ()))]
    if ":" in (url.username or "") or any(_PASSWORD.search(unquote(part)) for part in shown):
        problem = "the database URL has a password where its user, host or name should stand"
        raise StoreError(problem, remedy="write postgresql://USER:PASSWORD@HOST/NAME")


def _check_keys(url: URL, known: frozenset[str]) -> None:
    """Raise StoreError for the first key of the query that is not known, without its value."""
    for key in url.query:
        if key not in known:
            named = f" {key}" if _KEY.fullmatch(key) else ""
            remedy = "use parameters of libpq alone" if known else "leave it out: a SQLite file has no options"
            raise StoreError(f"the database URL has an unknown option{named}", remedy=remedy)


def in_memory(url: URL) -> bool:
    """Return whether the database ends with the process that opens it."""
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def file_of(url: URL) -> Path | None:
    """Return the file of a SQLite database; None where it has none."""
    if url.get_backend_name() != "sqlite" or in_memory(url):
        return None
    return Path(str(url.database)).resolve()


def name_of(url: URL) -> str:
    """Return what messages call a database: its path, or its URL without password and query; but for the server and the
    schema, which the query may name.

    >>> name_of(parse_url("postgresql://me:s3cr3t@/db?host=/run/a&password=s3cr3t"))
    'postgresql://me:***@/db?host=/run/a'
    >>> name_of(parse_url("postgresql://me@db.example/db;s3cr3t"))
    'postgresql://me@db.example/...'
    >>> name_of(parse_url("postgresql://me@db.example/db?options=-csearch_path%3Dteam_a"))
    'postgresql://me@db.example/db?options=-csearch_path%3Dteam_a'
    """
    if url.get_backend_name() == "sqlite":
        return url.database or "the database in memory"
    # what is no plain name may be a password in a wrong place
    user, host, database = (
        part if part is None or _PLAIN.fullmatch(part) else _HIDDEN for part in (url.username, url.host, url.database)
    )
    shown = url.set(drivername="postgresql", query={}, username=user, host=host, database=database)
    name = shown.render_as_string(hide_password=True)
    query = [(key, value) for key in _SERVER for value in words(url.query.get(key, ())) if _PLACE.fullmatch(value)]
    for value in words(url.query.get("options", ())):
        query += [("options", found) for found in _SEARCH_PATH.findall(value)]
    return f"{name}?{urlencode(query, safe='/:')}" if query else name


def secrets_of(url: URL) -> frozenset[str]:
    """Return what must not be shown of `url`, wherever it stands in it."""
    found = [str(url.password or "")]
    for key in _SECRETS:
        found += words(url.query.get(key, ()))
    return frozenset(found) - {""}


def words(values: str | tuple[str, ...]) -> list[str]:
    """Return the values of a key in the query of a URL, which may give it more than once."""
    return [values] if isinstance(values, str) else list(values)
