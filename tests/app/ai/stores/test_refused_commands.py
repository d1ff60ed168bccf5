"""An error of a script is no outage: the stream is refused, and the error is logged and counted."""

from storage.valkey.refused import REFUSED
from tests.app.ai.conftest import Talk
from tests.peers.vendor import Vendor
from tests.running.servers import Server


async def test_a_stream_whose_admission_valkey_refuses_does_not_start(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("one", "say:There is")
    valkey = server.services.valkey
    await valkey.client.set(valkey.stream_key("default", talk.uid, "streams"), b"no sorted set")
    before = REFUSED.counts().get(("WRONGTYPE",), 0)
    body = talk.params("one") + b"Hello"
    async with talk.post("/bp/ai/conversation", data=body, headers={"Idempotency-Key": "77aa"}) as response:
        error = (await response.json())["error"]
        assert (response.status, error["error_type"]) == (500, "redis_service")
        assert error["message"] == "redis_service: Valkey refused a command"
    assert vendor.calls == []
    assert REFUSED.counts()[("WRONGTYPE",)] > before
