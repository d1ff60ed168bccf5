"""Short descriptions of network errors, without host names, for messages to clients."""

import errno
import socket
import ssl

_BY_ERRNO = {
    errno.ECONNREFUSED: "connection refused",
    errno.ENOENT: "its socket file does not exist",
    errno.ECONNRESET: "the connection was reset",
    errno.ECONNABORTED: "the connection was reset",
    errno.EPIPE: "the connection was reset",
    errno.ENETUNREACH: "its network is unreachable",
    errno.EHOSTUNREACH: "its host is unreachable",
    errno.ETIMEDOUT: "the connection timed out",
    errno.EMFILE: "this process has no file descriptor free",
    errno.EACCES: "permission denied",
}


def network_cause(error: BaseException) -> str | None:
    """Return a description if `error`, or an exception in its chain, is a network or TLS error."""
    current: BaseException | None = error
    while current is not None:
        match current:
            case socket.gaierror():
                return "its host name was not resolved"
            case ssl.SSLCertVerificationError():
                return f"its TLS certificate is not accepted: {current.verify_message}"
            case ssl.SSLError():
                return "the TLS handshake failed"
            case OSError() if current.errno in _BY_ERRNO:
                return _BY_ERRNO[current.errno]
            case TimeoutError():
                return "no answer in time"
        current = current.__cause__ or current.__context__
    return None
