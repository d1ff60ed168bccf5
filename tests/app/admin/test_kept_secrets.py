"""A stored secret is kept only while the config still names the address for which it was stored."""

from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from storage.configs.kinds import KINDS
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from tests.app.operators import Operator
from tests.running.servers import Server

MARK = {"secret": True}
HERE, THERE = "https://here.example", "https://there.example"
EVENT_KEY = f"whsec_{'A' * 32}"
PEM = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class Case(NamedTuple):
    """A config with secrets, what can be changed in it without giving them again, and what cannot."""

    kind: str
    name: str
    value: dict[str, Any]
    secrets: dict[str, Any]
    harmless: dict[str, Any]
    moves: dict[str, Any]


CASES = [
    Case(
        "vendor_accounts",
        "main",
        {"platform": "openai", "base_url": HERE},
        {"api_key": "sk-secret"},
        {"platform": "vendor_b_llm", "concurrency": 2},
        {"platform": "anthropic", "base_url": THERE},
    ),
    Case(
        "mail_accounts",
        "main",
        {"host": "here.example", "username": "ada"},
        {"password": "secret"},
        {"port": 587, "from": "hello@here.example"},
        {"host": "there.example", "port": 25, "tls": "none"},
    ),
    Case(
        "sign_in",
        "photo_network",
        {"client_id": "1", "audiences": ["1"]},
        {"client_secret": "secret", "private_key": PEM.decode()},
        {"base_url": None, "enabled": False},
        {"provider": "weibo", "base_url": THERE},
    ),
    Case("sms", "default", {"url": HERE}, {"secret": "secret"}, {"code_s": 60}, {"url": THERE}),
    Case(
        "walletpay",
        "default",
        {"client_id": "id"},
        {"client_secret": "secret"},
        {"brand_name": "Shop"},
        {"base_url": THERE},
    ),
    Case(
        "payouts",
        "default",
        {"client_id": "id"},
        {"client_secret": "secret"},
        {"merchant_id": "7"},
        {"base_url": THERE},
    ),
    Case(
        "cardpay",
        "default",
        {},
        {"secret_key": "sk", "webhook_secrets": ["one"]},
        {"debug": True},
        {"base_url": THERE},
    ),
    Case(
        "events",
        "shop",
        {"url": HERE, "events": ["asset"]},
        {"secret": EVENT_KEY},
        {"timeout_s": 1.0},
        {"url": THERE},
    ),
]


@pytest.fixture
def operator(shared_server: Server) -> Operator:
    return Operator(shared_server)


def test_each_kind_with_secrets_says_where_they_are_sent() -> None:
    moved = {case.kind: set(case.moves) for case in CASES}
    assert {name: set(kind.addresses) for name, kind in KINDS.items() if kind.addresses} == moved
    with_secrets = {name for name, kind in KINDS.items() if "writeOnly" in str(kind.model.model_json_schema())}
    assert with_secrets == {*moved, "auth"}, "the keys of auth are never sent"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
async def test_a_secret_is_given_again_when_it_would_be_sent_elsewhere(operator: Operator, case: Case) -> None:
    path = f"configs/default/{case.kind}/{case.name}"
    assert (await operator.put(path, case.value | case.secrets)).status == 200
    marked = {name: [MARK] if isinstance(given, list) else MARK for name, given in case.secrets.items()}
    kept = await operator.put(path, case.value | marked | case.harmless)
    assert kept.status == 200
    for field, moved in case.moves.items():
        value = case.value | {field: moved}
        checked = await operator("POST", f"{path}/validate", {"value": value | marked})
        found = {error["path"].partition("[")[0]: error["message"] for error in checked.body["errors"]}
        assert found == dict.fromkeys(case.secrets, f"must be given again, because {field} has changed")
        first = checked.body["errors"][0]
        refused = await operator.put(path, value | marked)
        assert refused.error == (400, f"invalid_parameter: {first['path']} {first['message']}")
    assert await operator("GET", path) == kept
    assert (await operator.put(path, case.value | case.moves | case.secrets)).status == 200


async def test_all_that_has_changed_is_named_and_a_secret_can_be_left_out(operator: Operator) -> None:
    path = "configs/default/vendor_accounts/main"
    await operator.put(path, {"platform": "openai", "base_url": HERE, "api_key": "sk-secret"})
    moved = {"platform": "anthropic", "base_url": THERE}
    assert (await operator.put(path, {**moved, "api_key": MARK})).error == (
        400, "invalid_parameter: api_key must be given again, because platform and base_url have changed",
    )  # fmt: skip
    assert (await operator.put(path, moved)).status == 200
    assert (await operator.put(path, {**moved, "api_key": MARK})).error == (
        400, "invalid_parameter: api_key has no stored secret to keep",
    )  # fmt: skip


async def test_an_old_revision_is_restored_with_its_own_secret_and_address(operator: Operator) -> None:
    path = "configs/default/vendor_accounts/main"
    for address, key in ((HERE, "sk-here"), (THERE, "sk-there")):
        await operator.put(path, {"platform": "openai", "base_url": address, "api_key": key})
    assert (await operator("POST", f"{path}/rollback", {"revision": 1})).status == 200
    account = operator.server.services.configs.get(VENDOR_ACCOUNTS, "default", "main").value
    assert account.api_key is not None
    assert (account.base_url, account.api_key.get_secret_value()) == (HERE, "sk-here")
