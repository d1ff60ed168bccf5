"""Withdrawals whose result the platform does not know any more, as rows."""

from storage.withdrawals import withdrawals
from storage.withdrawals.withdrawals import Withdrawal
from streams.wire.ids import new_id
from tests.running.servers import Server


async def unknown_withdrawal(server: Server, uid: str) -> str:
    now = server.services.clock.now("default")
    new = Withdrawal(
        withdrawal_id=new_id(), app_id="default", uid=uid, app_withdraw_id="w", request={}, config="Default",
        platform="paypal", merchant_id="", amount=100, currency="USD", receiver="personal data",
        created_at=now, updated_at=now, check_at=now,
    )  # fmt: skip
    async with server.services.database.transaction() as conn:
        await withdrawals.start(conn, new)
        await withdrawals.mark_unknown(conn, new.withdrawal_id, since=now)
    return new.withdrawal_id
