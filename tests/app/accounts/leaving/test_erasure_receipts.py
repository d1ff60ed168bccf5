"""Signed receipts of what was deleted and revoked when users were deactivated."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from app.work.worker import run_jobs
from storage.postgres.database import Connection
from storage.userdata.tables import USER_TABLES
from streams.tasks import background
from streams.wire.codec import dumps, loads
from tests.app.accounts.people import ask, enter, new_user, player, token
from tests.app.accounts.platforms import proof, with_sandbox
from tests.running.servers import Databases, Server
from tests.waiting import until

WITHDRAWAL = """
insert into withdrawals (withdrawal_id, app_id, uid, app_withdraw_id, request, config, platform, merchant_id,
    amount, currency, status, reason, payout_id, created_at, updated_at)
values ($1, 'default', $2, $1, '{}', 'default', 'paypal', 'm', 100, 'EUR', 'SUCCESS', '', '', now(), now())
"""


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    folder: Path = tmp_path_factory.mktemp("data")
    async with (
        with_sandbox(databases, folder) as server,
        background(run_jobs(server.services, scheduled=False, poll_s=0.1)),
    ):
        yield server


@pytest.fixture
def server(testbed: Server) -> Server:
    return testbed


async def close(server: Server, session: dict[str, str]) -> None:
    for step in ("", "/confirm"):
        assert (await ask(server, "POST", f"/bp/user/me/deactivate{step}", headers=session))[0] == 200


async def receipt_of(server: Server, uid: str) -> tuple[int, Any]:
    return await ask(server, "GET", f"/bp/server/user/{uid}/erasure_receipt", headers=token())


async def complete_receipt(server: Server, uid: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_complete() -> bool:
        async with server.services.database.connection() as conn:  # The second run comes after the longest stream.
            await conn.execute("update procrastinate_jobs set scheduled_at = null where task_name = 'erase_user'")
        found.update((await receipt_of(server, uid))[1])
        return bool(found["receipt"]["complete"])

    await until(is_complete)
    return found


async def revoked(server: Server) -> list[str | None]:
    url = f"{server.services.settings.sandbox_url}/_sandbox/calls"
    async with server.http.get(url) as response:
        calls = (await response.json())["calls"]
    return [call["asked"].get("token") for call in calls if call["stage"] == "revoke"]


async def public_key(server: Server, signed: str) -> Any:
    _, keys = await ask(server, "GET", "/.well-known/jwks.json")
    return jwt.PyJWKSet.from_dict(keys)[jwt.get_unverified_header(signed)["kid"]]


async def test_receipt_says_what_was_deleted_and_what_is_kept(server: Server):
    _, session = await enter(server, player())
    uid = (await ask(server, "GET", "/bp/user/me", headers=session))[1]["user"]["uid"]
    assert (await receipt_of(server, uid))[1]["error"]["error_type"] == "not_found"
    async with server.services.database.connection() as conn:
        for number in range(2):
            await conn.execute(WITHDRAWAL, f"{number}{uid}"[:32], uid)
    await close(server, session)

    receipt = (await complete_receipt(server, uid))["receipt"]
    assert (receipt["user_id"], receipt["app_id"], receipt["cause"]) == (uid, "default", "confirm")
    assert receipt["deactivated_at"] <= receipt["erased_at"]
    deleted = receipt["deleted"]
    assert {name: deleted[name] for name in ("identities", "sessions", "passwords", "conversations", "files")} == {
        "identities": 1,
        "sessions": 1,
        "passwords": 0,
        "conversations": 0,
        "files": 0,
    }
    rows = {name: kept.get("rows") for name, kept in receipt["kept"].items()}
    assert rows.keys() == {table.name for table in USER_TABLES if table.kept}
    counted = {"users": 1, "erasures": 1, "revocations": 1, "withdrawals": 2}
    assert {name: count for name, count in rows.items() if count} == counted
    assert {name for name, count in rows.items() if count is None} == {"attempts", "audit"}
    assert receipt["not_searched"].keys() == {"backups", "logs", "webhooks", "speech_cache", "idempotent_responses"}
    (platform,) = receipt["platforms"]
    assert platform["settled_at"] == receipt["deactivated_at"]
    assert (platform["platform"], platform["token"]) == ("android_games_service", "no_token")


async def test_receipt_can_be_verified_with_the_published_key_and_cannot_be_altered(server: Server):
    uid, session = await new_user(server)
    await close(server, session)
    reply = await complete_receipt(server, uid)
    signed, key = reply["signed"], await public_key(server, reply["signed"])

    claims = jwt.decode(signed, key.key, algorithms=["EdDSA"], issuer=server.services.settings.public_url)
    assert {name: claims[name] for name in reply["receipt"]} == reply["receipt"]
    head, payload, signature = signed.split(".")
    altered = loads(urlsafe_b64decode(payload + "=="))
    altered["deleted"]["sessions"] = 9
    forged = urlsafe_b64encode(dumps(altered)).rstrip(b"=").decode()
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(f"{head}.{forged}.{signature}", key.key, algorithms=["EdDSA"])


async def test_operators_read_receipts(server: Server):
    uid, session = await new_user(server)
    operator = {"Authorization": f"Bearer {server.services.settings.admin_token.get_secret_value()}"}
    path = f"/admin/api/users/default/{uid}/erasure_receipt"
    status, reply = await ask(server, "GET", path, headers=operator)
    assert (status, reply["error"]["error_type"]) == (404, "item_not_found")
    await close(server, session)
    status, reply = await ask(server, "GET", path, headers=operator)
    assert (status, reply["receipt"]["user_id"]) == (200, uid)


async def test_tokens_are_revoked_at_the_platforms_that_can_do_so(server: Server):
    _, session = await enter(server, await proof(server, "ios_vendor_id"))
    wechat = await proof(server, "im_network_b")
    assert (await ask(server, "POST", "/bp/user/me/socialaccount", json=wechat, headers=session))[0] == 200
    _, reply = await ask(server, "GET", "/bp/user/me", headers=session)
    uid, apple = reply["user"]["uid"], reply["user"]["social_accounts"][0]
    await close(server, session)

    receipt = (await complete_receipt(server, uid))["receipt"]
    states = {platform["platform"]: platform["token"] for platform in receipt["platforms"]}
    assert states == {"ios_vendor_id": "revoked", "im_network_b": "unsupported"}
    assert apple["refresh_token"] in await revoked(server)
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from revocations where token is not null") == 0


async def test_the_receipt_names_a_token_that_cannot_be_revoked(server: Server):
    reply, session = await enter(server, await proof(server, "microblog"))
    await close(server, session)
    [platform] = (await receipt_of(server, reply["user"]["uid"]))[1]["receipt"]["platforms"]
    assert (platform["platform"], platform["token"]) == ("microblog", "unsupported")
    assert platform["settled_at"]


async def test_a_revocation_is_tried_again_until_the_platform_accepts_it(server: Server):
    reply, session = await enter(server, await proof(server, "ios_vendor_id"))
    uid = reply["user"]["uid"]
    faults = f"{server.services.settings.sandbox_url}/_sandbox/faults"
    async with server.http.post(faults, data=dumps({"vendor": "apple", "fault": "server_error"})):
        await close(server, session)
    await until(lambda: has_failed(server, uid))
    _, found = await receipt_of(server, uid)
    (platform,) = found["receipt"]["platforms"]
    assert (platform, found["receipt"]["complete"]) == (
        {"platform": "ios_vendor_id", "token": "pending"},
        False,
    )
    async with server.services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set status = 'failed' where task_name = 'revoke_token'")
        _, found = await receipt_of(server, uid)
        assert (found["receipt"]["platforms"][0]["token"], found["receipt"]["complete"]) == ("failed", False)
        async with server.http.delete(faults):
            await conn.execute(
                "update procrastinate_jobs set status = 'todo', scheduled_at = null"
                " where task_name = 'revoke_token'"
            )
    assert (await complete_receipt(server, uid))["receipt"]["platforms"][0]["token"] == "revoked"


async def has_failed(server: Server, uid: str) -> bool:
    async with server.services.database.connection() as conn:
        found: bool = await conn.fetchval(
            "select exists (select from procrastinate_jobs where task_name = 'revoke_token'"
            " and status = 'todo' and attempts > 0 and args ->> 'uid' = $1)",
            uid,
        )
    return found


async def without_entry(conn: Connection) -> set[str]:
    """Return the tables of users that no entry says what becomes of. Partitions belong to their table."""
    rows = await conn.fetch("""
        select relname as table_name from pg_attribute join pg_class c on c.oid = attrelid
        where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition
            and attname = 'uid' and not attisdropped
    """)
    entries = {table.name for table in USER_TABLES if table.erased or table.erased_later or table.kept}
    return {row["table_name"] for row in rows} - entries


async def test_every_table_of_users_is_either_erased_or_kept(server: Server):
    async with server.services.database.connection() as conn:
        assert await without_entry(conn) == set()


async def test_a_table_that_is_added_without_an_entry_is_found(server: Server):
    async with server.services.database.connection() as conn:
        transaction = conn.transaction()
        await transaction.start()
        await conn.execute("create table stamps (app_id text not null, uid text not null)")
        assert await without_entry(conn) == {"stamps"}
        await transaction.rollback()


def test_no_table_has_two_entries():
    names = Counter(table.name for table in USER_TABLES)
    assert max(names.values()) == 1
