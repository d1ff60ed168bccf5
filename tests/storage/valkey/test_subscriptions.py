"""Subscriptions to channels of Valkey."""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from redis.asyncio.client import PubSub

from storage.valkey.client import Valkey, map_errors
from storage.valkey.opening import open_valkey
from storage.valkey.subscriptions import subscribe
from streams.tasks import background
from streams.wire.errors import StoreError
from tests.app.valkey_proxy import valkey_proxy_to
from tests.waiting import until

pytestmark = pytest.mark.one_valkey


class Log:
    """What a subscription has called, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def subscription(self, valkey: Valkey):
        return subscribe(
            valkey,
            "news",
            lambda raw: self.calls.append(raw.decode()),
            on_subscribed=lambda: self.calls.append("subscribed"),
            on_unsubscribed=lambda: self.calls.append("unsubscribed"),
        )


async def publish(valkey: Valkey, text: str) -> None:
    with map_errors():
        await valkey.client.publish(valkey.channel("news"), text.encode())


async def test_messages_of_the_topic_are_received_in_order(settings):
    log = Log()
    async with (
        open_valkey(settings.redis_url, prefix=settings.redis_prefix) as valkey,
        background(log.subscription(valkey)),
    ):
        await until(lambda: log.calls)
        await publish(valkey, "one")
        await publish(valkey, "two")
        await until(lambda: "two" in log.calls)
    assert log.calls == ["subscribed", "one", "two", "unsubscribed"]


async def test_a_subscription_is_made_again_after_an_outage_of_valkey(settings, tmp_path):
    log = Log()
    async with (
        valkey_proxy_to(settings.redis_url, tmp_path / "v.sock") as valkey_proxy,
        open_valkey(valkey_proxy.url, prefix=settings.redis_prefix) as valkey,
        background(log.subscription(valkey)),
    ):
        await until(lambda: log.calls == ["subscribed"])
        await valkey_proxy.stop()
        await until(lambda: "unsubscribed" in log.calls)
        await valkey_proxy.start()
        await until(lambda: log.calls[-1] == "subscribed")

        async def is_received() -> bool:
            with suppress(StoreError):
                await publish(valkey, "after the outage")
            return "after the outage" in log.calls

        await until(is_received)


async def test_a_subscription_is_made_again_if_the_kernel_gives_its_connection_up(settings):
    """No peer can cause ETIMEDOUT, only dropped packets. So the report of the transport is made here."""
    log, opened = Log(), list[PubSub]()
    async with open_valkey(settings.redis_url, prefix=settings.redis_prefix) as valkey:
        subscribed = valkey.subscribed

        @asynccontextmanager
        async def noting(channel: str) -> AsyncIterator[PubSub]:
            async with subscribed(channel) as pubsub:
                opened.append(pubsub)
                yield pubsub

        valkey.subscribed = noting
        async with background(log.subscription(valkey)):
            await until(lambda: log.calls == ["subscribed"])
            opened[0].connection._reader.set_exception(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
            await until(lambda: log.calls == ["subscribed", "unsubscribed", "subscribed"])
            await publish(valkey, "after the cut")
            await until(lambda: log.calls[-1] == "after the cut")
