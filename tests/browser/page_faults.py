"""Records what a page must not do: log console errors, throw exceptions, or send requests to other hosts."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Request, WebError

_INLINE_SCHEMES = {"data", "blob"}


@dataclass
class PageFaults:
    """The faults of the pages of a test.

    `expected` are patterns of console errors that the test causes: a browser logs every response with a status of
    400 or more, and every lost connection. `verify` also fails if an expected error is missing.
    """

    hosts: set[str] = field(default_factory=set)
    expected: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    foreign_requests: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext, host: str) -> None:
        """Record the faults of all pages of `context`. They may send requests only to `host`."""
        self.hosts.add(host)
        context.on("console", self._on_console)
        context.on("weberror", self._on_exception)
        context.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _on_exception(self, error: WebError) -> None:
        self.errors.append(f"uncaught exception: {error.error}")

    def _on_request(self, request: Request) -> None:
        if self._is_foreign(request.url):
            self.foreign_requests.append(request.url)

    def _is_foreign(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme not in _INLINE_SCHEMES and parts.netloc not in self.hosts

    def verify(self) -> None:
        assert not self.foreign_requests, "\n".join(self.foreign_requests)
        unexpected = [
            error for error in self.errors if not any(re.search(pattern, error) for pattern in self.expected)
        ]
        assert not unexpected, "\n".join(unexpected)
        for pattern in self.expected:
            assert any(re.search(pattern, error) for error in self.errors), f"no error like {pattern}"
