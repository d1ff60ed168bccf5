"""The cases that both clients share."""

from typing import Any

import jwt
import pytest

from streams.wire.codec import dumps
from tests.clients.cases import cases, named
from tests.clients.scripted_server import BRIEF, scripted_server
from tests.clients.typescript.conftest import PROMPT
from tests.clients.typescript.flows import camel
from tests.clients.typescript.program import ClientError, Program, Reading, sent
from tests.streams.audio.pcm_samples import tone


async def test_signatures_are_those_of_the_cases(program: Program) -> None:
    for case in cases("signatures")["requests"]:
        fields = {name: case[name] for name in ("key", "t", "nonce", "method", "target", "body")}
        assert await program.do("sign", **fields) == case["header"], case["name"]


async def test_server_tokens_have_the_claims_of_the_cases(program: Program) -> None:
    for case in cases("signatures")["server_tokens"]:
        given = {name: value for name, value in case.items() if name not in {"name", "header", "claims"}}
        made = await program.do("token", **given)
        assert jwt.get_unverified_header(made) == case["header"], case["name"]
        unchecked = {"verify_exp": False, "verify_iat": False, "verify_aud": False}
        claims = jwt.decode(made, case["key"], algorithms=[case["alg"]], options=unchecked)
        assert claims == case["claims"], case["name"]


async def test_webhooks_are_accepted_only_if_parley_has_called_them(program: Program) -> None:
    for case in cases("signatures")["webhooks"]:
        given = {name: case[name] for name in ("headers", "body", "secrets", "now")}
        if case["valid"]:
            assert (await program.do("webhook", **given))["event"] == "account", case["name"]
            continue
        with pytest.raises(ClientError) as refused:
            await program.do("webhook", **given)
        expected = "TypeError" if case.get("fault") == "secret" else "WebhookRefused"
        assert refused.value.error["name"] == expected, case["name"]


async def test_events_are_read_from_bytes(program: Program) -> None:
    for case in cases("sse"):
        assert await program.do("sse", pieces=case["pieces"]) == case["events"], case["name"]
        bytewise = [byte for piece in case["pieces"] for byte in piece]
        assert await program.do("sse", pieces=bytewise) == case["events"], case["name"]


async def test_a_digest_covers_all_text_and_audio(program: Program) -> None:
    for case in cases("digests"):
        assert await program.do("digest", events=case["events"], digest=case["digest"]), case["name"]
        wrong = {**case["digest"], "sha256": "0" * 64}
        assert not await program.do("digest", events=case["events"], digest=wrong), case["name"]


async def test_a_reply_is_an_object_or_an_error(program: Program) -> None:
    for case in cases("replies"):
        async with scripted_server([case] * 3) as server:
            await program.do("client", name="user", url=server.url, options={"backoff": PROMPT})
            if "error" not in case:
                assert (await program.call("user"))["uid"] == case["uid"]
            else:
                with pytest.raises(ClientError) as raised:
                    await program.call("user")
                expected = camel(case["error"])
                assert {name: raised.value.error[name] for name in expected} == expected, case["name"]
        assert len(server.asked) == case["asked"], case["name"]


@pytest.mark.parametrize("case", **named(cases("streams")))
async def test_a_stream_is_read_and_resumed_as_in_the_case(program: Program, case: dict[str, Any]) -> None:
    async with scripted_server(case["responses"]) as server:
        await program.do("client", name="user", url=server.url, options={"backoff": PROMPT})
        turn = await begin(program, case.get("turn_detection"))
        if "error_type" in case:
            with pytest.raises(ClientError) as raised:
                await turn.ended()
            assert raised.value.error["errorType"] == case["error_type"]
        else:
            assert (await turn.ended())["end"]["finish_reason"] == case["finish_reason"]
        assert server.asked == case["asked"]
        assert len(server.keys) == 1
        assert await program.do("text") == case["text"]
        if "turn_detection" in case:
            assert dumps({"turn_detection": case["turn_detection"]})[1:-1] in server.spoken


@pytest.mark.parametrize("speak", [None, "Hello"])
async def test_a_stream_is_used_as_in_the_case(program: Program, speak: str | None) -> None:
    options = {"strategies": ["any"]} | ({} if speak else {"text": "Hello", "languageCode": "en-US"})
    for case in cases("uses"):
        async with scripted_server([BRIEF]) as server:
            await program.do("client", name="user", url=server.url)
            used = program.do("use", steps=case["steps"], options=options, speak=speak)
            if "error" not in case:
                assert await used == case["seen"], case["name"]
            else:
                with pytest.raises(ClientError) as raised:
                    await used
                error = raised.value.error
                assert (error["message"], error["errorType"]) == (case["error"], "invalid_operation"), case["name"]
                assert not error["retryable"]
        assert server.asked == case["asked"], case["name"]


async def begin(program: Program, turn_detection: Any) -> Reading:
    """Begin a turn with text, or with audio that never ends."""
    options = {"strategies": ["any"], "languageCode": "en-US"}
    if turn_detection is None:
        return program.read(options={**options, "text": "Hello"})
    turn = program.read(options={**options, "turnDetection": turn_detection}, says="audio")
    await program.do("piece", piece=sent(tone(0.1)))
    return turn
