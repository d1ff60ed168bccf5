"""Sends text messages through a webhook of the operator, which passes them on to any service."""

import hashlib
import hmac
import time
from dataclasses import asdict, dataclass

from streams.wire.codec import dumps
from vendors.account import Account
from vendors.http.outgoing import Outgoing, RepeatWithKey
from vendors.http.transport import VendorHttp

SIGNATURE = "X-Parley-Signature"


@dataclass(frozen=True, slots=True)
class SmsMessage:
    id: str
    """The same in every attempt to send the message."""
    app: str
    to: str
    """A phone number in E.164."""
    text: str
    code: str


def signature(secret: str, body: bytes, *, t: int) -> str:
    """Return the value of `X-Parley-Signature` for a body that is sent at `t`, in Unix seconds."""
    mac = hmac.new(secret.encode(), b"%d." % t + body, hashlib.sha256).hexdigest()
    return f"t={t},v1={mac}"


class SmsWebhook:
    """A client of the webhook. The key of its account signs the calls."""

    def __init__(self, http: VendorHttp, account: Account, _: None) -> None:
        self._http = http
        self._account = account

    async def send(self, message: SmsMessage) -> None:
        """Post a message. Any response with a 2xx status accepts it. Raises `VendorError`."""
        secret, body = self._account.api_key, dumps(asdict(message))
        assert secret is not None, "the config has a secret"
        headers = {
            "Content-Type": "application/json",
            SIGNATURE: signature(secret.get_secret_value(), body, t=int(time.time())),
        }
        call = Outgoing(
            self._account.platform,
            self._account.base_url,
            headers=headers,
            body=body,
            repeat=RepeatWithKey(message.id),
        )
        async with self._http.stream(call):
            pass
