"""What goes wrong beside the network's own `OSError` and `TimeoutError`."""


class BadAddress(Exception):
    """No URL of HTTP."""


class BadHeader(Exception):
    """HTTP cannot send it."""


class BrokenResponse(Exception):
    """What came is no HTTP, is not what its headers tell, or ended before its end."""


class ConnectTimeout(TimeoutError):
    """There was no connection in time. `missing`: what had not come by then."""

    def __init__(self, missing: str) -> None:
        super().__init__(missing)
        self.missing = missing
