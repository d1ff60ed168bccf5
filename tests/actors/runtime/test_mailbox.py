"""`put` never waits, and messages are delivered in order."""

import asyncio

from actors.runtime.mailbox import Attach, Cancel, Detach, Drain, Expire, Mailbox, Message


async def test_messages_are_delivered_in_order_and_not_during_put():
    taken: list[Message] = []
    mailbox = Mailbox()
    mailbox.open(taken.append)
    sent = [Attach(), Cancel(aborted=True), Detach(), Drain(), Expire(deadline=True)]

    assert all(mailbox.put(message) for message in sent)
    assert taken == []

    await asyncio.sleep(0)
    assert taken == sent


async def test_messages_put_during_delivery_are_delivered_next():
    taken: list[Message] = []

    def take(message: Message) -> None:
        taken.append(message)
        if message == Attach():
            mailbox.put(Drain())

    mailbox = Mailbox()
    mailbox.open(take)
    mailbox.put(Attach())
    mailbox.put(Detach())

    await asyncio.sleep(0)
    assert taken == [Attach(), Detach()]
    await asyncio.sleep(0)
    assert taken == [Attach(), Detach(), Drain()]


async def test_a_full_mailbox_refuses_messages_until_they_are_delivered():
    taken: list[Message] = []
    mailbox = Mailbox()
    mailbox.open(taken.append)
    assert all(mailbox.put(Attach()) for _ in range(Mailbox.LIMIT))

    assert not mailbox.put(Detach())

    await asyncio.sleep(0)
    assert taken == [Attach()] * Mailbox.LIMIT
    assert mailbox.put(Detach())


async def test_a_closing_mailbox_delivers_its_messages_and_refuses_others():
    taken: list[Message] = []
    mailbox = Mailbox()
    mailbox.open(taken.append)
    mailbox.put(Attach())

    mailbox.close()

    assert taken == [Attach()]
    assert not mailbox.put(Detach())
    await asyncio.sleep(0)
    assert taken == [Attach()]


async def test_messages_put_before_it_opens_are_delivered_then():
    taken: list[Message] = []
    mailbox = Mailbox()
    mailbox.put(Attach())
    await asyncio.sleep(0)
    mailbox.open(taken.append)
    mailbox.put(Detach())
    assert taken == []
    await asyncio.sleep(0)
    assert taken == [Attach(), Detach()]
