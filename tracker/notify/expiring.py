"""Forget what was settled long ago."""

from __future__ import annotations

from functools import partial

from tracker.store import Store, notifications


def expire(store: Store, *, now_ns: int, keep_ns: int) -> int:
    """Forget messages and silences that were settled longer ago than `keep_ns`; how many.

    That an incident was told stays known, without the text of it.
    """
    return store.transact(partial(notifications.forget, before_ns=now_ns - keep_ns))
