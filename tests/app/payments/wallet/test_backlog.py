"""After a downtime, payments that are expected to change are read before those that are only read once a day."""

from datetime import timedelta

import pytest

from tests.app.payments.wallet.passing import later
from tests.app.payments.wallet.wallets import Wallet, another

BACKLOG = 200
_COPY = """
insert into {table}
select (jsonb_populate_record(row, jsonb_build_object(
    'row_id', 'late-' || number, '{id}', 'LATE' || number, 'check_at', row.check_at - interval '3 days'
))).* from {table} row, generate_series(1, {count}) number where row.uid = $1 returning 1
"""


async def ordered(wallet: Wallet) -> str:
    """Pay an order whose capture nobody has reported."""
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    return f"/v2/checkout/orders/{order['id']}"


async def subscribed(wallet: Wallet) -> str:
    """Pay a subscription that nobody has reported."""
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"], fault="lost")
    return f"/v1/billing/subscriptions/{sub['id']}"


@pytest.mark.parametrize("table", ["wallet_orders", "wallet_subscriptions"])
async def test_a_new_payment_does_not_wait_for_a_backlog_of_daily_reads(wallet: Wallet, table: str) -> None:
    is_order = table == "wallet_orders"
    if is_order:
        await ordered(wallet)
        await later(wallet)
    else:
        sub_id = await wallet.subscribed()
        await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/cancel", {"reason": "enough"})
        await later(wallet, timedelta(days=2))
    id_column = "order_id" if is_order else "subscription_id"
    await wallet.rows(_COPY.format(table=table, id=id_column, count=BACKLOG), wallet.uid)
    new = await (ordered if is_order else subscribed)(await another(wallet))
    begun = len(read(wallet))
    await later(wallet)
    paths = read(wallet)[begun:]
    late = [path for path in paths if "/LATE" in path]
    assert len(late) >= BACKLOG
    assert paths.index(new) < 16


def read(wallet: Wallet) -> list[str]:
    """The paths of the platform that the server has called, from `/v1` or `/v2` on, oldest first."""
    made = [call.asked.get("path", "") for call in wallet.sandbox.bill.since(0) if call.asked]
    return [path[path.index("/v") :] for path in made if "/v1/billing/" in path or "/v2/checkout/" in path]
