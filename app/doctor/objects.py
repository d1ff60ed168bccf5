"""Checks the object store by writing, reading and deleting a probe."""

from collections.abc import AsyncIterator

from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from storage.objects import ObjectStore, open_objects
from storage.objects.contract import ObjectsUnavailable
from storage.operators.doctor_reports import Finding
from storage.secrets import Keyring
from streams.wire.errors import ItemNotFound, ServiceError
from streams.wire.ids import new_id

AREA = Area("objects")
_PROBE = b'{"written_by":"python -m app doctor"}'
_FIXES = {
    "write": "grant s3:PutObject on the bucket, or make the folder writable for the service's user",
    "read": "grant s3:GetObject on the bucket",
    "list": "grant s3:ListBucket on the bucket",
    "delete": "grant s3:DeleteObject on the bucket: otherwise nothing is ever deleted by age",
}


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    settings = here.settings
    folder = settings.data_dir / "objects"
    place = f"bucket {settings.s3_bucket}" if settings.s3_bucket else f"folder {folder}"
    opened = open_objects(
        folder=folder,
        bucket=settings.s3_bucket,
        endpoint_url=settings.s3_endpoint_url,
        public_url=settings.public_url,
        keyring=Keyring.from_hex(settings.master_key.get_secret_value()),
    )
    try:
        async with opened as objects:
            async for finding in _try_rights(objects, place):
                yield finding
    except (ServiceError, OSError) as error:
        yield AREA.broken(
            "connection",
            f"{place}: {error}",
            why="speech, uploads and exports fail",
            fix="start the object store, or correct S3_BUCKET, AWS_ENDPOINT_URL_S3 and the credentials, or "
            "PARLEY_DATA_DIR",
        )


async def _try_rights(objects: ObjectStore, place: str) -> AsyncIterator[Finding]:
    folder = f"doctor/{new_id()}"
    key = f"{folder}/probe.json"
    done = []
    for right in ("write", "read", "list", "delete"):
        try:
            await _use(objects, right, folder, key)
        except ObjectsUnavailable:
            raise
        except (ServiceError, OSError) as error:
            yield AREA.broken(right, f"{place}: {error}", why="speech, uploads or exports fail", fix=_FIXES[right])
            if right == "write":
                return
        else:
            done.append(right)
    yield AREA.good("rights", f"{place}: {', '.join(done)}")


async def _use(objects: ObjectStore, right: str, folder: str, key: str) -> None:
    """Use one right. Raises an error if the store refuses the call, or only pretends to execute it."""
    match right:
        case "write":
            await objects.put(key, _PROBE, content_type="application/json")
        case "read":
            if await objects.get(key) != _PROBE:
                raise OSError("the probe was not read as it was written")
        case "list":
            if key not in await objects.keys(f"{folder}/"):
                raise OSError("the probe is not in the list of its folder")
        case "delete":
            await objects.delete([key])
            if await _exists(objects, key):
                raise OSError("the probe is still there")


async def _exists(objects: ObjectStore, key: str) -> bool:
    try:
        await objects.stat(key)
    except ItemNotFound:
        return False
    return True
