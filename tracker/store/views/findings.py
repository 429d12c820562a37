"""The views of verdicts and findings, without those whose judgement is out of date."""

from __future__ import annotations

from typing import Final

from tracker.store.views.parts import (
    JOIN_TRACK,
    TRACK,
    View,
    ViewColumn,
    real,
    same_track,
    whole,
    word,
)

_SERIES: Final = (
    word("kind", "s.kind", "op, op_name (all shapes), kernel, communication, memory, api, module, phase, or run"),
    word("metric", "s.metric", "what is followed, with its unit: device_self_ns, total_ns, bytes, ..."),
    word("name", "s.name", "canonical name; of kind run: step, compute, idle time, ..."),
    word("input_shapes", "s.input_shapes", "shapes of the inputs; empty: all"),
    word("part", "s.part", "of a collective its group's role and size class, of an API call its level, of a module its "
          "phase"),
    word("step_kind", "s.step_kind", "of which kind of steps; empty: of all steps"),
)  # fmt: skip

_OF_VERSION: Final = tuple(ViewColumn(column.name, f"q.{column.name}", column.kind, column.meaning) for column in TRACK)

VERDICT_VIEW: Final = View(
    "v_verdict",
    "The verdict of one series in one version, where something is to be said; none where the judgement of the version "
    "is missing or out of date (see v_version.is_judged).",
    (
        *_OF_VERSION, *_SERIES,
        word(
            "verdict",
            "CASE\n        WHEN d.reason NOT IN ('SETTINGS', 'INCOMPLETE', 'OTHER_WORK') "
            "THEN COALESCE(d.decided, d.verdict)\n    END",
            "REGRESSED, IMPROVED, SUSPECT, ...: what later runs made of it, else its own; NULL: none can be given, see "
            "reason",
        ),
        word("reason", "d.reason", "the condition that kept it from being a change; NONE: it is one"),
        real("change_ratio", "d.change", "change of its number; 0.1: 10 % more than before"),
        real("judged_change_ratio", "d.judged_change", "the same without what all operators share"),
        real("contribution_ratio", "d.contribution", "change of the step by this series, as a fraction of the step"),
        real("detectable_ratio", "d.detectable", "smallest change that these runs would have shown four times in five"),
        real("p", "d.p", "chance of such a change, in its direction, where nothing changed"),
        real("q", "d.q", "share of false discoveries among all series of its family with a p this small"),
        whole("baseline_runs", "d.base_runs", "how many runs it was judged against"),
        word("level_version", "b.label", "version that began the level it was judged against; NULL: the first level"),
        whole("series_id", "d.series_id", "number of the series, to join by"),
    ),
    f"""FROM v_version AS q
INNER JOIN verdict AS d ON q.version_id = d.version_id
INNER JOIN series AS s
    ON
        d.series_id = s.id
        AND {same_track("q", "s", indent=8)}
LEFT JOIN version AS b ON d.level_version_id = b.id
WHERE q.is_judged = 1""",
)  # fmt: skip


_MARKS: Final = """WITH marks AS (
    SELECT
        a.series_id,
        a.direction,
        a.how,
        a.first_version_id,
        MAX(CASE WHEN a.action = 'invalid' THEN 1 ELSE 0 END) AS is_invalid,
        MAX(CASE WHEN a.action NOT IN ('note', 'undo') THEN a.id END) AS last_id,
        MAX(CASE WHEN a.action IN ('ack', 'expect') THEN a.id END) AS settled_id
    FROM finding_action AS a
    WHERE
        NOT EXISTS (
            SELECT 1
            FROM finding_action AS u
            WHERE u.undoes_id = a.id
        )
    GROUP BY a.series_id, a.direction, a.how, a.first_version_id
)

"""
"""What users did with findings: the marks of `regressions.inbox.state_of`."""

_STATE: Final = f"""CASE
        WHEN m.is_invalid = 1 THEN 'invalid'
        WHEN f.state <> 'open' THEN f.state
        WHEN l.action = 'mute' AND l.until_ns > {{now}} THEN 'muted'
        WHEN
            l.action = 'mute'
            AND l.until_ns IS NULL
            AND NOT EXISTS (
                SELECT 1
                FROM run AS r
                INNER JOIN version AS u ON r.version_id = u.id
                WHERE
                    {same_track("f", "r", indent=20)}
                    AND r.state = 'active'
                    AND r.ranks_awaited IS NULL
                    AND l.until_version = u.label
            )
            THEN 'muted'
        WHEN n.action = 'ack' THEN 'acknowledged'
        WHEN n.action = 'expect' THEN 'expected'
        WHEN q.is_newest = 1 THEN 'new'
        ELSE 'persisting'
    END"""

FINDING_VIEW: Final = View(
    "v_finding",
    "A confirmed change of a series; none that was withdrawn, and none while the judgement of the version that decided "
    "it is missing or out of date.",
    (
        whole("finding_id", "f.id", "number of the finding: tracker findings show it"),
        whole("incident_id", "i.id", "number of the incident: the findings of one version"),
        *TRACK, *_SERIES,
        word("direction", "f.direction", "regression or improvement"),
        word("how", "f.how", "how it was found: level, presence (it came or went), gradual, late or machine"),
        word(
            "state",
            _STATE,
            "new, persisting, acknowledged, muted: open; expected, invalid: said by a user; recovered, taken back, "
            "accepted, vanished: over",
        ),
        word("decided_version", "q.version", "the version whose runs decided it"),
        word("ended_version", "e.label", "the version in which it was over; NULL: it is open"),
        real("value_before", "f.value_before", "the number before, per step, in the unit of the metric"),
        real("value_after", "f.value_after", "the number after, per step, in the unit of the metric"),
        real(
            "change_ratio",
            "CASE WHEN f.value_before <> 0 AND f.value_after <> 0 THEN f.value_after / f.value_before - 1 END",
            "change of the number; 0.1: 10 % more; NULL: it came or went",
        ),
        real("calls_before", "f.calls_before", "calls per step before"),
        real("calls_after", "f.calls_after", "calls per step after"),
        real("contribution_ratio", "f.contribution", "change of the step by this series, as a fraction of the step"),
        real("q", "f.q", "share of false discoveries among all series of its family with a p this small"),
        real("step_before_ns", "i.before_ns", "step before its incident"),
        real("step_after_ns", "i.after_ns", "step after it"),
        whole("series_id", "f.series_id", "number of the series, to join by"),
    ),
    f"""FROM finding AS f
{JOIN_TRACK.format("f", "first_version_id")}
INNER JOIN series AS s ON f.series_id = s.id
INNER JOIN v_version AS q
    ON
        {same_track("f", "q", indent=8)}
        AND f.decided_version_id = q.version_id
INNER JOIN incident AS i
    ON
        {same_track("f", "i", indent=8)}
        AND f.first_version_id = i.first_version_id
LEFT JOIN version AS e ON f.ended_version_id = e.id
LEFT JOIN marks AS m
    ON
        f.series_id = m.series_id
        AND f.direction = m.direction
        AND f.how = m.how
        AND f.first_version_id = m.first_version_id
LEFT JOIN finding_action AS l ON m.last_id = l.id
LEFT JOIN finding_action AS n ON m.settled_id = n.id
WHERE f.state <> 'withdrawn' AND q.is_judged = 1""",
    before=_MARKS,
)  # fmt: skip
