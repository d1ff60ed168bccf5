"""Webhooks that PayPal itself has signed, so that our message is not only that of our sandbox."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from streams.wire.codec import from_rfc3339, loads
from vendors.payments.paypal.certificates import NotGenuine, check_url
from vendors.payments.paypal.webhooks import SignedWebhook

FACTS = loads(Path(__file__).with_name("signed_webhooks.json").read_bytes())
KEY = RSAPublicNumbers(65_537, int(FACTS["modulus"], 16)).public_key()


def received(sent: dict[str, Any], body: bytes | None = None) -> SignedWebhook:
    headers = {
        "PAYPAL-TRANSMISSION-ID": sent["transmission_id"],
        "PAYPAL-TRANSMISSION-TIME": sent["time"],
        "PAYPAL-TRANSMISSION-SIG": sent["signature"],
        "PAYPAL-CERT-URL": FACTS["certificate_url"],
        "PAYPAL-AUTH-ALGO": "SHA256withRSA",
    }
    now = from_rfc3339(sent["time"]) + timedelta(minutes=1)
    return SignedWebhook.read(headers, body or sent["body"].encode(), now=now)


@pytest.mark.parametrize("sent", FACTS["webhooks"], ids=lambda sent: sent["transmission_id"])
def test_a_webhook_of_paypal_is_genuine(sent: dict[str, Any]):
    webhook = received(sent)

    webhook.check(KEY, webhook_id=sent["webhook_id"])

    assert webhook.event.event_type == "PAYMENT.SALE.COMPLETED"
    assert webhook.event.resource["state"] == "completed"
    check_url(webhook.certificate_url, hosts=["api.sandbox.paypal.com"], own_authorities=False)


def test_each_webhook_is_genuine_only_for_its_app_and_body():
    first, second = FACTS["webhooks"]

    for webhook, webhook_id in (
        (received(first), second["webhook_id"]),
        (received(first, second["body"].encode()), first["webhook_id"]),
        (received({**first, "time": second["time"]}), first["webhook_id"]),
        (received({**first, "signature": second["signature"]}), first["webhook_id"]),
    ):
        with pytest.raises(NotGenuine, match="the signature is wrong"):
            webhook.check(KEY, webhook_id=webhook_id)
