"""`tracker page` refuses what would let strangers in, before it listens."""

from __future__ import annotations

import pytest

REFUSED = {
    "another address": (["--listen", "0.0.0.0:0"], "can be reached from other machines"),
    "a network address": (["--listen", "192.0.2.1:0"], "can be reached from other machines"),
    "another address without a token": (["--listen", "0.0.0.0:0", "--no-token"], "can be reached from other machines"),
    "a header without a proxy": (["--listen", "0.0.0.0:0", "--user-header", "X-User"], "can be reached"),
    "a header from everywhere": (["--user-header", "X-User"], "need each other"),
    "a proxy without a header": (["--proxy", "10.0.0.0/8"], "need each other"),
    "no name": (["--listen", "0.0.0.0:0", "--user-header", "X-User", "--proxy", "10.0.0.0/8"], "--host NAME"),
    "no network": (["--user-header", "X-User", "--proxy", "10.0.0.0/99"], "is no network"),
    "no port": (["--listen", "127.0.0.1"], "is not HOST:PORT"),
    "a large port": (["--listen", "127.0.0.1:99999"], "is not HOST:PORT"),
    "no address": (["--listen", "nowhere.example:80"], "has no IP address"),
    "a socket and a port": (["--socket", "here.sock", "--listen", "127.0.0.1:0"], "has no port"),
    "a socket that is a file": (["--socket", __file__], "is another file"),
    "a socket in no folder": (["--socket", "/nowhere/tracker.sock"], "cannot be used (No such file"),
    "a socket of a long name": (["--socket", "x" * 200], "cannot be used"),
    "no token": (["--token-file", "/nowhere"], "the token cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_let_strangers_in_is_refused(tracker, db, case):
    words, problem = REFUSED[case]
    done = tracker("page", *words, "--db", db)
    assert (done.code, done.out) == (2, "") and problem in done.err and done.err.count("\n") == 1


def test_a_token_that_others_can_read_or_guess_is_refused(tracker, db, tmp_path):
    file = tmp_path / "token"
    for text, mode, problem in (("x" * 32, 0o644, "other users may read"), ("short", 0o600, "has under 16 characters")):
        file.write_text(text)
        file.chmod(mode)
        done = tracker("page", "--token-file", file, "--db", db)
        assert done.code == 2 and problem in done.err


def test_a_missing_database_is_an_error_before_the_server(tracker, tmp_path):
    done = tracker("page", "--db", tmp_path / "none.db")
    assert done.code == 2 and "none.db" in done.err and not (tmp_path / "none.db").exists()


def test_a_port_in_use_is_an_error(tracker, db):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = tracker("page", "--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--db", db)
    assert done.code == 2 and "cannot be used" in done.err
