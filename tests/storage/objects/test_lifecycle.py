"""What the lifecycle rules of a bucket mean, and how ours are written to it."""

from collections.abc import Iterator
from typing import Any

import pytest

from storage.objects.lifecycle import MAX_RULES, Expiry, Lifecycle, lifecycle_of, rule_for_uploads, rules_for
from storage.objects.s3 import S3Objects
from tests.running.object_stores import new_bucket, s3_client, s3_credentials, s3_server
from tests.storage.objects.s3_services import FaultyService, refusal, store_at

SPEECH = Expiry("speech/default/", 7)
OTHERS: list[dict[str, Any]] = [
    {"ID": "archive", "Status": "Enabled", "Filter": {"Prefix": "other/"}, "Expiration": {"Days": 400}},
    {"ID": "tags", "Status": "Enabled", "Filter": {"Tag": {"Key": "a", "Value": "b"}}, "Expiration": {"Days": 1}},
]

pytestmark = pytest.mark.xdist_group("s3")  # One worker imports the S3 server and client.


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    with s3_credentials():
        yield


def rule(**fields: Any) -> dict[str, Any]:
    return {"Status": "Enabled", "Filter": {"Prefix": SPEECH.prefix}, "Expiration": {"Days": 7}, **fields}


@pytest.mark.parametrize(
    ("given", "deletes", "early"),
    [
        (rule(), True, None),
        (rule(Filter={"Prefix": "speech/"}), True, None),
        (rule(Filter={"Prefix": "speech/default/20261122/"}), False, None),
        (rule(Filter={}), True, None),
        ({"Status": "Enabled", "Prefix": "speech/", "Expiration": {"Days": 7}}, True, None),
        ({"Status": "Enabled", "Expiration": {"Days": 7}}, True, None),
        (rule(Expiration={"Days": 6}), True, 6),
        (rule(Filter={"Prefix": "speech/default/2026"}, Expiration={"Days": 6}), False, 6),
        (rule(Expiration={"Days": 8}), False, None),
        (rule(Expiration={"Date": "2027-01-01T00:00:00Z"}), False, None),
        (rule(Status="Disabled"), False, None),
        (rule(Filter={"Prefix": "speech/other/"}), False, None),
        (rule(Filter={"Tag": {"Key": "a", "Value": "b"}}), False, None),
        (rule(Filter={"And": {"Prefix": "speech/", "Tags": []}}), False, None),
        (rule(Filter={"Prefix": "", "ObjectSizeGreaterThan": 1}), False, None),
        ({}, False, None),  # As the client reads the rules of Google's format.
    ],
)
def test_only_rules_without_other_conditions_are_relied_on(given: dict[str, Any], deletes: bool, early: int | None):
    lifecycle = lifecycle_of([given])

    assert lifecycle.deletes(SPEECH) == deletes
    assert lifecycle.early(SPEECH) == early


@pytest.mark.parametrize("prefix", ["", "speech/"])
def test_interrupted_uploads_are_deleted_only_if_the_rule_is_for_all_keys(prefix: str):
    aborting = rule_for_uploads() | {"Filter": {"Prefix": prefix}}

    assert lifecycle_of([aborting]).aborts_uploads == (prefix == "")
    assert not lifecycle_of([aborting]).expiries


async def test_written_rules_replace_earlier_ones_and_keep_those_of_others():
    with s3_server() as url:
        async with new_bucket(url) as bucket, store_at(url, bucket) as objects, s3_client(url) as client:
            assert isinstance(objects, S3Objects)
            assert await objects.lifecycle() == Lifecycle()
            await client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": OTHERS})
            for days in (2, 7):
                written = [rule_for_uploads(), *rules_for([SPEECH._replace(days=days)])]
                assert await objects.write_rules(written) == len(OTHERS)
            found = await objects.lifecycle()
            await objects.write_rules(rules_for(Expiry(f"speech/{n}/", 7) for n in range(MAX_RULES)))
            stored = await client.get_bucket_lifecycle_configuration(Bucket=bucket)

    assert found == Lifecycle(expiries=(Expiry("other/", 400), SPEECH), aborts_uploads=True)
    names = [one["ID"] for one in stored["Rules"]]
    assert (len(names), names[:3]) == (MAX_RULES, ["archive", "tags", "parley-speech-0"])


@pytest.mark.parametrize(
    ("status", "code", "why"),
    [
        (501, "NotImplemented", "the object store refused: it does not support this"),
        (405, "MethodNotAllowed", "the object store refused: it does not support this"),
        (403, "AccessDenied", "the object store refused: permission denied"),
        (500, "InternalError", "the object store is not reachable: it answered 500"),
    ],
)
async def test_rules_that_cannot_be_read_are_unknown(status: int, code: str, why: str):
    service = FaultyService(refusal(status, code))
    async with service.opened() as objects:
        lifecycle = await objects.lifecycle()

    assert lifecycle == Lifecycle(unknown=why)
    assert not lifecycle.deletes(SPEECH)
