"""Addresses of databases: read from what a user writes, named in messages, without what nobody may see."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tracker.errors import StoreError

_SERVER: Final = ("host", "port")
"""Parts of a Postgres URL's query that say where the server is, the folder of its socket for example."""

_MEANT_AS_URL: Final = re.compile(r"[^/:@]:[^/@]*@|(?:^|/)postgres(?:ql)?(?:\+\w+)?:")
"""What stands in a URL and hardly in a path: a password, or the name of a server's protocol."""

_SECRETS: Final = ("password", "sslpassword")
"""Parts of a Postgres URL's query that nobody may see."""


def parse_url(text: str) -> URL:
    """Return `text` as a URL of one of the two drivers; StoreError for anything else, without showing what may be a
    password.

    >>> parse_url("postgres://tracker@db.example/tracker").drivername
    'postgresql+psycopg'
    >>> parse_url("/data/tracker.db").render_as_string()
    'sqlite:////data/tracker.db'
    """
    remedy = "write postgresql://USER@HOST/NAME, sqlite:///PATH, or the path of a SQLite file"
    if "://" not in text:
        path = Path(os.path.expanduser(text)).absolute()
        if _MEANT_AS_URL.search(text) and not path.exists():
            raise StoreError("the database URL has no '://'", remedy=remedy)
        return URL.create("sqlite", database=str(path))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise StoreError("the database URL cannot be read", remedy=remedy) from error
    if "@" in (url.host or ""):
        raise StoreError("the database URL has more than one '@'", remedy="write that of a password as %40")
    kind = url.drivername.partition("+")[0]
    if kind in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if kind == "sqlite":
        return url.set(drivername="sqlite")
    raise StoreError(f"a {kind} database is neither SQLite nor Postgres", remedy=remedy)


def in_memory(url: URL) -> bool:
    """Return whether the database ends with the process that opens it."""
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def file_of(url: URL) -> Path | None:
    """Return the file of a SQLite database; None where it has none of a plain name."""
    if url.get_backend_name() != "sqlite" or in_memory(url) or (url.database or "").startswith("file:"):
        return None
    return Path(str(url.database)).resolve()


def name_of(url: URL) -> str:
    """Return what messages call a database: its path, or its URL without password and query; but for the server, which
    the query may name instead.

    >>> name_of(parse_url("postgresql://me:s3cr3t@/db?host=/run/a&password=s3cr3t"))
    'postgresql://me:***@/db?host=/run/a'
    """
    if url.get_backend_name() == "sqlite":
        return url.database or "the database in memory"
    name = url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)
    server = [(key, value) for key in _SERVER for value in words(url.query.get(key, ()))]
    return f"{name}?{urlencode(server, safe='/:')}" if server else name


def secrets_of(url: URL) -> frozenset[str]:
    """Return what must not be shown of `url`, wherever it stands in it."""
    found = [str(url.password or "")]
    for key in _SECRETS:
        found += words(url.query.get(key, ()))
    return frozenset(found) - {""}


def words(values: str | tuple[str, ...]) -> list[str]:
    """Return the values of a key in the query of a URL, which may give it more than once."""
    return [values] if isinstance(values, str) else list(values)
