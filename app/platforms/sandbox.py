"""The configs of payment platforms that name the sandbox, for development servers."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.cardpay import CARDPAY, CardPay
from storage.configs.kinds.payouts import PAYOUTS
from storage.configs.kinds.urls import SANDBOX
from storage.configs.kinds.walletpay import WALLETPAY, PayPalApp
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from streams.wire.errors import ConfigInvalid
from vendors.sandbox_clock import CARD_ACCOUNT

_KINDS: tuple[ConfigKind[Any], ...] = (CARDPAY, WALLETPAY, PAYOUTS)


def sandbox_configs(configs: ConfigStore, app_id: str) -> Iterator[tuple[ConfigKey, CardPay | PayPalApp]]:
    """Yield the configs of an app that name the sandbox. Those that cannot be used are left out."""
    for kind in _KINDS:
        for name in configs.names(kind, app_id):
            with suppress(ConfigInvalid):
                config: CardPay | PayPalApp = configs.get(kind, app_id, name).value
                if (config.base_url or "").startswith(SANDBOX):
                    yield ConfigKey(app_id, kind.name, name), config


def sandbox_accounts(configs: ConfigStore, app_id: str) -> set[str]:
    """Return the ids of the accounts that an app has at the sandbox's payment platforms."""
    found = (config for _, config in sandbox_configs(configs, app_id))
    return {CARD_ACCOUNT if isinstance(config, CardPay) else config.client_id for config in found}
