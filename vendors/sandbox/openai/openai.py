"""OpenAI's `POST /chat/completions`, and its list of models."""

from dataclasses import replace
from secrets import token_urlsafe

from aiohttp import web

from vendors.sandbox.calls import Call
from vendors.sandbox.content import reply, tokens, words
from vendors.sandbox.openai import audio as openai_audio
from vendors.sandbox.openai.chat_request import ChatRequest, read_chat_request
from vendors.sandbox.openai.chunks import Completion
from vendors.sandbox.openai.dialect import DONE, EVENTS, MODELS, OPENAI
from vendors.sandbox.sandbox import Sandbox


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [
        sandbox.post("/openai/v1/chat/completions", OPENAI, "llm", _complete),
        sandbox.get("/openai/v1/models", OPENAI, "models", _models),
    ]


async def _models(call: Call) -> None:
    data = [{"id": name, "object": "model", "created": 1_715_367_049, "owned_by": "system"} for name in MODELS]
    await call.answer({"object": "list", "data": data}, empty={"object": "list", "data": []})


async def _complete(call: Call) -> None:
    request = await read_chat_request(call)
    call.charge(input_tokens=sum(tokens(message.content) for message in request.messages))
    if request.audio_format:
        await openai_audio.speak(call, request)
        return
    text = call.key_options.text
    all_words = words(reply(request.messages) if text is None else text)
    answer_words = all_words[: request.max_tokens]
    finish_reason = "stop" if len(answer_words) == len(all_words) else "length"
    if request.stream and call.key_options.events is not None:
        await call.send_scripted(call.key_options.events)
        return
    if request.stream:
        await _stream(call, request, answer_words, finish_reason)
        return
    completion = Completion(request.model)
    call.charge(output_tokens=len(answer_words))
    await call.answer(
        completion.complete({"content": "".join(answer_words)}, call.billed, finish_reason=finish_reason),
        empty=completion.complete({"content": ""}, call.billed, finish_reason="stop"),
    )


async def _stream(call: Call, request: ChatRequest, answer_words: list[str], finish_reason: str) -> None:
    completion = Completion(request.model, include_usage=request.include_usage)
    async with call.stream(replace(EVENTS, idle=completion.chunk({"content": ""}))) as flow:
        await flow.frame(completion.chunk({"role": "assistant", "content": "", "refusal": None}))
        for word in answer_words:
            padding = {"obfuscation": token_urlsafe(8)} if request.include_obfuscation else {}
            await flow.output(completion.chunk({"content": word}, **padding), output_tokens=1)
        await flow.frame(completion.chunk({}, finish_reason=finish_reason))
        if request.include_usage:
            await flow.frame(completion.usage_chunk(call.billed))
        await flow.frame(DONE)
