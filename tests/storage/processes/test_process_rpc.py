"""Requests between processes."""

from pathlib import Path

import pytest

from app.settings import Settings
from storage.processes.process_rpc import Message, ProcessRpc, listening
from storage.valkey.opening import open_valkey
from storage.valkey.subscriptions import subscribe
from streams.tasks import background
from tests.app.valkey_proxy import valkey_proxy_to
from tests.waiting import until

pytestmark = pytest.mark.one_valkey


async def test_a_request_is_sent_again_if_its_response_was_lost_with_a_subscription(
    settings: Settings, tmp_path: Path
) -> None:
    received: list[Message] = []
    published: list[bytes] = []

    async def respond(request: Message) -> Message:
        received.append(request)
        if len(received) == 1:
            await proxy.stop()
        return {"number": len(received)}

    async with (
        valkey_proxy_to(settings.redis_url, tmp_path / "v.sock") as proxy,
        open_valkey(proxy.url, prefix=settings.redis_prefix) as far,
        open_valkey(settings.redis_url, prefix=settings.redis_prefix) as near,
        listening(caller := ProcessRpc(far, "caller"), respond),
        listening(ProcessRpc(near, "responder"), respond),
        background(subscribe(near, "process:caller", published.append)),
        background(caller.call("responder", {"op": "test"}, within_s=30)) as call,
    ):
        await until(lambda: published)
        assert not call.done()
        await proxy.start()
        response = await call
    assert response is not None
    assert response["number"] == 2
    assert received[0] == received[1]
