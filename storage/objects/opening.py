"""Opens the object store of a deployment: a bucket if one is configured, otherwise a folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from storage.objects.contract import ObjectStore
from storage.objects.folder import open_folder
from storage.objects.links import Links
from storage.secrets import Keyring


@asynccontextmanager
async def open_objects(
    *, folder: Path, bucket: str | None, endpoint_url: str | None, public_url: str, keyring: Keyring
) -> AsyncIterator[ObjectStore]:
    """Open the object store. Its links begin with `public_url`. All nodes with the same master key accept them."""
    links = Links(keyring.derive("files"), public_url)
    if bucket is None:
        async with open_folder(folder, links) as objects:
            yield objects
    else:
        from storage.objects.s3 import open_bucket  # noqa: PLC0415 - slow to import, and most deployments have a folder

        async with open_bucket(bucket, links, endpoint_url=endpoint_url) as objects:
            yield objects
