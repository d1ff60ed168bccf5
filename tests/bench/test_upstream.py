"""The vendor of load tests fails as configured."""

import asyncio
from collections import Counter

from aiohttp import ClientError, ClientSession, ClientTimeout

from tests.deploy.commands import command

CALLS = 60


async def test_calls_fail_by_status_reset_cut_or_silence():
    seen: Counter[str] = Counter()
    async with command("bench.upstream", "--failing", "1", "--seed", "1", "--hanging") as vendor:
        url = f"http://127.0.0.1:{int(await vendor.until(''))}/v1/audio/transcriptions"
        async with ClientSession(timeout=ClientTimeout(total=2)) as http:

            async def ask() -> None:
                try:
                    async with http.post(url, data=b"sound") as answer:
                        seen[f"status {answer.status}"] += 1
                        await answer.read()
                        seen["whole"] += answer.status == 200
                except TimeoutError:
                    seen["no answer"] += 1
                except ClientError as error:
                    seen[type(error).__name__] += 1

            await asyncio.gather(*(ask() for _ in range(CALLS)))

    assert seen["whole"] == 0
    assert {"status 500", "no answer", "ClientPayloadError"} <= set(seen)
    assert seen["ServerDisconnectedError"] + seen["ClientOSError"] > 0
