"""The operator chooses the HTTP client for vendors. Proxies of the environment are ignored."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from app.services import open_services
from app.settings import Settings
from tests.app.ai.conftest import Talk
from tests.vendor import Vendor
from vendors.aiohttp_client import AiohttpClient
from vendors.http1.client import Http1Client


@pytest.fixture(params=["http1", "aiohttp"])
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return replace(settings, vendor_client=request.param)


async def test_conversation_is_the_same_with_either_client(
    talk: Talk, strategy: Callable[..., Awaitable[None]], vendor: Vendor, settings: Settings
):
    await strategy("good", "say:Hello there")
    await strategy("broken", "refuse:500")

    events = await talk.turn("Hi", "broken", "good")

    assert [event.name for event in events if event.name in {"end", "error"}] == ["end"]
    record = (await talk.history())["conversation_records"][0]
    assert record["content"][1]["content"][0]["text"] == "Hello there"
    assert [call["model"] for call in vendor.calls] == ["refuse:500", "refuse:500", "say:Hello there"]
    client = talk.server.services.vendors._http._client
    assert isinstance(client, Http1Client if settings.vendor_client == "http1" else AiohttpClient)


async def test_ignored_proxy_of_the_environment_is_logged(settings: Settings):
    with capture_logs() as lines:
        async with open_services(replace(settings, ignored_proxies=("HTTPS_PROXY",))):
            pass
        async with open_services(settings):
            pass

    reported = [line for line in lines if line["event"] == "vendors.proxy_ignored"]
    assert [(line["log_level"], line["variables"]) for line in reported] == [("warning", ("HTTPS_PROXY",))]
