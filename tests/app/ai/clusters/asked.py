"""A request with an idempotency key, which is sent until it is answered."""

from typing import Any

from aiohttp import ClientResponse

from tests.app.ai.conftest import Talk
from tests.waiting import until

KEY = {"Idempotency-Key": "c1a5"}


async def send(talk: Talk, **options: Any) -> ClientResponse:
    answer: ClientResponse = await talk.post("/bp/ai/conversation", data=talk.params("slow") + b"story", **options)
    return answer


async def until_answered(talk: Talk, headers: dict[str, str]) -> ClientResponse:
    """Send the request until it is answered. Meanwhile it may only be unavailable."""
    answers: list[ClientResponse] = []

    async def is_answered() -> bool:
        answer = await send(talk, headers=headers)
        if answer.status == 200:
            answers.append(answer)
            return True
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1"), await answer.text()
        answer.release()
        return False

    await until(is_answered, every_s=0.05)
    return answers[0]
