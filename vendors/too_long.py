"""Recognizes the errors that say that messages are too long for a model, in the words of many vendors."""

import re

_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "request_too_large", "string_above_max_length"}
)
_WORDS = re.compile(
    # OpenAI, vLLM, DeepSeek, Mistral; xAI; Bedrock and Anthropic.
    r"maximum (?:context|prompt) length|context length exceeded|contextwindowexceeded"
    r"|(?:input|prompt|request|conversation)(?: text)? is too long|too many (?:input |prompt )?tokens"
    # Gemini; llama.cpp and Ollama; Anthropic; SGLang; Azure and Groq.
    r"|exceeds the maximum number of tokens|exceeds? the (?:available |model's )?context (?:size|window|length)"
    r"|input length .{0,40}exceed|longer than the (?:model's )?(?:maximum )?context|input tokens exceed"
    r"|reduce (?:the length of (?:the|your)|your) (?:messages|message size|prompt|input)"
    # Text Generation Inference; LM Studio; DashScope.
    r"|inputs` tokens \+ `max_new_tokens`|inputs` must have less than|context length of only"
    r"|keep the first \d{1,9} tokens|range of input length should be",
    re.IGNORECASE,
)
_STATUS = frozenset({400, 413, 422, 500})
"""llama.cpp and some gateways answer 500."""


def says_too_long(message: str, code: str = "", *, status: int | None = None) -> bool:
    """Return whether an error says that. It has no status inside a response of status 200."""
    if status is not None and status not in _STATUS:
        return False
    return code in _CODES or _WORDS.search(message) is not None
