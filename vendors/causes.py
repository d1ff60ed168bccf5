"""Errors of the network as `VendorError`, with their cause in a few words that name no host.

Clients may read the cause. The host, the port and the words of the system are for the operator's log alone.
"""

import ssl

import aiohttp
from yarl import URL

from streams.wire.network import network_cause
from vendors.errors import Garbled, TimedOut, Unreachable, VendorError
from vendors.http1.errors import BadAddress, BrokenResponse, ConnectTimeout

FAULTS = (TimeoutError, OSError, BrokenResponse, BadAddress, aiohttp.ClientError)
"""What calls and answers raise, of the network and of HTTP."""


def not_reached(vendor: str, error: BaseException, *, url: str, connect_s: float) -> VendorError:
    """The error of a call without an answer. `error` is one of `FAULTS`."""
    fault: VendorError
    match error:
        case BadAddress() | aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Unreachable(vendor, "has a base URL that is not an HTTP URL")
        case BrokenResponse() | aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            fault = Garbled(vendor, "sent no valid HTTP answer", retryable=True)
        case TimeoutError() if not error.errno:
            missing = error.missing if isinstance(error, ConnectTimeout) else "no connection"
            fault = TimedOut(vendor, f"was not reached: {missing} within {connect_s:g} s", retryable=True)
        case TimeoutError():
            fault = TimedOut(vendor, f"was not reached: {_cause(error)}", retryable=True)
        case _:
            fault = Unreachable(vendor, f"was not reached: {_cause(error)}", retryable=True)
    fault.address, fault.detail = _address(url), _detail(error)
    return fault


def broken_off(vendor: str, error: BaseException) -> VendorError:
    """The error of a connection that was open. `error` is one of `FAULTS`."""
    match error:
        case TimeoutError():
            return TimedOut(vendor, "did not answer in time", retryable=True)
        case BrokenResponse() | aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            return Garbled(vendor, "broke off its answer", retryable=True)
    return Unreachable(vendor, f"was lost: {_cause(error)}", retryable=True)


def _cause(error: BaseException) -> str:
    error = _own(error)
    match error:
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed without an answer"
        case ConnectionResetError() if error.errno is None:
            return "the connection was closed without an answer"
        case OSError() if str(error).startswith("Multiple exceptions"):
            return "none of its addresses accepted a connection"
    return network_cause(error) or "the connection failed"


def _detail(error: BaseException) -> str:
    """The words of the system, which may name hosts."""
    error = _own(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return str(error)


def _own(error: BaseException) -> BaseException:
    """The system's error that aiohttp has wrapped."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error
    return error


def _address(url: str) -> str:
    """Host and port; no user, path or query, which may hold a key."""
    parts = URL(url)
    return f"{parts.host}:{parts.port}"
