"""A Node program that uses the TypeScript client, step by step (`program.mjs`)."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streams.tasks import background
from streams.wire.codec import dumps, loads

SOURCE = Path(__file__).with_name("program.mjs")
TIMEOUT_S = 60
_LINE_BYTES = 1 << 24


class ClientError(Exception):
    """What the client has thrown: `error` has the fields of a `ParleyError`."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['name']}: {error['message']} {error.get('stack', '')}")
        self.error = error


@dataclass
class Reading:
    """A stream that the program reads."""

    events: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)
    result: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def until(self, name: str) -> dict[str, Any]:
        """Return the next event of this name."""
        async with asyncio.timeout(TIMEOUT_S):
            while (event := await self.events.get())["name"] != name:
                pass
        return event

    async def text(self, expected: str) -> None:
        """Wait for this text, in any pieces."""
        seen = ""
        while seen != expected:
            seen += (await self.until("assistant_output_chunk"))["content"]["text"]
            assert expected.startswith(seen)

    async def ended(self) -> Any:
        async with asyncio.timeout(TIMEOUT_S):
            return await self.result

    def received(self) -> list[dict[str, Any]]:
        """Return the events that were not read yet."""
        return [self.events.get_nowait() for _ in range(self.events.qsize())]

    def names(self) -> list[str]:
        """Return the names of the events that were not read yet."""
        return [event["name"] for event in self.received()]


@dataclass
class Program:
    process: asyncio.subprocess.Process
    _results: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    _readings: dict[str, Reading] = field(default_factory=dict)

    async def do(self, step: str, **given: Any) -> Any:
        """Do a step and return its result. Raises `ClientError`."""
        async with asyncio.timeout(TIMEOUT_S):
            return await self._begin(step, given)

    async def call(self, method: str, *args: Any, client: str = "user") -> Any:
        return await self.do("call", method=method, args=args, client=client)

    def read(self, *, name: str = "turn", **given: Any) -> Reading:
        """Begin to read a stream."""
        reading = self._readings[name] = Reading()
        reading.result = self._begin("read", {"name": name, **given})
        return reading

    def _begin(self, step: str, given: dict[str, Any]) -> asyncio.Future[Any]:
        step_id = len(self._results)
        result = self._results[step_id] = asyncio.get_running_loop().create_future()
        assert self.process.stdin is not None
        self.process.stdin.write(dumps({"id": step_id, "step": step, **given}) + b"\n")
        return result

    async def receive(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            said = loads(line)
            if "event" in said:
                self._readings[said["turn"]].events.put_nowait(said["event"])
            elif "error" in said:
                self._results[said["id"]].set_exception(ClientError(said["error"]))
            else:
                self._results[said["id"]].set_result(said["result"])
        for result in self._results.values():
            if not result.done():
                result.set_exception(AssertionError("the program has ended"))


def sent(data: bytes) -> dict[str, str]:
    """Return bytes as an argument of a step."""
    return {"bytes": b64encode(data).decode()}


@asynccontextmanager
async def running_program(source: Path = SOURCE) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        "node",
        source,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE_BYTES,
    )
    program = Program(process)
    try:
        async with background(program.receive()):
            yield program
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        for result in program._results.values():
            if result.done() and not result.cancelled():
                result.exception()  # It may not have been awaited by a test that has failed.
