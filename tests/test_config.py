import os
import re

import pytest

from tracker import config
from tracker.config import entries
from tracker.config.layout import parse
from tracker.config.meanings import MEANINGS
from tracker.errors import TrackerError, UsageError


@pytest.fixture
def no_user_settings(monkeypatch, tmp_path):
    """The user's own folders are empty ones."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


HOUR = 3600 * 10**9


def settings_file(folder, text):
    path = folder / "tracker.toml"
    path.write_text(text)
    return {"TRACKER_CONFIG": str(path)}


def test_option_wins_over_variable_over_file(tmp_path):
    file = settings_file(tmp_path, 'database = "/file.db"')
    assert config.load("/option.db", environ={**file, "TRACKER_DB": "/variable.db"}).database == "/option.db"
    assert config.load(environ={**file, "TRACKER_DB": "/variable.db"}).database == "/variable.db"
    assert config.load(environ=file).database == "/file.db"


def test_origin_says_who_named_the_database(tmp_path, no_user_settings):
    file = settings_file(tmp_path, 'database = "/file.db"')
    assert config.load("/option.db", environ=file).origin == "--db"
    assert config.load(environ={**file, "TRACKER_DB": "/variable.db"}).origin == "TRACKER_DB"
    assert config.load(environ=file).origin == file["TRACKER_CONFIG"]
    assert config.load(environ={}).origin == "default"


@pytest.mark.parametrize("nothing", ["", " "])
def test_an_empty_name_of_a_database_is_no_default(nothing, no_user_settings):
    """As `--db "$NIGHTLY"` in a shell that lacks the variable: another database would be taken."""
    with pytest.raises(UsageError, match=r"the name of the database is empty; name one, or leave --db out"):
        config.load(nothing, environ={"TRACKER_DB": "/variable.db"})


def test_default_database_lies_in_the_user_data_folder_and_nothing_is_created(no_user_settings):
    settings = config.load(environ={})
    assert settings.database.endswith("/tracker/tracker.db")
    assert not list(no_user_settings.iterdir())


def test_default_folder_is_created_when_asked_for(no_user_settings):
    config.make_default_folder()
    config.make_default_folder()
    folder = config.load(environ={}).database.removesuffix("/tracker.db")
    assert [str(path) for path in no_user_settings.rglob("tracker")] == [folder]


def test_relative_database_of_the_settings_file_starts_at_that_file(tmp_path):
    settings = config.load(environ=settings_file(tmp_path, 'database = "profiles.db"'))
    assert settings.database == f"{tmp_path}/profiles.db"


def test_relative_database_of_the_option_starts_at_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config.load("profiles.db", environ={}).database == f"{tmp_path}/profiles.db"


def test_limits_come_from_the_settings_file(tmp_path):
    settings = config.load("/a.db", environ=settings_file(tmp_path, "[limits]\nmax_bytes = 1000"))
    assert settings.max_bytes == 1000


@pytest.mark.parametrize(
    ("text", "database"),
    [
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("sqlite:///relative.db", "sqlite:///relative.db"),
        ("~/p.db", "/home/me/p.db"),
    ],
)
def test_database_is_a_url_or_a_path(text, database, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert config.load(text, environ={}).database == database


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("database = \n", r"tracker.toml: the settings file is not valid TOML: .*line 1.*"),
        (
            "databse = 'x'",
            r"tracker.toml: key databse: there is no such setting; known here: database, workload, version, versions, "
            "limits, readers, watch, prune, alerts, coverage, budgets, page",
        ),
        ("database = 3", r"tracker.toml: key database: expected a text, got a whole number; .*"),
        ("database = ''", r"tracker.toml: key database: is '', expected a URL or a path; .*"),
        (
            "[page]\nperfetto = 'javascript:alert(1)'",
            r"tracker.toml: key page.perfetto: is 'javascript:alert\(1\)', expect.*",
        ),
        ("limits = 3", r"tracker.toml: key limits: expected a table, got a whole number; .*"),
        ("coverage.least = 90", r"tracker.toml: key coverage.least: is 90, expected a share above 0, at most 1; .*"),
        ("[[budgets]]\nat_most = 3", r"tracker.toml: key budgets of entry 1: lacks .*series.*"),
        (
            "budgets.series = 'step'",
            r"tracker.toml: key budgets: expected a list, got a table; write \[\[budgets\]\].*",
        ),
        (
            "[[budgets]]\nseries = 'step'",
            r"tracker.toml: key budgets.at_most of entry 1: has none of at_most and at_least, expected one; .*",
        ),
        (
            "[[budgets]]\nseries = 'step'\nat_most = '2 m'",
            r"tracker.toml: key budgets.at_most of entry 1: is '2 m', which has the unit 'm', expected a time .*",
        ),
        (
            "[[budgets]]\nseries = 'peak'\nat_most = '120 ms'",
            r"tracker.toml: key budgets.at_most of entry 1: is '120 ms', expected a size such as 60 GB .* for peak; .*",
        ),
        (
            "[[budgets]]\nseries = 'mfu'\nat_least = 45",
            r"tracker.toml: key budgets.at_least of entry 1: is 45.0, expected a share above 0, at most 1; .*",
        ),
        ("[[budgets]]\nseries = 'throughput'\nat_least = '45 %'", r".* is '45 %', expected a rate such as 300 .*"),
        ("[[budgets]]\nseries = 'MFU'\nat_least = '4 ms'", r".* is '4 ms', expected a ratio such as 0.45 .* for MFU.*"),
        ("[[budgets]]\nseries = 'step'\nat_least = 'fast'", r".* is 'fast', which is no number, expected a time .*"),
        (
            "[[budgets]]\nseries = 'step'\natmost = '2 s'",
            r"tracker.toml: key budgets.atmost of entry 1: there is no such setting; known here: series, workload, .*",
        ),
        ("limits.max_byte = 3", r"tracker.toml: key limits.max_byte: there is no such setting; known here: max_bytes"),
        (
            "limits.max_bytes = 0",
            r"tracker.toml: key limits.max_bytes: is 0, expected a whole number of bytes, 1 or more; .*",
        ),
        (
            "limits.max_bytes = true",
            r"tracker.toml: key limits.max_bytes: expected a whole number, got true or false; .*",
        ),
        ("page.keepers = 'wang'", r"tracker.toml: key page.keepers: expected a list, got a text; .*"),
        ("page.proxies = ['10.0.0.0/99']", r"tracker.toml: key page.proxies: is '10.0.0.0/99', expected a network; .*"),
        ("page.issue_url = 'javascript:{title}'", r"tracker.toml: key page.issue_url: is .*, expected an http .*"),
        (
            "page.url = 'javascript:alert(1)'",
            r"tracker.toml: key page.url: is 'javascript:alert\(1\)', expected the address of tracker page, such as .*",
        ),
        ("page.url = 'https://h/a) [x](https://evil.example'", r"tracker.toml: key page.url: is .*, expected the .*"),
        ("page.url = 'https://h/?side=v1'", r"tracker.toml: key page.url: is .*, expected the address .*"),
        ("page.url = ''", r"tracker.toml: key page.url: is '', expected the address .*"),
        (
            "page.url = 'https://li:S3cret@h/'",
            r"tracker.toml: key page.url: holds a user or password, which everybody would read; leave it out; .*",
        ),
        (
            "page.commit_url = 'https://S3cret@h/{good}...{bad}'",
            r"tracker.toml: key page.commit_url: holds a user or password, which everybody would read; .*",
        ),
        (
            "page.commit_url = 'https://h/{good} {bad}'",
            r"tracker.toml: key page.commit_url: is .*, expected an http .*",
        ),
        (
            "page.repository = 'https://li:S3cret@h/gpt.git'",
            r"tracker.toml: key page.repository: is no path, expected the folder of a clone; .*",
        ),
        ("page.commit_url = 'javascript:a'", r"tracker.toml: key page.commit_url: is .*, expected an http address .*"),
    ],
)
def test_wrong_settings_are_said_with_file_and_key(tmp_path, text, message):
    with pytest.raises(TrackerError) as caught:
        config.load(environ=settings_file(tmp_path, text))
    assert re.fullmatch(rf"(.*/)?{message}", str(caught.value))


@pytest.mark.parametrize(
    "url", ["http://host", "https://host:8443/", "https://a.b/team/x-y", "http://[::1]:8642", "http://10.0.0.5:80/~t"]
)
def test_pages_may_be_at_such_an_address(tmp_path, url):
    assert config.load(environ=settings_file(tmp_path, f"page.url = '{url}'")).page.url == url


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/a/b/compare/{good}...{bad}",
        "https://gitlab.example/a/b/-/compare/{good}...{bad}?straight=true",
        "https://cgit.example:8443/a.git/log/?qt=range&q={good}..{bad}",
        "https://phab.example/@team/diff/?old={good}&new={bad}#x",
    ],
)
def test_commits_may_be_at_such_an_address(tmp_path, url):
    assert config.load(environ=settings_file(tmp_path, f"page.commit_url = '{url}'")).page.commit_url == url


@pytest.mark.parametrize(("text", "folder"), [("clone", "{here}/clone"), ("/srv/gpt", "/srv/gpt"), (None, None)])
def test_a_relative_repository_starts_at_the_settings_file(tmp_path, text, folder):
    line = "" if text is None else f"page.repository = '{text}'"
    found = config.load(environ=settings_file(tmp_path, line)).repository
    assert found == (folder and folder.format(here=tmp_path))


def test_settings_file_that_was_asked_for_must_exist(tmp_path):
    with pytest.raises(TrackerError, match=r"gone.toml: the settings file cannot be read \(No such file"):
        config.load("/a.db", environ={"TRACKER_CONFIG": str(tmp_path / "gone.toml")})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"workload = {'9' * 5_000}", "is not valid TOML: it has a number of too many digits; correct that line"),
        (
            f"[limits]\nmax_bytes = 0x{'f' * 50_000}",
            "is not valid TOML: it has a number of too many digits; correct .*",
        ),
        (
            f"[limits]\nmax_bytes = {1 << 63}",
            "is not valid TOML: it has a number of too many digits; correct that line",
        ),
        ("#" * (1 << 20) + "\n", r"cannot be read \(it is larger than 1 MB\); correct TRACKER_CONFIG, or make .*"),
    ],
)
def test_settings_that_nobody_writes_are_an_error_in_a_line(tmp_path, text, problem):
    with pytest.raises(TrackerError) as refused:
        config.load(environ=settings_file(tmp_path, text))
    assert re.fullmatch(rf".*/tracker\.toml: the settings file {problem}", str(refused.value))


def test_the_null_device_is_no_settings():
    assert config.load(environ={"TRACKER_CONFIG": "/dev/null"}).max_bytes == config.MAX_BYTES


@pytest.mark.parametrize("name", ["pipe", "/proc/kmsg", "/dev/zero"])
def test_what_is_no_file_is_not_opened_for_settings(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TrackerError, match=r"the settings file cannot be read \(Not a file\)"):
        config.load(environ={"TRACKER_CONFIG": str(tmp_path / name)})


COMPLETE = """
[watch]
every = "30s"
settled = "5m"
[[watch.folders]]
path = "/profiles"
layout = "{workload}/{version}/*"
config = { batch = "32" }
expect_every = "1d"
[[watch.folders]]
path = "/other"
[alerts]
wait = "0m"
[[alerts.channels]]
name = "perf"
url_env = "PERF_URL"
[[alerts.rules]]
workload = "gpt*"
severity = "critical"
channels = ["perf"]
[[alerts.owners]]
op = "*attention*"
who = "Li Wei"
channels = ["perf"]
"""


def test_folders_channels_and_rules_come_from_the_settings_file(tmp_path):
    settings = config.load("/a.db", environ=settings_file(tmp_path, COMPLETE.replace("0m", "1m")))
    first, second = settings.watch.folders
    assert (settings.watch.every_ns, settings.watch.settled_ns) == (30 * 10**9, 300 * 10**9)
    assert (first.layout, first.config, first.expect_every_ns) == (
        "{workload}/{version}/*",
        {"batch": "32"},
        86400 * 10**9,
    )
    assert (second.layout, second.expect_every_ns) == ("*", None)
    (rule,), (owner,) = settings.alerts.rules, settings.alerts.owners
    assert (rule.workload, rule.device, rule.severity, rule.directions) == ("gpt*", "*", "critical", ("regression",))
    assert (owner.who, owner.channels) == ("Li Wei", ("perf",))
    assert settings.alerts.repeat_ns == 7 * 86400 * 10**9


@pytest.mark.parametrize(("value", "hours"), [("0", 0), ("90m", 1.5), ("1d", 24)])
def test_settle_of_alerts_is_a_time_or_nothing(tmp_path, value, hours):
    settings = config.load(environ=settings_file(tmp_path, f"[alerts]\nsettle = '{value}'"))
    assert settings.alerts.settle_ns == hours * HOUR


def test_alerts_settle_for_half_a_day(tmp_path):
    assert config.load(environ=settings_file(tmp_path, "")).alerts.settle_ns == 12 * HOUR


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[watch]\nevery = 'often'", "key watch.every: is 'often', expected a time such as 30s, 5m, 6h, 7d or 2w"),
        ("[alerts]\nwait = '0m'", "key alerts.wait: is '0m', expected a time"),
        ("[alerts]\nwait = '0'", "key alerts.wait: is '0', expected a time"),
        ("[alerts]\nsettle = 'soon'", "key alerts.settle: is 'soon', expected 0 or a time such as 30s"),
        ("[alerts]\nsettle = '999999w'", "key alerts.settle: is '999999w', expected at most 5200w"),
        ("[alerts]\nsettle = 12", "key alerts.settle: expected a text, got a whole number; write a time in quotes"),
        ("[watch]\nevery = '999999999w'", "key watch.every: is '999999999w', expected at most 5200w"),
        (
            "[[watch.folders]]\npath = '/p'\n[[watch.folders]]\npath = '/q'\nexpect_every = '36401d'",
            "key watch.folders.expect_every of entry 2: is '36401d', expected at most 5200w",
        ),
        ("[[watch.folders]]\nlayout = '*'", "key watch.folders of entry 1: lacks path"),
        (
            "[[watch.folders]]\npath = '/p'\nexpect_ranks = 0",
            "key watch.folders.expect_ranks of entry 1: is 0, expected 1 or more",
        ),
        (
            "[[watch.folders]]\npath = '/p'\nexpects = 1",
            "key watch.folders.expects of entry 1: there is no such setting; known here: ",
        ),
        (
            "[[watch.folders]]\npath = '/p'\nlayout = '{run}/*'",
            "key watch.folders.layout of entry 1: is '{run}/*': {run} must be one of",
        ),
        (
            "[[watch.folders]]\npath = '/p'\n[[watch.folders]]\npath = '/p/'",
            "key watch.folders.path: is '/p' twice, expected each folder once",
        ),
        ("[[alerts.channels]]\nname = 'a'", "key alerts.channels: channel 'a' has none, expected one of url_env, "),
        (
            "[[alerts.channels]]\nname = 'a'\nurl = 'b'\nurl_env = 'c'",
            "key alerts.channels: channel 'a' has url_env and url",
        ),
        (
            "[[alerts.channels]]\nname = 'a'\nurl_env = 'A'\n[[alerts.channels]]\nname = 'a'\nurl_env = 'A'",
            "key alerts.channels.name: is 'a', expected a name of its own for each channel",
        ),
        (
            "[[alerts.rules]]\nchannels = ['a']",
            "key alerts.rules.channels of entry 1: there is no channel 'a' in [[alerts",
        ),
        (
            "[[alerts.channels]]\nname = 'b'\nurl_env = 'B'\n[[alerts.rules]]\nchannels = ['b']\n"
            "[[alerts.rules]]\nchannels = ['a']",
            "key alerts.rules.channels of entry 2: there is no channel 'a' in [[alerts.channels]]: it has b",
        ),
        ("[watch.folders]\npath = '/p'", "expected a list, got a table; write [[watch.folders]], with two brackets"),
        (
            "[watch]\nevery = 60",
            'key watch.every: expected a text, got a whole number; write a time in quotes: every = "5m"',
        ),
        (
            "[[alerts.rules]]\nwhen = 'later'\nchannels = ['a']",
            "'later' is not a choice; it must be one of: at once, grouped",
        ),
        (
            "[[alerts.rules]]\ndirections = ['down']\nchannels = []",
            "'down' is not a choice; it must be one of: regression, improvement",
        ),
        ("[[alerts.rules]]\nchannels = []", "key alerts.rules.channels of entry 1: is empty"),
        (
            "[[alerts.rules]]\nchannels = ['a']\nseverity = 'loud'",
            "key alerts.rules.severity of entry 1: 'loud' is not a choice; it must be one of: info, warning, critical",
        ),
        ("[[alerts.owners]]\nop = '*'\nchannels = ['a']", "alerts.owners.channels of entry 1: there is no channel"),
    ],
)
def test_wrong_folders_channels_and_rules_are_said_with_their_key(tmp_path, text, message):
    with pytest.raises(TrackerError) as caught:
        config.load("/a.db", environ=settings_file(tmp_path, text))
    assert message in str(caught.value)


def test_an_address_stands_in_the_settings_file_only_where_nobody_else_reads_it(tmp_path):
    environ = settings_file(tmp_path, "[[alerts.channels]]\nname = 'perf'\nurl = 'slack://secret'")
    path = tmp_path / "tracker.toml"
    path.chmod(0o644)
    with pytest.raises(TrackerError, match=r"channel 'perf' holds a secret, and others can read this file") as caught:
        config.load("/a.db", environ=environ)
    assert "slack" not in str(caught.value)
    path.chmod(0o600)
    assert config.load("/a.db", environ=environ).alerts.channels[0].url == "slack://secret"


def test_an_address_in_a_file_has_a_path_that_cron_finds_too(tmp_path):
    text = '[[alerts.channels]]\nname = "a"\nurl_file = "slack"\n'
    with pytest.raises(TrackerError, match=r"channel 'a' has what is no path from the root, or ~/"):
        config.load(environ=settings_file(tmp_path, text))
    assert config.load(environ=settings_file(tmp_path, text.replace('"slack"', '"~/slack"'))).alerts.channels


ADDRESS = "slack://T1JJ3T3L2/S3cret"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f'name = "a"\nurl_env = "{ADDRESS}"', "key alerts.channels.url_env: channel 'a' has what is no name of a var"),
        (f'name = "a"\nurl_file = "{ADDRESS}"', "key alerts.channels.url_file: channel 'a' has what is no path from"),
        (f'name = "a"\nurl_file = "/{ADDRESS}"', "key alerts.channels.url_file: channel 'a' has what is no path from"),
        ('name = "a"\nurl_file = "T1JJ3T3L2/S3cret"', "key alerts.channels.url_file: channel 'a' has what is no path"),
        (f'name = "{ADDRESS}"\nurl_env = "A"', "key alerts.channels.name: is an address, which is a secret"),
        (f'name = "a"\nurl_env = "A"\nform = "{ADDRESS}"', "an address is not a choice;"),
        (
            f'name = "a"\nurl_env = "A"\n[[alerts.rules]]\nchannels = ["{ADDRESS}"]',
            "key alerts.rules.channels of entry 1: there is no channel of this address in [[alerts",
        ),
    ],
)
def test_an_address_in_a_wrong_entry_is_refused_and_not_shown(tmp_path, text, problem):
    with pytest.raises(TrackerError) as caught:
        config.load("/a.db", environ=settings_file(tmp_path, f"[[alerts.channels]]\n{text}\n"))
    assert problem in str(caught.value)
    assert "S3cret" not in str(caught.value)


def test_the_longest_time_is_a_century(tmp_path):
    assert config.load("/a.db", environ=settings_file(tmp_path, "[watch]\nkeep = '5200w'")).watch.keep == "5200w"


def test_the_home_of_nobody_is_a_name_like_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~nobody-here").mkdir()
    path = tmp_path / "~nobody-here" / "tracker.toml"
    path.write_text('[[alerts.channels]]\nname = "a"\nurl_file = "~nobody-here/slack"\n')
    assert config.load("~nobody-here/p.db", environ={}).database == f"{tmp_path}/~nobody-here/p.db"
    with pytest.raises(TrackerError, match="channel 'a' has what is no path from the root, or ~/"):
        config.load(environ={"TRACKER_CONFIG": "~nobody-here/tracker.toml"})


def test_a_channel_shows_no_address(tmp_path):
    file = settings_file(tmp_path, '[[alerts.channels]]\nname = "a"\nurl = "feishu://s3cret"\n')
    (tmp_path / "tracker.toml").chmod(0o600)
    assert "s3cret" not in repr(config.load(environ=file))


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ("", "a part is empty, or no name; write it like {workload}/{version}/*"),
        ("/a/*", "a part is empty"),
        ("a//*", "a part is empty"),
        ("../*", "a part is empty, or no name"),
        ("**/*", "** is not known: write one part for each level of folders"),
        ("{version", "'{version' has a brace without its other one"),
        ("{}/*", "{} must be one of {workload}, {branch}, {version}, {config.KEY}, {tag.KEY}"),
        ("{config.}/*", "{config.} must be one of"),
        ("{version}/{version}", "{version} stands there twice"),
        ("{version}{tag.a}", "{version} and {tag.a} have nothing between them that could part them"),
    ],
)
def test_a_layout_that_means_nothing_says_why(layout, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse(layout)


@pytest.mark.parametrize(
    ("layout", "path", "said"),
    [
        ("*", "trace.json", {}),
        ("{workload}/{version}/*", "gpt/v1.2/run 1", {"workload": "gpt", "version": "v1.2"}),
        ("{version}_*", "v01_run1.json.gz", {"version": "v01"}),
        ("b{config.batch}-{tag.image}/*", "b32-a-b/x", {"config.batch": "32", "tag.image": "a-b"}),
        ("logs[1]/*", "logs[1]/x", {}),
        ("logs[1]/*", "logs1/x", None),
        ("*", ".hidden", None),
        ("{version}_*", "_run1", None),
    ],
)
def test_a_layout_reads_names(layout, path, said):
    found = [part.match(name) for part, name in zip(parse(layout), path.split("/"), strict=True)]
    assert (None if None in found else {key: value for one in found for key, value in one.items()}) == said


def test_every_entry_of_the_settings_file_has_a_meaning_in_the_manual():
    tables = {
        "": entries.Entries, "[versions]": entries.Versions, "[limits]": entries.Limits,
        "[readers]": entries.Readers, "[watch]": entries.Watch,
        "[prune]": entries.Prune,
        "[[watch.folders]]": entries.Folder, "[alerts]": entries.Alerts, "[[alerts.channels]]": entries.Channel,
        "[[alerts.rules]]": entries.Rule, "[[alerts.owners]]": entries.Owner, "[page]": entries.PageRoles,
        "[coverage]": entries.CoverageLimits, "[[budgets]]": entries.Budget,
    }  # fmt: skip
    inner = {name.strip("[]").rpartition(".")[2] for name in tables}
    known = {table: sorted(set(kind.__struct_fields__) - inner) for table, kind in tables.items()}
    # the channels of rules and owners are names, and no tables
    for table in ("[[alerts.rules]]", "[[alerts.owners]]"):
        known[table] = sorted(tables[table].__struct_fields__)
    assert known == {table: sorted(of_table) for table, of_table in MEANINGS.items()}
