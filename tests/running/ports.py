"""Ports for servers whose port must be known before they listen."""

import secrets
import socket
from contextlib import ExitStack, suppress


def free_ports(count: int) -> list[int]:
    """Return consecutive free ports below the range from which the kernel assigns ports.

    A server may listen much later. Meanwhile, the kernel gives such a port to no other listener or connection.
    """
    while True:
        ports = range(base := 20_000 + secrets.randbelow(10_000), base + count)
        with suppress(OSError), ExitStack() as held:
            for port in ports:
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return [*ports]
