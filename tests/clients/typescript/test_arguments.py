"""What the TypeScript client does with arguments that the server would not understand."""

import pytest

from streams.wire.codec import loads
from tests.clients.cases import cases
from tests.clients.scripted_server import recording_server
from tests.clients.typescript.program import ClientError, Program

STREAM = "0" * 32


async def test_a_base_url_is_checked_at_once(program: Program) -> None:
    for case in cases("arguments")["base_urls"]:
        made = program.do("client", name="user", url=case["url"])
        if case["valid"]:
            await made
            continue
        with pytest.raises(ClientError, match="TypeError: base URL must be like https://"):
            await made


async def test_an_id_is_one_part_of_the_path(program: Program) -> None:
    async with recording_server() as (url, asked):
        await program.do("client", name="user", url=url)
        for case in cases("arguments")["ids"]:
            asked.clear()
            deleted = program.call("deleteConversation", case["id"])
            if "part" in case:
                await deleted
                assert [one.target for one in asked] == [f"/bp/ai/conversation/{case['part']}"], case["name"]
                continue
            await refused(deleted)
            await refused(program.do("interruptStream", streamId=case["id"], heardMs=0))
            assert asked == [], case["name"]
        await refused(program.call("deleteConversation"))
        await refused(program.call("images.read", ".."))


async def test_measured_times_are_sent_as_whole_numbers(program: Program) -> None:
    async with recording_server() as (url, asked):
        await program.do("client", name="user", url=url)
        for case in cases("arguments")["times"]:
            asked.clear()
            given = {"number": case["given"]}
            interrupted = program.do("interruptStream", streamId=STREAM, heardMs=given)
            begun = program.do("converse", turnDetection={"silence_ms": given})
            if "sent" not in case:
                await refused(interrupted)
                await refused(begun)
                await refused(program.call("images.imagine", "one", {}, {"waitS": given}))
                assert asked == [], case["name"]
                continue
            await interrupted
            with pytest.raises(ClientError, match="not a stream"):
                await begun
            assert asked[0].target == f"/bp/ai/stream/{STREAM}?heard_ms={case['sent']}", case["name"]
            detection = loads(asked[1].body.removesuffix(b"Hello"))["turn_detection"]
            assert detection == {"silence_ms": case["sent"]}, case["name"]


async def test_a_wait_for_an_image_is_a_whole_number_of_seconds(program: Program) -> None:
    async with recording_server() as (url, asked):
        await program.do("client", name="user", url=url)
        await program.call("images.imagine", "one", {}, {"waitS": 1.5})
    assert asked[0].headers["Prefer"] == "wait=2"


async def test_a_number_that_json_has_not_is_not_sent_as_null(program: Program) -> None:
    async with recording_server() as (url, asked):
        await program.do("client", name="user", url=url)
        await refused(program.call("leaderboards.upload", "weekly", {"number": "NaN"}))
        await refused(program.call("sharing.code", {"quota": {"number": "Infinity"}}))
        await refused(program.call("history", "0190a", {"size": {"number": "NaN"}}))
        await refused(program.do("converse", params={"price": {"number": "NaN"}}))
    assert asked == []


async def test_the_body_of_a_webhook_is_what_has_arrived(program: Program) -> None:
    case = cases("signatures")["webhooks"][0]
    given = {name: case[name] for name in ("headers", "secrets", "now")}
    with pytest.raises(ClientError, match="TypeError: body must be the raw bytes or text, not a parsed object"):
        await program.do("webhook", body=loads(case["body"].encode()), **given)


async def refused(call: object) -> None:
    with pytest.raises(ClientError) as raised:
        await call  # type: ignore[misc]
    error = raised.value.error
    assert (error["errorType"], error["status"], error["retryable"]) == ("invalid_parameter", None, False)
