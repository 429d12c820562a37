"""The views of runs and of versions, which say what is here and whether it was judged."""

from __future__ import annotations

from typing import Final

from tracker.schema.series import RUN_LEVEL
from tracker.store.views.parts import (
    JOIN_TRACK,
    RUN_ID,
    TRACK,
    View,
    ViewColumn,
    real,
    same_track,
    whole,
    word,
)

RULES: Final = "rules 0000.0000;"
"""How the basis of a judgement begins (`judged_version.basis`): by which rules it was made."""

_WINDOW: Final = """WINDOW
        track AS (
            PARTITION BY s.workload_id, s.configuration_id, s.device_id
            ORDER BY s.ordinal, s.version_id
        )"""

_JUDGED: Final = f"""WITH counted AS (
    SELECT
        c.run_id,
        COUNT(*) AS ranks
    FROM capture AS c
    GROUP BY c.run_id
),

present AS (
    SELECT
        r.workload_id,
        r.configuration_id,
        r.device_id,
        r.version_id,
        v.ordinal,
        w.main_id,
        j.basis,
        COUNT(*) AS runs,
        SUM(
            CASE
                WHEN
                    REPLACE(
                        j.basis,
                        '(' || r.id || ':' || COALESCE(n.ranks, 0) || ':' || COALESCE(CAST(r.recording_id AS TEXT), '')
                        || ':' || COALESCE(CAST(r.started_at_ns AS TEXT), '') || ')',
                        ''
                    ) <> j.basis THEN 1
                ELSE 0
            END
        ) AS same_runs
    FROM run AS r
    INNER JOIN workload AS w ON r.workload_id = w.id
    INNER JOIN version AS v ON r.version_id = v.id
    LEFT JOIN counted AS n ON r.id = n.run_id
    LEFT JOIN judged_version AS j
        ON
            {same_track("r", "j", indent=12)}
            AND r.version_id = j.version_id
    WHERE r.state = 'active' AND r.ranks_awaited IS NULL
    GROUP BY r.workload_id, r.configuration_id, r.device_id, r.version_id, v.ordinal, w.main_id, j.basis
),

checked AS (
    SELECT
        s.workload_id,
        s.configuration_id,
        s.device_id,
        s.version_id,
        s.ordinal,
        s.main_id,
        s.basis,
        s.runs,
        CASE
            WHEN s.same_runs < s.runs OR REPLACE(s.basis, '; runs ' || s.runs || ' (', '') = s.basis THEN 0
            WHEN
                SUBSTR(s.basis, 1, {len(RULES)})
                < (SELECT MAX(SUBSTR(j.basis, 1, {len(RULES)})) FROM judged_version AS j)
                THEN 0
            -- what a branch rests on is looked at below
            WHEN s.main_id IS NOT NULL THEN 1
            WHEN
                REPLACE(s.basis, '; after ' || COALESCE(LAG(s.version_id) OVER track, 0) || ';', '') = s.basis
                THEN 0
            WHEN
                REPLACE(
                    s.basis,
                    '; limits ' || (
                        SELECT COUNT(*) FROM threshold AS t
                        WHERE
                            s.workload_id = t.workload_id
                            AND t.configuration_id IN (0, s.configuration_id)
                            AND t.device_id IN (0, s.device_id)
                    ) || ' ',
                    ''
                ) = s.basis THEN 0
            WHEN
                EXISTS (
                    SELECT 1 FROM threshold AS t
                    WHERE
                        s.workload_id = t.workload_id
                        AND t.configuration_id IN (0, s.configuration_id)
                        AND t.device_id IN (0, s.device_id)
                        AND REPLACE(
                            s.basis,
                            '<' || t.name || '|' || t.kind || '|' || t.pattern || '|'
                            || CAST(ROUND(t.value * 1000000000.0) AS BIGINT) || '|'
                            || t.configuration_id || '|' || t.device_id || '>',
                            ''
                        ) = s.basis
                ) THEN 0
            ELSE 1
        END AS is_same,
        ROW_NUMBER() OVER (
            PARTITION BY s.workload_id, s.configuration_id, s.device_id
            ORDER BY s.ordinal DESC, s.version_id DESC
        ) AS versions_from_newest
    FROM present AS s
    {_WINDOW}
),

followed AS (
    SELECT
        s.workload_id,
        s.configuration_id,
        s.device_id,
        s.version_id,
        s.main_id,
        s.basis,
        s.runs,
        s.versions_from_newest,
        -- a judgement rests on those of all versions before
        MIN(s.is_same) OVER track AS is_same
    FROM checked AS s
    {_WINDOW}
),

known AS (
    SELECT
        s.workload_id,
        s.configuration_id,
        s.device_id,
        s.version_id,
        s.runs,
        s.versions_from_newest,
        CASE
            WHEN s.main_id IS NULL OR s.is_same = 0 THEN s.is_same
            WHEN REPLACE(s.basis, '; base 0;', '') <> s.basis THEN 1
            WHEN
                EXISTS (
                    SELECT 1 FROM followed AS m
                    WHERE
                        s.main_id = m.workload_id
                        AND s.device_id = m.device_id
                        AND m.is_same = 1
                        AND REPLACE(
                            s.basis, '; base ' || m.configuration_id || '.' || m.version_id || ';', ''
                        ) <> s.basis
                ) THEN 1
            ELSE 0
        END AS is_judged
    FROM followed AS s
)

"""
"""Which versions have runs, and whether their judgement is current: made from the runs, the limits, the version before
and the rules that are there now. `regressions.track` writes the words that are looked for here.
"""


def _judged(sql: str) -> str:
    # what is out of date must not look like a judgement
    return f"CASE WHEN k.is_judged = 1 THEN {sql} END"


VERSION_VIEW: Final = View(
    "v_version",
    "A version of a track (a workload in one configuration on one device) that has active runs, and how it was judged. "
    "The judgement is NULL while it is out of date.",
    (
        *TRACK,
        word("commit_id", "v.commit_id", "commit of the version; NULL: not known"),
        word("note", "v.note", "remark of the user"),
        whole("is_pinned", "CASE WHEN v.pinned THEN 1 ELSE 0 END", "1: the fixed baseline of its workload"),
        whole("is_newest", "CASE WHEN k.versions_from_newest = 1 THEN 1 ELSE 0 END", "1: the newest of its track"),
        whole("runs", "k.runs", "its active runs"),
        whole(
            "is_judged", "k.is_judged",
            "1: its judgement is there and current; 0: not judged yet, or its runs, those before it, the limits or the "
            "rules are others now: tracker versions judge. A branch's base that moved is seen at the next judgement",
        ),
        word("step_verdict", _judged("j.step_verdict"), "verdict of its step; NULL: it has none"),
        real("step_before_ns", _judged("j.step_before_ns"), "step of the runs it was judged against"),
        real("step_after_ns", _judged("j.step_after_ns"), "its own step"),
        real(
            "net_ratio", _judged("j.net"),
            "change of the step by the operators that were found in it; 0.1: 10 % of the step",
        ),
        real("peak_memory_ratio", _judged("j.peak"), "rise of its peak memory; 0.1: 10 %"),
        whole("workload_id", "k.workload_id", "number of the workload, to join by"),
        whole("configuration_id", "k.configuration_id", "number of the configuration, to join by"),
        whole("device_id", "k.device_id", "number of the device, to join by"),
        whole("version_id", "k.version_id", "number of the version, to join by"),
    ),
    f"""FROM known AS k
{JOIN_TRACK.format("k", "version_id")}
LEFT JOIN judged_version AS j
    ON
        {same_track("k", "j", indent=8)}
        AND k.version_id = j.version_id""",
    before=_JUDGED,
)  # fmt: skip

_STEPS_OF_RUN: Final = """(
        SELECT SUM(n.steps)
        FROM (
            SELECT MAX(COALESCE(s.steps, 1)) AS steps
            FROM step AS s
            WHERE s.run_id = r.id
            GROUP BY s.step
        ) AS n
    )"""


def _of_captures(sql: str) -> str:
    return f"""(
        SELECT {sql} FROM capture AS c
        WHERE c.run_id = r.id
    )"""


def _sample(sql: str, name: str) -> str:
    """Return what the sample of a run-level series says: one run has one, or none."""
    return f"""(
        SELECT {sql}
        FROM series AS s
        INNER JOIN sample AS n ON s.id = n.series_id
        WHERE
            {same_track("r", "s", indent=12)}
            AND s.kind = 'run'
            AND s.name = '{name}'
            AND s.step_kind = ''
            AND n.run_id = r.id
    )"""


def _known_zero(metric: str) -> str:
    """Return 0 where all steps state 0, of which no sample is stored; else NULL."""
    return f"""(
        SELECT
            CASE
                WHEN COUNT(*) = COUNT(s.{metric}) AND MAX(s.{metric}) = 0 THEN 0.0
            END
        FROM step AS s
        WHERE s.run_id = r.id
    )"""


def _numbers_of_run() -> list[ViewColumn]:
    columns = []
    for name, metric in RUN_LEVEL.items():
        if name == "throughput":
            # one of two throughputs would be of an unknown unit
            one = "CASE WHEN COUNT(*) = 1 THEN MAX({}) END"
            columns.append(real("throughput_per_second", _sample(one.format("n.value"), name), "throughput, as stated"))
            meaning = "what it counts, such as images/s; empty: the source does not say"
            columns.append(word("throughput_unit", _sample(one.format("s.input_shapes"), name), meaning))
            continue
        public = "step_ns" if metric == "duration_ns" else metric
        meaning = f"{name} per step: the number that is judged, see the table sample"
        value = _sample("MAX(n.value)", name)
        if metric.endswith("_ns") and name != "step":
            value = f"COALESCE({value}, {_known_zero(metric)})"
        if name == "peak memory":
            meaning = "largest size that the framework's allocator had given out, of all ranks"
        columns.append(real(public, value, meaning))
    return columns


RUN_VIEW: Final = View(
    "v_run",
    "A run, whatever its state, with its numbers per step. They stay when its details are dropped (tracker prune).",
    (
        RUN_ID,
        *TRACK,
        word("commit_id", "v.commit_id", "commit of the version; NULL: not known"),
        word("state", "r.state", "active, excluded or deleted; only active runs are in the other views"),
        word("state_reason", "r.state_reason", "why it is excluded or deleted, or was restored"),
        word("note", "r.note", "remark of the user"),
        whole("started_at_ns", "r.started_at_ns", "start of the capture, ns since 1970 UTC; NULL: not known"),
        whole("ended_at_ns", "r.ended_at_ns", "end of the capture, ns since 1970 UTC; NULL: not known"),
        whole("ranks", _of_captures("COUNT(*)"), "ranks that are here"),
        whole(
            "ranks_expected", f"COALESCE(r.ranks_awaited, r.ranks_expected, {_of_captures('COUNT(*)')})",
            "ranks until it is complete: with fewer it is partial",
        ),
        whole("world_size", "r.world_size", "processes of the job; NULL: the source does not say"),
        word("quality", _of_captures("MAX(c.quality)"), "ok, or partial where the capture of a rank is"),
        whole(
            "pruned_at_ns", _of_captures("MAX(c.pruned_at_ns)"),
            "when its details were dropped, ns since 1970 UTC: it has no rows in v_op to v_memory; NULL: they are here",
        ),
        whole(
            "is_judged",
            "CASE WHEN r.state = 'active' AND r.ranks_awaited IS NULL THEN COALESCE(q.is_judged, 0) END",
            "1: the judgement of its version is current; 0: it is missing or out of date; NULL: the run is not active, "
            "or waits for ranks",
        ),
        whole("steps", _STEPS_OF_RUN, "steps that were measured; NULL: none is known"),
        *_numbers_of_run(),
    ),
    f"""FROM run AS r
{JOIN_TRACK.format("r", "version_id")}
LEFT JOIN v_version AS q
    ON
        {same_track("r", "q", indent=8)}
        AND r.version_id = q.version_id""",
)  # fmt: skip
