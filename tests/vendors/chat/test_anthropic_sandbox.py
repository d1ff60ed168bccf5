"""The Messages client with the sandbox, and the sandbox with the SDK of the vendor."""

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from tests.sampling import sampled
from tests.vendors.sandbox_calls import AT, BROKEN, Open, Outcome, calls, check_refusal, left_while_waiting, outcome
from vendors.account import Account, ChatSpec
from vendors.chat.anthropic import AnthropicChat
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatMessage, Finish, Usage
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.server import Running

if TYPE_CHECKING:
    import anthropic

SDK = pytest.mark.xdist_group("anthropic")  # One worker imports the SDK.

ASKED = [ChatMessage("system", "Be kind."), ChatMessage("user", "repeat 5 words")]
FIVE = "word1 word2 word3 word4 word5"


@pytest.fixture
def call(http: VendorHttp, sandbox: Running) -> Open:
    def reply(key: str, messages: list[ChatMessage] = ASKED, **spec: object):
        account = Account("main", "anthropic", f"{sandbox.url}/anthropic", SecretStr(key))
        model = AnthropicChat(http, account, ChatSpec(**{"model": "claude-haiku-4-5", **spec}))  # type: ignore[arg-type]
        return model.reply(messages)

    return reply


async def test_complete_answers_are_parsed(call: Open, sandbox: Running):
    found = await outcome(call("k1"))

    assert (found.text, found.error) == (FIVE, None)
    assert found.items[-2:] == [Usage(5, 5), Finish("stop")]
    (entry,) = calls(sandbox)
    assert (entry.vendor, entry.stage, entry.how) == ("anthropic", "llm", "done")
    assert entry.billed == {"input_tokens": 5, "output_tokens": 5}


async def test_answers_cut_at_the_token_limit_are_reported(call: Open):
    found = await outcome(call("k1", max_tokens=2))

    assert found.text == "word1 word2 "
    assert found.items[-2:] == [Usage(5, 2), Finish("length")]


async def test_unfinished_answers_are_continued(call: Open, sandbox: Running):
    for begun in ("word1 word2 ", "word1 word2"):
        found = await outcome(call("k1", [*ASKED, ChatMessage("assistant", begun)]))
        assert begun + found.text == FIVE
    assert all(entry.asked["prefill"] for entry in calls(sandbox))


async def test_the_newer_version_refuses_a_temperature(call: Open):
    newer = {"version": "2026-10-21"}

    assert (await outcome(call("k1", options=newer))).text == FIVE
    refused = await outcome(call("k1", options={**newer, "extra": {"temperature": 0.5}}))
    assert "temperature: Extra inputs are not permitted" in str(refused.error)


async def test_models_without_prefill_refuse_it(call: Open):
    found = await outcome(call("k1", [*ASKED, ChatMessage("assistant", "word1")], model="claude-opus-4-6"))

    assert isinstance(found.error, Refused)
    assert "does not support assistant message prefill" in str(found.error)


@pytest.mark.parametrize(
    ("fault", "status", "retryable", "tries"),
    [
        (Fault.UNAUTHORIZED, 401, False, 1),
        (Fault.OUT_OF_QUOTA, 402, False, 1),
        (Fault.RATE_LIMITED, 429, True, 1),
        (Fault.SERVER_ERROR, 500, True, 2),
        (Fault.UNAVAILABLE, 529, True, 2),
    ],
)
async def test_refusals_are_reported_with_their_status(
    call: Open, sandbox: Running, fault: Fault, status: int, *, retryable: bool, tries: int
):
    await check_refusal(call, sandbox, fault, status=status, retryable=retryable, tries=tries)


async def test_empty_keys_are_refused_and_one_error_is_retried(call: Open, sandbox: Running):
    assert (await outcome(call(""))).error is not None
    assert (await outcome(call(key_of(fault=Fault.SERVER_ERROR, times=1)))).text == FIVE
    assert [entry.how for entry in calls(sandbox)] == ["fault", "done"]


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


async def test_invalid_empty_and_slow_answers_are_distinguished(call: Open):
    assert isinstance((await outcome(call(key_of(fault=Fault.WRONG_CONTENT_TYPE)))).error, Garbled)
    assert (await outcome(call(key_of(fault=Fault.EMPTY_ANSWER)))).items == [Usage(5, 0), Finish("stop")]
    assert (await outcome(call(key_of(fault=Fault.SLOW_DRIP, pace_ms=1)))).text == FIVE


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


def sdk(sandbox: Running, key: str) -> "anthropic.AsyncAnthropic":
    import anthropic  # noqa: PLC0415 - slow to import, for each worker of the tests
    import httpx2  # noqa: PLC0415

    client = httpx2.AsyncClient(trust_env=False)
    return anthropic.AsyncAnthropic(
        api_key=key, base_url=f"{sandbox.url}/anthropic", max_retries=0, http_client=client
    )


async def their_outcome(sandbox: Running, key: str) -> tuple[str, "anthropic.types.Message"]:
    requested = [{"role": "user", "content": ASKED[1].content}]
    async with sdk(sandbox, key) as client:
        stream = client.messages.stream(
            model="claude-haiku-4-5",
            max_tokens=4096,
            system="Be kind.",
            messages=requested,  # type: ignore[arg-type]
        )
        async with stream as events:
            text = "".join([text async for text in events.text_stream])
            return text, await events.get_final_message()


@SDK
async def test_the_sdk_of_the_vendor_reads_the_same_content(call: Open, sandbox: Running):
    ours: Outcome = await outcome(call("k1"))

    text, message = await their_outcome(sandbox, "k1")

    assert text == ours.text == message.content[0].text  # type: ignore[union-attr]
    assert Usage(message.usage.input_tokens, message.usage.output_tokens) == ours.items[-2]
    assert message.stop_reason == "end_turn"
    first, second = calls(sandbox)
    assert (first.asked, first.billed) == (second.asked, second.billed)


@SDK
async def test_the_sdk_of_the_vendor_reads_complete_answers(sandbox: Running):
    async with sdk(sandbox, "k1") as client:
        message = await client.messages.create(
            model="claude-haiku-4-5", max_tokens=2, messages=[{"role": "user", "content": ASKED[1].content}]
        )

    assert message.content[0].text == "word1 word2 "  # type: ignore[union-attr]
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 2)


SDK_ERRORS = {
    Fault.UNAUTHORIZED: "AuthenticationError",
    Fault.RATE_LIMITED: "RateLimitError",
    Fault.UNAVAILABLE: "InternalServerError",
    Fault.ERROR_INSIDE_200: "APIStatusError",
}


@SDK
@pytest.mark.parametrize("fault", sampled(SDK_ERRORS, [Fault.UNAUTHORIZED, Fault.ERROR_INSIDE_200]))
async def test_the_sdk_of_the_vendor_understands_its_errors(sandbox: Running, fault: Fault):
    import anthropic  # noqa: PLC0415 - slow to import, for each worker of the tests

    with pytest.raises(getattr(anthropic, SDK_ERRORS[fault])):
        await their_outcome(sandbox, key_of(fault=fault))
