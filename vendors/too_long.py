"""Recognizes the errors that say that messages are too long for a model, in the words of many vendors."""

import re

_CODES = frozenset({
    "context_length_exceeded", "context_window_exceeded", "exceed_context_size_error", "input_too_long",
    "model_context_window_exceeded", "prompt_too_long", "request_too_large", "tokens_limit_reached",
})  # fmt: skip
_WORDS = re.compile(
    # OpenAI, vLLM, DeepSeek, Mistral; xAI; Bedrock and Anthropic.
    r"maximum (?:context|prompt) length|contextwindowexceeded"
    r"|(?:input|prompt|request|conversation)(?: text)?(?: \([^)]{0,60}\))? is too long"
    r"|too many (?:input |prompt )?tokens"
    # Gemini and Vertex AI; llama.cpp and Ollama; MiniMax; Anthropic; vLLM and SGLang; Azure and Groq.
    r"|exceeds the maximum number of tokens|input token count .{0,40}only supports up to"
    r"|exceeds? the (?:available |model's )?context (?:size|window|length)|exceeds? (?:the )?context limit"
    r"|context (?:size|window|length) (?:(?:has been|was|is) )?exceed(?:ed|s)"
    r"|(?:input|prompt) length .{0,40}exceed|longer than the (?:model's )?(?:maximum )?(?:context|model length)"
    r"|input tokens exceed|reduce (?:the length of (?:the|your)|your) (?:messages|message size|prompt|input)"
    # Kimi; Qianfan; Doubao; Zhipu and others in Chinese; GitHub Models.
    r"|exceeded model token limit|prompt tokens? too long|max(?:imum)? input characters"
    r"|exceeds? max message tokens|(?:prompt|输入|上下文).{0,10}(?:超长|过长|超过|超出)"
    r"|too large for .{0,80}max size: \d{1,9} tokens"
    # Text Generation Inference; LM Studio; DashScope.
    r"|inputs` tokens \+ `max_new_tokens`|inputs` must have less than|context length of only"
    r"|keep the first \d{1,9} tokens|range of input length should be",
    re.IGNORECASE,
)
_OTHER = re.compile(
    # Rates, which a later call keeps to. Groq refuses a request above its rate, which only a shorter one keeps to.
    r"^(?!.{0,300}reduce your message size).{0,300}"
    r"(?:per[ -](?:second|min|minute|hour|day)\b|rate.?limit|quota|wait before)"
    # The length of the answer that was asked for.
    r"|max_?(?:completion_?|output_?|new_?)?tokens[`'\"]?(?: or .{0,40})? (?:is )?too large",
    re.IGNORECASE | re.DOTALL,
)
"""Other limits, whose errors may contain the same words."""
_ANY_TEXT = "string_above_max_length"
"""OpenAI's code for any text of a request. Only that of a message can be shortened."""
_MESSAGE = re.compile(r"messages|input|prompt", re.IGNORECASE)
_STATUS = frozenset({400, 413, 422, 500})
"""llama.cpp and some gateways answer 500."""


def says_too_long(message: str, code: str = "", *, status: int | None = None) -> bool:
    """Return whether an error says that. It has no status inside a response of status 200."""
    if status is not None and status not in _STATUS:
        return False
    if code in _CODES or (code == _ANY_TEXT and _MESSAGE.search(message) is not None):
        return True
    return _WORDS.search(message) is not None and _OTHER.search(message) is None
