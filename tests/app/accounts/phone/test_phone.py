"""Codes that are sent to phone numbers, and logins with them (§2.2, §4.1)."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

import pytest

from app.work.worker import run_jobs
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.codec import dumps, rfc3339
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running, listening

NUMBER, OTHER = "+4915112345678", "+4915112345679"


@dataclass
class Phones:
    """The server, and the messages that its worker has sent to phone numbers."""

    server: Server
    sandbox: Running
    key: str = field(default_factory=lambda: f"tests-{uuid4().hex}")

    @property
    def webhook(self) -> str:
        return f"{self.sandbox.url}/sms/{self.key}"

    async def use_key(self, **options) -> None:
        """Let the webhook have the faults that `options` select."""
        self.key = key_of(name=uuid4().hex, **options)
        await self.configure("sms", url=self.webhook, secret="sandbox")

    async def failed_job(self) -> dict:
        """Wait until a job that sends a code has failed once, and return it."""
        job = "select args, attempts from procrastinate_jobs where task_name = 'send_sms' and attempts = 1"
        async with self.server.services.database.connection() as conn:
            await until(lambda: conn.fetchrow(job))
            return await conn.fetchrow(job)

    async def configure(self, kind: str, **value):
        await self.server.services.configs.put("default", kind, "default", value, author="tests", origin=COMMAND)

    async def request(self, number=NUMBER, **more) -> tuple[int, dict]:
        body = {"phone_number": number, **more}
        return await self.post("/bp/user/send_phone_verify_code", body)

    async def code(self, number=NUMBER) -> str:
        """Request a code and return it as soon as it was sent."""
        before = len(await self.messages(number))
        assert await self.request(number) == (200, {})

        async def sent() -> list[dict]:
            return (await self.messages(number))[before:]

        await until(sent)
        return (await self.messages(number))[0]["code"]

    async def messages(self, to: str) -> list[dict]:
        async with self.server.http.get(f"{self.webhook}/messages", params={"to": to}) as response:
            return await response.json()

    async def login(self, code, number=NUMBER) -> tuple[int, dict]:
        return await self.post("/bp/user/login", {"phone": {"phone_number": number, "verify_code": code}})

    async def post(self, path, body) -> tuple[int, dict]:
        async with self.server.http.post(self.server.url + path, json=body) as response:
            raw = await response.read()
            return response.status, await response.json() if raw else {}

    async def later(self, seconds: float) -> None:
        """Let the app's time pass."""
        now = self.server.services.clock.now("default") + timedelta(seconds=seconds)
        assert (await self.post("/dev/clock", {"app": "default", "at": rfc3339(now)}))[0] == 200


@pytest.fixture
async def idle_phones(shared_server: Server) -> AsyncIterator[Phones]:
    """Without a worker, so no message is sent."""
    async with listening() as sandbox:
        opened = Phones(shared_server, sandbox)
        await opened.configure("sms", url=opened.webhook, secret="sandbox")
        wide = {"count": 1_000, "per_s": 1}
        await opened.configure("limits", rates={"email_minute": wide, "email_day": wide})
        yield opened
        await shared_server.services.clock.move("default", offset_s=0)


@pytest.fixture
async def phones(idle_phones: Phones) -> AsyncIterator[Phones]:
    async with background(run_jobs(idle_phones.server.services, poll_s=0.2)):
        yield idle_phones


def refusal(result: tuple[int, dict]) -> tuple[int, str]:
    status, reply = result
    return status, reply["error"]["message"]


def other(code: str) -> str:
    """Return a wrong code."""
    return f"{(int(code) + 1) % 10**6:06}"


async def test_a_code_logs_in_and_the_first_login_creates_the_user(phones: Phones):
    await phones.configure("sms", url=phones.webhook, secret="sandbox", template="{{.Code}} it is")
    code = await phones.code()
    [message] = await phones.messages(NUMBER)
    assert (message["app"], message["to"], message["text"]) == ("default", NUMBER, f"{code} it is")
    status, reply = await phones.login(code, "+49 (1511) 2345-678")
    assert (status, reply["user"]["is_new_user"]) == (200, True)
    assert reply["user"]["phone"] == {"phone_number": NUMBER}
    assert list(reply) == ["user"]
    status, again = await phones.login(await phones.code())
    assert (again["user"]["uid"], again["user"]["is_new_user"]) == (reply["user"]["uid"], False)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("\u202a\uff0b\uff14\uff19 1511\u20112345\u2212678\u202c", "\ufeff{0}\u00a0{1}"),
        ("+\u0664\u0669\u00ad1511\u2003234\u30fc5678\u200b", "\u2066{0}\u2069\u2013{1}"),
    ],
)
async def test_numbers_and_codes_are_read_as_they_are_shown(phones: Phones, number: str, shown: str):
    """Full-width and Arabic digits, marks of the writing direction, and spaces and dashes of all kinds."""
    code = await phones.code()
    wide = "".join(chr(ord(digit) + 0xFF10 - ord("0")) for digit in code)
    status, reply = await phones.login(shown.format(wide[:3], wide[3:]), number)
    assert (status, reply["user"]["phone"]) == (200, {"phone_number": NUMBER})
    assert (await phones.request(number))[0] == 200


async def test_codes_are_refused_by_what_is_wrong_with_them(phones: Phones):
    first = await phones.code()
    second = await phones.code()
    assert refusal(await phones.login(None)) == (400, "account.code_empty: phone.verify_code is required")
    assert refusal(await phones.login(" "))[1].startswith("account.code_empty")
    assert refusal(await phones.login(other(second))) == (400, "account.code_invalid: phone.verify_code is wrong")
    assert refusal(await phones.login(second, OTHER))[1].startswith("account.code_invalid")
    assert refusal(await phones.login(first))[1].startswith("account.code_out_of_date")
    await phones.later(600)
    assert refusal(await phones.login(second)) == (
        400,
        "account.code_out_of_date: phone.verify_code has expired",
    )


async def test_after_five_wrong_codes_the_right_one_is_refused(phones: Phones):
    code = await phones.code()
    for _ in range(5):
        assert refusal(await phones.login(other(code)))[1].endswith("is wrong")
    assert refusal(await phones.login(code))[1].startswith(
        "account.code_invalid: phone.verify_code is not accepted"
    )
    assert (await phones.login(await phones.code()))[0] == 200


async def test_of_concurrent_logins_with_a_code_one_wins(phones: Phones):
    code = await phones.code()
    results = await asyncio.gather(*(phones.login(code) for _ in range(20)))
    assert sorted(status for status, _ in results) == [200] + [400] * 19
    assert {refusal(result)[1].partition(":")[0] for result in results if result[0] == 400} == {
        "account.code_invalid"
    }
    async with phones.server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from sessions") == 1


async def test_a_phone_number_has_its_country_code(idle_phones: Phones):
    hint = "must be a phone number with its country code, such as +4915112345678"
    wrong = ("", "4915112345678", "015112345678", "+49", "+491", "+1800FLOWERS", "+4915112345678901234", "+" * 64)
    for number in wrong:
        assert refusal(await idle_phones.request(number)) == (400, f"invalid_parameter: phone_number {hint}")
        refused = refusal(await idle_phones.login("123456", number))
        assert refused == (400, f"invalid_parameter: phone.phone_number {hint}")


async def test_a_platform_is_one_of_three(idle_phones: Phones):
    assert (await idle_phones.request(platform="website"))[0] == 200
    assert refusal(await idle_phones.request(platform="fax"))[1].startswith(
        "invalid_parameter: platform must be one of"
    )


async def test_codes_are_limited_per_number_and_per_address(idle_phones: Phones):
    rates = {"email_minute": {"count": 1, "per_s": 60}, "email_address": {"count": 3, "per_s": 3600}}
    await idle_phones.configure("limits", rates=rates)
    server = idle_phones.server
    assert (await idle_phones.request())[0] == 200
    url = f"{server.url}/bp/user/send_phone_verify_code"
    async with server.http.post(url, json={"phone_number": NUMBER}) as response:
        assert (response.status, (await response.json())["error"]["error_type"]) == (429, "api_rate_limit")
        assert 55 <= int(response.headers["Retry-After"]) <= 60
        assert '"email_minute";r=0' in response.headers["RateLimit"]
    for number in (OTHER, "+4915112345677", "+4915112345676"):
        last = await idle_phones.request(number)
    assert last[0] == 429


async def test_without_a_webhook_no_code_is_sent(idle_phones: Phones):
    services = idle_phones.server.services
    await services.configs.delete(ConfigKey("default", "sms", "default"), author="tests", origin=COMMAND)
    status, reply = await idle_phones.request()
    assert (status, reply["error"]["error_type"]) == (417, "config_invalid")
    await idle_phones.configure("sms", url="{sandbox}/sms/tests", secret="sandbox")
    assert refusal(await idle_phones.request()) == (
        417,
        "config_invalid: sms default: url names the sandbox, which does not run",
    )


async def test_a_call_of_the_webhook_is_signed(phones: Phones):
    body = dumps({"id": "1", "app": "default", "to": NUMBER, "text": "x", "code": "123456"})
    mac = hmac.new(b"another secret", b"1700000000." + body, hashlib.sha256).hexdigest()
    for signature in ("", f"t=1700000000,v1={mac}"):
        headers = {"X-Parley-Signature": signature}
        async with phones.server.http.post(phones.webhook, data=body, headers=headers) as response:
            assert response.status == 401
    assert await phones.messages(NUMBER) == []
    await phones.code()


async def test_a_failed_call_is_repeated_and_operators_cannot_read_what_waits(phones: Phones):
    await phones.use_key(fault="unavailable", times=2, retry_after_s=0)
    assert (await phones.request())[0] == 200
    job = await phones.failed_job()
    assert NUMBER not in str(job["args"])
    assert not set(job["args"]) & {"code", "to", "text"}
    await phones.later(5)
    await until(lambda: phones.messages(NUMBER))
    [message] = await phones.messages(NUMBER)
    assert message["code"] not in str(job["args"])
    assert (await phones.login(message["code"]))[0] == 200


async def test_an_expired_code_is_not_sent(phones: Phones):
    await phones.use_key(fault="unavailable", times=2, retry_after_s=0)
    assert (await phones.request())[0] == 200
    await phones.failed_job()
    await phones.later(601)
    async with phones.server.services.database.connection() as conn:
        await until(
            lambda: conn.fetchval(
                "select not exists (select from procrastinate_jobs where task_name = $1)", "send_sms"
            )
        )
    assert await phones.messages(NUMBER) == []


async def test_expired_codes_are_deleted_after_two_days(phones: Phones):
    await phones.code()
    async with phones.server.services.database.connection() as conn:
        for days, count in ((1, 1), (2, 0)):
            await phones.later(days * 86_400)
            await until(lambda expected=count: codes_are(conn, expected))


async def codes_are(conn, count: int) -> bool:
    waiting = await conn.fetchval("select count(*) from procrastinate_jobs")
    return waiting == 0 and await conn.fetchval("select count(*) from codes") == count
