"""What can be called for one user, by the user's client as well as by the app's server."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from parley_client.areas.account import UserAccount
from parley_client.areas.images import Images
from parley_client.areas.leaderboards import Leaderboards
from parley_client.areas.mail import Mail
from parley_client.areas.predictions import Predictions
from parley_client.calls import Calls
from parley_client.http import Request, encoded, given, segment
from parley_client.numbers import rounded
from parley_client.streams.input import Audio, Input, Text, encoded_audio, encoded_text
from parley_client.streams.reader import SILENCE_S, OnConnection
from parley_client.streams.turns import Speech, Turn
from parley_client.types import (
    Assessment,
    Asset,
    ConversationList,
    History,
    IpLocation,
    Offers,
    TurnDetection,
    User,
)

_CONVERSATION = "/bp/ai/conversation"
_ASSESSMENT_S = 600.0
"""Five minutes of audio, which is the most, are assessed within half that time after their end."""


class UserCalls:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.account = UserAccount(calls)
        self.leaderboards = Leaderboards(calls)
        self.mail = Mail(calls)
        self.predictions = Predictions(calls)
        self.images = Images(calls)

    def converse(
        self,
        *,
        strategies: Sequence[str],
        language_code: str,
        text: Text | None = None,
        audio: Audio | None = None,
        target_language_code: str | None = None,
        conversation_id: str | None = None,
        voice: str | None = None,
        stt_prompt: str | None = None,
        turn_detection: TurnDetection | None = None,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        on_connection: OnConnection | None = None,
    ) -> Turn:
        """Return a turn of a conversation, by either `text` or `audio`. It is sent when its iteration begins.

        Both can be given in pieces, which are sent while they are made. `language_code` is the language of the
        user's input, and `target_language_code`, by default the same, that of the answer. `params` are the values
        of the system prompt's template. Without `conversation_id`, a new conversation begins, whose id is
        `Turn.conversation_id`.
        With `turn_detection`, the server hears when the user has finished speaking. No more is read of `audio`
        then, which need not end.
        A turn with the `idempotency_key` of an earlier one gets the answer of that one.
        `on_connection(state, after_id)` is called whenever the connection was opened, was lost, or is no longer
        needed.
        """
        if (text is None) == (audio is None):
            raise TypeError("a turn needs either text or audio")
        parameters = {
            "strategies": list(strategies),
            "type": "text" if audio is None else "audio",
            "language_code": language_code,
            "target_language_code": target_language_code or language_code,
            "conversation_id": conversation_id,
            "voice": voice,
            "stt_prompt": stt_prompt,
            "turn_detection": turn_detection and _sent(turn_detection),
            "params": params,
        }
        pieces: Input | None = None
        if audio is not None:
            pieces = Input(encoded_audio(audio))
        elif text is not None and not isinstance(text, str):
            pieces = Input(encoded_text(text))
        request = Request(
            method="POST",
            path=_CONVERSATION,
            body=encoded(given(parameters)),
            input=pieces.read if pieces is not None else str(text).encode(),
            content_type="application/octet-stream",
            headers={"Idempotency-Key": idempotency_key or secrets.token_hex(16)},
            timeout_s=None,
            silence_s=SILENCE_S,
        )
        return Turn(self._calls, request, pieces, on_connection)

    def resume(self, stream_id: str, *, on_connection: OnConnection | None = None) -> Turn:
        """Return a turn whose stream has begun before, such as in a program that was restarted.

        All its events are read again. A stream can be read for two minutes after its end. Later, the iteration
        raises a `ParleyError` with the status 404, and only the history has the turn.
        """
        return Turn(self._calls, stream_id, on_connection=on_connection)

    def speak(
        self,
        text: str,
        *,
        strategies: Sequence[str],
        platform_params: Iterable[Mapping[str, Any]] = (),
        idempotency_key: str | None = None,
    ) -> Speech:
        """Return a text as speech. It is sent when its iteration begins.

        `platform_params` override the settings of strategies on a platform: `platform`, and `voice`, `prompt`,
        `speed`, `language_code` or `need_viseme`.
        """
        parameters = {
            "text": text,
            "strategies": list(strategies),
            "platform_params": list(platform_params) or None,
        }
        request = Request(
            method="POST",
            path="/bp/ai/audio/tts",
            body=encoded(given(parameters)),
            headers={"Idempotency-Key": idempotency_key or secrets.token_hex(16)},
            timeout_s=None,
            silence_s=SILENCE_S,
        )
        return Speech(self._calls, request)

    async def assess(self, audio: Audio, *, strategy: str, reference_text: str, **options: Any) -> Assessment:
        """Assess the pronunciation of a text that is read aloud, and return the result.

        `audio` is 16 kHz mono 16-bit PCM, raw or as WAV, and is sent while it is recorded. `options` are
        `language`, `grading_system`, `granularity`, `enable_miscue` and `enable_prosody_assessment`.
        """
        recorded = Input(encoded_audio(audio))
        request = Request(
            method="POST",
            path="/bp/ai/audio/pronunciation",
            body=encoded({"strategy": strategy, "data": {"reference_text": reference_text, **options}}),
            input=recorded.read,
            content_type="application/octet-stream",
            repeatable=True,  # The server cancels an assessment whose client has left.
            timeout_s=None,
            silence_s=_ASSESSMENT_S,
        )
        recorded.start(lambda: None)
        try:
            return cast(Assessment, await self._calls.json(request))
        except Exception:
            if recorded.error is not None:
                raise recorded.error from None
            raise
        finally:
            recorded.stop()

    async def history(
        self, conversation_id: str, *, newest: int = -1, size: int = 10, record_id: int | None = None
    ) -> History:
        """Return a conversation with the records from `newest` back, newest first.

        `newest` is a `record_id`; -1 is the last one. With `record_id`, it is only that record. There may be fewer
        than `size` records: continue with the last `record_id` minus 1.
        """
        query = {"conversation_id": conversation_id, "from": newest, "size": size, "record_id": record_id}
        return cast(History, (await self._calls.get(f"{_CONVERSATION}/query", **query))["data"])

    async def conversations(self, *, before: str | None = None, size: int | None = None) -> ConversationList:
        """Return the user's conversations, newest first. `before` is the `next` of the page before."""
        return cast(ConversationList, await self._calls.get("/bp/ai/conversations", before=before, size=size))

    async def delete_conversation(self, conversation_id: str) -> None:
        await self._calls.delete(f"{_CONVERSATION}/{segment(conversation_id)}")

    async def offers(self) -> Offers:
        """Return the strategies that the user may choose."""
        return cast(Offers, await self._calls.get("/bp/ai/offers"))

    async def user(self) -> User:
        """Return the user, with the bound identities."""
        return cast(User, (await self._calls.get("/bp/user/me"))["user"])

    async def assets(self) -> list[Asset]:
        """Return what the user owns: purchases, subscriptions, rewards."""
        return cast(list[Asset], (await self._calls.get("/bp/asset"))["assets"])

    async def ip_location(self) -> IpLocation:
        """Return where the address of this client is."""
        return cast(IpLocation, await self._calls.get("/bp/iplocation/ipv4"))


def _sent(detection: TurnDetection) -> TurnDetection:
    if "silence_ms" not in detection:
        return detection
    return {**detection, "silence_ms": rounded("silence_ms", detection["silence_ms"])}
