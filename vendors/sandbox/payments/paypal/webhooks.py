"""Webhooks of the sandbox's PayPal: signed calls, their certificates, and faults of their delivery."""

import zlib
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from uuid import uuid4

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from streams.wire.codec import dumps
from vendors.sandbox.authority import Issuer, Key, intermediate, issue
from vendors.sandbox.deliveries import Delivery, FaultSource, Signed
from vendors.sandbox.payments.paypal.state import Merchant
from vendors.sandbox.payments.paypal.wire import time_text
from vendors.sandbox.sandbox import Sandbox

CERTIFICATES = "/paypal/v1/notifications/certs"
CERTIFICATE = "CERT-360caa42-fca2a594-1d93a270"
OWNER = "messageverificationcerts.paypal.com"
_ALGORITHM = "SHA256withRSA"


def send(sandbox: Sandbox, merchant: Merchant, faults: FaultSource | None = None) -> None:
    """Send the merchant's new events to its webhooks, with `faults` instead of those of the merchant."""
    events, merchant.unsent = merchant.unsent, []
    for webhook_id, url in merchant.hooks.items():
        for event in events:
            sign = partial(signed, dumps(event.body), webhook_id, tls_url=sandbox.tls_url)
            sandbox.deliveries.add(Delivery(url, sign, event.id), faults or merchant.faults)


def signed(
    body: bytes,
    webhook_id: str,
    *,
    tls_url: str,
    certificate: str = CERTIFICATE,
    at: datetime | None = None,
    transmission_id: str = "",
) -> Signed:
    """Return a call of a webhook."""
    transmission_id, at_text = transmission_id or str(uuid4()), time_text(at or datetime.now(UTC))
    message = f"{transmission_id}|{at_text}|{webhook_id}|{zlib.crc32(body)}".encode()
    headers = {
        "Content-Type": "application/json",
        "PAYPAL-TRANSMISSION-ID": transmission_id,
        "PAYPAL-TRANSMISSION-TIME": at_text,
        "PAYPAL-TRANSMISSION-SIG": b64encode(_signing_key().sign(message, PKCS1v15(), SHA256())).decode(),
        "PAYPAL-CERT-URL": f"{tls_url}{CERTIFICATES}/{certificate}",
        "PAYPAL-AUTH-ALGO": _ALGORITHM,
        "PAYPAL-AUTH-VERSION": "v2",
        "CORRELATION-ID": transmission_id.replace("-", "")[:13],
    }
    return headers, body


def is_genuine(merchant: Merchant, asked: dict[str, Any], event: bytes) -> bool:
    """Return whether a webhook of the merchant was signed here. `event` is its body as it was received."""
    if asked.get("webhook_id") not in merchant.hooks or asked.get("auth_algo") != _ALGORITHM:
        return False
    parts = [asked.get(name) for name in ("transmission_id", "transmission_time", "webhook_id")]
    message = f"{'|'.join(map(str, parts))}|{zlib.crc32(event)}".encode()
    try:
        signature = b64decode(str(asked.get("transmission_sig")), validate=True)
        _signing_key().public_key().verify(signature, message, PKCS1v15(), SHA256())
    except (InvalidSignature, NotBase64, ValueError):
        return False
    return True


def certificate(name: str) -> bytes | None:
    """Return the certificate `name` with its chain, or None if there is none. All but one have a fault."""
    make = _CERTIFICATES.get(name.removeprefix("CERT-"))
    return make() if make else None


@cache
def _signing_key() -> rsa.RSAPrivateKey:
    """Return the key that signs webhooks. It is generated once per process."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _chain(
    *, key: Key | None = None, owner: str = OWNER, days: tuple[int, int] = (-1, 365), self_signed: bool = False
) -> bytes:
    issuer: Issuer | None = None if self_signed else intermediate()
    leaf = issue(key or _signing_key(), owner, issuer=issuer, days=days)
    return leaf.public_bytes(Encoding.PEM) + intermediate().certificate.public_bytes(Encoding.PEM)


_CERTIFICATES: dict[str, Callable[[], bytes]] = {
    CERTIFICATE.removeprefix("CERT-"): _chain,
    "expired": lambda: _chain(days=(-30, -1)),
    "not-yet-valid": lambda: _chain(days=(1, 30)),
    "self-signed": lambda: _chain(self_signed=True),
    "other-owner": lambda: _chain(owner="paypal.com.example.test"),
    "elliptic": lambda: _chain(key=ec.generate_private_key(ec.SECP256R1())),
    "other-key": lambda: _chain(key=rsa.generate_private_key(public_exponent=65537, key_size=2048)),
    "without-chain": lambda: _chain().partition(b"-----END CERTIFICATE-----\n")[0] + b"-----END CERTIFICATE-----\n",
    "garbage": lambda: b"-----BEGIN CERTIFICATE-----\nZ2FyYmFnZQ==\n-----END CERTIFICATE-----\n",
    "empty": lambda: b"",
    "huge": lambda: _chain() + b"\n" * 64 * 1024,
}
