"""Sees what a page must never do: complain in the console, break, or ask another host."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Request, WebError

_OF_THE_PAGE = {"data", "blob"}


@dataclass
class Guard:
    """`expected` are patterns of console errors that a test brings about itself: a browser tells there of every
    answer of 400 and more, and of every connection that is cut. One that never comes is a failure too.
    """

    hosts: set[str] = field(default_factory=set)
    expected: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext, host: str) -> None:
        """`host`: the only one that pages of `context` may ask."""
        self.hosts.add(host)
        context.on("console", self._heard)
        context.on("weberror", self._broke)
        context.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def _broke(self, error: WebError) -> None:
        self.complaints.append(f"not caught: {error.error}")

    def _asked(self, request: Request) -> None:
        if self._is_strange(request.url):
            self.strangers.append(request.url)

    def _is_strange(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme not in _OF_THE_PAGE and parts.netloc not in self.hosts

    def verify(self) -> None:
        assert not self.strangers, "\n".join(self.strangers)
        unexpected = [
            complaint
            for complaint in self.complaints
            if not any(re.search(pattern, complaint) for pattern in self.expected)
        ]
        assert not unexpected, "\n".join(unexpected)
        for pattern in self.expected:
            assert any(re.search(pattern, complaint) for complaint in self.complaints), f"no error like {pattern}"
