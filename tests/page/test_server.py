"""The server as a process: where it listens, what its settings say, and that it leaves no file behind."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
from contextlib import contextmanager

import pytest


@contextmanager
def serving(db, *words, **environment):
    """`tracker page` in a process of its own; the address that it prints."""
    command = [sys.executable, "-m", "tracker", "page", *words, "--db", str(db)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONUNBUFFERED": "1", **environment}) as process:  # fmt: skip
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "Traceback" not in out + err


def asked(place, path, **headers):
    """An answer, with its body; `place`: the file of a socket, or HOST:PORT."""
    connection = http.client.HTTPConnection("localhost:8642" if os.sep in place else place, timeout=20)
    if os.sep in place:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(place)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    found = connection.getresponse()
    found.body = found.read()
    connection.close()
    return found


def test_a_socket_is_for_its_user_alone_and_goes_with_the_server(db, tmp_path):
    file = tmp_path / "tracker.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(file))  # of a server that was killed
    with serving(db, "--socket", str(file)) as address:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert address.startswith("http://localhost:8642/login?token=")
        assert asked(str(file), "/").status == 401
        cookie = asked(str(file), address.removeprefix("http://localhost:8642")).getheader("set-cookie")
        assert asked(str(file), "/", cookie=cookie.partition(";")[0]).status == 200
        second = [sys.executable, "-m", "tracker", "page", "--socket", str(file), "--db", str(db)]
        done = subprocess.run(second, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2 and "is used by another server" in done.stderr
    assert not file.exists()


def test_roles_come_from_the_settings_file(db, tmp_path):
    settings = tmp_path / "tracker.toml"
    settings.write_text("""
        [page]
        user_header = "X-User"
        proxies = ["127.0.0.1"]
        hosts = ["tracker.example"]
        actors = ["li"]
        keepers = ["wang"]
    """)
    with serving(db, "--listen", "127.0.0.1:0", "--keeper", "zhao", TRACKER_CONFIG=str(settings)) as address:
        place = address.partition("/login")[0].removeprefix("http://")
        users = ("", "guest", "li", "wang", "zhao")
        found = {name: asked(place, "/run/9", host="tracker.example", x_user=name) for name in users}
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(users, 200) | {"": 401}
    forms = {name: b'value="exclude"' in one.body for name, one in found.items() if name}
    assert forms == {"guest": False, "li": False, "wang": False, "zhao": True}


@pytest.mark.parametrize("browser", ["cp %s {folder}/opened", "false"])
def test_an_opened_browser_leaves_no_token_behind(db, tmp_path, browser):
    folder = tmp_path / "temporary"
    folder.mkdir()
    wanted = {"TMPDIR": str(folder), "BROWSER": browser.format(folder=tmp_path)}
    with serving(db, "--listen", "127.0.0.1:0", "--open", **wanted) as address:
        while not (left := list(folder.glob("tracker-page-*"))):
            pass
        assert stat.S_IMODE(left[0].stat().st_mode) == 0o600
        place, _, token = address.removeprefix("http://").partition("/")
        assert asked(place, f"/{token}").status == 200
    assert list(folder.iterdir()) == []


def test_bad_requests_are_answered_and_the_server_goes_on(db):
    """What no browser sends, through the real server: a status each, and no traceback (`serving`)."""
    with serving(db, "--listen", "127.0.0.1:0", "--no-token") as address:
        place = address.removeprefix("http://")
        wanted = {
            "/run/999": 404, "/finding/abc": 404, "/diff?side=v1&side=/etc/passwd": 404,
            f"/findings?workload={'x' * 10_000}": 400, f"/findings?{'x' * 30_000}": 400, "/history?key=%ff%00": 400,
        }  # fmt: skip
        found = {path: asked(place, path) for path in wanted}
        assert {path: one.status for path, one in found.items()} == wanted
        assert all(b"Traceback" not in one.body and b"root:" not in one.body for one in found.values())
        host, port = place.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as raw:
            raw.sendall(b"no request\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400 ")
        away = db.rename(db.with_name("away.db"))
        assert asked(place, "/findings").status == 503 and not db.exists()
        away.rename(db)
        assert asked(place, "/findings").status == 200
