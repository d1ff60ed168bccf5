"""Withdrawals whose result PayPal does not know any more, as after 30 days without a response."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from tests.app.callers import work_off
from tests.app.operators import AdminResponse, Operator
from tests.app.withdrawals.payer import Payer
from vendors.sandbox.faults import key_of


async def unknown(payer: Payer, **config: Any) -> tuple[str, str]:
    """A user, and a withdrawal whose payout waits at PayPal: its response was lost, and our id is forgotten."""
    await payer.configure(secret=key_of(name=uuid4().hex, fault="cut_mid_stream", position="before"))
    uid = await payer.user("slow")
    status, reply = await payer.withdraw(uid)
    assert status == 200, reply
    await work_off(payer.server.services)
    clock = payer.server.services.clock
    began_s = clock.offset_s("default")
    await clock.move("default", offset_s=began_s + timedelta(days=30).total_seconds())
    await payer.configure(**config)
    try:
        await payer.check()
        await work_off(payer.server.services)
    finally:
        await clock.move("default", offset_s=began_s)
    assert await payer.status(uid) == "WITHDRAW_START"
    return uid, reply["withdraw"]["withdraw_id"]


async def settle(payer: Payer, withdrawal_id: str, outcome: str, **headers: str) -> AdminResponse:
    headers = {"X_Parley_Reason": "looked up at PayPal", **headers}
    path = f"withdrawals/default/{withdrawal_id}/settle"
    return await Operator(payer.server)("POST", path, {"outcome": outcome}, **headers)


async def payout_of(payer: Payer, withdrawal_id: str) -> str:
    """PayPal's id of the payout of a withdrawal."""
    url, query = f"{payer.sandbox_url}/paypal/_control/books", {"client_id": payer.client_id}
    async with payer.server.http.get(url, params=query) as response:
        books = await response.json()
    [found] = [payout["id"] for payout in books["payouts"] if payout["sender_batch_id"] == withdrawal_id]
    return str(found)


async def reported(payer: Payer, withdrawal_id: str) -> list[tuple[str, str]]:
    """The kind and the detail of each mismatch of a withdrawal, the oldest first."""
    found = await Operator(payer.server)("GET", "payments/mismatches?app=default&size=100")
    ours = [mismatch for mismatch in found.body["mismatches"] if mismatch["subject"] == withdrawal_id]
    return [(mismatch["kind"], mismatch["detail"]) for mismatch in reversed(ours)]
