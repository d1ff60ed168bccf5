"""Mail servers fail: nothing is lost, and nothing is sent twice."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from procrastinate.jobs import Job as StoredJob

from app.work.job_attempts import RetryPolicy
from storage.mail.mail import SendMail
from tests.app.callers import working
from tests.app.mail.hub import Hub, new_address
from tests.app.mail.smtp_servers import ACCEPT, BUSY, FILTERED, SmtpServer
from tests.calendar.clock import utc_now
from tests.waiting import until

DAY_S = 86_400
PATIENT = {"breaker": {"min_calls": 1_000_000}}


@pytest.fixture
async def first(hub: Hub) -> AsyncIterator[SmtpServer]:
    """The server of the only account of `news`."""
    server = SmtpServer()
    async with server.listening():
        await account(hub, "first", server)
        await hub.strategy(mail_accounts=["first"])
        yield server


async def account(hub: Hub, name: str, server: SmtpServer, **fields: Any) -> None:
    value = {"host": "127.0.0.1", "port": server.port, "tls": "none", "from": "Ada <ada@example.com>"}
    await hub.configure("mail_accounts", name, **{**value, **PATIENT, **fields})


async def send(hub: Hub, count: int) -> str:
    """Send `count` emails to as many recipients, and return their user."""
    person = await hub.person(with_email=False)
    for number in range(count):
        await hub.strategy(f"s{number}", mail_accounts=["first"])
        assert await hub.send_by_server(person.uid, f"s{number}", email_to=new_address()) == (200, {})
    return person.uid


async def test_emails_wait_until_the_server_is_back_and_arrive_once(hub: Hub, first: SmtpServer):
    fates = [BUSY, None, "421 4.3.2 closing", FILTERED, BUSY]
    first.answer = lambda mail: fates[hash(mail["Message-ID"]) % len(fates)]
    uid = await send(hub, 12)
    for _ in range(3):
        await hub.work_off()
        await hub.make_due()
    assert first.accepted == []
    assert await hub.rows("status", uid) == ["waiting"] * 12
    first.answer = SmtpServer().answer
    await hub.work_off()
    assert await hub.rows("status", uid) == ["sent"] * 12
    ids = [f"<{mail_id}@127.0.0.1>" for mail_id in await hub.rows("mail_id", uid)]
    assert sorted(first.ids) == sorted(ids)
    await hub.make_due()
    await hub.work_off()
    assert len(first.accepted) == 12


async def test_emails_wait_while_nothing_listens(hub: Hub):
    server = SmtpServer()
    async with server.listening():
        await account(hub, "first", server)
    uid = await send(hub, 5)
    await hub.work_off()
    assert await hub.rows("status", uid) == ["waiting"] * 5
    async with server.listening():
        await hub.make_due()
        await hub.work_off()
    assert await hub.rows("status", uid) == ["sent"] * 5
    assert len(server.accepted) == len(set(server.ids)) == 5


async def test_the_second_account_sends_what_the_first_refuses(hub: Hub, first: SmtpServer):
    first.answer = lambda _: BUSY
    second = SmtpServer()
    async with second.listening():
        await account(hub, "second", second)
        await hub.strategy(mail_accounts=["first", "second"])
        ada = await hub.person()
        assert await hub.send(ada) == (200, {})
        await hub.work_off()
    assert await hub.rows("status", ada.uid) == ["sent"]
    assert (len(first.accepted), len(second.accepted)) == (0, 1)


async def test_after_a_lost_answer_only_the_same_server_may_get_an_email_again(hub: Hub, first: SmtpServer):
    """It may have delivered the email, and only its `Message-ID` tells it that both are the same."""
    second = SmtpServer()
    async with second.listening():
        await account(hub, "second", second)
        await hub.strategy(mail_accounts=["first", "second"])
        ada = await hub.person()
        first.silent = {ada.email}
        assert await hub.send(ada) == (200, {})
        await hub.work_off()
        assert await hub.rows("status", ada.uid) == ["waiting"]
        first.silent = set()
        await hub.make_due()
        await hub.work_off()
    assert await hub.rows("status", ada.uid) == ["sent"]
    assert second.accepted == []
    assert len(first.ids) == 2
    assert len(set(first.ids)) == 1


async def test_a_refused_recipient_gets_no_further_attempt(hub: Hub, first: SmtpServer):
    ada = await hub.person()
    first.refused = {ada.email}
    assert await hub.send(ada) == (200, {})
    await hub.work_off()
    assert await hub.rows("status, sent_at", ada.uid) == [("refused", None)]
    assert await hub.send(ada) == (200, {})


async def test_a_refused_recipient_shows_that_the_account_works_again(hub: Hub, first: SmtpServer):
    """Otherwise the breaker would stay half-open, and the next failure would open it at once."""
    await account(hub, "first", first, breaker={"min_calls": 2, "failure_ratio": 0.9, "open_s": 1})
    first.answer = lambda _: BUSY
    await send(hub, 2)
    await hub.work_off()
    await hub.execute("delete from procrastinate_jobs")
    ada, bob, eve = await hub.person(), await hub.person(), await hub.person()
    first.refused = {ada.email}
    assert await hub.send(ada) == (200, {})

    async def refused() -> bool:
        await hub.make_due()
        await hub.work_off()
        return await hub.rows("status", ada.uid) == ["refused"]

    await until(refused, every_s=0.3)  # Each attempt that finds the breaker open counts.
    assert await hub.send(bob) == (200, {})
    await hub.work_off()
    assert await hub.rows("status", bob.uid) == ["waiting"]
    first.answer = SmtpServer().answer
    assert await hub.send(eve) == (200, {})
    await hub.work_off()
    assert await hub.rows("status", eve.uid) == ["sent"]


async def test_a_refused_recipient_is_not_tried_by_the_next_account(hub: Hub, first: SmtpServer):
    second = SmtpServer()
    async with second.listening():
        await account(hub, "second", second)
        await hub.strategy(mail_accounts=["first", "second"])
        people = [await hub.person() for _ in range(3)]
        for person, reply in zip(people, ("450 4.2.1 later", "550 5.1.1 unknown", FILTERED), strict=True):
            first.to_recipient = ACCEPT if reply == FILTERED else reply
            first.answer = lambda _, answer=reply: answer
            assert await hub.send(person) == (200, {})
            await hub.work_off()
    assert [await hub.rows("status", person.uid) for person in people] == [["waiting"], ["refused"], ["sent"]]
    assert [mail["To"] for mail in second.accepted] == [people[2].email]


async def test_an_email_that_waits_for_an_attempt_is_not_being_sent(hub: Hub, first: SmtpServer):
    first.answer = lambda _: BUSY
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    assert (await hub.send(ada))[0] == 409
    await hub.work_off()
    assert await hub.send(ada) == (200, {})
    assert (await hub.send(ada))[0] == 409
    await hub.work_off()
    first.answer = SmtpServer().answer
    await hub.make_due()
    await hub.work_off()
    assert await hub.rows("status", ada.uid) == ["sent", "sent"]
    assert len(set(first.ids)) == 2


async def test_an_accepted_email_is_not_sent_again_while_the_database_does_not_store_that(
    hub: Hub, first: SmtpServer
):
    """The outcome is stored as soon as possible, and the job does not fail meanwhile."""
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    await hub.execute(
        "create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$;"
        "create trigger refuse before update on mails for each row execute function refuse()"
    )
    try:
        async with working(hub.server.services):
            await until(lambda: first.accepted)
            await hub.execute("drop function refuse cascade")

            async def sent() -> bool:
                return await hub.rows("status", ada.uid) == ["sent"]

            await until(sent, within_s=60)
    finally:
        await hub.execute("drop function if exists refuse cascade")
    assert len(first.accepted) == 1


async def test_a_second_run_of_the_job_of_a_sent_email_sends_nothing(hub: Hub, first: SmtpServer):
    """As after a worker died that had stored that the email is sent, but not that the job is done."""
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    await hub.execute("create table kept as select args from procrastinate_jobs")
    await hub.work_off()
    await hub.execute(
        "select procrastinate_defer_jobs_v1(array[row('parley', 'send_mail', 0, null, null, args, null)]"
        "::procrastinate_job_to_defer_v1[]) from kept"
    )
    await hub.execute("drop table kept")
    await hub.work_off()
    assert len(first.accepted) == 1


async def test_an_interrupted_worker_sends_the_email_again_with_the_same_id(hub: Hub, first: SmtpServer):
    """The only doubt: it ends between the acceptance and the moment at which that is stored."""
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    async with hub.server.services.database.transaction() as conn:
        await conn.execute("select from mails where uid = $1 for update", ada.uid)
        async with working(hub.server.services, stop_s=0.5):
            await until(lambda: first.accepted)
    await hub.execute("update procrastinate_jobs set status = 'todo' where status = 'doing'")
    await hub.work_off()
    assert await hub.rows("status", ada.uid) == ["sent"]
    assert (len(first.ids), len(set(first.ids))) == (2, 1)


async def test_there_are_ten_attempts_in_a_day_and_the_second_comes_within_half_a_minute():
    policy, began, waits = RetryPolicy(SendMail), utc_now(), []
    for attempts in range(20):
        job = StoredJob(id=1, queue="", lock=None, queueing_lock=None, task_name="", attempts=attempts)
        decision = policy.get_retry_decision(exception=RuntimeError(), job=job)
        if decision is None:
            break
        waits.append(round((decision.retry_at - began).total_seconds()))
    assert waits[:8] == [20 * 2**number for number in range(8)]
    assert (len(waits), sum(waits)) == (9, DAY_S)
