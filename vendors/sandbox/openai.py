"""OpenAI's `POST /chat/completions`, and its list of models."""

from dataclasses import replace
from secrets import token_urlsafe

from aiohttp import web

from vendors.sandbox import openai_audio
from vendors.sandbox.calls import Call
from vendors.sandbox.content import reply, tokens, words
from vendors.sandbox.openai_asked import Asked, read_asked
from vendors.sandbox.openai_chunks import Completion
from vendors.sandbox.openai_dialect import DONE, EVENTS, MODELS, OPENAI
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
    asked = await read_asked(call)
    call.charge(input_tokens=sum(tokens(message.content) for message in asked.messages))
    if asked.audio_format:
        await openai_audio.speak(call, asked)
        return
    text = call.orders.text
    whole = words(reply(asked.messages) if text is None else text)
    said = whole[: asked.most_tokens]
    finish_reason = "stop" if len(said) == len(whole) else "length"
    if asked.stream:
        await _stream(call, asked, said, finish_reason)
        return
    completion = Completion(asked.model)
    call.charge(output_tokens=len(said))
    await call.answer(
        completion.whole({"content": "".join(said)}, call.billed, finish_reason=finish_reason),
        empty=completion.whole({"content": ""}, call.billed, finish_reason="stop"),
    )


async def _stream(call: Call, asked: Asked, said: list[str], finish_reason: str) -> None:
    completion = Completion(asked.model, include_usage=asked.include_usage)
    async with call.stream(replace(EVENTS, idle=completion.chunk({"content": ""}))) as flow:
        await flow.frame(completion.chunk({"role": "assistant", "content": "", "refusal": None}))
        for word in said:
            padding = {"obfuscation": token_urlsafe(8)} if asked.include_obfuscation else {}
            await flow.output(completion.chunk({"content": word}, **padding), output_tokens=1)
        await flow.frame(completion.chunk({}, finish_reason=finish_reason))
        if asked.include_usage:
            await flow.frame(completion.usage_chunk(call.billed))
        await flow.frame(DONE)
