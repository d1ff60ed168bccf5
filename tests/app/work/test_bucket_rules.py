"""Expired files are left to a bucket that deletes them by itself, and are deleted by the job otherwise."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from app.services import Services
from app.settings import Settings
from app.work.retention import remove_expired, remove_objects
from storage.jobs.jobs import RemoveExpired, RemoveObjects
from storage.objects import ObjectStore
from storage.operators.audit import COMMAND
from storage.tasks import task_files
from streams.wire.codec import loads
from tests.app.doctor.doctor import BROKEN, Doctor, bad_points, point
from tests.calendar.clock import utc_now
from tests.deploy.serving import server_env
from tests.running.forks import run
from tests.running.object_stores import new_bucket, s3_client, s3_credentials, s3_server
from tests.running.s3_proxy import S3Proxy, code, s3_proxy
from tests.running.servers import Server

OLD = utc_now() - timedelta(days=3_000)
SPEECH = f"speech/default/{OLD:%Y%m%d}/u/s.mp3"

pytestmark = pytest.mark.xdist_group("s3")  # One worker imports the S3 server and client.


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
async def s3(s3_url: str) -> AsyncIterator[S3Proxy]:
    async with s3_proxy(s3_url) as proxy:
        yield proxy


@pytest.fixture
async def settings(settings: Settings, s3: S3Proxy) -> AsyncIterator[Settings]:
    with s3_credentials():
        async with new_bucket(s3.url) as bucket:
            yield replace(settings, s3_bucket=bucket, s3_endpoint_url=s3.url)


@dataclass
class Bucket:
    server: Server
    s3: S3Proxy

    @property
    def services(self) -> Services:
        return self.server.services

    @property
    def objects(self) -> ObjectStore:
        return self.services.objects

    async def lifecycle(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        """Run `python -m app bucket lifecycle …`."""
        env = server_env(self.services.settings, **env)
        return await run("app", "bucket", "lifecycle", *arguments, env=env)

    async def store_old_files(self) -> str:
        """Store audio and an upload that have expired. Return the key of the upload."""
        await self.objects.put(SPEECH, b"audio", content_type="audio/mpeg")
        uid, _ = await self.server.login()
        upload = task_files.new_key("default", uid, origin="uploads", extension="png")
        async with self.services.database.connection() as conn:
            assert await task_files.add(conn, "default", uid, key=upload, now=OLD)
        await self.objects.put(upload, b"png", content_type="image/png")
        return upload

    async def remove_expired(self) -> list[str]:
        """Run the job, and the jobs that it has enqueued. Return the requests that the bucket got."""
        self.s3.asked.clear()
        await remove_expired(self.services, RemoveExpired())
        async with self.services.database.connection() as conn:
            rows = await conn.fetch("select args from procrastinate_jobs where task_name = $1", RemoveObjects.task)
            assert not await conn.fetchval("select exists (select from task_files)")
        for row in rows:
            await remove_objects(self.services, RemoveObjects(keys=row["args"]["keys"]))
        return self.s3.asked


@pytest.fixture
async def bucket(server: Server, s3: S3Proxy) -> Bucket:
    return Bucket(server, s3)


async def test_files_that_the_bucket_deletes_are_neither_listed_nor_deleted(bucket: Bucket) -> None:
    upload = await bucket.store_old_files()
    assert await bucket.lifecycle("--write") == (0, "6 rules are written, 0 others are kept\n", "")

    asked = await bucket.remove_expired()

    assert asked == [f"GET /{bucket.services.settings.s3_bucket}?lifecycle"]
    assert sorted(await bucket.objects.keys("")) == [SPEECH, upload]


@pytest.mark.parametrize(
    "refusal",
    [None, (403, "AccessDenied"), (501, "NotImplemented"), "later"],
    ids=["no rules", "403", "501", "late"],
)
async def test_files_that_the_bucket_does_not_delete_in_time_are_deleted_by_the_job(
    bucket: Bucket, refusal: tuple[int, str] | str | None
) -> None:
    await bucket.store_old_files()
    if refusal == "later":
        await change_limits(bucket, speech_days=3660, task_days=3660)
        await bucket.lifecycle("--write")
        await change_limits(bucket)
    elif isinstance(refusal, tuple):
        answer = code(*refusal)
        bucket.s3.refuse = lambda request: answer(request) if "lifecycle" in request.query else None

    asked = await bucket.remove_expired()

    assert sum("lifecycle" in line for line in asked) == 1
    assert await bucket.objects.keys("") == []


async def change_limits(bucket: Bucket, **values: Any) -> None:
    await bucket.services.configs.put("default", "limits", "default", values, author="test", origin=COMMAND)


async def test_rules_follow_the_limits_of_each_app_and_can_be_printed(bucket: Bucket) -> None:
    await change_limits(bucket, speech_days=5, task_days=60, export_days=1)
    status, printed, _ = await bucket.lifecycle(S3_BUCKET="", AWS_ENDPOINT_URL_S3="")

    assert status == 0
    rules = loads(printed)["Rules"]
    assert {rule["Filter"]["Prefix"]: rule.get("Expiration") for rule in rules} == {
        "": None,
        "speech/default/": {"Days": 5},
        "uploads/default/": {"Days": 60},
        "predictions/default/": {"Days": 60},
        "images/default/": {"Days": 60},
        "exports/default/": {"Days": 1},
    }
    assert rules[0]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    async with s3_client(bucket.s3.url) as client:  # S3 accepts what was printed.
        name = bucket.services.settings.s3_bucket
        await client.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration=loads(printed))
    assert (await bucket.objects.lifecycle()).aborts_uploads


async def test_a_service_without_rules_for_uploads_gets_the_others(bucket: Bucket) -> None:
    refused = code(400, "MalformedXML")

    bucket.s3.refuse = lambda request: refused(request) if len(bucket.s3.asked) == 2 else None
    bucket.s3.asked.clear()
    status, out, errors = await bucket.lifecycle("--write")

    assert (status, out) == (0, "5 rules are written, 0 others are kept\n")
    assert "interrupted uploads" in errors
    assert not (await bucket.objects.lifecycle()).aborts_uploads


async def test_refusals_of_the_command_name_their_cause(bucket: Bucket) -> None:
    denied = code(403, "AccessDenied")
    bucket.s3.refuse = lambda request: denied(request) if request.method == "PUT" else None
    status, out, errors = await bucket.lifecycle("--write")
    assert (status, out) == (2, "")
    assert errors.endswith("internal: the object store refused: permission denied\n")

    status, _, errors = await bucket.lifecycle("--write", S3_BUCKET="")
    assert (status, errors) == (2, "parley: S3_BUCKET is not set, and a folder has no lifecycle rules\n")


async def test_doctor_says_who_deletes_expired_files(bucket: Bucket) -> None:
    doctor = Doctor(bucket.server)

    async def expiry() -> str:
        found = await doctor.examine("objects")
        assert not bad_points(found)
        return point(found, "expiry").seen

    assert await expiry() == "the worker deletes expired files, and the bucket none"
    await bucket.lifecycle("--write")
    assert await expiry() == "the bucket deletes expired files"
    await change_limits(bucket, speech_days=3, task_days=20)
    findings = await doctor.examine("objects")
    found = point(findings, "early expiry")
    assert found.state is BROKEN
    assert found.seen == "the bucket deletes speech/default/ after 2 days, not after 3; 1 in all"
    folders = "uploads/default/, predictions/default/, images/default/"
    assert point(findings, "expiry").seen == f"the bucket deletes expired files, and the worker those of {folders}"

    denied = code(403, "AccessDenied")
    bucket.s3.refuse = lambda request: denied(request) if "lifecycle" in request.query else None
    seen = await expiry()
    assert seen == "the worker deletes expired files (the object store refused: permission denied)"


async def test_doctor_finds_rules_that_delete_kept_files(bucket: Bucket) -> None:
    rule = {"ID": "all", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 3000}}
    async with s3_client(bucket.s3.url) as client:
        await client.put_bucket_lifecycle_configuration(
            Bucket=bucket.services.settings.s3_bucket, LifecycleConfiguration={"Rules": [rule]}
        )
    found = point(await Doctor(bucket.server).examine("objects"), "kept files")
    assert (found.state, "conversation/" in found.seen) == (BROKEN, True)
