"""Which mail accounts send emails to addresses that are not ASCII (RFC 6531)."""

from collections.abc import Sequence

from storage.configs.kinds.mail_accounts import MAIL_ACCOUNTS
from storage.configs.store import ConfigStore
from streams.wire.errors import ConfigInvalid

NOT_ASCII = "must have only ASCII characters before the @"
"""What is wrong with an address to which no account sends emails."""


def accounts_for(to: str, configs: ConfigStore, app_id: str, *, accounts: Sequence[str]) -> list[str]:
    """Return those of `accounts` that send emails to the normalized address `to`. Its domain is always ASCII."""
    if to.isascii():
        return list(accounts)
    return [name for name in accounts if _has_smtputf8(configs, app_id, name)]


def _has_smtputf8(configs: ConfigStore, app_id: str, name: str) -> bool:
    try:
        return configs.required(MAIL_ACCOUNTS, app_id, name).value.smtputf8
    except ConfigInvalid:
        return False
