"""A database that an older rule judged: what this one finds too keeps its number, what it does not find is closed."""

from __future__ import annotations

from sqlalchemy import text

from tests.judgement.test_update import judge
from tests.regressions.made import runs
from tracker.detectors import rule
from tracker.judgement import Wish, act, explain, findings
from tracker.results import FindingsOptions
from tracker.results.findings import STATES


def rows(store):
    found = findings(store, options=FindingsOptions(states=STATES, every=True, kind="op")).findings
    return {row["name"]: (row["finding_id"], row["state"]) for row in found.to_dict("records")}


def found_by_version_4(store, name, like):
    """An open finding of the op `name`, as that of the op `like`, which this rule does not find."""
    series = "SELECT id FROM series WHERE kind = 'op' AND name = :name"
    with store.begin() as connection:
        (own,), (other,) = (connection.execute(text(series), {"name": of}).one() for of in (name, like))
        for table in ("finding", "finding_number"):
            columns = list(connection.execute(text(f"SELECT * FROM {table} LIMIT 0")).keys())
            values = ", ".join({"id": "90", "series_id": str(own), "number": "1"}.get(one, one) for one in columns)
            where = "series_id = :other AND direction = 'regression' AND change = 'level'"
            connection.execute(
                text(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {where}"),
                {"other": other},
            )
        connection.execute(text("UPDATE finding SET rule_version = 4"))
        connection.execute(text("UPDATE followed SET fingerprint = :none, checkpoint = NULL"), {"none": b""})


def test_what_this_rule_finds_too_keeps_its_number_and_what_users_said_and_the_rest_is_closed(store):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.3}, start=5)
    judge(store)
    number = rows(store)["op07"][0]
    act(store, Wish("ack", "ann", 1, "seen"), finding_ids=[number])
    found_by_version_4(store, "op09", like="op07")
    judge(store)
    assert rows(store) == {"op07": (number, "acknowledged"), "op09": (90, "normal")}
    last = explain(store, 90).events.to_dict("records")[-1]
    assert (last["target"], last["kind"], last["who"]) == ("normal", "closed", "rule")
    assert last["reason"].startswith(f"the rule, version {rule.RULE_VERSION}, does not find it")
    runs(store, "v3", {"op07": 1.3}, start=8)
    judge(store)
    assert rows(store)["op09"] == (90, "normal"), "it stays closed, and is not told again"
