"""What a run is filed under: workload, configuration, version and device, made when first named; its facts and tags."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.errors import UsageError
from tracker.profile import UNKNOWN_DEVICE, Device
from tracker.profile.branches import branch_of, main_of
from tracker.store.bulk import clean, insert
from tracker.store.dimensions import digest_of
from tracker.store.failures import Raced
from tracker.store.sql import statement
from tracker.units import device_key, is_plain

_KNOWN_FACTS: Final = text("SELECT key, value FROM run_fact WHERE run_id = :run_id AND kind = 'fact'")
_CHANGE_FACT: Final = text("UPDATE run_fact SET value = :value WHERE run_id = :run_id AND kind = 'fact' AND key = :key")
_FACT_COLUMNS: Final = ("run_id", "kind", "key", "value")
_BETWEEN_FACTS: Final = " | "

MAX_LABEL: Final = 400
"""Characters of a label; a Postgres index row ends at 2,704 bytes, and a longer label is a mistake."""

_NO_VERSION: Final = re.compile(r"latest(~\d+)?|pinned|run:\d+(:rank\d+)?|E-\d+:(baseline|candidate)")
"""What a side of a comparison means instead of a version."""

_FIND_WORKLOAD = text("SELECT id FROM workload WHERE name = :name")
_ADD_WORKLOAD = text("INSERT INTO workload (name, main_id) VALUES (:name, :main_id) ON CONFLICT (name) DO NOTHING")
_MAIN_LINE = text("SELECT COALESCE(main_id, id) FROM workload WHERE id = :id")
_FIND_DEVICE = text(
    "SELECT id FROM device WHERE LOWER(vendor) = LOWER(:vendor) AND LOWER(model) = LOWER(:model) "
    "ORDER BY CASE WHEN vendor = :vendor AND model = :model THEN 0 ELSE 1 END, id LIMIT 1"
)
_DEVICES = text("SELECT id, vendor, model FROM device ORDER BY id")
_NAME_VENDOR = text("UPDATE device SET vendor = :vendor WHERE id = :id")
_ADD_DEVICE = text("INSERT INTO device (vendor, model) VALUES (:vendor, :model) ON CONFLICT (vendor, model) DO NOTHING")
_FIND_CONFIGURATION = text(
    "SELECT id FROM configuration WHERE workload_id = :workload_id AND fingerprint = :fingerprint"
)
_ADD_CONFIGURATION = text(
    "INSERT INTO configuration (workload_id, fingerprint, title) VALUES (:workload_id, :fingerprint, :title) "
    "ON CONFLICT (workload_id, fingerprint) DO NOTHING"
)
_DESCRIBE_CONFIGURATION = text("UPDATE configuration SET fingerprint = :fingerprint, title = :title WHERE id = :id")
_ADD_CONFIGURATION_VALUE = text(
    "INSERT INTO configuration_value (configuration_id, key, value) VALUES (:id, :key, :value) "
    "ON CONFLICT (configuration_id, key) DO NOTHING"
)
_FIND_VERSION = text("SELECT id, commit_id FROM version WHERE workload_id = :workload_id AND label = :label")
_ADD_VERSION = text(
    "INSERT INTO version (workload_id, label, ordinal, commit_id, pinned) "
    "SELECT :workload_id, :label, COALESCE(MAX(ordinal), 0) + 1, :commit_id, FALSE "
    "FROM version WHERE workload_id = :workload_id"
)
_SET_MAIN_COMMITS = text("UPDATE version SET main_commits = :main_commits WHERE id = :id AND main_commits IS NULL")
_SET_COMMIT = text("UPDATE version SET commit_id = :commit_id WHERE id = :id")
_HOLD = text("SELECT id FROM run WHERE id = :id FOR UPDATE")
_LOCK = text("SELECT pg_advisory_xact_lock(:number)")
_UNUSED: Final = {
    "version": "pinned = FALSE AND note IS NULL AND parent IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM run WHERE version_id = :id)",
    "configuration": "NOT EXISTS (SELECT 1 FROM run WHERE configuration_id = :id)",
    "workload": "NOT EXISTS (SELECT 1 FROM run WHERE workload_id = :id) "
    "AND NOT EXISTS (SELECT 1 FROM version WHERE workload_id = :id) "
    "AND NOT EXISTS (SELECT 1 FROM configuration WHERE workload_id = :id) "
    "AND NOT EXISTS (SELECT 1 FROM workload AS b WHERE b.main_id = :id)",
}
"""Table -> what must hold for the row `:id` of it to go."""

_RESTS_ON: Final[dict[str, tuple[str, ...]]] = {
    "version": (
        "DELETE FROM verdict WHERE version_id = :id",
        "DELETE FROM fact WHERE version_id = :id",
        "DELETE FROM judged_version WHERE version_id = :id",
    ),
    "configuration": (
        "DELETE FROM configuration_value WHERE configuration_id = :id",
        "DELETE FROM verdict WHERE series_id IN (SELECT id FROM series WHERE configuration_id = :id)",
        "DELETE FROM fact WHERE series_id IN (SELECT id FROM series WHERE configuration_id = :id)",
        "DELETE FROM judged_version WHERE configuration_id = :id",
        "DELETE FROM finding WHERE configuration_id = :id",
        "DELETE FROM finding_action WHERE configuration_id = :id",
        "DELETE FROM incident WHERE configuration_id = :id",
        "DELETE FROM series WHERE configuration_id = :id",
        "DELETE FROM threshold WHERE configuration_id = :id",
    ),
    # the configurations of a branch are those of its main line, and stay
    "workload": (
        "DELETE FROM verdict WHERE series_id IN (SELECT id FROM series WHERE workload_id = :id)",
        "DELETE FROM fact WHERE series_id IN (SELECT id FROM series WHERE workload_id = :id)",
        "DELETE FROM judged_version WHERE workload_id = :id",
        "DELETE FROM finding WHERE workload_id = :id",
        "DELETE FROM finding_action WHERE workload_id = :id",
        "DELETE FROM incident WHERE workload_id = :id",
        "DELETE FROM series WHERE workload_id = :id",
        "DELETE FROM threshold WHERE workload_id = :id",
    ),
}
"""Table -> what goes with a row of it."""

Values = Mapping[str, str]


def join_facts(values: Iterable[str]) -> str:
    """Return what ranks say of one thing: the value, or where they differ all of them in order, joined by ` | `.

    The same whichever rank says it first, and when what some of them said is joined already.

    >>> join_facts(["dp 2", "dp 2"]), join_facts(["dp 4", "dp 2"]), join_facts(["dp 2 | dp 4", "dp 1"])
    ('dp 2', 'dp 2 | dp 4', 'dp 1 | dp 2 | dp 4')
    """
    distinct = set(values)
    if len(distinct) == 1:
        return distinct.pop()
    return _BETWEEN_FACTS.join(sorted({part for value in distinct for part in value.split(_BETWEEN_FACTS)}))


def add_facts(connection: Connection, run_id: int, facts: Mapping[str, str], tags: Mapping[str, str]) -> None:
    """Add facts and tags of ranks of a run.

    To facts that are there, what these ranks say otherwise is added; a tag that is there stays.
    """
    new = {clean(key)[:MAX_LABEL]: clean(value) for key, value in sorted(facts.items())}
    known: dict[str, str] = {row.key: row.value for row in connection.execute(_KNOWN_FACTS, {"run_id": run_id})}
    changed: list[dict[str, Any]] = [
        {"run_id": run_id, "key": key, "value": both}
        for key, value in new.items()
        if key in known and (both := join_facts([known[key], value])) != known[key]
    ]
    if changed:
        connection.execute(_CHANGE_FACT, changed)
    rows = [(run_id, "fact", key, value) for key, value in new.items()]
    rows += [(run_id, "tag", clean(key)[:MAX_LABEL], clean(value)) for key, value in sorted(tags.items())]
    insert(connection, "run_fact", _FACT_COLUMNS, rows, or_keep="run_id, kind, key")


def hold_run(connection: Connection, run_id: int) -> None:
    """Let no rank join the run, and nobody else change or remove it, to the end of the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(_HOLD, {"id": run_id})


def lock(connection: Connection, *parts: object) -> None:
    """Let one transaction at a time pass for `parts`; held to its end. A SQLite writer is alone anyway."""
    if connection.dialect.name == "postgresql":
        number = int.from_bytes(digest_of(parts)[:8], signed=True)
        connection.execute(_LOCK, {"number": number})


def workload_id(connection: Connection, name: str) -> int:
    """Return the workload called `name`; with that of its main line, where it is a branch of one."""
    name = workload_name(name)
    main = main_of(name)
    main_id = None if main == name else workload_id(connection, main)
    return _find_or_add(connection, _FIND_WORKLOAD, _ADD_WORKLOAD, {"name": name, "main_id": main_id})


def main_line(connection: Connection, workload: int) -> int:
    """Return the workload of the main line that a workload is a branch of, or is itself.

    Raced where another writer has removed the workload since it was found.
    """
    main = connection.execute(_MAIN_LINE, {"id": workload}).scalar_one_or_none()
    if main is None:
        raise Raced
    return int(main)


def device_id(connection: Connection, device: Device) -> int:
    """Return the hardware model `device`, also where it is known in another spelling; a longer name than MAX_LABEL is
    cut.

    Another spelling differs in capitals, blanks, `-`, `_`, or in that one of the two leaves the vendor out; a vendor
    that was left out before is then kept with the model.
    """
    values = {"vendor": clean(device.vendor)[:MAX_LABEL], "model": clean(device.model)[:MAX_LABEL]}
    if device.model != UNKNOWN_DEVICE.model:
        own = device_key(f"{values['vendor']} {values['model']}")
        for known in connection.execute(_DEVICES):
            vendors = {known.vendor.lower(), values["vendor"].lower()} - {""}
            is_named = known.model != UNKNOWN_DEVICE.model
            if is_named and len(vendors) < 2 and device_key(f"{known.vendor} {known.model}") == own:
                if values["vendor"] and not known.vendor:
                    connection.execute(_NAME_VENDOR, {"id": known.id, "vendor": values["vendor"]})
                return int(known.id)
    return _find_or_add(connection, _FIND_DEVICE, _ADD_DEVICE, values)


def configuration_id(connection: Connection, workload: int, values: Mapping[str, str]) -> int:
    """Return the configuration of `workload` with exactly these values."""
    identity = {"workload_id": workload, **_identity(values)}
    number = _find_or_add(connection, _FIND_CONFIGURATION, _ADD_CONFIGURATION, identity)
    _add_values(connection, number, values)
    return number


def find_configuration(connection: Connection, workload: int, values: Mapping[str, str]) -> int | None:
    """Return the configuration of `workload` with exactly these values, None where there is none yet."""
    identity = {"workload_id": workload, "fingerprint": _identity(values)["fingerprint"]}
    number = connection.execute(_FIND_CONFIGURATION, identity).scalar_one_or_none()
    return None if number is None else int(number)


def describe_configuration(connection: Connection, number: int, values: Mapping[str, str]) -> None:
    """Let a configuration have these values, which add to those that it has; its runs and their history stay."""
    connection.execute(_DESCRIBE_CONFIGURATION, {"id": number, **_identity(values)})
    _add_values(connection, number, values)


def _identity(values: Mapping[str, str]) -> dict[str, Any]:
    pairs = configuration_pairs(values)
    return {"fingerprint": digest_of(part for pair in pairs for part in pair), "title": configuration_title(values)}


def _add_values(connection: Connection, number: int, values: Mapping[str, str]) -> None:
    for key, value in configuration_pairs(values):
        connection.execute(_ADD_CONFIGURATION_VALUE, {"id": number, "key": key, "value": value})


def workload_name(name: str) -> str:
    """Return `name` as a workload is stored; UsageError where none is called so."""
    name = _label("workload", name)
    if main_of(name) != name:
        _label("workload", main_of(name))
        _label("branch", branch_of(name))
    return name


def configuration_pairs(values: Mapping[str, str]) -> list[tuple[str, str]]:
    """Keys and values as they are stored, in order; UsageError for those that cannot be."""
    pairs = sorted((_label("configuration key", key), clean(value)) for key, value in values.items())
    for _, value in pairs:
        _check_plain("configuration value", value)
    return pairs


def configuration_title(values: Mapping[str, str]) -> str:
    """Return the name of the configuration with these values; '' without any."""
    return " ".join(f"{key}={value}" for key, value in configuration_pairs(values))


def check_tags(tags: Iterable[str]) -> None:
    """Raise UsageError for names that no tag can have."""
    if any(not key.strip() or len(key) > MAX_LABEL for key in tags):
        raise UsageError(f"a tag has a name of 1 to {MAX_LABEL} characters", remedy="write --tag KEY=VALUE")


def version_label(label: str) -> str:
    """Return `label` as a version is stored; UsageError where it could never be named as a side of a comparison."""
    label = _label("version", label)
    if _NO_VERSION.fullmatch(label):
        raise UsageError(
            f"the version {label!r} could never be named: tracker takes it for a run or the pinned version",
            remedy="give another --version",
        )
    return label


def version_id(
    connection: Connection, workload: int, label: str, commit: str | None = None, main_commits: Sequence[str] = ()
) -> int:
    """Return the version `label` of `workload`; a new one comes last in the order.

    `main_commits`: of a branch, the commits of the main line from the merge base back; the first that are said count.
    UsageError where the version is known to be another commit.
    """
    identity = {"workload_id": workload, "label": version_label(label)}
    commit = clean(commit or "") or None
    found = connection.execute(_FIND_VERSION, identity).one_or_none()
    if found is None:
        # Two new versions at once must not get one place in the order.
        lock(connection, "version", workload)
        found = connection.execute(_FIND_VERSION, identity).one_or_none()
    if found is None:
        connection.execute(_ADD_VERSION, {**identity, "commit_id": commit})
        found = connection.execute(_FIND_VERSION, identity).one()
    if main_commits:
        connection.execute(_SET_MAIN_COMMITS, {"id": found.id, "main_commits": " ".join(map(clean, main_commits))})
    if commit and found.commit_id is None:
        connection.execute(_SET_COMMIT, {"id": found.id, "commit_id": commit})
    elif commit and found.commit_id != commit:
        raise UsageError(
            f"version {label!r} is commit {found.commit_id}, not {commit}",
            remedy="give another --version, or leave out --commit where you gave one",
        )
    return int(found.id)


def forget_unused(
    connection: Connection, *, workload: int, configurations: Iterable[int], versions: Iterable[int]
) -> None:
    """Remove those of these labels of a workload that no run is filed under any more, and the workload with the last.

    A pinned or annotated version stays. Raced where another writer has removed the workload.
    """
    # Of two that remove the last two runs of a label at once, the later one must see that the earlier one did.
    lock(connection, "forget", workload)
    main = main_line(connection, workload)
    for version in versions:
        _remove_unused(connection, "version", version)
    for configuration in configurations:
        _remove_unused(connection, "configuration", configuration)
    _remove_unused(connection, "workload", workload)
    if main != workload:
        # with its last branch goes a main line that has nothing of its own
        _remove_unused(connection, "workload", main)


def _remove_unused(connection: Connection, table: str, number: int) -> None:
    """Remove a row of version, configuration or workload, and what rests on it, where no run is filed under it."""
    which = f"{table} WHERE id = :id AND {_UNUSED[table]}"
    if connection.dialect.name == "postgresql":
        # Waits for the ingests that are filing runs under the label; what they did counts from the next statement
        # on, and who comes later finds the label gone and makes it again.
        connection.execute(text(f"SELECT id FROM {which} FOR UPDATE"), {"id": number})  # noqa: S608 names of above
    if not connection.execute(text(f"SELECT COUNT(*) FROM {which}"), {"id": number}).scalar_one():  # noqa: S608
        return
    for deletion in _RESTS_ON[table]:
        connection.execute(text(deletion), {"id": number})
    connection.execute(text(f"DELETE FROM {which}"), {"id": number})  # noqa: S608 names of above


def _find_or_add(connection: Connection, find: Any, add: Any, values: Mapping[str, Any]) -> int:
    number = connection.execute(find, values).scalar_one_or_none()
    if number is None:
        connection.execute(add, values)
        number = connection.execute(find, values).scalar_one_or_none()
    if number is None:  # somebody else added it, and somebody removed it again
        raise Raced
    return int(number)


def _label(what: str, label: str) -> str:
    label = clean(label)
    if not label.strip():
        raise UsageError(f"the {what} is empty")
    _check_plain(what, label)
    if len(label) > MAX_LABEL:
        raise UsageError(f"the {what} has {len(label)} characters, at most {MAX_LABEL} are allowed")
    return label


def _check_plain(what: str, text: str) -> None:
    if not is_plain(text):
        raise UsageError(f"the {what} {text!r} holds control characters", remedy="write it on one line, as plain text")


class PlacedConfiguration(Struct, frozen=True):
    """The configuration of a run, and what its user should know of it ('': nothing)."""

    configuration_id: int
    note: str = ""


def place_configuration(
    connection: Connection,
    workload: int,
    values: Values,
    *,
    stated: Collection[str],
    beside: Mapping[str, Collection[str]],
) -> PlacedConfiguration:
    """Return the configuration of a run with these `values`.

    Sources begin to state more keys (a new reader, a new launcher), and a history must not end there. A run that states
    keys which a configuration leaves out, and agrees in all others, is of that configuration, and the keys become known
    of it; unless another configuration or another run of the same ingest states another value, or the user states the
    key.

    `stated`: the keys that only its source states. `beside`: key -> the values that the runs of the same ingest and
    workload have.
    """
    known = find_configuration(connection, workload, values)
    if known is not None:
        return PlacedConfiguration(known)
    # of two runs that add a key at once the later one must see what the earlier one added
    lock(connection, "version", workload)
    stored = configurations_of_workload(connection, workload)
    mine = dict(configuration_pairs(values))
    home = _to_complete(stored, mine, stated, beside)
    if home is not None:
        added = _listed({key: mine[key] for key in mine.keys() - stored[home].keys()})
        describe_configuration(connection, home, values)
        return PlacedConfiguration(
            home, f"states {added}, which the runs before it did not: taken to be theirs as well"
        )
    return PlacedConfiguration(configuration_id(connection, workload, values), _why_new(stored, mine, stated))


def place_configuration_on_branch(
    connection: Connection, workload: int, main: int, values: Values, *, stated: Collection[str]
) -> PlacedConfiguration:
    """Return the configuration of a run of a branch: the one of its main line that it fits, else one of the branch's
    own.

    Nothing that a branch states becomes known of the main line.
    """
    known = find_configuration(connection, main, values)
    if known is None:
        known = _to_complete(
            configurations_of_workload(connection, main), dict(configuration_pairs(values)), stated, {}
        )
    return PlacedConfiguration(configuration_id(connection, workload, values) if known is None else known)


def configurations_of_workload(connection: Connection, workload: int) -> dict[int, dict[str, str]]:
    """Return the configurations of a workload: id -> values."""
    found: dict[int, dict[str, str]] = {}
    for row in connection.execute(statement("workload_configurations"), {"workload_id": workload}):
        values = found.setdefault(row.id, {})
        if row.key is not None:
            values[row.key] = row.value
    return found


def _to_complete(
    stored: Mapping[int, Values], mine: Values, stated: Collection[str], beside: Mapping[str, Collection[str]]
) -> int | None:
    """Return the configuration to which a run only adds keys of which one value is known; the one that says most, if it
    is alone.
    """
    fitting = []
    for number, values in stored.items():
        added = mine.keys() - values.keys()
        agrees = all(mine.get(key) == value for key, value in values.items())
        if agrees and all(key in stated and _is_one(stored, beside, key, mine[key]) for key in added):
            fitting.append((len(values), number))
    most = max((count for count, _ in fitting), default=0)
    chosen = [number for count, number in fitting if count == most]
    return chosen[0] if len(chosen) == 1 else None


def _is_one(stored: Mapping[int, Values], beside: Mapping[str, Collection[str]], key: str, value: str) -> bool:
    others = {values[key] for values in stored.values() if key in values} | set(beside.get(key, ()))
    return others <= {value}


def _why_new(stored: Mapping[int, Values], mine: Values, stated: Collection[str]) -> str:
    """Return why a run that differs from another configuration only in keys that one of the two leaves out is not of
    it.
    """
    for values in stored.values():
        shared = values.keys() & mine.keys()
        if any(values[key] != mine[key] for key in shared):
            continue
        silent = {key: values[key] for key in values.keys() - mine.keys()}
        added = {key: mine[key] for key in mine.keys() - values.keys()}
        if silent:
            way = " ".join(f"--config {key}={value}" for key, value in sorted(silent.items()))
            return f"does not state {', '.join(sorted(silent))}, so it is of a configuration of its own; {way} adds it"
        if added.keys() <= set(stated):
            several = ", ".join(sorted(added))
            return f"states {_listed(added)}; runs differ in {several}, so it is of a configuration of its own"
    return ""


def _listed(values: Values) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items()))
