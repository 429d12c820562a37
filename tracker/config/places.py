"""Where something is, as users write it: a path, the name of a variable; or an address that landed in a wrong entry."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from tracker.errors import StoreError

HOW_TO_NAME_A_DATABASE: Final = "write postgresql://USER@HOST/NAME, sqlite:///PATH, or the path of a SQLite file"

LIBPQ_KEYS: Final = frozenset(
    {
        "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname",
        "fallback_application_name", "gssdelegation", "gssencmode", "gsslib", "host", "hostaddr", "keepalives",
        "keepalives_count", "keepalives_idle", "keepalives_interval", "krbsrvname", "load_balance_hosts",
        "max_protocol_version", "min_protocol_version", "oauth_client_id", "oauth_client_secret", "oauth_issuer",
        "oauth_scope", "options", "passfile", "password", "port", "replication", "require_auth", "requirepeer",
        "requiressl", "scram_client_key", "scram_server_key", "service", "servicefile", "ssl_max_protocol_version",
        "ssl_min_protocol_version", "sslcert", "sslcertmode", "sslcompression", "sslcrl", "sslcrldir", "sslkey",
        "sslkeylogfile", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "sslsni", "target_session_attrs",
        "tcp_user_timeout", "user",
    }
)  # fmt: skip
"""What an address of Postgres may say, up to libpq 18."""

_MEANT_AS_ADDRESS: Final = re.compile(
    rf"""
    (?:^|/) \s* (?:{"|".join(sorted(LIBPQ_KEYS))}) \s* = [^/]* $   # the last part begins as one of libpq
    | ^ \s* (?:{"|".join(sorted(LIBPQ_KEYS))}) \s* =
    | password \s* =
    | (?: : | %3A ) [^@]* @                                      # a password before a host
    | (?:^|/) postgres(?:ql)? (?:\+\w+)? :
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What stands in an address of Postgres and hardly in a path."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def user_path(text: str) -> Path:
    """A path with `~` as the shell has it; the home of somebody whom nobody knows stays a name.

    >>> user_path("~nobody-here/x").as_posix()
    '~nobody-here/x'
    """
    return Path(os.path.expanduser(text))


def check_database_path(text: str, path: Path) -> None:
    """Raise StoreError where the path of a database is an address of Postgres: a file would have its password as name.

    text: as it was written; path: the file that it names. One that is there is a database, whatever its name.
    """
    refuse_control_characters(text)
    if not _MEANT_AS_ADDRESS.search(text):
        return
    try:
        is_there = path.exists()
    except OSError:  # such as a name that is too long
        is_there = False
    if not is_there:
        raise StoreError("the database URL has no '://'", remedy=HOW_TO_NAME_A_DATABASE)


def refuse_control_characters(text: str) -> None:
    """Raise StoreError for the address of a database that holds some: one of libpq would end at a NUL."""
    if _CONTROL.search(text):
        problem = "the address of the database holds a control character, such as the end of a line or %00"
        raise StoreError(problem, remedy=HOW_TO_NAME_A_DATABASE)


def is_variable(text: str) -> bool:
    """Whether a variable of the environment can be called so.

    >>> is_variable("TRACKER_SLACK_URL"), is_variable("slack://T1JJ3T3L2/A1BRTD4JD")
    (True, False)
    """
    return _VARIABLE.fullmatch(text) is not None


def is_address(text: str) -> bool:
    """Whether this is no path or name but an address, which is a secret: nobody may show it.

    >>> is_address("slack://T1JJ3T3L2/A1BRTD4JD"), is_address("~/slack")
    (True, False)
    """
    return "://" in text
