"""The command `python -m app migrate`."""

import asyncio
import socket

import asyncpg
import pytest

from app.__main__ import main
from app.settings import Settings
from tests.deploy.commands import command


async def test_error_of_serve_on_an_empty_database_names_the_migrate_command(
    settings: Settings, listener: socket.socket
):
    listener.close()
    conn = await asyncpg.connect(settings.database_url)
    await conn.execute("drop schema public cascade; create schema public")
    await conn.close()
    env = {
        "PARLEY_ENV": "development",
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "PARLEY_MASTER_KEY": settings.master_key.get_secret_value(),
        "PARLEY_ADMIN_TOKEN": settings.admin_token.get_secret_value(),
        "PARLEY_DATA_DIR": str(settings.data_dir),
        "PORT": str(settings.port),
    }
    async with command("app", "serve", **env) as serve:
        assert await serve.end() == 2
    assert serve.lines == ["parley: database: the database is not up to date: run `python -m app migrate`"]


async def test_migrate_prints_what_it_applied_and_then_that_nothing_is_left(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    conn = await asyncpg.connect(settings.database_url)
    await conn.execute("drop schema public cascade; create schema public")
    await conn.close()
    for name, value in {
        "PARLEY_ENV": "development",
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "PARLEY_MASTER_KEY": settings.master_key.get_secret_value(),
        "PARLEY_ADMIN_TOKEN": settings.admin_token.get_secret_value(),
    }.items():
        monkeypatch.setenv(name, value)
    assert await asyncio.to_thread(main, ["migrate"]) == 0
    assert "applied 0001_configs.sql\n" in capsys.readouterr().out
    assert await asyncio.to_thread(main, ["migrate"]) == 0
    assert capsys.readouterr().out == "nothing to apply\n"
