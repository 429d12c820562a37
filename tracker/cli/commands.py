"""The commands of `tracker`, in the order of its help: each with what it does, and with those below it."""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {
    "Start": {
        "init": "Write a settings file.",
        "demo": "Show a diff of bundled profiles.",
        "doctor": "Check what files or folders hold before an ingest.",
        "ingest": "Read profiles into the database.",
        "diff": "Compare versions, runs or files: what became slower, and why.",
        "show": "Show where the time of one run went.",
    },
    "Follow versions": {
        "history": "Show the step time, or any other series, over the versions.",
        "findings": "List confirmed regressions and improvements by version.",
        "explain": "Show every test, run and event of a finding.",
        "ack": "Acknowledge findings.",
        "expect": "Accept a change as intended: no longer shown, alerted or gated.",
        "mute": "Snooze findings until a date or a version.",
        "unmute": "End a mute early.",
        "invalid": "Mark findings as false positives.",
        "note": "Add a comment to findings.",
        "undo": "Take back the last mark of a finding.",
        "log": "Show what each version achieved, per configuration.",
        "versions": "List, order and pin versions.",
    },
    "Find causes": {
        "board": "Show every workload on one screen: what is new, what is open.",
        "advise": "Say what to change, and what that can win at most.",
        "cluster": "Compare the ranks of a run: who holds the job back, which link is slow.",
        "cut": "Cut one step out of a run's trace, to look at in Perfetto.",
        "ab": "Run two builds by turns on this machine: is the candidate slower?",
        "experiments": "List, show and delete what tracker ab ran.",
        "page": "Serve all of this as pages, to read and to act on.",
    },
    "Automate": {
        "run": "Run a job, then ingest the profiles that it wrote.",
        "watch": "Watch folders: ingest complete profiles, judge them, send alerts.",
        "notify": "Send pending notifications.",
        "status": "Show watchers, waiting profiles and failures.",
        "pack": "Pack profiles into one small file for an ingest elsewhere.",
    },
    "Manage": {
        "runs": "List runs; edit, tag, exclude, restore or delete them.",
        "thresholds": "Show and change detection thresholds.",
        "calibrate": "Estimate the smallest detectable change from repeated runs.",
        "prune": "Delete the details of old runs; history stays.",
        "db": "Show, check, upgrade or copy the database.",
    },
}
"""Group of the help -> command -> what it does."""
SUBCOMMANDS: Final = {
    "versions": ("pin", "unpin", "order", "judge", "forget-branch"),
    "runs": ("edit", "tag", "untag", "exclude", "restore", "delete"),
    "experiments": ("show", "delete"),
    "thresholds": ("set", "try", "unset"),
    "db": ("info", "check", "upgrade", "copy"),
}
WITHOUT_DATABASE: Final = ("init", "demo", "pack", "db", "db copy")
"""Commands that have no --db."""
