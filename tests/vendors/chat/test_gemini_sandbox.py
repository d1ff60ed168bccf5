"""The Gemini client against the sandbox."""

from typing import Any

import pytest
from pydantic import SecretStr

from streams.wire.codec import dumps, loads
from tests.vendors.sandbox_calls import AT, BROKEN, Open, calls, check_refusal, left_while_waiting, outcome
from vendors.account import Account, ChatSpec
from vendors.chat.gemini import GeminiChat
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.outgoing import Outgoing
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatMessage, Finish, Usage
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.server import Running

ASKED = [ChatMessage("system", "Be kind."), ChatMessage("user", "repeat 5 words")]
FIVE = "word1 word2 word3 word4 word5"
MODELS = "/gemini/v1beta/models"


@pytest.fixture
def call(http: VendorHttp, sandbox: Running) -> Open:
    def reply(key: str, messages: list[ChatMessage] = ASKED, **spec: object):
        account = Account("main", "gemini", f"{sandbox.url}/gemini/v1beta", SecretStr(key))
        return GeminiChat(http, account, ChatSpec(**{"model": "gemini-2.5-flash", **spec})).reply(messages)

    return reply


async def test_complete_answers_are_parsed(call: Open, sandbox: Running):
    found = await outcome(call("k1"))

    assert (found.text, found.error) == (FIVE, None)
    assert found.items[-2:] == [Usage(5, 5), Finish("stop")]
    (entry,) = calls(sandbox)
    assert (entry.vendor, entry.stage, entry.how) == ("gemini", "llm", "done")
    assert entry.billed == {"input_tokens": 5, "output_tokens": 5}


async def test_answers_cut_at_the_token_limit_are_reported(call: Open):
    found = await outcome(call("k1", max_tokens=2))

    assert found.text == "word1 word2 "
    assert found.items[-2:] == [Usage(5, 2), Finish("length")]


async def test_reasoning_is_billed_but_not_part_of_the_answer(call: Open):
    thinking = {"generation": {"thinkingConfig": {"includeThoughts": True}}}

    found = await outcome(call("k1", options=thinking))

    assert found.text == FIVE
    assert found.items[-2:] == [Usage(5, 8), Finish("stop")]


async def test_unfinished_answers_are_continued_if_the_model_supports_it(call: Open):
    begun = [*ASKED, ChatMessage("assistant", "word1 word2")]

    assert (await outcome(call("k1", begun))).text == " word3 word4 word5"
    refused = await outcome(call("k1", begun, model="gemini-3.5-flash"))
    assert "Requests ending with a model turn are not supported" in str(refused.error)


@pytest.mark.parametrize(
    ("fault", "status", "retryable", "tries"),
    [
        (Fault.UNAUTHORIZED, 400, False, 1),
        (Fault.OUT_OF_QUOTA, 403, False, 1),
        (Fault.RATE_LIMITED, 429, True, 1),
        (Fault.SERVER_ERROR, 500, True, 2),
        (Fault.UNAVAILABLE, 503, True, 2),
    ],
)
async def test_refusals_are_reported_with_their_status(
    call: Open, sandbox: Running, fault: Fault, status: int, *, retryable: bool, tries: int
):
    await check_refusal(call, sandbox, fault, status=status, retryable=retryable, tries=tries)


@pytest.mark.parametrize(("position", "outputs"), AT)
@pytest.mark.parametrize(("fault", "error"), BROKEN)
async def test_errors_within_the_answer_are_reported(
    call: Open, fault: Fault, error: type[VendorError], position: str, outputs: int
):
    found = await outcome(call(key_of(fault=fault, position=position)))

    assert isinstance(found.error, error)
    assert found.error.retryable is (error is not Garbled)
    assert found.text == "word1 " * outputs
    assert found.kinds(Usage, Finish) == []


async def test_invalid_empty_and_slow_answers_are_distinguished(call: Open, sandbox: Running):
    assert isinstance((await outcome(call(""))).error, Refused)
    assert isinstance((await outcome(call(key_of(fault=Fault.WRONG_CONTENT_TYPE)))).error, Garbled)
    assert (await outcome(call(key_of(fault=Fault.EMPTY_ANSWER)))).items == [Usage(5, 0), Finish("stop")]
    assert (await outcome(call(key_of(fault=Fault.SLOW_DRIP, pace_ms=1)))).text == FIVE
    assert (await outcome(call(key_of(fault=Fault.UNAVAILABLE, times=1)))).text == FIVE


@pytest.mark.parametrize(
    ("fault", "outputs"),
    [(Fault.HANG_BEFORE_HEADERS, 0), (Fault.HANG_BEFORE_OUTPUT, 0), (Fault.STALL_MID_STREAM, 1)],
)
async def test_leaving_a_waiting_call_closes_it(call: Open, sandbox: Running, fault: Fault, outputs: int):
    found, entry = await left_while_waiting(sandbox, call, fault, outputs=outputs)

    assert (found.text, found.error) == ("word1 " * outputs, None)
    assert (entry.how, entry.closed_ms) == ("closed_by_client", entry.ended)


async def test_a_reader_that_stops_early_closes_the_connection(call: Open, sandbox: Running):
    async with call(key_of(pace_ms=60_000)) as items:
        assert (await anext(items)).text == "word1 "

    assert (await sandbox.bill.wait()).how == "closed_by_client"


async def raw(http: VendorHttp, sandbox: Running, method: str, **requested: Any) -> bytes:
    body = {"contents": [{"parts": [{"text": "repeat 2 words"}]}], **requested}
    url = f"{sandbox.url}{MODELS}/gemini-2.5-flash:{method}"
    async with http.stream(Outgoing("gemini", url, headers={"X-Goog-Api-Key": "k1"}, body=dumps(body))) as answer:
        return b"".join([piece async for piece in answer.pieces()])


async def test_the_sandbox_also_sends_complete_and_array_responses(http: VendorHttp, sandbox: Running):
    whole = loads(await raw(http, sandbox, "generateContent"))
    chunks = loads(await raw(http, sandbox, "streamGenerateContent"))

    assert whole["candidates"][0]["content"]["parts"] == [{"text": "word1 word2"}]
    said = [chunk["candidates"][0]["content"].get("parts", [{"text": ""}])[0]["text"] for chunk in chunks]
    assert said == ["word1 ", "word2", ""]
    assert chunks[-1]["usageMetadata"] == whole["usageMetadata"]


@pytest.mark.parametrize(
    ("requested", "reported"),
    [
        ({"tempo": 1}, 'Unknown name "tempo"'),
        ({"contents": []}, "contents is not specified"),
        ({"contents": [{"role": "system", "parts": [{"text": "a"}]}]}, "Please use a valid role"),
        ({"contents": [{"parts": [{"text": ""}]}]}, "must not be empty"),
        ({"contents": [{"parts": [{"text": "a"}]}] * 2}, "alternate between user and model"),
        ({"generation_config": {"temperature": 3}}, "temperature"),
        ({"generationConfig": {"maxOutputTokens": 0}}, "maxOutputTokens"),
        ({"generationConfig": 1}, "generationConfig"),
    ],
)
async def test_the_sandbox_refuses_what_the_vendor_refuses(
    http: VendorHttp, sandbox: Running, requested: dict[str, Any], reported: str
):
    with pytest.raises(Refused, match="answered 400") as fault:
        await raw(http, sandbox, "generateContent", **requested)
    assert reported in str(fault.value)
