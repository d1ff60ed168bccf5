"""Checks whether the config of our app at a provider is sufficient, and whether a proof was issued to our app."""

from collections.abc import Mapping
from typing import Any

from streams.wire.errors import ConfigInvalid
from vendors.signin.fields import identifier
from vendors.signin.protocols import ProofRefused, SignInApp


def invalid_config(app: SignInApp, problem: str) -> ConfigInvalid:
    """Return the error for a config of kind `sign_in`. `problem` begins with the name of the field."""
    return ConfigInvalid(f"sign_in {app.platform}: {problem}")


def check_audiences(app: SignInApp) -> None:
    """Raise `ConfigInvalid` if the config names none of our apps."""
    if not any(app.audiences):
        raise invalid_config(app, "audiences must name the ids of your apps at the provider")


def check_code_app(app: SignInApp, *, needs_secret: bool = True, needs_redirect: bool = False) -> None:
    """Raise `ConfigInvalid` if the config is not sufficient to redeem codes that were issued to `client_id`."""
    check_audiences(app)
    if not app.client_id:
        raise invalid_config(app, "client_id is required")
    if app.client_id not in app.audiences:
        raise invalid_config(app, "audiences must contain client_id")
    if needs_secret and not app.client_secret.get_secret_value():
        raise invalid_config(app, "client_secret is required")
    if needs_redirect and not app.redirect_uri:
        raise invalid_config(app, "redirect_uri is required")


def check_issued_to_us(app: SignInApp, value: Mapping[str, Any], name: str) -> None:
    """Raise `ProofRefused` if the field `name` of a response says that a token was issued to another app."""
    issued_to = identifier(app.platform, value, name)
    if issued_to not in app.audiences:
        problem = f"{app.platform} issued the access token to another app"
        raise ProofRefused(problem, seen=issued_to, allowed=list(app.audiences))
