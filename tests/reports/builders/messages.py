"""Messages with round numbers: an incident of four operators, and what else people are told of."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tracker.results import Message, ToldFinding, ToldIncident
from tracker.results.findings import ToldCommit

MS = 1_000_000


def finding(name: str, before: float | None, after: float | None, **more: Any) -> ToldFinding:
    """A finding of an op, in ms."""
    ratio = None if not before or after is None else after / before - 1
    delta = (after or 0.0) - (before or 0.0)
    row: dict[str, Any] = {
        "finding_id": 31, "kind": "op_name", "name": name, "input_shapes": "", "part": "",
        "change": "level" if before and after else "presence", "direction": "regression", "state": "new",
        "unit": "ns", "ratio": ratio, "cause": "slower per call",
        "baseline_value": None if before is None else before * MS,
        "candidate_value": None if after is None else after * MS,
        "delta": delta * MS, "share_of_change": delta / 30, "baseline_calls": 12.0, "candidate_calls": 12.0,
    }  # fmt: skip
    return ToldFinding(**{**row, **more})


def told(**more: Any) -> ToldIncident:
    """An incident: a step of 400 ms takes 430 ms since v42, 24 ms of it in operators."""
    row: dict[str, Any] = {
        "incident_id": 12, "workload": "gpt", "configuration": "batch=32", "device": "NVIDIA H100", "version": "v42",
        "good_version": "v41", "direction": "regression", "severity": "critical", "baseline_runs": (1, 2, 3),
        "candidate_runs": (4, 5, 6), "baseline_step_ns": 400 * MS, "candidate_step_ns": 430 * MS,
        "step_delta_ns": 30 * MS, "operators_ns": 22 * MS, "beside_ns": 6 * MS, "shared_factor": 0.001,
        "causes": ("slower per call", "new operator", "environment"), "environment": (("cuda", "12.4", "12.6"),),
        "by_step": True, "more": 3, "silenced": 1, "new_ns": 3 * MS, "gone_ns": -1 * MS, "machine_ns": 0.0,
        "other_operators_ns": 0.0,
        "beside": (finding("aten::gelu", 1, None, direction="improvement", cause="operator gone"),),
        "shown": (
            finding("aten::mm", 100, 115, owner="Li Wei"),
            finding("flash_fwd<float, 4>", 20, 26),
            finding("aten::tanh", None, 3, cause="new operator", baseline_calls=None),
        ),
    }  # fmt: skip
    return ToldIncident(**{**row, **more})


COMMANDS = {
    "reproduce": "tracker diff v41 v42 --workload gpt",
    "look": "tracker findings --workload gpt --version v42",
    "explain": "tracker explain 31",
    "acknowledge": "tracker ack I-12 --reason ...",
    "mute": "tracker mute I-12 --until 2w --reason ...",
}


def message(event: str = "opened", *incidents: ToldIncident, **more: Any) -> Message:
    """A message on one incident, or on these."""
    row: dict[str, Any] = {
        "event": event, "key": f"1.1.1.42.regression:{event}:1", "workload": "gpt", "severity": "critical",
        "incidents": incidents or (told(),), "owners": ("Li Wei",), "commands": COMMANDS,
    }  # fmt: skip
    return Message(**{**row, **more})


def recovered() -> Message:
    """The end of the incident, with a rest."""
    shown = (replace(one, state="recovered") for one in told().shown)
    over = replace(told(), recovered_in="v44", left=("aten::gelu",), more=0, silenced=0, shown=tuple(shown))
    return message("recovered", over, commands={"look": "tracker findings --state recovered"})


def two_devices() -> Message:
    """One version that is slower on two devices."""
    other = told(incident_id=13, device="Ascend 910B", shown=(), candidate_step_ns=412 * MS, step_delta_ns=12 * MS)
    return message("opened", told(), other)


def linked(one: Message | None = None, **more: Any) -> Message:
    """A message as it is sent where the settings say where the pages and commits are."""
    good, bad = "4af1c2d0" * 5, "83fb3812" * 5
    own = {"good_commit": good, "commit": bad, "commits_url": f"https://git.example/compare/{good}...{bad}", **more}
    one = one or message()
    incidents = tuple(
        replace(each, url=f"https://tracker.example/incident/I-{each.incident_id}", **own) for each in one.incidents
    )
    return replace(one, incidents=incidents)


SINGLE = {
    "commits": 1, "author": "Ann Lee", "subject": "use the fast path",
    "named_commits": (ToldCommit(commit="83fb3812" * 5, author="Ann Lee", subject="use the fast path"),),
}  # fmt: skip
"""What is known of a single commit."""


def held_back() -> Message:
    """An incident whose profiles were taken in another way."""
    return message("opened", held_back="other profiler settings measure something else (profiler steps 5 -> 10)")


def alarm() -> Message:
    """What is no incident."""
    lines = ("The last run came 2026-01-01 00:00 UTC.", "Expected: every 1d.")
    return Message(event="missing_runs", key="missing_runs:gpt", workload="gpt", title="no run for 2 days", lines=lines)
