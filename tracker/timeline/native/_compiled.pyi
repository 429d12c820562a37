from tracker.profile import I32, I64

SOURCES: str

def nest(order: I32, thread: I32, start_ns: I64, end_ns: I64, parent: I32, depth: I32, /) -> None:
    """Set the parent of each row of `order`, -1 for none, and its depth: that of the row at a place of `order` stands
    at this place of `depth`.

    A ValueError or BufferError where the columns are not contiguous, not of these types or lengths, or `order` names a
    row that is not there.
    """

def innermost(
    order: I32, thread: I32, start_ns: I64, end_ns: I64, parent: I32, lanes: I64, times_ns: I64, found: I64,
    rounds: int, /,
) -> int:  # fmt: skip
    """Set in `found` for each lane and time the row of the innermost span that contains it, -1 for none.

    Each climbs at most `rounds` spans outwards. Returns how many would have had to climb further: they stand where they
    stopped.
    """
