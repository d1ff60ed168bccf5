"""Names that need an explanation have one in the reference, and in docs/guides/conventions.md."""

import re
from collections.abc import Iterator
from typing import Any

from app.http.openapi.document import openapi
from app.routes import ROUTES
from streams.wire.codec import ZERO_TIME
from tests.code.source_files import FILES, ROOT

GUIDE = (ROOT / "docs/guides/conventions.md").read_text()
DOCUMENT = openapi(ROUTES, public_url="http://parley.example")
OPERATORS_ONLY = {"FailureRow", "MismatchView", "StrategyTrial", "PriceTrial", "WithdrawalRow"}
MAY_BE_UNSET = {
    "AssetView": {"expire_time", "custom_expire_time", "sub_canceled_time", "refund_time", "last_recovery_time"},
    "SubscriptionView": {"canceled_time"},
    "VerifyResult": {"verified_time"},
    "WithdrawalView": {"withdraw_time"},
}


def fields(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each field of this name in the bodies and responses that apps see, with its model."""
    for model, schema in DOCUMENT["components"]["schemas"].items():
        if model not in OPERATORS_ONLY and name in schema.get("properties", {}):
            yield model, schema["properties"][name]


def test_each_platform_says_which_kind_of_platform_it_is() -> None:
    found = dict(fields("platform"))
    assert len(found) > 10
    assert [model for model, field in found.items() if not field.get("description")] == []


def test_the_misspelt_amount_says_that_it_is_meant() -> None:
    [(_, field)] = fields("amonut")
    assert "spells the name so" in field["description"]
    assert "`amount`" in field["description"]


def test_each_time_that_may_be_unset_says_so() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for model, names in MAY_BE_UNSET.items():
        for name in names:
            assert "zero time" in schemas[model]["properties"][name]["description"], (model, name)
    assert ZERO_TIME in schemas["AssetView"]["description"]
    assert ZERO_TIME in DOCUMENT["info"]["description"]
    assert "](/docs/guides/conventions)" in DOCUMENT["info"]["description"]


def test_the_introduction_links_to_guides_only_if_the_server_has_them() -> None:
    url = "http://parley.example"
    assert f"curl {url}/bp/user/login" in DOCUMENT["info"]["description"]
    without = openapi(ROUTES, public_url=url, guides=False)["info"]["description"]
    assert "*Conventions*" in without
    assert "/docs/guides" not in without


def test_each_variable_of_the_examples_for_curl_is_explained() -> None:
    operations = [operation for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    for operation in operations:
        curl = operation["x-codeSamples"][0]["source"]
        assert curl.startswith('curl "http://parley.example/')
        parameters = {parameter["name"].upper() for parameter in operation["parameters"] if "name" in parameter}
        for variable in set(re.findall(r"\$([A-Z_]+)", curl)) - parameters:
            assert f"`${variable}` " in DOCUMENT["info"]["description"], curl


def test_the_body_of_a_curl_example_has_lines_that_fit_beside_its_description() -> None:
    curl = DOCUMENT["paths"]["/bp/ai/conversation"]["post"]["x-codeSamples"][0]["source"]
    body = curl.partition("-d '")[2]
    assert body.startswith('{\n  "strategies": [\n')
    assert body.endswith("\n}Tell me about the sea.'")
    assert max(len(line) for line in curl.splitlines()[3:]) <= 48


def test_the_errors_of_a_response_are_listed_by_name() -> None:
    operation = DOCUMENT["paths"]["/bp/ai/conversation"]["post"]
    for text in (
        operation["description"].partition("#### Errors")[2],
        operation["responses"]["400"]["description"],
    ):
        listed = re.findall(r"^- `([^`]+)`", text, re.MULTILINE)
        assert len(listed) > 2
        assert listed == sorted(listed)


def test_the_guide_names_headers_of_the_server() -> None:
    served = "".join(path.read_text() for path in FILES)
    listed = re.findall(r"`([A-Z][A-Za-z]*(?:-[A-Za-z]+)+|RateLimit)`", GUIDE)
    assert len(set(listed)) >= 10
    assert [header for header in listed if header not in served] == []


def test_the_guide_explains_each_of_them() -> None:
    assert ZERO_TIME in GUIDE
    assert re.findall("^## (.*)$", GUIDE, re.MULTILINE)[:3] == ["`platform`", "`amonut`", "Times"]
