"""Events that say that an answer has failed, in the many forms of servers that offer a vendor's protocol."""

from typing import Any

import pytest

from tests.app.ai.attempts.odd_events import DONE, END, STOPPED, block, candidate, delta, event, said_by
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import chat
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


HELLO = {"vendor_b_llm": delta("Hello."), "anthropic": block("Hello."), "gemini": candidate("Hello.", None)}
MARKS = {"vendor_b_llm": DONE, "anthropic": event(type="message_stop"), "gemini": ""}
REASONS = {"vendor_b_llm": END, "anthropic": STOPPED, "gemini": candidate("")}

ONE_OF_EACH_KIND = [
    ("vendor_b_llm", event(object="error", message="boom", type="InternalServerError", code=500)),
    ("vendor_b_llm", event(text="boom", error_code=50001)),
    ("vendor_b_llm", "event: error\n" + event(message="boom")),
    ("vendor_b_llm", "event: error\ndata: boom\n\n"),
    ("vendor_b_llm", event(detail="boom")),
    ("vendor_b_llm", event(choices=None, base_resp={"status_code": 1002, "status_msg": "boom"})),
    ("vendor_b_llm", event(choices=[], code="Throttling", message="boom")),
    ("anthropic", event(type="error", message="boom")),
    ("anthropic", event(code=500, message="boom")),
    ("gemini", event(code=500, message="boom")),
    ("gemini", "event: error\n" + event(message="boom")),
]


async def check_error(talk: Talk, server: Server, sandbox: Running, platform: str, failed: str) -> dict[str, Any]:
    """Return the error with which an answer ends."""
    body = HELLO[platform] + failed + MARKS[platform]
    await chat(server, sandbox, "one", platform, key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("error", "Hello."), (failed, seen[-1])
    error: dict[str, Any] = seen[-1].content["error"]
    assert error["message"].endswith("broke off with an error: boom"), failed
    return error


@pytest.mark.parametrize(("platform", "failed"), ONE_OF_EACH_KIND)
async def test_an_error_in_any_form_ends_an_answer_after_its_text(
    talk: Talk, server: Server, sandbox: Running, platform: str, failed: str
) -> None:
    await check_error(talk, server, sandbox, platform, failed)


FORMS: list[dict[str, Any]] = [
    {"code": 500, "message": "boom"}, {"code": "500", "msg": "boom"}, {"type": "error", "message": "boom"},
    {"object": "error", "message": "boom", "code": 40303}, {"error_code": 336103, "error_msg": "boom"},
    {"errorCode": "X1", "errorMessage": "boom"}, {"status": 503, "message": "boom"}, {"detail": "boom"},
    {"status_code": 429, "detail": "boom"}, {"base_resp": {"status_code": 1002, "status_msg": "boom"}},
    {"success": False, "message": "boom"}, {"code": "InvalidParameter", "message": "boom", "request_id": "r1"},
]  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("platform", HELLO)
@pytest.mark.parametrize("form", FORMS)
async def test_errors_have_many_forms(
    talk: Talk, server: Server, sandbox: Running, platform: str, form: dict[str, Any]
) -> None:
    await check_error(talk, server, sandbox, platform, event(**form))
    await check_error(talk, server, sandbox, platform, "event: error\n" + event(**form))


HARMLESS: list[dict[str, Any]] = [
    {"code": 0, "message": "success"}, {"code": 200, "msg": "OK"}, {"detail": None},
    {"base_resp": {"status_code": 0, "status_msg": ""}}, {"message": "You are number 3 in the queue."},
    {"status": "processing", "message": "queued"},
    {"object": "chat.completion.chunk", "usage": None, "created": 1}, {"error_code": 0, "error_msg": ""},
    {"code": 202, "message": "accepted"}, {"success": True, "message": "done"}, {"type": "ping"},
    {"x_groq": {"id": 1}},
]  # fmt: skip


@pytest.mark.parametrize("platform", HELLO)
async def test_events_that_report_no_error_end_no_answer(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    chunks = "".join(delta("").replace("{", f"{{{event(**form)[7:-3]},", 1) for form in (*HARMLESS, *FORMS))
    harmless = "".join(event(**form) for form in HARMLESS) + (chunks if platform == "vendor_b_llm" else "")
    body = HELLO[platform] + harmless + REASONS[platform] + MARKS[platform]
    await chat(server, sandbox, "one", platform, key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]


@pytest.mark.parametrize("platform", HELLO)
async def test_an_error_behind_the_end_of_an_answer_does_not_matter(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    body = HELLO[platform] + REASONS[platform] + event(code=500, message="boom")
    await chat(server, sandbox, "one", platform, key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]


@pytest.mark.parametrize(
    ("platform", "form", "retryable"),
    [
        ("vendor_b_llm", {"code": 500, "message": "boom"}, True),
        ("vendor_b_llm", {"error_code": 429, "error_msg": "boom"}, True),
        ("vendor_b_llm", {"object": "error", "code": 401, "message": "boom"}, False),
        ("vendor_b_llm", {"base_resp": {"status_code": 1002, "status_msg": "boom"}}, True),
        ("anthropic", {"code": 503, "message": "boom"}, True),
        ("anthropic", {"code": 400, "message": "boom"}, False),
        ("gemini", {"code": 503, "message": "boom"}, True),
        ("gemini", {"code": 400, "message": "boom"}, False),
    ],
)
async def test_the_code_of_an_error_says_whether_to_try_again(
    talk: Talk, server: Server, sandbox: Running, *, platform: str, form: dict[str, Any], retryable: bool
) -> None:
    error = await check_error(talk, server, sandbox, platform, event(**form))

    assert error["extra"]["retryable"] is retryable
