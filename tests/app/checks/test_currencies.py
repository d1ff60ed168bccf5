"""Currencies in configs, which are accepted in either case."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.commands.config_files import import_folder
from tests.app.operators import Operator
from tests.running.servers import Server

APP = {"client_id": "app", "client_secret": "s", "webhook_id": "WH"}
CARD: dict[str, Any] = {"secret_key": "sk_test"}
COINS = {"type": "consumable", "asset": "coins", "quantity": 1}
PRICE = {"amount": 5, "currency": "uSd", "countries": {"JP": {"amount": 300, "currency": "jpy"}}}
STORED_PRICE = {"amount": 5, "currency": "USD", "countries": {"JP": {"amount": 300, "currency": "JPY"}}}
CURRENCIES = [
    ("apps/default", {"currency": "eur"}, "currency", "EUR"),
    ("cardpay/Mixed", {**CARD, "currencies": ["usd", "Eur", "JPY"]}, "currencies", ["USD", "EUR", "JPY"]),
    ("payouts/Mixed", {**APP, "currency": "chf"}, "currency", "CHF"),
    ("products/mixed", {**COINS, "price": PRICE}, "price", STORED_PRICE),
]


@pytest.mark.parametrize(("path", "value", "field", "stored"), CURRENCIES)
async def test_a_currency_is_stored_in_upper_case_however_an_operator_writes_it(
    shared_server: Server, path: str, value: dict[str, Any], field: str, stored: Any
):
    operator = Operator(shared_server)
    written = await operator.put(f"configs/default/{path}", value)
    assert written.status == 200, written.body
    found = await operator("GET", f"configs/default/{path}")
    assert found.body["value"][field] == stored


async def test_a_currency_is_stored_in_upper_case_from_files_too(shared_server: Server, tmp_path: Path):
    for path, value, _, _ in CURRENCIES:
        file = tmp_path / "default" / f"{path}.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(yaml.safe_dump(value))
    configs = shared_server.services.configs
    await import_folder(configs, tmp_path, author="test", env={})
    for path, _, field, stored in CURRENCIES:
        found = await Operator(shared_server)("GET", f"configs/default/{path}")
        assert found.body["value"][field] == stored
    again = await import_folder(configs, tmp_path, author="test", env={})
    assert {change.outcome for change in again} == {"unchanged"}


@pytest.mark.parametrize("currency", ["us", "usdd", "xxx", "\u0131dr", "ß", "", "us d"])
async def test_what_is_no_currency_in_either_case_is_refused(guest: Server, currency: str):
    for path, value, field, _ in CURRENCIES:
        wrong: Any = {"currencies": [currency], "price": {**PRICE, "currency": currency}}.get(field, currency)
        refused = await Operator(guest).put(f"configs/default/{path}", {**value, field: wrong})
        assert refused.status == 400, refused.body
