"""Headers that cannot be decoded as text."""

import asyncio

import pytest
from yarl import URL

from storage.operators.audit import COMMAND
from streams.wire.codec import loads
from tests.running.servers import Server


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize(
    ("request_line", "header", "error_type"),
    [
        ("GET /bp/user/me", "X-Service-Session-Token", "account.invalid_session"),
        ("POST /bp/user/login", "X-Service-Sign", "auth_failed"),
        ("POST /bp/server/user/login", "X-Service-Auth-Token", "auth_failed"),
        ("GET /admin/api/kinds", "Authorization", "auth_failed"),
        ("POST /bp/user/login", "X-Service-App-Id", "app_not_found"),
    ],
)
async def test_undecodable_headers_are_refused_like_wrong_ones(server, request_line, header, error_type):
    value = {"sign_keys": [{"id": "k", "key": "k" * 32}]}
    await server.services.configs.put("default", "auth", "default", value, author="tests", origin=COMMAND)
    url = URL(server.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    lines = [f"{request_line} HTTP/1.1", "Host: x", "Content-Length: 0", "Connection: close", f"{header}: "]
    writer.write("\r\n".join(lines).encode() + b"Bearer \xff\xfe\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert loads(answer.partition(b"\r\n\r\n")[2])["error"]["error_type"] == error_type


async def test_an_undecodable_user_agent_is_no_obstacle_to_a_login(server):
    url, body = URL(server.url), b'{"device":{"id":"a"}}'
    reader, writer = await asyncio.open_connection(url.host, url.port)
    lines = ["POST /bp/user/login HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", "Connection: close"]
    writer.write("\r\n".join([*lines, "User-Agent: "]).encode() + b"App \xff\r\n\r\n" + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    session = loads(answer.partition(b"\r\n\r\n")[2])["user"]["session"]
    headers = {"X-Service-Session-Token": session["session_token"]}
    async with server.http.get(f"{server.url}/bp/user/me/sessions", headers=headers) as response:
        assert (await response.json())["sessions"][0]["user_agent"] == "App ?"
