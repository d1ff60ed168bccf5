"""What causes the errors of single endpoints of money."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from app.assets.share_groups import NothingToShare, SharingUnsupported
from app.http.errors import PathNotFound
from app.http.rows.webhooks import InvalidSignature, PlatformNotFound, WebhookUnverified
from app.payments.cards.subscription_creation import CardSetupNotFound, SetupUnfinished
from app.payments.subscribing import AlreadySubscribed, TrialUsed
from app.payments.wallet.order_endpoints import OrderNotApproved, OrderNotFound
from app.payments.wallet.subscription_endpoints import SubscriptionNotFound
from app.payments.wallet.upgrade_endpoints import UnsupportedUpgrade, UpgradeRefused
from app.withdrawals.errors import (
    AccountInvalid,
    LimitExceeded,
    UserRestricted,
    WithdrawalNotFound,
    WithdrawIdTaken,
)
from storage.assets import ledger
from storage.assets.entries import Entry
from storage.assets.share_groups import ShareCodeNotFound, ShareGroupFull
from storage.payments.cards.payments import CardPaymentNotFound
from storage.payments.cards.subscriptions import CardSubscriptionNotFound
from tests.app.money import good_requests as to
from tests.app.money.error_causes import TABLE, Case, while_the_platform_fails
from tests.app.money.till import Answer
from tests.app.payments.wallet.wallets import PRODUCTS
from tests.calendar.clock import utc_now
from vendors.payments.stripe.errors import CardDeclined


@TABLE.causes(NothingToShare)
async def without_a_subscription(case: Case) -> Answer:
    return await case.send(to.by_client(await case.till.wallet(), "POST", to.CODE))


@TABLE.causes(SharingUnsupported)
async def with_a_subscription_of_another_platform(case: Case) -> Answer:
    wallet, now = await case.till.wallet(), utc_now()
    entry = Entry(
        uuid4().hex, "grant", "pro", "subscription", "sub", starts_at=now, ends_at=now + timedelta(days=1),
        platform="cardpay",
    )  # fmt: skip
    services = case.till.server.services
    async with services.database.transaction() as conn:
        await ledger.post(conn, "default", wallet.uid, entry=entry, now=now, sinks=services.sinks)
    return await case.send(to.by_client(wallet, "POST", to.CODE))


@TABLE.causes(ShareGroupFull)
async def with_a_quota_below_the_members(case: Case) -> Answer:
    owner, other = await to.GOOD["POST", to.CODE](case.till), await case.till.wallet()
    _, answer = await case.send(owner)
    join = to.by_client(other, "POST", to.JOIN, {"share_code": answer["share_code"]})
    if case.place[1] == to.CODE:
        assert (await case.send(join))[0] == 200
    answer = await case.send(owner, share_code_quota=0)
    return answer if case.place[1] == to.CODE else await case.send(join)


@TABLE.causes(ShareCodeNotFound)
async def with_a_wrong_code(case: Case) -> Answer:
    return await case.send(share_code="0000000000")


@TABLE.causes(CardPaymentNotFound)
async def of_an_unknown_payment(case: Case) -> Answer:
    if case.request.body is not None:
        return await case.send(payment_intent_id="pi_unknown")
    return await case.send(replace(case.request, path=f"{case.request.path}x"))


@TABLE.causes(CardSetupNotFound)
async def with_an_unknown_card(case: Case) -> Answer:
    field = "payment_method_name" if case.place[1] == to.METHOD else "setup_intent_id"
    return await case.send(**{field: "unknown_1"})


@TABLE.causes(SetupUnfinished)
async def with_an_unconfirmed_setup(case: Case) -> Answer:
    setup = await to.GOOD["POST", to.SETUP](case.till)
    body = {"product_id": "pro_month", "setup_intent_id": setup.body["setup_intent_id"]}
    return await case.send(replace(setup, path=case.place[1], body=body))


@TABLE.causes(CardDeclined)
async def with_a_card_that_is_declined(case: Case) -> Answer:
    method = await case.till.shop.platform("payment_methods", **{
        "type": "card", "card[number]": "4000000000009995", "card[exp_month]": "12", "card[exp_year]": "2040",
    })  # fmt: skip
    return await case.send(payment_method_name=method["id"])


@TABLE.causes(CardSubscriptionNotFound)
async def of_an_unknown_card_subscription(case: Case) -> Answer:
    path = case.place[1].format(sub_id="sub_unknown")
    return await case.send(replace(case.request, path=path))


@TABLE.causes(PathNotFound)
async def outside_of_a_debug_environment(case: Case) -> Answer:
    async with case.till.with_config("cardpay", debug=False):
        return await case.send()


@TABLE.causes(OrderNotFound)
async def of_an_unknown_order(case: Case) -> Answer:
    if case.request.body is not None:
        return await case.send(order_id="UNKNOWN")
    return await case.send(replace(case.request, path=case.place[1].format(order_id="UNKNOWN")))


@TABLE.causes(OrderNotApproved)
async def of_an_order_that_nobody_has_approved(case: Case) -> Answer:
    wallet = await case.till.wallet()
    order = await wallet.order()
    return await case.send(to.by_client(wallet, "POST", case.place[1], {"order_id": order["id"]}))


@TABLE.causes(SubscriptionNotFound)
async def of_an_unknown_wallet_subscription(case: Case) -> Answer:
    return await case.send(replace(case.request, path=case.place[1].format(sub_id="I-UNKNOWN")))


@TABLE.causes(UnsupportedUpgrade)
async def of_a_subscription_with_a_card(case: Case) -> Answer:
    request = await to.GOOD["GET", to.CARD_SUB](case.till)
    path = case.place[1].format(sub_id=request.path.rpartition("/")[2])
    return await case.send(replace(case.request, path=path, headers=request.headers))


@TABLE.causes(UpgradeRefused)
async def to_the_current_product(case: Case) -> Answer:
    return await case.send(new_bp_product_id="month")


@TABLE.causes(AlreadySubscribed)
async def with_a_live_subscription_to_the_product(case: Case) -> Answer:
    request = await case.new()
    wallet = case.till.wallet_of(request)
    await wallet.subscribed(request.body.get("new_bp_product_id") or request.body["product_id"])
    return await case.send(request)


@TABLE.causes(TrialUsed)
async def after_a_trial_of_the_asset(case: Case) -> Answer:
    await case.till.put("products", "another_trial", PRODUCTS["trial"])
    request = await case.new()
    await case.till.wallet_of(request).subscribed("trial")
    return await case.send(request, product_id="another_trial")


@TABLE.causes(AccountInvalid)
async def without_a_proven_address(case: Case) -> Answer:
    wallet = await case.till.wallet()
    request = to.by_server(wallet, "POST", to.WITHDRAW, case.request.body, scope="withdrawals")
    return await case.send(request, withdraw_id=uuid4().hex)


@TABLE.causes(LimitExceeded)
async def above_the_limit(case: Case) -> Answer:
    async with case.till.with_config("payouts", limits={"per_call": 100}):
        return await case.send(withdraw_id=uuid4().hex)


@TABLE.causes(UserRestricted)
async def of_a_user_who_is_about_to_be_deactivated(case: Case) -> Answer:
    request = await case.new()
    freeze = "update users set status = 'frozen', freeze_time = now(), close_time = now() where uid = $1"
    await case.till.execute(freeze, request.uid)
    return await case.send(request)


@TABLE.causes(WithdrawIdTaken)
async def with_the_id_of_another_withdrawal(case: Case) -> Answer:
    request = await case.new()
    assert (await case.send(request))[0] == 200
    return await case.send(request, cash_num=7)


@TABLE.causes(WithdrawalNotFound)
async def of_an_unknown_withdrawal(case: Case) -> Answer:
    return await case.send(replace(case.request, path=f"{case.request.path}?withdraw_id=unknown"))


@TABLE.causes(InvalidSignature)
async def with_a_changed_body(case: Case) -> Answer:
    return await case.send(replace(case.request, body=case.request.body.replace(b'"id"', b'"di"', 1)))


@TABLE.causes(PlatformNotFound)
async def for_a_config_that_does_not_exist(case: Case) -> Answer:
    return await case.send(replace(case.request, path=case.request.path.replace("Default", "none")))


@TABLE.causes(WebhookUnverified)
async def while_the_platform_cannot_verify_it(case: Case) -> Answer:
    return await while_the_platform_fails(case)
