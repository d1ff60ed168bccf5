"""Talk to Parley on the command line, with a recording or the microphone. Ctrl-C interrupts the answer."""

import argparse
import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

from sound import Files, Output, Player, player, record, recorder

from parley_client import AudioChunk, FileStore, ParleyClient, ParleyError, Restart, TextChunk, Turn, UserInput

_URL = os.environ.get("URL", "http://127.0.0.1:8080")
_APP_ID = os.environ.get("APP_ID", "default")
_KEPT = Path(".parley-voice") / quote(f"{_APP_ID} at {_URL}", safe=" ")
"""The session of the user, and the id of the last conversation. No other server or app gets them."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "recording", nargs="?", type=Path, help="an audio file; without one, the microphone is used"
    )
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="save the answer instead of playing it")
    parser.add_argument("--resume", action="store_true", help="continue the last conversation")
    parser.add_argument("--strategy", default="local")
    parser.add_argument("--language", default="en-US")
    return parser.parse_args()


async def sign_in(client: ParleyClient) -> None:
    """Sign in with an id that is made once, and kept: whoever knows it can sign in as this user."""
    device = _KEPT / "device"
    if not device.exists():
        device.touch(mode=0o600)
        device.write_text(secrets.token_hex(16))
    await client.sign_in("device", {"id": device.read_text()})


async def main(options: argparse.Namespace) -> None:
    last = _KEPT / "conversation"
    conversation_id = last.read_text() if options.resume and last.exists() else None
    async with ParleyClient(
        _URL,
        _APP_ID,
        sign_key=os.environ.get("APP_SIGN_KEY"),
        store=FileStore(_KEPT / "session.json"),
        on_session_expired=sign_in,
    ) as client:
        if client.session is None:
            await sign_in(client)
        async for audio in questions(options.recording):
            turn = client.converse(
                strategies=[options.strategy],
                language_code=options.language,
                audio=audio,
                conversation_id=conversation_id,
            )
            await hear(turn, output_of(options.save))
            conversation_id = turn.conversation_id
            last.write_text(conversation_id or "")


async def questions(recording: Path | None) -> AsyncIterator[bytes | AsyncIterator[bytes]]:
    """Yield the file, or what the user says to the microphone from one Enter to the next, until Ctrl-D."""
    if recording is not None:
        yield await asyncio.to_thread(recording.read_bytes)
        return
    command = recorder()
    if command is None:
        raise SystemExit("There is no program that records: install arecord (package alsa-utils) or sox.")
    while await entered("\nPress Enter and speak, or Ctrl-D to end. "):
        spoken = asyncio.Event()
        stopping = asyncio.create_task(_set_when_entered(spoken))
        yield record(command, spoken)
        await stopping


async def entered(prompt: str) -> bytes:
    """Return the next line, which is empty at the end of the input."""
    print(prompt, end="", flush=True)
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return os.read(sys.stdin.fileno(), 1024)


async def _set_when_entered(spoken: asyncio.Event) -> None:
    await entered("Listening… Press Enter when you have finished. ")
    spoken.set()


def output_of(folder: Path | None) -> Output:
    if folder is not None:
        return Files(folder)
    command = player()
    if command is None:
        raise SystemExit("There is no program that plays: install ffmpeg, sox or mpg123, or use --save FOLDER.")
    return Player(command)


async def hear(turn: Turn, output: Output) -> None:
    """Print and play an answer. Ctrl-C interrupts it: the conversation then keeps what was heard."""
    interruption: list[asyncio.Task[None]] = []

    def interrupt() -> None:
        if not interruption:
            interruption.append(asyncio.create_task(turn.interrupt(heard_ms=output.stop())))

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        async for event in turn:
            match event:
                case UserInput(text=text):
                    print(f"\nYou: {text}\nAnswer: ", end="", flush=True)
                case TextChunk(text=text):
                    print(text, end="", flush=True)
                case AudioChunk(index=index, audio=audio):
                    output.push(index, audio)
                case Restart(from_index=first):
                    output.restart(first)
        await output.finish()
        await asyncio.gather(*interruption)
    finally:
        output.stop()
        loop.remove_signal_handler(signal.SIGINT)
    print(" [interrupted]" if interruption else "")


if __name__ == "__main__":
    _KEPT.parent.mkdir(mode=0o700, exist_ok=True)
    _KEPT.mkdir(mode=0o700, exist_ok=True)
    try:
        asyncio.run(main(arguments()))
    except OSError as error:
        raise SystemExit(str(error)) from None
    except ParleyError as error:
        raise SystemExit(f"\n{error}\n{'Please try again.' if error.retryable else ''}".rstrip()) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
