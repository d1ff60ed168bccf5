"""Whoever tells an actor something never waits, and what it was told comes in order."""

import asyncio

from actors.mailbox import Attach, Cancel, Detach, Drain, Expire, Mailbox, Message


async def test_messages_come_in_the_order_of_telling_and_never_from_within_it():
    taken: list[Message] = []
    mailbox = Mailbox(taken.append)
    told = [Attach(), Cancel(aborted=True), Detach(), Drain(), Expire(deadline=True)]

    assert all(mailbox.tell(message) for message in told)
    assert taken == []

    await asyncio.sleep(0)
    assert taken == told


async def test_what_is_told_while_a_message_is_taken_comes_next():
    taken: list[Message] = []

    def take(message: Message) -> None:
        taken.append(message)
        if message == Attach():
            mailbox.tell(Drain())

    mailbox = Mailbox(take)
    mailbox.tell(Attach())
    mailbox.tell(Detach())

    await asyncio.sleep(0)
    assert taken == [Attach(), Detach()]
    await asyncio.sleep(0)
    assert taken == [Attach(), Detach(), Drain()]


async def test_full_box_refuses_until_its_reader_has_come():
    taken: list[Message] = []
    mailbox = Mailbox(taken.append)
    assert all(mailbox.tell(Attach()) for _ in range(Mailbox.LIMIT))

    assert not mailbox.tell(Detach())

    await asyncio.sleep(0)
    assert taken == [Attach()] * Mailbox.LIMIT
    assert mailbox.tell(Detach())


async def test_box_that_closes_gives_out_what_it_has_and_takes_no_more():
    taken: list[Message] = []
    mailbox = Mailbox(taken.append)
    mailbox.tell(Attach())

    mailbox.close()

    assert taken == [Attach()]
    assert not mailbox.tell(Detach())
    await asyncio.sleep(0)
    assert taken == [Attach()]
