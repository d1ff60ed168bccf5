"""Clients that send without end: `python -m tests.peers.flood PORT CONNECTIONS OPENING UNIT` until it is killed.

Each connection sends the bytes of the file OPENING, then those of the file UNIT over and over, as fast as they are
taken. The line `sending` is printed once every connection has sent its opening and a first block of units.
"""

import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

_BLOCK_BYTES = 256 * 1024


def _send(port: int, opening: bytes, block: bytes, begun: threading.Barrier) -> None:
    """Send without end. Reconnect when the server closes the connection."""
    first = True
    while True:
        with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(opening)
            connection.sendall(block)
            if first:
                first = False
                begun.wait()
            while True:
                connection.sendall(block)


def main(port: int, connections: int, opening: bytes, unit: bytes) -> None:
    begun = threading.Barrier(connections, lambda: print("sending", flush=True))  # noqa: T201
    block = unit * max(1, _BLOCK_BYTES // len(unit))
    threads = [
        threading.Thread(target=_send, args=(port, opening, block, begun), daemon=True) for _ in range(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).read_bytes(), Path(sys.argv[4]).read_bytes())
