"""The TypeScript client that the pages of the server load, and what imports which part of the client."""

import re
from pathlib import Path

from app.pages.assets import STATIC
from tests.clients.typescript.conftest import CLIENT, run
from tests.running.servers import Server

PAGES = STATIC / "client"
IMPORTED = re.compile(r'(?:from|import) "(\.[^"]+)"')


def test_the_pages_load_the_client_as_it_is_built(built: None, tmp_path: Path) -> None:
    bundle = tmp_path / "parley-client.js"
    succeeded, output = run("npm", "--prefix", str(CLIENT), "run", "--silent", "pages", "--", f"--outfile={bundle}")
    assert succeeded, output
    assert (PAGES / bundle.name).read_bytes() == bundle.read_bytes(), "run `make clients`"
    for name in ("worklet.js", "silero.bin", "silero.LICENSE.txt"):
        assert (PAGES / name).read_bytes() == (CLIENT / "dist/audio" / name).read_bytes(), "run `make clients`"


async def test_the_server_delivers_it_to_its_pages(server: Server) -> None:
    for folder in ("/static", "/dev/static"):
        for name, kind in {
            "parley-client.js": "text/javascript",
            "worklet.js": "text/javascript",
            "silero.bin": "application/octet-stream",
        }.items():
            async with server.http.get(f"{server.url}{folder}/client/{name}") as response:
                assert (response.status, response.content_type) == (200, kind)
                assert await response.read() == (PAGES / name).read_bytes()


def test_audio_is_loaded_by_those_who_import_it_only(built: None) -> None:
    """React Native has neither worklets nor media elements."""
    dist = CLIENT / "dist"
    assert "index.js" in {path.name for path in loaded_with(dist / "audio/index.js")}
    for entry in ("index.js", "server/index.js"):
        assert not [path for path in loaded_with(dist / entry) if path.parent.name == "audio"]


def loaded_with(entry: Path) -> set[Path]:
    """Return the modules that a module imports, and those that they import, and so on, with itself."""
    found, waiting = set(), [entry]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += [(module.parent / name).resolve() for name in IMPORTED.findall(module.read_text())]
    return found
