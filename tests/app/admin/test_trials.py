"""A draft is tried before it is published: a strategy with its vendor, and an email with its variables."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.operator_calls import call
from tests.peers.vendor import Vendor, running_vendor
from tests.running.servers import Server

MAIL = {
    "subject": "Hello {{.CustomVariables.name}}",
    "text": "Dear {{.Email}}",
    "html": "<p>{{.CustomVariables.name}}</p>",
}


@pytest.fixture
async def vendor() -> AsyncIterator[Vendor]:
    async with running_vendor() as running:
        yield running


@pytest.fixture
async def server(shared_server: Server, vendor: Vendor) -> Server:
    configs = shared_server.services.configs
    for kind, name, value in (
        ("vendor_accounts", "drafts", {"platform": "vendor_b_llm", "base_url": vendor.url, "api_key": "sk-test"}),
        ("mail_accounts", "drafts", {"host": "127.0.0.1", "port": 1, "tls": "none", "from": "a@example.com"}),
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
    assert (answer["text"], answer["platform"], "error" in answer) == ("Here I am", "vendor_b_llm", False)
    assert answer["events"][0]["event"] == "text"
    assert 0 <= answer["first_output_ms"] <= answer["elapsed_ms"]
    assert float(answer["price"]) == answer["input_units"] * 0.5 + answer["output_units"] * 2
    _, listed = await call(server, "GET", "/admin/api/configs?kind=conversation&text=draft")
    assert "draft" not in [row["name"] for row in listed["configs"]]
    _, audit = await call(server, "GET", "/admin/api/audit?action=config.try&kind=conversation")
    row = audit["changes"][0]
    assert (row["actor"], row["name"], row["reason"], "Hello" in str(row)) == ("root", "draft", "a test", False)


async def test_what_a_vendor_refuses_is_part_of_the_reply(server: Server) -> None:
    status, answer = await tried(server, "echo")
    assert (status, answer["text"]) == (200, "")
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
    assert (status, answer["text"], answer["platform"]) == (200, "The key works", "vendor_b_llm")
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
    assert (status, "error" in answer, answer["platform"]) == (200, False, "events")


async def test_an_email_is_previewed_with_its_variables(server: Server) -> None:
    body = {"value": {**MAIL, "mail_accounts": ["drafts"]}, "variables": {"name": "<b>Ada</b>"}}
    status, answer = await call(server, "POST", "/admin/api/mails/default/draft/preview", body)
    assert status == 200, answer
    assert (answer["subject"], answer["text"]) == ("Hello <b>Ada</b>", "Dear reader@example.com")
    assert answer["html"] == "<p>&lt;b&gt;Ada&lt;/b&gt;</p>"
    assert answer["variables"] == ["CustomVariables.name", "Email"]
    status, answer = await call(server, "POST", "/admin/api/mails/default/draft/preview", {"value": {}})
    assert (status, "value." in answer["error"]["message"]) == (400, True)


async def test_a_test_email_is_a_job_and_audited(server: Server) -> None:
    body = {"value": {**MAIL, "mail_accounts": ["drafts"]}, "variables": {}, "to": "ada@example.com"}
    path = "/admin/api/mails/default/draft/test"
    assert (await call(server, "POST", path, {**body, "to": "nobody"}))[0] == 400
    assert (await call(server, "POST", path, body, reason=""))[0] == 400
    assert await call(server, "POST", path, body) == (200, {})
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from procrastinate_jobs where task_name = 'send_mail'") == 1
    _, audit = await call(server, "GET", "/admin/api/audit?action=mail.test")
    assert audit["changes"][0]["name"] == "draft"
    assert "ada@example.com" not in str(audit)
    _, listed = await call(server, "GET", "/admin/api/mails")
    assert listed["mails"] == []


async def test_tasks_are_listed_with_their_ids_at_the_host(server: Server) -> None:
    uid, _ = await server.login()
    async with server.services.database.connection() as conn:
        await conn.execute(
            "insert into predictions (prediction_id, app_id, uid, strategy, account, body, is_awaited, host_id,"
            " status, error, created_at, ended_at)"
            " values ($1, 'default', $1, 'art', 'a', '{}', false, 'h', 'failed', 'out of memory', now(), now())",
            uid,
        )
    _, found = await call(server, "GET", "/admin/api/predictions?app=default&strategy=art&status=failed")
    [task] = found["tasks"]
    assert (task["host_id"], task["error"], task["user_id"]) == ("h", "out of memory", uid)
    assert (await call(server, "GET", "/admin/api/predictions?status=succeeded"))[1]["tasks"] == []
    assert (await call(server, "GET", "/admin/api/image_tasks?app=default"))[1]["tasks"] == []
