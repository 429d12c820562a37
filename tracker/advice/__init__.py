"""What could make a run faster: rules over its rows, with evidence, an upper bound of the gain, and what to change.

`evidence` is what rules look at; `rules/` holds them, a file per family, each one declaration (`rule`); `roofline` and
`devices` say what a device can do; `gains` what the step wins; `judging` runs all rules over a run; `stored` keeps what
they said, so that versions can be compared. To add a rule: an `AdviceRule` in the file of its family, and its test.
"""
