"""Operators see the streams of other processes, also while one of these hangs."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientSession

from app.settings import Settings
from tests.app.ai.conftest import Talk, strategy, talk, vendor
from tests.app.operator_calls import call
from tests.deploy.serving import serving
from tests.peers.sse_client import events
from tests.peers.vendor import Vendor
from tests.running.servers import Server, listening_socket
from tests.running.suspended import suspended

__all__ = ["strategy", "talk", "vendor"]

pytestmark = pytest.mark.timeout(120)


async def test_a_process_that_hangs_is_named_in_time_and_answers_again_afterwards(
    settings: Settings, server: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    with listening_socket() as held:
        port = held.getsockname()[1]
    at = replace(settings, port=port, public_url=f"http://127.0.0.1:{port}")
    async with serving(at, PARLEY_PROCESSES="1") as process, ClientSession() as http:
        await process.event("server.listening")
        other = Talk(Server(at.public_url, server.services, http), talk.uid, talk.token)
        async with other.say("story", "slow") as response:
            seen = events(response)
            while (await anext(seen)).name != "assistant_output_chunk":
                pass
            stream_id = response.headers["X-Service-Stream-Id"]
            status, answer = await call(server, "GET", "/admin/api/streams")
            [row] = answer["streams"]
            assert (status, row["stream_id"], row["strategy"], answer["silent"]) == (200, stream_id, "slow", [])
            assert row["process"] != server.services.heartbeat.process
            with suspended(process.process.pid):
                async with asyncio.timeout(15):
                    status, answer = await call(server, "GET", "/admin/api/streams")
                assert (status, answer["streams"], answer["silent"]) == (200, [], [row["process"]])
            status, answer = await call(server, "GET", "/admin/api/streams")
            assert ([one["stream_id"] for one in answer["streams"]], answer["silent"]) == ([stream_id], [])
            path = f"/admin/api/users/default/{talk.uid}/streams/{stream_id}/cancel"
            assert (await call(server, "POST", path, {}, reason="It loops"))[0] == 200
            assert [event.name async for event in seen][-1] == "end"
