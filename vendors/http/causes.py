"""Maps network errors to `VendorError` with a short cause that names no host.

Clients may see the cause. The host, the port and the message of the operating system are only logged.
"""

import ssl

import aiohttp
from yarl import URL

from streams.wire.network import network_cause
from vendors.errors import Garbled, TimedOut, Unreachable, VendorError
from vendors.http.http1.errors import BadAddress, BrokenResponse, ConnectTimeout, NotPublic
from vendors.http.outgoing import Outgoing

FAULTS = (TimeoutError, OSError, BrokenResponse, BadAddress, aiohttp.ClientError)
"""The exceptions that HTTP calls raise for network and protocol failures."""


def connect_error(call: Outgoing, error: BaseException) -> VendorError:
    """Return the error for a call that got no response. `error` is one of `FAULTS`."""
    vendor = call.vendor
    fault: VendorError
    match error:
        case BadAddress() | aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Unreachable(vendor, "has a base URL that is not an HTTP URL")
        case BrokenResponse() | aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            fault = Garbled(vendor, "sent an invalid HTTP response", retryable=True)
        case TimeoutError() if not error.errno:
            missing = error.missing if isinstance(error, ConnectTimeout) else "no connection"
            fault = TimedOut(vendor, f"was not reached: {missing} within {call.connect_s:g} s", retryable=True)
        case TimeoutError():
            fault = TimedOut(vendor, f"was not reached: {_cause(error)}", retryable=True)
        case _:
            fault = Unreachable(vendor, f"was not reached: {_cause(error)}", retryable=True)
    fault.address, fault.detail = _address(call.url), _detail(error)
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
    match error:
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed without an answer"
        case ConnectionResetError() if error.errno is None:
            return "the connection was closed without an answer"
        case NotPublic():
            return str(error)
        case OSError() if str(error).startswith("Multiple exceptions"):
            return "none of its addresses accepted a connection"
    return network_cause(error) or "the connection failed"


def _detail(error: BaseException) -> str:
    """Return the message of the operating system, which may contain host names."""
    error = _unwrapped(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, aiohttp.ClientResponseError):
        return error.message  # `str()` adds the URL, whose query may contain a secret.
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
