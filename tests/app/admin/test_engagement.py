"""A draft of an email is previewed with its variables and sent as a test. Tasks are listed with their ids."""

import pytest

from storage.operators.audit import COMMAND
from tests.app.operator_calls import call
from tests.running.servers import Server

MAIL = {
    "subject": "Hello {{.CustomVariables.name}}",
    "text": "Dear {{.Email}}",
    "html": "<p>{{.CustomVariables.name}}</p>",
}


@pytest.fixture
async def server(shared_server: Server) -> Server:
    value = {"host": "127.0.0.1", "port": 1, "tls": "none", "from": "a@example.com"}
    configs = shared_server.services.configs
    await configs.put("default", "mail_accounts", "drafts", value, author="test", origin=COMMAND)
    return shared_server


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
