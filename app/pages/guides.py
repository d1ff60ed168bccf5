"""The guides as pages of development servers, made from the Markdown files of the repository.

An installed wheel does not contain these files. The pages answer 404 then, and no bar links to them.
"""

import asyncio
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path as FilePath
from typing import Final

from aiohttp import web
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.http.errors import PathNotFound
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Path
from app.page_bar import GUIDES, GUIDES_FOLDER, bar_links
from app.pages.assets import STATIC, Page
from app.pages.rows import page_row
from streams.wire.model import Model

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_ROOT = GUIDES_FOLDER.parents[1]
_GROUPS: Final = {
    "Guides": ("docs/guides/*.md",),
    "Clients": ("clients/*/README.md", "clients/examples/*/README.md"),
    "Reference": ("docs/reference/*.md",),
    "Operating": ("docs/operating/*.md",),
    "Parley": ("README.md", "vendors/sandbox/README.md"),
}
"""The documents that are pages, by their group in the contents."""
_DEVELOPMENT_SERVER = "http://127.0.0.1:8080"
"""The address of `make run` in the documents. On a page, links to it lead to the server of the page."""
_LISTED = re.compile(r"\]\((?:[\w./-]+/)?([\w-]+)\.md\)")


class GuidePath(Model):
    guide: str
    """The name of a guide, such as `first-app`."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as HTML. `headings`: the anchors and the titles of its parts."""

    title: str
    headings: Mapping[str, str]
    html: str


async def guides_page(call: Call) -> web.Response:
    """Read the list of guides.

    Only development servers have this page.
    """
    return await _page(call, "")


async def guide_page(call: Call, path: Path[GuidePath]) -> web.Response:
    """Read a guide.

    Only development servers have this page.
    """
    return await _page(call, path.guide)


async def _page(call: Call, name: str) -> web.Response:
    page = await asyncio.to_thread(_made, name, bar_links(call.services, GUIDES))
    if page is None:
        raise PathNotFound(call.request.path)
    return await page.response(call.request, policy=_POLICY)


def _made(name: str, bar: str) -> Page | None:
    """Return the page of a document, or None if there is no document with this name."""
    documents = {_name(file): file for files in _documents().values() for file in files}
    if (file := documents.get(name)) is None:
        return None
    document = _read(file)
    parts = {
        "bar": bar,
        "title": escape(document.title) + (" · Guides" if name else ""),
        "contents": "".join(_contents(name, document.headings)),
        "document": document.html,
    }
    template = (STATIC / "guides" / "index.html").read_text()
    html = re.sub(r"<!-- (\w+) -->", lambda place: parts[place[1]], template)
    return Page.of("text/html; charset=utf-8", html.encode())


@cache
def _documents() -> Mapping[str, list[FilePath]]:
    """Return the documents by their group, the guides in the order of their index, the others by name."""
    if not GUIDES_FOLDER.is_dir():
        return {}
    order = ["README", *_LISTED.findall((GUIDES_FOLDER / "README.md").read_text())]
    groups = {
        title: [file for pattern in patterns for file in sorted(_ROOT.glob(pattern))]
        for title, patterns in _GROUPS.items()
    }
    groups["Guides"].sort(key=lambda file: order.index(file.stem))
    return groups


def _name(file: FilePath) -> str:
    """Return the name of a document in the addresses of pages. That of the index of all guides is empty."""
    path = file.relative_to(_ROOT).as_posix()
    if path == "README.md":
        return "readme"
    short = path.removeprefix("docs/").removeprefix("guides").removesuffix(".md").removesuffix("README")
    return short.strip("/")


def _address(file: FilePath) -> str:
    return posixpath.join(GUIDES, _name(file)).rstrip("/")


def _contents(current: str, headings: Mapping[str, str]) -> Iterator[str]:
    """Yield the groups of the contents. The current document is marked, and has links to its parts."""
    for group, files in _documents().items():
        is_open = any(_name(file) == current for file in files)
        yield f'<details class="group" name="group"{" open" if is_open else ""}><summary>{group}</summary><ul>'
        for file in files:
            is_current = _name(file) == current
            mark = ' aria-current="page"' if is_current else ""
            yield f'<li><a href="{_address(file)}"{mark}>{escape(_title(file))}</a>'
            if is_current and headings:
                parts = (f'<li><a href="#{anchor}">{escape(title)}</a></li>' for anchor, title in headings.items())
                yield f"<ul>{''.join(parts)}</ul>"
            yield "</li>"
        yield "</ul></details>"


def _title(file: FilePath) -> str:
    with file.open() as lines:
        return next(lines).removeprefix("# ").strip()


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def _read(file: FilePath) -> Document:
    """Read a document. Its HTML has anchors at headings, as GitHub makes them, and links to pages."""
    tokens = _MARKDOWN.parse(file.read_text())
    headings: dict[str, str] = {}
    anchors: set[str] = set()
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following is not None:
            anchor = _anchor(following.content, anchors)
            token.attrSet("id", anchor)
            if token.tag == "h2":
                headings[anchor] = _plain(following)
        for child in token.children or ():
            _lead_to_page(child, token.children or [], file)
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    html = html.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    return Document(_title(file), headings, html)


def _anchor(heading: str, known: set[str]) -> str:
    """Return the anchor of a heading, and add it to the known ones."""
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
    number = sum(other == anchor or other.startswith(f"{anchor}-") for other in known)
    unique = anchor if anchor not in known else f"{anchor}-{number}"
    known.add(unique)
    return unique


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def _lead_to_page(token: Token, line: list[Token], file: FilePath) -> None:
    """Let a link to a document lead to its page. Pictures, and links to files that are no pages, are left out."""
    if token.type == "image":
        _remove(token)
    if token.type != "link_open":
        return
    target, hash_mark, anchor = str(token.attrGet("href")).partition("#")
    if target.startswith(_DEVELOPMENT_SERVER):
        token.attrSet("href", target.removeprefix(_DEVELOPMENT_SERVER) + hash_mark + anchor or "/")
    elif target and "://" not in target:
        linked = (file.parent / target).resolve()
        if any(linked in files for files in _documents().values()):
            token.attrSet("href", _address(linked) + hash_mark + anchor)
        else:
            closing = next(one for one in line[line.index(token) :] if one.type == "link_close")
            _remove(token)
            _remove(closing)


def _remove(token: Token) -> None:
    token.type, token.tag, token.content, token.nesting = "text", "", "", 0


GUIDE_ROUTES = [
    page_row("/docs/guides", guides_page, "text/html"),
    page_row("/docs/guides/{guide:.+}", guide_page, "text/html", errors=(PathNotFound,)),
]
