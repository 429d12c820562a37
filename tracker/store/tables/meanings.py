"""What every column means, in words: docs/columns.md is written from this.

A column of one name means the same in every table, except where `table.column` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tracker.schema.breakdown import BREAKDOWN
from tracker.schema.levels import LEVELS, STEP_LEVEL

MEANINGS: Final[Mapping[str, str]] = {
    # the judgement
    "fact.what": "calls (per step) or bytes",
    "value_before": "the number before: of the runs that it is compared with",
    "value_after": "the number after: of the runs that show the change",
    "rests_on": "digest of all that its judgement rests on: its runs, those before it, the limits",
    "basis": "the same in words, which v_version compares with what is there now; NULL: judged by an older tracker",
    "judged_version.runs": "numbers of its runs, ascending",
    "base_runs": "numbers of the runs that its step was judged against",
    "verdict.base_runs": "how many runs it was judged against",
    "step_before_ns": "step of the runs that it was judged against",
    "step_after_ns": "its own step",
    "shared_factor": "how much slower all operators are together than in the runs that it was judged against, as a "
    "logarithm: the machine",
    "step_verdict": "the verdict of its step; NULL: it has none",
    "net": "change of the step by the operators that were found in it, as a fraction of it",
    "peak": "rise of its peak memory; 0.1: 10 %",
    "coverage": "how many series were judged, need more runs, were recorded otherwise, rest on lost records, are of "
    "other work, may have changed by their host alone, and are too small to be tested; NULL: judged before it was "
    "counted",
    "levels": "packed: the version with which the level of each series began",
    "how": "how it was found: level, presence (it came or went), gradual, late (many runs together), machine, alike "
    "(all of a few operators by one factor), or host (no host ran both sides)",
    "decided_version_id": "the version whose runs decided it",
    "reference_level_id": "the version with which the level before it began; 0: the first level",
    "reference_runs": "numbers of the runs that it was judged against",
    "new_runs": "numbers of the runs that show it",
    "finding.size": "size of the change, as a logarithm, without what all operators share",
    "calls_before": "calls per step before",
    "calls_after": "calls per step after",
    "is_leaf": "whether it is of an operator whose time is part of the compute of the step",
    "was_faster": "of an improvement: whether its version was faster on the whole",
    "finding.state": "open, recovered, taken back, accepted, vanished, or withdrawn: its runs are gone",
    "ended_version_id": "the version in which it was over; NULL: it is open",
    "ended_by_version_id": "the version whose runs decided that",
    "before_ns": "step before",
    "after_ns": "step after",
    "operators_ns": "part of the change: operators found slower or faster",
    "new_ns": "part of the change: operators found new",
    "incident.gone_ns": "part of the change: operators found gone",
    "machine_ns": "part of the change: what all other operators share",
    "other_operators_ns": "part of the change: what else other operators changed by",
    "earlier_ns": "part of the change: how far operators are from the runs of the step, less from their own level",
    "beside_ns": "part of the change: what is in the step and in no operator",
    "level_version_id": "the version with which the level that it was judged against began; 0: the first level",
    "decided": "what later runs made of a suspect; NULL: nothing yet",
    "verdict.verdict": "the verdict of the runs of the version",
    "verdict.reason": "the condition that kept it from being a change; NONE: it is one",
    "verdict.change": "change of its number, as a ratio",
    "judged_change": "the same without what all operators share",
    # what identifies
    "id": "number of the row",
    "run_id": "the run",
    "rank": "rank of the process in its job: one process and one device",
    "source.rank": "the lowest rank that the file holds",
    "version.parent": "label of the version it was made from",
    "ordinal": "position of the row in its capture",
    "version.ordinal": "place in the order of versions, first ingest first",
    "recording.digest": "8 bytes that stand for its content in the unique index",
    "digest": "16 bytes that stand for the other columns in the unique index",
    "source.digest": "digest of the decompressed content; for a side file in a folder, tied to its main file",
    "fingerprint": "digest of the values, for the unique index",
    "workload_id": "the workload",
    "configuration_id": "the configuration",
    "version_id": "the version",
    "device_id": "the hardware model",
    "process_group_id": "the group, in process_group",
    "name_id": "its name without running numbers and hashes of compilers, in detail_text",
    "input_shapes_id": "the shapes of its inputs, in detail_text",
    "input_types_id": "the types of its inputs, in detail_text",
    "module_id": "its path of nested module instances, GPT_0/Block_0/Attention_0, in detail_text",
    "phase_id": "forward, backward, recompute, optimizer, clear_grad, dataloader, or empty, in detail_text",
    "parent_id": "the call stack that it was called from, in call_stack; 0: none",
    "frame_id": "its innermost frame, in detail_text",
    "detail_text.digest": "8 bytes that stand for the text in the unique index",
    "series.digest": "8 bytes that stand for the other columns in the unique index",
    # labels
    "name": "name, as the profiler wrote it",
    "workload.name": "name of the training job that is followed; of a branch, NAME @ BRANCH",
    "main_id": "of a branch, the workload of its main line",
    "canonical_name": "name without what changes from build to build: addresses, hashes, template noise",
    "title": "the values as text",
    "label": "label of the version, unique in its workload",
    "commit_id": "commit of the version",
    "main_commits": "of a branch, the commits of the main line from the merge base back, the newest first",
    "note": "remark of the user",
    "pinned": "whether this version is the fixed baseline of its workload",
    "vendor": "who makes the hardware; empty for the CPU and where unknown",
    "model": "hardware model; cpu without a device, unknown where the source does not name it",
    "run_fact.kind": "fact (environment) or tag (the user's own)",
    "key": "name of the value",
    "value": "the value, as text",
    "text": "name, kind, shapes, types, module, ... of a row of details or of an op, or a frame of a call stack",
    "role": "what the group is for: dp, tp, pp, ...; empty where unknown",
    "size": "members of the group; -1: the source does not say",
    "input_shapes": "shapes of the inputs, as the profiler wrote them",
    "input_types": "element types of the inputs",
    "input_formats": "memory formats of the inputs (NPU)",
    "type": "kind of the kernel (NPU)",
    "core_type": "kind of core it ran on (NPU): cube or vector",
    # run, source, capture
    "state": "active, excluded or deleted; only active runs are compared",
    "state_reason": "why it is excluded or deleted, or was restored",
    "ranks_expected": "ranks until the run is complete; NULL: those that came",
    "ranks_handed_over": "ranks of its job that had handed over a profile when one of them came in; NULL: not known",
    "last_rank_at_ns": "when the last of its ranks came in, ns since 1970 UTC; NULL: before this was kept",
    "ranks_awaited": "ranks that it should have, while it has fewer and is not judged; NULL: it is a run of its track",
    "document_of": "the run that it is another source of, as a timer log is of a trace; NULL: it is a run of its own",
    "experiment_id": "the experiment that it is a run of; NULL: it is none",
    "experiment_side": "baseline or candidate, of an experiment",
    "experiment_pair": "number of its pair, from 1; 0: the warm-up of its side; NULL: of no pair that counts",
    "world_size": "processes of the job, where the source says it",
    "started_at_ns": "start of the capture, ns since 1970 UTC",
    "ended_at_ns": "end of the capture, ns since 1970 UTC",
    "rules_version": "version of the naming and category rules that the rows were made with",
    "format": "the reader that read it",
    "path": "path of the file at ingest",
    "source.bytes": "size of the file on disk",
    "host": "name of the machine",
    "device_ordinal": "number of the device in its machine",
    "stage": "pipeline stage",
    "dp_index": "place in data parallelism",
    "tp_index": "place in tensor parallelism",
    "pp_index": "place in pipeline parallelism",
    "ep_index": "place in expert parallelism",
    "cp_index": "place in context parallelism",
    "settings": "the profiler's own settings (JSON)",
    "quality": "ok or partial",
    "quality_reason": "why it is partial",
    "identity": "what is equal in every file that holds this capture; NULL where its start is not known",
    "pruned_at_ns": "when its details were dropped, ns since 1970 UTC; NULL: they are here",
    "sample_rules": "version of the rules that its samples were made with; NULL: none were made yet",
    # series, samples and what is judged from them
    "series_id": "the series",
    "series.kind": "its family: op, op_name (all shapes), kernel, communication, memory, api, module, phase, or run",
    "series.metric": "what is followed: device_self_ns, host_self_ns, total_ns, exposed_ns, bytes, duration_ns, ...",
    "series.name": "canonical name; of kind run: step, compute, idle time, ...",
    "step_kind": "of which kind of steps, such as DECODE; empty: of all steps",
    "part": "of a collective its group's role and size class, of an API call its level, of a module its phase; of a "
    "whole run unprofiled or summary, empty: measured in a profiler's trace",
    "sample.value": "per step, what is judged: the median over the steps of the sum per step, or the mean where that "
    "is 0; over ranks the median of those of a stage that have it, over stages the mean",
    "sample.mean": "mean over the steps of the sum per step",
    "sd": "standard deviation over the steps; NULL: one step",
    "sample.min": "smallest sum of a step",
    "p10": "10th percentile over the steps",
    "p90": "90th percentile over the steps",
    "sample.max": "largest sum of a step",
    "sample.calls": "calls per step; NULL: the series counts none",
    "share": "value as a fraction of the step; NULL: it is no time",
    "rank_spread": "largest - smallest rank of a stage, as a fraction of their median; NULL: one rank",
    "sample.steps": "how many steps it rests on",
    "intermittent": "whether most steps lack it, so that the value is the mean",
    "by_quartile": "the value, had each call taken the lower quartile of the calls of its row; NULL: calls are not "
    "known one by one",
    "by_median": "the value, had each call taken the median of the calls of its row; NULL as in by_quartile",
    "sample_array.numbers": "zlib of three rows of 8-byte numbers, the lowest byte first: steps from one series_id to "
    "the next, value, calls (NaN: the series counts none); behind a byte 2, by_quartile and by_median follow",
    "rule_version": "version of the rules that said it",
    "advice.content": "what they said (JSON): step_ns, together_ns (what all of it can win at most) and items, each "
    "with "
    "its rule, gain_ns, numbers and the operators that it claims",
    # thresholds
    "threshold.configuration_id": "the configuration it holds in; 0: all",
    "threshold.device_id": "the hardware model it holds on; 0: all",
    "threshold.kind": "kind of the series it is for, as in series; empty: all",
    "pattern": "names of the series it is for (`*` any characters, `?` one); empty: all",
    "threshold.name": "min_ratio, min_contribution, or a limit of a whole track: alpha, confirm, window, ...",
    "threshold.value": "the limit that holds in place of the usual one: a fraction, of confirm a number of runs",
    # findings
    "direction": "regression or improvement",
    "first_version_id": "the version that began it",
    "p": "chance of such a change, in its direction, where nothing changed",
    "q": "share of false discoveries among all series of its family with a p this small",
    "contribution": "change of the step by this series, as a fraction of the larger step",
    "detectable": "smallest ratio that these runs would have shown four times in five",
    "reason": "why, in words",
    "until_ns": "when a mute ends",
    "until_version": "label of the version whose first run ends a mute",
    "who": "the user, or rule",
    "when_ns": "the moment when a user did it",
    "action": "ack, expect, mute, unmute, invalid, note or undo",
    "newest_version_id": "the newest version of the track that was judged when the mark was given; NULL: not known",
    "undoes_id": "of an undo: the mark that it takes back",
    # watching
    "lease.name": "the work: profile:ID, scan:FOLDER, tell, expire or nightly",
    "owner": "the watcher: its machine, process and a random part",
    "taken_ns": "when the owner took it, by the owner's clock, as all moments here, ns since 1970 UTC",
    "heartbeat_ns": "last heartbeat of the owner",
    "expires_ns": "until when it holds unless it is renewed; 0: given back",
    "done_ns": "when the work was last done; NULL: never",
    "watcher.host": "name of its machine",
    "pid": "number of its process there",
    "program": "version of tracker",
    "watcher.every_ns": "time between two rounds; NULL: it was for one round only",
    "expectation.every_ns": "no run for so long is an alert",
    "started_ns": "when it started",
    "round_ns": "end of its last round; NULL: none yet",
    "watcher.ended_ns": "when it ended, or was found dead; NULL: it watches, as far as is known",
    "outcome": "ended: by itself; killed: its process is gone; lost: its heartbeat expired; empty: it watches",
    "error": "the last error; empty: none",
    "error_ns": "when it was first seen",
    "watcher.error_ns": "when that was",
    "job": "what it is at: a job of a round, or the profile that it reads; NULL: nothing, or it is not known",
    "job_ns": "since when it is at that",
    "deaths": "how often in a row a watcher died while it read this; NULL: it is not known of any",
    "told": "whether an alert on its state was sent, or no channel takes it",
    "watched_folder.host": "the machine whose watchers look at it; empty: it is the same folder for all of them",
    "watched_folder.path": "the folder",
    "layout": "what the names below it mean",
    "first_seen_ns": "when a watcher first saw it",
    "looked_ns": "when a watcher last looked",
    "folder_id": "the watched folder, in watched_folder",
    "workload": "name of the workload; empty: not known, or any",
    "told_ns": "the gap of the last alert, by its first moment: the last run before it, or first_seen_ns; NULL: none",
    "inbox.path": "the file or folder",
    "version": "label of the version, as its folders or its runs say; empty: not known",
    "inbox.state": "waiting (it still changes, or its profiler is not done), ready, working, ingested, quarantined (it "
    "cannot be read), passed (it is no profile)",
    "state_ns": "since when",
    "inbox.content": "digest of the names, sizes and times of its files: another one now, and it has changed",
    "size_bytes": "size of all its files",
    "written_ns": "when the newest of its files was written, as the file system says",
    "changed_ns": "since when it stands still",
    "gone_ns": "when it was found gone; NULL: it is there",
    "inbox.reason": "why it is not ingested; empty: nothing is wrong",
    "run_ids": "numbers of the runs that it became",
    "arrived_ns": "when it last became, or added to, a run; NULL: it did not",
    # experiments
    "experiment.state": "running, decided, not decided, or failed",
    "baseline": "the baseline, as its user named it",
    "candidate": "the candidate, as its user named it",
    "baseline_commit": "commit of the baseline; NULL: it is a folder",
    "candidate_commit": "commit of the candidate; NULL: it is a folder, or a working tree with changes",
    "finding_id": "the finding that it is about; NULL: none",
    "experiment.host": "name of the machine that runs both",
    "experiment.devices": "the devices that its commands see; empty: all",
    "experiment.settings": "what it takes to go on with it (JSON): never its commands, nor their variables",
    "seed": "of the order of the sides in each pair",
    "limit_ratio": "smallest change that counts as one; 0.05: 5 %",
    "noise_sd": "standard deviation of the logarithm of a pair, by the runs before; NULL: its first pairs say it",
    "measured_by": "profile (its step), log (the steps of its output), or wall (the time of the command)",
    "experiment.started_at_ns": "when it was started, ns since 1970 UTC",
    "experiment.ended_at_ns": "when it ended, ns since 1970 UTC; NULL: it has not",
    "experiment.outcome": "slower, faster, or no difference; empty: not decided",
    "change_ratio": "change of the step from baseline to candidate, the median of its pairs; 0.05: 5 % slower",
    "low_ratio": "lower end of the interval of the change; NULL: not known yet",
    "high_ratio": "upper end of it",
    "counted_runs": "runs of its pairs that count, both sides together",
    # messages
    "notification.key": "what makes it the same message: track, version, direction of the incident, event, how often",
    "channel": "name of the channel in the settings file; its address is nowhere in the database",
    "event": "opened, added, worsened, reopened, reminder, recovered, missing_runs, quarantined, watcher, budget, "
    "budget_met; "
    "start: what was old when the channel was new",
    "counter": "how many messages of this event there were to this channel, this one included",
    "notification.state": "pending, failed (tried again), sent, dead (given up), skipped (not wanted, or old history)",
    "severity": "info, warning or critical",
    "notification.workload": "name of the workload; empty: all",
    "notification.title": "its first line",
    "incidents": "the incidents it is about, each as track, version and direction (JSON)",
    "covers": "the events of findings that it reports (JSON), so that none is reported twice",
    "recording_id": "how it was recorded, as its captures say it; NULL: no capture of it is here",
    "recording.content": "how runs were recorded (JSON): said, the names of the source and its marks, and settings, "
    "each of a profiler",
    "content": "the message (JSON); NULL: it was forgotten",
    "created_ns": "when it was made, ns since 1970 UTC",
    "next_try_ns": "not tried before then",
    "attempts": "how often it was tried; of a profile since it changed",
    "claimed_by": "who is sending it now",
    "claimed_until_ns": "from when on somebody else may send it: its sender is dead",
    "last_error": "why it could not be delivered, without secrets",
    "settled_ns": "when it was sent, given up, or found to be unwanted",
    "silence.op": "pattern of operators",
    "silence.workload": "pattern of workloads",
    "silence.device": "pattern of devices",
    "silence.reason": "why, in the words of the user",
    "silence.until_ns": "when it ends",
    "ended_ns": "when a user ended it before its time",
    # sums
    "op_tree.contexts": "zlib of 8-byte numbers: how many contexts; their node, parent (-1: none), op_key_id and how "
    "many rows each has; step, calls, host_total_ns, device_total_ns, device_self_ns and kernel_count (of a context "
    "and those below it) of these rows. Each differs from the one before; see tracker/store/packing.py",
    "collective_call.calls": "zlib of 8-byte numbers, for each call in order of start: communication (ordinal of its "
    "row), group (number in run_group, -1: not named), step, start_ns (from the start of the capture), elapse_ns, "
    "exposed_ns, bytes, peer (rank at the other end of a send or receive, -1: none), source_index (number in its "
    "group, as the profiler counts); see tracker/store/packing.py",
    "run_group.number": "number of the group in its run; -1: of the calls that name none",
    "ranks": "the members, global ranks in order, `0,2`; empty: the source does not say",
    "members": "how many members the group has, as far as is known",
    "captured": "how many of them are captured; NULL: not known which they are",
    "clock_offset_ns": "how far clocks of its hosts differed that were put right, at most; NULL: none was",
}


def _meanings_of_declarations() -> dict[tuple[str, str], str]:
    """Return (table, column) -> what it means, of what `tracker.schema` declares."""
    meanings = {("capture", column.name): column.meaning for column in BREAKDOWN}
    for level in (STEP_LEVEL, *LEVELS):
        if level.is_packed:
            continue
        for column in level.columns:
            meanings[level.name, column.stored_name] = column.meaning
    return meanings


DECLARED_MEANINGS: Final = _meanings_of_declarations()


def meaning(table: str, column: str) -> str:
    """Return what `column` of `table` means.

    >>> meaning("op", "calls"), meaning("memory", "calls")
    ('number of calls', 'number of allocations')
    """
    return DECLARED_MEANINGS.get((table, column)) or MEANINGS.get(f"{table}.{column}") or MEANINGS[column]
