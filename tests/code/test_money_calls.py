"""Code that moves money calls vendors by `MoneyCall` and `ReadCall` only, so no payment is sent twice."""

import ast
from collections.abc import Iterator

import pytest

from tests.code.source_files import ROOT

CLIENTS = ("vendors/payments",)
"""Folders whose files make calls that move money."""
AREAS = ("app/payments", "app/withdrawals")
"""Folders whose files use these clients, and make no calls themselves."""

NAMES = {
    "vendors.http.outgoing": {"MoneyCall", "ReadCall", "RepeatWithKey"},
    "vendors.http.transport": {"VendorHttp"},
    "aiohttp": {"web"},
}
"""Modules of which only these names may be imported."""
OF_CLIENTS = (
    *("vendors.payments", "vendors.account", "vendors.calls.gate", "vendors.errors", "vendors.http.fetched"),
    *("vendors.http.kept", "vendors.http.outgoing", "vendors.http.transport", "vendors.objects"),
)
OF_AREAS = ("vendors.payments", "vendors.account", "vendors.errors", "vendors.catalog", "vendors.objects")
"""What may be imported of `vendors`: neither `Outgoing` nor a function that makes one."""
OTHER_CLIENTS = {"aiohttp", "httpx", "requests", "urllib3", "http", "urllib.request", "socket", "importlib"}


def imported(code: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each module that is imported, with the imported name, which is empty for `import module`."""
    for node in ast.walk(code):
        match node:
            case ast.Import(names=aliases):
                yield from ((alias.name, "") for alias in aliases)
            case ast.ImportFrom(module=str(module), names=aliases):
                yield from ((module, alias.name) for alias in aliases)


def is_in(module: str, packages: tuple[str, ...] | set[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def may_import(module: str, name: str, *, by_client: bool) -> bool:
    if module in NAMES and (by_client or not module.startswith("vendors.")):
        return name in NAMES[module]
    if is_in(module, {"vendors"}):
        return is_in(module, OF_CLIENTS if by_client else OF_AREAS)
    return not is_in(module, OTHER_CLIENTS)


def forbidden(source: str, *, by_client: bool) -> list[str]:
    """Return the imports by which code could call a vendor in another way."""
    pairs = imported(ast.parse(source))
    return [
        f"{module}.{name}".rstrip(".")
        for module, name in pairs
        if not may_import(module, name, by_client=by_client)
    ]


def test_money_is_moved_by_money_calls_only():
    found = {
        path.relative_to(ROOT).as_posix(): forbidden(path.read_text(), by_client=folder in CLIENTS)
        for folder in (*CLIENTS, *AREAS)
        for path in (ROOT / folder).rglob("*.py")
    }

    assert {path: imports for path, imports in found.items() if imports} == {}


@pytest.mark.parametrize(
    "statement",
    [
        "from vendors.http.outgoing import Outgoing",
        "from vendors.http.outgoing import MoneyCall, Outgoing as MoneyCalls",
        "from vendors.http.outgoing import Repeat",
        "from vendors.http.outgoing import *",
        "from vendors.http import outgoing",
        "import vendors.http.outgoing",
        "from vendors.http.transport import Incoming",
        "from vendors.http.client import open_vendor_http",
        "from vendors.google import GoogleTokens",
        "from vendors.http.http1.client import Http1Client",
        "from aiohttp import ClientSession",
        "import aiohttp",
        "import http.client",
        "from urllib.request import urlopen",
        "async def later():\n    import httpx",
    ],
)
def test_other_ways_to_call_a_vendor_are_found(statement: str):
    for by_client in (True, False):
        assert forbidden(statement, by_client=by_client)


@pytest.mark.parametrize(
    ("statement", "of_client", "of_area"),
    [
        ("from vendors.http.outgoing import MoneyCall, ReadCall, RepeatWithKey", True, False),
        ("from vendors.http.transport import VendorHttp", True, False),
        ("from vendors.calls.gate import Gate", True, False),
        ("from vendors.payments.orders import Order", True, True),
        ("from vendors.catalog import CARDS", False, True),
        ("from vendors.errors import VendorError", True, True),
        ("from aiohttp import web", True, True),
        ("from urllib.parse import urlsplit", True, True),
        ("from streams.wire.money import Money", True, True),
    ],
)
def test_clients_make_calls_and_areas_use_clients(statement: str, of_client: bool, of_area: bool):
    assert (forbidden(statement, by_client=True) == []) is of_client
    assert (forbidden(statement, by_client=False) == []) is of_area
