"""In whatever order things happen, and whatever is lost or repeated, every withdrawal is paid out at most once."""

import asyncio
from collections import defaultdict
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import encode_basic_auth
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.withdrawals.payouts import pay_out
from storage.withdrawals.withdrawals import PayOut
from streams.wire.codec import rfc3339
from tests.app.callers import ask, work_off
from tests.app.withdrawals.payer import Payer
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of

WEBHOOK = "WH1"
CONFIG = {"base_url": "{sandbox}/paypal", "webhook_id": WEBHOOK}
"""The platform follows the clock of the app."""
FAULTS: list[dict[str, Any]] = [
    # The platform does what it is asked, and its answer is lost.
    {"fault": "cut_mid_stream", "position": "before"},
    {"fault": "malformed_frame", "position": "before"},
    *({"fault": fault} for fault in ("refuse", "unavailable", "server_error", "rate_limited")),
]
RECEIVERS = [
    *("payee", "slow", "unregistered", "hold", "returned", "locked", "nofunds", "nomoney", "denied", "regulatory"),
]
WHICH = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("start"), st.sampled_from(["payee", "payee", *RECEIVERS])),
    st.tuples(st.sampled_from(["repeat", "change", "turn", "settle", "race"]), WHICH),
    st.tuples(st.just("deliveries"), st.sampled_from([None, "lost", "duplicate", "delayed", "reordered"])),
    st.tuples(st.just("fail"), st.tuples(st.sampled_from(FAULTS), WHICH, st.sampled_from([0.5, 1]))),
    st.tuples(st.sampled_from(["recover", "work"]), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([10, 30, 3_600, 43_200])),
)
TURNS = {
    "PENDING": ("SUCCESS", "FAILED"),
    "UNCLAIMED": ("SUCCESS", "RETURNED"),
    "ONHOLD": ("SUCCESS", "FAILED"),
    "SUCCESS": ("REVERSED", "REVERSED"),
}
"""What a payment may become at the platform."""
EVENTS = {"SUCCEEDED": "SUCCESS", "HELD": "ONHOLD"}
"""The names of statuses in events, where they differ."""
FAILED = {"FAILED", "RETURNED", "BLOCKED", "REVERSED", "DENIED"}


class Schedule:
    """Runs the steps of an example. Each withdrawal has a user of its own."""

    def __init__(self, payer: Payer) -> None:
        self.payer = payer
        self.users: list[str] = []

    async def run(self, step: tuple[str, Any]) -> None:
        what, choice = step
        await getattr(self, what)(choice)

    async def start(self, receiver: str) -> None:
        uid = await self.payer.user(receiver)
        self.users.append(uid)
        assert (await self.payer.withdraw(uid))[0] == 200

    async def repeat(self, which: int) -> None:
        for uid in self.one_of(which):
            replies = await asyncio.gather(*(self.payer.withdraw(uid) for _ in range(which + 1)))
            assert {status for status, _ in replies} == {200}

    async def change(self, which: int) -> None:
        for uid in self.one_of(which):
            assert (await self.payer.withdraw(uid, cash_num=1.5))[0] == 409

    async def turn(self, which: int) -> None:
        """Let something become of a payment at the platform, if its answer has arrived."""
        for uid in self.one_of(which):
            for payout_id in await self.payer.payouts_of(uid):
                await self._turn(payout_id, TURNS, which % 2)

    async def settle(self, _: int) -> None:
        """Let the platform finish what it has begun."""
        waiting = {status: TURNS[status] for status in ("PENDING", "UNCLAIMED")}
        for uid in self.users:
            for payout_id in await self.payer.payouts_of(uid):
                await self._turn(payout_id, waiting, 0)

    async def _turn(self, payout_id: str, turns: dict[str, tuple[str, str]], choice: int) -> None:
        payout = await self.platform(f"/v1/payments/payouts/{payout_id}")
        status = payout["items"][0]["transaction_status"]
        if status in turns and payout["batch_header"]["batch_status"] != "DENIED":
            await self.payer.control("payout", payout_id=payout_id, status=turns[status][choice])

    async def race(self, which: int) -> None:
        """Work on one withdrawal at once, as a webhook, a round of checks and a slow worker do."""
        services = self.payer.server.services
        for uid in self.one_of(which):
            job = PayOut(app_id="default", withdrawal_id=(await self.withdrawal(uid))["withdraw_id"])
            await asyncio.gather(*(pay_out(services, job) for _ in range(3)))

    async def deliveries(self, fault: str | None) -> None:
        await self.payer.control("deliveries", fault=fault)

    async def fail(self, choice: tuple[dict[str, Any], int, float]) -> None:
        fault, skip, rate = choice
        secret = key_of(name=uuid4().hex, **fault, skip=skip, rate=rate, seed=skip, retry_after_s=0.01)
        await self.payer.configure(secret=secret, **CONFIG)

    async def recover(self, _: None) -> None:
        await self.payer.configure(**CONFIG)

    async def work(self, _: None) -> None:
        await work_off(self.payer.server.services)

    async def wait(self, seconds: float) -> None:
        """Let time pass for the app and the platform, and run what is due then."""
        ahead_s = self.payer.server.services.clock.offset_s("default") + seconds
        body = {"app": "default", "at": rfc3339(utc_now() + timedelta(seconds=ahead_s))}
        assert (await ask(self.payer.server, "POST", "/dev/clock", json=body))[0] == 200
        await self.work(None)

    async def finish(self) -> None:
        """Let the jobs at fixed times do their part, with a platform that works."""
        await self.deliveries(None)
        await self.recover(None)
        await until(self._quiet)
        await self.settle(0)
        await self.wait(180)
        await until(self._quiet)

    async def _quiet(self) -> bool:
        """Whether a round of checks leaves nothing that could not be asked for, or that was not submitted."""
        await self.wait(60)
        for uid in self.users:
            found = await self.withdrawal(uid)
            is_known = await self.payer.payouts_of(uid) and not found["reason"]
            if found["status"] == "WITHDRAW_START" and not is_known:
                return False
        return True

    def one_of(self, which: int) -> list[str]:
        return [self.users[which % len(self.users)]] if self.users else []

    async def withdrawal(self, uid: str) -> dict[str, Any]:
        status, reply = await self.payer.read(uid)
        assert status == 200, reply
        found: dict[str, Any] = reply["withdraw"]
        return found

    async def platform(self, path: str, **query: str) -> Any:
        """Read from the platform as the merchant could by other means."""
        url, http = f"{self.payer.sandbox_url}/paypal", self.payer.server.http
        headers = {"Authorization": encode_basic_auth(self.payer.client_id, "sandbox")}
        grant = {"grant_type": "client_credentials"}
        async with http.post(f"{url}/v1/oauth2/token", headers=headers, data=grant) as response:
            headers = {"Authorization": f"Bearer {(await response.json())['access_token']}"}
        async with http.get(f"{url}{path}", params=query, headers=headers) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def history(self) -> dict[str, list[tuple[str, str]]]:
        """What has become of each withdrawal at the platform: its payouts with their states, oldest first."""
        now = utc_now()
        times = {"start_time": rfc3339(now - timedelta(days=1)), "end_time": rfc3339(now + timedelta(days=30))}
        answer = await self.platform("/v1/notifications/webhooks-events", page_size="300", **times)
        found = defaultdict(list)
        for event in reversed(answer["events"]):
            what, resource = event["event_type"].rpartition(".")[2], event["resource"]
            if event["resource_type"] == "payouts_item":
                name, payout_id = resource["payout_item"]["sender_item_id"], resource["payout_batch_id"]
                found[name].append((payout_id, EVENTS.get(what, what)))
            elif what == "DENIED":
                header = resource["batch_header"]
                found[header["sender_batch_header"]["sender_batch_id"]].append((header["payout_batch_id"], what))
        return found


async def run_examples(payer: Payer, *, count: int) -> None:
    """Run schedules that hypothesis generates. Hypothesis blocks a thread of its own."""
    loop = asyncio.get_running_loop()

    # Without shrinking, which would wait for each failing example.
    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(STEPS, min_size=3, max_size=14))
    def run_example(steps: list[tuple[str, Any]]) -> None:
        asyncio.run_coroutine_threadsafe(example(payer, steps), loop).result()

    await asyncio.to_thread(run_example)


async def example(payer: Payer, steps: list[tuple[str, Any]]) -> None:
    payer = Payer(payer.server, payer.sandbox_url)
    schedule = Schedule(payer)
    await schedule.recover(None)
    await payer.control("webhook", id=WEBHOOK, url=f"{payer.server.url}/bp/webhook/payouts/default/Default")
    services = payer.server.services
    try:
        for step in steps:
            await schedule.run(step)
        await schedule.finish()
        await check(schedule)
    finally:
        await services.clock.move("default", offset_s=0)
        async with services.database.connection() as conn:
            await conn.execute("delete from procrastinate_jobs")


async def test_a_withdrawal_is_paid_out_once_whatever_happens(payer: Payer) -> None:
    await run_examples(payer, count=2)


@pytest.mark.soak
async def test_a_withdrawal_is_paid_out_once_in_many_schedules(payer: Payer) -> None:
    await run_examples(payer, count=300)


async def check(schedule: Schedule) -> None:
    history = await schedule.history()
    withdrawals = [await schedule.withdrawal(uid) for uid in schedule.users]
    assert set(history) <= {withdrawal["withdraw_id"] for withdrawal in withdrawals}
    for uid, withdrawal in zip(schedule.users, withdrawals, strict=True):
        states = history[withdrawal["withdraw_id"]]
        assert len({payout_id for payout_id, _ in states}) == len(set(await schedule.payer.payouts_of(uid)))
        result = withdrawal["status"].removeprefix("WITHDRAW_"), await schedule.payer.entries(uid)
        assert result in expected([state for _, state in states]), (states, withdrawal)


def expected(states: list[str]) -> list[tuple[str, list[str]]]:
    """The possible statuses and entries of a withdrawal whose payment has had these states."""
    failed, paid = ("FAILED", ["reserve", "void"]), ("SUCCESS", ["reserve", "pay"])
    if not states:  # The platform has refused it.
        return [failed]
    if states[-1] == "SUCCESS":
        return [paid]
    if states[-1] not in FAILED:
        return [("START", ["reserve"])]
    # What was paid only between two reads was never known to be paid.
    return [failed, ("SUCCESS", ["reserve", "pay", "return"])] if "SUCCESS" in states else [failed]
