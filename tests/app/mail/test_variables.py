"""What clients put into the variables of an email does not leak, inject or lead elsewhere."""

import asyncio
from json import dumps  # noqa: TID251 - unlike ours, it encodes lone surrogates

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.wire.lines import is_line
from tests.app.callers import ask, token, working
from tests.app.mail.hub import Hub, new_address
from tests.app.mail.written_urls import FOREIGN, HOST, PLAIN
from tests.waiting import until


async def test_templates_look_up_names_and_do_nothing_else(hub: Hub, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "xyzzy")
    odd = (
        '{{env "SECRET_OF_THE_SERVER"}}',
        "{{.CustomVariables.name.__class__}}",
        "{{.CustomVariables.__class__}}",
        "{{range .CustomVariables}}{{end}}",
        "{{.Settings}}",
        "{{.App.Keyring}}",
        "{{.CustomVariables.other}}",
    )
    text = "\n".join(f"[{name}]" for name in odd)
    await hub.strategy(text=text, html=f"<pre>{text}</pre>")
    ada = await hub.person()
    variables = {"name": "{{.Email}} {{.App}}", "other": "{{.Email}}", "__class__": "leaked"}
    assert await hub.send(ada, custom_variables=variables) == (200, {})
    mail = await hub.received(ada.email)
    assert mail["subject"] == "Hi {{.Email}} {{.App}}"
    shown = f"[{odd[0]}]\n[]\n[]\n[{odd[3]}]\n[]\n[]\n[]"
    assert mail["text"].strip() == shown
    assert "xyzzy" not in str(mail)
    assert "leaked" not in str(mail)


INJECTED = st.text(max_size=40) | st.tuples(
    st.text(max_size=5),
    st.sampled_from(["\r\n", "\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\r\n\r\n", "\x1c", "\x00", "\ud800"]),
    st.sampled_from(["Bcc: eve@example.org", "Subject: x", "", ".\r\nMAIL FROM:<x@example.com>", "<script>"]),
).map("".join)
CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
HEADERS = {
    "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type",
    "Content-Transfer-Encoding", "List-Unsubscribe", "List-Unsubscribe-Post",
}  # fmt: skip


async def test_no_value_adds_a_header_a_recipient_or_an_element(hub: Hub):
    ada, loop = await hub.person(with_email=False), asyncio.get_running_loop()

    @settings(max_examples=30)
    @given(value=INJECTED)
    def check_value(value: str) -> None:
        asyncio.run_coroutine_threadsafe(check(value), loop).result()

    async def all_are_sent() -> bool:  # Until then, the server sends no other one.
        return set(await hub.rows("status", ada.uid)) == {"sent"}

    async def check(value: str) -> None:
        to = new_address()
        data = dumps({"name": "news", "email_to": to, "custom_variables": {"name": value}})
        status, reply = await ask(
            hub.server, "POST", f"/bp/server/user/{ada.uid}/mail_hub/send", data=data, headers=token()
        )
        if status != 200:
            assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
            return
        await until(all_are_sent, within_s=10)
        [mail] = await hub.mails(to)
        assert mail["headers"].keys() <= HEADERS
        assert (mail["headers"]["To"], mail["html"].count("<")) == (to, 3)
        assert is_line(value)
        assert mail["subject"].split() == f"Hi {value}".split()

    async with working(hub.server.services):
        await asyncio.to_thread(check_value)


async def test_values_in_html_are_escaped(hub: Hub):
    ada = await hub.person()
    name = "<script>alert('1')</script>\"&"
    assert await hub.send(ada, custom_variables={"name": name}) == (200, {})
    html = (await hub.received(ada.email))["html"]
    assert "&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&quot;&amp;" in html


async def test_a_client_cannot_lead_the_reader_elsewhere(hub: Hub):
    await hub.strategy(url_hosts=[HOST], subject="News")
    ada, passed = await hub.person(), []
    for written in FOREIGN:
        status, reply = await hub.send(ada, custom_variables={"name": written.value})
        if status == 200:
            passed.append(written.value)
        else:
            assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter"), written.value
    assert passed == []
    status, reply = await hub.send(ada, custom_variables={"name": {"nested": FOREIGN[0].value}})
    assert "custom_variables.name may only lead to hosts" in reply["error"]["message"]


async def test_known_hosts_and_ordinary_texts_are_allowed(hub: Hub):
    others = ["Ada", 3, True, None, ["//x.example"], {"nested": "at 12:30"}]
    values = [*(written.value for written in PLAIN), *others]
    ada, names = await hub.person(), [f"v{index}" for index in range(64)]
    for index in range(0, len(values), len(names)):
        variables = dict(zip(names, values[index:], strict=False))
        strategy = await hub.strategy(f"plain_{index}", url_hosts=[HOST], subject="News", variables=names)
        variables["ignored" if len(variables) < len(names) else names[0]] = "https://good.example/"
        assert await hub.send(ada, strategy, custom_variables=variables) == (200, {})


@pytest.mark.parametrize(
    "name", ["A\u200dB\u200cC", "a\u00a0b", "\u5c71\u7530\u3000\u592a\u90ce", "a\u2003b\U0001f468\u200d\U0001f469"]
)
async def test_a_name_arrives_with_its_joiners_and_blanks(hub: Hub, name: str):
    ada = await hub.person()
    assert await hub.send(ada, custom_variables={"name": name}) == (200, {})
    mail = await hub.received(ada.email)
    assert mail["subject"] == f"Hi {name}"
    assert mail["text"].strip() == f"Hello {name}"
    assert f"<p>Hello {name}</p>" in mail["html"]


@pytest.mark.parametrize("char", ["\r", "\n", "\x00", "\x0b", "\x85", "\u2028", "\u2029"])
async def test_the_subject_has_no_line_breaks_and_no_controls(hub: Hub, char: str):
    ada = await hub.person()
    status, reply = await hub.send(ada, custom_variables={"name": f"a{char}b"})
    assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
