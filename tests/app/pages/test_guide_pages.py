"""The guides are pages of development servers: all of them open, and all of their links lead somewhere."""

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest

from tests.code.source_files import ROOT
from tests.running.servers import Server

START = "/docs/guides"
INBOXES = frozenset({"/dev/mail", "/dev/sms"})
"""Pages that need the sandbox."""


class GuidePage(NamedTuple):
    status: int
    text: str
    links: list[str]
    anchors: list[str]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.anchors.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def get(server: Server, path: str) -> GuidePage:
    async with server.http.get(server.url + path, headers={"Accept": "text/html"}) as response:
        text = await response.text(errors="replace")
        parser = _Parser()
        if response.content_type == "text/html":
            parser.feed(text)
        return GuidePage(response.status, text, parser.links, parser.anchors)


async def crawled(server: Server) -> AsyncIterator[tuple[str, GuidePage]]:
    """Yield all pages that can be reached by links from the list of guides."""
    known, waiting = {START}, [START]
    while waiting:
        page = await get(server, path := waiting.pop())
        yield path, page
        for link in page.links:
            target = urldefrag(urljoin(path, link)).url
            if target.startswith(START) and target not in known:
                known.add(target)
                waiting.append(target)


async def test_every_link_of_every_guide_leads_somewhere(server: Server) -> None:
    pages = {path: page async for path, page in crawled(server)}
    guides = {f"{START}/{file.stem}" for file in (ROOT / "docs/guides").glob("*.md") if file.stem != "README"}
    assert guides | {f"{START}/clients/python", f"{START}/clients/typescript"} <= pages.keys()
    broken = {path for path, page in pages.items() if page.status != 200}
    for path, page in list(pages.items()):
        assert len(page.anchors) == len(set(page.anchors)), path
        for link in page.links:
            target, anchor = urldefrag(urljoin(path, link))
            if urlsplit(link).netloc or target in INBOXES:
                continue
            if target not in pages:
                pages[target] = await get(server, target)
            found = pages[target]
            if found.status != 200 or (anchor and target.startswith(START) and anchor not in found.anchors):
                broken.add(f"{link} of {path}")
    assert broken == set()


async def test_a_guide_has_the_bar_the_contents_and_its_text(server: Server) -> None:
    page = await get(server, f"{START}/signatures")
    assert '<a href="/docs/guides" aria-current="page">Guides</a>' in page.text
    assert '<a href="/docs/guides/signatures" aria-current="page">' in page.text
    headings = re.findall(r"^## (.+)$", (ROOT / "docs/guides/signatures.md").read_text(), re.MULTILINE)
    assert headings
    assert [link for link in page.links if link.startswith("#")][: len(headings)] == [
        f"#{heading.lower().replace(' ', '-')}" for heading in headings
    ]
    assert "<!-- " not in page.text


async def test_markup_in_a_document_is_text(server: Server) -> None:
    page = await get(server, f"{START}/kotlin")
    assert "&lt;uses-permission" in page.text
    assert "<uses-permission" not in page.text


@pytest.mark.parametrize("name", ["nothing", "mail.md", "README", "%2e%2e%2f%2e%2e/pyproject.toml"])
async def test_only_documents_are_pages(server: Server, name: str) -> None:
    assert (await get(server, f"{START}/{name}")).status == 404
