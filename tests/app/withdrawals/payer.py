"""A server whose withdrawals are paid by a merchant of the sandbox."""

from contextlib import AbstractAsyncContextManager
from typing import Any
from uuid import uuid4

from storage.accounts import emails
from storage.assets.differences import find_differences
from storage.jobs.jobs import enqueue
from storage.operators.audit import COMMAND
from storage.withdrawals.withdrawals import CheckPayouts, find_of_user, pay_out_soon
from streams.wire.codec import dumps
from tests.app.callers import ask, token, working
from tests.running.servers import Server

FIRST = {"cash_num": 12.3, "withdraw_id": "w-1", "start_time": "2026-11-23T10:00:00Z"}


class Payer:
    """A server whose withdrawals are paid by a merchant of the sandbox."""

    def __init__(self, server: Server, sandbox_url: str) -> None:
        self.server = server
        self.sandbox_url = sandbox_url
        self.client_id = uuid4().hex

    async def configure(self, *, secret: str = "any", **more: Any) -> None:
        config = {
            "base_url": f"{self.sandbox_url}/paypal",
            "client_id": self.client_id,
            "client_secret": secret,
            "merchant_id": "m-1",
            **more,
        }
        configs = self.server.services.configs
        await configs.put("default", "payouts", "Default", config, author="test", origin=COMMAND)

    async def user(self, address: str | None = "payee") -> str:
        """A user whose proven address begins with `address`."""
        uid, _ = await self.server.login()
        if address is not None:
            services = self.server.services
            async with services.database.transaction() as conn:
                now = services.clock.now("default")
                to = f"{address}@{uuid4().hex}.example"
                await emails.set_current(conn, "default", uid, address=to, old="", now=now)
        return uid

    async def withdraw(self, uid: str, **body: Any) -> tuple[int, Any]:
        path = f"/bp/server/user/{uid}/withdraw/"
        withdraw_id = body.pop("withdraw_id", f"w{uid}")
        json = {**FIRST, "withdraw_id": withdraw_id, **body}
        return await ask(self.server, "POST", path, json=json, headers=token(scope="withdrawals", jti=uuid4().hex))

    async def withdraw_text(self, uid: str, cash_num: str, *, withdraw_id: str) -> tuple[int, Any]:
        """Withdraw an amount that is written into the body as it is."""
        fields = dumps({**FIRST, "withdraw_id": withdraw_id, "cash_num": None})
        data, path = fields.replace(b"null", cash_num.encode()), f"/bp/server/user/{uid}/withdraw/"
        headers = token(scope="withdrawals", jti=uuid4().hex)
        return await ask(self.server, "POST", path, data=data, headers=headers)

    async def read(self, uid: str, withdraw_id: str | None = None) -> tuple[int, Any]:
        params = {} if withdraw_id is None else {"withdraw_id": withdraw_id}
        path = f"/bp/server/user/{uid}/withdraw/"
        return await ask(
            self.server, "GET", path, params=params, headers=token(scope="withdrawals", jti=uuid4().hex)
        )

    async def status(self, uid: str) -> str:
        code, reply = await self.read(uid)
        assert code == 200, reply
        found: str = reply["withdraw"]["status"]
        return found

    async def check(self) -> None:
        """Ask the platform about open withdrawals, as if half a minute had passed."""
        async with self.server.services.database.transaction() as conn:
            await conn.execute("update withdrawals set check_at = '-infinity' where check_at is not null")
            await enqueue(conn, CheckPayouts(), key="check")

    async def control(self, action: str, **body: Any) -> None:
        json = {"client_id": self.client_id, **body}
        async with self.server.http.post(f"{self.sandbox_url}/paypal/_control/{action}", json=json) as response:
            assert response.status == 200, await response.text()

    def working(self) -> AbstractAsyncContextManager[None]:
        return working(self.server.services)

    async def payouts_of(self, uid: str) -> list[str]:
        """PayPal's ids of the payouts of a user that are known."""
        async with self.server.services.database.connection() as conn:
            rows = await conn.fetch("select payout_id from withdrawals where uid = $1 and payout_id <> ''", uid)
        return [row["payout_id"] for row in rows]

    async def read_back(self, uid: str) -> None:
        """Read a withdrawal back that has ended, as after a webhook."""
        async with self.server.services.database.transaction() as conn:
            withdrawal = await find_of_user(conn, "default", uid, any_id=None)
            assert withdrawal is not None
            await pay_out_soon(conn, withdrawal)

    async def entries(self, uid: str) -> list[str]:
        async with self.server.services.database.connection() as conn:
            rows = await conn.fetch("select kind from withdrawal_entries where uid = $1 order by entry_id", uid)
        assert [difference async for difference in find_differences(self.server.services.database)] == []
        return [row["kind"] for row in rows]
