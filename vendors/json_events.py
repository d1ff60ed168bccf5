"""Reads the JSON of models and of speech: what is needed in whatever shape it comes, and nothing else. Does no I/O.

Servers that offer the protocol of a vendor send heartbeats, nulls, unknown fields, lists instead of texts, texts
instead of numbers, and characters that are cut into two events. Valid JSON that is not understood is skipped. Only
what is no JSON, and audio that is no base64, is an error, because text or audio may be lost with it.
"""

import math
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from streams.wire.codec import is_encodable, loads
from streams.wire.damaged import loads_damaged

is_end_mark = re.compile(rb"\s*[\"']?\s*\[DONE\]", re.IGNORECASE).match
"""Whether a payload is the end mark of OpenAI's streams, which may be quoted."""
_NO_EVENT = re.compile(rb"\s*(?:'?\[DONE\]'?|[a-z\d][\w .,:;+/-]{0,99})?\s*", re.IGNORECASE)
"""What is skipped: OpenAI's end mark, and the words of a heartbeat."""
_SAYS_ERROR = re.compile(
    rb"error|fail|exception|timed?[ _-]?out|unavailable|overload|refused|denied|abort|limit|gateway|upstream"
    rb"|too many|quota|forbidden|invalid|unauthori[sz]ed",
    re.IGNORECASE,
)
"""Words that are no heartbeat."""
_TEXT_TYPES = ("text", "output_text", "input_text", "text_delta", "refusal", None)
"""The types of parts that are text. It is no set, because a type may be a list."""
_ERROR_FIELDS = ("message", "msg", "code", "type", "status")
"""The fields that say what an error is. Others, such as the id of a request, say nothing."""
_OWN_FIELDS = ("error_code", "errorCode", "error_msg", "errorMsg", "error_message", "errorMessage", "detail")
"""The fields that only an event with an error has, of FastChat, Baidu, FastAPI and others."""
_CODE_FIELDS = ("code", "error_code", "errorCode", "status_code", "statusCode", "status")
_MESSAGE_FIELDS = (
    "message", "msg", "error_message", "errorMessage", "error_msg", "errorMsg", "status_msg", "detail", "text",
)  # fmt: skip
_SUCCESS = frozenset({"", "null", "none", "false", "ok", "success", "successful", "succeeded", "no error"})
_SUCCESS_CODES = (0, 200)
_FIRST_FAILURE = 400
_PROGRESS = 2
"""The class of the HTTP statuses from 200 to 299."""
_NOTHING: Mapping[str, Any] = {}
_PLAIN = str.maketrans("-_", "+/")
"""From the alphabet of base64 for URLs to the usual one."""


class ErrorData(bytes):
    """The data of an event whose name is `error`."""

    __slots__ = ()


class JsonEvents:
    """Decodes the events of one reply, and joins characters that were cut into two."""

    __slots__ = ("_half", "is_repaired")

    def __init__(self) -> None:
        self.is_repaired = False
        """Whether an event held half of a character, so that texts must be `joined`."""
        self._half = ""
        """The first half of a character outside the BMP, whose second one is in the next text."""

    def decode(self, payload: bytes) -> Mapping[str, Any]:
        """Return the object in a payload, or the first one of a list. It is empty if there is none.

        Raises `ValueError` if the payload is neither JSON, nor blank, nor plain words such as `keep alive`, nor
        OpenAI's end mark.
        """
        if type(payload) is ErrorData:
            return self._error(payload)
        try:
            value = loads(payload)
        except ValueError:
            if _NO_EVENT.fullmatch(payload) and not _SAYS_ERROR.search(payload):
                return _NOTHING
            value = loads_damaged(payload)
            self.is_repaired = True
        return value if type(value) is dict else first_object(value)

    def _error(self, data: bytes) -> Mapping[str, Any]:
        """Return the object of an event that is named `error`, marked as one. Its data may be a plain text."""
        try:
            value = loads_damaged(data)
        except ValueError:
            value = data.decode(errors="replace")
        self.is_repaired = True
        fields = first_object(value) if isinstance(value, dict | list) else {"message": value}
        return {**fields, "object": "error"}

    def joined(self, text: str, *, is_last: bool) -> str:
        """Return `text` without halves of characters. A first half at its end is kept for the next one."""
        if not self.is_repaired:
            return text
        text, self._half = self._half + text, ""
        if text and not is_last and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return _joined(text)


def loads_whole(raw: bytes) -> Any:
    """Decode a value that is no part of a longer text. Halves of characters in it become U+FFFD.

    Raise `ValueError` if it is no JSON, or nested so deeply that it could not be encoded again.
    """
    try:
        value = loads(raw)
    except ValueError:
        value = _damaged(raw)
    if not is_encodable(value):
        raise ValueError("nested too deeply")
    return value


def _damaged(raw: bytes) -> Any:
    try:
        return _without_halves(loads_damaged(raw))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _without_halves(value: Any) -> Any:
    if isinstance(value, dict):
        return {_without_halves(name): _without_halves(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    return _joined(value) if isinstance(value, str) else value


def _joined(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def first_object(value: Any) -> Mapping[str, Any]:
    """Return `value`, or the first item of a list, if that is an object. Otherwise return an empty object."""
    return object_of(next(iter(value), None) if isinstance(value, list) else value)


def object_of(value: Any) -> Mapping[str, Any]:
    """Return `value`, or an empty object if it is none."""
    return value if isinstance(value, dict) else _NOTHING


def objects_of(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else ()


def text_of(content: Any) -> str:
    """Return a text, or that of a typed part or a list of them, without types such as `thinking`."""
    if type(content) is str:
        return content
    return "".join(map(_text_of_part, content)) if isinstance(content, list) else _text_of_part(content)


def answer_of(content: Any) -> str:
    """Like `text_of`, but also of a number: servers that read a model's output as JSON send 5 for its text `5`."""
    is_number = isinstance(content, int | float) and not isinstance(content, bool)
    return str(content) if is_number and number_of(content) is not None else text_of(content)


def is_error(error: Any) -> bool:
    """Return whether the `error` of an event is one, and neither an object of nulls nor a report of success."""
    if not isinstance(error, dict):
        return not _is_success(error)
    said = [value for name in _ERROR_FIELDS if (value := error.get(name)) is not None]
    return not all(map(_is_success, said or error.values()))


def error_of(event: Mapping[str, Any]) -> Any:
    """Return the error in an event without an answer, or None if it has none.

    It is the `error` of the event, or an object with `message`, `code` and `type` for the other forms that servers
    use: `{"object": "error", …}`, `{"error_code": 50001, "text": …}`, `{"code": 500, "message": …}`,
    `{"detail": …}`, and `{"base_resp": {"status_code": 1002, "status_msg": …}}` of MiniMax.
    """
    if error := event.get("error"):
        return error if is_error(error) else None
    fields = object_of(event.get("base_resp")) or event
    message, code = _first_failure(fields, _MESSAGE_FIELDS), _first_failure(fields, _CODE_FIELDS)
    is_marked = "error" in (event.get("type"), event.get("object")) or event.get("success") is False
    if is_marked:
        says_nothing = all(fields.get(name) is None for name in _MESSAGE_FIELDS + _CODE_FIELDS)
        is_failed = says_nothing or not (message is None and code is None)
    else:
        is_failed = _first_failure(fields, _OWN_FIELDS) is not None or _is_failure(fields, code, message)
    return {"message": message, "code": code, "type": event.get("type") or "error"} if is_failed else None


def _first_failure(fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first value of these fields that does not report success, or None."""
    values = (fields.get(name) for name in names)
    return next((value for value in values if not _is_success(value)), None)


def _is_failure(fields: Mapping[str, Any], code: Any, message: Any) -> bool:
    """Return whether a code reports a failure. Progress may have a code such as 202, or a word as its status."""
    number = number_of(code)
    if number is None:
        return isinstance(code, str) and code is fields.get("code") and message is not None
    return number >= _FIRST_FAILURE or (message is not None and int(number) // 100 != _PROGRESS)


def _is_success(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return not value
    if isinstance(value, str) and value.strip().lower() in _SUCCESS:
        return True
    return number_of(value) in _SUCCESS_CODES


def _text_of_part(part: Any) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    if part.get("type", "text") not in _TEXT_TYPES or part.get("thought"):
        return ""
    text = next((value for name in ("text", "refusal") if (value := part.get(name)) is not None), None)
    if isinstance(text, dict):  # As in OpenAI's Assistants.
        text = text.get("value")
    return answer_of(text) if isinstance(text, int | float | str) else ""


def number_of(value: Any) -> float | None:
    """Return a finite number, which may be written as a text, or None if there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and "_" in value:  # Python would skip it.
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def bytes_of(value: Any) -> bytes:
    """Return the bytes of a base64 text, or no bytes if it is no text. Raise `ValueError` for any other text.

    Padding may be missing, lines may be broken, and the alphabet may be that of URLs.
    """
    if not isinstance(value, str):
        return b""
    try:
        return b64decode(value, validate=True)
    except ValueError:
        text = "".join(value.split()).rstrip("=").translate(_PLAIN)
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
