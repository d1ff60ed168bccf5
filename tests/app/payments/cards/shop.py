"""A server, the sandbox as its card platform, and users who buy."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests import card_numbers
from tests.app.callers import ask, token
from tests.calendar.clock import epoch_s
from tests.running.servers import Databases, Server, new_server
from vendors.sandbox.server import Running, listening

WEBHOOK = "/bp/webhook/cardpay/default/Default"
CARD = {"number": "4242424242424242", "exp_month": "12", "exp_year": "2040", "cvc": "123"}
CONFIG: Mapping[str, Any] = {
    "base_url": "{sandbox}/stripe", "secret_key": "sandbox", "webhook_secrets": ["whsec_sandbox"], "debug": True,
}  # fmt: skip


@dataclass(frozen=True)
class Buyer:
    uid: str
    session: str
    device: str


@dataclass(frozen=True)
class Shop:
    server: Server
    sandbox: Running

    async def buyer(self) -> Buyer:
        return await self.back(uuid4().hex)

    async def back(self, device: str) -> Buyer:
        """Log in again, because sessions expire when time passes."""
        return Buyer(*await self.server.login(device), device)

    async def configure(self, name: str = "Default", **changes: Any) -> None:
        """Replace fields of a config of kind `cardpay`. `secret_key` may name a fault."""
        await self.put("cardpay", name, {**CONFIG, **changes})

    async def put(self, kind: str, name: str, value: Any) -> None:
        await self.server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)

    async def server_call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        headers = token(scope="payments", jti=uuid4().hex) | options.pop("headers", {})
        return await ask(self.server, method, path, headers=headers, **options)

    async def client_call(self, buyer: Buyer, method: str, path: str, **options: Any) -> tuple[int, Any]:
        headers = {"X-Service-Session-Token": buyer.session} | options.pop("headers", {})
        card_numbers.record(options.get("json"))
        return await ask(self.server, method, path, headers=headers, **options)

    async def create(self, buyer: Buyer, *, key: str | None = None, **body: Any) -> tuple[int, Any]:
        """Create a payment. Returns the intent or the error."""
        path = f"/bp/server/user/{buyer.uid}/asset/cardpay_payment_intent"
        headers = {} if key is None else {"Idempotency-Key": key}
        given = {"amonut": 199, "currency": "usd", **body}
        json = {name: value for name, value in given.items() if value is not None}
        status, answer = await self.server_call("POST", path, json=json, headers=headers)
        return status, answer["cardpay_payment_intent"] if status == 200 else answer["error"]

    async def created(self, buyer: Buyer, **body: Any) -> dict[str, Any]:
        status, intent = await self.create(buyer, **body)
        assert status == 200, intent
        found: dict[str, Any] = intent
        return found

    async def get(self, buyer: Buyer, intent: str, **query: str) -> tuple[int, Any]:
        path = f"/bp/server/user/{buyer.uid}/asset/cardpay_payment_intent/{intent}"
        return await self.server_call("GET", path, params=query)

    async def assets(self, buyer: Buyer) -> dict[str, Any]:
        status, answer = await self.client_call(buyer, "GET", "/bp/asset")
        assert status == 200, answer
        return {asset["name"]: asset for asset in answer["assets"]}

    async def coins(self, buyer: Buyer) -> int:
        found = await self.assets(buyer)
        quantity: int = found["coins"]["quantity"] if "coins" in found else 0
        return quantity

    async def platform(self, path: str, **form: str) -> dict[str, Any]:
        """Do something at the platform that the server does not do, such as a refund."""
        url = f"{self.sandbox.url}/stripe/v1/{path}"
        headers = {"Authorization": "Bearer sandbox"}
        async with self.server.http.post(url, data=form, headers=headers) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status in {200, 402}, answer
            return answer

    async def listed(self, path: str, **query: str) -> list[dict[str, Any]]:
        url = f"{self.sandbox.url}/stripe/v1/{path}"
        headers = {"Authorization": "Bearer sandbox"}
        async with self.server.http.get(url, params=query, headers=headers) as response:
            found: list[dict[str, Any]] = (await response.json())["data"]
            return found

    async def pay(self, intent: str, *, card: str = "pm_card_visa") -> dict[str, Any]:
        """Pay as the app does, with the platform's own library."""
        return await self.platform(f"payment_intents/{intent}/confirm", payment_method=card)

    async def control(self, action: str, **body: Any) -> dict[str, Any]:
        async with self.server.http.post(f"{self.sandbox.url}/stripe/_sandbox/{action}", json=body) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status == 200, answer
            return answer

    async def reset_clocks(self) -> None:
        """Set the times of the platform and of the app to real time."""
        now: int = (await self.control("clock", by_s=0))["now"]
        await self.control("clock", by_s=int(epoch_s()) - now)
        await self.server.services.clock.move("default", offset_s=0)

    async def send_webhooks(self) -> None:
        """Let the platform send webhooks to the server from now on."""
        form = {"url": f"{self.server.url}{WEBHOOK}", "enabled_events[]": "*"}
        await self.platform("webhook_endpoints", **form)

    async def stop_webhooks(self) -> None:
        for endpoint in await self.listed("webhook_endpoints"):
            url = f"{self.sandbox.url}/stripe/v1/webhook_endpoints/{endpoint['id']}"
            async with self.server.http.delete(url, headers={"Authorization": "Bearer sandbox"}) as response:
                assert response.status == 200

    async def deliver(self, intent: str) -> int:
        """Send a webhook about a payment, signed as the platform does. Return the status of the response."""
        about = {"id": intent, "object": "payment_intent"}
        event = {"id": f"evt_{uuid4().hex}", "type": "payment_intent.succeeded", "created": int(epoch_s())}
        body = dumps({**event, "data": {"object": about}})
        t = int(epoch_s())
        mac = hmac.new(b"whsec_sandbox", b"%d." % t + body, hashlib.sha256).hexdigest()
        headers = {"Stripe-Signature": f"t={t},v1={mac}"}
        return (await ask(self.server, "POST", WEBHOOK, data=body, headers=headers))[0]

    async def link(self, customer: str, card: str = "pm_card_visa") -> str:
        """Link a card to a customer of the platform."""
        method = await self.platform(f"payment_methods/{card}/attach", customer=customer)
        name: str = method["id"]
        return name


@asynccontextmanager
async def open_shop(databases: Databases, data_dir: Path) -> AsyncIterator[Shop]:
    async with (
        listening() as sandbox,
        new_server(databases, data_dir, sandbox_url=sandbox.url) as server,
    ):
        yield Shop(server, sandbox)
