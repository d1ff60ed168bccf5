"""Emails and text messages that are not sent yet when their user is deactivated, or when they expire."""

from collections.abc import AsyncIterator
from pathlib import Path
from secrets import randbelow
from typing import NamedTuple

import pytest

from storage.accounts.codes import LOGIN_EMAIL, PHONE, CodeKind
from storage.jobs.jobs import RemoveExpired, RunScheduled
from storage.userdata.erasures import EraseUser
from tests.app.accounts.email.mailbox import Mailbox, new_address, session_of
from tests.app.accounts.people import me
from tests.app.callers import working
from tests.running.servers import Databases, new_server
from tests.waiting import until
from vendors.sandbox.server import listening

DAY_S = 86_400
HOLD = "update procrastinate_jobs set status = 'failed' where task_name like 'send_%' and status = $1"


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mailbox]:
    """A server without a worker, so that messages wait."""
    folder: Path = tmp_path_factory.mktemp("data")
    async with (
        listening() as sandbox,
        new_server(databases, folder, inbox_url=sandbox.inbox_url, sandbox_url=sandbox.url) as server,
    ):
        box = Mailbox(server)
        await box.configure("limits")
        await box.configure("sms", url="{sandbox}/sms/tests", secret="sandbox")
        await box.configure(code_login=True)
        yield box


@pytest.fixture
async def box(testbed: Mailbox) -> AsyncIterator[Mailbox]:
    yield testbed
    await testbed.server.services.clock.move("default", offset_s=0)
    await execute(testbed, "delete from procrastinate_jobs")


class Person(NamedTuple):
    uid: str
    session: dict[str, str]
    number: str
    address: str


async def new_person(box: Mailbox) -> Person:
    number, address = f"+4915{100_000_000 + randbelow(900_000_000)}", new_address()
    phone = {"phone_number": number, "verify_code": await code_of(box, PHONE, number)}
    session = session_of(await box.post("login", {"phone": phone}))
    email = {"email": address, "platform": "ios", "verify_code": await code_of(box, LOGIN_EMAIL, address)}
    assert await box.post("me/email", email, **session) == (200, None)
    return Person((await me(box.server, session))["uid"], session, number, address)


async def code_of(box: Mailbox, kind: CodeKind, target: str) -> str:
    """Return a new code, as if it had been sent."""
    services = box.server.services
    async with services.database.transaction() as conn:
        now = services.clock.now("default")
        return await services.codes.issue(conn, "default", kind, target, now=now, for_s=600)


async def ask_for_code(box: Mailbox, address: str) -> None:
    body = {"email": address, "platform": "ios", "type": "login_email"}
    assert await box.post("send_email_verify_code", body) == (200, None)


async def change_address(box: Mailbox, person: Person, pending: str) -> None:
    """Cause a link to the new address, and a notice to the old one."""
    body = {"email": pending, "platform": "ios"}
    assert await box.post("me/email", body, "PUT", **person.session) == (200, None)


async def ask_for_all(box: Mailbox, person: Person, pending: str) -> None:
    """Cause a message of each kind."""
    assert await box.post("send_phone_verify_code", {"phone_number": person.number}) == (200, None)
    await ask_for_code(box, person.address)
    forgotten = {"email": person.address, "platform": "website"}
    assert await box.post("email/forgot_password", forgotten) == (200, None)
    await change_address(box, person, pending)


async def close(box: Mailbox, person: Person) -> None:
    for step in ("", "/confirm"):
        assert await box.post(f"me/deactivate{step}", None, **person.session) == (200, None)


async def execute(box: Mailbox, statement: str, *arguments: object) -> None:
    async with box.server.services.database.connection() as conn:
        await conn.execute(statement, *arguments)


async def kinds(box: Mailbox, like: str = "send_%") -> list[str]:
    statement = "select task_name from procrastinate_jobs where task_name like $1 order by 1"
    async with box.server.services.database.connection() as conn:
        return [row["task_name"] for row in await conn.fetch(statement, like)]


async def test_messages_of_a_deactivated_user_are_deleted_and_those_of_others_are_not(box: Mailbox):
    person, other, stranger = await new_person(box), await new_person(box), new_address()
    first, second = new_address(), new_address()
    await ask_for_all(box, person, first)
    await execute(box, HOLD, "todo")
    await ask_for_all(box, person, second)
    await change_address(box, other, second)  # It belongs to nobody yet.
    await ask_for_code(box, stranger)
    await close(box, person)

    jobs = await box.jobs()
    left = [job for job in jobs if job.task != EraseUser.task]
    of_other, of_stranger = [[job for job in left if to in job.text] for to in (other.uid, stranger)]
    assert [len(of_other), len(of_stranger), len(left)] == [2, 1, 3]
    own = (person.uid, person.number, person.address, first, second)
    assert not [job for job in left if job not in of_other and any(text in job.text for text in own)]


async def test_messages_that_are_being_sent_during_the_deactivation_are_deleted_if_that_fails(box: Mailbox):
    person = await new_person(box)
    await change_address(box, person, new_address())
    await execute(box, "update procrastinate_jobs set status = 'doing'")
    await close(box, person)
    assert await kinds(box) == ["send_mail", "send_mail"]
    await execute(box, HOLD, "doing")
    async with working(box.server.services):
        await until(lambda: has_none_left(box))


async def test_held_messages_are_deleted_when_they_have_expired(box: Mailbox):
    await ask_for_all(box, await new_person(box), new_address())
    await execute(box, HOLD, "todo")
    async with working(box.server.services):
        for later_s, left in (
            (0, ["send_mail", "send_mail", "send_mail", "send_reset", "send_sms"]),
            (1800, ["send_mail", "send_mail", "send_reset"]),
            (2 * 3600, ["send_mail", "send_mail"]),
            (2 * DAY_S, ["send_mail"]),
            (8 * DAY_S, []),
        ):
            await box.server.services.clock.move("default", offset_s=0)
            await box.later(later_s)
            await until(lambda: has_cleaned_up(box))
            assert await kinds(box) == left, later_s


async def has_none_left(box: Mailbox) -> bool:
    return not await kinds(box)


async def has_cleaned_up(box: Mailbox) -> bool:
    """Whether the jobs are done that run when the clock is moved. The first one stores the second."""
    return not await kinds(box, RunScheduled.task) and not await kinds(box, RemoveExpired.task)
