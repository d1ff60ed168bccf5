"""`python -m vendors.local` as a process."""

import asyncio
import signal
import sys

from aiohttp import ClientSession

from streams.wire.codec import dumps, loads


async def test_a_process_announces_its_address_and_exits_normally() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "vendors.local", "--pace-ms", "0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            said = loads(await process.stdout.readline())
            assert said["listening"].startswith("http://127.0.0.1:")
            assert set(said["engines"]) == {"scripted", "smollm2", "whisper", "espeak", "piper", "pocketsphinx"}
            body = dumps({"model": "scripted", "messages": [{"role": "user", "content": "hello"}]})
            async with (
                ClientSession() as http,
                http.post(f"{said['listening']}/chat/completions", data=body) as answer,
            ):
                assert answer.status == 200
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
            assert await process.stdout.read() == b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
