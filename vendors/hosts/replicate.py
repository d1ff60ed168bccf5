"""A model host with the protocol of Replicate, as in https://replicate.com/docs/reference/http."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode

from pydantic import Field

from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account
from vendors.errors import Garbled, Refused
from vendors.hosts.refusals import meaning_of
from vendors.http.outgoing import Outgoing, ReadCall, Repeat
from vendors.http.transport import VendorHttp
from vendors.objects import PartialObject, Readable, VendorObject

Status = Literal["starting", "processing", "succeeded", "failed", "canceled"]
_STATUSES: Mapping[str, Status] = {
    "starting": "starting",
    "succeeded": "succeeded",
    "failed": "failed",
    "canceled": "canceled",
    "aborted": "canceled",  # It was canceled before it started.
}
FILE_HOSTS = ("replicate.delivery", "replicate.com")
"""Hosts of the files of predictions, in addition to the address of the account."""
_MAX_RETRY_AFTER_S = 2.0
_ERROR_CHARACTERS = 2000

M = TypeVar("M", bound=Model)


class HostPrediction(PartialObject):
    """A prediction as the host knows it."""

    id: str = Field(min_length=1, max_length=255)
    stated: str = Field(alias="status")
    model: str = ""
    """`owner/name`."""
    version: str = ""
    input: Any = None
    output: Any = None
    reason: Any = Field(default=None, alias="error")
    created_at: str = ""
    data_removed: bool = False
    """Whether the host has deleted input and output, an hour after the prediction."""

    @property
    def status(self) -> Status:
        """The status. One that is not known is not the last one."""
        return _STATUSES.get(self.stated, "processing")

    @property
    def has_ended(self) -> bool:
        return self.status in {"succeeded", "failed", "canceled"}

    @property
    def error(self) -> str:
        if self.reason is None:
            return ""
        text = self.reason if isinstance(self.reason, str) else dumps(self.reason).decode()
        return text.replace("\0", " ")[:_ERROR_CHARACTERS]


@dataclass(frozen=True, slots=True)
class NewPrediction:
    """The request for a prediction. `body` is sent unchanged; with `model`, to the endpoint of that model."""

    body: Mapping[str, Any]
    model: str | None = None
    """`owner/name`."""

    def is_that_of(self, prediction: HostPrediction) -> bool:
        """Return whether `prediction` may be the result of this request."""
        of = self.model or str(self.body.get("version")).rpartition(":")[2]
        return of in {prediction.version, prediction.model} and prediction.input == self.body.get("input")


class _Version(VendorObject):
    id: str = Field(min_length=1, max_length=255)


class _HostedModel(PartialObject):
    latest_version: _Version | None = None


class _Page(VendorObject):
    results: list[Readable[HostPrediction]]


class _Secret(Model):
    key: str


class ReplicateHost:
    """Calls of one account. They raise `VendorError`, and `InvalidParameter` for a fault of the caller's input."""

    def __init__(self, http: VendorHttp, account: Account, _: None) -> None:
        self._http = http
        self._account = account

    async def create(self, new: NewPrediction, *, webhook: str | None) -> HostPrediction:
        """Begin a prediction. The host has no idempotency keys, so that a lost response leaves it unknown.

        A model that is not official has no endpoint of its own: its latest version is called instead.
        """
        body = dict(new.body)
        if webhook is not None:
            body |= {"webhook": webhook, "webhook_events_filter": ["completed"]}
        try:
            if new.model is None:
                return await self._create("/predictions", body)
            try:
                return await self._create(f"/models/{_path_of(new.model)}/predictions", body)
            except Refused as refused:
                if refused.vendor_status != 404:
                    raise
            return await self._create("/predictions", {"version": await self._latest(new.model), **body})
        except Refused as refused:
            raise meaning_of(refused) from None

    async def get(self, prediction_id: str) -> HostPrediction:
        return await self._read(f"/predictions/{quote(prediction_id, safe='')}", HostPrediction)

    async def cancel(self, prediction_id: str) -> HostPrediction:
        """Cancel a prediction. One that has ended is returned as it is."""
        call = Outgoing(
            self._account.platform,
            self._account.url(f"/predictions/{quote(prediction_id, safe='')}/cancel"),
            headers=self._account.bearer(),
            repeat=Repeat.SAFE,
        )
        return await self._answer(call, HostPrediction)

    async def created_since(self, moment: datetime) -> list[HostPrediction]:
        """Return the last predictions of the account, the newest first, up to those created at `moment`."""
        query = urlencode({"created_after": moment.isoformat()})
        return (await self._read(f"/predictions?{query}", _Page)).results

    async def webhook_key(self) -> str:
        """Return the key that signs the webhooks of the account."""
        return (await self._read("/webhooks/default/secret", _Secret)).key

    async def _create(self, path: str, body: Mapping[str, Any]) -> HostPrediction:
        """Send a call that creates something. It is sent again only if the host was too busy for it."""
        call = Outgoing(
            self._account.platform,
            self._account.url(path),
            headers={**self._account.bearer(), "Content-Type": "application/json"},
            body=dumps(body),
        )
        try:
            return await self._answer(call, HostPrediction)
        except Refused as refused:
            wait_s = 1.0 if refused.retry_after_s is None else refused.retry_after_s
            if refused.vendor_status != 429 or wait_s > _MAX_RETRY_AFTER_S:
                raise
        await asyncio.sleep(wait_s)
        return await self._answer(call, HostPrediction)

    async def _latest(self, model: str) -> str:
        hosted = await self._read(f"/models/{_path_of(model)}", _HostedModel)
        if hosted.latest_version is None:
            raise Garbled(self._account.platform, "has no version of the model")
        return hosted.latest_version.id

    async def _read(self, path: str, model: type[M]) -> M:
        call = ReadCall(self._account.platform, self._account.url(path), headers=self._account.bearer())
        return await self._answer(call, model)

    async def _answer(self, call: Outgoing, model: type[M]) -> M:
        async with self._http.stream(call) as response:
            return await response.value(model)


def _path_of(model: str) -> str:
    """Return `owner/name` as a part of a path, which it cannot leave."""
    return "/".join(quote(part, safe="") for part in model.split("/"))
