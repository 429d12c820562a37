"""Who may read a page, and who may act: hosts, tokens, the header of a proxy, and where a POST comes from.

A token is needed even on this machine: other users of a login node reach its ports. The Host header is checked, since
a name of a stranger may point to this address; a POST must come from a page of this server.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from enum import IntEnum
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request

from tracker.units import is_plain

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Network = IPv4Network | IPv6Network

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
PUBLIC: Final = ("/page.css", "/page.js")
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
ONLY_GET_AND_POST: Final = "Pages are read by GET, and actions are sent by POST"
_HOW_TO_LOG_IN: Final = (
    "Log in first: open the address that tracker page printed (it ends with /login?token=...) in this browser; then "
    "the page that you came for opens. It works once: start tracker page again for a new one"
)
_WITH_TOKEN_OF_FILE: Final = "; /login?token=TOKEN with the token of its file works again and again"
_MOST_SESSIONS: Final = 1_000
_LONGEST_NAME: Final = 100
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
    b"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)  # fmt: skip
"""Headers of every response, but those that it has itself."""
HANDS_OVER: Final = {
    "cross-origin-opener-policy": "same-origin-allow-popups",
}
"""Headers of a page that hands a trace of its own server to a window of another one."""


class Role(IntEnum):
    """What a reader may do: read; act on findings; also change runs."""

    READER = 1
    ACTOR = 2
    KEEPER = 3


class Visitor(Struct, frozen=True):
    """A reader. `name`: as a proxy vouches for it, "" where the reader says it; `session`: of a login, else ""."""

    name: str
    role: Role
    session: str = ""


class Rules(Struct, frozen=True, kw_only=True):
    """What `tracker page` was started with. `hosts`: names of this server; `token`: one that may be used again, "" for
    none; `header`: with the name of the user, from `proxies` alone; `actors`, `keepers`: such users, `*` for all.
    """

    hosts: frozenset[str] = frozenset(LOOPBACK)
    needs_token: bool = True
    token: str = ""
    header: str = ""
    proxies: tuple[Network, ...] = ()
    actors: frozenset[str] = frozenset()
    keepers: frozenset[str] = frozenset()
    read_only: bool = False
    cookie: str = "tracker"


class Refusal(Struct, frozen=True):
    """Why a request is refused. `asks_to_log_in`: a login by an address would let it in."""

    status: int
    sentence: str
    asks_to_log_in: bool = False


class Access:
    """Decides on requests. `once`: the token of the address that `tracker page` prints, for one login."""

    def __init__(self, policy: Rules) -> None:
        self.policy = policy
        self.once = secrets.token_urlsafe(32)
        self._is_used = False
        self._sessions: dict[str, Role] = {}
        self._lock = threading.Lock()

    def login(self, token: str) -> str | None:
        """A new session for a token; None for a wrong one, or one that was used."""
        policy = self.policy
        with self._lock:
            if not self._is_used and _same(token, self.once):
                self._is_used, role = True, Role.KEEPER
            elif policy.token and _same(token, policy.token):
                role = Role.ACTOR
            else:
                return None
            while len(self._sessions) >= _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            session = secrets.token_urlsafe(32)
            self._sessions[session] = role
        return session

    def logout(self, session: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(session, None)

    def decide(self, request: Request) -> Visitor | Refusal | None:
        """The reader of a request, None for what is public, or why it is refused."""
        if (name := host_of(request.headers.getlist("host"))) is None or name not in self.policy.hosts:
            return Refusal(400, "This server has another name: use the address that tracker page printed, or --host")
        path = request.url.path
        if path in PUBLIC or (path == LOGIN and request.method == "GET"):
            return None
        reader = self._reader(request)
        if isinstance(reader, Refusal) or request.method in ("GET", "HEAD"):
            return reader
        if request.method != "POST":
            return Refusal(405, ONLY_GET_AND_POST)
        if not _is_own(request):
            return Refusal(403, "This action comes from another page, so it was not done")
        if self.policy.read_only and path != LOGOUT:
            return Refusal(403, "This page is for reading only: nothing was changed")
        return reader

    def _reader(self, request: Request) -> Visitor | Refusal:
        policy = self.policy
        if policy.header and _is_from(request, policy.proxies):
            names = request.headers.getlist(policy.header)
            name = names[0] if len(names) == 1 else ""
            if name and len(name) <= _LONGEST_NAME and is_plain(name):
                return Visitor(name, self._role_of(name))
            return Refusal(401, f"The proxy named no user, or several, in {policy.header}")
        if not policy.needs_token:
            return Visitor("", Role.KEEPER)
        found = self._find_session(request)
        if found is None:
            sentence = _HOW_TO_LOG_IN + (_WITH_TOKEN_OF_FILE if policy.token else "")
            return Refusal(401, sentence, asks_to_log_in=True)
        return Visitor("", *found)

    def is_logged_in(self, request: Request) -> bool:
        """Return whether a request comes with the cookie of a login."""
        return self._find_session(request) is not None

    def _find_session(self, request: Request) -> tuple[Role, str] | None:
        session = request.cookies.get(self.policy.cookie, "")
        with self._lock:
            return next(((role, known) for known, role in self._sessions.items() if _same(session, known)), None)

    def _role_of(self, name: str) -> Role:
        for role, names in ((Role.KEEPER, self.policy.keepers), (Role.ACTOR, self.policy.actors)):
            if name in names or "*" in names:
                return role
        return Role.READER


def host_of(headers: list[str]) -> str | None:
    """The name in the one Host header, without its port; None for none, several, or what is no name.

    >>> host_of(["localhost:8642"]), host_of(["[::1]:8642"]), host_of(["a", "b"]), host_of(["a@b"])
    ('localhost', '::1', None, None)
    """
    if len(headers) != 1 or any(char in headers[0] for char in "/@?#\\ "):
        return None
    try:
        parts = urlsplit(f"//{headers[0]}")
        return (parts.hostname or "").rstrip(".") or None if parts.port is None or parts.port else None
    except ValueError:
        return None


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())


def _is_own(request: Request) -> bool:
    """Whether a page of this server sends the request: by Sec-Fetch-Site, else by Origin; what has neither is no form
    of a browser.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return urlsplit(origin).netloc == request.headers.get("host") if "://" in origin else False


def _is_from(request: Request, networks: tuple[Network, ...]) -> bool:
    if request.client is None:
        return False
    try:
        address = ip_address(request.client.host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)


class Guard:
    """An application behind `access`, with the headers of every response. `refused` answers what is refused."""

    def __init__(self, app: App, access: Access, refused: Callable[[Refusal, Request], App]) -> None:
        self._app, self._access, self._refused = app, access, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        if scope["type"] != "http":
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                named = {name for name, _ in message.get("headers", ())}
                own = (one for one in (*HEADERS, (b"cache-control", b"no-store")) if one[0] not in named)
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        request = Request(scope)
        found = self._access.decide(request)
        app = self._refused(found, request) if isinstance(found, Refusal) else self._app
        scope.setdefault("state", {})["reader"] = found
        await app(scope, receive, with_headers)
