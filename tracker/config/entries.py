"""The settings file: its tables, what each entry may be, and errors that name the key.

Everything is optional. A complete file:

    database = "postgresql://tracker@db.example/tracker"   # a URL, or a path; a relative one starts at this file
    workload = "gpt"                 # of every command and ingest that names none
    version = "git"                  # of profiles that state none; git: git describe in the current folder

    [versions]
    main = "main"                    # the branch that is the main line; default: what origin/HEAD names

    [limits]
    max_bytes = 68719476736          # largest decompressed size of one input file

    [readers]
    loaders = ["Feeder.pull"]        # what ranges of your own data loader hold in their names

    [watch]
    every = "1m"                     # how often the folders are looked at
    settled = "2m"                   # a profile is complete when size and time stood still this long
    limit = "30m"                    # a profile that takes longer to read is given up
    keep = "90d"                     # how long what was watched and sent stays on record

    [[watch.folders]]
    path = "/profiles"
    layout = "{workload}/{version}/*"   # what the folders below path mean; the last part is one run
    config = { batch = "32" }
    expect_every = "1d"              # no run for so long is an alert
    shared = false                   # true: all machines see the same files there, as on NFS

    [prune]                          # what the watch drops each night; nothing without this table
    older_than = "90d"               # details of runs older than this
    keep_versions = 5                # but never of the newest versions of a workload

    [alerts]
    settle = "12h"                   # further runs of a version may come for so long; "0": alerts wait for none
    wait = "2m"                      # what else belongs to an incident may still come
    interval = "6h"                  # between two messages on one incident
    repeat = "7d"                    # until a reminder of what is still open

    [coverage]
    least = 0.9                      # --fail-on coverage: part of the series of a version that must be judged

    [[budgets]]                      # --fail-on budget, and an alert: what each version must keep
    workload = "gpt*"
    device = "*H100*"
    series = "step"                  # or mfu, peak, throughput, an operator, ...
    at_most = "120 ms"               # or at_least

    [page]                           # who may do what on the pages of tracker page
    user_header = "X-Forwarded-User"
    proxies = ["10.0.0.5/32"]        # from where that header counts
    hosts = ["tracker.example"]
    keepers = ["wang"]
    perfetto = "https://ui.perfetto.dev"   # where the pages open traces; a copy of your own, or ""
    url = "https://tracker.example"  # where the pages are: messages link the incident
    commit_url = "https://git.example/gpt/compare/{good}...{bad}"
    repository = "/srv/gpt"          # a clone: number of commits between versions, author of a single one

    [[alerts.channels]]
    name = "perf-team"
    url_env = "TRACKER_SLACK_URL"    # the variable that holds the address of apprise; or url_file, or url

    [[alerts.rules]]
    workload = "gpt*"
    severity = "warning"             # this and above
    channels = ["perf-team"]

    [[alerts.owners]]
    op = "*attention*"
    who = "Li Wei"
    channels = ["attention-team"]
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Iterable, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct, field

from tracker.config import layout
from tracker.config.budgets import Budget
from tracker.config.places import is_address, is_variable, user_path
from tracker.config.refusals import explained
from tracker.errors import SourceError
from tracker.limits.files import read_small_text
from tracker.limits.touch import touch
from tracker.units import MAX_BYTES, age_ns

_TIMES: Final = {
    "watch": ("every", "settled", "limit", "keep"), "prune": ("older_than",),
    "alerts": ("settle", "wait", "interval", "repeat"),
}  # fmt: skip
NOT_AT_ALL: Final = "0"
"""No time, where an entry may say so."""
_MAY_BE_NONE: Final = ("alerts.settle",)
"""Times that may be NOT_AT_ALL."""
_LONGEST: Final = "5200w"
"""A century: what is added to now stays a moment that a database can hold."""

_HOST: Final = r"https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"
_PAGES: Final = re.compile(rf"{_HOST}(?:/[\w.~%+/-]*)?", re.ASCII | re.IGNORECASE)
_COMMITS: Final = re.compile(rf"{_HOST}/(?:[\w.~%+/?&=#:;,@$!*-]|{{good}}|{{bad}})+", re.ASCII | re.IGNORECASE)
"""Addresses that messages link: of characters that no messenger takes for the end of one."""
_WITH_LOGIN: Final = re.compile(r"[^/?#]*//[^/?#]*@")

Severity = Literal["info", "warning", "critical"]
Direction = Literal["regression", "improvement"]


class Versions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which versions are whose. `main`: the branch that is the main line; None: what the repository of a job says."""

    main: str | None = None


class Limits(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How large inputs may be."""

    max_bytes: int = MAX_BYTES


class Readers(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What profiles mean that their formats do not say.

    `loaders`: what the ranges of a team's own data loaders hold in their names, whatever the case; those of frameworks
    are known.
    """

    loaders: tuple[str, ...] = ()


class Folder(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A folder that is watched.

    `layout`: what the folders below `path` mean, part by part: `{workload}`, `{branch}`, `{version}`,
    `{config.KEY}`, `{tag.KEY}`, or `*`; what matches the last part, a file or a folder, is ingested by one call. What a
    profile says of itself (the file that tracker's hooks write beside it) counts before this table, and the layout
    before its entries. `shared`: every machine sees the same files under this path, so that the watchers of all of them
    take each profile once.
    """

    path: str
    layout: str = "*"
    workload: str | None = None
    version: str | None = None
    device: str | None = None
    config: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    format: str | None = None
    expect_ranks: int | None = None
    expect_every: str | None = None
    shared: bool = False

    @property
    def expect_every_ns(self) -> int | None:
        """No run for so long is an alert; None: never."""
        return None if self.expect_every is None else age_ns(self.expect_every)


class Watch(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How `tracker watch` looks at folders."""

    every: str = "1m"
    settled: str = "2m"
    limit: str = "30m"
    keep: str = "90d"
    folders: tuple[Folder, ...] = ()

    @property
    def every_ns(self) -> int:
        """Time between two looks."""
        return age_ns(self.every)

    @property
    def settled_ns(self) -> int:
        """A profile is complete when it stood still this long."""
        return age_ns(self.settled)

    @property
    def limit_ns(self) -> int:
        """A profile that takes longer to ingest is given up."""
        return age_ns(self.limit)

    @property
    def keep_ns(self) -> int:
        """How long what was watched and sent stays on record."""
        return age_ns(self.keep)


class Prune(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which runs lose their details; samples, history and totals stay for ever."""

    older_than: str = "90d"
    keep_versions: int = 5

    @property
    def older_than_ns(self) -> int:
        """Runs that started longer ago."""
        return age_ns(self.older_than)


class Channel(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where messages go: an address of apprise, which is a secret.

    Exactly one of `url_env` (a variable), `url_file` (a file only its owner can read) and `url` (then the settings file
    itself may be readable by its owner only). `form`: long, short (channels with small messages), json (for machines);
    None: what suits the address.
    """

    name: str
    url_env: str | None = None
    url_file: str | None = None
    url: str | None = None
    form: Literal["long", "short", "json"] | None = None

    def __repr__(self) -> str:
        """Without the address, so that no trace of the program shows it."""
        return f"Channel(name={self.name!r})"


class Rule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which incidents go to which channels. Patterns are globs, without regard to case; all entries must hold.

    `op`: an operator of the incident. `device`: with its vendor or without. `severity`: of regressions, this and above.
    `when`: at once; grouped with what else comes within `alerts.wait`; or once a day (UTC). The default: critical
    incidents at once, others grouped.
    """

    channels: tuple[str, ...]
    workload: str = "*"
    device: str = "*"
    op: str = "*"
    severity: Severity = "warning"
    directions: tuple[Direction, ...] = ("regression",)
    when: Literal["at once", "grouped"] | None = None


class Owner(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who answers for operators: named in messages on them, and alerted on channels of their own.

    `channels` hear of regressions of severity warning and above in which such an operator got worse, with these
    operators shown; a channel that a rule names hears of the whole incident instead.
    """

    op: str
    who: str = ""
    channels: tuple[str, ...] = ()
    workload: str = "*"


class Alerts(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which alerts go where, and how often."""

    settle: str = "12h"
    wait: str = "2m"
    interval: str = "6h"
    repeat: str = "7d"
    channels: tuple[Channel, ...] = ()
    rules: tuple[Rule, ...] = ()
    owners: tuple[Owner, ...] = ()

    @property
    def settle_ns(self) -> int:
        """How long after its first run a version with fewer runs than usual waits for others; 0: not at all."""
        return 0 if self.settle == NOT_AT_ALL else age_ns(self.settle)

    @property
    def wait_ns(self) -> int:
        """How long a message waits for what else belongs to it."""
        return age_ns(self.wait)

    @property
    def interval_ns(self) -> int:
        """Least time between two messages on one incident to one channel."""
        return age_ns(self.interval)

    @property
    def repeat_ns(self) -> int:
        """Time until a reminder of what is still open."""
        return age_ns(self.repeat)


class CoverageLimits(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much of a version must be judged. `least`: share of its series, for `--fail-on coverage`; None: not set."""

    least: float | None = None


class PageRoles(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who may do what on the pages of `tracker page`; its options of the same names go before these entries.
    `perfetto`: where traces are opened, "" for nowhere. `url`: where the pages are, for links in messages.
    `repository`: the folder whose git knows the commits of versions.
    """

    token_file: str | None = None
    user_header: str | None = None
    proxies: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    keepers: tuple[str, ...] = ()
    commit_url: str | None = None
    issue_url: str | None = None
    perfetto: str = "https://ui.perfetto.dev"
    url: str | None = None
    repository: str | None = None


class Entries(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings file as a whole."""

    database: str | None = None
    workload: str | None = None
    version: str | None = None
    versions: Versions = Versions()
    limits: Limits = Limits()
    readers: Readers = Readers()
    watch: Watch = Watch()
    prune: Prune | None = None
    alerts: Alerts = Alerts()
    coverage: CoverageLimits = CoverageLimits()
    budgets: tuple[Budget, ...] = ()
    page: PageRoles = PageRoles()


_LARGEST: Final = 1 << 63
"""Whole numbers of TOML are below it."""

_LISTED: Final[dict[str, type[Struct]]] = {
    "watch.folders": Folder, "alerts.channels": Channel, "alerts.rules": Rule, "alerts.owners": Owner,
    "budgets": Budget,
}  # fmt: skip


def read(path: Path) -> Entries:
    """The checked entries of the settings file at `path`. SourceError names file, key, problem and remedy."""
    with touch(path):
        return _read(path)


def _read(path: Path) -> Entries:
    try:
        text, state = read_small_text(path)
        private = not state.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        other = "create the file with tracker init" if is_missing else "make that file readable"
        remedy = f"correct TRACKER_CONFIG, or {other}"
        raise SourceError(path, "", f"the settings file cannot be read ({error.strerror})", remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise SourceError(path, "", f"the settings file is not UTF-8: {error}", remedy="correct that line") from error
    return parse(text, path, private=private)


def parse(text: str, path: Path, *, private: bool = True) -> Entries:
    """The checked entries in the text of a settings file. `private`: only its owner can read it."""
    try:
        tables = tomllib.loads(text)
        if _has_large_number(tables):
            raise ValueError(_LARGEST)
    except (ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        if not isinstance(error, tomllib.TOMLDecodeError | RecursionError):
            # Python makes no number of more than 4,300 digits either
            problem = "it has a number of too many digits"
        raise SourceError(
            path, "", f"the settings file is not valid TOML: {problem}", remedy="correct that line"
        ) from error
    try:
        entries = msgspec.convert(tables, Entries)
    except msgspec.ValidationError as error:
        raise _refused(path, str(error)) from error
    for key, problem in _problems(entries, tables, private=private):
        raise SourceError(path, f"key {key}", problem, remedy="correct the settings file")
    return entries


def _has_large_number(value: object) -> bool:
    """Return whether a whole number in a value of TOML is larger than TOML has."""
    if isinstance(value, dict):
        return any(map(_has_large_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_large_number, value))
    return isinstance(value, int) and abs(value) >= _LARGEST


def _refused(path: Path, message: str) -> SourceError:
    """msgspec's words, with the key in front: `Expected `int`, got `str` - at `$.limits.max_bytes``."""
    key, of, plain = explained(message)
    if not plain:
        known = ", ".join(_table_of(key).__struct_fields__)
        return SourceError(path, f"key {key}{of}", "there is no such setting", remedy=f"known here: {known}")
    return SourceError(path, f"key {key}{of}" if key else "", plain, remedy=_remedy(key, plain))


def _remedy(key: str, plain: str) -> str:
    """How an entry of the wrong type is written; `plain`: what is wrong with it."""
    name = key.rpartition(".")[2]
    if key in _LISTED:
        return f"write [[{key}]], with two brackets, above each entry"
    if name == "expect_every" or name in _TIMES.get(key.rpartition(".")[0], ()):
        return f'write a time in quotes: {name} = "5m"'
    words = _words(get_type_hints(_table_of(key)).get(name))
    if words and plain.endswith("is not a choice"):
        return f"it must be one of: {', '.join(words)}"
    return "correct the settings file"


def _words(kind: Any) -> list[str]:
    """The words that an entry of this type may be; none where it is no choice of words."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [word for part in get_args(kind) for word in _words(part)]


def _table_of(key: str) -> type[Struct]:
    """The table in which `key` stands."""
    place = key.rpartition(".")[0]
    tables: dict[str, type[Struct]] = {
        "versions": Versions, "limits": Limits, "readers": Readers, "watch": Watch, "prune": Prune, "alerts": Alerts,
        "coverage": CoverageLimits,
        "page": PageRoles,
    }  # fmt: skip
    return (tables | _LISTED).get(place, Entries)


def _problems(entries: Entries, tables: dict[str, Any], *, private: bool) -> list[tuple[str, str]]:
    """Key and problem of each entry that has the right type and cannot be."""
    found = [(name, "is '', expected a name") for name in ("workload", "version") if getattr(entries, name) == ""]
    if entries.versions.main is not None and not entries.versions.main.strip():
        found.append(("versions.main", "is empty, expected the name of a branch"))
    if entries.database == "":
        found.append(("database", "is '', expected a URL or a path"))
    if entries.limits.max_bytes < 1:
        found.append(
            ("limits.max_bytes", f"is {entries.limits.max_bytes}, expected a whole number of bytes, 1 or more")
        )
    if not all(name.strip() for name in entries.readers.loaders):
        found.append(("readers.loaders", "has '', which every range holds; expected a part of a name"))
    for table, names in _TIMES.items():
        for name in names:
            key = f"{table}.{name}"
            wrong = _no_age(tables.get(table, {}).get(name), may_be_none=key in _MAY_BE_NONE)
            if wrong:
                found.append((key, wrong))
    least = entries.coverage.least
    if least is not None and not 0 < least <= 1:
        found.append(("coverage.least", f"is {least:g}, expected a share above 0, at most 1"))
    found += _numbered("budgets", (budget.list_problems() for budget in entries.budgets))
    if entries.prune and entries.prune.keep_versions < 0:
        found.append(("prune.keep_versions", f"is {entries.prune.keep_versions}, expected 0 or more"))
    if entries.page.perfetto and not re.fullmatch(r"https?://[\w.\[\]:-]+(?:/[^\s]*)?", entries.page.perfetto):
        found.append(("page.perfetto", f"is {entries.page.perfetto!r}, expected an address such as https://HOST"))
    found += [
        ("page.proxies", f"is {one!r}, expected a network") for one in entries.page.proxies if not _is_network(one)
    ]
    found += _of_links(entries.page)
    if (url := entries.page.issue_url) and not (re.match("https?://", url) and "{title}" in url):
        found.append(("page.issue_url", f"is {url!r}, expected an http address with {{title}}, and {{text}} if wanted"))
    paths = [folder.path.rstrip("/") for folder in entries.watch.folders]
    found += _numbered("watch.folders", map(_of_folder, entries.watch.folders))
    found += [
        ("watch.folders.path", f"is {path!r} twice, expected each folder once")
        for path in dict.fromkeys(paths)
        if paths.count(path) > 1
    ]
    return found + _of_alerts(entries.alerts, private=private)


def _of_links(page: PageRoles) -> list[tuple[str, str]]:
    """Key and problem of the addresses that messages link, and of the repository."""
    found = []
    for name in ("url", "commit_url"):
        address = getattr(page, name)
        if address is not None and _WITH_LOGIN.match(address):
            # which may not be repeated
            found.append((f"page.{name}", "holds a user or password, which everybody would read; leave it out"))
    if page.url is not None and not _PAGES.fullmatch(page.url):
        found.append(("page.url", f"is {page.url!r}, expected the address of tracker page, such as https://HOST/PATH"))
    if (url := page.commit_url) and not ("{good}" in url and "{bad}" in url and _COMMITS.fullmatch(url)):
        found.append(("page.commit_url", f"is {url!r}, expected an http address with {{good}} and {{bad}}"))
    if page.repository is not None and (is_address(page.repository) or not page.repository.strip()):
        found.append(("page.repository", "is no path, expected the folder of a clone"))
    return found


def _is_network(text: str) -> bool:
    try:
        return bool(ip_network(text))
    except ValueError:
        return False


def _no_age(value: str | None, *, may_be_none: bool = False) -> str:
    """What is wrong with a time; empty: nothing. `may_be_none`: it may be NOT_AT_ALL."""
    if may_be_none and value == NOT_AT_ALL:
        return ""
    try:
        if value is None or 0 < age_ns(value) <= age_ns(_LONGEST):
            return ""
        is_long = age_ns(value) > 0
    except ValueError:
        is_long = False
    if is_long:
        return f"is {value!r}, expected at most {_LONGEST}"
    or_none = f"{NOT_AT_ALL} or " if may_be_none else ""
    return f"is {value!r}, expected {or_none}a time such as 30s, 5m, 6h, 7d or 2w"


def _numbered(table: str, problems: Iterable[Iterable[tuple[str, str]]]) -> list[tuple[str, str]]:
    """What is wrong with the entries of a table that is there several times, with the number of each; from 1."""
    return [
        (f"{table}.{name} of entry {number}", wrong)
        for number, own in enumerate(problems, start=1)
        for name, wrong in own
    ]


def _of_folder(folder: Folder) -> list[tuple[str, str]]:
    found = []
    if not folder.path:
        found.append(("path", "is '', expected a folder"))
    try:
        layout.parse(folder.layout)
    except ValueError as error:
        found.append(("layout", f"is {folder.layout!r}: {error}"))
    if wrong := _no_age(folder.expect_every):
        found.append(("expect_every", wrong))
    if folder.expect_ranks is not None and folder.expect_ranks < 1:
        found.append(("expect_ranks", f"is {folder.expect_ranks}, expected 1 or more"))
    return found


def _of_alerts(alerts: Alerts, *, private: bool) -> list[tuple[str, str]]:
    names = [channel.name for channel in alerts.channels]
    found = [one for channel in alerts.channels for one in _of_channel(channel, names, private=private)]
    found += _numbered("alerts.rules", (_of_channels(rule.channels, names) for rule in alerts.rules))
    found += [
        (f"alerts.rules.channels of entry {number}", "is empty")
        for number, rule in enumerate(alerts.rules, start=1)
        if not rule.channels
    ]
    return found + _numbered("alerts.owners", (_of_channels(owner.channels, names) for owner in alerts.owners))


def _of_channel(channel: Channel, names: Sequence[str], *, private: bool) -> list[tuple[str, str]]:
    """What is wrong with a channel; an address that landed in a wrong entry is not shown."""
    found = []
    given = [word for word in ("url_env", "url_file", "url") if getattr(channel, word)]
    if is_address(channel.name):
        return [("alerts.channels.name", "is an address, which is a secret; expected a name, and the address in url")]
    if not channel.name or names.count(channel.name) > 1:
        found.append(("alerts.channels.name", f"is {channel.name!r}, expected a name of its own for each channel"))
    who = f"channel {channel.name!r}"
    if len(given) != 1:
        said = " and ".join(given) or "none"
        found.append(("alerts.channels", f"{who} has {said}, expected one of url_env, url_file, url"))
    if channel.url_env and not is_variable(channel.url_env):
        said = f"{who} has what is no name of a variable, expected one that is set to the address"
        found.append(("alerts.channels.url_env", said))
    if channel.url_file and (is_address(channel.url_file) or not user_path(channel.url_file).is_absolute()):
        said = f"{who} has what is no path from the root, or ~/..., expected that of a file with the address"
        found.append(("alerts.channels.url_file", said))
    if channel.url and not private:
        said = f"{who} holds a secret, and others can read this file (chmod 600 it, or url_env)"
        found.append(("alerts.channels.url", said))
    return found


def _of_channels(named: Iterable[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """What is wrong with the channels that a rule or an owner names."""
    known = f"it has {', '.join(names)}" if names else "none is there"
    return [
        ("channels", f"there is no channel {'of this address' if is_address(name) else repr(name)} "
                     f"in [[alerts.channels]]: {known}")
        for name in named
        if name not in names
    ]  # fmt: skip
