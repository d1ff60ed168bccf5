"""Errors about something that does not exist repeat the name that the request gives it."""

from app.accounts.tokens import make_server_token
from tests.servers import ADMIN_TOKEN, SERVER_KEY, Server

NOBODY = "0" * 32
LONG = "x" * 100
CONVERSATION = "item_not_found: conversation_id names no conversation of this user: "
STREAM = "item_not_found: stream_id names no stream of this user that can still be read: "
USER = "user_id names no user: "


async def test_a_name_that_does_not_exist_is_repeated_up_to_64_characters(server: Server) -> None:
    _, token = await server.login()
    session = {"X-Service-Session-Token": token}
    admin = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    app_server = {
        "X-Service-Auth-Token": make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    }
    query = "/bp/ai/conversation/query?conversation_id="
    configs = "/admin/api/configs"
    cut = LONG[:64]
    for method, path, headers, message in (
        ("GET", "/nothing", {}, "not_found: there is no such path: /nothing"),
        ("GET", "/healthz", {"X-Service-App-Id": LONG}, f"app_not_found: X-Service-App-Id names no app: {cut}"),
        ("GET", "/healthz", {"X-Service-App-Id": ""}, "app_not_found: X-Service-App-Id names no app: "),
        ("GET", "/files/none.mp3", {}, "item_not_found: none.mp3 does not exist, or its link has expired"),
        ("GET", f"/admin/api/streams?app={LONG}", admin, f"item_not_found: app {cut} does not exist"),
        ("GET", f"{configs}?kind={LONG}", admin, f"item_not_found: kind {cut} does not exist"),
        ("GET", f"{configs}/default/speech/{LONG}", admin, f"item_not_found: speech {cut} does not exist"),
        ("GET", f"{query}{NOBODY}", session, CONVERSATION + NOBODY),
        ("GET", f"{query}elsewhere", session, f"{CONVERSATION}elsewhere"),
        ("DELETE", f"/bp/ai/conversation/{LONG}", session, CONVERSATION + cut),
        ("GET", f"/bp/ai/stream/{NOBODY}", session, STREAM + NOBODY),
        ("DELETE", f"/bp/ai/stream/{LONG}", session, STREAM + cut),
        ("GET", f"/bp/server/user/{NOBODY}", app_server, f"not_found: {USER}{NOBODY}"),
        ("GET", f"/bp/server/user/{LONG}/ai/conversations", app_server, f"item_not_found: {USER}{cut}"),
    ):
        async with server.http.request(method, server.url + path, headers=headers) as response:
            assert (await response.json())["error"]["message"] == message
