"""`verify ledger` rebuilds every asset from the ledger, and finds whatever differs."""

import asyncpg
import pytest

from app.assets.verification import DIFFERENCES, verify_ledger
from storage.audit import COMMAND
from storage.jobs import VerifyLedger
from storage.ledger import find_differences
from tests.app.operator_calls import call
from tests.environment import core_packages
from tests.forks import run
from tests.servers import ADMIN_TOKEN, MASTER_KEY, Server


async def verified(server: Server) -> tuple[int, list[str]]:
    settings = server.services.settings
    env = {**core_packages(), "DATABASE_URL": settings.database_url, "PARLEY_DATA_DIR": str(settings.data_dir)}
    env |= {"REDIS_URL": settings.redis_url, "PARLEY_MASTER_KEY": MASTER_KEY, "PARLEY_ADMIN_TOKEN": ADMIN_TOKEN}
    code, out, err = await run("app", "verify", "ledger", env=env)
    assert err == ""
    return code, out.splitlines()


async def granted(server: Server) -> str:
    product = {"type": "consumable", "asset": "coins", "quantity": 100}
    await server.services.configs.put("default", "products", "coins", product, author="test", origin=COMMAND)
    uid, _ = await server.login()
    path = f"/admin/api/users/default/{uid}/assets"
    status, answer = await call(server, "POST", path, {"product": "coins"}, reason="support")
    assert status == 200, answer
    return uid


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        ("update assets set quantity = 90 where uid = $1", "quantity is 90, should be 100"),
        ("delete from assets where uid = $1", "is missing"),
        (
            "update assets set name = 'gold' where uid = $1",
            "has no entry",
        ),
    ],
)
async def test_a_difference_is_found_and_described(server: Server, damage: str, line: str) -> None:
    uid = await granted(server)
    assert await verified(server) == (0, ["0 differences"])
    async with server.services.database.connection() as conn:
        await conn.execute(damage, uid)
    code, lines = await verified(server)
    assert code == 1
    assert any(text.endswith(line) and uid in text for text in lines)
    await verify_ledger(server.services, VerifyLedger())
    assert DIFFERENCES._value.get() == len(lines) - 1


async def test_users_beyond_one_batch_are_checked(server: Server) -> None:
    uids = [await granted(server) for _ in range(5)]
    async with server.services.database.connection() as conn:
        await conn.execute("update assets set quantity = 1 where uid = any($1)", uids)
    found = [difference.uid async for difference in find_differences(server.services.database, batch_size=2)]
    assert sorted(found) == sorted(uids)


async def test_entries_cannot_be_changed(server: Server) -> None:
    uid = await granted(server)
    for statement, values in (
        ("update asset_entries set quantity = 1 where uid = $1", (uid,)),
        ("delete from asset_entries where uid = $1", (uid,)),
        ("truncate asset_entries", ()),
        ("truncate withdrawal_entries", ()),
    ):
        table = next(word for word in statement.split() if word.endswith("_entries"))
        async with server.services.database.connection() as conn:
            with pytest.raises(asyncpg.RaiseError, match=f"rows of {table} are append-only"):
                await conn.execute(statement, *values)
