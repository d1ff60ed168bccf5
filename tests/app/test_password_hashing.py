"""Hashes of passwords: argon2id in a bounded number of threads."""

import asyncio
import re
from contextlib import AsyncExitStack

import pytest

from app.password_hashing import MAX_WAITING, PasswordHashes, PasswordsBusy, open_password_hashes
from streams.tasks import background
from tests.timing import check_alike

LEAK_S = 0.005
HASH = re.compile(r"\$argon2id\$v=19\$m=19456,t=2,p=1\$[^$]{22}\$[^$]{43}")


@pytest.fixture(scope="module")
async def hashes():
    async with open_password_hashes() as opened:
        yield opened


async def test_a_hash_is_argon2id_with_a_salt_of_its_own(hashes: PasswordHashes):
    first, second = [await hashes.hash("a long password") for _ in range(2)]
    assert HASH.fullmatch(first)
    assert HASH.fullmatch(second)
    assert first != second


async def test_only_the_same_password_is_right(hashes: PasswordHashes):
    known = await hashes.hash("a long password")
    assert (await hashes.check("a long password", known)).right
    assert not (await hashes.check("A long password", known)).right
    assert not (await hashes.check("a long password", None)).right


async def test_keyboards_may_encode_the_same_characters_differently(hashes: PasswordHashes):
    known = await hashes.hash("caf\u00e9 au lait")
    assert (await hashes.check("cafe\u0301 au lait", known)).right


async def test_a_hash_with_other_parameters_is_replaced_when_the_password_is_known():
    async with open_password_hashes(memory_kib=64, iterations=1) as old, open_password_hashes() as new:
        outdated = await old.hash("a long password")
        checked = await new.check("a long password", outdated)
        assert checked.right
        assert HASH.fullmatch(checked.new_hash)
        assert await new.check("another password", outdated) == await new.check("another password", None)
        again = await new.check("a long password", checked.new_hash)
        assert again.right
        assert again.new_hash is None


async def test_an_unknown_user_takes_as_long_as_a_wrong_password(hashes: PasswordHashes):
    known = await hashes.hash("a long password")
    kinds = {"known": known, "unknown": None}
    await check_alike(kinds, lambda stored: hashes.check("a wrong password", stored), leak_s=LEAK_S)


async def test_callers_over_the_limit_are_refused_and_cancelled_ones_leave_the_queue():
    async with open_password_hashes(threads=1) as hashes, AsyncExitStack() as stack:
        tasks = [
            await stack.enter_async_context(background(hashes.hash("a long password")))
            for _ in range(1 + MAX_WAITING)
        ]
        await asyncio.sleep(0)
        with pytest.raises(PasswordsBusy) as refused:
            await hashes.hash("a long password")
        assert (refused.value.status, refused.value.error_type) == (503, "backend unavailable")
        assert refused.value.retry_after_s == 1
        for task in tasks[1:]:
            task.cancel()
        await asyncio.wait(tasks[1:])
        assert HASH.fullmatch(await hashes.hash("a long password"))
        assert HASH.fullmatch(await tasks[0])
