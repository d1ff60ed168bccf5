"""Maps network errors to `VendorError` with a short cause that names no host.

Clients may see the cause. The host, the port and the message of the operating system are only logged.
"""

import errno
import socket
import ssl

import aiohttp
from yarl import URL

from vendors.dns import NameNotFound
from vendors.errors import Garbled, TimedOut, Unreachable, VendorError
from vendors.http1.errors import BadAddress, BrokenResponse, ConnectTimeout

FAULTS = (TimeoutError, OSError, BrokenResponse, BadAddress, aiohttp.ClientError)
"""The exceptions that HTTP calls raise for network and protocol failures."""

_BY_ERRNO = {
    errno.ECONNREFUSED: "connection refused",
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
    errno.EACCES: "this machine forbids the connection",
    errno.EPERM: "this machine forbids the connection",
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
"""Keys are OpenSSL's `X509_V_ERR_…` codes."""


def connect_error(vendor: str, error: BaseException, *, url: str, connect_s: float) -> VendorError:
    """Return the error for a call that got no response. `error` is one of `FAULTS`."""
    fault: VendorError
    match error:
        case BadAddress() | aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Unreachable(vendor, "has a base URL that is not an HTTP URL")
        case BrokenResponse() | aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            fault = Garbled(vendor, "sent an invalid HTTP response", retryable=True)
        case TimeoutError() if not error.errno:
            missing = error.missing if isinstance(error, ConnectTimeout) else "no connection"
            fault = TimedOut(vendor, f"was not reached: {missing} within {connect_s:g} s", retryable=True)
        case TimeoutError():
            fault = TimedOut(vendor, f"was not reached: {_cause(error)}", retryable=True)
        case _:
            fault = Unreachable(vendor, f"was not reached: {_cause(error)}", retryable=True)
    fault.address, fault.detail = _address(url), _detail(error)
    return fault


def connection_error(vendor: str, error: BaseException) -> VendorError:
    """Return the error for a connection that failed after it was established. `error` is one of `FAULTS`."""
    match error:
        case TimeoutError():
            return TimedOut(vendor, "did not answer in time", retryable=True)
        case BrokenResponse() | aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            return Garbled(vendor, "broke off its answer", retryable=True)
    return Unreachable(vendor, f"was lost: {_cause(error)}", retryable=True)


def _cause(error: BaseException) -> str:
    error = _unwrapped(error)
    cause = "the connection failed"
    match error:
        case NameNotFound() | socket.gaierror():
            cause = "its host name was not resolved"
        case ssl.SSLCertVerificationError():
            cause = _BY_VERIFY_CODE.get(error.verify_code, "its TLS certificate is not trusted")
        case ssl.SSLError():
            reason = (error.reason or "the connection was closed").replace("_", " ").lower()
            cause = f"the TLS handshake failed: {reason}"
        case OSError() if error.errno is not None:
            cause = _BY_ERRNO.get(error.errno, cause)
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            cause = "the connection was closed without an answer"
        case OSError() if str(error).startswith("Multiple exceptions"):
            cause = "none of its addresses accepted a connection"
    return cause


def _detail(error: BaseException) -> str:
    """Return the message of the operating system, which may contain host names."""
    error = _unwrapped(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return str(error)


def _unwrapped(error: BaseException) -> BaseException:
    """Return the operating system's error inside an aiohttp error."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error
    return error


def _address(url: str) -> str:
    """Return host and port without user, path and query, which may contain a key."""
    parts = URL(url)
    return f"{parts.host}:{parts.port}"
