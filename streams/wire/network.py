"""Why a connection failed, in a few words that name no host and that a client may read."""

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
    errno.ENETDOWN: "the network is down",
    errno.EHOSTUNREACH: "its host is unreachable",
    errno.EHOSTDOWN: "its host is unreachable",
    errno.ETIMEDOUT: "the connection timed out",
    errno.EADDRNOTAVAIL: "no local address or port is free",
    errno.EMFILE: "this process has no file descriptor free",
    errno.ENFILE: "this machine has no file descriptor free",
    errno.EACCES: "this machine denies permission to connect",
    errno.EPERM: "this machine denies permission to connect",
}
_BY_VERIFY_CODE = {
    9: "its TLS certificate is not valid yet",
    10: "its TLS certificate has expired",
    18: "its TLS certificate is self-signed",
    19: "its TLS certificate comes from an unknown authority",
    20: "its TLS certificate comes from an unknown authority",
    21: "its TLS certificate comes from an unknown authority",
    23: "its TLS certificate is revoked",
    62: "its TLS certificate is for another host name",
    64: "its TLS certificate is for another IP address",
}
"""By OpenSSL's `X509_V_ERR_…`."""


def network_cause(error: BaseException) -> str | None:
    """The cause if `error`, or an exception that it was raised from, comes from the network or from TLS."""
    seen: BaseException | None = error
    while seen is not None:
        if cause := _cause(seen):
            return cause
        seen = seen.__cause__ or seen.__context__
    return None


def _cause(error: BaseException) -> str | None:
    match error:
        case socket.gaierror():
            return "its host name was not resolved"
        case ssl.SSLError():
            return _tls_cause(error)
        case OSError() if error.errno in _BY_ERRNO:
            return _BY_ERRNO[error.errno]
        case TimeoutError():
            return "no answer in time"
    return None


def _tls_cause(error: ssl.SSLError) -> str | None:
    # aiohttp wraps TLS errors in subclasses that lack these attributes. The original error is the cause.
    if not hasattr(error, "reason"):
        return None
    if isinstance(error, ssl.SSLCertVerificationError):
        return _BY_VERIFY_CODE.get(error.verify_code, "its TLS certificate is not trusted")
    reason = (error.reason or "the connection was closed").replace("_", " ").lower()
    return f"the TLS handshake failed: {reason}"
