"""What runs inside a training job: it writes the profile, says beside it what was run, and has `tracker` read it.

This folder needs nothing but the standard library of Python 3.8 and imports nothing of the package around it: it can
be copied into the image of a job under any name (`cp -r .../tracker/hooks ./tracker_hooks`) and used from there:

    from tracker_hooks import torch_profiler

    with torch.profiler.profile(..., on_trace_ready=torch_profiler.on_trace_ready("prof", workload="gpt")) as prof:

One file per framework: torch_profiler, torch_npu_profiler, mindspore_profiler, paddle_profiler. All take the options of
`job.Job`, and the same from the environment. No error of theirs leaves them, and what cannot be delivered at once
waits in the spool (`spool`) for the next job, `tracker ingest --spooled` or `tracker watch`.
"""
