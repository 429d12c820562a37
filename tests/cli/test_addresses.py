"""Addresses of databases: a wrong one is one line without its secret, and becomes no file."""

from __future__ import annotations

import pytest

from tests.cli.support import WORKLOAD
from tracker.config.places import LIBPQ_KEYS

SECRET = "S3cretToken"
WRONG = (
    f"host=db.example user=me password={SECRET}",
    f"service={SECRET}",
    f"sslmode=require host=db.example password={SECRET}",
    f"user = me host=/run/postgresql password = {SECRET}",
    f"me%3A{SECRET}@db.example",
    f"me:{SECRET}@db.example/tracker",
    f"postgresql:/me:{SECRET}@db.example/tracker",
    f"postgresql://me:{SECRET}@127.0.0.1:1/db?connect_timeout=abc",
    f"postgresql://me:{SECRET}@127.0.0.1/db?port=abc",
    f"postgresql://me:{SECRET}%00x@127.0.0.1:1/db",
    f"postgresql://me:{SECRET}@[::1/x",
    f"postgresql://me%3A{SECRET}@127.0.0.1:1/db",
    f"postgresql://me:{SECRET}@127.0.0.1:1/db?passwort={SECRET}",
    f"postgresql+asyncpg://me:{SECRET}@127.0.0.1:1/db",
    f"sqlite+pysqlcipher://:{SECRET}@/new.db",
    "sqlite:///new.db?mode=ro",
)
RIGHT = ("new.db", "sqlite:///new.db", "sqlite+pysqlite:///new.db", "host=new.db")
"""The file of the last one is there."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def commands(trace, address):
    labels = ("--version", "v01", "--workload", WORKLOAD)
    return ("ingest", trace["v01"], *labels, "--db", address), ("board", "--db", address)


@pytest.mark.all_parameters
@pytest.mark.parametrize("address", WRONG, ids=range(len(WRONG)))
def test_a_wrong_address_is_refused_without_its_secret(tracker, folder, trace, address):
    for words in commands(trace, address):
        done = tracker(*words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
        assert SECRET not in done.err
        assert list(folder.iterdir()) == []


@pytest.mark.all_parameters
@pytest.mark.parametrize("address", RIGHT)
def test_a_right_address_of_a_file_is_taken(tracker, folder, trace, address):
    if address == "host=new.db":
        (folder / address).touch()
    for words in commands(trace, address):
        done = tracker(*words)
        assert done.code == 0, done.err
    assert {path.name for path in folder.iterdir()} >= {address.rpartition("/")[2]}


@pytest.mark.postgres
def test_a_right_address_of_a_server_is_taken(tracker, folder, trace, postgres_server, request):
    url = postgres_server.empty_database()
    request.addfinalizer(lambda: postgres_server.drop(url))
    joint = "&" if "?" in url else "?"
    address = f"{url.replace('postgresql://', 'postgresql+psycopg://')}{joint}options=-c%20work_mem%3D5MB"
    for words in commands(trace, address):
        done = tracker(*words)
        assert done.code == 0, done.err
    assert list(folder.iterdir()) == []


def test_an_address_in_the_settings_or_a_variable_becomes_no_file(tracker, folder, trace, tmp_path, monkeypatch):
    address = f"dbname=tracker password={SECRET}"
    settings = tmp_path / "tracker.toml"
    settings.write_text(f'database = "{address}"\n')
    settings.chmod(0o600)
    for name, value in (("TRACKER_CONFIG", settings), ("TRACKER_DB", address)):
        with monkeypatch.context() as patch:
            patch.setenv(name, str(value))
            for words in (("board",), ("db", "info"), ("status",), ("watch", "--once"), ("notify",), ("runs",)):
                done = tracker(*words)
                assert done.code == 2, done
                assert SECRET not in done.out + done.err
            assert tracker("show", trace["v01"]).code == 0, "which needs no database"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("path", ["/data/host=a100/tracker.db", "run@12:30.db", "a:b.db", "keypassword.db"])
def test_paths_that_look_a_little_like_an_address_are_paths(path):
    from tracker.store.urls import parse_url

    assert parse_url(path).database.endswith(path)


@pytest.mark.parametrize("address", [f"host=db.example password={SECRET}", f"me:{SECRET}@db.example"])
def test_a_job_writes_no_such_address_down(address):
    from tracker.hooks import places

    assert places.database({"TRACKER_DB": address}) == {}


def test_keys_of_libpq_are_known():
    """Those of the libpq that is installed: a new one is refused until it is listed."""
    import psycopg

    assert {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()} <= LIBPQ_KEYS
