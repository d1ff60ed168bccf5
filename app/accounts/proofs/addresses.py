"""Email addresses in requests, and the config that allows them."""

from typing import Annotated, Literal

from pydantic import Field

from app.http.rows.endpoint import Call
from app.services import Services
from storage.configs.kinds.email import EMAIL, Email
from storage.configs.kinds.mail_accounts import MAIL_ACCOUNTS
from storage.mail.addresses import fault_of, normalized
from storage.mail.smtputf8 import NOT_ASCII, accounts_for
from streams.wire.errors import ConfigInvalid, InvalidParameter

ClientPlatform = Annotated[
    Literal["website", "ios", "android"],
    Field(description="The client's operating system. The email says that the request came from there."),
]
_NAME = "default"


class EmailConfigInvalid(ConfigInvalid):
    """The app has no usable config of kind `email`, or it does not allow this."""

    status = 417


def address_in(call: Call, address: str, *, field: str) -> str:
    """Return the normalized form of an address in a request. Raises `InvalidParameter`, which names `field`."""
    development = call.services.settings.development
    found = normalized(address, development=development)
    if found is None:
        raise InvalidParameter(f"{field} {fault_of(address, development=development)}")
    return found


def new_address_in(call: Call, address: str, *, field: str) -> str:
    """Like `address_in`, for an address that gets emails: an account of the app must send to such addresses."""
    found = address_in(call, address, field=field)
    accounts = email_config(call.services, call.app_id).mail_accounts
    if not found.isascii() and not accounts_for(found, call.services.configs, call.app_id, accounts=accounts):
        raise InvalidParameter(f"{field} {NOT_ASCII}")
    return found


def email_config(services: Services, app_id: str) -> Email:
    """Return the app's config of kind `email`. Raises `ConfigInvalid` if users may have no addresses."""
    config = services.configs.required(EMAIL, app_id, _NAME).value
    if not config.enabled:
        raise ConfigInvalid("email default: enabled is false")
    return config


def sending_config(services: Services, app_id: str) -> Email:
    """Return the same config. Also raises `ConfigInvalid` if no account can send emails."""
    config = email_config(services, app_id)
    if not config.mail_accounts:
        raise ConfigInvalid("email default: mail_accounts is empty")
    if not any(services.configs.exists(MAIL_ACCOUNTS, app_id, name) for name in config.mail_accounts):
        raise ConfigInvalid(f"mail_accounts {config.mail_accounts[0]} does not exist")
    return config


def require_sending(services: Services, app_id: str) -> None:
    """Raise `ConfigInvalid` if users may have no addresses or no account can send emails."""
    sending_config(services, app_id)


def require_enabled(config: Email, switch: str) -> None:
    """Raise `ConfigInvalid` if a switch of the config is off."""
    if not getattr(config, switch):
        raise ConfigInvalid(f"email default: {switch} is false")


def login_config(call: Call, switch: str | None = None) -> Email:
    """Return the config for a login. Its error has another status than those of other platforms' configs (§4.1)."""
    try:
        config = email_config(call.services, call.app_id)
        if switch is not None:
            require_enabled(config, switch)
    except ConfigInvalid as error:
        raise EmailConfigInvalid(error.what) from None
    return config
