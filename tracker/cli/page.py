"""`tracker page`: a server of pages to read and to act on."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import tempfile
import threading
import zlib
from importlib import import_module
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec.structs import replace

from tracker import config
from tracker.api.arguments import opened
from tracker.cli.options import Database
from tracker.cli.output import emit, note
from tracker.cli.proposed import with_database
from tracker.config import PageRoles
from tracker.config.places import user_path
from tracker.errors import SourceError, UsageError
from tracker.limits.files import read_small_text
from tracker.results.options import Option
from tracker.units import printable

if TYPE_CHECKING:
    from tracker.config import Settings
    from tracker.page.access import Rules

_LEAST_TOKEN: Final = 16
"""Characters of the token of a file."""


def page(
    listen: Annotated[
        str | None, Option("Address and port to listen on. Default: 127.0.0.1:8642.", "HOST:PORT")
    ] = None,
    socket_file: Annotated[
        str | None,
        Option("Listen on this Unix socket, for you alone, instead of a port. Default: none.", "FILE", name="--socket"),
    ] = None,
    read_only: Annotated[bool, Option("No actions: nothing can be changed. Default: actions of who may.")] = False,
    open: Annotated[bool, Option("Open a browser. Default: print the address.")] = False,
    no_token: Annotated[bool, Option("No login: all users of this machine may act. Default: a token.")] = False,
    token_file: Annotated[
        str | None,
        Option("A file with a token that may be used again: /login?token=TOKEN. Default: the settings file.", "FILE"),
    ] = None,
    user_header: Annotated[
        str | None, Option("The header in which a proxy names the user. Default: the settings file.", "NAME")
    ] = None,
    proxy: Annotated[
        tuple[str, ...],
        Option("The addresses from which that header counts; repeatable. Default: the settings file.", "CIDR"),
    ] = (),
    host: Annotated[
        tuple[str, ...],
        Option("Another name of this server, as browsers give it; repeatable. Default: the settings file.", "NAME"),
    ] = (),
    actor: Annotated[tuple[str, ...], Option(
        "A user of the header who may act on findings; '*' for all; repeatable. Default: the settings file.", "NAME"
    )] = (),
    keeper: Annotated[tuple[str, ...], Option(
        "A user of the header who may also exclude runs; '*' for all; repeatable. Default: the settings file.", "NAME"
    )] = (),
    db: Database = None,
) -> None:  # fmt: skip
    """Serve the board, findings, comparisons, histories and runs as pages, with links between them and actions.

    It prints an address with a token that works once; a cookie follows. On another address than that of this machine it
    needs a token file, or a proxy that names the user. [page] of the settings file may name these, too.

    \b
    Example:
      tracker page
      tracker page --read-only --open
      tracker page --socket ~/tracker.sock
      tracker page --listen 0.0.0.0:8642 --host tracker.example --user-header X-Forwarded-User --proxy 10.0.0.5/32
    """
    if socket_file and (listen or open):
        raise UsageError("--socket has no port to listen on or to open", remedy="leave out --listen and --open")
    settings = config.load(db)
    named = PageRoles(
        token_file=token_file, user_header=user_header, proxies=proxy, hosts=host, actors=actor, keepers=keeper
    )
    address, port = _address(listen or "127.0.0.1:8642")
    with opened(settings, read_only=True):
        pass  # an error of the database comes before the server
    rules = _rules(_with_settings(named, settings), "" if socket_file else address, needs_token=not no_token)
    rules = replace(rules, read_only=read_only or not _is_writable(settings.database))
    _serve(settings, rules, _bound_file(socket_file) if socket_file else _bound(address, port), opens=open)


def _with_settings(named: PageRoles, settings: Settings) -> PageRoles:
    """What the options name, else the settings file."""
    own = settings.page
    if own.token_file and settings.file:
        own = replace(own, token_file=str(settings.file.parent / user_path(own.token_file)))
    return PageRoles(**{name: getattr(named, name) or getattr(own, name) for name in PageRoles.__struct_fields__})


def _rules(given: PageRoles, address: str, *, needs_token: bool) -> Rules:
    """Who may do what; UsageError for what would let strangers in. `address`: "" for a socket of this user."""
    from tracker.page.access import LOOPBACK, Rules

    token, networks = _token(given.token_file), tuple(map(_network, given.proxies))
    if address and not ip_address(address).is_loopback:
        if not needs_token or not (token or (given.user_header and given.proxies)):
            raise UsageError(
                f"{address} can be reached from other machines",
                remedy="give --token-file FILE, or --user-header NAME with --proxy CIDR, and no --no-token",
            )
        if ip_address(address).is_unspecified and not given.hosts:
            raise UsageError(f"{address} is no name of this server", remedy="name it as browsers do: --host NAME")
    if bool(given.user_header) != bool(given.proxies):
        raise UsageError("--user-header and --proxy need each other", remedy="give both, or none")
    return Rules(
        hosts=frozenset([*LOOPBACK, *filter(None, [address]), *(name.lower() for name in given.hosts)]),
        needs_token=needs_token, token=token, header=given.user_header or "", proxies=networks,
        actors=frozenset(given.actors), keepers=frozenset(given.keepers),
    )  # fmt: skip


def _serve(settings: Settings, rules: Rules, bound: socket.socket, *, opens: bool) -> None:
    """Print the address and serve the pages until a signal ends it."""
    import uvicorn

    from tracker.page import access, app

    place = bound.getsockname()
    is_file = isinstance(place, str)
    # a cookie is for all ports of a machine: each server has a name of its own
    cookie = f"tracker-{zlib.crc32(place.encode()) if is_file else place[1]}"
    guard = access.Access(replace(rules, cookie=cookie))
    site = app.Site(settings, guard, lambda writes: opened(settings, read_only=not writes), with_database)
    name = "localhost:8642" if is_file else f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"
    url = f"http://{name}{f'{access.LOGIN}?token={guard.once}' if rules.needs_token else ''}"
    emit(f"{url}{'  (for reading only)' if rules.read_only else ''}")
    if is_file:
        note(f"It needs a tunnel, on your machine: ssh -L 8642:{place} {socket.gethostname()}")
    note("Ctrl-C ends it")
    # a statement that one thread makes while another one imports this fails: it is half registered
    import_module("sqlalchemy.orm")
    threading.Thread(target=app.warm_up, daemon=True).start()
    left = [place] if is_file else []
    # uvicorn ends by the signal that it got: without this, a SIGTERM would leave the files
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        left += [_open_browser(url)] if opens else []
        # its own reading of proxy headers would let any of them choose the address that a request is from; its log of
        # requests would hold tokens
        uvicorn.Server(uvicorn.Config(
            app.make(site), proxy_headers=False, server_header=False, date_header=False, access_log=False,
            lifespan="off", log_level="warning", ws="none", timeout_keep_alive=30, limit_concurrency=200,
        )).run(sockets=[bound])  # fmt: skip
    finally:
        for path in left:
            Path(path).unlink(missing_ok=True)


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
        written, state = read_small_text(path)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise SourceError(path, "", f"the token cannot be read ({reason})", remedy="name a file with a token") from None
    text, mode = written.strip(), state.st_mode
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


def _bound_file(path: str) -> socket.socket:
    """A socket for this user alone at `path`, in place of one at which no server listens any more."""
    found = str(user_path(path).absolute())
    try:
        if os.path.lexists(found):
            if not stat.S_ISSOCK(os.lstat(found).st_mode):
                raise UsageError(f"--socket {path!r} is another file", remedy="name one that is not there")
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(found) == 0:
                    raise UsageError(f"--socket {path!r} is used by another server", remedy="name another one")
            os.unlink(found)
        bound, before = socket.socket(socket.AF_UNIX), os.umask(0o177)
        try:
            bound.bind(found)
        finally:
            os.umask(before)
        bound.listen()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"--socket {path!r} cannot be used ({reason})", remedy="name another file") from None
    return bound


def _open_browser(url: str) -> str:
    """Open a file that leads to the page: the words of a command are seen by all users of the machine. Its path."""
    import webbrowser
    from html import escape

    handle, path = tempfile.mkstemp(prefix="tracker-page-", suffix=".html")  # for this user alone
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(url)}">')
    if not webbrowser.open(Path(path).as_uri()):
        note("no browser was found: open the address")
    return path
