"""A wrong method gets 405 with `Allow`, and a path that no row has gets 404."""

import re

from app.routes import public_routes
from tests.running.servers import Server

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
USER = "/bp/server/user"


async def refusal(server: Server, method: str, path: str) -> tuple[int, str | None]:
    """Return the status and `Allow` of the response to a request without any header."""
    async with server.http.request(method, server.url + path) as response:
        return response.status, response.headers.get("Allow")


async def test_every_path_refuses_all_methods_but_its_own_and_names_those(guest: Server) -> None:
    methods: dict[str, set[str]] = {}
    for row in public_routes(guest.services.settings):
        for path in row.paths:
            methods.setdefault(re.sub(r"\{\w+(:[^{}]*)?\}", "none", path), set()).add(row.method)
    assert {
        f"{USER}/login",
        f"{USER}/logout",
        f"{USER}/signup",
        f"{USER}/none/ai/conversation/query",
    } <= methods.keys()

    for path, allowed in methods.items():
        for method in set(METHODS) - allowed:
            refused = 405, ",".join(sorted(allowed))
            assert await refusal(guest, method, path) == refused, (method, path)
            other = path.rstrip("/") if path.endswith("/") else f"{path}/"
            assert path == "/" or await refusal(guest, method, other) == refused, (method, path)


async def test_words_of_the_interface_are_no_users(guest: Server) -> None:
    for method in ("GET", "POST"):
        for word in ("signup", "detect"):
            assert await refusal(guest, method, f"{USER}/{word}/ai/conversations") == (404, None)
    assert await refusal(guest, "GET", f"{USER}/detect") == (405, "POST")
    assert await refusal(guest, "GET", f"{USER}/login-of-a-user") == (401, None)
    assert await refusal(guest, "GET", f"{USER}/none/nothing") == (404, None)
    assert await refusal(guest, "GET", "/bp/server/nothing") == (404, None)
