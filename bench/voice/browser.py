"""Recordings as a page hears them: played to the microphone of Chromium, and recorded with the client."""

import os
import shutil
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from aiohttp import web
from playwright.async_api import async_playwright

from app.pages.assets import STATIC
from bench.turns.recordings import Recording
from streams.audio.audio import wav_header
from streams.audio.turn_end import SAMPLE_RATE

_SAMPLE_BYTES = 2
_SILENCE_S = 1
_MARK_S = 0.1
_LOUD = 6_000
"""A sample of this level belongs to the mark, which precedes the first recording."""
_EXTRA_S = 2
_RECORD = """async (seconds) => {
    const { Microphone } = await import("/client/parley-client.js");
    const microphone = new Microphone();
    await microphone.open();
    const recording = microphone.record({ maxSeconds: seconds });
    await recording.ended;
    let letters = "";
    for (const byte of recording.bytes) letters += String.fromCharCode(byte);
    return btoa(letters);
}"""


async def as_heard_by_a_page(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings as Chromium delivers them, with its noise suppression and its gain control.

    They are played one after the other, which takes as long as they are.
    """
    silence = bytes(_SAMPLE_BYTES * SAMPLE_RATE * _SILENCE_S)
    at = np.arange(int(SAMPLE_RATE * _MARK_S)) / SAMPLE_RATE
    mark = (16_000 * np.sin(2 * np.pi * 700 * at)).astype("<i2").tobytes()
    lead = silence + mark + silence
    pcm = await _recorded(lead + b"".join(recording.pcm for recording in recordings))
    loud = np.flatnonzero(np.abs(np.frombuffer(pcm, "<i2").astype(int)) > _LOUD)
    begin = _SAMPLE_BYTES * int(loud[0]) + len(mark) + len(silence)
    heard = []
    for recording in recordings:
        heard.append(replace(recording, pcm=pcm[begin : begin + len(recording.pcm)]))
        begin += len(recording.pcm)
    return heard


async def _recorded(pcm: bytes) -> bytes:
    seconds = len(pcm) / _SAMPLE_BYTES / SAMPLE_RATE
    as_root = ["--no-sandbox"] if sys.platform == "linux" and os.geteuid() == 0 else []
    with TemporaryDirectory() as folder:
        played = Path(folder) / "played.wav"
        played.write_bytes(wav_header(SAMPLE_RATE, data_bytes=len(pcm)) + pcm)
        async with _site() as url, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"),
                args=[
                    *as_root,
                    "--use-fake-device-for-media-stream",
                    f"--use-file-for-fake-audio-capture={played}%noloop",
                ],
            )
            page = await (await browser.new_context(permissions=["microphone"])).new_page()
            await page.goto(url)
            recorded = await page.evaluate(_RECORD, seconds + _EXTRA_S)
            await browser.close()
    return b64decode(recorded)


@asynccontextmanager
async def _site() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/", _empty_page)
    app.router.add_static("/client", STATIC / "client")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def _empty_page(request: web.Request) -> web.Response:
    return web.Response(text="<!doctype html><title>Recording</title>", content_type="text/html")
