"""The errors of this package. Each is a `ParleyError`, whose `error_type` says what is wrong."""

from collections.abc import Mapping
from typing import Any

_BUSY = {429, 503}


class ParleyError(Exception):
    """An error that the server has reported, in a response or as the last event of a stream.

    `str()` is the server's message, `<error_type>: <what is wrong>`.
    """

    def __init__(
        self,
        error_type: str,
        message: str,
        *,
        status: int | None = None,
        extra: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        bp_auth: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.error_type = error_type
        """With underscores, in responses as in events: `backend_unavailable`."""
        self.message = message
        self.status = status
        """The HTTP status. None: the error is an event of a stream, or there was no response."""
        self.extra = dict(extra or {})
        self.request_id = request_id
        """The server's logs have it, so support can find the request."""
        self.retry_after = retry_after
        """Seconds after which to repeat the request, at most a day, if the server has named them."""
        self.bp_auth = bp_auth
        """`{bp_auth_token, expire_at_ms}`: signs in the user to whom the identity in the request belongs."""

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        said = self.extra.get("retryable")
        if isinstance(said, bool):
            return said
        return self.status in _BUSY or self.retry_after is not None


class ConnectionLost(ParleyError):
    """There was no response, or it broke off, and repeating the request has not helped."""

    def __init__(self, message: str) -> None:
        super().__init__("connection_lost", f"connection_lost: {message}")

    @property
    def retryable(self) -> bool:
        return True


class NotUnderstood(ParleyError):
    """What has arrived is not what a Parley server sends. The address may be that of something else."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(
            "not_understood",
            f"not_understood: {message}",
            status=status,
            request_id=request_id,
            retry_after=retry_after,
        )


class DigestMismatch(ParleyError):
    """The text and audio of a stream are not what the server has sent: a part is missing, repeated or altered."""

    def __init__(self, stream_id: str | None) -> None:
        super().__init__("digest_mismatch", f"digest_mismatch: stream {stream_id} did not arrive as it was sent")


def invalid_parameter(why: str) -> ParleyError:
    """Return the error of an argument that cannot be sent."""
    return ParleyError("invalid_parameter", f"invalid_parameter: {why}")
