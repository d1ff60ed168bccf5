"""Apps at PayPal, as configs describe them: which are opened, and how their webhooks are verified."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from app.platforms.accounts import open_paypal
from app.platforms.paypal import verify_webhook
from app.services import Services
from storage.configs.kinds.walletpay import WalletPay
from storage.configs.rows import ConfigKey
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import new_id
from tests.running.servers import Server
from vendors.errors import VendorError
from vendors.payments.paypal.certificates import NotGenuine
from vendors.payments.paypal.client import BASE_URL, PayPal
from vendors.sandbox.authority import ROOT
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.payments.paypal.plans import MONTHLY
from vendors.sandbox.payments.paypal.webhooks import signed
from vendors.sandbox.server import Running, listening

WEBHOOK_ID = "8PT597110X687430L"
BODY = b'{"id":"WH-1","event_type":"CHECKOUT.ORDER.APPROVED","resource":{"id":"5O1"}}'


@pytest.fixture
def services(shared_server: Server) -> Services:
    return shared_server.services


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


def config(**fields: Any) -> WalletPay:
    app = {"client_id": new_id(), "client_secret": SecretStr("s"), "webhook_id": WEBHOOK_ID}
    own = {"base_url": "{sandbox}/paypal", "certificate_hosts": ["127.0.0.1"], "certificate_ca": ROOT}
    return WalletPay(**{**app, **own, **fields})


def opened(services: Services, sandbox: Running, app: WalletPay) -> PayPal:
    key = ConfigKey("default", "walletpay", new_id())
    return open_paypal(services.vendors, app, key=key, sandbox_url=sandbox.url)


def headers(sandbox: Running, **how: Any) -> dict[str, str]:
    found, _ = signed(BODY, WEBHOOK_ID, tls_url=sandbox.sandbox.tls_url, **how)
    return dict(found)


async def register(app: WalletPay, sandbox: Running) -> None:
    """Make the webhook known to PayPal, so that it recognizes its signatures."""
    body = {"client_id": app.client_id, "id": WEBHOOK_ID, "url": "http://127.0.0.1:9/none"}
    async with aiohttp.ClientSession(raise_for_status=True) as http:
        await http.post(f"{sandbox.url}/paypal/_control/webhook", json=body)


def stages(sandbox: Running) -> list[str]:
    return [entry.stage for entry in sandbox.bill.since(0) if entry.stage in {"certificate", "verify"}]


async def test_the_base_url_is_paypals_own_unless_the_config_names_another(services: Services, sandbox: Running):
    at_paypal, elsewhere = config(base_url=None), config(base_url="http://127.0.0.1:9/a/")
    assert opened(services, sandbox, at_paypal).label == f"{at_paypal.client_id} at {BASE_URL}"
    assert opened(services, sandbox, elsewhere).label == f"{elsewhere.client_id} at http://127.0.0.1:9/a"
    assert (await opened(services, sandbox, config()).plan(MONTHLY)).id == MONTHLY


async def test_a_sandbox_that_does_not_run_is_a_fault_of_the_config(services: Services):
    key = ConfigKey("default", "walletpay", "Default")

    with pytest.raises(ConfigInvalid, match="walletpay Default: base_url names the sandbox"):
        open_paypal(services.vendors, config(), key=key, sandbox_url=None)


async def test_a_webhook_is_verified_offline_without_a_call(services: Services, sandbox: Running):
    app = config()

    webhook = await verify_webhook(opened(services, sandbox, app), app, headers(sandbox), BODY)

    assert webhook.event.id == "WH-1"
    assert stages(sandbox) == ["certificate"]


async def test_paypal_is_asked_if_there_are_no_certificate_hosts(services: Services, sandbox: Running):
    app = config(certificate_hosts=[])
    client = opened(services, sandbox, app)
    await register(app, sandbox)

    await verify_webhook(client, app, headers(sandbox), BODY)
    with pytest.raises(NotGenuine):
        await verify_webhook(client, app, headers(sandbox), BODY.replace(b"5O1", b"5O2"))

    assert stages(sandbox) == ["verify", "verify"]


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.REDIRECT, Fault.REFUSE, Fault.HUGE_ANSWER])
async def test_paypal_is_asked_if_the_certificate_cannot_be_fetched(
    services: Services, sandbox: Running, fault: Fault
):
    app = config()
    client = opened(services, sandbox, app)
    await register(app, sandbox)
    sandbox.sandbox.switches["paypal_certificates"] = KeyOptions(fault=fault, retry_after_s=9)

    await verify_webhook(client, app, headers(sandbox), BODY)

    assert stages(sandbox)[-1] == "verify"


@pytest.mark.parametrize(
    "url", ["https://169.254.169.254/latest/meta-data", "https://10.0.0.1/cert", "http://127.0.0.1/cert"]
)
async def test_nothing_is_fetched_from_other_addresses_and_paypal_is_not_asked(
    services: Services, sandbox: Running, url: str
):
    app = config()

    with pytest.raises(NotGenuine, match="certificate_hosts"):
        await verify_webhook(
            opened(services, sandbox, app), app, {**headers(sandbox), "PAYPAL-CERT-URL": url}, BODY
        )

    assert stages(sandbox) == []


async def test_a_forged_certificate_is_not_a_question_to_paypal(services: Services, sandbox: Running):
    app = config()

    with pytest.raises(NotGenuine):
        await verify_webhook(
            opened(services, sandbox, app), app, headers(sandbox, certificate="CERT-self-signed"), BODY
        )

    assert stages(sandbox) == ["certificate"]


async def test_a_webhook_that_cannot_be_verified_now_is_a_fault_of_the_vendor(services: Services, sandbox: Running):
    app = config()
    sandbox.sandbox.switches["paypal_certificates"] = KeyOptions(fault=Fault.UNAVAILABLE, retry_after_s=9)
    sandbox.sandbox.switches["paypal"] = KeyOptions(fault=Fault.UNAVAILABLE, retry_after_s=9)

    with pytest.raises(VendorError):
        await verify_webhook(opened(services, sandbox, app), app, headers(sandbox), BODY)


async def test_without_a_webhook_id_nothing_is_verified(services: Services, sandbox: Running):
    app = config(webhook_id="")

    with pytest.raises(ConfigInvalid, match="webhook_id is not set"):
        await verify_webhook(opened(services, sandbox, app), app, headers(sandbox), BODY)
