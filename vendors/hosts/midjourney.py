"""An image host with the protocol of Midjourney's gateways (GoAPI, PiAPI), version 2 (§4.20)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid
from vendors.account import Account
from vendors.errors import Garbled, Refused
from vendors.hosts.refusals import meaning_of
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp
from vendors.objects import PartialObject

ImageType = Literal[
    "imagine", "reroll", "upscale", "variation", "inpaint", "outpaint", "pan", "describe", "blend", "seed"
]
IMAGE_TYPES: tuple[ImageType, ...] = get_args(ImageType)
Status = Literal["pending", "staged", "processing", "retry", "finished", "failed"]
_STATUSES: Mapping[str, Status] = {name: name for name in get_args(Status)} | {
    "completed": "finished",
    "success": "pending",
}
_CANNOT_PAY = ("insufficient", "not enough credit", "out of credit")
"""The beginnings of the messages with which a gateway refuses a task because its account cannot pay."""
_TEXT_CHARACTERS = 4000
_LIST_ENTRIES = 64


class TaskRefused(Exception):
    """The host has refused a task, for example because of a banned word. It made nothing and charged nothing."""


def _text(value: Any) -> str:
    """Return what a gateway sends as text, which may be absent or a number."""
    if value is None or isinstance(value, (dict, list, bool)):
        return ""
    return str(value).replace("\0", " ")[:_TEXT_CHARACTERS]


def _number(value: Any) -> int | float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and abs(value) < 2**53 else 0


def _texts(value: Any) -> list[str]:
    return [_text(entry) for entry in value[:_LIST_ENTRIES]] if isinstance(value, list) else []


def _texts_by_name(value: Any) -> dict[str, str]:
    return {name: _text(value[name]) for name in list(value)[:_LIST_ENTRIES]} if isinstance(value, dict) else {}


Text = Annotated[str, BeforeValidator(_text)]
Number = Annotated[int | float, BeforeValidator(_number)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
TextsByName = Annotated[dict[str, str], BeforeValidator(_texts_by_name)]


class Meta(PartialObject):
    """`meta` of a task. Times are Unix seconds, 0 if they are not known."""

    account_id: Text = ""
    bot_hash: Text = ""
    bot_id: Number = 0
    created_at: Number = 0
    ended_at: Number = 0
    frozen_credit: Number = 0
    model_version: Text = ""
    process_mode: Text = ""
    quota_frozen: Number = 0
    started_at: Number = 0
    task_param: TextsByName = Field(default_factory=dict)


class Result(PartialObject):
    """`task_result` of a task."""

    actions: Texts = Field(default_factory=list)
    credit: Number = 0
    discord_image_url: Text = ""
    error_messages: Texts = Field(default_factory=list)
    image_id: Text = ""
    image_url: Text = ""
    message: Text = ""
    need_retry: Annotated[bool, BeforeValidator(lambda value: value is True)] = False
    permanent_url: Text = ""
    quota_used: Number = 0
    result_message_id: Text = ""
    seed: Text = ""
    task_progress: Number = 0

    @property
    def source_url(self) -> str:
        """The address of the image at the host. Empty: the task has none."""
        return self.image_url or self.permanent_url or self.discord_image_url


class HostTask(PartialObject):
    """A task as the host knows it."""

    stated: Text = Field(default="", alias="status")
    process_time: Number = 0
    retry_count: Number = 0
    meta: Meta = Meta()
    task_result: Result = Result()

    @property
    def status(self) -> Status:
        """The status. One that is not known is not the last one."""
        return _STATUSES.get(self.stated, "processing")


@dataclass(frozen=True, slots=True)
class NewTask:
    """The request for a task. `fields` are those of the host's call, without `origin_task_id`."""

    type: ImageType
    fields: Mapping[str, Any]
    origin: str | None = None
    """The host's id of the task from which this one is derived."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The URL at which the host reports the end of a task, and the secret that it sends as a proof."""

    url: str
    secret: str


class MidjourneyHost:
    """Calls of one account.

    They raise `VendorError`, and what `meaning_of` makes of a refusal.
    """

    def __init__(self, http: VendorHttp, account: Account, _: None) -> None:
        self._http = http
        self._account = account

    async def create(self, new: NewTask, *, webhook: Webhook | None) -> str:
        """Create a task and return the host's id. Raises `TaskRefused`.

        The host has no idempotency keys, so that a lost response leaves the task unknown. The call is sent once.
        """
        body = {name: value for name, value in new.fields.items() if value is not None}
        if new.origin is not None:
            body["task_id" if new.type == "seed" else "origin_task_id"] = new.origin
        if webhook is not None:
            body |= {"webhook_endpoint": webhook.url, "webhook_secret": webhook.secret}
        answer = await self._post(new.type, body, Repeat.NEVER)
        if answer.get("status") == "failed" or answer.get("success") is False:
            raise self._refused(_text(answer.get("message")))
        if not (task_id := _text(answer.get("task_id"))):
            raise Garbled(self._account.platform, "sent a malformed response: task_id is required")
        return task_id

    async def fetch(self, task_id: str) -> HostTask:
        """Return a task as it stands."""
        answer = await self._post("fetch", {"task_id": task_id}, Repeat.SAFE)
        if "status" not in answer:
            raise Garbled(self._account.platform, "sent a malformed response: status is required")
        return HostTask.model_validate(answer)

    async def _post(self, path: str, body: Mapping[str, Any], repeat: Repeat) -> dict[str, Any]:
        """Return the object of a response, which newer gateways put into `data`."""
        key = self._account.api_key.get_secret_value() if self._account.api_key else ""
        call = Outgoing(
            self._account.platform,
            self._account.url(f"/mj/v2/{path}"),
            headers={"Content-Type": "application/json", **({"X-API-KEY": key} if key else {})},
            body=dumps(body),
            repeat=repeat,
        )
        try:
            async with self._http.stream(call) as response:
                answer = await response.json()
        except Refused as refused:
            raise meaning_of(refused) from None
        if isinstance(answer, dict) and isinstance(inner := answer.get("data"), dict):
            answer = inner
        if not isinstance(answer, dict):
            raise Garbled(self._account.platform, "sent a malformed response: body must be an object")
        return answer

    def _refused(self, message: str) -> ConfigInvalid | TaskRefused:
        if message.lower().startswith(_CANNOT_PAY):
            return ConfigInvalid(f"the account was refused: {self._account.platform} answered: {message[:200]}")
        return TaskRefused(message or "the host refused the task")
