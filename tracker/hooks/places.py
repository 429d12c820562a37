"""Where the spools lie: of this machine and a database, of all machines, and which of them nobody here can take from.

ROOT/HOST/NAME/: the spool of the jobs of one machine that send to one database. ROOT: TRACKER_SPOOL, default
`tracker/spool` in the user's state folder. NAME: a digest of the database that TRACKER_DB names, however it does, else
of the settings file that TRACKER_CONFIG names, else `default`; so entries never end up in another database than the one
that their job named. Only their owner can read them, unless ROOT is shared: a folder whose group may write into it and
hands itself down (`chmod 3770`). Each user then has ROOT/HOST/NAME/UID/, which that group may take from.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import Mapping

from . import databases, spool

_SECRET = re.compile(r"password\s*=|(?::|%3A)[^@]*@", re.IGNORECASE)


def root(environ: Mapping[str, str]) -> str:
    """The folder that holds the spools of all machines."""
    if environ.get("TRACKER_SPOOL"):
        return os.path.abspath(os.path.expanduser(environ["TRACKER_SPOOL"]))
    state = environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "tracker", "spool")


def name(environ: Mapping[str, str]) -> str:
    """What the spools of this database are called."""
    return names(environ)[0]


def names(environ: Mapping[str, str]) -> list[str]:
    """That, and what hooks called them that are copied into jobs since before."""
    database, settings = environ.get("TRACKER_DB", ""), environ.get("TRACKER_CONFIG", "")
    if not database and not settings:
        return ["default"]
    ways = databases.identity, databases.older_identity
    named = [[way(database), ""] if database else ["", way(settings)] for way in ways]
    texts = ["\n".join(each).encode("utf-8", "surrogateescape") for each in named]
    return list(dict.fromkeys(hashlib.sha256(text).hexdigest()[:12] for text in texts))


def database(environ: Mapping[str, str]) -> dict[str, str]:
    """What an entry says of the database that it is for, without its user; nothing where no variable names it.

    Nothing either of a path that is an address with a password, which tracker refuses.
    """
    named = environ.get("TRACKER_DB", "")
    if not named or ("://" not in named and _SECRET.search(named)):
        return {}
    return {"database": databases.identity(named).partition("?")[0]}


def folder(environ: Mapping[str, str]) -> str:
    """The spool of this machine and database, in a shared root of this user; there or not."""
    host = "".join(char if char.isalnum() or char in "-_." else "_" for char in spool.host_name())
    base = root(environ)
    own = [str(os.getuid())] if spool.is_shared(base) else []
    return os.path.join(base, host.lstrip(".") or "host", name(environ), *own)


def of_all_machines(environ: Mapping[str, str]) -> list[str]:
    """The spools of this database, of all machines that share the root."""
    base = root(environ)
    found = [os.path.join(base, host, each) for host in sorted(spool.listed(base)) for each in names(environ)]
    return [path for path in found if os.path.isdir(path)]


def shut(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Folders in which entries for this database may lie that nobody here can take, with what is wrong."""
    base = root(environ)
    if not os.path.isdir(base):
        return []
    found = [(base, _problem(base, os.R_OK | os.X_OK))]
    for host in sorted(spool.listed(base)):
        place = os.path.join(base, host)
        if os.path.isdir(place):
            found.append((place, _problem(place, os.X_OK)))
            for below in names(environ):
                for parent, folders, _ in os.walk(os.path.join(place, below)):
                    folders.sort()
                    found.append((parent, _problem(parent, os.R_OK | os.W_OK | os.X_OK)))
    return [(place, problem) for place, problem in found if problem]


def _problem(place: str, needed: int) -> str:
    if not os.access(place, needed):
        return f"belongs to user {os.stat(place).st_uid}, and entries cannot be taken from it"
    try:
        found = os.lstat(os.path.join(place, spool.TAKING))
    except OSError:  # there is none
        return ""
    return "" if spool.is_own(found) else f"holds a {spool.TAKING} that is no file of its own: remove that"
