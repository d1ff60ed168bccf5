"""Products and plans of the sandbox's PayPal. Each merchant has those that the development seed names."""

from typing import Any

from vendors.sandbox.payments.paypal.amounts import read_amount
from vendors.sandbox.payments.paypal.state import Merchant
from vendors.sandbox.payments.paypal.wire import new_id, not_found, refusal, time_text

COINS = "PROD-0XB74586CH345074B"
PRO = "PROD-6XB24663H4094933M"
MONTHLY = "P-5ML4271244454362WXNWU5NQ"
YEARLY = "P-2UF78835G6983425GLSM44MA"
TRIAL = "P-7GL4271244454362WXNWU5TR"
"""A monthly plan whose first week is free."""
_UNITS = frozenset({"DAY", "WEEK", "MONTH", "YEAR"})
_MAX_TEXT = 127


def _cycle(unit: str, value: str, *, tenure: str = "REGULAR", sequence: int = 1, total: int = 0) -> dict[str, Any]:
    price = {"pricing_scheme": {"fixed_price": {"currency_code": "USD", "value": value}}} if value else {}
    return {
        "frequency": {"interval_unit": unit, "interval_count": 1},
        "tenure_type": tenure,
        "sequence": sequence,
        "total_cycles": total,
        **price,
    }


def add_seeds(merchant: Merchant) -> None:
    """Give a new merchant the products and plans of the development seed, and a plan with a trial."""
    merchant.products |= {COINS: {"id": COINS, "name": "Coins"}, PRO: {"id": PRO, "name": "Pro"}}
    week = _cycle("WEEK", "", tenure="TRIAL", total=1)
    for plan_id, name, cycles in (
        (MONTHLY, "Pro, monthly", [_cycle("MONTH", "9.99")]),
        (YEARLY, "Pro, yearly", [_cycle("YEAR", "99.00")]),
        (TRIAL, "Pro, monthly, with a trial", [week, _cycle("MONTH", "9.99", sequence=2)]),
    ):
        body = {"product_id": PRO, "name": name, "billing_cycles": cycles, "payment_preferences": {}}
        merchant.plans[plan_id] = _plan(merchant, plan_id, body)


def create_product(merchant: Merchant, body: dict[str, Any]) -> dict[str, Any]:
    _require_text(body, "name")
    product_id = body.get("id") or f"PROD-{new_id()}"
    product = {"id": product_id, "name": body["name"], "type": body.get("type", "PHYSICAL")}
    merchant.products[product_id] = {**product, "create_time": time_text(merchant.now)}
    return merchant.products[product_id]


def create_plan(merchant: Merchant, body: dict[str, Any]) -> dict[str, Any]:
    _require_text(body, "name")
    if body.get("product_id") not in merchant.products:
        raise not_found()
    cycles = body.get("billing_cycles")
    if not isinstance(cycles, list) or not cycles or not isinstance(body.get("payment_preferences"), dict):
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at="/billing_cycles")
    for index, cycle in enumerate(cycles):
        _check_cycle(cycle, f"/billing_cycles/{index}")
    plan_id = f"P-{new_id(24)}"
    merchant.plans[plan_id] = _plan(merchant, plan_id, body)
    return merchant.plans[plan_id]


def plan_of(merchant: Merchant, plan_id: object) -> dict[str, Any]:
    plan = merchant.plans.get(plan_id) if isinstance(plan_id, str) else None
    if plan is None:
        raise not_found()
    return plan


def switch_plan(merchant: Merchant, plan_id: str, *, active: bool) -> None:
    plan = plan_of(merchant, plan_id)
    target = "ACTIVE" if active else "INACTIVE"
    if plan["status"] == target:
        raise refusal(422, "PLAN_STATUS_INVALID", "Invalid plan status for this action.")
    plan["status"] = target


def update_prices(merchant: Merchant, plan_id: str, body: dict[str, Any]) -> None:
    """Change the prices of a plan. PayPal tells the payers ten days before; here it holds at once."""
    plan = plan_of(merchant, plan_id)
    schemes = body.get("pricing_schemes")
    if not isinstance(schemes, list) or not schemes:
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at="/pricing_schemes")
    cycles = {cycle["sequence"]: cycle for cycle in plan["billing_cycles"]}
    for index, scheme in enumerate(schemes):
        at = f"/pricing_schemes/{index}"
        cycle = cycles.get(scheme.get("billing_cycle_sequence"))
        if cycle is None:
            description = "The provided billing cycle sequence is not available."
            raise refusal(422, "INVALID_BILLING_CYCLE_SEQUENCE", description, at=at)
        read_amount(scheme.get("pricing_scheme", {}).get("fixed_price"), f"{at}/pricing_scheme/fixed_price")
        cycle["pricing_scheme"] = scheme["pricing_scheme"]
    plan["update_time"] = time_text(merchant.now)


def _plan(merchant: Merchant, plan_id: str, body: dict[str, Any]) -> dict[str, Any]:
    path = f"/v1/billing/plans/{plan_id}"
    return {
        "id": plan_id,
        "product_id": body["product_id"],
        "name": body["name"],
        "status": body.get("status", "ACTIVE"),
        "billing_cycles": body["billing_cycles"],
        "payment_preferences": {"auto_bill_outstanding": True, **body["payment_preferences"]},
        **({"taxes": body["taxes"]} if "taxes" in body else {}),
        "quantity_supported": body.get("quantity_supported", False),
        "create_time": time_text(merchant.now),
        "update_time": time_text(merchant.now),
        "links": [merchant.link("self", path), merchant.link("edit", path, "PATCH")],
    }


def _check_cycle(cycle: Any, at: str) -> None:
    if not isinstance(cycle, dict) or cycle.get("tenure_type") not in {"TRIAL", "REGULAR"}:
        raise refusal(400, "INVALID_PARAMETER_VALUE", "The value of a field is invalid.", at=f"{at}/tenure_type")
    frequency = cycle.get("frequency")
    if not isinstance(frequency, dict) or frequency.get("interval_unit") not in _UNITS:
        raise refusal(400, "INVALID_PARAMETER_VALUE", "The value of a field is invalid.", at=f"{at}/frequency")
    if not isinstance(cycle.get("sequence"), int):
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at=f"{at}/sequence")
    price = cycle.get("pricing_scheme", {}).get("fixed_price")
    if price is not None:
        read_amount(price, f"{at}/pricing_scheme/fixed_price")
    elif cycle["tenure_type"] == "REGULAR":
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at=f"{at}/pricing_scheme")


def _require_text(body: dict[str, Any], name: str) -> None:
    if not isinstance(body.get(name), str) or not 1 <= len(body[name]) <= _MAX_TEXT:
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at=f"/{name}")
