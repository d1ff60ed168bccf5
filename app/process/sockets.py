"""Listening sockets, which are bound before anything else is opened."""

import errno
import socket
import time

from app.environment import SettingsError

PUBLIC = "public"
METRICS = "metrics"
"""Names of the listeners of a single process. With several processes, each public listener is named after its
slot."""

BACKLOG = 4096
_RELEASED_WITHIN_S = 2
"""The longest time in which the processes of a dead parent close its sockets, unless they hang."""
_RETRY_AFTER_S = 0.05
_IN_USE = "Address already in use by another program, or by a server that has not stopped yet"


def check_port(host: str, port: int) -> None:
    """Raise `SettingsError` if another process listens on the port, even with SO_REUSEPORT.

    Waits up to 2 s for it to end.
    """
    for bound in _bound_sockets(host, port, variable="PORT", shared=False):
        bound.close()


def listening_sockets(host: str, port: int, *, variable: str, shared: bool = False) -> list[socket.socket]:
    """Return a listening socket for each address of `host`.

    If the port is taken for 2 s, raises `SettingsError` with the name of `variable`, the setting to change. With
    `shared`, further sockets of the same user can listen on the port, and the kernel distributes connections among
    them.
    """
    sockets = _bound_sockets(host, port, variable=variable, shared=shared)
    try:
        for bound in sockets:
            bound.listen(BACKLOG)
    except OSError as error:  # Another process has started to listen after this socket was bound.
        _close(sockets)
        raise _refused(host, port, variable=variable, error=error) from None
    return sockets


def _bound_sockets(host: str, port: int, *, variable: str, shared: bool) -> list[socket.socket]:
    deadline = time.monotonic() + _RELEASED_WITHIN_S
    while True:
        sockets: list[socket.socket] = []
        try:
            sockets.extend(_bound_socket(*address, shared=shared) for address in _addresses(host, port))
        except OSError as error:
            _close(sockets)
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise _refused(host, port, variable=variable, error=error) from None
        else:
            return sockets
        time.sleep(_RETRY_AFTER_S)  # noqa: TID251 - nothing else runs before the sockets are bound


def _addresses(host: str, port: int) -> list[tuple[int, int, int, tuple[object, ...]]]:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list({(family, kind, protocol, address): None for family, kind, protocol, _, address in addresses})


def _bound_socket(
    family: int, kind: int, protocol: int, address: tuple[object, ...], *, shared: bool
) -> socket.socket:
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # Closed connections may still hold the port.
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.settimeout(0)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _close(sockets: list[socket.socket]) -> None:
    for sock in sockets:
        sock.close()


def _refused(host: str, port: int, *, variable: str, error: OSError) -> SettingsError:
    host_variable = "HOST" if variable == "PORT" else "PARLEY_METRICS_HOST"
    wrong_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
    at_fault = host_variable if wrong_host else variable
    cause = _IN_USE if error.errno == errno.EADDRINUSE else error.strerror
    return SettingsError(f"parley: cannot listen on {host} port {port}: {cause} (set {at_fault} to change this)")
