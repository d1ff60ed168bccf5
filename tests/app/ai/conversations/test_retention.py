"""Jobs delete audio and conversations that an app no longer keeps."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.services import Services
from app.settings import Settings
from app.work import retention
from app.work.retention import remove_expired
from app.work.worker import run_jobs
from storage.configs.kinds import KINDS
from storage.configs.kinds.base import ConfigKind
from storage.configs.rows import ConfigKey
from storage.jobs.jobs import RemoveExpired, enqueue
from storage.objects import content_type_of
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.model import Model
from tests.app.ai.conftest import Talk
from tests.calendar.clock import utc_now
from tests.calendar.hard_instants import walk
from tests.peers.sse_client import all_events, named
from tests.running.config_stores import store_of
from tests.running.servers import Server
from tests.waiting import until

OLD_DAY = f"{utc_now() - timedelta(days=3_000):%Y%m%d}"
APP = ConfigKey("gone", "apps", "default")
OLD_ROWS = """
insert into users (app_id, uid, create_time, last_login) values ('gone', 'u', now(), now());
insert into user_exports values ('gone', 'u', 'e', now(), now() - interval '8 days');
insert into conversations (app_id, conversation_id, uid, updated_at)
values ('gone', 'c', 'u', now() - interval '31 days');
insert into webhooks (webhook_id, app_id, source, config, headers, body, received_at)
values ('w', 'gone', 'pay', 'main', '{}', '', now() - interval '91 days')
"""
"""Rows of the app `gone` that are old enough to expire."""


@pytest.fixture
async def run(services: Services) -> AsyncIterator[Callable[[], Any]]:
    """Return a coroutine function that deletes what has expired, and waits until no job is left."""

    async def run_job() -> None:
        async with services.database.transaction() as conn:
            await enqueue(conn, RemoveExpired())
        await until(none_left)

    async def none_left() -> bool:
        async with services.database.connection() as conn:
            return not await conn.fetchval("select count(*) from procrastinate_jobs")

    async with background(run_jobs(services, scheduled=False, poll_s=0.05)):
        yield run_job


async def speech_days(services: Services) -> list[str]:
    return sorted(day_of_key(key) for key in await services.objects.folders("speech/default/"))


def day_of_key(key: str) -> str:
    return key.split("/")[2]


async def limits(services: Services, **values: Any) -> None:
    await services.configs.put("default", "limits", "default", values, author="test", origin=COMMAND)


async def link(talk: Talk) -> str:
    body = {"text": "Good morning.", "strategies": ["local"]}
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        url: str = named(await all_events(response), "audio")[0]["audio_url"]
        return url


def link_to(services: Services, url: str) -> str:
    """Return a valid link to the file of a link whose path was changed."""
    return services.objects.url(urlsplit(url).path.removeprefix("/files/"))


async def status_of(talk: Talk, url: str) -> int:
    async with talk.server.http.get(url) as response:
        return response.status


@pytest.mark.usefixtures("local_vendors")
async def test_expired_days_of_speech_are_deleted_and_newer_links_stay_valid(
    talk: Talk, services: Services, run: Callable[[], Any]
) -> None:
    old = await link(talk)
    objects = services.objects
    (day,) = await speech_days(services)
    for key in await objects.keys("speech/default/"):
        await objects.put(key.replace(day, OLD_DAY), await objects.get(key), content_type=content_type_of(key))
        await objects.delete([key])
    old = link_to(services, old.replace(day, OLD_DAY))
    await objects.put("speech/default/no-day/file.mp3", b"", content_type="audio/mpeg")
    new = await link(talk)
    assert await status_of(talk, old) == 200

    await limits(services, speech_days=3660)
    await run()
    assert (OLD_DAY in await speech_days(services), await status_of(talk, new)) == (True, 200)

    await limits(services)
    await run()
    assert {day_of_key(key) for key in await objects.keys("speech/default/")} == {day, "no-day"}
    assert await status_of(talk, new) == 200
    assert await status_of(talk, old) == 404


# The last day whose speech has expired after two days, and the first whose has not.
EXPIRED_AND_KEPT = {
    "2027-01-28T12:00:00Z": ("20270125", "20270126"),
    "2027-01-29T12:00:00Z": ("20270126", "20270127"),
    "2027-01-30T12:00:00Z": ("20270127", "20270128"),
    "2027-01-31T12:00:00Z": ("20270128", "20270129"),
    "2027-02-28T12:00:00Z": ("20270225", "20270226"),
    "2027-03-14T07:00:00Z": ("20270311", "20270312"),
    "2027-03-28T01:00:00Z": ("20270325", "20270326"),
    "2027-03-31T12:00:00Z": ("20270328", "20270329"),
    "2027-10-31T01:00:00Z": ("20271028", "20271029"),
    "2027-11-07T06:00:00Z": ("20271104", "20271105"),
    "2027-12-31T23:59:59Z": ("20271228", "20271230"),  # The clock soon shows the next day.
    "2028-01-01T00:00:00Z": ("20271229", "20271230"),
    "2028-02-29T12:00:00Z": ("20280226", "20280227"),
}


async def test_speech_of_whole_days_expires_at_each_hard_instant(server: Server, services: Services) -> None:
    for instant, (expired, kept) in walk(EXPIRED_AND_KEPT):
        for day in (expired, kept):
            await services.objects.put(f"speech/default/{day}/u/s.mp3", b"audio", content_type="audio/mpeg")
        await move_clock(server, instant)
        await remove_expired(services, RemoveExpired())
        assert await services.objects.keys("speech/default/") == [f"speech/default/{kept}/u/s.mp3"]


@pytest.mark.usefixtures("local_vendors")
async def test_conversations_without_a_recent_turn_are_deleted_with_their_audio(
    talk: Talk, server: Server, services: Services, run: Callable[[], Any]
) -> None:
    await talk.turn("Hello", "scripted")
    record = (await talk.history())["conversation_records"][0]
    url = next(item["audio_url"]["url"] for item in record["content"][1]["content"] if item["type"] == "audio_url")
    uid, token = await server.login()
    recent = Talk(server, uid, token)
    await recent.turn("Hello", "scripted-text")
    async with services.database.connection() as conn:
        await conn.execute(
            "update conversations set updated_at = now() - interval '31 days' where conversation_id = $1",
            talk.conversation_id,
        )

    await run()
    assert (await talk.history())["conversation_records"], "by default, conversations are kept"

    await limits(services, conversation_days=30)
    await run()
    async with talk.get("/bp/ai/conversation/query", params={"conversation_id": talk.conversation_id}) as response:
        assert response.status == 404
    assert await status_of(talk, url) == 404
    assert (await recent.history())["conversation_records"]


async def test_conversations_expire_by_the_clock_of_their_app(
    talk: Talk, server: Server, services: Services, strategy: Callable[..., Any], run: Callable[[], Any]
) -> None:
    await strategy("one", "say:Hi")
    await limits(services, conversation_days=10)
    await talk.turn("Hello", "one")
    at = utc_now() + timedelta(days=9)
    await move_clock(server, at)
    await run()
    before = await talk.history()

    await talk.turn("Hello again", "one")
    after = (await talk.history())["conversation"]
    assert before["conversation_records"]
    assert (
        datetime.fromisoformat(after["sys_updated_time"]) > at > datetime.fromisoformat(after["sys_created_time"])
    )

    await move_clock(server, at + timedelta(days=9))
    await run()
    assert await talk.history()

    await move_clock(server, at + timedelta(days=11))  # This runs the jobs of fixed times too.
    await until(lambda: is_gone(talk))


async def old_data(services: Services) -> None:
    """Create the app `gone` with data, and files of speech and an export, that are old enough to expire."""
    await services.configs.put("gone", "apps", "default", {}, author="test", origin=COMMAND)
    await services.objects.put(f"speech/gone/{OLD_DAY}/one.mp3", b"", content_type="audio/mpeg")
    await services.objects.put("exports/gone/u/e.json", b"", content_type="application/json")
    async with services.database.connection() as conn:
        await conn.execute(OLD_ROWS)


async def test_data_of_a_deleted_app_expires_too(
    server: Server, services: Services, run: Callable[[], Any]
) -> None:
    await old_data(services)
    await services.configs.delete(APP, author="test", origin=COMMAND)

    await run()
    assert await files(services) == []
    assert await counts(services) == [0, 0, 1]

    async with services.database.connection() as conn:
        await conn.execute("update config_revisions set created_at = now() - interval '31 days'")
    await run()
    assert await counts(services) == [0, 0, 0]


class LooseLimits(Model):
    """The limits as another version of the server might have them."""

    webhook_days: int


async def test_app_with_broken_limits_is_skipped_and_all_later_apps_are_worked_on(
    services: Services, settings: Settings, run: Callable[[], Any]
) -> None:
    await old_data(services)
    limits = {"conversation_days": 30}
    await services.configs.put("gone", "limits", "default", limits, author="test", origin=COMMAND)
    kinds = {**KINDS, "limits": ConfigKind("limits", "Limits", LooseLimits)}
    async with store_of(settings, kinds=kinds) as other_version:
        for kind, value in (("apps", {}), ("limits", {"webhook_days": 0})):
            await other_version.put("broken", kind, "default", value, author="test", origin=COMMAND)
    await services.configs.refresh()

    before = skipped()
    with capture_logs() as lines:
        await run()
    skips = [line for line in lines if line["event"] == "job.app_skipped"]
    task = RemoveExpired.task
    assert [(line["job"], line["app_id"], line["kind"]) for line in skips] == [(task, "broken", "limits")]
    assert skips[0]["error"].startswith("limits default: webhook_days must be")
    assert skipped() == before + 1
    assert await files(services) == []
    assert await counts(services) == [0, 0, 0]


async def test_a_table_whose_rows_cannot_be_deleted_does_not_keep_the_others_from_it(
    services: Services,
) -> None:
    await old_data(services)
    await services.configs.put(
        "gone", "limits", "default", {"conversation_days": 30}, author="test", origin=COMMAND
    )
    async with services.database.connection() as conn:
        await conn.execute("alter table used_once rename to broken")
        await conn.execute("alter table bp_auth_tokens rename to broken_first")
    with capture_logs() as lines, pytest.raises(RuntimeError) as failed:
        await remove_expired(services, RemoveExpired())
    tables = ("bp_auth_tokens", "used_once")
    apps = await services.configs.all_apps()
    assert str(failed.value) == f"not removed: {', '.join(f'{table} of {app}' for table in tables for app in apps)}"
    seen = [(line["table"], line["app_id"]) for line in lines if line["event"] == "expired.not_removed"]
    assert seen == [(table, app) for table in tables for app in apps]
    assert not await services.objects.keys("speech/gone/")
    assert await counts(services) == [0, 0, 0]


async def test_a_table_that_is_locked_does_not_keep_the_others_from_being_cleaned_up(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_REMOVAL_S", 0.5)
    await old_data(services)
    async with services.database.transaction() as conn:
        await conn.execute("lock table bp_auth_tokens")
        with capture_logs() as lines, pytest.raises(RuntimeError, match="bp_auth_tokens of gone"):
            await remove_expired(services, RemoveExpired())
    errors = {line["error"] for line in lines if line["event"] == "expired.not_removed"}
    assert errors == {"unfinished after 0.5 s"}
    assert (await counts(services))[:2] == [0, 0]


async def files(services: Services) -> list[str]:
    """The files of the app `gone`."""
    return [key for folder in ("speech", "exports") for key in await services.objects.keys(f"{folder}/gone/")]


def skipped() -> float:
    return REGISTRY.get_sample_value("parley_job_apps_skipped_total", {"job": RemoveExpired.task}) or 0


async def counts(services: Services) -> list[int]:
    """The numbers of exports, webhooks and conversations of the app `gone`."""
    async with services.database.connection() as conn:
        row = await conn.fetchrow(
            "select (select count(*) from user_exports where app_id = 'gone'),"
            " (select count(*) from webhooks where app_id = 'gone'),"
            " (select count(*) from conversations where app_id = 'gone')"
        )
    return list(row)


async def move_clock(server: Server, to: datetime) -> None:
    body = {"app": "default", "at": to.isoformat()}
    async with server.http.post(f"{server.url}/dev/clock", json=body) as response:
        assert response.status == 200


async def is_gone(talk: Talk) -> bool:
    params = {"conversation_id": talk.conversation_id}
    async with talk.get("/bp/ai/conversation/query", params=params) as response:
        return response.status == 404
