"""The cases that both clients share."""

from contextlib import nullcontext

import jwt
import pytest

from app.http.callers import signatures
from parley_client import (
    ParleyClient,
    ParleyError,
    ServerKey,
    StreamDigest,
    WebhookRefused,
    server_token,
    sign,
    verify_webhook,
)
from parley_client.streams.digest import Digest
from parley_client.streams.events import Event, read_event
from parley_client.streams.sse import SseEvent, SseParser
from streams.wire.codec import dumps
from tests.clients.cases import cases, named
from tests.clients.python.conftest import PROMPT
from tests.clients.scripted_server import scripted_server

UNTIMED = {"verify_exp": False, "verify_aud": False}


@pytest.mark.parametrize("case", **named(cases("signatures")["requests"]))
def test_a_signature_is_that_of_the_case_and_proves_the_request_to_the_server(case: dict) -> None:
    key, method, target, body = case["key"], case["method"], case["target"], case["body"].encode()
    header = sign(key, method, target, body, t=case["t"], nonce=case["nonce"])
    assert header == case["header"]
    parsed = signatures.parse(header)
    assert parsed is not None
    assert parsed.proves([key], method=method, path_and_query=target, body=body)


def test_each_signature_has_a_nonce_of_its_own() -> None:
    parsed = [signatures.parse(sign("key", "GET", "/")) for _ in range(2)]
    assert len({signature.nonce for signature in parsed if signature}) == 2


@pytest.mark.parametrize("case", **named(cases("sse")))
def test_events_are_read_from_bytes(case: dict) -> None:
    parser = SseParser()
    seen = [event for piece in case["pieces"] for event in parser.feed(piece.encode("latin-1"))]
    assert [[event.id, event.name, event.data] for event in seen] == case["events"]


@pytest.mark.parametrize("case", **named(cases("sse")))
def test_events_are_the_same_however_the_bytes_are_cut(case: dict) -> None:
    sent = "".join(case["pieces"]).encode("latin-1")
    for size in range(1, len(sent) + 1):
        parser = SseParser()
        cut = [sent[begin : begin + size] for begin in range(0, len(sent), size)]
        seen = [event for piece in cut for event in parser.feed(piece)]
        assert [[event.id, event.name, event.data] for event in seen] == case["events"], size


@pytest.mark.parametrize("case", **named(cases("digests")))
def test_a_digest_covers_all_text_and_audio(case: dict) -> None:
    digest = Digest()
    for number, (name, content) in enumerate(case["events"], 1):
        event = read_event(SseEvent(str(number), name, dumps({"content": content, "timestamp": 0}).decode()))
        assert isinstance(event, Event)
        digest.add(event)
    assert digest.value() == StreamDigest(**case["digest"])


@pytest.mark.parametrize("case", **named(cases("replies")))
async def test_a_reply_is_an_object_or_an_error(case: dict) -> None:
    async with scripted_server([case] * 3) as scripted, ParleyClient(scripted.url, backoff=PROMPT) as client:
        if "error" not in case:
            assert (await client.user())["uid"] == case["uid"]
        else:
            with pytest.raises(ParleyError) as raised:
                await client.user()
            assert {name: getattr(raised.value, name) for name in case["error"]} == case["error"]
    assert len(scripted.asked) == case["asked"]


@pytest.mark.parametrize("case", **named(cases("signatures")["server_tokens"]))
def test_a_server_token_has_the_claims_of_the_case(case: dict) -> None:
    key = ServerKey(case["kid"], case["alg"], case["key"])
    optional = {name: case[name] for name in ("user_id", "scope", "audience") if name in case}
    made = server_token(
        key, case["app_id"], lifetime_s=case["lifetime_s"], now=case["now"], jti=case["jti"], **optional
    )
    assert jwt.get_unverified_header(made) == case["header"]
    assert jwt.decode(made, case["key"], algorithms=[case["alg"]], options=UNTIMED) == case["claims"]


@pytest.mark.parametrize("case", **named(cases("signatures")["webhooks"]))
def test_a_webhook_is_accepted_only_if_parley_has_called_it(case: dict) -> None:
    refused = pytest.raises(ValueError if case.get("fault") == "secret" else WebhookRefused)
    with nullcontext() if case["valid"] else refused:
        event = verify_webhook(case["headers"], case["body"].encode(), case["secrets"], now=case["now"])
        assert event["event"] == "account"


@pytest.mark.parametrize("changed", [{"webhook-timestamp": "9" * 5_000}, {"webhook-id": "msg_\udcff"}])
def test_headers_that_a_web_framework_lets_pass_are_refused(changed: dict) -> None:
    case = cases("signatures")["webhooks"][0]
    with pytest.raises(WebhookRefused):
        verify_webhook(case["headers"] | changed, case["body"].encode(), case["secrets"], now=case["now"])
