"""Verification of PayPal's webhooks: offline with PayPal's certificate, or by a call to PayPal.

The signed message is `<transmission id>|<time>|<webhook id>|<CRC-32 of the body>`. The webhook id is not sent, but
taken from our config, so that an event for another webhook is not accepted.
"""

import re
import zlib
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from pydantic import ValidationError

from streams.wire.codec import encoded, from_rfc3339, loads
from vendors.payments.paypal.certificates import NotGenuine
from vendors.payments.paypal.events import WebhookEvent
from vendors.payments.paypal.fields import PayPalObject

_ALGORITHM = "SHA256withRSA"
_MAX_AGE = timedelta(days=3)
"""How long PayPal repeats a webhook."""
_MAX_SKEW = timedelta(minutes=5)
_ID = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_SIGNATURE = re.compile(r"[A-Za-z0-9+/]{1,1024}={0,2}", re.ASCII)
_MAX_URL = 500


class Verification(PayPalObject):
    verification_status: Literal["SUCCESS", "FAILURE"]


@dataclass(frozen=True, slots=True)
class SignedWebhook:
    """A webhook as it was received, which is not verified yet."""

    transmission_id: str
    """Names the delivery. A repeated one may have another."""
    time: str
    signature: str
    """In base64."""
    certificate_url: str
    body: bytes
    event: WebhookEvent

    @classmethod
    def read(cls, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Self:
        """Read a webhook. The names of `headers` ignore case; `now` is real time.

        Raise `NotGenuine` if it cannot be PayPal's, or is older than three days.
        """
        transmission_id, time, algorithm, signature, url = (
            headers.get(f"PAYPAL-{name}", "")
            for name in ("TRANSMISSION-ID", "TRANSMISSION-TIME", "AUTH-ALGO", "TRANSMISSION-SIG", "CERT-URL")
        )
        if _ID.fullmatch(transmission_id) is None or _SIGNATURE.fullmatch(signature) is None:
            raise NotGenuine("the headers of the signature are missing or malformed")
        if algorithm != _ALGORITHM:
            raise NotGenuine(f"the algorithm is not {_ALGORITHM}")
        if not 0 < len(url) <= _MAX_URL:
            raise NotGenuine("the URL of the certificate is missing or too long")
        _check_time(time, now=now)
        return cls(transmission_id, time, signature, url, body, _event(body))

    def message(self, webhook_id: str) -> bytes:
        """Return the signed message."""
        return f"{self.transmission_id}|{self.time}|{webhook_id}|{zlib.crc32(self.body)}".encode()

    def question(self, webhook_id: str) -> Mapping[str, object]:
        """Return the body of the call that asks PayPal whether it has sent this to the webhook with this id."""
        return {
            "auth_algo": _ALGORITHM,
            "cert_url": self.certificate_url,
            "transmission_id": self.transmission_id,
            "transmission_sig": self.signature,
            "transmission_time": self.time,
            "webhook_id": webhook_id,
            "webhook_event": encoded(self.body),  # PayPal verifies these bytes, so they must not be encoded again.
        }

    def check(self, key: RSAPublicKey, *, webhook_id: str) -> None:
        """Raise `NotGenuine` unless `key` has signed it for the webhook with this id."""
        try:
            signature = b64decode(self.signature, validate=True)
            key.verify(signature, self.message(webhook_id), PKCS1v15(), SHA256())
        except (InvalidSignature, NotBase64):
            raise NotGenuine("the signature is wrong") from None


def _event(body: bytes) -> WebhookEvent:
    """Parse a body. It must be one JSON object, because it becomes a part of the question to PayPal."""
    try:
        return WebhookEvent.model_validate(loads(body))
    except (ValueError, ValidationError):
        raise NotGenuine("the body is not an event") from None


def _check_time(text: str, *, now: datetime) -> None:
    try:
        sent_at = from_rfc3339(text)
    except ValueError:
        raise NotGenuine("the time of the transmission is missing or malformed") from None
    if not now - _MAX_AGE <= sent_at <= now + _MAX_SKEW:
        raise NotGenuine("the webhook is older than three days, or from the future")
