"""The jobs of the server in a schedule, and the time that passes while they run as often as they should."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.payments.wallet.replaced import end_replaced
from storage.jobs.jobs import RunScheduled
from storage.payments.wallet.subscriptions import EndReplacedSubscription
from streams.wire.errors import ServiceError
from tests.app.callers import work_off
from tests.app.payments.wallet.schedules.owed import Books
from tests.app.payments.wallet.wallets import Wallet
from vendors.sandbox.faults import key_of

MINUTES = timedelta(minutes=3)
PASSING = ("minutes", "day", "to_the_end", "to_the_payment", "past_the_payment", "month")
"""How much time may pass in a step."""


@dataclass(frozen=True)
class Jobs:
    """Runs the jobs of one wallet. What is to hold at all times is checked by `watch`."""

    wallet: Wallet
    books: Callable[[], Awaitable[Books]]
    watch: Callable[[], Awaitable[None]]

    @property
    def now(self) -> datetime:
        return self.wallet.server.services.clock.now("default")

    async def pass_time(self, how: str) -> None:
        """Let time pass, to an instant at which ends and payments are often wrong."""
        due, now = (await self.books()).due(), self.now
        coming = [at for at in due if at > now]
        match how:
            case "minutes":
                await self.pass_to(now + MINUTES)
            case "day":
                await self.pass_to(now + timedelta(days=1, hours=1))
            case "to_the_end" if coming:
                await self.pass_to(coming[0] + timedelta(minutes=1))
            case "to_the_payment" if coming:
                await self.pass_to(coming[-1] - timedelta(minutes=1))
            case "past_the_payment" if coming:
                await self.pass_to(coming[-1] + MINUTES)
            case _:
                await self.pass_to(now + timedelta(days=32))

    async def pass_to(self, end: datetime) -> None:
        """Move the clocks from each instant at which something is due to the next, and read back what is due.

        What has changed before is read within the day, because no more time passes between two daily reads.
        """
        reads = [self.now + timedelta(minutes=10), self.now + timedelta(days=1, minutes=10)]
        while True:
            due = [at + MINUTES for at in (await self.books()).due()]
            to = min([end, *(at for at in (*reads, *due) if at > self.now)])
            await self.wallet.travel(to)
            await self.watch()
            await self.wallet.reconcile()
            await self.watch()
            if to == end:
                return

    async def work(self) -> None:
        """Run the jobs that wait. Those at fixed times are steps of their own."""
        await self.wallet.rows("delete from procrastinate_jobs where task_name = $1", RunScheduled.task)
        await work_off(self.wallet.server.services)

    async def find_missed(self) -> None:
        await self.wallet.find_missed_events()

    async def reconcile(self) -> None:
        await self.wallet.reconcile()

    async def end_replaced(self) -> None:
        """Run the job that ends a replaced subscription, perhaps for a second time."""
        statement = "select row_id from wallet_subscriptions where uid = $1 and superseded_at is not null"
        for (row_id,) in await self.wallet.rows(statement, self.wallet.uid):
            with suppress(ServiceError):
                await end_replaced(
                    self.wallet.server.services, EndReplacedSubscription(app_id="default", row_id=row_id)
                )

    async def fail_for_a_while(self, seed: int) -> None:
        """Read back what is due from a platform that fails at each second call."""
        fault = key_of(fault="unavailable", retry_after_s=0.01, rate=0.5, seed=seed)
        await self.wallet.configure(client_secret=fault)
        await self.reconcile()
        await self.wallet.configure(client_secret="sandbox")

    async def settle(self) -> None:
        """Let the jobs at fixed times do their part, with a platform that works and delivers all events."""
        await self.wallet.control("deliveries")
        for _ in range(2):
            await self.work()
            await self.wallet.rows("update procrastinate_jobs set scheduled_at = null where status = 'todo'")
            await self.pass_to(self.now + timedelta(days=1, hours=1))
            await self.find_missed()
        await self.work()
        await self.wallet.reconcile()
