"""The sandbox sends webhooks once and in order, unless a fault is switched on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.vendors.payments.stripe.receiver import Receiver, receiving
from vendors.sandbox.server import Running


class Customers:
    """Creates customers, each of which causes one webhook."""

    def __init__(self, http: aiohttp.ClientSession, url: str, receiver: Receiver) -> None:
        self._http = http
        self._url = url
        self.receiver = receiver

    async def create(self, count: int) -> list[str]:
        ids = []
        for _ in range(count):
            async with self._http.post(f"{self._url}/stripe/v1/customers") as response:
                ids.append((await response.json())["id"])
        return ids

    async def fault(self, **body: Any) -> None:
        async with self._http.post(f"{self._url}/stripe/_sandbox/webhooks", json=body) as response:
            assert response.status == 200, await response.text()

    async def received(self, count: int) -> list[str]:
        await self.receiver.wait(count)
        return [event["data"]["object"]["id"] for event in self.receiver.events]


@asynccontextmanager
async def customers_of(sandbox: Running) -> AsyncIterator[Customers]:
    headers = {"Authorization": "Bearer sandbox"}
    async with receiving() as receiver, aiohttp.ClientSession(headers=headers) as http:
        form = {"url": receiver.url, "enabled_events[]": "customer.created"}
        async with http.post(f"{sandbox.url}/stripe/v1/webhook_endpoints", data=form) as response:
            assert response.status == 200
        yield Customers(http, sandbox.url, receiver)


@pytest.fixture
async def customers(sandbox: Running) -> AsyncIterator[Customers]:
    async with customers_of(sandbox) as opened:
        yield opened


async def test_webhooks_arrive_once_and_in_order(customers: Customers) -> None:
    ids = await customers.create(5)
    assert await customers.received(5) == ids


async def test_a_lost_webhook_does_not_arrive(customers: Customers) -> None:
    await customers.fault(fault="lost", times=1)
    [_, second] = await customers.create(2)
    assert await customers.received(1) == [second]


async def test_a_duplicate_arrives_twice(customers: Customers) -> None:
    await customers.fault(fault="duplicate", times=1, delay_ms=300)
    [first] = await customers.create(1)
    assert await customers.received(2) == [first, first]
    assert len({event["id"] for event in customers.receiver.events}) == 1


async def test_a_delayed_webhook_arrives_after_later_ones(customers: Customers) -> None:
    await customers.fault(fault="delayed", times=1, delay_ms=500)
    first, *others = await customers.create(3)
    assert await customers.received(3) == [*others, first]


async def test_a_reordered_webhook_arrives_after_the_next_one(customers: Customers) -> None:
    await customers.fault(fault="reordered", times=1, delay_ms=60_000)
    first, second, third = await customers.create(3)
    assert await customers.received(3) == [second, first, third]


async def test_a_share_of_webhooks_is_lost(customers: Customers) -> None:
    await customers.fault(fault="lost", rate=0.5, seed=1)
    ids = await customers.create(20)
    await customers.fault()
    [last] = await customers.create(1)
    found = await customers.received(1)
    while last not in found:
        found = await customers.received(len(found) + 1)
    assert 0 < len(found) - 1 < len(ids)


async def test_a_webhook_that_is_not_accepted_is_sent_again(customers: Customers) -> None:
    customers.receiver.status = 500
    [first] = await customers.create(1)
    await customers.received(1)
    customers.receiver.status = 200
    assert await customers.received(2) == [first, first]
