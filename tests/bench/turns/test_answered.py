"""`bench.turns --url` speaks until the server hears the end, and counts from the last word."""

import asyncio

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

pytest.importorskip("numpy")
pytest.importorskip("soxr")

from bench.turns.answered import Answer, Speaker, answers_table
from bench.turns.recordings import Recording
from streams.audio.turn_end import SAMPLE_RATE

SILENCE = bytes(2 * SAMPLE_RATE * 3)


async def test_it_sends_at_the_speed_of_speech_and_stops_at_the_end_that_the_server_hears() -> None:
    received: list[int] = []
    loop = asyncio.get_running_loop()

    async def converse(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        began, size = loop.time(), 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
            if loop.time() - began > 0.2:
                break
        await response.write(b"event: end_of_speech\ndata: {}\n\n")
        async for chunk in request.content.iter_any():
            size += len(chunk)
        received.append(size)
        await response.write(b"event: user_input\ndata: {}\n\nevent: end\ndata: {}\n\n")
        return response

    app = web.Application()
    app.router.add_post("/bp/ai/conversation", converse)
    async with TestServer(app) as server, ClientSession() as http:
        url = str(server.make_url("")).rstrip("/")
        recording = Recording("silence", SILENCE, 0, 100.0)
        answer = await Speaker(http, url, "token").ask(recording, strategy="one", silence_ms=300)
    assert answer.outcome == "end"
    assert 0 < answer.after_ms["end_of_speech"] <= answer.after_ms["user_input"]
    assert received[0] < len(SILENCE)  # The rest was not sent.


async def test_the_reason_of_a_failed_turn_is_kept_and_its_times_are_not_counted() -> None:
    failed, answered = Answer(), Answer()
    for line in (
        "event: end_of_speech",
        'data: {"at_ms": 1}',
        "event: error",
        'data: {"error": {"message": "x: y"}}',
    ):
        failed.read(line, 900)
    for line, at in (("event: end_of_speech", 800), ("event: end", 1000)):
        answered.read(line, at)
    assert failed.outcome == "x: y"
    assert answers_table([("local", [failed, answered])]).splitlines()[-1] == (
        "| `local` | 1 of 2 | 800 / 800 | - | - | - |"
    )
