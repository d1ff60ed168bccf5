"""What each response must have that reports the failure of a service on which the server depends."""

from aiohttp import ClientResponse

from streams.wire.codec import loads

_TYPES = ("backend unavailable", "gateway")
_FAILED = 400


async def check_backend_error(response: ClientResponse) -> None:
    """Fail unless such a response says when to retry and whether that may help. Others are not checked."""
    if response.status < _FAILED or response.content_type != "application/json":
        return
    try:
        body = loads(await response.read())
    except ValueError:
        return  # For example a response to HEAD.
    match body:
        case {"error": {"error_type": str(error_type), **error}} if error_type in _TYPES:
            assert response.headers.get("Retry-After", "").isdecimal(), f"{body} has no Retry-After"
            assert isinstance(error.get("extra", {}).get("retryable"), bool), f"{body} has no extra.retryable"
