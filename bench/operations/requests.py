"""Requests that are answered at once: users, assets, leaderboards, emails, payments."""

from typing import Any
from uuid import uuid4

from bench.operations.kinds import Ask, Kind
from bench.operations.testbed import BOARD, MAIL, OperationsTestbed, User

_LOGIN, _ME = "/bp/user/login", "/bp/user/me"
_AGAIN = 100
"""How many users make the calls of a kind in turn."""


async def _log_in_anew(testbed: OperationsTestbed, _calls: int) -> Ask:
    async def ask(_number: int) -> int:
        await testbed.ask("POST", _LOGIN, {"device": {"id": uuid4().hex}})
        return 0

    return ask


async def _log_in_again(testbed: OperationsTestbed, _calls: int) -> Ask:
    devices = [uuid4().hex for _ in range(_AGAIN)]

    async def ask(number: int) -> int:
        await testbed.ask("POST", _LOGIN, {"device": {"id": devices[number % _AGAIN]}})
        return 0

    for number in range(_AGAIN):
        await ask(number)
    return ask


async def _read_first(testbed: OperationsTestbed, calls: int) -> Ask:
    """Each call is the first one of a session that this process sees."""

    async def ask(number: int) -> int:
        await testbed.ask("GET", _ME, user=unseen[number])
        return 0

    unseen = testbed.users[-calls:]
    return ask


async def _read(testbed: OperationsTestbed, _calls: int) -> Ask:
    return await _repeated(testbed, "GET", _ME)


async def _list(testbed: OperationsTestbed, _calls: int) -> Ask:
    return await _repeated(testbed, "GET", "/bp/ai/conversations")


async def _read_assets(testbed: OperationsTestbed, _calls: int) -> Ask:
    return await _repeated(testbed, "GET", "/bp/asset")


async def _query(testbed: OperationsTestbed, _calls: int) -> Ask:
    return await _repeated(testbed, "POST", "/bp/leaderboard", {"name": BOARD, "from": 1, "to": 10})


async def _send(testbed: OperationsTestbed, calls: int) -> Ask:
    """Each call sends to another user, because one email of a strategy is sent to a user at a time."""
    for user in testbed.users[:calls]:
        await testbed.prove_address(user)

    async def ask(number: int) -> int:
        body = {"name": MAIL, "custom_variables": {"name": "Ann"}}
        await testbed.ask("POST", "/bp/user/me/mail_hub/send", body, user=testbed.users[number])
        return 0

    return ask


async def _upload(testbed: OperationsTestbed, _calls: int) -> Ask:
    async def ask(number: int) -> int:
        body = {"name": BOARD, "data": {"score": number * 7919 % 100_003}}
        await testbed.ask("POST", "/bp/leaderboard/data", body, user=testbed.users[number % _AGAIN])
        return 0

    return ask


async def _repeated(testbed: OperationsTestbed, method: str, path: str, body: Any = None) -> Ask:
    """Return the same request of many users, whose sessions the process has seen."""

    async def ask(number: int) -> int:
        await testbed.ask(method, path, body, user=testbed.users[number % _AGAIN])
        return 0

    for user in testbed.users[:_AGAIN]:
        await testbed.ask("GET", _ME, user=user)
    return ask


async def _create_payment(testbed: OperationsTestbed, _calls: int) -> Ask:
    async def ask(number: int) -> int:
        await _payment(testbed, testbed.users[number % _AGAIN])
        return 0

    return ask


async def _pay(testbed: OperationsTestbed, calls: int) -> Ask:
    """Create payments. Each call pays one at the platform, whose webhook grants the product."""
    made = [await _payment(testbed, testbed.users[number % _AGAIN]) for number in range(calls)]
    methods = [
        await testbed.at_card_platform("payment_methods/pm_card_visa/attach", customer=each["customer_id"])
        for each in made
    ]

    async def ask(number: int) -> int:
        path = f"payment_intents/{made[number]['id']}/confirm"
        await testbed.at_card_platform(path, payment_method=methods[number]["id"])
        return 0

    return ask


async def _payment(testbed: OperationsTestbed, user: User) -> dict[str, Any]:
    path = f"/bp/server/user/{user.uid}/asset/cardpay_payment_intent"
    product = {"amonut": 199, "currency": "usd", "product_id": "coins_100"}
    answer = await testbed.ask("POST", path, product, scope="payments")
    intent: dict[str, Any] = answer["cardpay_payment_intent"]
    return intent


REQUESTS = (
    Kind("login of a new device", _log_in_anew),
    Kind("login of a known device", _log_in_again),
    Kind("profile, first use of a session", _read_first),
    Kind("profile", _read),
    Kind("list of conversations", _list),
    Kind("assets", _read_assets),
    Kind("score of a leaderboard", _upload),
    Kind("best ten of a leaderboard", _query),
    Kind("email, with its sending", _send, share=0.5),
    Kind("card payment: intent", _create_payment, share=0.25),
    Kind("card payment: webhook and grant", _pay, share=0.25),
)
