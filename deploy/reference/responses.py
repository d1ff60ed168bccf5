"""Records the responses of the API reference: `python -m deploy.reference.responses http://127.0.0.1:8080`.

The examples for curl are called at a server of `make run`, in the order of `stories.py`. The response becomes the
example of the operation. What differs only in ids, times and numbers from the recorded response is not replaced, so
that least changes if the server begins with an empty `.parley`.
"""

import asyncio
import re
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import orjson
from aiohttp import ClientSession

from app.http.callers.caller import Access
from app.http.callers.tokens import make_server_token
from app.http.openapi.responses import RECORDED, response_name
from app.routes import ROUTES
from deploy.reference.steps import Story
from deploy.reference.stories import STORIES
from deploy.reference.written import WRITTEN
from streams.wire.codec import dumps, loads

_JSON = "application/json"
_DATA = Path(".parley")
NAMES = tuple(
    dict.fromkeys(
        response_name(row)
        for row in ROUTES
        if row.docs.stream is None and row.area.access is not Access.WEBHOOK and row.path != "/openapi.json"
    )
)
"""The operations whose responses are recorded. Streams have transcripts, webhooks have signatures of platforms, and
the document is no part of itself."""
_SHELL = r"""
call() { curl -sSi --max-time 10 "$@"; }
mail() {
  found=$(call "$URL/dev/mail?to=$EMAIL")
  case $found in *"$1"*) printf "%s" "$found";; esac
}
"""
"""Functions that the stories use."""
_TRIES = 3
_PAUSE_S = 0.7
_ITEMS = 2
"""Longer lists and streams are cut."""
_CHARACTERS = 400
"""Longer pages and texts are cut."""
_PRIVATE = {
    re.escape(str(Path.cwd())): "/opt/parley",
    re.escape(str(Path.home())) + r"\b": "/opt",
    re.escape(socket.gethostname()): "host",
    r"http://127\.0\.0\.1:\d+": "http://127.0.0.1:8080",
    r"\b(?:(?:st|ba|parley_op)_[A-Za-z0-9]{20,}|eyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?)": "…",
}
"""What tells about this machine or lets somebody in, and what replaces it."""
_VALUE = re.compile(r'"(\w+)": ?"?([^"\s,{}\[\]\\]+)|[?&;](\w+)=([^"&\s<\\]+)')
"""A field of JSON, or a part of the query of a link."""
_VARIABLE = re.compile(r"\$\{?([A-Z_]+)")
_FIELD = re.compile(r"""(?P<start>\b(?P<name>\w+)(?:": ?"|=))[^"'&]*""")
_ID = re.compile(r".*_(?:ID|CODE|TOKEN)|CODE|TOKEN|GROUP")
"""Variables from responses that also replace values in bodies."""
_VARYING = re.compile(r"[\w.:+-]*\d[\w.:+-]*")


class _Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def _read(sent: bytes) -> _Response | None:
    """Read what curl has written. Return `None` if that is no successful response."""
    head, _, body = sent.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    if not re.match(r"HTTP/1\.1 [23]", first):
        return None
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return _Response(int(first.split()[1]), headers, body)


def _example(response: _Response) -> dict[str, Any]:
    """Return a response as it is recorded."""
    example: dict[str, Any] = {"status": response.status}
    if "location" in response.headers:
        example["location"] = _public(response.headers["location"])
    if response.body:
        media_type = example["media_type"] = response.headers["content-type"].partition(";")[0]
        example["body"] = _body(response.body, media_type)
    return example


def _body(body: bytes, media_type: str) -> Any:
    try:
        text = _public(body.decode())
    except UnicodeDecodeError:
        return f"({len(body)} bytes)"
    if media_type == _JSON:
        return _cut(loads(text.encode()))
    if media_type == "text/event-stream":
        return "\n\n".join([*text.split("\n\n")[:_ITEMS], "…"])
    return _begin(text)


def _public(text: str) -> str:
    for private, public in _PRIVATE.items():
        text = re.sub(private, public, text)
    return text


def _cut(value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(item) for item in value[:_ITEMS]]
    if isinstance(value, dict):
        # References in a JSON Schema would be read as those of the OpenAPI document.
        return {name: _cut(item) for name, item in value.items() if not name.startswith("$")}
    return _begin(value) if isinstance(value, str) else value


def _begin(text: str) -> str:
    """Return the first lines of a text."""
    if len(text) <= _CHARACTERS:
        return text
    length = text.rfind("\n", 0, _CHARACTERS)
    return f"{text[:length]}\n…" if length > 0 else f"{text[:_CHARACTERS]}…"


class Recorder:
    """Calls the operations of a server of `make run`, whose data directory is that of this clone."""

    def __init__(self, http: ClientSession, url: str, document: dict[str, Any]) -> None:
        self._http = http
        self._url = url
        self._curls = {
            f"{method.upper()} {path}": operation["x-codeSamples"][0]["source"]
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        self.recorded: dict[str, Any] = {}

    def others(self) -> list[Story]:
        """Return a story for each operation that is in none."""
        told = {step if isinstance(step, str) else step[0] for story in STORIES for step in story}
        return [(name,) for name in NAMES if name not in told | WRITTEN.keys()]

    async def tell(self, story: Story) -> None:
        """Call the operations of a story, and record the first response of each."""
        given = await self._variables()
        found: dict[str, str] = {}
        for step in story:
            name, line = step if isinstance(step, tuple) else (step, self._curls.get(step, step))
            if (assigned := re.fullmatch(r"([A-Z_]+)=(.*)", line)) is not None:
                value = await _output(f'{_SHELL}printf %s "{assigned[2]}"', {**given, **found})
                given[assigned[1]] = value.decode()
            elif (response := await _call(line, found, given)) is not None:
                found |= _values_in(response)
                if name in NAMES and name not in self.recorded:
                    self.recorded[name] = _example(response)

    async def _variables(self) -> dict[str, str]:
        """Return what the welcome of `make run` sets in the shell, for a new user, and names of its configs."""
        suffix = uuid4().hex[:8]
        device = {"device": {"id": f"reference-{suffix}"}}
        async with self._http.post(f"{self._url}/bp/user/login", json=device) as response:
            user = (await response.json())["user"]
        return {
            "URL": self._url,
            "SESSION": user["session"]["session_token"],
            "USER_ID": user["uid"],
            "USER_IDS": user["uid"],
            "UID": user["uid"],
            "PARLEY_SANDBOX_URL": re.findall(r"PARLEY_SANDBOX_URL=(\S+)", (_DATA / "env").read_text())[0],
            "ADMIN": (_DATA / "admin-token").read_text().strip(),
            "APP": "default",
            "APP_ID": "default",
            "SUFFIX": suffix,
        }


async def _call(line: str, found: dict[str, str], given: dict[str, str]) -> _Response | None:
    """Return the successful response to a command. Some need something that a worker has yet to do."""
    if line.startswith("curl "):
        ids = {name: value for name, value in found.items() if _ID.fullmatch(name)}
        line = f"call {_filled(line.removeprefix('curl '), {**ids, **given})}"
    sent = b""
    for _ in range(_TRIES):
        sent = await _output(_SHELL + line, {**found, **given, "SERVER": _server_token()})
        if (response := _read(sent)) is not None:
            return response
        await asyncio.sleep(_PAUSE_S)
    print(line, sent[-500:].decode(errors="replace"), "", sep="\n", file=sys.stderr)
    return None


def _filled(command: str, variables: dict[str, str]) -> str:
    """Return the command with the values of variables in its body: in fields of JSON and of forms."""

    def fill(field: re.Match[str]) -> str:
        value = variables.get(field["name"].upper())
        return field[0] if value is None else f"{field['start']}{value}"

    head, before_body, body = command.partition(" -d ")
    return f"{head}{before_body}{_FIELD.sub(fill, body)}"


def _server_token() -> str:
    key = (_DATA / "server-key").read_text().strip()
    return make_server_token(kid="development", alg="HS256", key=key, app_id="default", jti=uuid4().hex)


def _values_in(response: _Response) -> dict[str, str]:
    """Return the values in a response, by names of variables. Of several with a name, the first one counts."""
    found = (
        {"STREAM_ID": response.headers["x-service-stream-id"]} if "x-service-stream-id" in response.headers else {}
    )
    for field, value, parameter, given in _VALUE.findall(response.body.decode(errors="replace")):
        found.setdefault((field or parameter).upper(), value or given)
    return found


async def _output(command: str, variables: dict[str, str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        "env",
        *(f"{name}={variables[name]}" for name in set(_VARIABLE.findall(command)) & variables.keys()),
        "sh",
        "-c",
        command,
        cwd=_DATA,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    return output


def _shape(example: Any) -> str:
    return _VARYING.sub("0", dumps(example).decode())


async def record(url: str) -> dict[str, Any]:
    """Return the recorded responses by their operation, in the order of the document."""
    earlier = loads(RECORDED.read_bytes())
    async with ClientSession() as http:
        async with http.get(f"{url}/openapi.json") as response:
            recorder = Recorder(http, url, await response.json())
        for story in [*STORIES, *recorder.others()]:
            await recorder.tell(story)
    kept = {name: value for name, value in earlier.items() if _shape(value) == _shape(recorder.recorded.get(name))}
    written = {name: {"status": 200, "media_type": _JSON, "body": body} for name, body in WRITTEN.items()}
    examples = {**earlier, **recorder.recorded, **kept, **written}
    return {name: examples[name] for name in NAMES if name in examples}


if __name__ == "__main__":
    responses = asyncio.run(record(sys.argv[1].rstrip("/")))
    RECORDED.write_bytes(orjson.dumps(responses, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
