"""Nobody learns from a response, or from the time that it takes, whether somebody has an account (§4.1, §4.7)."""

from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from app.password_hashing import open_password_hashes
from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    link_in,
    new_address,
    open_mailbox,
    path_of,
    session_of,
)
from tests.running.servers import Databases
from tests.timing import check_alike

MANY = {"count": 1_000, "per_s": 1}
FAST = partial(open_password_hashes, memory_kib=8_192, iterations=1)
"""Hashes that take a fifth of the usual time, so that a difference stands out and many logins can be compared."""


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mailbox]:
    patch = pytest.MonkeyPatch()
    patch.setattr("app.services.open_password_hashes", FAST)
    async with open_mailbox(databases, tmp_path_factory.mktemp("data")) as opened:
        patch.undo()
        yield opened


async def unknown(_: Mailbox) -> str:
    return new_address()


async def unverified(box: Mailbox) -> str:
    address = new_address()
    session_of(await box.sign_up(address))
    return address


async def verified(box: Mailbox) -> str:
    address = await unverified(box)
    assert (await box.get(path_of(link_in(await box.mail(address)))))[0] == 200
    return address


async def frozen(box: Mailbox) -> str:
    address = await verified(box)
    session = session_of(await box.login(address))
    assert await box.post("me/deactivate", None, **session) == (200, None)
    return address


async def without_password(box: Mailbox) -> str:
    address = new_address()
    session_of(await box.code_login(address, await box.code(address)))
    return address


@pytest.fixture(scope="module")
async def addresses(testbed: Mailbox) -> Mapping[str, str]:
    """An address of each kind."""
    await testbed.configure(code_login=True, activation=True)
    kinds = (unknown, unverified, verified, frozen, without_password)
    return {kind.__name__: await kind(testbed) for kind in kinds}


@pytest.fixture(scope="module")
async def names(testbed: Mailbox) -> Mapping[str, str]:
    """A name of each kind."""
    found = {kind: f"u{uuid4().hex[:12]}" for kind in ("unknown", "active", "frozen")}
    sessions = {
        kind: session_of(await testbed.post("signup", {"name_password": {"name": name, "password": PASSWORD}}))
        for kind, name in found.items()
        if kind != "unknown"
    }
    assert await testbed.post("me/deactivate", None, **sessions["frozen"]) == (200, None)
    return found


async def check_same(
    box: Mailbox, kinds: Mapping[str, str], path: str, body_of: Callable[[str], dict[str, Any]], *, leak_s: float
) -> int:
    """Check that the requests of all kinds get the same response after the same time. Return its status."""
    responses = set()

    async def call(who: str) -> None:
        async with box.server.http.post(f"{box.server.url}/bp/user/{path}", json=body_of(who)) as response:
            raw = await response.read()
        headers = {name for name in response.headers if name not in {"Date", "X-Request-Id"}}
        responses.add((response.status, raw, frozenset(headers)))

    await check_alike(kinds, call, leak_s=leak_s)
    [(status, _, _)] = responses
    return status


@pytest.fixture
async def many_guesses(box: Mailbox):
    """Allow as many failed logins as the comparison needs."""
    await box.configure("limits", login_network=MANY, login_account=MANY)
    yield
    await box.configure("limits")


@pytest.mark.usefixtures("many_guesses")
async def test_a_wrong_password_of_any_address_looks_like_that_of_an_unknown_one(
    box: Mailbox, addresses: Mapping[str, str]
):
    def guess(address: str) -> dict[str, Any]:
        return {"email_password": {"email": address, "password": NEW_PASSWORD}}

    assert await check_same(box, addresses, "login", guess, leak_s=0.004) == 400


@pytest.mark.usefixtures("many_guesses")
async def test_a_wrong_password_of_any_name_looks_like_that_of_an_unknown_one(
    box: Mailbox, names: Mapping[str, str]
):
    def guess(name: str) -> dict[str, Any]:
        return {"name_password": {"name": name, "password": NEW_PASSWORD}}

    assert await check_same(box, names, "login", guess, leak_s=0.004) == 400


async def test_a_forgotten_password_of_any_address_looks_like_that_of_an_unknown_one(
    box: Mailbox, addresses: Mapping[str, str]
):
    def forget(address: str) -> dict[str, Any]:
        return {"email": address, "platform": "ios"}

    assert await check_same(box, addresses, "email/forgot_password", forget, leak_s=0.001) == 200
