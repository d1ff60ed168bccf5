"""An app's server sends postcards. Their printer prints each once, and reports when it is posted."""

import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from storage.userdata.document import document
from storage.userdata.exported import ExportedUser
from streams.wire.codec import dumps, loads
from tests.app.callers import ask, token, working
from tests.app.operators import Operator
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running, listening

KEY = "a key that the printer knows"


@asynccontextmanager
async def printing(server: Server, *, key: str = "sandbox") -> AsyncIterator[Running]:
    """The sandbox as the printer of the design `birthday`. `key` may name a fault."""
    operator = Operator(server)
    async with listening() as sandbox:
        account = {"platform": "acme_postcards", "base_url": f"{sandbox.url}/acme", "api_key": key}
        assert (await operator.put("configs/default/vendor_accounts/acme", account)).status == 200
        design = {"account": "acme", "webhook_key": KEY}
        assert (await operator.put("configs/default/postcards/birthday?strict=true", design)).status == 200
        yield sandbox


async def send(server: Server, uid: str, *, design: str = "birthday", **headers: str) -> tuple[int, Any]:
    path, body = f"/bp/server/user/{uid}/postcard", {"design": design, "text": "Hello"}
    return await ask(server, "POST", path, json=body, headers=token(scope="postcards") | headers)


async def deliver(server: Server, body: bytes, *, config: str = "birthday", key: str = KEY) -> int:
    signature = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    path, headers = f"/bp/webhook/postcards/default/{config}", {"X-Acme-Signature": signature}
    return (await ask(server, "POST", path, data=body, headers=headers))[0]


async def test_postcard_is_printed_once_and_its_user_sees_when_it_is_posted(server: Server):
    uid, session = await server.login()
    once = key_of(fault="unavailable", times=1, retry_after_s=0.01)
    async with printing(server, key=once) as sandbox, working(server.services):
        for _ in range(2):
            status, sent = await send(server, uid, **{"Idempotency-Key": "1"})
            assert (status, sent["posted_time"]) == (200, "0001-01-01T00:00:00Z")
        reference = sent["postcard_id"]
        order = {"reference": reference, "text": "Hello", "paper": "matte"}
        await sandbox.bill.wait(lambda call: call.asked == order)
        assert await deliver(server, dumps({"id": "1", "reference": reference})) == 200

        async def posted() -> bool:
            path = "/bp/user/me/postcards"
            _, listed = await ask(server, "GET", path, headers={"X-Service-Session-Token": session})
            [only] = listed["postcards"]
            return only["posted_time"] != sent["posted_time"]

        await until(posted)
    assert [call.fault for call in sandbox.bill.since(0)] == ["unavailable", None]


async def test_users_see_and_delete_their_own_postcards_only(server: Server):
    (uid, session), (_, other) = await server.login(), await server.login()
    async with printing(server):
        ids = [(await send(server, uid))[1]["postcard_id"] for _ in range(3)]
    path = f"/bp/user/me/postcard/{ids[0]}"
    status, answer = await ask(server, "DELETE", path, headers={"X-Service-Session-Token": other})
    message = f"item_not_found: postcard {ids[0]} does not exist"
    assert (status, answer["error"]["message"]) == (404, message)
    assert (await ask(server, "DELETE", path, headers={"X-Service-Session-Token": session}))[0] == 200

    async def page(**query: str) -> tuple[list[str], str | None]:
        listed = f"/bp/server/user/{uid}/postcards"
        _, found = await ask(server, "GET", listed, headers=token(), params={"size": "1", **query})
        return [postcard["postcard_id"] for postcard in found["postcards"]], found.get("next")

    assert await page() == ([ids[2]], ids[2])
    assert await page(before=ids[2]) == ([ids[1]], None)


async def test_postcards_of_a_user_have_a_limit_and_need_a_design(server: Server):
    uid, _ = await server.login()
    status, answer = await send(server, uid, design="wedding")
    assert (status, answer["error"]["error_type"]) == (422, "config_invalid")
    async with printing(server):
        assert [(await send(server, uid))[0] for _ in range(5)] == [200] * 4 + [429]


async def test_webhook_that_the_printer_did_not_sign_is_refused(server: Server):
    async with printing(server):
        assert await deliver(server, b'{"id": "1", "reference": "2"}', key="another") == 400
        assert await deliver(server, b"{}") == 400
        assert await deliver(server, b"{}", config="wedding") == 404


async def test_account_whose_platform_prints_no_postcards_is_refused(server: Server):
    operator = Operator(server)
    await operator.put("configs/default/vendor_accounts/llm", {"platform": "anthropic"})
    refused = await operator.put("configs/default/postcards/one", {"account": "llm", "webhook_key": KEY})
    message = "account names vendor_accounts llm, whose platform anthropic offers no postcards"
    assert refused.error == (400, f"invalid_parameter: {message}")


async def test_account_is_deactivated_with_its_postcards_once_they_are_posted(server: Server):
    uid, session = await server.login()
    headers = {"X-Service-Session-Token": session}
    async with printing(server), working(server.services):
        reference = (await send(server, uid))[1]["postcard_id"]
        status, answer = await ask(server, "POST", "/bp/user/me/deactivate", headers=headers)
        assert (status, answer["error"]["message"]) == (400, "operation_not_allowed: a postcard is not posted yet")
        assert await deliver(server, dumps({"id": "2", "reference": reference})) == 200

        async def frozen() -> bool:
            return (await ask(server, "POST", "/bp/user/me/deactivate", headers=headers))[0] == 200

        await until(frozen)
    user = ExportedUser("default", uid, server.services.database, server.services.objects)
    [exported] = loads(b"".join([piece async for piece in await document(user)]))["postcards"]
    assert (exported["design"], exported["text"]) == ("birthday", "Hello")
    assert (await ask(server, "POST", "/bp/user/me/deactivate/confirm", headers=headers))[0] == 200
    _, reply = await ask(server, "GET", f"/bp/server/user/{uid}/erasure_receipt", headers=token())
    assert reply["receipt"]["deleted"]["postcards"] == 1
