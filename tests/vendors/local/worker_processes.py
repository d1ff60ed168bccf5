"""The code of the processes that tests of `Worker` start. Each imports this module, which has no slow imports."""

import os
import signal
from multiprocessing.connection import Connection


def answer_requests(connection: Connection) -> None:
    """Execute each request, and answer with it and the id of the process."""
    connection.send((None, None))
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        if request == "hang":
            signal.pause()
        elif request == "die" or (
            request.startswith("die once ") and not _known(request.removeprefix("die once "))
        ):
            os.kill(os.getpid(), signal.SIGKILL)
        elif request == "fail":
            connection.send(("it went wrong", None))
        else:
            connection.send((None, (request, os.getpid())))


def _known(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False


def refuse(connection: Connection) -> None:
    connection.send(("a library is missing", None))
