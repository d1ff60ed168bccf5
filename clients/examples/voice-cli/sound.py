"""The microphone and the loudspeaker of this machine, by the programs that are installed, and audio in files."""

import asyncio
import shutil
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_RECORDERS = (
    ["arecord", "-q", "-t", "raw", "-f", "S16_LE", "-r", "16000", "-c", "1"],
    ["rec", "-q", "-t", "raw", "-e", "signed", "-b", "16", "-r", "16000", "-c", "1", "-"],
)
_PLAYERS = (
    ["ffplay", "-nodisp", "-autoexit", "-loglevel", "quiet", "-i", "-"],
    ["play", "-q", "-t", "mp3", "-"],
    ["mpg123", "-q", "-"],
)


def recorder() -> list[str] | None:
    """Return a program that writes 16 kHz mono 16-bit PCM of the microphone to its output."""
    return next((command for command in _RECORDERS if shutil.which(command[0])), None)


def player() -> list[str] | None:
    """Return a program that plays the file on its input."""
    return next((command for command in _PLAYERS if shutil.which(command[0])), None)


async def record(command: list[str], until: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield the sound of the microphone, until the event is set."""
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, start_new_session=True)
    assert process.stdout is not None

    async def stop() -> None:
        await until.wait()
        process.terminate()

    stopping = asyncio.create_task(stop())
    try:
        while piece := await process.stdout.read(4096):
            yield piece
    finally:
        stopping.cancel()
        _kill(process)


class Output(Protocol):
    """Where the audio of an answer goes: one file for each index, in pieces."""

    def push(self, index: int, audio: bytes) -> None: ...

    def restart(self, from_index: int) -> None:
        """Drop the audio from this index on."""

    async def finish(self) -> None:
        """Wait until all audio is played or written."""

    def stop(self) -> int | None:
        """Stop at once. Return the milliseconds that were heard, if anybody listens."""


class Player:
    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._changed = asyncio.Event()
        self._complete = False
        self._process: Process | None = None
        self._heard_s = 0.0
        self._since: float | None = None
        self._playing = asyncio.create_task(self._play())

    def push(self, index: int, audio: bytes) -> None:
        self._waiting.append((index, audio))
        self._changed.set()

    def restart(self, from_index: int) -> None:
        self._waiting = deque(piece for piece in self._waiting if piece[0] < from_index)

    async def finish(self) -> None:
        self._complete = True
        self._changed.set()
        with suppress(asyncio.CancelledError):  # It was stopped.
            await self._playing

    def stop(self) -> int:
        self._count()
        self._playing.cancel()
        return round(self._heard_s * 1000)

    async def _play(self) -> None:
        current: int | None = None
        try:
            while (piece := await self._next()) is not None:
                index, audio = piece
                if index != current:
                    await self._play_to_the_end()
                    await self._open()
                    current = index
                assert self._process is not None
                assert self._process.stdin is not None
                with suppress(ConnectionError):  # The player has ended: it does not understand the format.
                    self._process.stdin.write(audio)
                    await self._process.stdin.drain()
            await self._play_to_the_end()
        finally:
            if self._process is not None:
                _kill(self._process)

    async def _next(self) -> tuple[int, bytes] | None:
        while not self._waiting and not self._complete:
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft() if self._waiting else None

    async def _open(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
        self._since = asyncio.get_running_loop().time()

    async def _play_to_the_end(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            await self._process.wait()
        self._count()

    def _count(self) -> None:
        if self._since is not None:
            self._heard_s += asyncio.get_running_loop().time() - self._since
            self._since = None


class Files:
    """Writes the files `answer-0.mp3`, `answer-1.mp3`… into a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._audio: dict[int, bytes] = {}

    def push(self, index: int, audio: bytes) -> None:
        self._audio[index] = self._audio.get(index, b"") + audio

    def restart(self, from_index: int) -> None:
        self._audio = {index: audio for index, audio in self._audio.items() if index < from_index}

    async def finish(self) -> None:
        for index, audio in self._audio.items():
            (self._folder / f"answer-{index}.mp3").write_bytes(audio)

    def stop(self) -> None:
        """Nobody has listened."""


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
