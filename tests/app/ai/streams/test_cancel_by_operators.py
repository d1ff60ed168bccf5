"""An operator cancels a running stream with a reason."""

import asyncio

from tests.app.ai.conftest import Talk
from tests.app.operator_calls import call
from tests.running.servers import Server


async def test_an_operator_cancels_a_stream_and_its_answer_so_far_is_kept(
    talk: Talk, server: Server, strategy
) -> None:
    await strategy("endless", "hang")
    async with talk.post("/bp/ai/conversation", data=talk.params("endless") + b"Hello") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        path = f"/admin/api/users/default/{talk.uid}/streams/{stream_id}/cancel"
        status, answer = await call(server, "POST", path, {}, reason="")
        assert (status, answer["error"]["message"]) == (400, "invalid_parameter: X-Parley-Reason is required")
        assert await call(server, "POST", path, {}, reason="abuse") == (200, {})
        async with asyncio.timeout(10):
            assert b"cancel" in await response.read()
    _, audit = await call(server, "GET", f"/admin/api/audit?action=stream.cancel&name={talk.uid}")
    assert [(row["reason"], row["after"]) for row in audit["changes"]] == [("abuse", {"stream_id": stream_id})]
    for ended in ("0" * 32, stream_id):
        status, _ = await call(server, "POST", path.replace(stream_id, ended), {}, reason="again")
        assert status == 404
    _, audit = await call(server, "GET", f"/admin/api/audit?action=stream.cancel&name={talk.uid}")
    assert len(audit["changes"]) == 1, "what did not run was not cancelled"
