"""What each entry of the settings file means, in one line: the table of the manual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MEANINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {
        "database": "the database: a URL, or a path; a relative one starts at the settings file",
        "workload": "the workload of every command and ingest that names none",
        "version": "the version of profiles that state none; git: git describe --always --dirty in the current folder",
    },
    "[versions]": {
        "main": "the branch that is the main line; default: what origin/HEAD names, else main or master",
    },
    "[limits]": {"max_bytes": "largest decompressed size of one input file"},
    "[readers]": {
        "loaders": "what ranges of your own data loader hold in their names, whatever the case; those of PyTorch, "
        "Lightning, TorchRec, Megatron-LM, Paddle and MindSpore are known",
    },
    "[watch]": {
        "every": "time between two looks at the folders",
        "settled": "a profile is complete when size and time stood still this long; a run waits this long for a rank",
        "limit": "a profile that takes longer to ingest is given up, and the next one is read",
        "keep": "how long what was watched and sent stays on record",
    },
    "[[watch.folders]]": {
        "path": "the folder that is watched",
        "layout": "what the folders below it mean, part by part: {workload}, {branch}, {version}, {config.KEY}, "
        "{tag.KEY} or *",
        "workload": "the workload, where neither the profile nor the layout says it",
        "version": "the version, likewise",
        "device": "the hardware model, likewise",
        "config": "what must be equal for runs to be compared, likewise: { batch = \"32\" }",
        "tags": "marks to find runs by, likewise",
        "format": "the profiler's format, where it is not recognised",
        "expect_ranks": "number of ranks until a run counts as complete",
        "expect_every": "no run for so long is an alert",
        "shared": "true: every machine sees the same files there, and one watcher takes each profile",
    },
    "[prune]": {
        "older_than": "details of runs older than this are dropped each night, and branches whose newest run is older; "
        "nothing without this table",
        "keep_versions": "but never those of so many newest versions of a workload",
    },
    "[page]": {
        "token_file": "as --token-file of tracker page; a relative path starts at the settings file",
        "user_header": "as --user-header",
        "proxies": "as --proxy, a list",
        "hosts": "as --host, a list",
        "actors": "as --actor, a list",
        "keepers": "as --keeper, a list",
        "commit_url": "the address of the commits {good}...{bad} of a finding or diff, linked on its page and in "
        "messages",
        "issue_url": "the address of a new issue with {title} and {text}, linked on the page of an incident or finding",
        "url": "the address of the pages, which messages on incidents link",
        "repository": "the folder of a clone, whole and kept up to date: pages, findings, explain and messages say how "
        "many commits lie between two versions, and who made up to five of them; a relative path starts at the "
        "settings file",
        "perfetto": "where the pages open traces; a copy of your own, or empty for no button",
    },
    "[alerts]": {
        "settle": "after its first run, a version with fewer runs than the versions before it waits for more so long, "
        "and what is found in it is no alert yet; 0: not at all",
        "wait": "what else belongs to an incident may come for so long",
        "interval": "least time between two messages on one incident",
        "repeat": "time until a reminder of what is still open",
    },
    "[coverage]": {"least": "the share of the series of a version that must be judged, for --fail-on coverage"},
    "[[budgets]]": {
        "workload": "a pattern of workloads",
        "device": "a pattern of devices, with vendor or without",
        "series": "mfu, peak, throughput, step, another series of a whole run, or an operator",
        "at_most": "what it may be at most: 120 ms, 60 GB, 45 %; or at_least",
        "at_least": "what it must be at least: 0.45, 300 samples/s",
    },
    "[[alerts.channels]]": {
        "name": "the name by which rules and owners call it",
        "url_env": "the variable that holds its address; or url_file, or url",
        "url_file": "the file that holds its address, which only its owner can read",
        "url": "its address; then only the owner may read the settings file",
        "form": "long, short or json; else what suits the address",
    },
    "[[alerts.rules]]": {
        "channels": "where incidents go for which all else in the rule holds",
        "workload": "a pattern of workloads",
        "device": "a pattern of devices, with vendor or without",
        "op": "a pattern of operators of the incident",
        "severity": "of regressions this and above: info, warning, critical",
        "directions": "regression, improvement, or both",
        "when": "at once or grouped; default: critical incidents at once, others grouped",
    },
    "[[alerts.owners]]": {
        "op": "a pattern of operators",
        "who": "who answers for them, named in messages",
        "channels": "where regressions in which they got worse go as well",
        "workload": "a pattern of workloads",
    },
}  # fmt: skip
"""Table of the file -> entry -> its meaning."""
