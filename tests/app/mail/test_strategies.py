"""Configs of strategies are checked when they are written."""

from typing import Any

import pytest

from tests.app.callers import ask
from tests.app.mail.hub import Hub
from tests.app.operators import Operator


async def test_variables_that_stay_empty_are_warned_of(hub: Hub):
    operator = Operator(hub.server)
    value = {
        "subject": "{{.CustomVariables.name}} {{.Title}} {{.App}} {{.CustomVariables.user.age}}",
        "html": '<img src="{{.CustomVariables.TrackingPixelURL}}"> {{env "HOME"}} {{.CustomVariables.nmae}}',
        "text": "{{.CustomVariables.name}} {{.UnsubscribeURL}} {{.Email}} {{.CustomVariables}}",
        "variables": ["name", "user"],
        "mail_accounts": ["inbox"],
    }
    stored = await operator.put("configs/default/mail/careless", value)
    assert (stored.status, stored.body["warnings"]) == (
        200,
        [
            {"path": "subject", "message": "shows {{.Title}}, which is always empty"},
            {"path": "html", "message": "shows {{.CustomVariables.nmae}}, and variables does not contain nmae"},
            {"path": "html", "message": "contains {{ where no variable begins, which is sent as it is"},
            {"path": "text", "message": "shows {{.CustomVariables}}, which is always empty"},
        ],
    )
    welcome = await operator("GET", "configs/default/mail/welcome")
    assert "warnings" not in welcome.body


@pytest.mark.parametrize(
    ("url", "is_warned"),
    [
        ("https://app.example{{.CustomVariables.name}}", True),
        ("https://app.example:{{ .CustomVariables.name }}/x", True),
        ("//{{.CustomVariables.name}}.app.example/", True),
        ("https://app.example/{{.CustomVariables.name}}", False),
        ("https://app.example?name={{.CustomVariables.name}}", False),
        ("{{.CustomVariables.name}}", False),
        ("https:{{.CustomVariables.name}}", True),
        ("HTTPS:\\\\{{.CustomVariables.name}}", True),
        ("\\\\app{{.CustomVariables.name}}", True),
        ("https:app.example/{{.CustomVariables.name}}", False),
        ("Your note: {{.CustomVariables.name}}", False),
    ],
)
async def test_a_variable_that_chooses_the_host_of_a_url_is_warned_of(hub: Hub, url: str, is_warned: bool):
    operator, html = Operator(hub.server), f'<a href="{url}">Open</a>'
    value = {"subject": "News", "html": html, "variables": ["name"], "mail_accounts": ["inbox"]}
    stored = await operator.put("configs/default/mail/linked", value)
    assert [warning["path"] for warning in stored.body.get("warnings", [])] == ["html"] * is_warned
    template = {"subject": "{{.Code}}", "text": f"{{{{.Code}}}} {url}"}
    email = {"mail_accounts": ["inbox"], "templates": {"login_email": template}}
    _, reply = await validated(hub, "email/default", email)
    assert [warning["path"] for warning in reply["warnings"]] == ["templates.login_email.default.text"] * is_warned


@pytest.mark.parametrize(
    ("html", "is_warned"),
    [
        ('<a href="{{.CustomVariables.name}}/y">Open</a>', True),
        ("<a HREF = ' {{.CustomVariables.name}}\n/y'>Open</a>", True),
        ("<a href={{.CustomVariables.name}}.example>Open</a>", True),
        ('<img src="{{.CustomVariables.name}}&amp;x=1">', True),
        ("<p style='background: url({{.CustomVariables.name}}/y)'>Hello</p>", True),
        ("[Open]({{.CustomVariables.name}}/y)", True),
        ('<a href="{{.CustomVariables.name}}?from=mail#top">Open</a>', False),
        ("<a href={{.CustomVariables.name}} id=open>Open</a>", False),
        ("<a href={{.CustomVariables.name}}>Open</a>", False),
        ("[Open]({{.CustomVariables.name}})", False),
        ('<a href="/y/{{.CustomVariables.name}}/y">{{.CustomVariables.name}}/y</a>', False),
        ('<img src="{{.CustomVariables.TrackingPixelURL}}&amp;x=1">', False),
        ("<p>{{.CustomVariables.name}}{{.CustomVariables.TrackingPixelURL}}</p>", False),
        ("<p>{{.CustomVariables.name}} {{.CustomVariables.name}}</p>", False),
        ("<p>{{.CustomVariables.name}}.{{ .CustomVariables.name }}</p>", True),
        ("<p>{{.CustomVariables.name}}{{.CustomVariables.name}}</p>", True),
    ],
)
async def test_variables_that_form_a_link_with_what_follows_are_warned_of(hub: Hub, html: str, is_warned: bool):
    value = {"subject": "News", "html": html, "variables": ["name"], "mail_accounts": ["inbox"]}
    _, reply = await validated(hub, "mail/linked", value)
    assert [warning["path"] for warning in reply.get("warnings", [])] == ["html"] * is_warned


async def validated(hub: Hub, config: str, value: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {hub.server.services.settings.admin_token.get_secret_value()}"}
    url = f"/admin/api/configs/default/{config}/validate"
    return await ask(hub.server, "POST", url, json={"value": value}, headers=headers)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"subject": "a\r\nBcc: eve@example.com"}, "subject"),
        ({"subject": ""}, "subject"),
        ({"html": "", "text": ""}, ""),
        ({"from": "a@example.com\nBcc: b@example.com"}, "from"),
        ({"reply_to": "a@example.com, b@example.com"}, "reply_to"),
        ({"reply_to": "jörg@example.com"}, "reply_to"),
        ({"from": "Team: a@example.com;"}, "from"),
        ({"mail_accounts": []}, "mail_accounts"),
        ({"variables": ["a b"]}, "variables[0]"),
        ({"url_hosts": ["https://example.com"]}, "url_hosts[0]"),
        ({"list_unsubscribe": "http://example.com/"}, "list_unsubscribe"),
        ({"list_unsubscribe": "https://example.com/>\r\nBcc: b@example.com"}, "list_unsubscribe"),
        ({"track": "yes"}, "track"),
    ],
)
async def test_a_strategy_that_cannot_be_used_is_refused_when_it_is_written(hub: Hub, fields: Any, path: str):
    value = {"subject": "Hi", "text": "Hello", "mail_accounts": ["inbox"]} | fields
    _, reply = await validated(hub, "mail/x", value)
    assert (reply["valid"], reply["errors"][0]["path"]) == (False, path)
