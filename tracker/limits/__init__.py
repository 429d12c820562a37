"""How much of foreign input is taken: tables of limits, each with the door that keeps to it.

`rows`: how many rows a capture may become. `texts`: how long a text is kept. `files`: which files are opened at all.
`deadline`: how long a touch of a file may take. A limit lies far beyond what any profiler writes, or follows from the
format itself: what is beyond it was made to cost more than it is worth, or is damaged.
"""
