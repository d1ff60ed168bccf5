"""Calls the sandbox of a development server, which emulates platforms, and keeps emails and text messages."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.services import Services
from storage.configs.kinds.vendor_accounts import CallLimits
from storage.configs.rows import ConfigKey
from streams.wire.errors import BackendUnavailable
from vendors.account import Account
from vendors.catalog import Client, Vendor

Result = TypeVar("Result")

_WITHIN_S = 10
_LIMITS = CallLimits()
_NAME = "sandbox"


async def ask_sandbox(
    services: Services, vendor: Vendor[None, Client], use: Callable[[Client], Awaitable[Result]]
) -> Result:
    """Return the result of `use(client)`. Raises `BackendUnavailable` if the sandbox does not run."""
    url = services.settings.sandbox_url
    if url is None:
        raise BackendUnavailable("the sandbox does not run: PARLEY_SANDBOX_URL is not set")
    account = Account(_NAME, _NAME, url)
    access = services.vendors.open(vendor, account, key=ConfigKey("", _NAME, _NAME), limits=_LIMITS)
    return await access.call(None, use, within_s=_WITHIN_S)
