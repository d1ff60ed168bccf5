"""The text bot: an app server that a messaging platform calls."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.clients.examples.projects import Project, clone, copied
from tests.clients.examples.telegram import TOKEN, Telegram, running_telegram
from tests.peers.vendor import Vendor
from tests.running.ports import free_ports
from tests.running.servers import SERVER_KEY, Server
from tests.waiting import until

__all__ = ["clone"]

CHAT = {"id": 77, "type": "private"}
NUMBERS = count(1)


@pytest.fixture
async def telegram() -> AsyncIterator[Telegram]:
    async with running_telegram() as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, clone: Path, server: Server, telegram: Telegram) -> Project:
    (port,) = free_ports(1)
    env = {
        "URL": server.url,
        "SERVER_KEY": SERVER_KEY,
        "TELEGRAM_URL": telegram.url,
        "TELEGRAM_TOKEN": TOKEN,
        "TELEGRAM_SECRET": "a secret of the bot",
        "EDIT_SECONDS": "0",
        "BOT_PORT": str(port),
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
    }
    return copied("text-bot", tmp_path, clone, **env)


def update(text: str | None) -> dict[str, Any]:
    number = next(NUMBERS)
    message = {"message_id": number, "chat": CHAT, "date": 1, **({} if text is None else {"text": text})}
    return {"update_id": number, "message": message}


async def test_a_bot_answers_each_update_once_in_a_message_that_grows(
    project: Project, telegram: Telegram, vendor: Vendor, strategy
) -> None:
    install, start, set_webhook = project.commands
    await project.run(install)
    for missing in ("SERVER_KEY", "TELEGRAM_TOKEN", "TELEGRAM_SECRET"):
        careless = replace(project, env=project.env | {missing: ""})
        async with careless.running(start) as refused:
            await refused.says(f"These environment variables are not set: {missing}\n")
            assert (await refused.process.wait(), refused.output.count(b"\n")) == (1, 1)
    await strategy("scripted", "slow:Once upon a time")
    async with project.running(start) as bot:
        await bot.says("Running on")
        assert '"ok": true' in await project.run(set_webhook)
        assert await telegram.post(update("/start"), **{"X-Telegram-Bot-Api-Secret-Token": "another"}) == 403
        await telegram.post(update("/start"))
        await until(lambda: telegram.last().startswith("Hello!"))
        await telegram.post(update(None))
        await until(lambda: telegram.last() == "I can only read text.")

        question = update("Tell me a story")
        telegram.refusals = 1
        assert await telegram.post(question) == 200
        await until(lambda: telegram.last() == "Once upon a time")
        assert await telegram.post(question) == 200
        await bot.kill()
    vendor.release.set()
    calm = replace(project, env=project.env | {"EDIT_SECONDS": "3600"})
    async with calm.running(start) as bot:  # The answer that was cut off is completed, and not made again.
        await bot.says("Running on")
        await until(lambda: telegram.shown.get(4, [""])[-1] == "Once upon a time")
        await strategy("scripted", "say:The end")
        await telegram.post(update("And then?"))
        await until(lambda: telegram.last() == "The end")
        assert said(vendor) == ["Tell me a story", "Once upon a time", "And then?"]
        await telegram.post(update("/reset"))
        await telegram.post(update("Who are you?"))
        await until(lambda: telegram.last() == "The end" and len(telegram.shown) == 7)
        assert said(vendor) == ["Who are you?"]
        assert len(vendor.calls) == 3

        await strategy("scripted", "paced:100")
        await telegram.post(update("Go on"))
        await until(lambda: telegram.last() == " ".join(["word"] * 100))
        assert len(telegram.shown[8]) <= 2, "a message is not edited more often than is permitted"

        await strategy("scripted", "error:Once upon a time")
        await telegram.post(update("Tell me a story"))
        await until(lambda: telegram.last().endswith("try again in a minute."))
        assert telegram.last().startswith("Once upon a time\n\nI cannot answer")


def said(vendor: Vendor) -> list[str]:
    """Return the messages of the user and the assistant in the last call."""
    return [message["content"] for message in vendor.calls[-1]["messages"] if message["role"] != "system"]
