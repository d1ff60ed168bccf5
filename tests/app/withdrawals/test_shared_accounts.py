"""Several configs use one account of the platform: an event belongs to the config that has made its payout."""

from datetime import timedelta

from app.webhooks import compare_events
from storage.operators.audit import COMMAND
from storage.payments.missed_events import CompareEvents
from streams.wire.codec import rfc3339
from tests.app.callers import ask
from tests.app.operators import Operator
from tests.app.withdrawals.payer import Payer
from tests.calendar.clock import utc_now
from tests.waiting import until


async def missed(payer: Payer, config: str) -> set[str]:
    """Compare the events of a config some minutes later, and return the types of all reported ones."""
    server, at = payer.server, rfc3339(utc_now() + timedelta(minutes=10))
    assert (await ask(server, "POST", "/dev/clock", json={"app": "default", "at": at}))[0] == 200
    await compare_events(server.services, CompareEvents(app_id="default", kind="payouts", config=config))
    await server.services.clock.move("default", offset_s=0)
    found = await Operator(server)("GET", "payments/mismatches?app=default&size=100")
    return {one["detail"] for one in found.body["mismatches"] if one["kind"] == "missed_event"}


async def test_only_the_config_that_has_made_a_payout_reports_its_events(payer: Payer) -> None:
    services = payer.server.services
    value = {"base_url": f"{payer.sandbox_url}/paypal", "client_id": payer.client_id, "client_secret": "any"}
    await services.configs.put("default", "payouts", "Second", value, author="test", origin=COMMAND)
    uid = await payer.user()
    assert (await payer.withdraw(uid))[0] == 200

    async def paid() -> bool:
        await payer.check()
        return await payer.status(uid) == "WITHDRAW_SUCCESS"

    async with payer.working():
        await until(paid)
    assert await missed(payer, "Second") == set()
    assert "PAYMENT.PAYOUTSBATCH.SUCCESS" in await missed(payer, "Default")
