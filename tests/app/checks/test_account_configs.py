"""Configs of accounts that cannot be read are refused when they are written, and probable mistakes are warnings."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from app.accounts.sign_in.platforms import Platforms
from storage.configs.kinds.limits import RATES
from storage.configs.kinds.sign_in import PLATFORMS
from tests.app.operators import Operator
from tests.peers.rsa_keys import rsa_key
from tests.running.config_stores import store_unchecked
from tests.running.servers import Server
from vendors.signin.catalog import CLIENT_FIELDS, DEFAULT_PROVIDERS

Key = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
OURS = {"audiences": ["our-app"]}
CODE_APP = {**OURS, "client_id": "our-app", "client_secret": "s"}


@pytest.fixture
def operator(shared_server: Server) -> Operator:
    return Operator(shared_server)


def pem(key: Key) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


RSA = pem(rsa_key().public_key())
SHORT_RSA = pem(rsa_key(1024).public_key())  # refused
P384 = pem(ec.generate_private_key(ec.SECP384R1()).public_key())
ED25519 = pem(ed25519.Ed25519PrivateKey.generate().public_key())


def server_key(alg: str, **fields: str) -> dict[str, Any]:
    return {
        "server_keys": [{"kid": "right", "alg": "HS256", "secret": "s" * 32}, {"kid": "k", "alg": alg, **fields}]
    }


def template(text: str, **more: str) -> dict[str, str]:
    return {"subject": "From Talk", "text": text, **more}


SIGN_IN = [
    ("microblog", {"provider": "fax"}, "provider must be one of"),
    *(
        ("microblog", {**OURS, "base_url": url}, "base_url must be a URL that begins with http://")
        for url in ("ftp://host", "http://x/ y", "http://x/\n", "http:///path", "http://x?a=b", "http://x/#a")
    ),
    ("microblog", {**OURS, "jwks_url": "http://x/keys a"}, "jwks_url must be a URL that begins with http://"),
    *(
        (
            "ios_games_service",
            {"key_hosts": ["keys.example", host]},
            "key_hosts[1] must be a host name in lower case",
        )
        for host in ("evil.com/", "keys.example:443", "https://keys.example", "Keys.example", "*")
    ),
    ("microblog", {"audiences": [""]}, "audiences[0] must not be empty"),
    ("payment_wallet_a", {"private_key": "no key"}, "private_key must be a private key in PEM format"),
    ("payment_wallet_a", {"public_key": "no key"}, "public_key must be a public key in PEM format"),
    ("ios_games_service", {"key_roots": ["no root"]}, "key_roots[0] must be a certificate in PEM format"),
    ("fax", OURS, "name must be one of ios_vendor_id, "),
]
INCOMPLETE_SIGN_IN = [
    ("microblog", {}, "audiences", "must not be empty"),
    ("search_vendor_id", {"audiences": [], "client_id": "our-app"}, "audiences", "must not be empty"),
    ("microblog", {**OURS, "provider": "google"}, "provider", "google cannot prove microblog"),
    ("microblog", {"provider": "google"}, "provider", "google cannot prove microblog"),
    ("im_network_a", {**CODE_APP, "provider": "wechat"}, "provider", "wechat cannot prove im_network_a"),
    ("retail_platform", OURS, "client_id", "is required"),
    ("retail_platform", {**CODE_APP, "client_id": "other-app"}, "audiences", "must contain client_id"),
    ("retail_platform", {**OURS, "client_id": "our-app"}, "client_secret", "is required"),
    ("retail_platform", {**CODE_APP, "provider": "amazon"}, "redirect_uri", "is required"),
    ("social_network_a", OURS, "client_id", "is required"),
    ("payment_wallet_a", CODE_APP, "private_key", "must be the app's RSA key in PEM format"),
    ("ios_games_service", {}, "bundle_ids", "must list the bundle ids of your apps"),
    ("ios_games_service", OURS, "bundle_ids", "must list the bundle ids of your apps; audiences is not used"),
    ("android_games_service", {**OURS, "provider": "game_center"}, "provider", "cannot be game_center"),
    (
        "microblog",
        {**OURS, "require_nonce": True},
        "require_nonce",
        "must be false, because proofs of weibo contain no",
    ),
    ("microblog", {**OURS, "client_id": "other-app"}, "client_id", "is not one of audiences"),
]
AUTH = [
    ({"sign_keys": [{"id": "a", "key": "k" * 16}, {"id": "b", "key": ""}]}, "sign_keys[1].key must not be empty"),
    (server_key("HS256", secret="s" * 31), "server_keys[1].secret must be at least 32 bytes for HS256"),
    (server_key("HS256", public_key=RSA), "server_keys[1].secret must be at least 32 bytes for HS256"),
    (server_key("EdDSA"), "server_keys[1].public_key must be the PEM of a public key"),
    (server_key("EdDSA", public_key="no pem"), "server_keys[1].public_key must be the PEM of a public key"),
    (server_key("RS256", public_key=ED25519), "server_keys[1].public_key must be a key for RS256"),
    (server_key("RS256", public_key=SHORT_RSA), "server_keys[1].public_key must be a key for RS256"),
    (server_key("ES256", public_key=P384), "server_keys[1].public_key must be a key for ES256"),
]  # fmt: skip
TEMPLATES = [
    ({"login_email": template("Hello")}, "login_email.default.text", "{{.Code}}"),
    ({"sign_up_email": {"de": template("{{.Link}}")}}, "sign_up_email.de.text", "{{.Code}}"),
    ({"login_email": template("{{.Code}}", html="<p>Hi</p>")}, "login_email.default.html", "{{.Code}}"),
    ({"verify": template("{{.Code}} {{.NotMeLink}}")}, "verify.default.text", "{{.Link}}"),
    ({"verify": template("{{.Link}}")}, "verify.default.text", "{{.NotMeLink}}"),
    ({"reset": template("{{.Event}}")}, "reset.default.text", "{{.Link}} or {{.Code}}"),
]
REFUSED = [
    *((f"sign_in/{name}", value, message) for name, value, message in SIGN_IN),
    ("sms/default", {"url": "http://x/ y", "secret": "s"}, "url must be a URL that begins with http://"),
    *(("auth/default", value, message) for value, message in AUTH),
    ("auth/second", {}, "name must be default: an app has one config of kind auth"),
]
SUSPICIOUS = [
    *((f"sign_in/{name}", value, field, message) for name, value, field, message in INCOMPLETE_SIGN_IN),
    *(
        ("email/default", {"templates": value}, f"templates.{part}", f"does not contain {variable}")
        for value, part, variable in TEMPLATES
    ),
    ("auth/default", {"sign_keys": [{"id": "a", "key": "k" * 15}]}, "sign_keys[0].key", "is shorter than 16 bytes"),
    ("limits/default", {"rates": {"logins": {"count": 1, "per_s": 1}}}, "rates.logins", "has no effect: "),
    ("email/default", {"code_login": True}, "mail_accounts", "is empty, "),
]


@pytest.mark.parametrize(("path", "value", "message"), REFUSED)
async def test_what_cannot_be_used_is_refused_with_its_field(guest: Server, path, value, message):
    operator = Operator(guest)  # Nothing is written, so nothing must be restored.
    before = (await operator("GET", f"configs/default/{path}")).body
    status, error = (await operator.put(f"configs/default/{path}", value)).error
    assert (status, error[: len(message) + 19]) == (400, f"invalid_parameter: {message}")
    validated = (await operator("POST", f"configs/default/{path}/validate", {"value": value})).body
    fault = validated["errors"][0]
    assert (validated["valid"], f"invalid_parameter: {fault['path']} {fault['message']}") == (False, error)
    assert (await operator("GET", f"configs/default/{path}")).body == before


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sign_in/microblog", {"enabled": False}),
        ("sign_in/microblog", OURS),
        (
            "sign_in/microblog",
            {**OURS, "base_url": "https://user:key@[::1]:8443/a%20b/", "jwks_url": "http://x?a=b"},
        ),
        ("sign_in/retail_platform", CODE_APP),
        ("sign_in/search_vendor_id", {**OURS, "provider": "apple"}),
        ("sign_in/ios_games_service", {"bundle_ids": ["com.example.app"]}),
        ("sign_in/ios_games_service", {"bundle_ids": ["com.example.app"], "key_hosts": ["keys-1.example"]}),
        ("sign_in/ios_games_service", {"skip_signature_verify": True}),
        ("sign_in/android_games_service", {}),
        ("auth/default", {"sign_keys": [{"id": "a", "key": "k" * 16}], **server_key("RS256", public_key=RSA)}),
        ("auth/default", server_key("EdDSA", public_key=ED25519)),
        ("limits/default", {"rates": {name: {"count": 1, "per_s": 1} for name in RATES}}),
        ("email/default", {"templates": {"login_email": {"subject": "{{ .Code }} is your code", "text": "Hi"}}}),
        ("email/default", {"templates": {"reset": template("{{.Code}}", html="{{.Link}}")}}),
        ("email/default", {"templates": {"verify": template("{{.Link}} {{.NotMeLink}}")}}),
    ],
)
async def test_what_can_work_is_written_without_a_warning(operator: Operator, path, value):
    written = await operator.put(f"configs/default/{path}?strict=true", value)
    assert (written.status, written.body.get("warnings")) == (200, None)


@pytest.mark.parametrize(("path", "value", "field", "message"), SUSPICIOUS)
async def test_a_probable_mistake_is_a_warning_and_refused_in_strict_mode(
    operator: Operator, path, value, field, message
):
    path = f"configs/default/{path}"
    status, error = (await operator.put(f"{path}?strict=true", value)).error
    assert (status, error.startswith(f"invalid_parameter: {field} {message}")) == (400, True)
    written = await operator.put(path, value)
    assert written.status == 200
    [warning] = written.body["warnings"]
    assert (warning["path"], warning["message"][: len(message)]) == (field, message)
    validated = (await operator("POST", f"{path}/validate", {"value": value})).body
    assert validated == {"valid": True, "errors": [], "warnings": [warning]}
    assert (await operator("GET", path)).body["warnings"] == [warning]


async def test_faulty_configs_that_are_stored_remain_in_use_and_are_listed_with_warnings(operator: Operator):
    services = operator.server.services
    stored = {
        ("auth", "default"): {"require_sign": False, "sign_keys": [{"id": "a", "key": "short"}]},
        ("sign_in", "microblog"): {},
        ("email", "default"): {"templates": {"login_email": template("Hello")}},
    }
    for (kind, name), value in stored.items():
        await store_unchecked(services, kind, name, value)
    await services.configs.refresh()
    rows = {
        (row["kind"], row["name"]): row for row in (await operator("GET", "configs?app=default")).body["configs"]
    }
    faults = {key: [warning["path"] for warning in rows[key]["warnings"]] for key in stored}
    assert faults == {
        ("auth", "default"): ["sign_keys[0].key"],
        ("sign_in", "microblog"): ["audiences"],
        ("email", "default"): ["templates.login_email.default.text"],
    }
    assert not any("fault" in rows[key] for key in stored)
    await operator.server.login()


def test_the_fields_that_clients_send_are_those_of_the_interface():
    """A provider fits a platform if clients of the platform send one of the fields that prove an identity to it."""
    names = {"identity_token": "id_token"}
    assert {
        platform: {
            names.get(name, name)
            for name in next(iter(Platforms.model_fields[platform].annotation.__args__)).model_fields
        }
        for platform in PLATFORMS
    } == CLIENT_FIELDS
    assert CLIENT_FIELDS.keys() == DEFAULT_PROVIDERS.keys() == set(PLATFORMS)
