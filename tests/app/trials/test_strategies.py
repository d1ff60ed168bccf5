"""A draft is tried before it is published: a strategy, a vendor account or a sink, with its vendor."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.operator_calls import call
from tests.peers.vendor import Vendor, running_vendor
from tests.running.servers import Server


@pytest.fixture
async def vendor() -> AsyncIterator[Vendor]:
    async with running_vendor() as running:
        yield running


@pytest.fixture
async def server(shared_server: Server, vendor: Vendor) -> Server:
    configs = shared_server.services.configs
    for kind, name, value in (
        ("vendor_accounts", "drafts", {"platform": "vendor_b_llm", "base_url": vendor.url, "api_key": "sk-test"}),
    ):
        await configs.put("default", kind, name, value, author="test", origin=COMMAND)
    return shared_server


async def tried(server: Server, model: str, **fields: Any) -> tuple[int, Any]:
    chat = {"account": "drafts", "model": model, "price": {"input": 0.5, "output": 2}, **fields}
    body = {"value": {"chat": chat}, "text": "Hello", "params": {"user": {"name": "Ada"}}}
    return await call(server, "POST", "/admin/api/configs/default/conversation/draft/try", body)


async def test_a_draft_answers_with_its_events_latency_and_cost(server: Server) -> None:
    status, answer = await tried(server, "say:Here I am", system_prompt="You talk to {{.user.name}}")
    assert status == 200, answer
    found = answer["strategy"]
    assert (found["text"], found["platform"], "error" in answer) == ("Here I am", "vendor_b_llm", False)
    assert found["events"][0]["event"] == "text"
    assert 0 <= found["first_output_ms"] <= answer["elapsed_ms"]
    assert float(found["price"]) == found["input_units"] * 0.5 + found["output_units"] * 2
    _, listed = await call(server, "GET", "/admin/api/configs?kind=conversation&text=draft")
    assert "draft" not in [row["name"] for row in listed["configs"]]
    _, audit = await call(server, "GET", "/admin/api/audit?action=config.try&kind=conversation")
    row = audit["changes"][0]
    assert (row["actor"], row["name"], row["reason"], "Hello" in str(row)) == ("root", "draft", "a test", False)


async def test_what_a_vendor_refuses_is_part_of_the_reply(server: Server) -> None:
    status, answer = await tried(server, "echo")
    assert (status, "strategy" in answer) == (200, False)
    assert answer["error"]
    assert "sk-test" not in answer["error"]


async def test_a_draft_that_cannot_be_written_is_not_tried(server: Server) -> None:
    status, answer = await tried(server, "say:x", temperature=9)
    assert (status, answer["error"]["message"]) == (
        400, "invalid_parameter: value.chat.temperature must be at most 2",
    )  # fmt: skip
    body = {"value": {"chat": {"account": "nope"}}, "text": "x"}
    status, _ = await call(server, "POST", "/admin/api/configs/default/conversation/draft/try", body)
    assert status == 422
    assert (await call(server, "POST", "/admin/api/configs/default/auth/default/try", body))[0] == 400


async def test_an_account_is_tried_with_its_stored_key_before_it_is_published(
    server: Server, vendor: Vendor
) -> None:
    path = "/admin/api/configs/default/vendor_accounts/drafts/try"
    value = {"platform": "openai", "base_url": vendor.url, "api_key": {"secret": True}}
    body = {"value": value, "text": "Hello", "model": "say:The key works"}
    status, answer = await call(server, "POST", path, body)
    found = answer["strategy"]
    assert (status, found["text"], found["platform"]) == (200, "The key works", "vendor_b_llm")
    _, answer = await call(server, "POST", path, {**body, "model": "refuse:401"})
    assert "401" in answer["error"]
    moved = {**body, "value": {**value, "base_url": f"{vendor.url}/other"}}
    status, answer = await call(server, "POST", path, moved)
    assert (status, answer["error"]["message"].split(",")[0]) == (
        400, "invalid_parameter: value.api_key must be given again",
    ), "a stored key is sent only to the server for which it was stored"  # fmt: skip
    status, answer = await call(server, "POST", path, {**body, "value": {"platform": "elevenlabs"}})
    assert (status, answer["error"]["message"]) == (
        422, "config_invalid: vendor_accounts drafts: platform vendor_c offers no chat",
    )  # fmt: skip


async def test_a_sink_gets_a_test_event(server: Server, vendor: Vendor) -> None:
    path = "/admin/api/configs/default/events/draft/try"
    value = {"url": f"{vendor.url}/nowhere", "secret": f"whsec_{'A' * 32}", "events": ["asset"]}
    status, answer = await call(server, "POST", path, {"value": value, "text": "Hello"})
    assert (status, "404" in answer["error"]) == (200, True)
    sink = {"stream": "drafts", "events": ["asset"]}
    status, answer = await call(server, "POST", path, {"value": sink, "text": "Hello"})
    assert (status, set(answer)) == (200, {"elapsed_ms"})
