SOURCES: str
RECORD_BYTES: int
RECORD_SIZES: tuple[int, ...]

class Decoder:
    """Reads the texts of one trace; for one thread at a time. `slices`, `flows`: category -> bucket, number.

    `seed`: 64 random bits, so that nobody can write a trace whose texts are slow to look up.
    """

    def __new__(cls, slices: dict[bytes, int], flows: dict[bytes, int], seed: int, /) -> Decoder: ...
    def decode(self, text: bytes, /) -> tuple[tuple[bytes, ...], int]:
        """The records of the first events of a text, kind by kind, up to one that is unusual or that no comma follows,
        and the byte behind the last comma, 0 where there are none.
        """

    def decode_inside(self, text: bytes, /) -> tuple[tuple[bytes, ...], int, int]:
        """The same of a text that starts anywhere: records, where the first event seems to start (-1: nowhere), end.

        The start is a guess: a `{` behind a `},` may stand inside of a text, or in a list among the args of an event.
        """

    def new_texts(self, pool: int, /) -> list[bytes]:
        """The texts of a pool that are new since the last call, as they stand in the file, in order of number."""

    def held_bytes(self) -> int:
        """How much memory the texts take."""
