"""Records the responses of the API reference: `python -m deploy.reference.responses http://127.0.0.1:8080`.

Each example for curl that can be called is called at a server of `make run`, as a new user. The response becomes
the example of the operation. Responses that are too long, or that tell about this machine, are left out.
"""

import asyncio
import re
import socket
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import ClientSession

from app.http.callers.tokens import make_server_token
from app.http.openapi.responses import RECORDED
from streams.wire.codec import dumps, loads

_DATA = Path(".parley")
_URL = "http://127.0.0.1:8080"
_LONGEST_BYTES = 6_000
_PRIVATE = re.compile("|".join(map(re.escape, (str(Path.cwd()), str(Path.home()), socket.gethostname()))))
_TOKEN = re.compile(r"\b(?:(?:st|parley_op)_[A-Za-z0-9]{20,}|eyJ[\w-]+\.[\w-]+\.[\w-]+)")
_LEFT_OUT = ("/metrics", "/openapi.json", "/docs", "/static", "/dev/console/session", "/admin/api/session")
"""Paths whose responses are no examples."""
_CURL_S = 20


async def record(url: str) -> dict[str, Any]:
    """Return the recorded responses by their operation."""
    async with ClientSession() as http:
        async with http.get(f"{url}/openapi.json") as response:
            document = await response.json()
        recorded = {}
        earlier = loads(RECORDED.read_bytes())
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if method == "head" or path.startswith(_LEFT_OUT):
                    continue
                name = f"{method.upper()} {path}"
                # What can be called only once, such as a sign-up with a name, keeps its earlier response.
                value = await _response(http, url, operation) or earlier.get(name)
                if value is not None:
                    recorded[name] = value
    return recorded


async def _response(http: ClientSession, url: str, operation: dict[str, Any]) -> Any:
    """Return the JSON of a successful call, or `None` if it cannot be called or is no example."""
    if "schema" not in operation["responses"].get("200", {}).get("content", {}).get("application/json", {}):
        return None
    curl = operation["x-codeSamples"][0]["source"]
    variables = await _variables(http, url, needs_turn="CONVERSATION_ID" in curl)
    if set(re.findall(r"\$([A-Z_]+)", curl)) - variables.keys():
        return None
    status, body = await _call(curl, variables)
    if status != 0 or not body or len(body) > _LONGEST_BYTES or _PRIVATE.search(body):
        return None
    return loads(_TOKEN.sub("…", body).replace(url, _URL).encode())


async def _variables(http: ClientSession, url: str, *, needs_turn: bool) -> dict[str, str]:
    """Return what the welcome of `make run` sets in the shell, for a new user."""
    async with http.post(f"{url}/bp/user/login", json={"device": {"id": f"reference-{uuid4()}"}}) as response:
        user = (await response.json())["user"]
    session = user["session"]["session_token"]
    key = (_DATA / "server-key").read_text().strip()
    found = {
        "SESSION": session,
        "USER_ID": user["uid"],
        "SERVER": make_server_token(kid="development", alg="HS256", key=key, app_id="default"),
        "ADMIN": (_DATA / "admin-token").read_text().strip(),
        "APP": "default",
    }
    if needs_turn:
        parameters = {"strategies": ["scripted"], "type": "text", "language_code": "en-US"}
        body = dumps({**parameters, "target_language_code": "en-US"}) + b"Tell me about the sea."
        headers = {"X-Service-Session-Token": session}
        async with http.post(f"{url}/bp/ai/conversation", data=body, headers=headers) as response:
            turn = await response.text()
        found["CONVERSATION_ID"] = re.findall(r'"conversation_id":"([^"]+)"', turn)[-1]
    return found


async def _call(curl: str, variables: dict[str, str]) -> tuple[int, str]:
    command = curl.replace("curl ", f"curl -sS --fail --max-time {_CURL_S} ", 1)
    process = await asyncio.create_subprocess_exec(
        "env",
        *(f"{name}={value}" for name, value in variables.items()),
        "sh",
        "-c",
        command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


if __name__ == "__main__":
    responses = asyncio.run(record(sys.argv[1].rstrip("/")))
    RECORDED.write_bytes(orjson.dumps(responses, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
