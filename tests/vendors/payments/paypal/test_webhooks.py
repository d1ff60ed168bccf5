"""PayPal's webhooks, as the sandbox sends them: verified offline or by a call, or refused."""

import re
from base64 import b64decode, b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import certifi
import pytest
from cryptography.x509 import load_pem_x509_certificates
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import dumps
from tests.calendar.clock import utc_now
from tests.vendors.payments.paypal.calls import Merchant
from vendors.errors import VendorError
from vendors.http.transport import VendorHttp
from vendors.payments.paypal.certificates import NotGenuine, WebhookCertificates, check_chain, check_url
from vendors.payments.paypal.webhooks import SignedWebhook
from vendors.sandbox.authority import ROOT
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.payments.paypal.webhooks import CERTIFICATE, certificate, signed

WEBHOOK_ID = "8PT597110X687430L"
HOSTS = ("127.0.0.1",)
PUBLIC = Path(certifi.where()).read_text()
BODY = b'{"id":"WH-1","event_type":"PAYMENT.SALE.COMPLETED","resource":{"id":"8AA","note":"\xc3\xa4\\u00e4  "} }'


def sent(shop: Merchant, body: bytes = BODY, *, webhook_id: str = WEBHOOK_ID, **how: Any) -> dict[str, str]:
    """Return the headers of a webhook that PayPal has signed."""
    headers, _ = signed(body, webhook_id, tls_url=shop.sandbox.sandbox.tls_url, **how)
    return dict(headers)


async def offline(
    shop: Merchant, headers: dict[str, str], body: bytes = BODY, *, webhook_id: str = WEBHOOK_ID
) -> SignedWebhook:
    webhook = SignedWebhook.read(headers, body, now=utc_now())
    await shop.paypal.verify_offline(webhook, webhook_id=webhook_id, hosts=HOSTS, authorities=ROOT, now=utc_now())
    return webhook


async def refusal(shop: Merchant, headers: dict[str, str], body: bytes = BODY, **how: Any) -> str:
    with pytest.raises(NotGenuine) as raised:
        await offline(shop, headers, body, **how)
    return str(raised.value)


async def test_a_signed_webhook_is_verified_offline(shop: Merchant):
    webhook = await offline(shop, sent(shop))

    assert (webhook.event.id, webhook.event.event_type) == ("WH-1", "PAYMENT.SALE.COMPLETED")
    assert webhook.event.resource["id"] == "8AA"


async def test_a_certificate_is_fetched_once(shop: Merchant):
    for _ in range(3):
        await offline(shop, sent(shop))

    assert len(shop.calls("certificate")) == 1


async def test_a_certificate_is_fetched_again_after_a_day(http: VendorHttp, shop: Merchant):
    seconds = [0.0]
    certificates = WebhookCertificates(clock=lambda: seconds[0])
    url = sent(shop)["PAYPAL-CERT-URL"]

    for at in (1.0, 86_399.0, 86_402.0):
        seconds[0] = at
        await certificates.find(http, "walletpay", url, hosts=HOSTS, authorities=ROOT, now=utc_now())

    assert len(shop.calls("certificate")) == 2


@pytest.mark.parametrize(
    "change",
    [
        BODY.replace(b"8AA", b"8AB"),
        BODY + b" ",
        dumps({"id": "WH-1", "event_type": "PAYMENT.SALE.COMPLETED", "resource": {"id": "8AA"}}),
    ],
    ids=["another id", "another byte", "written anew"],
)
async def test_a_changed_body_is_refused(shop: Merchant, change: bytes):
    assert await refusal(shop, sent(shop), change) == "the signature is wrong"


async def test_a_webhook_of_another_app_is_refused(shop: Merchant):
    assert await refusal(shop, sent(shop, webhook_id="1AB23456CD789012E")) == "the signature is wrong"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAYPAL-TRANSMISSION-ID", "another"),
        ("PAYPAL-TRANSMISSION-ID", "a|b"),
        ("PAYPAL-TRANSMISSION-ID", ""),
        ("PAYPAL-TRANSMISSION-SIG", b64encode(bytes(256)).decode()),
        ("PAYPAL-TRANSMISSION-SIG", "AAA"),
        ("PAYPAL-TRANSMISSION-SIG", "*"),
        ("PAYPAL-TRANSMISSION-SIG", ""),
        ("PAYPAL-AUTH-ALGO", "SHA1withRSA"),
        ("PAYPAL-AUTH-ALGO", "none"),
        ("PAYPAL-TRANSMISSION-TIME", "yesterday"),
        ("PAYPAL-TRANSMISSION-TIME", ""),
        ("PAYPAL-CERT-URL", ""),
    ],
)
async def test_a_changed_header_is_refused(shop: Merchant, name: str, value: str):
    assert await refusal(shop, {**sent(shop), name: value})


async def test_the_time_is_signed_too(shop: Merchant):
    headers = sent(shop)
    another = (utc_now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")

    problem = await refusal(shop, {**headers, "PAYPAL-TRANSMISSION-TIME": another})

    assert problem == "the signature is wrong"


@pytest.mark.parametrize(("age", "accepted"), [(-6 / 1440, False), (-4 / 1440, True), (2.9, True), (3.1, False)])
async def test_only_webhooks_of_the_last_three_days_are_accepted(shop: Merchant, age: float, *, accepted: bool):
    headers = sent(shop, at=utc_now() - timedelta(days=age))

    if accepted:
        await offline(shop, headers)
    else:
        assert "older than three days, or from the future" in await refusal(shop, headers)


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'{"id":7}', b"{}", b'{"id":"WH-1"', b'{"id":"WH-1"},{"a":1}']
)
async def test_a_body_that_is_not_one_event_is_refused(shop: Merchant, body: bytes):
    assert await refusal(shop, sent(shop, body), body) == "the body is not an event"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("expired", "not issued by a known authority, or not valid"),
        ("not-yet-valid", "not issued by a known authority, or not valid"),
        ("self-signed", "not issued by a known authority, or not valid"),
        ("without-chain", "not issued by a known authority, or not valid"),
        ("elliptic", "no RSA key"),
        ("other-key", "signature is wrong"),
    ],
)
async def test_certificates_with_faults_are_refused(shop: Merchant, name: str, problem: str):
    assert problem in await refusal(shop, sent(shop, certificate=f"CERT-{name}"))


@pytest.mark.parametrize("name", ["garbage", "empty", "huge", "missing"])
async def test_a_certificate_that_cannot_be_read_is_a_fault_of_the_vendor(shop: Merchant, name: str):
    for _ in range(2):  # A failure is not kept.
        with pytest.raises(VendorError):
            await offline(shop, sent(shop, certificate=f"CERT-{name}"))

    assert len(shop.calls("certificate")) == 2


async def test_a_redirect_to_a_certificate_is_not_followed(shop: Merchant):
    shop.sandbox.sandbox.switches["paypal_certificates"] = KeyOptions(fault=Fault.REDIRECT)

    with pytest.raises(VendorError):
        await offline(shop, sent(shop))

    assert len(shop.calls("certificate")) == 1


async def test_a_server_that_another_authority_certifies_is_not_asked(shop: Merchant):
    webhook = SignedWebhook.read(sent(shop), BODY, now=utc_now())

    with pytest.raises(VendorError):
        await shop.paypal.verify_offline(
            webhook,
            webhook_id=WEBHOOK_ID,
            hosts=HOSTS,
            authorities=PUBLIC,
            now=utc_now(),
        )

    assert shop.calls("certificate") == []


URL = f"https://api.paypal.com/v1/notifications/certs/{CERTIFICATE}"


@pytest.mark.parametrize(
    "url",
    [
        URL.replace("https:", "http:"),
        URL.replace("api.paypal.com", "api.paypal.com.example.test"),
        URL.replace("api.paypal.com", "paypal.com"),
        URL.replace("api.paypal.com", "api.paypal.com@example.test"),
        URL.replace("api.paypal.com", "example.test/api.paypal.com"),
        URL.replace("api.paypal.com", "example.test#api.paypal.com"),
        URL.replace("api.paypal.com", "example.test\\@api.paypal.com"),
        URL.replace("api.paypal.com", "API.PAYPAL.COM"),
        URL.replace("api.paypal.com", "api.paypal.com:8443"),
        URL.replace("api.paypal.com", "169.254.169.254"),
        URL.replace("api.paypal.com", "10.0.0.1"),
        URL.replace("api.paypal.com", "[::1]"),
        URL.replace("api.paypal.com", "localhost"),
        f"{URL}?a=b",
        f"{URL}#fragment",
        f"{URL}/%2e%2e/other",
        f"{URL}\n",
        f" {URL}",
        "file:///etc/passwd",
        "",
    ],
)
def test_a_certificate_comes_from_a_configured_host_over_https(url: str):
    with pytest.raises(NotGenuine):
        check_url(url, hosts=["api.paypal.com"], own_authorities=False)


def test_paypals_own_address_is_accepted():
    check_url(URL, hosts=["api.paypal.com"], own_authorities=False)


def test_a_port_may_be_named_by_the_config():
    url = URL.replace("api.paypal.com", "certs.example.test:8443")

    check_url(url, hosts=["certs.example.test:8443"], own_authorities=False)
    with pytest.raises(NotGenuine):
        check_url(url, hosts=["certs.example.test"], own_authorities=False)


def test_addresses_of_machines_are_only_for_development():
    url = "https://127.0.0.1/certs/CERT-1"

    check_url(url, hosts=["127.0.0.1"], own_authorities=True)
    with pytest.raises(NotGenuine, match="names an IP address"):
        check_url(url, hosts=["127.0.0.1"], own_authorities=False)


@given(st.text(max_size=80))
def test_no_text_names_a_host_that_is_not_configured(text: str):
    for url in (text, f"https://{text}", f"https://api.paypal.com{text}"):
        try:
            check_url(url, hosts=["api.paypal.com"], own_authorities=False)
        except NotGenuine:
            continue
        assert re.fullmatch(r"https://api\.paypal\.com(/[\w.~-]+)+", url, re.ASCII)


def test_public_authorities_do_not_know_the_sandbox():
    leaf, *chain = load_pem_x509_certificates(certificate(CERTIFICATE) or b"")

    with pytest.raises(NotGenuine, match="not issued by a known authority"):
        check_chain(leaf, chain, authorities="", now=utc_now())


async def test_a_webhook_is_verified_by_a_call_with_its_own_bytes(shop: Merchant):
    await shop.control("webhook", id=WEBHOOK_ID, url="http://127.0.0.1:9/none")
    webhook = SignedWebhook.read(sent(shop), BODY, now=utc_now())

    await shop.paypal.verify_online(webhook, webhook_id=WEBHOOK_ID)

    assert shop.calls("verify")[0].asked["body"]["webhook_event"]["id"] == "WH-1"


@pytest.mark.parametrize("body", [BODY.replace(b"8AA", b"8AB"), BODY.replace(b"  ", b" ")])
async def test_a_call_refuses_a_changed_body(shop: Merchant, body: bytes):
    await shop.control("webhook", id=WEBHOOK_ID, url="http://127.0.0.1:9/none")
    webhook = SignedWebhook.read(sent(shop), body, now=utc_now())

    with pytest.raises(NotGenuine, match="does not recognize"):
        await shop.paypal.verify_online(webhook, webhook_id=WEBHOOK_ID)


async def test_a_body_cannot_change_the_question_to_paypal(shop: Merchant):
    """An app of the attacker at PayPal could have signed its own webhook."""
    body = BODY[:-1] + b'},"webhook_id":"OF-THE-ATTACKER","x":{}}'

    with pytest.raises(NotGenuine, match="the body is not an event"):
        SignedWebhook.read(sent(shop, body), body, now=utc_now())


async def test_a_failing_call_is_a_fault_of_the_vendor(shop: Merchant):
    shop.sandbox.sandbox.switches["paypal"] = KeyOptions(fault=Fault.UNAVAILABLE, retry_after_s=9)
    webhook = SignedWebhook.read(sent(shop), BODY, now=utc_now())

    with pytest.raises(VendorError):
        await shop.paypal.verify_online(webhook, webhook_id=WEBHOOK_ID)


@given(st.binary(max_size=64), st.text(max_size=12), st.text(max_size=12))
def test_the_message_has_the_checksum_of_the_bytes(junk: bytes, webhook_id: str, text: str):
    body = dumps({"id": "WH-1", "junk": junk.hex(), "text": text.encode("utf-8", "replace").decode()})
    headers, _ = signed(body, webhook_id, tls_url="https://127.0.0.1", transmission_id="id-7", at=utc_now())

    webhook = SignedWebhook.read(headers, body, now=utc_now())

    first, at, *_, checksum = webhook.message(webhook_id).decode().split("|")
    assert (first, at) == ("id-7", headers["PAYPAL-TRANSMISSION-TIME"])
    assert 0 <= int(checksum) < 2**32
    assert len(b64decode(webhook.signature)) == 256
