"""Codes: right once, for their app, kind and target, within their time and a few tries."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from storage.accounts import codes
from storage.accounts.codes import (
    LOGIN_EMAIL,
    PHONE,
    RESET,
    TRIES,
    VERIFY_LINK,
    WRONG_PER_DAY,
    CodeEmpty,
    CodeInvalid,
    CodeKind,
    CodeOutOfDate,
    Codes,
    Origin,
)
from storage.postgres.database import open_database
from storage.secrets import Keyring
from storage.userdata.retention import rows_before
from tests.running.servers import MASTER_KEY

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ADA, BEN = "+4915112345678", "+4915112345679"
STRANGER = Origin("203.0.113.0/24", known={"198.51.100.0/24", "198.51.101.0/24"})
HOME, WORK = (replace(STRANGER, network=f"198.51.{third}.0/24") for third in (100, 101))


class Desk:
    """Issues and enters codes at times that are counted from `NOW`."""

    def __init__(self, database):
        self.database = database
        self.codes = Codes(database, Keyring.from_hex(MASTER_KEY))

    async def issue(self, target=ADA, *, kind: CodeKind = PHONE, at=NOW, for_s=600, uid=None, app="one") -> str:
        async with self.database.transaction() as conn:
            return await self.codes.issue(conn, app, kind, target, now=at, for_s=for_s, uid=uid)

    async def enter(
        self, code, target=ADA, *, kind: CodeKind = PHONE, at=NOW, app="one", origin=STRANGER
    ) -> codes.RightCode:
        return await self.codes.check(app, kind, target, code=code, origin=origin, now=at)

    async def fail(self, code, times: int = 1, **how) -> str:
        """Enter a wrong code a number of times. Return the last error."""
        for _ in range(times):
            with pytest.raises(CodeInvalid) as raised:
                await self.enter(other(code), **how)
        return str(raised.value)

    async def use(self, code, **how) -> None:
        right = await self.enter(code, **how)
        async with self.database.transaction() as conn:
            await codes.use_code(conn, right, now=how.get("at", NOW))

    async def find(self, code, *, kind: CodeKind = RESET, at=NOW) -> codes.RightCode:
        async with self.database.connection() as conn:
            return await self.codes.find(conn, kind, code=code, now=lambda _: at, field="random_code")


@pytest.fixture
async def desk(database_url):
    async with open_database(database_url) as database:
        yield Desk(database)


def other(code: str) -> str:
    """Return a wrong code."""
    return f"{(int(code) + 1) % 10**6:06}"


async def test_a_code_has_six_digits_and_is_right_once(desk: Desk):
    code = await desk.issue(uid="u1")
    assert len(code) == 6
    assert code.isdecimal()
    right = await desk.enter(f" {code[:3]} {code[3:]}\n")
    assert (right.app_id, right.target, right.uid) == ("one", ADA, "u1")
    await desk.use(code)
    with pytest.raises(CodeInvalid, match="verify_code was used or revoked"):
        await desk.enter(code)


@pytest.mark.parametrize("code", [None, "", "  \n"])
async def test_a_blank_code_is_empty(desk: Desk, code):
    with pytest.raises(CodeEmpty, match="verify_code is required"):
        await desk.enter(code)


async def test_a_code_is_wrong_for_another_target_kind_or_app(desk: Desk):
    code = await desk.issue()
    for where in ({"target": BEN}, {"kind": LOGIN_EMAIL}, {"app": "two"}):
        with pytest.raises(CodeInvalid):
            await desk.enter(code, **where)
    await desk.use(code)


async def test_only_the_newest_code_is_right(desk: Desk):
    first, second = await desk.issue(), await desk.issue(at=NOW + MINUTE)
    with pytest.raises(CodeOutOfDate, match="replaced"):
        await desk.enter(first, at=NOW + MINUTE)
    await desk.use(second, at=NOW + MINUTE)


async def test_a_code_expires(desk: Desk):
    code = await desk.issue()
    with pytest.raises(CodeOutOfDate, match="expired"):
        await desk.enter(code, at=NOW + 10 * MINUTE)
    await desk.use(code, at=NOW + 9 * MINUTE)


async def test_the_right_code_is_refused_after_five_wrong_ones(desk: Desk):
    code = await desk.issue()
    for _ in range(TRIES):
        with pytest.raises(CodeInvalid, match="wrong"):
            await desk.enter(other(code))
    with pytest.raises(CodeInvalid, match="too many"):
        await desk.enter(code)
    await desk.use(await desk.issue())


async def test_twenty_wrong_codes_a_day_are_the_limit_of_a_target_over_all_kinds(desk: Desk):
    for kind in (PHONE, LOGIN_EMAIL) * (WRONG_PER_DAY // TRIES // 2):
        code = await desk.issue(kind=kind)
        for _ in range(TRIES):
            with pytest.raises(CodeInvalid):
                await desk.enter(other(code), kind=kind)
    with pytest.raises(CodeInvalid, match="too many"):
        await desk.enter(await desk.issue())
    await desk.use(await desk.issue(BEN), target=BEN)
    tomorrow = NOW + timedelta(days=1)
    await desk.use(await desk.issue(at=tomorrow), at=tomorrow)


async def test_each_network_has_its_own_tries_of_a_code(desk: Desk):
    code = await desk.issue()
    assert (await desk.fail(code, TRIES + 1)).endswith("request a new one later")
    assert (await desk.fail(code, TRIES, origin=replace(STRANGER, network="192.0.2.0/24"))).endswith("is wrong")
    await desk.use(code, origin=HOME)


async def test_strangers_share_the_wrong_codes_of_a_day_and_known_networks_have_their_own(desk: Desk):
    code = await desk.issue()
    for number in range(WRONG_PER_DAY // TRIES):
        await desk.fail(code, TRIES, origin=replace(STRANGER, network=f"203.0.{number}.0/24"))
    assert "too many" in await desk.fail(code, origin=replace(STRANGER, network="203.0.99.0/24"))
    for _ in range(WRONG_PER_DAY // TRIES):
        assert (await desk.fail(await desk.issue(), TRIES, origin=HOME)).endswith("is wrong")
    with pytest.raises(CodeInvalid, match="too many"):
        await desk.enter(await desk.issue(), origin=HOME)
    await desk.use(await desk.issue(), origin=WORK)


async def test_right_codes_are_not_counted_as_wrong(desk: Desk):
    earlier = await desk.issue()
    for _ in range(WRONG_PER_DAY + 1):
        await desk.use(await desk.issue())
    code = await desk.issue()
    for _ in range(TRIES + 1):
        with pytest.raises(CodeOutOfDate) as raised:
            await desk.enter(earlier)
        assert not raised.value.wrong
    await desk.use(code)


async def test_concurrent_guesses_do_not_exceed_the_tries(desk: Desk):
    code = await desk.issue()
    guesses = [desk.enter(other(code)) for _ in range(20)]
    messages = [str(error) for error in await asyncio.gather(*guesses, return_exceptions=True)]
    assert messages.count("account.code_invalid: verify_code is wrong") == TRIES


async def test_one_of_concurrent_requests_with_a_code_wins(desk: Desk):
    code = await desk.issue()
    results = await asyncio.gather(*(desk.use(code) for _ in range(20)), return_exceptions=True)
    assert results.count(None) == 1
    assert {type(result) for result in results} == {type(None), CodeInvalid}


async def test_a_long_code_is_found_by_itself(desk: Desk):
    code = await desk.issue("ada@example.com", kind=RESET, for_s=3600, uid="u1")
    assert len(code) == 43
    right = await desk.find(code)
    assert (right.app_id, right.target, right.uid) == ("one", "ada@example.com", "u1")
    for wrong, error in ((code[:-1], CodeInvalid), ("", CodeEmpty), ("é" * 43, CodeInvalid)):
        with pytest.raises(error):
            await desk.find(wrong)
    with pytest.raises(CodeInvalid):
        await desk.find(code, kind=VERIFY_LINK)
    with pytest.raises(CodeOutOfDate):
        await desk.find(code, at=NOW + 60 * MINUTE)


@pytest.mark.parametrize(("kind", "replaced"), [(RESET, True), (VERIFY_LINK, False)])
async def test_a_new_reset_replaces_the_last_one_but_a_link_does_not(desk: Desk, kind: CodeKind, replaced):
    first = await desk.issue("ada@example.com", kind=kind)
    await desk.issue("ada@example.com", kind=kind)
    if replaced:
        with pytest.raises(CodeOutOfDate):
            await desk.find(first, kind=kind)
    else:
        await desk.find(first, kind=kind)


async def test_the_codes_of_a_user_are_revoked(desk: Desk):
    async with desk.database.transaction() as conn:
        await conn.execute(
            "insert into users (app_id, uid, create_time, last_login) values ('one', 'u1', $1, $1)", NOW
        )
        await conn.execute(
            "insert into identities (app_id, platform, social_id, uid, create_time)"
            " values ('one', 'phone', $1, 'u1', $2)",
            ADA,
            NOW,
        )
    sent, made_for = await desk.issue(), await desk.issue("ada@example.com", kind=RESET, uid="u1")
    of_other = await desk.issue(BEN)
    async with desk.database.transaction() as conn:
        await codes.revoke(conn, "one", "u1", now=NOW)
    with pytest.raises(CodeInvalid):
        await desk.enter(sent)
    with pytest.raises(CodeInvalid):
        await desk.find(made_for)
    await desk.use(of_other, target=BEN)


async def test_the_rows_do_not_contain_the_codes(desk: Desk):
    issued = [await desk.issue(), await desk.issue("ada@example.com", kind=RESET)]
    async with desk.database.connection() as conn:
        rows = str([tuple(row) for row in await conn.fetch("select * from codes")])
        digests = [row["digest"] for row in await conn.fetch("select digest from codes")]
    assert not any(code in rows for code in issued)
    assert {len(digest) for digest in digests} == {32}


async def test_expired_codes_are_deleted_in_batches(desk: Desk):
    for number in range(3):
        await desk.issue(f"+4915112345{number:03}")
    delete_expired = rows_before("codes", "expires_at")
    async with desk.database.transaction() as conn:
        deleted = [
            await delete_expired(conn, "one", before=NOW + 11 * MINUTE, limit=2),
            await delete_expired(conn, "one", before=NOW + 9 * MINUTE, limit=2),
        ]
        assert deleted == [2, 0]
        assert await conn.fetchval("select count(*) from codes") == 1
