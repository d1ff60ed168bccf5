"""Whoever tells an actor something never waits, and what it was told comes in order."""

import asyncio

import pytest

from actors.mailbox import Attach, Cancel, Detach, Drain, Expire, Mailbox, Played
from streams.tasks import background


async def test_messages_come_in_the_order_of_telling():
    mailbox = Mailbox()
    told = [Attach(), Cancel(aborted=True), Detach(), Drain(), Expire(deadline=True), Played()]

    assert all(mailbox.tell(message) for message in told)

    assert [await mailbox.next() for _ in told] == told


async def test_who_waits_is_woken_by_the_next_message():
    mailbox = Mailbox()
    async with background(mailbox.next()) as waiting:
        await asyncio.sleep(0)
        assert not waiting.done()

        mailbox.tell(Attach())
        mailbox.tell(Detach())

        assert await waiting == Attach()
    assert await mailbox.next() == Detach()


async def test_wait_that_was_cancelled_loses_no_message():
    mailbox = Mailbox()
    async with background(mailbox.next()):
        await asyncio.sleep(0)
    mailbox.tell(Drain())

    async with asyncio.timeout(1):
        assert await mailbox.next() == Drain()


async def test_message_that_comes_as_the_wait_is_cancelled_stays():
    mailbox = Mailbox()
    async with background(mailbox.next()) as waiting:
        await asyncio.sleep(0)
        mailbox.tell(Drain())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    assert await mailbox.next() == Drain()


async def test_full_box_refuses_all_but_the_end_of_the_play():
    mailbox = Mailbox()
    assert all(mailbox.tell(Attach()) for _ in range(Mailbox.LIMIT))

    assert not mailbox.tell(Detach())
    assert mailbox.tell(Played())
    assert not mailbox.tell(Detach())

    seen = [await mailbox.next() for _ in range(Mailbox.LIMIT + 1)]
    assert seen[-1] == Played()
    assert mailbox.tell(Detach())
