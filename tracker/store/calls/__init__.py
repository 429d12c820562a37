"""The collective calls of all ranks of a run, and what only the ranks together tell of them.

`packing` has the calls of a rank in one value, `pairing` says which calls of the members of a group are one call,
`members` who is in which group, and `splitting` keeps what follows from it: transmitting and waiting.
"""
