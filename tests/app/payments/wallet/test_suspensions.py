"""A suspended subscription lasts for the grace of its config, as long as it is suspended."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.app.operator_calls import call
from tests.app.payments.wallet.wallets import ZERO, Wallet
from tests.calendar.clock import utc_now

DAY = timedelta(days=1)


def end_of(asset: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(asset["expire_time"])


async def test_a_suspended_subscription_lasts_for_the_grace_of_its_config(wallet: Wallet) -> None:
    await wallet.configure(grace_s=86_400)
    sub_id = await wallet.subscribed()
    path = f"/v1/billing/subscriptions/{sub_id}"
    renewing, paid_until = (await wallet.assets())["pro"], await wallet.paid_until()
    await wallet.platform("POST", f"{path}/suspend", {"reason": "unpaid"})
    _, answer = await wallet.sync(sub_id)
    assert answer["walletpay_sub"]["status"] == "SUSPENDED"
    pro = (await wallet.assets())["pro"]
    assert (end_of(pro), pro["custom_expire_time"]) == (paid_until + DAY, ZERO)
    await wallet.sync(sub_id)
    await wallet.platform("POST", f"{path}/activate", {"reason": "paid"})
    await wallet.sync(sub_id)
    assert (await wallet.assets())["pro"]["expire_time"] == renewing["expire_time"]
    await wallet.renew(sub_id)
    await wallet.sync(sub_id)
    renewed = (await wallet.assets())["pro"]
    assert (renewed["custom_expire_time"], end_of(renewed) > paid_until + 20 * DAY) == (ZERO, True)
    assert await wallet.kinds() == ["grant", "suspend", "resume", "grant"]


@pytest.mark.parametrize("is_seen", [True, False])
async def test_a_subscription_that_is_cancelled_ends_with_its_period_whether_its_suspension_was_seen_or_not(
    wallet: Wallet, is_seen: bool
) -> None:
    await wallet.configure(grace_s=86_400)
    sub_id = await wallet.subscribed()
    path = f"/v1/billing/subscriptions/{sub_id}"
    await wallet.platform("POST", f"{path}/suspend", {"reason": "enough"})
    if is_seen:
        await wallet.sync(sub_id)
    await wallet.platform("POST", f"{path}/cancel", {"reason": "enough"})
    await wallet.sync(sub_id)
    pro = (await wallet.assets())["pro"]
    expected = (await wallet.paid_until(), ZERO, True)
    assert (end_of(pro), pro["custom_expire_time"], pro["sub_canceled"]) == expected


async def test_the_end_that_an_operator_has_set_is_before_that_of_the_grace(wallet: Wallet) -> None:
    await wallet.configure(grace_s=86_400)
    sub_id = await wallet.subscribed()
    end = utc_now().replace(microsecond=0) + DAY
    change = {"name": "pro", "subscription": sub_id, "ends_at": end.isoformat()}
    path = f"/admin/api/users/default/{wallet.uid}/assets"
    assert (await call(wallet.server, "PATCH", path, change, reason="support", key=sub_id))[0] == 200
    await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/suspend", {"reason": "unpaid"})
    await wallet.sync(sub_id)
    pro = (await wallet.assets())["pro"]
    assert datetime.fromisoformat(pro["custom_expire_time"]) == end
    assert pro["valid_seconds"] <= 86_400


async def test_a_suspended_subscription_without_grace_ends_with_its_period(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    path = f"/v1/billing/subscriptions/{sub_id}/suspend"
    await wallet.platform("POST", path, {"reason": "unpaid"})
    await wallet.sync(sub_id)
    pro = (await wallet.assets())["pro"]
    assert (end_of(pro), pro["custom_expire_time"]) == (await wallet.paid_until(), ZERO)
    assert await wallet.kinds() == ["grant", "suspend"]
