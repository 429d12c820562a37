"""Where something is, as users write it: a path, the name of a variable; or an address that landed in a wrong entry."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

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

_FIRST_KEY: Final = re.compile(r"\s*(\w+)\s*=")
_HIDDEN: Final = re.compile(
    r"""
    password \s* =
    | (?: : | %3A ) [^@]* @               # a password before a host
    | (?:^|/) postgres(?:ql)? (?:\+\w+)? :
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What stands in an address of Postgres and hardly in a path."""

_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def user_path(text: str) -> Path:
    """A path with `~` as the shell has it; the home of somebody whom nobody knows stays a name.

    >>> user_path("~nobody-here/x").as_posix()
    '~nobody-here/x'
    """
    return Path(os.path.expanduser(text))


def is_database_path(text: str, path: Path) -> bool:
    """Return whether the text names a SQLite file: what has a URL or an address of Postgres in it, as it is given to
    libpq, does not. A file of that name would have a password in it.

    path: the file that the text would name. One that is there is a database, whatever its name.

    >>> is_database_path("runs/a.db", Path("runs/a.db"))
    True
    >>> is_database_path("host=db.example user=me", Path("host=db.example user=me"))
    False
    """
    if "://" in text:
        return False
    # a relative one may have been made absolute, as that of a job
    first_keys = {found[1].lower() for part in (text, path.name) if (found := _FIRST_KEY.match(part))}
    if not first_keys & LIBPQ_KEYS and not _HIDDEN.search(text):
        return True
    try:
        return path.exists()
    except (OSError, ValueError):  # such as a name that is too long
        return False


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
