"""Workers show how long webhooks and emails have waited, and when the certificate of the public URL ends."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from app.work.certificate import watch_certificate
from app.work.waiting import measure_waiting
from storage.jobs.jobs import RemoveExpired, WorkWebhook, enqueue
from storage.mail.mail import SendMail
from streams.tasks import background
from tests.calendar.clock import utc_now
from tests.peers.certificates import Authority
from tests.running.servers import Server
from tests.waiting import until

MAIL = SendMail(app_id="default", uid=None, recipient="hash", mail_id="m1", sealed="")
WEBHOOKS = [WorkWebhook(app_id="default", webhook_id=webhook_id) for webhook_id in ("w1", "w2", "w3")]


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


def measured(name: str) -> float:
    value = REGISTRY.get_sample_value(name)
    assert value is not None
    return value


async def test_the_age_of_what_waits_includes_the_attempts_that_have_failed(server: Server) -> None:
    database = server.services.database
    async with database.transaction() as conn:
        first, second, held = [await enqueue(conn, webhook) for webhook in WEBHOOKS]
        await enqueue(conn, MAIL)
        await enqueue(conn, RemoveExpired())
    async with database.connection() as conn:
        for job_id, hours in ((first, 2), (second, 1), (held, 9)):
            earlier = f"now() - interval '{hours} hours'"
            await conn.execute(f"update procrastinate_events set at = {earlier} where job_id = $1", job_id)
        retried = (
            "update procrastinate_jobs set attempts = 3, scheduled_at = now() + interval '1 hour' where id = $1"
        )
        await conn.execute(retried, first)
        await conn.execute("update procrastinate_jobs set status = 'failed' where id = $1", held)
    await measure_waiting(server.services)
    assert (measured("parley_webhooks_waiting"), measured("parley_mails_waiting")) == (2, 1)
    assert 7_200 <= measured("parley_webhooks_oldest_seconds") < 7_300
    assert 0 <= measured("parley_mails_oldest_seconds") < 100

    async with database.connection() as conn:
        await conn.execute("delete from procrastinate_jobs where task_name <> $1", RemoveExpired.task)
    await measure_waiting(server.services)
    for name in ("webhooks", "mails"):
        assert measured(f"parley_{name}_waiting") == measured(f"parley_{name}_oldest_seconds") == 0


async def test_the_end_of_a_certificate_is_read_even_if_it_has_ended(tmp_path: Path) -> None:
    def end() -> float | None:
        return REGISTRY.get_sample_value("parley_certificate_end_timestamp_seconds", {"host": "localhost"})

    expected = (utc_now() - timedelta(days=1)).timestamp()
    tls = Authority(tmp_path).server("localhost", days=(-9, -1))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "localhost", 0, ssl=tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with background(watch_certificate(f"https://localhost:{port}")):
            await until(lambda: end() is not None)
    assert abs((end() or 0) - expected) < 60
    await watch_certificate("http://localhost")  # It has no certificate, so there is nothing to watch.
