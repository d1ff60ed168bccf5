"""Accounts, payments, boards, emails, predictions and images, at a server whose platforms the sandbox emulates."""

import pytest

from tests.app.callers import working
from tests.clients.cases import cases, named
from tests.clients.mails import code_sent, mails
from tests.clients.sandbox_server import module_server, testbed
from tests.clients.typescript.conftest import Configure
from tests.clients.typescript.flows import go_through
from tests.clients.typescript.program import ClientError, Program, sent
from tests.running.servers import SERVER_KEY, Server
from tests.waiting import until
from vendors.sandbox.faults import key_of

__all__ = ["module_server", "testbed"]

PASSWORD = "correct horse battery"
NEW_PASSWORD = "staple gun at dawn"


async def approve(server: Server, link: str) -> None:
    async with server.http.post(link, data={"action": "approve"}, allow_redirects=False) as response:
        assert response.status == 303, await response.text()


@pytest.mark.parametrize("flow", **named(cases("areas")))
async def test_a_flow(program: Program, server: Server, configure: Configure, flow: dict) -> None:
    for config in flow["configs"]:
        await configure(*config)
    await go_through(program, server, flow["steps"])


async def test_an_order_is_approved_and_captured(user: Program, server: Server) -> None:
    order = await user.call("wallet.createOrder", "coins_100", {"countryCode": "DE"})
    assert order["status"] == "CREATED"
    with pytest.raises(ClientError) as refused:
        await user.call("wallet.captureOrder", order["id"])
    assert refused.value.error["errorType"] == "invalid_operation"
    await approve(server, order["approve_link_href"])
    assert (await user.call("wallet.captureOrder", order["id"]))["status"] == "COMPLETED"
    assert (await user.call("wallet.fetchOrder", order["id"]))["walletpay_order"]["id"] == order["id"]
    assert [asset["quantity"] for asset in (await user.call("wallet.syncOrder", order["id"]))["assets"]] == [100]
    assert [asset["name"] for asset in await user.call("assets")] == ["coins"]


async def test_a_subscription_is_approved_and_upgraded(user: Program, server: Server) -> None:
    begun = (await user.call("wallet.subscribe", "pro_month", {"countryCode": "DE"}))["walletpay_sub"]
    await approve(server, begun["approve_link_href"])
    assert (await user.call("wallet.syncSubscription", begun["id"]))["walletpay_sub"]["status"] == "ACTIVE"
    assert (await user.call("wallet.fetchSubscription", begun["id"]))["walletpay_sub"]["next_billing_amount"] > 0
    upgraded = (await user.call("wallet.upgrade", begun["id"], "pro_year"))["walletpay_sub"]
    await approve(server, upgraded["approve_link_href"])
    synced = (await user.call("wallet.syncUpgrade", upgraded["id"]))["walletpay_sub"]
    assert (synced["status"], synced["bp_product_id"]) == ("ACTIVE", "pro_year")


async def test_a_score_has_a_rank(user: Program) -> None:
    posted = await user.call("leaderboards.upload", "weekly", 12.5, {"extra": {"level": 3}})
    assert posted["name"] == "weekly"
    board = await user.call("leaderboards.query", "weekly", {"last": 5, "around": 1})
    assert (board["self_rank"], board["rank_data"][0]["score"]) == (1, 12.5)
    assert board["rank_data"][0]["extra"] == {"level": 3}


async def test_an_account_has_a_password_identities_sessions_and_emails(program: Program, server: Server) -> None:
    for name in ("user", "other"):
        await program.do("client", name=name, url=server.url)
    address = {"email": "ada@example.com"}
    user = await program.call("signUp", "email_password", {**address, "password": PASSWORD})
    await program.call("mail.send", "welcome", {"customVariables": {"name": "Ada"}})
    assert any("Hello Ada" in str(mail) for mail in await mails(server, address["email"]))
    assert await program.call("account.emailExists", address["email"])
    assert not await program.call("account.emailVerified")
    await program.call("account.changePassword", PASSWORD, NEW_PASSWORD)
    await program.call("signIn", "email_password", {**address, "password": NEW_PASSWORD}, client="other")
    (listed,) = [one for one in await program.call("account.sessions") if not one["current"]]
    await program.call("account.endSession", listed["session_id"])
    with pytest.raises(ClientError, match="invalid_session"):
        await program.call("user", client="other")

    bound = await program.call("account.bind", "android_games_service", {"player_id": "g~1/2"})
    await program.call("signIn", "device", {"id": "a stranger"}, client="other")
    with pytest.raises(ClientError) as taken:
        await program.call("account.bind", "android_games_service", {"player_id": "g~1/2"}, client="other")
    assert taken.value.error["errorType"] == "account.sp_linked_another"
    token = taken.value.error["bpAuth"]["bp_auth_token"]
    assert (await program.call("signIn", "bp_auth_token", token, client="other"))["uid"] == user["uid"]
    await program.call("account.unbind", "android_games_service", bound["id"])

    await program.call("account.deactivate")
    with pytest.raises(ClientError) as frozen:
        await program.call("assets")
    assert frozen.value.error["extra"]["deactivate_left_sec"] > 0
    await program.call("account.recover")
    assert await program.call("assets") == []


async def test_a_prediction_is_made_and_begun(user: Program, server: Server, configure: Configure) -> None:
    base_url = f"{server.services.settings.sandbox_url}/replicate/v1"
    host = {"platform": "replicate", "base_url": base_url, "api_key": "sandbox"}
    await configure("vendor_accounts", "host", host)
    await configure("predictions", "faces", {"account": "host"})
    image = await user.call("predictions.upload", sent(b"\x89PNG\r\n\x1a\n a picture"))
    version, given = "a" * 64, {"prompt": "Alice", "image": image}
    made = await user.call("predictions.create", "faces", version, given)
    assert (made["status"], made["input"]["prompt"]) == ("succeeded", "Alice")
    begun = await user.call("predictions.begin", "faces", {"version": version, "input": given})

    async def has_succeeded() -> bool:
        return (await user.call("predictions.read", begun["id"]))["status"] == "succeeded"

    async with working(server.services):
        await until(has_succeeded)


async def test_an_image_is_made(user: Program, server: Server, configure: Configure) -> None:
    base_url = f"{server.services.settings.sandbox_url}/midjourney"
    host = {"platform": "image_host", "base_url": base_url, "api_key": key_of(pace_ms=1)}
    await configure("vendor_accounts", "pictures", host)
    await configure("images", "pictures", {"account": "pictures"})
    async with working(server.services):
        task = (await user.call("images.imagine", "pictures", {"prompt": "a tree"}, {"waitS": 50}))["data"]
    assert task["status"] == "finished"
    assert (await user.call("images.read", task["task_id"]))["data"]["task_result"]["image_url"]


async def test_conversations_are_listed_and_deleted(user: Program, strategy: Configure) -> None:
    await strategy("hello", "say:Hello")
    turn = await user.read(options={"strategies": ["hello"], "text": "Hi there", "languageCode": "en-US"}).ended()
    (listed,) = (await user.call("conversations"))["conversations"]
    assert (listed["conversation_id"], listed["first_words"]) == (turn["conversationId"], "Hi there")
    await user.call("deleteConversation", listed["conversation_id"])
    assert (await user.call("conversations"))["conversations"] == []


async def test_an_app_server_begins_payments_and_withdrawals(program: Program, server: Server) -> None:
    await program.do("client", name="user", url=server.url)
    await program.call("account.sendEmailCode", "eve@example.com", {"platform": "website"})
    code = await code_sent(server, "eve@example.com")
    payee = await program.call("signIn", "email_code", {"email": "eve@example.com", "verify_code": code})
    key = {"kid": "development", "alg": "HS256", "key": SERVER_KEY}
    await program.do("appServer", name="server", url=server.url, key=key, user=payee["uid"])
    intent = await program.call("createPaymentIntent", 199, "usd", {"email": "eve@example.com"})
    assert (intent["amount"], intent["status"]) == (199, "requires_payment_method")
    assert (await program.call("paymentIntent", intent["id"]))["cardpay_payment_intent"]["id"] == intent["id"]
    begun = await program.call("withdraw", "w-1", 12.3, {"startTime": {"date": "2026-01-01T00:00:00Z"}})
    assert (begun["status"], begun["cash_num"]) == ("WITHDRAW_START", 12.3)
    assert (await program.call("withdrawal", "w-1"))["withdraw_id"] == begun["withdraw_id"]
