"""Configs of payments at PayPal: what cannot be used is refused, and what is missing is a warning."""

from typing import Any

import pytest

from tests.app.operators import Operator
from tests.running.servers import Server
from vendors.sandbox.authority import ROOT

APP = {"client_id": "app", "client_secret": "s", "webhook_id": "WH"}
URLS = {"return_url": "https://app.test/paid", "cancel_url": "https://app.test/cancelled"}
MONTHLY = {"type": "subscription", "asset": "pro", "period": "P1M"}


@pytest.fixture
def operator(shared_server: Server) -> Operator:
    return Operator(shared_server)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("walletpay/Default", {"client_secret": "s"}, "client_id is required"),
        ("walletpay/Default", {"client_id": "a b", "client_secret": "s"}, "client_id must be 1 to 255 printable"),
        ("walletpay/Default", {"client_id": "app"}, "client_secret is required"),
        ("walletpay/Default", {**APP, "base_url": "ftp://host"}, "base_url must be a URL that begins with"),
        ("walletpay/Default", {**APP, "return_url": "app://paid"}, "return_url must be a URL that begins with"),
        (
            "walletpay/Default",
            {**APP, "certificate_hosts": ["https://x"]},
            "certificate_hosts[0] must be a host",
        ),
        ("walletpay/Default", {**APP, "url_hosts": ["App.test"]}, "url_hosts[0] must be a host name in lower case"),
        (
            "walletpay/Default",
            {**APP, "certificate_ca": "none"},
            "certificate_ca must be certificates",
        ),
        ("walletpay/Default", {**APP, "certificate_ca": f"ä\n{ROOT}"}, "certificate_ca must be certificates"),
        ("walletpay/Default", {**APP, "grace_s": -1}, "grace_s must be at least 0"),
        ("payouts/Default", {**APP, "currency": "XXX"}, "currency must be the ISO 4217 code"),
        ("payouts/Default", {**APP, "limits": {"per_day": 0}}, "limits.per_day must be at least 1"),
        ("payouts/Default", {**APP, "receiver": "phone"}, "receiver must be"),
        (
            "products/pro",
            {**MONTHLY, "walletpay": {}, "price": {"amount": 99_950, "currency": "HUF"}},
            "price.amount cannot be paid: 999.50 HUF has more decimals",
        ),
        (
            "products/pro",
            {
                **MONTHLY,
                "walletpay": {},
                "price": {"amount": 1, "currency": "USD", "countries": {"TW": {"amount": 1, "currency": "TWD"}}},
            },
            "price.countries.TW.amount cannot be paid",
        ),
        ("products/pro", {**MONTHLY, "walletpay": {"plans": {"usa": "P-1"}}}, "walletpay.plans.usa"),
    ],
)
async def test_what_cannot_be_used_is_refused(guest: Server, path: str, value: dict[str, Any], message: str):
    status, error = (await Operator(guest).put(f"configs/default/{path}", value)).error

    assert (status, error.removeprefix("invalid_parameter: ")[: len(message)]) == (400, message)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("walletpay/Default", {**APP, **URLS}),
        ("walletpay/Default", {**APP, **URLS, "base_url": "{sandbox}/paypal", "url_hosts": ["app.test:8443"]}),
        ("payouts/Default", {**APP, "certificate_ca": ROOT}),
        ("products/coins", {"type": "consumable", "asset": "coins", "quantity": 1, "walletpay": {}}),
        ("products/pro", {**MONTHLY, "walletpay": {"plan_id": "P-1", "plans": {"US": "P-2"}}}),
        ("products/pro", {**MONTHLY, "walletpay": {"plan_id": "P-1"}, "price": {"amount": 900, "currency": "TWD"}}),
    ],
)
async def test_what_can_work_is_written_without_a_warning(operator: Operator, path: str, value: dict[str, Any]):
    await operator.put("configs/default/walletpay/Default", {**APP, **URLS})

    written = await operator.put(f"configs/default/{path}?strict=true", value)

    assert (written.status, written.body.get("warnings")) == (200, None)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("walletpay/Default", {**APP, **URLS, "webhook_id": ""}, "webhook_id"),
        ("walletpay/Default", {**APP, **URLS, "client_secret": ""}, "client_secret"),
        ("walletpay/Default", {**APP, **URLS, "return_url": None}, "return_url"),
        ("payouts/Default", {**APP, "webhook_id": ""}, "webhook_id"),
        ("products/pro", {**MONTHLY, "walletpay": {"plans": {"US": "P-1"}}}, "walletpay.plan_id"),
    ],
)
async def test_what_is_missing_is_a_warning(operator: Operator, path: str, value: dict[str, Any], field: str):
    await operator.put("configs/default/walletpay/Default", {**APP, **URLS})

    written = await operator.put(f"configs/default/{path}", value)

    assert written.status == 200
    assert [warning["path"] for warning in written.body["warnings"]] == [field]


async def test_the_secret_is_not_shown(operator: Operator):
    await operator.put("configs/default/walletpay/Default", {**APP, **URLS, "client_secret": "very-secret"})

    shown = await operator("GET", "configs/default/walletpay/Default")

    assert "very-secret" not in str(shown.body)
