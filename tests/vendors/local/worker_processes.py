"""The code of the processes that tests of `Worker` start. Each imports this module, which has no slow imports."""

import os
import signal
from multiprocessing.connection import Connection


def obey(line: Connection) -> None:
    """Execute each request, and answer with it and the id of the process."""
    line.send((None, None))
    while True:
        try:
            order = line.recv()
        except EOFError:
            return
        if order == "hang":
            signal.pause()
        elif order == "die" or (order.startswith("die once ") and not _known(order.removeprefix("die once "))):
            os.kill(os.getpid(), signal.SIGKILL)
        elif order == "fail":
            line.send(("it went wrong", None))
        else:
            line.send((None, (order, os.getpid())))


def _known(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False


def refuse(line: Connection) -> None:
    line.send(("a library is missing", None))
