"""An object store in an S3 bucket. The client reads credentials and region from the usual `AWS_*` variables."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import cache
from typing import Any

import aiohttp
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession, get_session
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from botocore.loaders import create_loader

from storage.objects.contract import (
    NoCredentials,
    ObjectsRefused,
    ObjectsUnavailable,
    PutStatus,
    Stored,
    not_found,
    rechunk,
)
from storage.objects.keys import check_put, content_type_of
from storage.objects.lifecycle import MAX_RULES, Lifecycle, lifecycle_of, others_of
from storage.objects.links import LINK_S, Links
from streams.wire.errors import ItemNotFound, StoreError
from streams.wire.network import network_cause

_CALL_S = 20.0  # Includes retries.
_JOIN_S = 180.0
"""How long a service may take to join the parts of an upload. AWS takes up to minutes for very large ones."""
_PIECE_BYTES = 256 * 1024
_PART_BYTES = 8 * 1024 * 1024
"""Larger objects are uploaded in parts of this size. S3 requires at least 5 MiB, and R2 that all parts but the last
have the same size."""
_MAX_PARTS = 10_000
"""The limit of S3, so that an object has at most 78 GiB."""

_CAUSES = {
    "AccessDenied": "permission denied",
    "403": "permission denied",
    "InvalidAccessKeyId": "its access key is refused",
    "SignatureDoesNotMatch": "its access key is refused",
    "ExpiredToken": "its access key has expired",
    "NoSuchBucket": "the bucket does not exist",
    "QuotaExceeded": "its quota is used up",
    "XMinioStorageFull": "its disk is full",
    "507": "its disk is full",
    "NotImplemented": "it does not support this",
    "MethodNotAllowed": "it does not support this",
    "MalformedXML": "it does not support this",
    "SlowDown": "it is overloaded",
    "429": "it is overloaded",
    "503": "it is unavailable",
}
"""By error code or HTTP status."""


@cache
def _models() -> Any:
    """Return the loader of service descriptions. It is cached, because reading them takes long."""
    return create_loader()


def new_session() -> AioSession:
    """Return a session that shares the cached service descriptions."""
    session = get_session()
    session.register_component("data_loader", _models())
    return session


class S3Objects:
    """An object store in a bucket.

    Links refer to this server and are not presigned by S3, because presigned links do not support HEAD and S3
    cannot send `nosniff`.
    """

    def __init__(self, client: Any, bucket: str, links: Links) -> None:
        self._client = client
        self._bucket = bucket
        self._puts = PutStatus(f"bucket {bucket}")
        self.links = links

    async def put(self, key: str, body: bytes | AsyncIterator[bytes], *, content_type: str) -> None:
        check_put(key, content_type)
        with self._puts.recorded(body):
            await self._put(key, body, content_type=content_type)

    async def _put(self, key: str, body: bytes | AsyncIterator[bytes], *, content_type: str) -> None:
        async with aclosing(rechunk(body, _PART_BYTES)) as pieces:
            first = await anext(pieces, b"")
            if len(first) < _PART_BYTES:
                await self._call(self._client.put_object, Key=key, ContentType=content_type, Body=first)
            else:
                await self._put_parts(key, first, pieces, content_type=content_type)

    async def _put_parts(self, key: str, first: bytes, rest: AsyncIterator[bytes], *, content_type: str) -> None:
        created = await self._call(self._client.create_multipart_upload, Key=key, ContentType=content_type)
        upload: dict[str, Any] = {"Key": key, "UploadId": created["UploadId"]}
        try:
            parts = [await self._put_part(upload, 1, first)]
            async for piece in rest:
                parts.append(await self._put_part(upload, len(parts) + 1, piece))
            complete = self._client.complete_multipart_upload
            await self._call(complete, within_s=_JOIN_S, **upload, MultipartUpload={"Parts": parts})
        except BaseException:
            with suppress(StoreError, ItemNotFound):
                await self._call(self._client.abort_multipart_upload, **upload)
            raise

    async def _put_part(self, upload: dict[str, Any], number: int, piece: bytes) -> dict[str, Any]:
        if number > _MAX_PARTS:
            raise ObjectsRefused("a file would be too large")
        part = await self._call(self._client.upload_part, **upload, PartNumber=number, Body=piece)
        return {"PartNumber": number, "ETag": part["ETag"]}

    async def get(self, key: str) -> bytes:
        async with self.read(key) as pieces:
            return b"".join([piece async for piece in pieces])

    async def stat(self, key: str) -> Stored:
        content_type_of(key)
        facts = await self._call(self._client.head_object, Key=key)
        return Stored(
            size_bytes=facts["ContentLength"],
            etag=facts["ETag"].strip('"'),
            modified=int(facts["LastModified"].timestamp()),
        )

    @asynccontextmanager
    async def read(
        self, key: str, *, start: int = 0, length: int | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        content_type_of(key)
        options: dict[str, Any] = {}
        if start or length is not None:
            options["Range"] = f"bytes={start}-{'' if length is None else start + length - 1}"
        response = await self._call(self._client.get_object, Key=key, **options)
        try:
            yield _pieces(response["Body"])
        finally:
            response["Body"].close()

    def url(self, key: str, *, valid_s: int = LINK_S) -> str:
        return self.links.url(key, valid_s=valid_s)

    async def folders(self, parent: str) -> list[str]:
        async with aclosing(self._pages(Prefix=parent, Delimiter="/")) as pages:
            return [common["Prefix"] async for page in pages for common in page.get("CommonPrefixes", [])]

    async def keys(self, folder: str, *, limit: int | None = None) -> list[str]:
        found: list[str] = []
        size: dict[str, Any] = {} if limit is None else {"MaxKeys": limit}
        async with aclosing(self._pages(Prefix=folder, **size)) as pages:
            async for page in pages:
                found += [entry["Key"] for entry in page.get("Contents", [])]
                if limit is not None and len(found) >= limit:
                    break
        return found[:limit]

    async def _pages(self, **what: Any) -> AsyncGenerator[dict[str, Any]]:
        """Yield the pages of a list. S3 puts at most 1,000 entries on a page."""
        more: dict[str, Any] = {}
        while True:
            page = await self._call(self._client.list_objects_v2, **what, **more)
            yield page
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete the objects, with one call each because some S3-compatible services have no bulk deletion."""
        for key in keys:
            content_type_of(key)
            await self._call(self._client.delete_object, Key=key)

    async def lifecycle(self) -> Lifecycle:
        try:
            return lifecycle_of((await self._lifecycle()).get("Rules", []))
        except StoreError as error:
            return Lifecycle(unknown=error.what)

    async def write_rules(self, rules: Sequence[dict[str, Any]]) -> int:
        """Replace the lifecycle rules that this method has written before. Return the number of the others."""
        current = await self._lifecycle()
        kept = {name: current[name] for name in ("TransitionDefaultMinimumObjectSize",) if name in current}
        others = others_of(current.get("Rules", []))
        write = self._client.put_bucket_lifecycle_configuration
        await self._call(write, LifecycleConfiguration={"Rules": [*others, *rules][:MAX_RULES]}, **kept)
        return len(others)

    async def _lifecycle(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = await self._call(self._client.get_bucket_lifecycle_configuration)
        except ItemNotFound:
            return {}
        return found

    async def ping(self) -> None:
        """Raise `StoreError` if the bucket does not answer, or if an object could not be stored recently."""
        try:
            await self._call(self._client.head_bucket)
        except ItemNotFound:
            raise ObjectsRefused("the bucket does not exist") from None
        self._puts.check()

    async def _call(
        self, operation: Callable[..., Awaitable[Any]], *, within_s: float = _CALL_S, **arguments: Any
    ) -> Any:
        with _map_errors():
            async with asyncio.timeout(within_s):
                return await operation(Bucket=self._bucket, **arguments)


async def _pieces(body: Any) -> AsyncIterator[bytes]:
    while piece := await _piece(body):
        yield piece


async def _piece(body: Any) -> bytes:
    with _map_errors():
        async with asyncio.timeout(_CALL_S):
            piece: bytes = await body.read(_PIECE_BYTES)
            return piece


@contextmanager
def _map_errors() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = error.response.get("Error", {}).get("Code", "")
        if code in {"404", "NotFound", "NoSuchKey", "NoSuchLifecycleConfiguration"}:
            raise not_found() from None
        cause = _CAUSES.get(code) or _CAUSES.get(str(status)) or f"it answered {status}"
        if (status >= 500 and code != "NotImplemented") or status == 429:
            raise ObjectsUnavailable(cause) from error
        raise ObjectsRefused(cause) from error
    except (HTTPClientError, NoConnection, aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ObjectsUnavailable(network_cause(error) or "") from error
    except BotoCoreError as error:
        raise ObjectsRefused("this server has no valid credentials or settings for it") from error


@asynccontextmanager
async def open_bucket(bucket: str, links: Links, *, endpoint_url: str | None = None) -> AsyncIterator[S3Objects]:
    """Open a store in `bucket`, on AWS or on an S3-compatible service at `endpoint_url`.

    Raises `NoCredentials` if there are none in the environment, in the files of AWS or from the machine's role.
    """
    session = new_session()
    if await session.get_credentials() is None:
        raise NoCredentials
    config = AioConfig(
        connect_timeout=2,
        read_timeout=10,
        max_pool_connections=50,
        retries={"mode": "standard", "total_max_attempts": 3},
        s3={"addressing_style": "path"},
        # Some S3-compatible services refuse the checksums that newer clients add to all requests.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    # Without TLS, the authorities' certificates are not needed, and to load them takes 50 ms of CPU time.
    verify = False if (endpoint_url or "").startswith("http://") else None
    async with session.create_client("s3", endpoint_url=endpoint_url, config=config, verify=verify) as client:
        yield S3Objects(client, bucket, links)
