"""Objects in a bucket: the requests to the service, and its failures."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from streams.wire.errors import StoreError
from tests.peers.certificates import Authority
from tests.running.object_stores import new_bucket, s3_client, s3_credentials, s3_server
from tests.storage.objects.s3_services import FaultyService, refusal, store_at, store_of

KEY = "conversation/0198c0de/1/0.mp3"


pytestmark = pytest.mark.xdist_group("s3")  # One worker imports the S3 server and client.


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    with s3_credentials():
        yield


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


async def test_object_has_its_type_and_key_in_the_bucket(s3_url: str):
    async with new_bucket(s3_url) as bucket, store_at(s3_url, bucket) as objects:
        await objects.put(KEY, b"audio", content_type="audio/mpeg")
        async with s3_client(s3_url) as client:
            found = await client.head_object(Bucket=bucket, Key=KEY)

    assert found["ContentType"] == "audio/mpeg"


async def test_bucket_that_does_not_exist_is_internal(s3_url: str):
    async with store_at(s3_url, "no-such-bucket") as objects:
        with pytest.raises(StoreError, match="internal: the object store refused") as refused:
            await objects.put(KEY, b"x", content_type="audio/mpeg")
        assert refused.value.status == 500
        with pytest.raises(StoreError, match="internal: the object store refused"):
            await objects.ping()


async def test_request_that_a_busy_service_refuses_is_retried():
    service = FaultyService(refusal(503, "SlowDown"), web.Response())
    async with service.opened() as objects:
        await objects.put(KEY, b"x", content_type="audio/mpeg")

    assert service.asked == [f"PUT /bucket/{KEY}"] * 2


async def test_service_that_stays_down_is_unavailable_after_three_attempts():
    service = FaultyService(refusal(500, "InternalError"))
    async with service.opened() as objects:
        with pytest.raises(StoreError, match="not reachable") as unavailable:
            await objects.put(KEY, b"x", content_type="audio/mpeg")

    assert (unavailable.value.error_type, unavailable.value.status, unavailable.value.retryable) == (
        "internal",
        503,
        True,
    )
    assert len(service.asked) == 3


async def test_refused_credentials_are_not_reported_as_a_missing_file():
    service = FaultyService(refusal(403, "AccessDenied"))
    async with service.opened() as objects:
        with pytest.raises(StoreError, match="refused"):
            await objects.get(KEY)


async def test_unreachable_address_makes_the_store_unavailable(unused_tcp_port: int):
    async with store_at(f"http://127.0.0.1:{unused_tcp_port}") as objects:
        with pytest.raises(StoreError, match="not reachable"):
            await objects.ping()


async def test_truncated_body_is_an_error():
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000", "ETag": '"e"'})
        await response.prepare(request)
        await response.write(b"x" * 10)
        assert request.transport is not None
        request.transport.close()
        return response

    async with store_of(cut) as objects:
        with pytest.raises(StoreError, match="not reachable"):
            await objects.get(KEY)


async def test_certificate_that_is_not_accepted_is_the_cause(tmp_path: Path):
    tls = Authority(tmp_path).server("127.0.0.1")
    server = TestServer(web.Application(), scheme="https")
    await server.start_server(ssl=tls)
    async with server, store_at(str(server.make_url("/"))) as objects:
        with pytest.raises(StoreError, match="its TLS certificate comes from an unknown authority"):
            await objects.get(KEY)
