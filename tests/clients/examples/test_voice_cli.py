"""The client for voice on the command line. Programs that stand for the hardware record and play."""

import wave
from dataclasses import replace
from pathlib import Path

import pytest

from parley_client import FileStore, ParleyClient
from streams.audio.durations import duration_s
from tests.app.ai.conftest import sandbox
from tests.app.ai.sandbox_accounts import account, chat
from tests.app.ai.speech.ears import ears
from tests.clients.cases import SIGN_KEY
from tests.clients.conftest import configure
from tests.clients.examples.projects import Project, clone, copied
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import tone
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

__all__ = ["clone", "sandbox"]

HEARD = "What is the capital of Japan?"
SENTENCE = "The first sentence is here. "
LONG = SENTENCE * 40
PLAYER = """#!/bin/sh
cat >/dev/null &
sleep 1
touch "$0.played"
exec sleep 60
"""
"""It plays the first second of a minute, and says so."""
RECORDER = """#!/bin/sh
cat question.pcm
exec sleep 30
"""


@pytest.fixture
async def project(tmp_path: Path, clone: Path, server: Server, sandbox: Running) -> Project:
    """The example, and a strategy `local` that hears, answers and speaks."""
    await ears(server, sandbox, "local", key=key_of(text=HEARD))
    await account(server, sandbox, "voice", "vendor_b_audio")
    await configure(server, "speech", {"account": "voice", "model": "tts-1", "voice": "alloy"}, name="voice")
    await answers(server, sandbox, "It is Tokyo.")
    project = copied("voice-cli", tmp_path, clone, URL=server.url, APP_SIGN_KEY=SIGN_KEY)
    (project.folder / "question.pcm").write_bytes(tone(1.0))
    with wave.open(str(project.folder / "question.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(tone(1.0))
    for name, script in (("ffplay", PLAYER), ("arecord", RECORDER)):
        (project.folder / name).write_text(script)
        (project.folder / name).chmod(0o755)
    return project


async def answers(server: Server, sandbox: Running, text: str) -> None:
    await chat(server, sandbox, "local", "vendor_b_llm", key_of(text=text), recognition="local", speech="voice")


async def test_a_question_is_spoken_answered_and_interrupted(
    project: Project, server: Server, sandbox: Running
) -> None:
    install, ask, resume = project.commands
    await project.run(install)
    faults = {
        f"{ask} --strategy nobody": "item_not_found: ",
        ask.replace("question.wav", "nope.wav"): "No such file or directory: 'nope.wav'\n",
        ask.replace("--save answer", "--save question.wav"): "File exists: 'question.wav'\n",
    }
    for command, sentence in faults.items():
        async with project.running(command) as failing:
            await failing.says(sentence)
            assert (await failing.process.wait(), b"Traceback" in failing.output) == (1, False)
    printed = await project.run(ask)
    assert f"You: {HEARD}\nAnswer: It is Tokyo." in printed
    audio = (project.folder / "answer/answer-0.mp3").read_bytes()
    assert (duration_s(audio, "audio/mpeg") or 0) > 0.5

    await answers(server, sandbox, LONG)
    microphone = replace(project, env=project.env | {"PATH": f"{project.folder}:/usr/bin:/bin"})
    async with microphone.running(resume) as voice:
        await voice.says("Press Enter and speak")
        await voice.enter("\n")
        await voice.says("Press Enter when you have finished")
        await voice.enter("\n")
        await voice.says(SENTENCE * 20)
        await until((project.folder / "ffplay.played").exists)
        voice.interrupt()
        await voice.says("[interrupted]")
        assert voice.process.stdin is not None
        voice.process.stdin.close()  # Ctrl-D
        assert voice.output.decode().count(HEARD) == 1
        await voice.ends()

    [session] = (project.folder / ".parley-voice").glob("*/session.json")
    store = FileStore(session)
    async with ParleyClient(server.url, sign_key=SIGN_KEY, session=store.load()) as client:
        (conversation,) = (await client.conversations())["conversations"]
        interrupted, first = (await client.history(conversation["conversation_id"]))["conversation_records"]
    assert (first["status"], interrupted["status"]) == ("complete", "interrupted")
    (kept,) = [
        message["content"][0]["text"] for message in interrupted["content"] if message["role"] == "assistant"
    ]
    assert LONG.startswith(kept)
    assert 0 < len(kept) < len(SENTENCE * 20)
