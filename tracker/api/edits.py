"""The functions that change a database: marks on findings, edits of runs and versions, pruning, notifications."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tracker.api.arguments import EMPTY, Names, mapping, writing
from tracker.errors import UsageError, check_reason
from tracker.units import AGE, age_ns

if TYPE_CHECKING:
    from tracker.notify import Delivered
    from tracker.store import Store
    from tracker.store.findings import Action
    from tracker.store.pruning import Prunable

__all__ = [
    "ack", "delete_runs", "edit_runs", "exclude_runs", "expect", "forget_branch", "invalid", "mute",
    "mute_operators", "note", "order_versions", "pin_version", "prune", "restore_runs", "send_notifications",
    "tag_runs", "undo", "unmute", "unpin_version", "untag_runs",
]  # fmt: skip

_SILENCE: Final = re.compile(r"silence:(\d{1,18})", re.ASCII)
_FUTURE: Final = "future:"
_NAMED: Final = 10
"""Versions that an error names at most, the newest ones."""
_LAST_NS: Final = 2**63 - 1
_DIGITS: Final = 18  # what fits into 8 bytes, in which the database holds numbers


def ack(
    findings: Names, *, reason: str = "acknowledged", by: str | None = None, store: Store | None = None
) -> list[int]:
    """Acknowledge findings, as `tracker ack` does: no more reminders. Return the numbers of all that changed.

    `findings`: numbers, or `I-3` for all of an incident. `by`: default: the name of the account. All or none are
    changed; UsageError for a finding that is unknown or over. Without `store`, the database of the command line.
    """
    return _mark("ack", findings, reason, by, store)


def expect(findings: Names, *, reason: str, by: str | None = None, store: Store | None = None) -> list[int]:
    """Accept changes as intended, as `tracker expect` does. Arguments and result as of `ack`."""
    return _mark("expect", findings, reason, by, store)


def invalid(findings: Names, *, reason: str, by: str | None = None, store: Store | None = None) -> list[int]:
    """Mark findings as false positives, as `tracker invalid` does. Arguments and result as of `ack`."""
    return _mark("invalid", findings, reason, by, store)


def note(findings: Names, *, reason: str, by: str | None = None, store: Store | None = None) -> list[int]:
    """Add a comment to findings, as `tracker note` does; their state stays. Arguments and result as of `ack`."""
    return _mark("note", findings, reason, by, store)


def mute(
    findings: Names, *, until: str | datetime, reason: str, by: str | None = None, store: Store | None = None
) -> list[int]:
    """Snooze findings, as `tracker mute` does: no alerts until a date or a version. Arguments and result as of `ack`.

    `until`: a moment, or as text a date (`2026-12-31`), an age (`3d`), `version:LABEL` for the first run of a version,
    `future:LABEL` for that of one without runs.
    """
    return _mark("mute", findings, reason, by, store, until)


def mute_operators(
    pattern: str,
    *,
    until: str | datetime,
    reason: str,
    workload: str = "*",
    device: str = "*",
    by: str | None = None,
    store: Store | None = None,
) -> int:
    """Snooze all findings of operators, those of the future included, as `tracker mute --op` does.

    Return the number N of the mute, which `unmute("silence:N")` ends. `workload`, `device`: patterns.
    """
    from tracker.store import notifications

    now = time.time_ns()
    until_ns, version = mute_end(until, now)
    if until_ns is None or version is not None:
        raise UsageError("a mute by pattern ends at a time", remedy="give a date (2026-12-31) or an age (12h, 3d, 2w)")
    if not pattern:
        raise UsageError("the pattern is empty", remedy="write --op PATTERN, or --op '*' for all operators")
    check_reason(reason)
    silence = notifications.Silence(0, pattern, workload, device, account(by), reason, now, until_ns)
    with writing(store) as opened:
        return opened.transact(lambda connection: notifications.add_silence(connection, silence))


def unmute(findings: Names, *, reason: str, by: str | None = None, store: Store | None = None) -> list[int]:
    """End mutes early, as `tracker unmute` does; `silence:N` ends one by pattern. Arguments and result as of `ack`."""
    from tracker.store import notifications

    targets = _listed(findings)
    silences = [int(found[1]) for target in targets if (found := _SILENCE.fullmatch(target))]
    others = [target for target in targets if not _SILENCE.fullmatch(target)]
    check_reason(reason)
    with writing(store) as opened:
        done = _mark("unmute", others, reason, by, opened) if others or not silences else []
        for number in silences:
            opened.transact(partial(notifications.end_silence, number=number, now_ns=time.time_ns()))
    return done


def undo(findings: Names, *, reason: str, by: str | None = None, store: Store | None = None) -> list[int]:
    """Take back the last mark of findings, as `tracker undo` does. Arguments and result as of `ack`.

    Of an incident that is the newest mark on its findings. UsageError where there is none, or a version of the track
    was judged since.
    """
    return [number for number, _ in undone_marks(findings, reason=reason, by=by, store=store)]


def undone_marks(
    findings: Names, *, reason: str, by: str | None = None, store: Store | None = None
) -> list[tuple[int, str]]:
    """Take back the last mark of findings, as `undo` does; return each finding with the mark that it had."""
    from tracker.regressions import actions
    from tracker.store import findings as stored_findings

    finding_ids, incident_ids = actions.numbers_of(_listed(findings))
    wish = stored_findings.Word("undo", account(by), time.time_ns(), reason)
    with writing(store) as opened:
        return actions.undo(opened, wish, finding_ids=finding_ids, incident_ids=incident_ids)


def _mark(
    action: Action,
    findings: Names,
    reason: str,
    by: str | None,
    store: Store | None,
    until: str | datetime | None = None,
) -> list[int]:
    from tracker.regressions import actions
    from tracker.store import findings as stored_findings
    from tracker.store import queries

    finding_ids, incident_ids = actions.numbers_of(_listed(findings))
    now = time.time_ns()
    until_ns, version = (None, None) if until is None else mute_end(until, now)
    wish = stored_findings.Word(action, account(by), now, reason, until_ns, version)
    with writing(store) as opened:
        if version is not None and not str(until).startswith(_FUTURE):
            known = list(dict.fromkeys(queries.versions(opened).listed("version")))
            if version not in known:  # it would never end the mute
                raise UsageError(
                    f"--until version:{version}: no such version; newest: {', '.join(known[-_NAMED:]) or 'none'}",
                    remedy=f"give {_FUTURE}{version} for a version without runs",
                )
        return actions.act(opened, wish, finding_ids=finding_ids, incident_ids=incident_ids)


def mute_end(until: str | datetime, now_ns: int) -> tuple[int | None, str | None]:
    """The end of a mute as UTC ns, or as a version; UsageError for one in the past."""
    if isinstance(until, str):
        for word in ("version:", _FUTURE):
            if until.startswith(word) and until != word:
                return None, until.removeprefix(word)
    try:
        if isinstance(until, str) and AGE.fullmatch(until):
            end = now_ns + age_ns(until)
        else:
            when = datetime.fromisoformat(until) if isinstance(until, str) else until
            end = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()) * 10**9
    except ValueError:
        remedy = "give a date (2026-12-31), an age (12h, 3d, 2w), version:LABEL or future:LABEL"
        raise UsageError(f"--until {until!r} is not a date, an age or a version", remedy=remedy) from None
    if end > _LAST_NS:
        raise UsageError(f"--until {until!r} is too late", remedy="give a date before 2262, or use tracker expect")
    if end <= now_ns:
        raise UsageError("--until must be in the future", remedy="give a later date")
    return end, None


def edit_runs(
    runs: Names,
    *,
    version: str | None = None,
    workload: str | None = None,
    device: str | None = None,
    configuration: Mapping[str, str] = EMPTY,
    commit: str | None = None,
    note: str | None = None,
    store: Store | None = None,
) -> list[int]:
    """Correct version, workload, device, configuration, commit or note of runs, as `tracker runs edit` does; return the
    runs.

    `runs`: numbers, or `run:41`. What is None or empty stays; an empty note removes it; `configuration` replaces the
    whole one. `commit`: of a version that has none, so of all its runs. All runs are changed or none, and verdicts
    follow. UsageError for a run that is unknown, or a version that is another commit.
    """
    from tracker.intake import parse_device

    given = (version, workload, device, commit, note)
    if all(value is None for value in given) and not configuration:
        remedy = "give --version, --workload, --device, --config, --commit or --note"
        raise UsageError("nothing to change", remedy=remedy)
    if commit is not None and not commit.strip():
        raise UsageError("the commit is empty", remedy="give its hash: --commit HASH")
    # as in an ingest: a vendor that the files state stays, unless the user names one
    corrected = None if device is None else partial(parse_device, device)
    values = mapping("configuration", configuration) or None
    return _change(
        "edit_all", runs, store, version=version, workload=workload, device=corrected, configuration=values,
        commit=commit, note=note,
    )  # fmt: skip


def tag_runs(runs: Names, tags: Mapping[str, str], *, store: Store | None = None) -> list[int]:
    """Set tags on runs, as `tracker runs tag` does; those of the same key are replaced. Return the runs."""
    return _change("tag_all", runs, store, tags=mapping("tags", tags))


def untag_runs(runs: Names, keys: str | Iterable[str], *, store: Store | None = None) -> list[int]:
    """Remove tags from runs, as `tracker runs untag` does; UsageError where a run has no such tag. Return the runs."""
    return _change("untag_all", runs, store, keys=[keys] if isinstance(keys, str) else list(keys))


def exclude_runs(runs: Names, *, reason: str, store: Store | None = None) -> list[int]:
    """Leave runs out of every comparison, as `tracker runs exclude` does. Return the runs."""
    return _change("exclude_all", runs, store, reason=reason)


def restore_runs(runs: Names, *, reason: str = "", store: Store | None = None) -> list[int]:
    """Take excluded or deleted runs back into comparisons, as `tracker runs restore` does. Return the runs.

    `reason`: kept with them; "" for none.
    """
    return _change("restore_all", runs, store, reason=reason)


def delete_runs(runs: Names, *, reason: str, purge: bool = False, store: Store | None = None) -> list[int]:
    """Hide runs from lists and comparisons, as `tracker runs delete` does. Return the runs.

    `purge`: remove their rows for good, so that their files may come in again.
    """
    return _change("delete_all", runs, store, reason=reason, purge=purge)


def _change(change: str, runs: Names, store: Store | None, **values: Any) -> list[int]:
    """Do a change of `store.runs` to all of `runs`, or to none, and judge again the tracks that they are in."""
    from tracker.regressions import judgement
    from tracker.results.options import one_line
    from tracker.store import runs as stored

    for name in {"note", "reason"} & values.keys():
        one_line(name, values[name] or "")
    run_ids = run_numbers(_listed(runs))
    with writing(store) as opened:
        before = judgement.tracks_of(opened, run_ids)
        getattr(stored, change)(opened, run_ids, **values)
        track_keys = [*before, *judgement.tracks_of(opened, run_ids)]
        judgement.update(opened, judgement.with_branches(opened, track_keys))
    return run_ids


def run_numbers(texts: Iterable[str]) -> list[int]:
    """Return the numbers of runs, each once; `run:` in front is optional.

    >>> run_numbers(["41", "run:7", "41"])
    [41, 7]
    """
    found: dict[int, None] = {}
    for text in (text.removeprefix("run:") for text in texts):
        if not (text.isascii() and text.isdigit()):
            raise UsageError(f"{text!r} is not a run number", remedy="tracker runs lists them: 41 or run:41")
        if len(text) > _DIGITS:
            raise UsageError(f"there is no run {text}", remedy="tracker runs lists them")
        found[int(text)] = None
    return list(found)


def order_versions(
    labels: str | Iterable[str],
    *,
    workload: str | None = None,
    after: str | None = None,
    before: str | None = None,
    store: Store | None = None,
) -> list[str]:
    """Put versions into another order, as `tracker versions order` does. Return all labels in the new order.

    `after`, `before`: the version beside which `labels` go; without them, `labels` are all versions of the workload.
    """
    from tracker import compare
    from tracker.regressions import judgement
    from tracker.store import versions

    if after and before:
        raise UsageError("both --after and --before are given", remedy="choose one of them")
    named = [labels] if isinstance(labels, str) else list(labels)
    with writing(store) as opened:
        wanted = [compare.label_of(opened, label, workload) for label in named]
        after, before = (one and compare.label_of(opened, one, workload) for one in (after, before))
        done = versions.order_versions(opened, wanted, workload=workload, after=after, before=before)
        workload = versions.workload_of(opened, wanted[0], workload)
        track_keys = judgement.tracks_of(opened, workload=workload)
        judgement.update(opened, judgement.with_branches(opened, track_keys))
    return done


def forget_branch(branch: str, *, workload: str | None = None, store: Store | None = None) -> int:
    """Remove a branch for good, with its runs, versions and findings, as `tracker versions forget-branch` does. Return
    how many runs it had.
    """
    from tracker.store import runs
    from tracker.store.queries.resolve import workload_of_branch

    with writing(store) as opened:
        return runs.forget_branch(opened, workload_of_branch(opened, branch, workload))


def pin_version(label: str, *, workload: str | None = None, store: Store | None = None) -> str:
    """Make a version the fixed baseline of its workload, as `tracker versions pin` does. Return its label."""
    from tracker.store import versions

    return _change_pin(versions.pin_version, label, workload, store)


def unpin_version(label: str, *, workload: str | None = None, store: Store | None = None) -> str:
    """Remove the pin of a version, as `tracker versions unpin` does. Return its label."""
    from tracker.store import versions

    return _change_pin(versions.unpin_version, label, workload, store)


def _change_pin(change: Callable[..., str | None], label: str, workload: str | None, store: Store | None) -> str:
    from tracker import compare
    from tracker.regressions import judgement

    with writing(store) as opened:
        label = compare.label_of(opened, label, workload)
        workload = change(opened, label, workload=workload) or workload
        judgement.update(opened, judgement.tracks_of(opened, workload=workload))
    return label


def prune(
    *,
    older_than: str = "90d",
    keep_versions: int = 5,
    workload: str | None = None,
    dry_run: bool = False,
    store: Store | None = None,
) -> list[Prunable]:
    """Delete the details of old runs, as `tracker prune` does. Return the runs, the oldest first.

    `older_than`: an age, such as `30d`. Runs of the newest `keep_versions` versions of a workload, of pinned versions
    and under open findings keep their details. Branches whose newest run is older go whole. `dry_run`: change
    nothing.
    """
    from tracker.store import pruning, queries

    now = time.time_ns()
    policy = pruning.Policy(max(0, now - age(older_than, "--older-than")), keep_versions, workload)
    with writing(store) as opened:
        queries.check_filters(opened, workload=workload)
        done = pruning.prunable(opened, policy) if dry_run else pruning.prune_all(opened, policy, now_ns=now)[0]
        pruning.forget_old_branches(opened, policy, dry_run=dry_run)
        return done


def age(text: str, option: str) -> int:
    """Return an age such as `30d` in ns; UsageError with the name of the option for what is none."""
    try:
        return age_ns(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", remedy=f"write it like {option} 90d") from None


def send_notifications(*, store: Store | None = None) -> tuple[int, Delivered]:
    """Make the messages that are due and send them, as `tracker notify` does, by [alerts] of the settings file.

    Return how many messages were made, and the counts `sent`, `failed` and `dead`.
    """
    from tracker import config, notify

    settings, now = config.load(), time.time_ns()
    with writing(store) as opened:
        made = notify.enqueue(opened, settings.alerts, now_ns=now)
        return made, notify.deliver(opened, settings.alerts, now_ns=now, page=settings.page)


def _listed(names: Names) -> list[str]:
    return [str(names)] if isinstance(names, int | str) else [str(name) for name in names]


def account(by: str | None) -> str:
    """`by`, else the name of the account, else its number, as in a container without accounts."""
    import getpass
    import os

    try:
        return by or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
