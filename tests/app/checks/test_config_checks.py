"""Accounts and strategies are checked against the catalog, and against each other, when they are written."""

import re
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from app.admin.money.platforms import platforms
from storage.configs.kinds import KINDS
from storage.configs.kinds.base import Ref
from storage.configs.references import references
from streams.wire.codec import dumps
from streams.wire.model import Model
from tests.app.operators import Operator
from tests.running.servers import Server
from vendors.catalog import CAPABILITIES, CATALOG

CHAT = {"chat": {"account": "llm", "model": "m"}}
TALK = "configs/default/conversation/talk"
LIST = "configs?app=default&kind=conversation"
ELLIPTIC = (
    ec.generate_private_key(ec.SECP256R1())
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode()
)
SERVICE = {"client_email": "a@b", "token_uri": "http://127.0.0.1:9/"}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
async def operator(server: Server) -> Operator:
    """An operator with an account of each platform, by its id."""
    operator = Operator(server)
    for platform in CATALOG:
        value = {"platform": platform, "base_url": "http://127.0.0.1:9"}
        assert (await operator.put(f"configs/default/vendor_accounts/{platform}", value)).status == 200
    return operator


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (
            "conversation",
            {"chat": {"account": "vendor_b_llm", "options": {"token_field": "tokens"}}},
            ("chat.options.token_field", "must be one of 'max_completion_tokens' or 'max_tokens'"),
        ),
        (
            "conversation",
            {"chat": {"account": "anthropic", "options": {"temprature": 1}}},
            ("chat.options.temprature", "is not a field"),
        ),
        (
            "speech",
            {"account": "vendor_c", "options": {"stability": 2}},
            ("options.stability", "must be at most 1"),
        ),
        (
            "recognition",
            {"account": "vendor_d_audio", "options": {"extra": []}},
            ("options.extra", "must be an object"),
        ),
        (
            "pronunciation",
            {
                "accounts": [
                    {"account": "local_audio"},
                    {"account": "vendor_a_audio", "options": {"alphabet": "IPA"}},
                ]
            },
            ("accounts[1].options.alphabet", "is not a field"),
        ),
        (
            "conversation",
            {"chat": {"account": "anthropic", "temperature": 1, "options": {"version": "2026-10-21"}}},
            ("chat.options.version", "2026-10-21 does not support temperature"),
        ),
        (
            "speech",
            {"account": "vendor_c", "audio_format": "wav", "options": {"output_format": "mp3_44100_128"}},
            ("options.output_format", "mp3_44100_128 is not for audio_format wav"),
        ),
        (
            "speech",
            {"account": "anthropic"},
            ("account", "names vendor_accounts anthropic, whose platform anthropic offers no speech"),
        ),
    ],
)
async def test_error_for_an_option_that_does_not_fit_the_platform_has_its_path(
    operator: Operator, path: str, value: dict[str, Any], fault: tuple[str, str]
):
    path = f"configs/default/{path}/one"
    assert (await operator.put(path, value)).error == (400, f"invalid_parameter: {' '.join(fault)}")
    validated = (await operator("POST", f"{path}/validate", {"value": value})).body
    assert validated == {"valid": False, "errors": [{"path": fault[0], "message": fault[1]}], "warnings": []}
    assert (await operator("GET", path)).status == 404


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ({"platform": "azure", "api_key": "k"}, "base_url is required"),
        ({"platform": "openai", "base_url": "https://:443/v1"}, "base_url cannot be called: "),
        (
            {"platform": "openai", "base_url": "https://api.example:port/v1"},
            "base_url cannot be called: not an HTTP URL",
        ),
        ({"platform": "openai", "api_key": "sk-1\n"}, "api_key must not contain a line break or NUL"),
        ({"platform": "google", "api_key": "{nonsense"}, "api_key is not valid JSON"),
        ({"platform": "gemini", "api_key": "{}"}, "api_key is no service account: client_email is required"),
        (
            {"platform": "google", "api_key": dumps({**SERVICE, "private_key": ELLIPTIC}).decode()},
            "api_key is no service account: private_key is not an RSA key",
        ),
        (
            {"platform": "parrot"},
            "platform must be one of ",
        ),
    ],
)
async def test_account_that_its_platform_cannot_use_is_refused(
    operator: Operator, value: dict[str, Any], reported: str
):
    status, message = (await operator.put("configs/default/vendor_accounts/main", value)).error
    assert (status, message[: len(reported) + 19]) == (400, f"invalid_parameter: {reported}")
    assert "-----BEGIN" not in message


async def test_platform_aliases_are_stored_as_their_id(operator: Operator):
    aliases = {alias: platform for platform, entry in CATALOG.items() for alias in entry.aliases}
    assert aliases.keys() == {"openai", "openai_audio", "azure", "elevenlabs", "google", "midjourney", "replicate"}
    for alias, platform in aliases.items():
        path = f"configs/default/vendor_accounts/{alias}"
        value = {"platform": alias, "base_url": "http://127.0.0.1:9", "api_key": "k"}
        written = await operator.put(path, value)
        assert written.body["value"] == {**value, "platform": platform, "api_key": {"secret": True}}
    assert (await operator.put("configs/default/speech/one", {"account": "elevenlabs"})).status == 200


async def test_reference_describes_every_platform_and_alias(operator: Operator):
    described = {row["platform"]: row for row in (await operator("GET", "platforms")).body["platforms"]}
    assert described.keys() == CATALOG.keys()
    assert described["vendor_c"]["aliases"] == ["elevenlabs"]
    assert described["vendor_c"]["options"]["speech"]["properties"]["stability"]["anyOf"][0]["maximum"] == 1
    assert described["vendor_a_audio"]["options"].keys() == {"recognition", "speech", "assessment"}
    listed = set(re.findall(r"`(\w+)` is\s+`(\w+)`", platforms.__doc__ or ""))
    assert listed == {(alias, platform) for platform, entry in CATALOG.items() for alias in entry.aliases}


async def test_name_of_a_missing_config_is_a_warning_until_the_config_exists(operator: Operator):
    value = {**CHAT, "speech": "calm"}
    warnings = [
        {"path": "chat.account", "message": "names vendor_accounts llm, which does not exist"},
        {"path": "speech", "message": "names speech calm, which does not exist"},
    ]
    validated = (await operator("POST", f"{TALK}/validate", {"value": value})).body
    assert validated == {"valid": True, "errors": [], "warnings": warnings}
    written = await operator.put(TALK, value)
    assert (written.status, written.body["warnings"]) == (200, warnings)
    assert (await operator("GET", TALK)).body["warnings"] == warnings
    await operator.put("configs/default/speech/calm", {"account": "vendor_c"})
    rows = {row["name"]: row for row in (await operator("GET", LIST)).body["configs"]}
    assert rows["talk"]["warnings"] == warnings[:1]
    assert "warnings" not in rows["scripted"]
    await operator.put("configs/default/vendor_accounts/llm", {"platform": "openai"})
    assert "warnings" not in (await operator("GET", TALK)).body
    await operator("DELETE", "configs/default/speech/calm")
    assert (await operator("GET", TALK)).body["warnings"] == warnings[1:]


async def test_strict_mode_refuses_warnings(operator: Operator):
    refused = await operator.put(f"{TALK}?strict=true", CHAT)
    message = "chat.account names vendor_accounts llm, which does not exist"
    assert refused.error == (400, f"invalid_parameter: {message}")
    assert (await operator("GET", TALK)).status == 404
    assert (await operator.put(f"{TALK}?strict", CHAT)).error == refused.error
    validated = (await operator("POST", f"{TALK}/validate?strict=true", {"value": CHAT})).body
    assert (validated["valid"], len(validated["errors"]), validated["warnings"]) == (False, 1, [])
    status, message = (await operator.put(f"{TALK}?strict=perhaps", CHAT)).error
    assert (status, message) == (400, "invalid_parameter: strict must be true or false")
    await operator.put("configs/default/vendor_accounts/llm", {"platform": "openai"})
    assert (await operator.put(f"{TALK}?strict=true", CHAT)).status == 200


async def test_strict_refuses_a_rollback_to_a_value_with_warnings(operator: Operator):
    await operator.put(TALK, CHAT)
    await operator.put(TALK, {"chat": {"account": "vendor_b_llm", "model": "m"}})
    rollback = "POST", f"{TALK}/rollback?strict=true"
    message = "invalid_parameter: chat.account names vendor_accounts llm, which does not exist"
    assert (await operator(*rollback, {"revision": 1})).error == (400, message)
    assert (await operator(*rollback, {"revision": 2})).body["revision"] == 3
    assert (await operator("POST", f"{TALK}/rollback", {"revision": 1})).body["revision"] == 4


async def test_strategy_whose_account_changes_its_platform_has_a_warning_and_can_be_rolled_back(
    operator: Operator,
):
    voice, account = "configs/default/speech/calm", "configs/default/vendor_accounts/llm"
    await operator.put(account, {"platform": "elevenlabs"})
    await operator.put(voice, {"account": "llm", "options": {"stability": 0.5, "style": 0.5}})
    await operator.put(account, {"platform": "openai"})
    assert "warnings" not in (await operator("GET", voice)).body, "unknown options are ignored"
    await operator.put(account, {"platform": "azure", "base_url": "http://127.0.0.1:9"})
    assert (await operator("GET", voice)).body["warnings"] == [
        {"path": "options.style", "message": "must be a string"}
    ]
    await operator.put(account, {"platform": "elevenlabs"})
    await operator("DELETE", voice)
    assert (await operator("POST", f"{voice}/rollback", {"revision": 1})).status == 200


async def test_schema_of_a_kind_has_the_kinds_that_its_fields_name(operator: Operator):
    kinds = {row["kind"]: row["schema"] for row in (await operator("GET", "kinds")).body["kinds"]}
    named = {
        (kind, field): described["x-config-kind"]
        for kind, schema in kinds.items()
        for owner in (schema, *schema.get("$defs", {}).values())
        for field, described in owner.get("properties", {}).items()
        if "x-config-kind" in described
    }
    assert (
        named.items()
        >= {
            ("recognition", "account"): "vendor_accounts",
            ("speech", "account"): "vendor_accounts",
            ("pronunciation", "account"): "vendor_accounts",
            ("conversation", "account"): "vendor_accounts",
            ("conversation", "recognition"): "recognition",
            ("conversation", "speech"): "speech",
        }.items()
    )
    order = list(KINDS)
    assert [pair for pair, kind in named.items() if order.index(pair[0]) <= order.index(kind)] == [], (
        "an import writes the kinds in this order"
    )


def test_references_of_a_value_have_the_paths_of_its_fields():
    value = KINDS["pronunciation"].model.model_validate({"accounts": [{"account": "a"}, {"account": "b"}]})
    assert [(reference.path, reference.kind, reference.name) for reference in references(value)] == [
        ("accounts[0].account", "vendor_accounts", "a"),
        ("accounts[1].account", "vendor_accounts", "b"),
    ]


def test_capabilities_that_fields_require_are_offered():
    """An unknown one would be found only when an operator names an account."""
    assert required_of(*(kind.model for kind in KINDS.values())) <= {capability.name for capability in CAPABILITIES}


def required_of(*models: type[Model]) -> set[str]:
    """The capabilities that fields of `models` require, and those of the models in their fields."""
    fields = [field for model in models for field in model.model_fields.values()]
    required = {mark.offers for field in fields for mark in field.metadata if isinstance(mark, Ref)} - {None}
    types = {kind for field in fields for kind in (field.annotation, *get_args(field.annotation))}
    inner = [kind for kind in types if isinstance(kind, type) and issubclass(kind, Model)]
    return required | (required_of(*inner) if inner else set())
