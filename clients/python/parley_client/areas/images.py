"""Image tasks."""

from collections.abc import Mapping
from typing import Any, cast

from parley_client.calls import Calls
from parley_client.http import segment
from parley_client.numbers import rounded
from parley_client.types import ImageReply

_LONGEST_IMAGE_WAIT_S = 300
_MARGIN_S = 30.0


class Images:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def imagine(
        self,
        strategy: str,
        data: Mapping[str, Any],
        *,
        type: str = "imagine",  # noqa: A002
        image_url: str | None = None,
        wait_s: float = 0,
    ) -> ImageReply:
        """Begin an image task, and wait for its end for up to `wait_s`, at most 300 s.

        A task that fails is no error: its `status` is `failed`.
        """
        wait = min(rounded("wait_s", wait_s), _LONGEST_IMAGE_WAIT_S)
        body = {"strategy": strategy, "type": type, "data": data, "image_url": image_url}
        headers = {"Prefer": f"wait={wait}"} if wait else {}
        reply = await self._calls.once("/bp/ai/imagine", body, headers=headers, timeout_s=wait + _MARGIN_S)
        return cast(ImageReply, reply)

    async def read(self, task_id: str) -> ImageReply:
        return cast(ImageReply, await self._calls.get(f"/bp/ai/imagine/{segment(task_id)}"))
