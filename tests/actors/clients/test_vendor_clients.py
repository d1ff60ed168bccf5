"""Calls with one result through the gate of an account, as areas without streams make them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from prometheus_client import REGISTRY
from pydantic import Field, SecretStr

from app.services import Services
from storage.configs.kinds.vendor_accounts import Breaker, CallLimits
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid
from streams.wire.model import Model
from tests.running.servers import Server
from tests.vendors.http.upstream import Upstream, hold, plain, refusing, running_upstream
from tests.waiting import until
from vendors.account import Account, ChatSpec
from vendors.catalog import CHAT_MODELS, Capability
from vendors.errors import Refused, TimedOut
from vendors.http.outgoing import MoneyCall, RepeatWithKey
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatMessage, TextDelta
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running, listening

KEY = ConfigKey("default", "cards", "main")
SECRET = "sk-live-0123456789"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def services(server: Server) -> Services:
    return server.services


@dataclass(frozen=True)
class CardSpec:
    currency: str = "EUR"


class CardOptions(Model):
    statement: str = Field(default="", max_length=22)


class Cards:
    """A client of an area without streams. It captures payments."""

    def __init__(self, http: VendorHttp, account: Account, spec: CardSpec) -> None:
        self._http = http
        self._account = account
        self._currency = spec.currency

    async def capture(self, amount: int, *, key: str) -> Any:
        call = MoneyCall(
            vendor=self._account.platform,
            url=self._account.url("/captures"),
            headers=self._account.bearer(),
            body=dumps({"amount": amount, "currency": self._currency}),
            repeat=RepeatWithKey(key),
        )
        async with self._http.stream(call) as response:
            return await response.json()


CARDS = Capability[CardSpec, Cards]("cards").by(Cards, CardOptions)


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


def cards(services: Services, upstream: Upstream, limits: CallLimits | None = None) -> Any:
    return opened(services, Account("main", "cards", upstream.url, SecretStr(SECRET)), limits or CallLimits())


def opened(services: Services, account: Account, limits: CallLimits | None = None) -> Any:
    """Open an account, as after a change of its config."""
    return services.vendors.open(CARDS, account, key=KEY, limits=limits or CallLimits(breaker=Breaker(min_calls=1)))


async def captured(access: Any, *, within_s: float = 5) -> Any:
    return await access.call(CardSpec(), lambda client: client.capture(5, key="7:capture"), within_s=within_s)


async def test_account_of_another_kind_is_called_with_its_key(services: Services, upstream: Upstream):
    upstream.respond_with(refusing(503, retry_after_ms="1"), plain(200, b'{"id": "c1"}'))

    assert await captured(cards(services, upstream)) == {"id": "c1"}

    assert [seen.headers["Idempotency-Key"] for seen in upstream.seen] == ["7:capture"] * 2
    assert [seen.body for seen in upstream.seen] == [b'{"amount":5,"currency":"EUR"}'] * 2


async def test_breaker_of_an_account_opens_for_all_its_users(services: Services, upstream: Upstream):
    limits = CallLimits(breaker=Breaker(min_calls=2))
    upstream.respond_with(refusing(501, f"wrong key {SECRET}"))
    for _ in range(2):
        with pytest.raises(Refused, match=r"answered 501: wrong key \*\*\*"):
            await captured(cards(services, upstream, limits))

    with pytest.raises(Refused, match="is skipped for now"):
        await captured(cards(services, upstream, limits))
    assert len(upstream.seen) == 2


async def test_call_without_a_result_ends_and_frees_its_slot(services: Services, upstream: Upstream):
    access = cards(services, upstream, CallLimits(concurrency=1))
    upstream.respond_with(hold, plain(200, b"{}"))

    with pytest.raises(TimedOut, match=r"cards had no result within 0\.3 s"):
        await captured(access, within_s=0.3)

    assert await captured(access) == {}


async def test_calls_over_the_limit_of_an_account_wait(services: Services, upstream: Upstream):
    access = cards(services, upstream, CallLimits(concurrency=1))
    release = asyncio.Event()

    async def slow(_: object) -> Any:
        await release.wait()
        return await plain(200, b"{}")(_)

    upstream.respond_with(slow, plain(200, b"{}"))
    async with asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(captured(access))
        labels = {"account": "default/cards/main"}
        await until(lambda: REGISTRY.get_sample_value("parley_bulkhead_waiting", labels) == 1)
        await until(lambda: upstream.seen)
        assert len(upstream.seen) == 1
        release.set()
    assert len(upstream.seen) == 2


async def test_streams_and_single_calls_share_the_gate_of_a_vendor_account(services: Services, sandbox: Running):
    value = {
        "platform": "openai",
        "base_url": f"{sandbox.url}/openai/v1",
        "api_key": key_of(fault="server_error", retry_after_s=0.01),
        "breaker": {"min_calls": 1},
    }
    await services.configs.put("default", "vendor_accounts", "main", value, author="test", origin=COMMAND)
    await services.configs.put(
        "default", "conversation", "one", {"chat": {"account": "main"}}, author="test", origin=COMMAND
    )

    async def words(model: Any) -> str:
        async with model.reply([ChatMessage("user", "Hello")]) as items:
            return "".join([item.text async for item in items if isinstance(item, TextDelta)])

    access = services.vendors.account(CHAT_MODELS, "default", "main")
    with pytest.raises(Refused, match="answered 500"):
        await access.call(ChatSpec("gpt-4o-mini"), words, within_s=10)

    (strategy,) = services.strategies.conversations("default", ["one"])
    assert strategy.gate is access.gate
    assert strategy.gate.try_admit() is None


async def test_corrected_account_is_called_although_its_breaker_was_open(services: Services, upstream: Upstream):
    """The URL or the key is corrected. With neither changed, the breaker stays open."""
    upstream.respond_with(refusing(501), refusing(501), plain(200, b"{}"))
    right, wrong = SecretStr(SECRET), SecretStr("sk-wrong-0123456789")
    broken = Account("main", "cards", upstream.url + "/wrong", wrong)
    for account in (broken, replace(broken, base_url=upstream.url)):
        with pytest.raises(Refused, match="answered 501"):
            await captured(opened(services, account))
        with pytest.raises(Refused, match="is skipped for now"):
            await captured(opened(services, account))

    assert await captured(opened(services, replace(broken, base_url=upstream.url, api_key=right))) == {}


async def test_error_of_an_unusable_account_names_config_and_field(services: Services):
    with pytest.raises(ConfigInvalid, match="vendor_accounts nobody does not exist"):
        services.vendors.account(CHAT_MODELS, "default", "nobody")
    with pytest.raises(ConfigInvalid, match="vendor_accounts local-audio: platform local_audio offers no chat"):
        services.vendors.account(CHAT_MODELS, "default", "local-audio")
