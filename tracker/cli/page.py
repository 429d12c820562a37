"""`tracker page`: a server of pages to read and to act on."""

from __future__ import annotations

import os
import socket
import tempfile
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from tracker import config
from tracker.cli import database
from tracker.cli.options import Database
from tracker.cli.output import emit, note
from tracker.errors import SourceError, UsageError
from tracker.results.option import Option
from tracker.units import printable

if TYPE_CHECKING:
    pass

_LEAST_TOKEN: Final = 16
"""Characters of the token of a file."""


def page(
    listen: Annotated[str, Option("Address and port to listen on.", "HOST:PORT")] = "127.0.0.1:8642",
    read_only: Annotated[bool, Option("No actions: nothing can be changed. Default: actions of who may.")] = False,
    open: Annotated[bool, Option("Open a browser. Default: print the address.")] = False,
    no_token: Annotated[bool, Option("No login: all users of this machine may act. Default: a token.")] = False,
    token_file: Annotated[
        str | None,
        Option("A file with a token that may be used again: /login?token=TOKEN. Default: none.", "FILE"),
    ] = None,
    user_header: Annotated[
        str | None, Option("The header in which a proxy names the user. Default: none.", "NAME")
    ] = None,
    proxy: Annotated[
        tuple[str, ...], Option("The addresses from which that header counts; repeatable. Default: none.", "CIDR")
    ] = (),
    host: Annotated[
        tuple[str, ...],
        Option("Another name of this server, as browsers give it; repeatable. Default: the address.", "NAME"),
    ] = (),
    actor: Annotated[
        tuple[str, ...],
        Option("A user of the header who may act on findings; '*' for all; repeatable. Default: none.", "NAME"),
    ] = (),
    keeper: Annotated[
        tuple[str, ...],
        Option("A user of the header who may also exclude runs; '*' for all; repeatable. Default: none.", "NAME"),
    ] = (),
    db: Database = None,
) -> None:
    """Serve the board, findings, comparisons, histories and runs as pages, with links between them and actions.

    It prints an address with a token that works once; a cookie follows. On another address than that of this machine it
    needs a token file, or a proxy that names the user.

    \b
    Example:
      tracker page
      tracker page --read-only --open
      tracker page --listen 0.0.0.0:8642 --host tracker.example --user-header X-Forwarded-User --proxy 10.0.0.5/32
    """
    address, port = _address(listen)
    settings = config.load(db)
    with database.reading(settings):
        pass  # an error of the database comes before the server
    is_read_only = read_only or not _is_writable(settings.database)
    token = _token(token_file)
    if not ip_address(address).is_loopback:
        if no_token or not (token or (user_header and proxy)):
            raise UsageError(
                f"{address} can be reached from other machines",
                remedy="give --token-file FILE, or --user-header NAME with --proxy CIDR, and no --no-token",
            )
        if ip_address(address).is_unspecified and not host:
            raise UsageError(f"{address} is no name of this server", remedy="name it as browsers do: --host NAME")
    if bool(user_header) != bool(proxy):
        raise UsageError("--user-header and --proxy need each other", remedy="give both, or none")

    import uvicorn

    from tracker.page import access, app

    bound = _bound(address, port)
    port = bound.getsockname()[1]
    policy = access.Rules(
        hosts=frozenset([*access.LOOPBACK, address, *(name.lower() for name in host)]), needs_token=not no_token,
        token=token, header=user_header or "", proxies=tuple(map(_network, proxy)), actors=frozenset(actor),
        keepers=frozenset(keeper), read_only=is_read_only, cookie=f"tracker-{port}",
    )  # fmt: skip
    guard = access.Access(policy)
    site = app.Site(
        settings, guard, lambda writes: database.opened(settings.database, create=False, read_only=not writes),
        database.with_database,
    )  # fmt: skip
    name = f"[{address}]" if ":" in address else address
    base = f"http://{name}:{port}"
    url = base if no_token else f"{base}{access.LOGIN}?token={guard.once}"
    emit(f"{url}{'  (for reading only)' if is_read_only else ''}")
    note("Ctrl-C ends it")
    if open:
        _open_browser(url)
    server = uvicorn.Server(_server_settings(app.make(site)))
    server.run(sockets=[bound])


def _server_settings(application: Any) -> Any:
    """The settings of uvicorn. Its own reading of proxy headers would let any of them choose the address that a request
    is from; its log of requests would hold tokens.
    """
    import uvicorn

    return uvicorn.Config(
        application, proxy_headers=False, server_header=False, date_header=False, access_log=False, lifespan="off",
        log_level="warning", ws="none", timeout_keep_alive=30, limit_concurrency=200,
    )  # fmt: skip


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    host = host.strip("[]")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise UsageError(f"--listen {listen!r} is not HOST:PORT", remedy="write it like --listen 127.0.0.1:8642")
    try:
        return str(ip_address("127.0.0.1" if host == "localhost" else host)), int(port)
    except ValueError:
        raise UsageError(f"--listen {listen!r} has no IP address", remedy="write --listen 127.0.0.1:8642") from None


def _network(text: str) -> Any:
    try:
        return ip_network(text)
    except ValueError:
        raise UsageError(f"--proxy {text!r} is no network", remedy="write --proxy 10.0.0.0/8") from None


def _token(path: str | None) -> str:
    """The token in a file; SourceError for one that others can read, or that can be guessed."""
    if path is None:
        return ""
    try:
        mode, text = os.stat(path).st_mode, Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise SourceError(path, "", f"the token cannot be read ({reason})", remedy="name a file with a token") from None
    if mode & 0o077:
        raise SourceError(path, "", "other users may read the token", remedy=f"chmod 600 {printable(path)}")
    if len(text) < _LEAST_TOKEN or not text.isascii() or not text.isprintable():
        raise SourceError(path, "", f"the token has under {_LEAST_TOKEN} characters, or others than ASCII",
                          remedy="openssl rand -hex 32 makes one")  # fmt: skip
    return text


def _is_writable(name: str) -> bool:
    """Whether actions can change the database; of a server only it can say."""
    path = name.removeprefix("sqlite:///")
    return "://" in path or os.access(path, os.W_OK)


def _bound(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{address}:{port} cannot be used ({reason})", remedy="give another one: --listen") from None


def _open_browser(url: str) -> None:
    """Open a file that leads to the page: the words of a command are seen by all users of the machine."""
    import webbrowser
    from html import escape

    handle, path = tempfile.mkstemp(prefix="tracker-page-", suffix=".html")  # for this user alone
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(url)}">')
    if not webbrowser.open(Path(path).as_uri()):
        note("no browser was found: open the address")
