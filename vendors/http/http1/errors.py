"""Exceptions of the HTTP client, in addition to `OSError` and `TimeoutError` of the network."""


class BadAddress(Exception):
    """The URL is not a valid HTTP URL."""


class BadHeader(Exception):
    """A header contains characters that HTTP does not allow."""


class NotPublic(OSError):
    """The host has no public address."""

    def __init__(self) -> None:
        super().__init__("its host has no public address")


class BrokenResponse(Exception):
    """The response is not valid HTTP, contradicts its headers, or ends too early."""


class ConnectTimeout(TimeoutError):
    """No connection was established in time. `missing`: the step that was not finished."""

    def __init__(self, missing: str) -> None:
        super().__init__(missing)
        self.missing = missing
