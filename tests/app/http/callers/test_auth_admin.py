"""The operator's bearer token over real HTTP."""

import pytest

from tests.running.servers import ADMIN_TOKEN, Server


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def call(server, authorization: str | None) -> tuple[int, str | None]:
    headers = {} if authorization is None else {"Authorization": authorization}
    async with server.http.get(f"{server.url}/admin/api/kinds", headers=headers) as response:
        reply = await response.json()
        return response.status, reply["error"]["message"] if response.status != 200 else None


async def test_the_operator_token_is_accepted(server):
    for scheme in ("Bearer", "bearer"):
        assert await call(server, f"{scheme} {ADMIN_TOKEN}") == (200, None)


async def test_other_callers_learn_only_which_header_is_wrong(server):
    for authorization in (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {ADMIN_TOKEN}x",
        f"Bearer {ADMIN_TOKEN[:-1]}",
        f"Basic {ADMIN_TOKEN}",
        ADMIN_TOKEN,
        "Bearer é",
    ):
        answer = await call(server, authorization)
        assert answer == (401, "auth_failed: Authorization is missing or wrong"), authorization
