"""The commands of docs/guides/payments.md, in a shell, pay as the guide says."""

import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from storage.accounts import emails
from streams.wire.codec import loads
from tests.app.callers import work_off
from tests.code.source_files import ROOT
from tests.peers.curl import NEEDS_CURL, clone_in, functions_of, functions_of_guides, printed_by
from tests.running.servers import SERVER_KEY, Databases, Server, new_server
from vendors.sandbox.server import Running

pytestmark = NEEDS_CURL

PAGE = (ROOT / "docs/guides/payments.md").read_text()
BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL).findall(PAGE)


@dataclass(frozen=True)
class Reader:
    """Who follows the guide: a user in a folder beside the clone."""

    server: Server
    folder: Path
    uid: str
    session: str

    async def run(self, command: str, **filled: str) -> Any:
        """Run a command of the guide with its functions, and return what it prints. `filled`: its placeholders."""
        for name, value in filled.items():
            assert f"<{name}>" in command
            command = command.replace(f"<{name}>", value)
        assert "<" not in command
        functions = functions_of_guides() + functions_of("".join(BLOCKS))
        text = (functions + command).replace("$CLONE/.venv/bin/python", sys.executable)
        env = {"PYTHONPATH": str(ROOT), "CLONE": str(self.folder / "clone"), "URL": self.server.url}
        env |= {"SESSION": self.session, "USER_ID": self.uid}
        return loads(await printed_by(text, self.folder, **env))

    async def approve(self, link: str) -> None:
        async with self.server.http.post(link, data={"action": "approve"}, allow_redirects=False) as response:
            assert response.status == 303


def command(beginning: str) -> str:
    """The command of the guide that begins so, with its further lines."""
    [found] = re.findall(rf"^{re.escape(beginning)}(?:.*\\\n)*.*\n", "".join(BLOCKS), re.MULTILINE)
    return str(found)


@pytest.fixture
async def reader(databases: Databases, tmp_path: Path, platform: Running) -> AsyncIterator[Reader]:
    async with new_server(databases, tmp_path / "data", sandbox_url=platform.url) as server:
        (clone_in(tmp_path) / ".parley" / "server-key").write_text(SERVER_KEY)
        yield Reader(server, tmp_path, *await server.login())


async def test_a_first_order_by_wallet(reader: Reader) -> None:
    made = (await reader.run(command("buy walletpay/create")))["walletpay_order"]
    await reader.approve(made["approve_link_href"])
    captured = await reader.run(command("buy walletpay/capture"), **{"id of the order": made["id"]})
    assert captured["walletpay_order"]["status"] == "COMPLETED"
    owned = await reader.run(command('curl -s "$URL/bp/asset" '))
    assert [(asset["name"], asset["quantity"]) for asset in owned["assets"]] == [("coins", 100)]
    refund = command('curl -sX POST "$URL/admin/api/users/default/$USER_ID/orders/')
    refunded = await reader.run(refund, **{"id of the order": made["id"]})
    assert refunded["state"] in {"made", "accepted", "pending"}
    assert refunded["amount"] == 150


async def test_a_payment_with_a_card_that_the_server_of_the_app_creates(reader: Reader) -> None:
    made = await reader.run(command('curl -s "$URL/bp/server/user/$USER_ID/asset/'))
    assert made["cardpay_payment_intent"]["status"] == "requires_payment_method"
    assert (await reader.run(command("put cardpay/Default")))["kind"] == "cardpay"


async def test_a_shared_subscription(reader: Reader) -> None:
    assert (await reader.run(command("put share_groups/pro")))["name"] == "pro"
    made = (await reader.run(command("buy walletpay_sub")))["walletpay_sub"]
    await reader.approve(made["approve_link_href"])
    path = f"{reader.server.url}/bp/asset/walletpay_sub/{made['id']}/sync"
    async with reader.server.http.get(path, headers={"X-Service-Session-Token": reader.session}) as response:
        assert response.status == 200
    code = await reader.run(command("buy share_group/code"))
    assert code["remain_count"] == 4
    other = Reader(reader.server, reader.folder, *await reader.server.login())
    joined = await other.run(command("buy share_group/join"), share_code=code["share_code"])
    assert [(asset["name"], asset["origin"]) for asset in joined["assets"]] == [("pro", "share")]


async def test_a_withdrawal(reader: Reader) -> None:
    services = reader.server.services
    async with services.database.transaction() as conn:
        to, now = f"payee@{uuid4().hex}.example", services.clock.now("default")
        await emails.set_current(conn, "default", reader.uid, address=to, old="", now=now)
    withdraw = command('curl -s "$URL/bp/server/user/$USER_ID/withdraw/')
    started = (await reader.run(withdraw))["withdraw"]
    assert (started["status"], started["cash_num"]) == ("WITHDRAW_START", 12.3)
    await work_off(services)
    repeated = (await reader.run(withdraw))["withdraw"]
    assert repeated["withdraw_id"] == started["withdraw_id"]
    settled = await reader.run(command('settle "<withdrawal_id>"'), withdrawal_id=started["withdraw_id"])
    assert "is not unknown" in settled["error"]["message"]
