"""A strategy that was stored before its options were checked is refused only when it is used."""

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.peers.vendor import Vendor
from tests.running.servers import Server

ACCOUNT = "vendor_accounts"


async def test_stored_strategy_with_a_wrong_option_loads_and_is_refused_when_it_is_used(
    talk: Talk, server: Server, strategy, vendor: Vendor
) -> None:
    await strategy("one", "say:Fine")
    configs = server.services.configs
    chat = {"account": "late", "model": "say:Wrong", "options": {"token_field": "tokens"}}
    # The options cannot be checked, because the account does not exist yet.
    await configs.put("default", "conversation", "bad", {"chat": chat}, author="test", origin=COMMAND)
    account = {"platform": "vendor_b_llm", "base_url": vendor.url}
    await configs.put("default", ACCOUNT, "late", account, author="test", origin=COMMAND)
    async with talk.say("Hello", "bad") as response:
        assert response.status == 422
        message = (await response.json())["error"]["message"]
    assert message.startswith("config_invalid: conversation bad: chat: options.token_field must be one of")
    end = (await talk.turn("Hello", "bad", "one"))[-1]
    assert (end.name, end.content["strategy"]) == ("end", "one")


async def test_option_that_a_platform_does_not_have_is_ignored_in_a_stored_strategy(
    talk: Talk, server: Server, vendor: Vendor
) -> None:
    configs = server.services.configs
    chat = {"account": "late", "model": "say:Fine", "options": {"temprature": 1}}
    await configs.put("default", "conversation", "old", {"chat": chat}, author="test", origin=COMMAND)
    account = {"platform": "openai", "base_url": vendor.url}
    await configs.put("default", ACCOUNT, "late", account, author="test", origin=COMMAND)
    assert (await talk.turn("Hello", "old"))[-1].name == "end"
