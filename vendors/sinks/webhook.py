"""Posts events to a webhook of an app. The calls are signed as in Standard Webhooks."""

import base64
import hashlib
import hmac
import time

from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


class SinkEvent(Model):
    """The body of a call."""

    event: str
    id: str
    """The same in every attempt to deliver the event."""
    app_id: str
    time: str
    data: dict[str, object]


def signature(key: bytes, message_id: str, body: bytes, *, t: int) -> str:
    """Return the value of `webhook-signature` for a body that is sent at `t`, in Unix seconds."""
    mac = hmac.new(key, b"%b.%d.%b" % (message_id.encode(), t, body), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(mac).decode()}"


class SinkWebhook:
    """A client of the webhook. `key` signs the calls."""

    def __init__(self, http: VendorHttp, account: Account, key: bytes) -> None:
        self._http = http
        self._account = account
        self._key = key

    async def send(self, event: SinkEvent) -> None:
        """Post an event. Any response with a 2xx status accepts it. Raises `VendorError`.

        The call may be sent twice, because the sink recognizes an event by its id.
        """
        body, t = dumps(event.model_dump()), int(time.time())
        headers = {
            "Content-Type": "application/json",
            ID: event.id,
            TIMESTAMP: str(t),
            SIGNATURE: signature(self._key, event.id, body, t=t),
        }
        call = Outgoing(
            self._account.platform, self._account.base_url, headers=headers, body=body, repeat=Repeat.SAFE
        )
        async with self._http.stream(call):
            pass
