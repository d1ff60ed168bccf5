"""The command `python -m app bucket lifecycle`: rules by which the bucket deletes old files by itself."""

import argparse
import asyncio
import os
import sys
from typing import Any

from app.commands.exit_codes import REFUSED
from app.observing.logs import STDERR
from app.observing.logs import configure as configure_logs
from app.settings import Settings
from app.stores import open_stores
from storage.objects import Links
from storage.objects.contract import ObjectsRefused
from storage.objects.lifecycle import MAX_RULES, rule_for_uploads, rules_for
from storage.userdata import file_ages
from streams.wire.codec import dumps


def add_parser(subparsers: Any) -> None:
    """Add the command `bucket`. `args.run(args)` runs it and returns the exit code."""
    bucket = subparsers.add_parser("bucket", help="lifecycle rules of the S3 bucket")
    actions = bucket.add_subparsers(dest="action", required=True)
    title = "print the rules by which the bucket deletes expired files of all apps, and interrupted uploads"
    lifecycle = actions.add_parser("lifecycle", help=title, description=title)
    lifecycle.add_argument(
        "--write", action="store_true", help="write them to the bucket, and keep its other rules"
    )
    lifecycle.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    env = os.environ  # noqa: TID251 - an entry point
    configure_logs(level="error", output=STDERR)
    settings = Settings.from_env(env)
    if args.write and settings.s3_bucket is None:
        sys.stderr.write("parley: S3_BUCKET is not set, and a folder has no lifecycle rules\n")
        return REFUSED
    asyncio.run(_run(settings, write=args.write))
    return 0


async def _run(settings: Settings, *, write: bool) -> None:
    async with open_stores(settings) as stores:
        expiring = rules_for(await file_ages.of_all_apps(stores.configs))
    if not write:
        sys.stdout.write(f"{dumps({'Rules': [rule_for_uploads(), *expiring]}).decode()}\n")
        return
    try:
        others = await _write(settings, [rule_for_uploads(), *expiring])
        count = len(expiring) + 1
    except ObjectsRefused:
        others = await _write(settings, expiring)  # MinIO refuses the other rule, because it needs none.
        count = len(expiring)
        sys.stderr.write("the service refuses a rule for interrupted uploads: see docs/operating/s3.md\n")
    written = min(count, MAX_RULES - others)
    sys.stdout.write(f"{written} rules are written, {others} others are kept\n")
    if written < count:
        sys.stderr.write(f"{count - written} rules are too many for a bucket: the worker deletes their files\n")


async def _write(settings: Settings, rules: list[dict[str, Any]]) -> int:
    from storage.objects.s3 import open_bucket  # noqa: PLC0415 - slow to import

    assert settings.s3_bucket is not None
    links = Links(b"", settings.public_url)
    async with open_bucket(settings.s3_bucket, links, endpoint_url=settings.s3_endpoint_url) as objects:
        return await objects.write_rules(rules)
