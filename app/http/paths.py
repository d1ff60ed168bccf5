"""Paths of the route table: their parameters, and the S2S path that belongs to a C2S path."""

import re
from collections.abc import Collection

SERVER_PATHS = "/bp/server/"
USER_ID = "user_id"
"""The parameter of an S2S path that names the user of the call."""
APP_ID = "app_id"
"""The parameter of a webhook's path that names the app of the call."""

_NO_USERS = frozenset({"detect", "login", "logout", "signup"})
"""Words that S2S paths of the interface have in place of a user, whether or not this server has these paths."""
_PARAMETER = re.compile(r"\{(\w+)(?::[^{}]*)?\}")
_PLAIN_PARAMETER = re.compile(r"\{(\w+)\}")
_ANY_CHARACTERS = "[^/]+"
"""The router's own pattern refuses `{` and `}`, which ids from third-party platforms may contain."""
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


def routes_of(paths: Collection[str]) -> dict[str, str]:
    """Return the pattern for the router of each path.

    Parameters accept any characters; clients encode `/` as `%2F`. A parameter does not accept a word that another
    of `paths` has in the same position. Thus a wrong method on that other path gets 405, instead of the row whose
    parameter would accept the word.
    """
    split = {path: path.split("/") for path in paths}
    words: dict[tuple[str, ...], set[str]] = {}
    """The words that follow the beginning of a path."""
    for parts in split.values():
        for position, part in enumerate(parts):
            if part and not part.startswith("{"):
                words.setdefault(tuple(parts[:position]), set()).add(part)
    return {
        path: "/".join(
            _part_of_route(part, words.get(tuple(parts[:position]), set())) for position, part in enumerate(parts)
        )
        for path, parts in split.items()
    }


def _part_of_route(part: str, words: set[str]) -> str:
    """`words`: those that other paths have in the place of `part`."""
    if (parameter := _PLAIN_PARAMETER.fullmatch(part)) is None:
        return part
    if parameter[1] == USER_ID:
        words = words | _NO_USERS
    excluded = "|".join(map(re.escape, sorted(words)))
    lookahead = f"(?!(?:{excluded})(?:/|$))" if words else ""
    return f"{{{parameter[1]}:{lookahead}{_ANY_CHARACTERS}}}"
