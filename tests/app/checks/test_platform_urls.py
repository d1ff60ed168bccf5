"""Addresses of payment platforms in configs, which must not end with a version."""

from typing import Any

import pytest

from tests.app.operators import Operator
from tests.running.servers import Server

APP = {"client_id": "app", "client_secret": "s", "webhook_id": "WH"}
CARD: dict[str, Any] = {"secret_key": "sk_test"}


@pytest.mark.parametrize(
    ("path", "base_url", "right"),
    [
        ("cardpay/Default", "https://api.stripe.com/v1", "https://api.stripe.com"),
        ("cardpay/Default", "https://api.stripe.com/v1/", "https://api.stripe.com"),
        ("cardpay/Default", "https://proxy.test/stripe/V1//", "https://proxy.test/stripe"),
        ("cardpay/Default", "{sandbox}/stripe//v1", "{sandbox}/stripe"),
        ("cardpay/Default", "https://proxy.test/v1/.", "https://proxy.test"),
        ("cardpay/Default", "https://proxy.test/stripe/v1/%20", "https://proxy.test/stripe"),
        ("walletpay/Default", "https://proxy.test/v2/..%2F/", "https://proxy.test"),
        ("walletpay/Default", "https://proxy.test/%76%31/%2e/", "https://proxy.test"),
        ("payouts/Default", "https://proxy.test/paypal/v1%20", "https://proxy.test/paypal"),
        ("payouts/Default", "https://proxy.test/v1/./%09/", "https://proxy.test"),
        ("walletpay/Default", "https://api-m.paypal.com/v1", "https://api-m.paypal.com"),
        ("walletpay/Default", "https://api-m.sandbox.paypal.com/v2/", "https://api-m.sandbox.paypal.com"),
        ("payouts/Default", "https://api-m.paypal.com/v2", "https://api-m.paypal.com"),
    ],
)
async def test_the_address_of_a_platform_has_no_version(guest: Server, path: str, base_url: str, right: str):
    value = {**(CARD if path.startswith("cardpay") else APP), "base_url": base_url}
    status, error = (await Operator(guest).put(f"configs/default/{path}", value)).error
    message = f"base_url must be {right}: the server adds the version of the interface to it"
    assert (status, error) == (400, f"invalid_parameter: {message}")


@pytest.mark.parametrize(
    "base_url",
    ["https://api.stripe.com", "https://api.stripe.com/", "https://v1/", "https://x/v1/y", "https://x/v1.y/"],
)
async def test_another_address_of_a_platform_is_accepted(shared_server: Server, base_url: str):
    for path, value in {"cardpay/Default": CARD, "walletpay/Default": APP, "payouts/Default": APP}.items():
        written = await Operator(shared_server).put(f"configs/default/{path}", {**value, "base_url": base_url})
        assert written.status == 200, written.body
