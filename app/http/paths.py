"""Paths of the route table: their parameters, and the S2S path that belongs to a C2S path."""

import re

SERVER_PATHS = "/bp/server/"
USER_ID = "user_id"
"""The parameter of an S2S path that names the user of the call."""
APP_ID = "app_id"
"""The parameter of a webhook's path that names the app of the call."""

_PARAMETER = re.compile(r"\{(\w+)(?::[^{}]*)?\}")
_OWN = "/bp/user/me"
_PREFIXES = (
    (f"{_OWN}/", f"{SERVER_PATHS}user/{{{USER_ID}}}/"),
    ("/bp/user/", f"{SERVER_PATHS}user/"),
    ("/bp/", f"{SERVER_PATHS}user/{{{USER_ID}}}/"),
)
"""Beginnings of C2S paths with those of their S2S paths. The first that matches applies."""


def is_server_path(path: str) -> bool:
    return path.startswith(SERVER_PATHS)


def server_path_of(path: str) -> str:
    """Return the S2S path that the interface derives from a C2S path, which must be under `/bp/`."""
    for prefix, server_prefix in _PREFIXES:
        if f"{path}/" == prefix == f"{_OWN}/":
            return server_prefix.removesuffix("/")
        if path.startswith(prefix):
            return server_prefix + path.removeprefix(prefix)
    raise ValueError("only a path under /bp/ has an S2S path")


def names_in(path: str) -> list[str]:
    """Return the names of the parameters of a path."""
    return _PARAMETER.findall(path)


def template_of(path: str) -> str:
    """Return a path as OpenAPI writes it, without the patterns of its parameters."""
    return _PARAMETER.sub(r"{\1}", path)
