"""Errors about something that does not exist repeat the name that the request gives it."""

from app.http.callers.tokens import make_server_token
from tests.running.servers import ADMIN_TOKEN, SERVER_KEY, Server

NOBODY = "0" * 32
LONG = "x" * 100


async def test_a_name_that_does_not_exist_is_repeated_up_to_64_characters(server: Server) -> None:
    _, token = await server.login()
    session = {"X-Service-Session-Token": token}
    admin = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    app_server = {
        "X-Service-Auth-Token": make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    }
    query = "/bp/ai/conversation/query?conversation_id="
    configs = "/admin/api/configs"
    header = "X-Service-App-Id"
    cut, gone = LONG[:64], "does not exist, or can no longer be read"
    for method, path, headers, message in (
        ("GET", "/nothing", {}, "not_found: there is no such path: /nothing"),
        ("GET", "/healthz", {"X-Service-App-Id": LONG}, f"app_not_found: {header}: app {cut} does not exist"),
        ("GET", "/healthz", {"X-Service-App-Id": ""}, f'app_not_found: {header}: app "" does not exist'),
        ("GET", "/files/none.mp3", {}, "item_not_found: file none.mp3 does not exist, or its link has expired"),
        ("GET", f"/admin/api/streams?app={LONG}", admin, f"item_not_found: app {cut} does not exist"),
        ("GET", f"{configs}?kind={LONG}", admin, f"item_not_found: kind {cut} does not exist"),
        ("GET", f"{configs}/default/speech/{LONG}", admin, f"item_not_found: speech {cut} does not exist"),
        ("GET", f"{query}{NOBODY}", session, f"item_not_found: conversation {NOBODY} does not exist"),
        ("GET", f"{query}elsewhere", session, "item_not_found: conversation elsewhere does not exist"),
        ("DELETE", f"/bp/ai/conversation/{LONG}", session, f"item_not_found: conversation {cut} does not exist"),
        ("GET", f"/bp/ai/stream/{NOBODY}", session, f"item_not_found: stream {NOBODY} {gone}"),
        ("DELETE", f"/bp/ai/stream/{LONG}", session, f"item_not_found: stream {cut} {gone}"),
        ("GET", f"/bp/server/user/{NOBODY}", app_server, f"not_found: user {NOBODY} does not exist"),
        (
            "GET",
            f"/bp/server/user/{LONG}/ai/conversations",
            app_server,
            f"item_not_found: user {cut} does not exist",
        ),
    ):
        async with server.http.request(method, server.url + path, headers=headers) as response:
            assert (await response.json())["error"]["message"] == message
