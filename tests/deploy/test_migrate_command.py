import asyncio

import asyncpg
import pytest

from app.__main__ import main
from app.settings import Settings


def test_migrate_tells_what_it_applied_and_then_that_nothing_is_left(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    async def empty() -> None:
        conn = await asyncpg.connect(settings.database_url)
        await conn.execute("drop schema public cascade; create schema public")
        await conn.close()

    asyncio.run(empty())
    for name, value in {
        "PARLEY_ENV": "development",
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "PARLEY_MASTER_KEY": settings.master_key.get_secret_value(),
        "PARLEY_ADMIN_TOKEN": settings.admin_token.get_secret_value(),
    }.items():
        monkeypatch.setenv(name, value)
    assert main(["migrate"]) == 0
    assert "applied 0001_configs.sql\n" in capsys.readouterr().out
    assert main(["migrate"]) == 0
    assert capsys.readouterr().out == "nothing to apply\n"
