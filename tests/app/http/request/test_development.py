"""The endpoints of development servers are for pages of the server itself: no other website can read them."""

import pytest

from tests.running.servers import Server

PATHS = ["/dev/mail", "/dev/sms", "/dev/clock", "/dev/nothing"]
OTHER = "https://evil.example"


@pytest.mark.parametrize("path", PATHS)
async def test_pages_of_other_origins_cannot_read_them(server: Server, path: str) -> None:
    headers = {"Origin": OTHER, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "accept"}
    for method in ("GET", "OPTIONS"):
        for asked, allowed in ((path, False), ("/bp/user/me", True)):
            async with server.http.request(method, server.url + asked, headers=headers) as response:
                allows = {name for name in response.headers if name.startswith("Access-Control-")}
                assert bool(allows) is allowed, (method, asked)


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_that_somebody_else_can_lead_to_the_server_does_not_reach_them(
    server: Server, path: str
) -> None:
    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[::1"):
        async with server.http.get(server.url + path, headers={"Host": host}) as response:
            assert response.status == 421, host
            assert (await response.json())["error"]["error_type"] == "invalid_parameter"
        async with server.http.get(f"{server.url}/healthz", headers={"Host": host}) as response:
            assert response.status == 200
    for host in (
        "localhost:8080",
        "localhost.",
        "parley.localhost",
        "127.0.0.1:8080",
        "[::1]:80",
        "10.0.0.7",
        "parley",
    ):
        async with server.http.get(server.url + path, headers={"Host": host}) as response:
            assert response.status != 421, host
