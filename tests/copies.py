"""The command line in copies of one process that has imported it: a tenth of what a process costs that starts anew.

For tests that need a process, for its streams, its exit code, or a shell that starts it, and that do not ask how it
starts: what it imports, and when. `python -m tests.copies SOCKET` makes the copies, and
`python -I -S tests/copies.py SOCKET WORDS` stands for `tracker WORDS`: it hands its streams, folder and variables over,
and passes on the signals that it gets and the code that comes back.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

_STREAMS = (0, 1, 2)
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SIZE_BYTES = 4


def ask(place: str, words: list[str]) -> int:
    """Have a copy run `tracker WORDS`; return its code, or end by the signal that ended it."""
    streams = [number for number in _STREAMS if _is_open(number)]
    variables = [name + b"=" + value for name, value in os.environb.items()]
    numbers = "".join(map(str, streams)).encode()
    message = b"\0".join([numbers, os.getcwdb(), b"%d" % len(words), *map(os.fsencode, words), *variables])
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(place)
        size = len(message).to_bytes(_SIZE_BYTES, "big")
        if streams:
            socket.send_fds(server, [size], streams)
        else:
            server.sendall(size)
        server.sendall(message)
        for number in _PASSED_ON:
            signal.signal(number, lambda heard, _: server.send(bytes([heard])))
        code = int.from_bytes(_receive(server, _SIZE_BYTES), "big", signed=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _is_open(stream: int) -> bool:
    try:
        os.fstat(stream)
    except OSError:
        return False
    return True


def _receive(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        some = connection.recv(count - len(received))
        if not some:
            raise ConnectionError("the other side is gone")
        received += some
    return received


def serve(place: str) -> None:
    """Make a copy for each that asks, until this process is killed."""
    _import_program()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for the copies
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            asking, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(asking)
            asking.close()


def _import_program() -> None:
    """Import what any command may need, without the threads of NumPy, so that this process can be copied."""
    import gc
    import pkgutil
    from importlib import import_module

    import tracker
    from tracker.lazy import import_numpy_without_threads

    import_numpy_without_threads()
    for module in pkgutil.walk_packages(tracker.__path__, "tracker."):
        if not module.name.startswith(("tracker.hooks.", "tracker.migrations")):
            import_module(module.name)
    gc.collect()
    gc.freeze()


def _answer(asking: socket.socket) -> None:
    """Make a copy that runs the command, pass on the signals that it gets, and say how it ended."""
    import threading
    from contextlib import suppress

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, given, _, _ = socket.recv_fds(asking, _SIZE_BYTES, len(_STREAMS))
    numbers, folder, count, *rest = _receive(asking, int.from_bytes(size, "big")).split(b"\0")
    copy = os.fork()
    if copy == 0:
        asking.close()
        streams = dict(zip(map(int, numbers.decode()), given, strict=True))
        _run(streams, folder, rest[: int(count)], rest[int(count) :])
    for stream in given:
        os.close(stream)

    def pass_on() -> None:
        with suppress(ProcessLookupError):  # it has ended
            while heard := asking.recv(1):
                os.kill(copy, heard[0])
            os.kill(copy, signal.SIGKILL)  # who asked was killed

    threading.Thread(target=pass_on, daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    with suppress(ConnectionError):  # who asked was killed
        asking.sendall(code.to_bytes(_SIZE_BYTES, "big", signed=True))
    os._exit(0)


def _run(streams: dict[int, int], folder: bytes, words: list[bytes], variables: list[bytes]) -> None:
    """Become the process that was asked for, and run the command."""
    import random
    import time

    for number in _STREAMS:
        if number in streams:
            os.dup2(streams[number], number)
        else:
            os.close(number)
    for stream in streams.values():
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    for variable in variables:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    time.tzset()
    random.seed()
    sys.argv = ["tracker", *map(os.fsdecode, words)]
    encoding = os.environ.get("PYTHONIOENCODING") or "utf-8"
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    names = (("stdin", "r", "strict"), ("stdout", "w", "strict"), ("stderr", "w", "backslashreplace"))
    for number, (name, mode, errors) in zip(_STREAMS, names, strict=True):
        stream = None
        if number in streams:
            stream = open(number, mode, encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115 to the end
            stream.reconfigure(line_buffering=stream.isatty() or number == 2, write_through=is_unbuffered)
        setattr(sys, name, stream)
    from tracker.__main__ import run

    run()


if __name__ == "__main__":
    if sys.argv[0].endswith("copies.py") and not sys.flags.isolated:
        serve(sys.argv[1])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
