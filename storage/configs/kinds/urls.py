"""URLs in configs. Those of development servers may name the sandbox."""

from typing import Annotated

from pydantic import Field

from streams.wire.model import Matches

SANDBOX = "{sandbox}"
"""Stands in a URL for the address of the sandbox, which only development servers have."""
_BEGIN = r"^(https?://[^\s/?#]+|\{sandbox\})"
_URL = "must be a URL that begins with http://, https:// or {sandbox}"

SandboxUrl = Annotated[
    str,
    Field(max_length=2048),
    Matches(rf"{_BEGIN}([/?][^\s#]*)?$", f"{_URL}, without spaces and without a fragment"),
]


def resolve_url(url: str, *, sandbox_url: str | None) -> str | None:
    """Return the address that `url` stands for, or `None` if it names the sandbox, which does not run."""
    if not url.startswith(SANDBOX):
        return url
    return None if sandbox_url is None else url.replace(SANDBOX, sandbox_url, 1)


BaseUrl = Annotated[
    str,
    Field(max_length=2048),
    Matches(rf"{_BEGIN}(/[^\s?#]*)?$", f"{_URL}, without spaces, a query or a fragment"),
]
"""A URL to which paths are appended."""
