"""`verify ledger` rebuilds assets, reservations and quotas from the ledger, and finds whatever differs."""

from datetime import timedelta

import asyncpg
import pytest

from app.assets.verification import DIFFERENCES, verify_ledger
from storage.accounts import emails
from storage.assets import ledger
from storage.assets.differences import find_differences
from storage.assets.entries import Entry
from storage.jobs.jobs import VerifyLedger
from storage.operators.audit import COMMAND
from tests.app.assets.share_codes import join_code, share_code
from tests.app.callers import ask, token
from tests.app.operator_calls import call
from tests.calendar.clock import utc_now
from tests.environment import core_packages
from tests.running.forks import run
from tests.running.poolers import database_env
from tests.running.servers import ADMIN_TOKEN, MASTER_KEY, Server


async def verified(server: Server) -> tuple[int, list[str]]:
    settings = server.services.settings
    env = {**core_packages(), **database_env(settings), "PARLEY_DATA_DIR": str(settings.data_dir)}
    env |= {"REDIS_URL": settings.redis_url, "PARLEY_MASTER_KEY": MASTER_KEY, "PARLEY_ADMIN_TOKEN": ADMIN_TOKEN}
    code, out, err = await run("app", "verify", "ledger", env=env)
    assert err == ""
    return code, out.splitlines()


async def granted(server: Server) -> str:
    product = {"type": "consumable", "asset": "coins", "quantity": 100}
    await server.services.configs.put("default", "products", "coins", product, author="test", origin=COMMAND)
    uid, _ = await server.login()
    path = f"/admin/api/users/default/{uid}/assets"
    status, answer = await call(server, "POST", path, {"product": "coins"}, reason="support", key=uid)
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


async def withdrawals(server: Server, *, count: int) -> list[tuple[str, str]]:
    """Start withdrawals of one user. Return the user and our id of each."""
    config = {"base_url": "http://127.0.0.1:9", "client_id": "a", "client_secret": "b", "merchant_id": "m"}
    await server.services.configs.put("default", "payouts", "Default", config, author="test", origin=COMMAND)
    uid, _ = await server.login()
    async with server.services.database.transaction() as conn:
        await emails.set_current(conn, "default", uid, address="ada@example.com", old="", now=utc_now())
    started = []
    for number in range(count):
        body = {"cash_num": 1.5, "withdraw_id": f"w-{number}", "start_time": "2026-11-23T10:00:00Z"}
        path = f"/bp/server/user/{uid}/withdraw/"
        status, answer = await ask(
            server, "POST", path, json=body, headers=token(scope="withdrawals", jti=f"{uid}-{number}")
        )
        assert status == 200, answer
        started.append((uid, answer["withdraw"]["withdraw_id"]))
    return started


async def share_groups(server: Server, *, count: int) -> list[tuple[str, str]]:
    """Let users share a subscription with one other each. Return the owner and the id of each group."""
    for kind, value in (
        ("products", {"type": "subscription", "asset": "pro", "period": "P1M"}),
        ("share_groups", {"quota": 1, "platforms": ["walletpay"]}),
    ):
        await server.services.configs.put("default", kind, "pro", value, author="test", origin=COMMAND)
    groups, now = [], utc_now()
    for number in range(count):
        (owner, session), (_, other) = await server.login(), await server.login()
        entry = Entry(
            f"wallet:sale:{number}", "grant", "pro", "subscription", f"I-{number}",
            starts_at=now, ends_at=now + timedelta(days=1), platform="walletpay", bp_product_id="pro",
        )  # fmt: skip
        async with server.services.database.transaction() as conn:
            await ledger.post(conn, "default", owner, entry=entry, now=now, sinks=server.services.sinks)
        await join_code(server, other, await share_code(server, session))
        async with server.services.database.connection() as conn:
            groups.append((owner, await conn.fetchval("select group_id from share_groups where uid = $1", owner)))
    return groups


async def test_differences_of_reservations_and_quotas_are_found_and_described(server: Server) -> None:
    started = await withdrawals(server, count=5)
    groups = await share_groups(server, count=3)
    outsider, _ = await server.login()
    assert await verified(server) == (0, ["0 differences"])
    async with server.services.database.connection() as conn:
        await conn.execute("alter table withdrawal_entries disable trigger user")
        for (_, withdrawal), statement in zip(started[:4], (
            "update withdrawals set status = 'SUCCESS', check_at = null where withdrawal_id = $1",
            "update withdrawals set amount = 151 where withdrawal_id = $1",
            "update withdrawals set check_at = null where withdrawal_id = $1",
            "delete from withdrawal_entries where withdrawal_id = $1",
        ), strict=True):  # fmt: skip
            await conn.execute(statement, withdrawal)
        await conn.execute("update share_groups set quota = 0 where group_id = $1", groups[0][1])
        await conn.execute("update share_groups set name = 'gold' where group_id = $1", groups[1][1])
        join = "insert into share_members (group_id, app_id, uid, joined_at) values ($1, 'default', $2, now())"
        await conn.execute(join, groups[2][1], outsider)
    problems = (
        "status is SUCCESS, should be START",
        "does not match its entries",
        "is in progress, but never read back",
        "does not match its entries",
        "has 1 members, should have at most 0",
        "shares an asset that has no entry",
        "has 2 members, should have at most 1",
    )
    subjects = [
        *(f"default {uid} withdrawal {id_}" for uid, id_ in started[:4]),
        *(f"default {uid} share group {id_}" for uid, id_ in groups),
    ]
    code, [*lines, total] = await verified(server)
    assert (code, total) == (1, "7 differences")
    assert set(lines) == {f"{subject}: {problem}" for subject, problem in zip(subjects, problems, strict=True)}
    await verify_ledger(server.services, VerifyLedger())
    assert DIFFERENCES._value.get() == len(lines)


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
