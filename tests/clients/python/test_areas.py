"""Accounts, payments, boards, emails, predictions and images, at a server whose platforms the sandbox emulates."""

from collections.abc import AsyncIterator

import pytest

from parley_client import ParleyClient, ParleyError
from tests.app.callers import working
from tests.clients.cases import SIGN_KEY, cases, named
from tests.clients.conftest import configure
from tests.clients.mails import code_sent, mails
from tests.clients.python.conftest import PROMPT
from tests.clients.python.flows import go_through
from tests.clients.sandbox_server import module_server, testbed
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of

__all__ = ["module_server", "testbed"]

PASSWORD = "correct horse battery"


@pytest.fixture
async def sandbox_url(server: Server) -> str:
    return server.services.settings.sandbox_url or ""


async def approve(server: Server, link: str) -> None:
    async with server.http.post(link, data={"action": "approve"}, allow_redirects=False) as response:
        assert response.status == 303, await response.text()


@pytest.mark.parametrize("flow", **named(cases("areas")))
async def test_a_flow(server: Server, flow: dict) -> None:
    for kind, name, value in flow["configs"]:
        await configure(server, kind, value, name=name)
    await go_through(server, flow["steps"])


async def test_an_order_is_approved_and_captured(client: ParleyClient, server: Server) -> None:
    order = await client.wallet.create_order("coins_100", country_code="DE")
    assert order["status"] == "CREATED"
    with pytest.raises(ParleyError) as refused:
        await client.wallet.capture_order(order["id"])
    assert refused.value.error_type == "invalid_operation"
    await approve(server, order["approve_link_href"])
    assert (await client.wallet.capture_order(order["id"]))["status"] == "COMPLETED"
    assert (await client.wallet.fetch_order(order["id"]))["walletpay_order"]["id"] == order["id"]
    assert [asset["quantity"] for asset in (await client.wallet.sync_order(order["id"]))["assets"]] == [100]
    assert [asset["name"] for asset in await client.assets()] == ["coins"]


async def test_a_subscription_is_approved_and_upgraded(client: ParleyClient, server: Server) -> None:
    begun = (await client.wallet.subscribe("pro_month", country_code="DE"))["walletpay_sub"]
    await approve(server, begun["approve_link_href"])
    assert (await client.wallet.sync_subscription(begun["id"]))["walletpay_sub"]["status"] == "ACTIVE"
    assert (await client.wallet.fetch_subscription(begun["id"]))["walletpay_sub"]["next_billing_amount"] > 0
    upgraded = (await client.wallet.upgrade(begun["id"], "pro_year"))["walletpay_sub"]
    await approve(server, upgraded["approve_link_href"])
    synced = await client.wallet.sync_upgrade(upgraded["id"])
    assert (synced["walletpay_sub"]["status"], synced["walletpay_sub"]["bp_product_id"]) == ("ACTIVE", "pro_year")


async def test_a_score_has_a_rank(client: ParleyClient) -> None:
    posted = await client.leaderboards.upload("weekly", 12.5, extra={"level": 3})
    assert posted["name"] == "weekly"
    board = await client.leaderboards.query("weekly", first=1, last=5, around=1)
    assert [entry["score"] for entry in board["rank_data"]] == [12.5]
    assert (board["self_rank"], board["rank_data"][0].get("extra")) == (1, {"level": 3})


@pytest.fixture
async def person(server: Server) -> AsyncIterator[ParleyClient]:
    """A client whose user has an address."""
    async with ParleyClient(server.url, sign_key=SIGN_KEY, backoff=PROMPT) as opened:
        await opened.sign_up("email_password", {"email": "ada@example.com", "password": PASSWORD})
        yield opened


async def test_an_email_is_sent(person: ParleyClient, server: Server) -> None:
    await person.mail.send("welcome", custom_variables={"name": "Ada"})
    assert any("Ada" in str(mail) for mail in await mails(server, "ada@example.com"))


async def test_an_account_has_a_password_identities_and_sessions(person: ParleyClient, server: Server) -> None:
    account = person.account
    assert await account.email_exists("ada@example.com")
    assert not await account.email_exists("bob@example.com")
    assert not await account.email_verified()
    await account.change_password(PASSWORD, "staple gun at dawn")
    async with ParleyClient(server.url, sign_key=SIGN_KEY) as other:
        await other.sign_in("email_password", {"email": "ada@example.com", "password": "staple gun at dawn"})
        (listed,) = [session for session in await account.sessions() if not session["current"]]
        await account.end_session(listed["session_id"])
        with pytest.raises(ParleyError, match="invalid_session"):
            await other.user()
    bound = await account.bind("android_games_service", {"player_id": "g~1/2"})
    assert (await person.user()).get("social_accounts", [])[0]["id"] == bound["id"]
    async with ParleyClient(server.url, sign_key=SIGN_KEY) as stranger:
        await stranger.sign_in("device", {"id": "a stranger"})
        with pytest.raises(ParleyError) as taken:
            await stranger.account.bind("android_games_service", {"player_id": "g~1/2"})
        assert taken.value.error_type == "account.sp_linked_another"
        assert taken.value.bp_auth is not None
        owner = await stranger.sign_in("bp_auth_token", taken.value.bp_auth["bp_auth_token"])
    assert owner["uid"] == (await person.user())["uid"]
    await account.unbind("android_games_service", bound["id"])
    await account.deactivate()
    with pytest.raises(ParleyError) as frozen:
        await person.assets()
    assert frozen.value.extra["deactivate_left_sec"] > 0
    await account.recover()
    assert await person.assets() == []


async def test_a_code_signs_in(server: Server) -> None:
    async with ParleyClient(server.url, sign_key=SIGN_KEY) as client:
        await client.account.send_email_code("eve@example.com", platform="website")
        code = await code_sent(server, "eve@example.com")
        user = await client.sign_in("email_code", {"email": "eve@example.com", "verify_code": code})
    assert user["is_new_user"]


async def test_a_prediction_is_made_and_begun(client: ParleyClient, server: Server, sandbox_url: str) -> None:
    host = {"platform": "replicate", "base_url": f"{sandbox_url}/replicate/v1", "api_key": "sandbox"}
    await configure(server, "vendor_accounts", host, name="host")
    await configure(server, "predictions", {"account": "host"}, name="faces")
    data = {
        "version": "a" * 64,
        "input": {"prompt": "Alice", "image": await client.predictions.upload(b"\x89PNG\r\n\x1a\n a picture")},
    }
    made = await client.predictions.create("faces", data["version"], data["input"])
    assert (made["status"], made["input"]["prompt"]) == ("succeeded", "Alice")
    begun = await client.predictions.begin("faces", data)

    async def has_succeeded() -> bool:
        return (await client.predictions.read(begun["id"]))["status"] == "succeeded"

    async with working(server.services):
        await until(has_succeeded)


async def test_an_image_is_made(client: ParleyClient, server: Server, sandbox_url: str) -> None:
    host = {"platform": "image_host", "base_url": f"{sandbox_url}/midjourney", "api_key": key_of(pace_ms=1)}
    await configure(server, "vendor_accounts", host, name="pictures")
    await configure(server, "images", {"account": "pictures"}, name="pictures")
    async with working(server.services):
        task = (await client.images.imagine("pictures", {"prompt": "a tree"}, wait_s=60))["data"]
    assert task["status"] == "finished"
    assert (await client.images.read(task["task_id"]))["data"]["task_result"]["image_url"]


async def test_conversations_are_listed_and_deleted(client: ParleyClient, server: Server, sandbox_url: str) -> None:
    account = {"platform": "vendor_b_llm", "base_url": f"{sandbox_url}/openai/v1", "api_key": "sandbox"}
    await configure(server, "vendor_accounts", account, name="chat")
    await configure(server, "conversation", {"chat": {"account": "chat", "model": "gpt-4o-mini"}}, name="one")
    turn = client.converse(strategies=["one"], text="Hello there", language_code="en-US")
    await turn.finish()
    (listed,) = (await client.conversations())["conversations"]
    assert (listed["conversation_id"], listed["first_words"]) == (turn.conversation_id, "Hello there")
    history = await client.history(listed["conversation_id"])
    assert history["conversation"]["record_count"] == 1
    assert [message["role"] for message in history["conversation_records"][0]["content"]] == ["user", "assistant"]
    await client.delete_conversation(listed["conversation_id"])
    assert (await client.conversations())["conversations"] == []
