"""Which operations for operators the pages of the console have called in a run of the tests."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Request, Response

from app.http.callers.caller import Access
from app.http.rows.endpoint import Endpoint
from app.routes import INTERFACE

_FOLDER = Path(__file__).parent / "console"
_API = "/admin/api/"
_NARROW_PX = 768
"""The width up to which the pages have their other layout: 48rem in their style sheets."""
LAYOUTS = {"narrow", "wide"}
WITHOUT_PAGE = {
    "POST /bp/ai/probe": "`python -m app doctor` measures with it what a proxy does to streams",
}
"""Operations that no page calls, and why."""


def operations() -> list[Endpoint]:
    return [row for row in INTERFACE if row.area.access is Access.ADMIN or row.path.startswith(_API)]


def operation_of(method: str, path: str) -> str | None:
    """Return the method and the template of the operation that serves a path: that with the fewest parameters."""
    found = [row.path for row in operations() if row.method == method and _pattern(row.path).fullmatch(path)]
    return f"{method} {min(found, key=lambda template: template.count('{'))}" if found else None


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", template))


def modules() -> set[str]:
    """The modules whose tests open the console."""
    return {file.name for file in _FOLDER.glob("test_*.py")}


def faults_of(used: Iterable[str], rows: Iterable[Endpoint], without_page: Iterable[str]) -> list[str]:
    """Return what the pages have not called, and the exceptions that they have called or that do not exist."""
    existing, called, excepted = {f"{row.method} {row.path}" for row in rows}, set(used), set(without_page)
    return [
        *(f"{each}: no page of the console has called it" for each in sorted(existing - called - excepted)),
        *(f"{each}: a page of the console has called it" for each in sorted(excepted & called)),
        *(f"{each}: there is no such operation" for each in sorted((called | excepted) - existing)),
    ]


def faults_of_layouts(used: Iterable[tuple[str, str]]) -> list[str]:
    """Return the changes that were made at one layout of the pages only. `used`: operations with layouts."""
    layouts: defaultdict[str, set[str]] = defaultdict(set)
    for operation, layout in used:
        if not operation.startswith("GET "):
            layouts[operation].add(layout)
    return [
        f"{operation}: called from a {' and a '.join(seen)} page only"
        for operation, seen in sorted(layouts.items())
        if seen != LAYOUTS
    ]


class UsedOperations:
    """A file with the operations that the processes of a run have seen answered, and the layouts of their pages."""

    file: Path | None = None
    module: str = ""
    """The name of the module whose test runs in this process."""

    def __init__(self) -> None:
        self._layouts: dict[Request, str] = {}

    def watch(self, context: BrowserContext) -> None:
        """Record the operations that answer the pages of `context`."""
        context.on("request", self._begin)
        context.on("response", self._record)

    def _begin(self, request: Request) -> None:
        """Keep the layout: a test may have changed the size of the page when the answer arrives."""
        size = request.frame.page.viewport_size
        self._layouts[request] = "narrow" if size is not None and size["width"] <= _NARROW_PX else "wide"

    def _record(self, response: Response) -> None:
        layout = self._layouts.pop(response.request, "wide")
        operation = operation_of(response.request.method, urlsplit(response.url).path)
        if operation is None or not response.ok or self.file is None:
            return
        with self.file.open("a") as file:
            file.write(f"{self.module}\t{operation}\t{layout}\n")

    def faults(self) -> list[str]:
        """Compare what was recorded with the interface, if each module has opened the console."""
        if self.file is None or not self.file.exists():
            return []
        lines = [line.split("\t") for line in self.file.read_text().splitlines()]
        if not modules() <= {module for module, _, _ in lines}:
            return []
        unused = faults_of({operation for _, operation, _ in lines}, operations(), WITHOUT_PAGE)
        return [*unused, *faults_of_layouts((operation, layout) for _, operation, layout in lines)]


USED = UsedOperations()
