"""The options that say what a profile is of; `ingest` and `run` take them alike."""

from __future__ import annotations

from typing import Annotated

import typer

Version = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="What was profiled: a release, a commit, a date. Runs of one version are repeats; diff compares "
        "versions. Default: what the profile's tracker.json says, else TRACKER_VERSION, else its name, such as "
        "20230808_69edec3bb7.",
        show_default=False,
    ),
]
Workload = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The training job that is followed, such as resnet50. Only runs of one workload form a history. "
        "Default: what the profile's tracker.json says, else TRACKER_WORKLOAD, else the model that a training log "
        "states.",
        show_default=False,
    ),
]
Commit = Annotated[
    str | None,
    typer.Option(
        metavar="HASH",
        help="The version's commit, shown beside it. Default: that of the profile's tracker.json, else none.",
        show_default=False,
    ),
]
Note = Annotated[
    str | None, typer.Option(metavar="TEXT", help="A remark on the run. Default: none.", show_default=False)
]
Configuration = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="What must be equal for runs to be compared, such as batch=32 or precision=bf16; may be given again. "
        "Another value starts a history of its own. Default: what tracker.json says, then what "
        "the profile states of batch, sequence length, precision, devices and parallel sizes (lines of a log, its "
        "metadata), then the names of its file and folders, such as bs32_fp16_N1C8.",
        show_default=False,
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="A mark to find the run by, such as image=2024-06; may be given again. It decides nothing. Default: none.",
        show_default=False,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="The hardware model, such as 'NVIDIA H100', where the profile does not name it. Default: read from "
        "the profile; cpu without a device.",
        show_default=False,
    ),
]
ExpectRanks = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Number of ranks until the run counts as complete; further ranks may come later and from other "
        "machines. Default: those given now.",
        show_default=False,
    ),
]
