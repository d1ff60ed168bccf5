"""What can be called for one user, by the user's client as well as by the app's server."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from parley_client.calls import Calls
from parley_client.http import Request, encoded
from parley_client.streams import SILENCE_S
from parley_client.turns import Turn


class UserCalls:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def converse(
        self,
        *,
        strategies: Sequence[str],
        text: str,
        language_code: str,
        target_language_code: str | None = None,
        conversation_id: str | None = None,
        voice: str | None = None,
        stt_prompt: str | None = None,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Turn:
        """Return a turn of a conversation. It is sent when its iteration begins.

        `language_code` is that of the user's input, `target_language_code` (by default the same) that of the
        answer. `params` are the values of the system prompt's template. Without `conversation_id`, a new
        conversation begins, whose id is `Turn.conversation_id`. A turn with the `idempotency_key` of an earlier one
        gets the answer of that one.
        """
        parameters = {
            "strategies": list(strategies),
            "type": "text",
            "language_code": language_code,
            "target_language_code": target_language_code or language_code,
            "conversation_id": conversation_id,
            "voice": voice,
            "stt_prompt": stt_prompt,
            "params": params,
        }
        request = Request(
            method="POST",
            path="/bp/ai/conversation",
            body=encoded({name: value for name, value in parameters.items() if value is not None}),
            input=text.encode(),
            content_type="application/octet-stream",
            headers={"Idempotency-Key": idempotency_key or secrets.token_hex(16)},
            timeout_s=None,
            silence_s=SILENCE_S,
        )
        return Turn(self._calls, request)
