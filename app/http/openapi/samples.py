"""Examples of calls in the API reference: curl, and the clients for TypeScript and Python (`x-codeSamples`)."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from app.http.callers.caller import Access
from app.http.callers.console_sessions import CSRF_HEADER
from app.http.openapi.bodies import bodies_of
from app.http.openapi.clients import SAMPLES, Call
from app.http.paths import is_server_path, template_of
from app.http.rows import idempotency
from app.http.rows.endpoint import Endpoint
from app.http.rows.inputs import Source
from streams.wire.codec import INDENTED, dumps, loads

_CALLS = Path(__file__).parent / "client_calls.json"
"""Calls of the clients, by the operation. Those of app servers follow from those of apps, unless they are named."""
_CREDENTIALS = {
    "session": "X-Service-Session-Token: $SESSION",
    "server": "X-Service-Auth-Token: $SERVER",
    "admin": "Authorization: Bearer $ADMIN",
}
"""Headers by security scheme. The welcome of `make run` sets these variables of the shell."""
_RECORDINGS = {"/bp/ai/audio/pronunciation": "hello.pcm"}
"""Files that examples send in place of the shortened audio of a body. `docs/guides/streams.md` makes them."""
_OF_LINKS = frozenset({"verify_code", "random_code", "token", "mid", "e", "u"})
"""Query parameters that links of emails have."""


_WIDTH = 40
"""The characters of JSON that fit into a line of an example."""


def code_samples(row: Endpoint, path: str, operation: Mapping[str, Any], *, url: str) -> list[dict[str, str]]:
    """Return the examples of one operation, first that in curl. `operation` has its parameters and security."""
    samples = [{"lang": "shell", "label": "curl", "source": _curl(row, path, operation, url)}]
    for language, call in _calls(row, path).items():
        source = SAMPLES[language](Call(call, url=url, of_server=is_server_path(path)))
        samples.append({"lang": language, "label": _LABELS[language], "source": source})
    return samples


_LABELS = {"typescript": "TypeScript", "python": "Python"}


@cache
def known_calls() -> Mapping[str, Mapping[str, str]]:
    """Return the calls of the clients in both languages, by the operation."""
    calls: Mapping[str, Mapping[str, str]] = loads(_CALLS.read_bytes())
    return calls


def _calls(row: Endpoint, path: str) -> Mapping[str, str]:
    known = known_calls()
    if (own := known.get(f"{row.method} {template_of(path)}")) is not None or not is_server_path(path):
        return own or {}
    of_client = known.get(f"{row.method} {template_of(row.path)}", {})
    return {
        language: call.replace("client.", "user.")
        for language, call in of_client.items()
        if not any(part in call for part in _ONLY_CLIENTS[language])
    }


_ONLY_CLIENTS = {
    "typescript": ("signOut", "signIn", "signUp", ".sharing.", ".wallet.", ".cards."),
    "python": ("sign_", "share_", ".wallet.", ".cards."),
}
"""What the clients of users have, and those of app servers have not."""


def _curl(row: Endpoint, path: str, operation: Mapping[str, Any], url: str) -> str:
    flags = [f'-H "{header}"' for header in _headers(row, operation)]
    if operation.get("x-events"):
        flags.insert(0, "-N")
    if row.method == "HEAD":
        flags.insert(0, "--head")
    elif row.method != ("POST" if (body := _body(row)) is not None else "GET"):
        flags.insert(0, f"-X {row.method}")
    if row.method != "HEAD" and body is not None:
        flags.append(f"-d {_data(row, body)}")
    query = "&".join(f"{name}=${name.upper()}" for name in _needed(row, operation["parameters"]))
    target = template_of(path).replace("{", "$").replace("}", "")
    words = target.split("/")
    target = "/".join(f"${word[1:].upper()}" if word.startswith("$") else word for word in words)
    address = f'"{url}{target}{"?" if query else ""}{query}"'
    return " \\\n  ".join([f"curl {address}", *flags])


def _data(row: Endpoint, body: str) -> str:
    """Return the value of `-d`."""
    if (recording := _RECORDINGS.get(row.path)) is None:
        return shlex.quote(body)
    parameters = body[: body.rindex("}") + 1]
    return f"@- <<BODY\n{parameters}$(base64 < {recording})\nBODY"


def _headers(row: Endpoint, operation: Mapping[str, Any]) -> Iterator[str]:
    for scheme in next(iter(operation["security"]), ()):
        if scheme in _CREDENTIALS:
            yield _CREDENTIALS[scheme]
    accepted = {parameter.get("name") for parameter in operation["parameters"]}
    if CSRF_HEADER in accepted:
        yield f"{CSRF_HEADER}: 1"
    if row.area.role is not None and row.method != "GET":
        yield "X-Parley-Reason: an example"
        if idempotency.HEADER in accepted:
            yield f"{idempotency.HEADER}: change-$(date +%s)"


def _needed(row: Endpoint, parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the query parameters of an example: the required ones, and those that links of emails have."""
    for parameter in parameters:
        of_link = row.area.access is Access.PUBLIC and parameter.get("name") in _OF_LINKS
        if parameter.get("in") == "query" and (parameter.get("required") or of_link):
            yield parameter["name"]


def _body(row: Endpoint) -> str | None:
    """Return the first example of a body, or `{}` if a body is needed and none is documented."""
    if row.inputs.body is None:
        return None
    if bodies := bodies_of(row):
        example = next(iter(bodies.values()))
        if not isinstance(example, str):
            return _json(example)
        if row.inputs.body.source is Source.CHUNKED:
            end = example.rindex("}") + 1
            return _json(loads(example[:end].encode())) + example[end:]
        return example
    return "{}"


def _json(value: Any) -> str:
    """Return JSON, over several lines if it may be wider than the column of the examples."""
    short = dumps(value)
    return (short if len(short) <= _WIDTH else dumps(value, option=INDENTED)).decode()
