"""Values of variables: written forms of URLs, and ordinary texts.

`written_urls.json` contains each value with what Chromium opens if the value is the target of a link: the schemes
and hosts, for a link that is relative to no page, and on pages by HTTP and HTTPS. `tests/browser` compares them
with the Chromium of this machine.
"""

from pathlib import Path
from typing import Any, NamedTuple

from streams.wire.codec import loads

HOST = "good.example"
"""The only host to which values may lead."""


class Written(NamedTuple):
    value: str
    opened: list[str]


_TABLE: dict[str, Any] = loads(Path(__file__).with_suffix(".json").read_bytes())
FOREIGN = [Written(*row) for row in _TABLE["foreign"]]
"""Values that lead elsewhere, in a browser or in a mail program, or that do not show where they lead."""
PLAIN = [Written(*row) for row in _TABLE["plain"]]
"""Texts, and URLs of the host."""


def opens_elsewhere(opened: list[str]) -> bool:
    """Return whether a browser has opened another host. No top-level domain contains a blank (`%20`)."""
    hosts = [url.partition("://")[2] for url in opened if not url.startswith(("http://", "https://"))]
    web = [url.partition("://")[2].removesuffix(".") for url in opened if url.startswith(("http://", "https://"))]
    return bool(hosts) or any(host != HOST and "%20" not in host for host in web)
