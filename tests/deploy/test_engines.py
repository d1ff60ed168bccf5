"""`make run` keeps the process of the local engines running."""

import os
from pathlib import Path

import psutil
from aiohttp import ClientError, ClientSession

from deploy.engines import local_engines
from tests.waiting import until


def _engines() -> list[psutil.Process]:
    return [child for child in psutil.Process(os.getpid()).children() if "vendors.local" in child.cmdline()]


async def _healthy(http: ClientSession, url: str) -> None:
    async def answers() -> bool:
        try:
            async with http.get(url.replace("/v1", "/health")) as answer:
                assert answer.status == 200
                return True
        except ClientError:
            return False

    await until(answers, every_s=0.05)


async def test_engines_are_restarted_on_their_port_and_end_with_the_server(tmp_path: Path):
    before = set(_engines())
    async with local_engines(tmp_path / "log") as engines, ClientSession() as http:
        await _healthy(http, engines.url)
        (first,) = set(_engines()) - before
        first.kill()
        await _healthy(http, engines.url)
        (second,) = set(_engines()) - before
        assert second.pid != first.pid
    assert not psutil.pid_exists(second.pid)
