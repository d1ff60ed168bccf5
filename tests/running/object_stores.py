"""Both object stores for tests: a folder, and a bucket of a real S3 server on this machine."""

import hashlib
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

from app.settings import Settings
from storage.objects import ObjectStore, open_objects
from storage.secrets import Keyring

KEYRING = Keyring.from_hex(secrets.token_hex(32))
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Credentials for S3, and no other source of them."""


@contextmanager
def s3_credentials() -> Iterator[None]:
    """Set credentials for S3 in the environment, and disable all other sources of credentials."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an S3 server and yield its URL."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - slow to import, for each worker of the tests

    with s3_credentials():
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            yield "http://{}:{}".format(*server.get_host_and_port())
        finally:
            server.stop()


@asynccontextmanager
async def s3_client(endpoint_url: str) -> AsyncIterator[Any]:
    """Open a plain S3 client, for access that bypasses the store."""
    from storage.objects.s3 import new_session  # noqa: PLC0415 - slow to import, for each worker of the tests

    # `verify` as in `open_bucket`: to load certificates that nobody presents takes 50 ms of CPU time.
    async with new_session().create_client("s3", endpoint_url=endpoint_url, verify=False) as client:
        yield client


@asynccontextmanager
async def new_bucket(endpoint_url: str) -> AsyncIterator[str]:
    """Create a bucket without an S3 client, which would take longer to create than most tests run."""
    bucket = f"test-{secrets.token_hex(8)}"
    async with ClientSession() as http, http.put(f"{endpoint_url}/{bucket}") as response:
        assert response.status == 200, await response.text()
    yield bucket


@asynccontextmanager
async def open_store(
    *, folder: Path, endpoint_url: str | None = None, public_url: str = "http://files.test"
) -> AsyncIterator[ObjectStore]:
    """Open a folder store or, with `endpoint_url`, a store with a new bucket."""
    if endpoint_url is None:
        async with open_objects(
            folder=folder, bucket=None, endpoint_url=None, public_url=public_url, keyring=KEYRING
        ) as objects:
            yield objects
        return
    async with (
        new_bucket(endpoint_url) as bucket,
        open_objects(
            folder=folder, bucket=bucket, endpoint_url=endpoint_url, public_url=public_url, keyring=KEYRING
        ) as objects,
    ):
        yield objects


_of_all: list[str] = []
"""The URL of the S3 server that has the files of all tests, with `--s3`."""


@contextmanager
def s3_of_all() -> Iterator[None]:
    """Let the servers of all tests have their files in buckets during the block."""
    with s3_server() as url, s3_credentials():
        _of_all.append(url)
        try:
            yield
        finally:
            _of_all.remove(url)


def objects_of(data_dir: Path) -> dict[str, str]:
    """Return the fields of the settings of a test server that say where its files are, if not in `data_dir`.

    Servers with the same `data_dir` have the same bucket.
    """
    if not _of_all:
        return {}
    bucket = f"test-{hashlib.sha256(str(data_dir).encode()).hexdigest()[:32]}"
    with closing(HTTPConnection(urlsplit(_of_all[0]).netloc)) as server:
        server.request("PUT", f"/{bucket}")  # If it exists, this changes nothing.
        assert server.getresponse().status == 200
    return {"s3_bucket": bucket, "s3_endpoint_url": _of_all[0]}


def objects_env(settings: Settings) -> dict[str, str]:
    """Return the environment variables of a process whose files are where those of a test are."""
    if settings.s3_bucket is None or settings.s3_endpoint_url is None:
        return {"PARLEY_DATA_DIR": str(settings.data_dir)}
    bucket = {"S3_BUCKET": settings.s3_bucket, "AWS_ENDPOINT_URL_S3": settings.s3_endpoint_url}
    return {"PARLEY_DATA_DIR": str(settings.data_dir), **bucket, **CREDENTIALS}
