"""Which database a name means: a path, or a URL. Jobs, and who takes their profiles, spell it in many ways."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, unquote

_POSTGRES = ("postgresql", "postgres")
_SERVER = re.compile(r"(?:([^:/]*)(?::[^@]*)?@)?([^/?]*)(?:/([^?]*))?(?:\?(.*))?", re.DOTALL)
"""Behind `://`: user, place, database and query."""

_ELSEWHERE = ("hostaddr", "options", "service")
"""Of a query, beside host, port and dbname: what leads to another server, database or schema."""


def identity(database: str) -> str:
    """The same text for all names of one database: where a file really lies; of a server not who asks, or how."""
    scheme, separator, rest = database.partition("://")
    if separator and scheme.partition("+")[0].lower() in _POSTGRES:
        return _of_server(rest)
    return older_identity(database)


def older_identity(database: str) -> str:
    """The text that hooks had which told `h/db`, `h:5432/db` and `h/db?sslmode=require` apart; jobs hold copies."""
    scheme, separator, rest = database.partition("://")
    scheme = scheme.partition("+")[0].lower()
    if not separator or (scheme == "sqlite" and rest.startswith("/")):
        path = rest[1:].partition("?")[0] if separator else database
        return os.path.realpath(os.path.expanduser(path)) if path not in ("", ":memory:") else database
    authority, slash, tail = rest.partition("/")
    host = authority.rpartition("@")[2].lower()
    return "{}://{}{}{}".format("postgresql" if scheme == "postgres" else scheme, host, slash, tail)


def _of_server(rest: str) -> str:
    """Host, port, database, and what else leads to another one. What the query says counts, as it does for libpq."""
    user, place, path, query = _SERVER.findall(rest)[0]
    asked: dict[str, str] = {}
    for key, value in parse_qsl(query):
        asked[key] = asked[key] + "," + value if key in asked else value
    host, port = _host_and_port(place)
    if "host" in asked:
        host, own = _host_and_port(asked["host"])
        port = own or port
    port = asked.get("port") or port or os.environ.get("PGPORT") or "5432"
    database = asked.get("dbname") or unquote(path) or asked.get("user") or unquote(user)
    other = [f"{key}={asked[key]}" for key in _ELSEWHERE if key in asked]
    return "postgresql://{}:{}/{}{}".format(
        host if host.startswith("/") else host.lower(), port, database, "?" + "&".join(other) if other else ""
    )


def _host_and_port(place: str) -> tuple[str, str]:
    """'' where there is none; an IPv6 address has its colons in brackets where a port may follow."""
    host, _, port = place.rpartition(":") if place.count(":") == 1 or "]:" in place else (place, "", "")
    return host.strip("[]"), port
