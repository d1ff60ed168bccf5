"""Checks the object store by writing, reading and deleting a probe, and the lifecycle rules of a bucket."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from storage.objects import ObjectStore, open_objects
from storage.objects.contract import ObjectsUnavailable
from storage.objects.lifecycle import Expiry, Lifecycle
from storage.operators.doctor_reports import Finding
from storage.secrets import Keyring
from storage.userdata import file_ages
from streams.wire.errors import ItemNotFound, ServiceError, listed
from streams.wire.ids import new_id

AREA = Area("objects")
_PROBE = b'{"written_by":"python -m app doctor"}'
_SHOWN = 20
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
            writable = True
            async for finding in _try_rights(objects, place):
                writable = writable and finding.point != "write"
                yield finding
            if settings.s3_bucket and writable:
                for finding in await _check_rules(here, await objects.lifecycle()):
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


async def _check_rules(here: Surroundings, lifecycle: Lifecycle) -> list[Finding]:
    """Check what the bucket deletes by itself. Without configs, it is not known what that should be."""
    found = [*_kept(lifecycle), *_uploads(here, lifecycle)]
    if here.configs is not None and (wanted := await file_ages.of_all_apps(here.configs)):
        found = [_expiry(lifecycle, wanted), *_early(lifecycle, wanted), *found]
    return found


def _expiry(lifecycle: Lifecycle, wanted: list[Expiry]) -> Finding:
    """Report who deletes expired files. Both ways are good."""
    if lifecycle.unknown:
        return AREA.good("expiry", f"the worker deletes expired files ({lifecycle.unknown})")
    left = [expiry.prefix for expiry in wanted if not lifecycle.deletes(expiry)]
    if len(left) == len(wanted):
        return AREA.good("expiry", "the worker deletes expired files, and the bucket none")
    if left:
        return AREA.good(
            "expiry", f"the bucket deletes expired files, and the worker those of {listed(left[:_SHOWN])}"
        )
    return AREA.good("expiry", "the bucket deletes expired files")


def _early(lifecycle: Lifecycle, wanted: list[Expiry]) -> list[Finding]:
    early = [(expiry, days) for expiry in wanted if (days := lifecycle.early(expiry)) is not None]
    if not early:
        return []
    expiry, days = early[0]
    return [
        AREA.broken(
            "early expiry",
            f"the bucket deletes {expiry.prefix} after {days} days, not after {expiry.days}; {len(early)} in all",
            why="files are gone earlier than the config `limits` promises",
            fix="run `python -m app bucket lifecycle --write`, or correct the rule that somebody else has written",
        )
    ]


def _kept(lifecycle: Lifecycle) -> list[Finding]:
    lost = [
        folder for folder in file_ages.KEPT_FOLDERS if any(rule.overlaps(folder) for rule in lifecycle.expiries)
    ]
    if not lost:
        return []
    return [
        AREA.broken(
            "kept files",
            f"the bucket deletes files of {listed(lost)} at a certain age",
            why="their links in conversations and caches lead to nothing",
            fix="remove the lifecycle rule, or restrict it to a prefix of other files",
        )
    ]


def _uploads(here: Surroundings, lifecycle: Lifecycle) -> list[Finding]:
    """Report on parts of interrupted uploads. Most other services than AWS delete them without a rule."""
    if lifecycle.aborts_uploads:
        return [AREA.good("interrupted uploads", "the bucket deletes them")]
    if lifecycle.unknown or not _is_aws(here.settings.s3_endpoint_url):
        return []
    return [
        AREA.doubtful(
            "interrupted uploads",
            "no rule of the bucket deletes them",
            why="parts of files whose process was killed are stored, and paid for, forever",
            fix="run `python -m app bucket lifecycle --write`",
        )
    ]


def _is_aws(endpoint_url: str | None) -> bool:
    return endpoint_url is None or (urlsplit(endpoint_url).hostname or "").endswith(".amazonaws.com")
